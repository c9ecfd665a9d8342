/* SPDX-License-Identifier: MIT */
/* The source of all formats of the report, and the phrases that they share. */
#ifndef CW_REPORT_SOURCE_H
#define CW_REPORT_SOURCE_H

#include <stddef.h>

#include "report/report.h"
#include "report/snapshot/snapshot.h"
#include "report/symbols/symbol.h"

struct cw_rules;

struct cw_report_source {
    const struct cw_view *view;
    const struct cw_snapshot *snapshot;
    struct cw_symbols *symbols;
    const struct cw_rules *rules; /* of suppressions; NULL: unknown */
    enum cw_report_process process;
    const char *version;
};

/* "exit", "_exit", "quick_exit", "running", "died" or "unknown". */
const char *cw_report_end(const struct cw_report_source *source);
/* Whether the process ended by itself, so that exit_code is meaningful. */
int cw_report_has_exit_code(const struct cw_report_source *source);

#define CW_DIAGNOSTICS        6
#define CW_DIAGNOSTICS_LOSSES 5 /* later ones do not affect the numbers */
/* Why the account or its stacks are incomplete, index < CW_DIAGNOSTICS: the length of the sentence,
 * 0 if there is none. */
size_t cw_report_diagnostic(const struct cw_report_source *source, unsigned index, char *buf,
                            size_t cap);

#endif
