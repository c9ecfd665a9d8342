/* SPDX-License-Identifier: MIT */
/* The ranks of a job in JSON, schema "cuwarden-merge/1". See ranks.h. */
#include "cli/compare/ranks.h"

#include <errno.h>

#include "base/out.h"
#include "cli/model/site_text.h"
#include "report/json/json_put.h"

#define BUFFER_SIZE 65536

static void put_device(struct cw_json *json, const struct cw_ranks *ranks, uint32_t rank,
                       uint32_t index)
{
    const struct cw_snapshot *snapshot = &ranks->model[rank].report->snapshot;
    const struct cw_snapshot_device *device = &snapshot->device[index];
    struct cw_ranks_leaks leaks = cw_ranks_leaks(ranks, rank, index);

    cw_json_open(json, NULL, '{');
    cw_json_device(json, "device", index);
    if (device->uuid)
        cw_json_string(json, "uuid", device->uuid);
    cw_json_number(json, "live", device->sums.live_bytes);
    cw_json_number(json, "held", device->sums.live_held);
    cw_json_number(json, "peak", device->peak_bytes);
    if (snapshot->pressure.device[index].limit != 0)
        cw_json_number(json, "limit", snapshot->pressure.device[index].limit);
    cw_json_number(json, "leaked_bytes", leaks.bytes);
    cw_json_number(json, "leaked_blocks", leaks.blocks);
    cw_json_number(json, "leak_sites", leaks.sites);
    cw_json_close(json, '}');
}

static void put_ranks(struct cw_json *json, const struct cw_ranks *ranks)
{
    cw_json_open(json, "ranks", '[');
    for (uint32_t i = 0; i < ranks->count; i++) {
        const struct cw_report_model *model = ranks->model[i].report;

        cw_json_element(json, '{');
        cw_json_string(json, "label", ranks->rank[i].label);
        cw_process_json(json, model);
        cw_json_number(json, "peak", ranks->rank[i].peak);
        cw_json_truth(json, "outlier", ranks->rank[i].is_outlier);
        cw_json_open(json, "devices", '[');
        for (uint32_t k = 0; k < CW_DEVICES; k++)
            if (cw_report_has_device(model, k) && cw_ranks_has_device(ranks, k))
                put_device(json, ranks, i, k);
        cw_json_close(json, ']');
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
    cw_json_number(json, "median_peak", ranks->median_peak);
}

static void put_sums(struct cw_json *json, const struct cw_ranks *ranks)
{
    struct cw_ranks_sums sums;

    cw_ranks_sums(ranks, &sums);
    cw_json_open(json, "sums", '{');
    cw_json_number(json, "live", sums.live);
    cw_json_number(json, "held", sums.held);
    cw_json_number(json, "peak", sums.peak);
    cw_json_number(json, "leaked_bytes", sums.summary.leaked_bytes);
    cw_json_number(json, "leaked_blocks", sums.summary.leaked_blocks);
    cw_json_number(json, "leak_sites", sums.summary.leak_sites);
    cw_json_number(json, "allocs", sums.summary.allocs);
    cw_json_number(json, "frees", sums.summary.frees);
    cw_json_number(json, "failed", sums.summary.failed);
    cw_json_number(json, "pool_hits", sums.summary.pool_hits);
    cw_json_number(json, "pool_misses", sums.summary.pool_misses);
    cw_json_close(json, '}');
}

static void put_site(struct cw_json *json, const struct cw_ranks *ranks, uint32_t site)
{
    const struct cw_snapshot_site *record = cw_match_record(&ranks->match, site);
    struct cw_ranks_spread spread = cw_ranks_spread(ranks, site);

    cw_json_element(json, '{');
    cw_site_json(json, cw_match_model(&ranks->match, site), record,
                 ranks->by_device ? record->device : CW_SITE_NONE);
    cw_json_number(json, "ranks", spread.ranks);
    cw_json_number(json, "min", spread.min);
    cw_json_number(json, "median", spread.median);
    cw_json_number(json, "max", spread.max);
    cw_json_number(json, "mean", spread.mean);
    cw_json_number(json, "sum", spread.sum);
    cw_json_string(json, "max_rank", ranks->rank[spread.max_rank].label);
    cw_json_close(json, '}');
}

static void put_sites(struct cw_json *json, const struct cw_ranks *ranks)
{
    uint32_t top = ranks->selection.top;

    cw_json_open(json, "sites", '[');
    for (uint32_t i = 0; i < ranks->rows && (top == 0 || i < top); i++)
        put_site(json, ranks, ranks->row[i].site);
    cw_json_close(json, ']');
}

int cw_ranks_json(const struct cw_ranks *ranks, FILE *out)
{
    char buffer[BUFFER_SIZE];
    struct cw_out writer;
    struct cw_json json = {.out = &writer, .first = 1};

    if (fflush(out) != 0)
        return -1;
    cw_out_init(&writer, fileno(out), buffer, sizeof(buffer));
    cw_json_open(&json, NULL, '{');
    cw_json_string(&json, "schema", "cuwarden-merge/1");
    cw_json_string(&json, "version", PACKAGE_VERSION);
    cw_json_string(&json, "metric", cw_metric_name(ranks->selection.metric));
    cw_json_string(&json, "unit", cw_metric_unit(ranks->selection.metric));
    put_ranks(&json, ranks);
    put_sums(&json, ranks);
    put_sites(&json, ranks);
    cw_json_close(&json, '}');
    cw_out_char(&writer, '\n');
    if (cw_out_flush(&writer) == 0)
        return 0;
    errno = writer.error;
    return -1;
}
