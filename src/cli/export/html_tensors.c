/* SPDX-License-Identifier: MIT */
/* Tensors in the page's data. See html_tensors.h. */
#include "cli/export/html_tensors.h"

#include <inttypes.h>

#include "cli/export/html_columns.h"

#define LINES_MAX 50

static void put_line(FILE *out, const struct cw_report_tensor *row)
{
    fprintf(out, "{\"line\":%" PRIu32 ",\"function\":", row->line);
    cw_html_put_text(out, row->function ? row->function : "");
    fputs(",\"file\":", out);
    cw_html_put_text(out, row->file ? row->file : "");
    fprintf(out,
            ",\"device\":%" PRIu32 ",\"count\":%" PRIu64 ",\"bytes\":%" PRIu64
            ",\"exitBytes\":%" PRIu64 "}",
            row->device, row->peak_tensors, row->peak_bytes, row->exit_bytes);
}

void cw_html_put_tensors(FILE *out, const struct cw_report_tensors *tensors)
{
    fprintf(out,
            ",\"tensors\":{\"bytes\":%" PRIu64 ",\"count\":%" PRIu64 ",\"t\":%" PRIu64
            ",\"segmentBytes\":%" PRIu64 ",\"all\":%" PRIu32 ",\"framework\":",
            tensors->peak_bytes, tensors->peak_tensors, tensors->peak_ns, tensors->segment_bytes,
            tensors->rows);
    cw_html_put_text(out, tensors->framework ? tensors->framework : "");
    fputs(",\"lines\":[", out);
    for (uint32_t i = 0; i < tensors->rows && i < LINES_MAX; i++) {
        fputs(i > 0 ? "," : "", out);
        put_line(out, &tensors->row[i]);
    }
    fputs("]}", out);
}
