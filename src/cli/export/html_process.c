/* SPDX-License-Identifier: MIT */
/* The process in the page's data. See html_process.h. */
#include "cli/export/html_process.h"

#include <inttypes.h>

#include "cli/export/html_columns.h"

static void put_facts(FILE *out, const struct cw_report_model *model)
{
    const struct cw_process_facts *process = &model->process;

    fprintf(out, ",\"process\":{\"pid\":%" PRIu32, process->pid);
    cw_html_add_number(out, "ppid", process->ppid);
    cw_html_add_text(out, "exe", process->exe);
    cw_html_add_text(out, "command", process->command);
    cw_html_add_text(out, "cwd", process->cwd);
    cw_html_add_text(out, "host", process->host);
    cw_html_add_text(out, "rank", process->rank);
    cw_html_add_text(out, "mode", model->snapshot.pool.on ? "pool" : "track");
    cw_html_add_text(out, "version", model->version);
    cw_html_add_text(out, "end", process->end);
    if (process->has_exit_code)
        fprintf(out, ",\"code\":%d", process->exit_code);
    cw_html_add_number(out, "startMs", process->start_realtime_ns / 1000000);
    cw_html_add_number(out, "duration", model->snapshot.duration_ns);
    cw_html_add_number(out, "driver", process->driver_version);
    fputc('}', out);
}

/* What is left is leaked, or still allocated where the process runs or was ended. */
static void put_left(FILE *out, const struct cw_report_model *model)
{
    const struct cw_snapshot_summary *summary = &model->snapshot.summary;

    fprintf(out, ",\"left\":{\"isLeaked\":%s", cw_report_has_leaks(model) ? "true" : "false");
    cw_html_add_number(out, "bytes", summary->leaked_bytes);
    cw_html_add_number(out, "blocks", summary->leaked_blocks);
    cw_html_add_number(out, "sites", summary->leak_sites);
    fputc('}', out);
}

static void put_summary(FILE *out, const struct cw_report_model *model)
{
    const struct cw_snapshot_summary *summary = &model->snapshot.summary;

    fprintf(out, ",\"summary\":{\"peakBytes\":%" PRIu64, summary->peak_bytes);
    cw_html_add_number(out, "allocs", summary->allocs);
    cw_html_add_number(out, "frees", summary->frees);
    cw_html_add_number(out, "failed", summary->failed);
    cw_html_add_number(out, "hits", summary->pool_hits);
    cw_html_add_number(out, "misses", summary->pool_misses);
    cw_html_add_number(out, "ooms", cw_report_oom_calls(model));
    fputc('}', out);
}

void cw_html_put_process(FILE *out, const struct cw_report_model *model)
{
    put_facts(out, model);
    put_left(out, model);
    put_summary(out, model);
}
