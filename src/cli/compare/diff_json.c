/* SPDX-License-Identifier: MIT */
/* A comparison in JSON, schema "cuwarden-diff/1". See diff.h. */
#include "cli/compare/diff.h"

#include <errno.h>

#include "base/out.h"
#include "cli/model/site_text.h"
#include "report/json/json_put.h"

#define BUFFER_SIZE 65536

static void put_process(struct cw_json *json, const char *key, const struct cw_report_model *model)
{
    cw_json_open(json, key, '{');
    cw_process_json(json, model);
    cw_json_close(json, '}');
}

static void put_totals(struct cw_json *json, const struct cw_diff_total *total, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        cw_change_json(json, total[i].name, total[i].value[0], total[i].value[1]);
}

static void put_devices(struct cw_json *json, const struct cw_diff *diff)
{
    struct cw_diff_total total[CW_DIFF_DEVICE_TOTALS];

    cw_json_open(json, "devices", '[');
    for (uint32_t ordinal = 0; ordinal <= CW_DEVICE_HOST; ordinal++) {
        if (!cw_diff_device_totals(diff, ordinal, total))
            continue;
        cw_json_element(json, '{');
        cw_json_device(json, "device", ordinal);
        put_totals(json, total, CW_DIFF_DEVICE_TOTALS);
        cw_json_close(json, '}');
    }
    cw_json_close(json, ']');
}

static void put_summary(struct cw_json *json, const struct cw_diff *diff)
{
    struct cw_diff_total total[CW_DIFF_SUMMARY_TOTALS];

    cw_diff_summary_totals(diff, total);
    cw_json_open(json, "summary", '{');
    put_totals(json, total, CW_DIFF_SUMMARY_TOTALS);
    cw_json_close(json, '}');
}

static void put_counts(struct cw_json *json, const struct cw_diff *diff)
{
    cw_json_open(json, "counts", '{');
    for (int i = 0; i < CW_DIFF_STATES; i++)
        cw_json_number(json, cw_diff_state_name((enum cw_diff_state)i), diff->count[i]);
    cw_json_number(json, "matched_by_name", diff->match.by_name);
    cw_json_close(json, '}');
    cw_json_open(json, "rebuilt", '[');
    for (unsigned i = 0; i < diff->match.rebuilt_count; i++)
        cw_json_string(json, NULL, diff->match.rebuilt[i]);
    cw_json_close(json, ']');
}

static void put_site(struct cw_json *json, const struct cw_diff *diff, uint32_t site)
{
    const struct cw_match *match = &diff->match;

    cw_json_element(json, '{');
    cw_json_string(json, "state", cw_diff_state_name(cw_diff_state(diff, site)));
    cw_json_string(json, "matched_by", match->site[site].is_by_name ? "name" : "id");
    cw_change_json(json, "value", cw_match_cell(match, site, 0)->value,
                   cw_match_cell(match, site, 1)->value);
    cw_site_json(json, cw_match_model(match, site), cw_match_record(match, site),
                 cw_diff_device(diff, site));
    cw_json_close(json, '}');
}

static void put_sites(struct cw_json *json, const struct cw_diff *diff)
{
    uint32_t top = diff->selection.top;

    cw_json_open(json, "sites", '[');
    for (uint32_t i = 0; i < diff->rows && (top == 0 || i < top); i++)
        put_site(json, diff, diff->row[i].site);
    cw_json_close(json, ']');
}

int cw_diff_json(const struct cw_diff *diff, FILE *out)
{
    char buffer[BUFFER_SIZE];
    struct cw_out writer;
    struct cw_json json = {.out = &writer, .first = 1};

    if (fflush(out) != 0)
        return -1;
    cw_out_init(&writer, fileno(out), buffer, sizeof(buffer));
    cw_json_open(&json, NULL, '{');
    cw_json_string(&json, "schema", "cuwarden-diff/1");
    cw_json_string(&json, "version", PACKAGE_VERSION);
    cw_json_string(&json, "metric", cw_metric_name(diff->selection.metric));
    cw_json_string(&json, "unit", cw_metric_unit(diff->selection.metric));
    put_process(&json, "before", diff->model[0].report);
    put_process(&json, "after", diff->model[1].report);
    put_devices(&json, diff);
    put_summary(&json, diff);
    cw_change_json(&json, "sum", diff->sum[0], diff->sum[1]);
    put_counts(&json, diff);
    put_sites(&json, diff);
    cw_json_close(&json, '}');
    cw_out_char(&writer, '\n');
    if (cw_out_flush(&writer) == 0)
        return 0;
    errno = writer.error;
    return -1;
}
