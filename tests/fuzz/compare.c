/* SPDX-License-Identifier: MIT */
/* Targets that put several inputs together: two reports for diff, the ranks of a job for merge,
 * PyTorch's tensors with an account. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare/diff.h"
#include "cli/compare/ranks.h"
#include "cli/model/json_read.h"
#include "cli/run/torch.h"
#include "fuzz.h"
#include "live_fixture.h"

#define MODELS 4

/* ---- several reports, with a NUL between them ---- */

static int read_model(struct cw_model *model, const uint8_t *bytes, size_t size)
{
    int fd = open(fuzz_file(bytes, size), O_RDONLY);

    *model = (struct cw_model){.storage = cw_json_read(fd, "report.json")};
    close(fd);
    if (model->storage)
        model->report = cw_json_model(model->storage);
    return model->storage != NULL;
}

static uint32_t read_models(struct cw_model *models, const uint8_t *bytes, size_t size)
{
    uint32_t count = 0;

    while (count < MODELS && size > 0) {
        const uint8_t *end = memchr(bytes, '\0', size);
        size_t len = end ? (size_t)(end - bytes) : size;

        count += (uint32_t)read_model(&models[count], bytes, len);
        len += end != NULL;
        bytes += len;
        size -= len;
    }
    return count;
}

/* ---- diff ---- */

static void write_diff(const struct cw_diff *diff)
{
    FILE *nowhere = fopen("/dev/null", "w");

    cw_diff_text(diff, nowhere, 1);
    (void)cw_diff_json(diff, nowhere);
    cw_diff_collapsed(diff, nowhere);
    fclose(nowhere);
}

static void compare(struct cw_model *before, struct cw_model *after, int is_same)
{
    for (int how = CW_MATCH_AUTO; how <= CW_MATCH_NAME; how++) {
        struct cw_diff diff = {.model = {*before, *after},
                               .selection = {.metric = CW_METRIC_LIVE},
                               .by_device = how == CW_MATCH_ID};

        if (cw_diff_make(&diff, (enum cw_match_how)how) == 0) {
            write_diff(&diff);
            if (is_same && diff.rows != 0)
                fuzz_wrong("%u sites differ between a report and itself", (unsigned)diff.rows);
        }
        diff.model[0] = diff.model[1] = (struct cw_model){.report = NULL};
        cw_diff_free(&diff);
    }
}

void fuzz_diff(const uint8_t *bytes, size_t size)
{
    struct cw_model models[MODELS];
    uint32_t count = read_models(models, bytes, size);

    if (count > 0)
        compare(&models[0], &models[0], 1);
    if (count > 1)
        compare(&models[0], &models[1], 0);
    for (uint32_t i = 0; i < count; i++)
        cw_model_free(&models[i]);
}

/* ---- merge ---- */

static void check_ranks(const struct cw_ranks *ranks)
{
    for (uint32_t i = 0; i < ranks->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(ranks->rank[i].label, ranks->rank[k].label) == 0)
                fuzz_wrong("two ranks are called '%s'", ranks->rank[i].label);
    for (uint32_t i = 0; i < ranks->rows; i++) {
        struct cw_ranks_spread spread = cw_ranks_spread(ranks, ranks->row[i].site);

        if (spread.min > spread.median || spread.median > spread.max || spread.ranks == 0 ||
            spread.max_rank >= ranks->count)
            fuzz_wrong("a median that is not between the least and the most");
    }
}

void fuzz_merge(const uint8_t *bytes, size_t size)
{
    struct cw_ranks ranks = {.model = calloc(MODELS, sizeof(*ranks.model)),
                             .selection = {.metric = CW_METRIC_LIVE}};
    FILE *nowhere = fopen("/dev/null", "w");

    ranks.count = read_models(ranks.model, bytes, size);
    if (ranks.count > 0 && cw_ranks_make(&ranks) == 0) {
        check_ranks(&ranks);
        cw_ranks_text(&ranks, nowhere, 1);
        (void)cw_ranks_json(&ranks, nowhere);
    }
    cw_ranks_free(&ranks);
    fclose(nowhere);
}

/* ---- the tensors of --torch ---- */

static struct cw_torch torch = {.is_wanted = 1};

static void remove_directory(void)
{
    struct cw_torch ended = torch;

    cw_torch_end(&ended);
    rmdir(torch.directory);
}

static void write_tensors(const struct cw_view *view, const uint8_t *bytes, size_t size)
{
    char path[CW_PLACE_MAX + 32];
    FILE *file;

    if (torch.directory[0] == '\0') {
        strcpy(torch.directory, "/tmp/fuzz-torch-XXXXXX");
        if (!mkdtemp(torch.directory))
            fuzz_wrong("no directory");
        atexit(remove_directory);
    }
    snprintf(path, sizeof(path), "%s/torch.%u", torch.directory,
             (unsigned)cw_view_header(view)->pid);
    file = fopen(path, "w");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        fuzz_wrong("no file of tensors");
}

/* Every row is of a site that there is, and they add up. */
static void check_tensors(const struct cw_report_tensors *tensors, uint32_t sites)
{
    uint64_t peak = 0, most = UINT64_MAX;

    for (uint32_t i = 0; i < tensors->rows; i++) {
        const struct cw_report_tensor *row = &tensors->row[i];

        if (row->site != CW_SITE_NONE && row->site >= sites)
            fuzz_wrong("site %u of %u", (unsigned)row->site, (unsigned)sites);
        if (row->peak_bytes > most)
            fuzz_wrong("rows are not in order");
        most = row->peak_bytes;
        peak += row->peak_bytes;
    }
    if (peak != tensors->peak_bytes || tensors->known > tensors->segments)
        fuzz_wrong("rows of %ju bytes, %ju in all", (uintmax_t)peak,
                   (uintmax_t)tensors->peak_bytes);
}

void fuzz_torch(const uint8_t *bytes, size_t size)
{
    struct cw_report_tensors *tensors;
    struct cw_view view;
    uint32_t site;

    fixture_create();
    site =
        fixture_site(fixture_frame(0, fixture_own_module(), 64), "cuMemAlloc", CW_KIND_DEVICE, 0);
    fixture_alloc(site, 8388608, 1, FIXTURE_MS);
    view = fixture_view();
    write_tensors(&view, bytes, size);
    tensors = cw_torch_read(&torch, &view);
    if (tensors)
        check_tensors(tensors, cw_view_count(&view, CW_TABLE_SITE));
    cw_torch_free(tensors);
    fixture_destroy();
}
