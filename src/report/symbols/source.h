/* SPDX-License-Identifier: MIT */
/* What all forms of the report are written from, and the sentences that they share. */
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
    const struct cw_rules *rules; /* of suppressions; NULL: none are known */
    enum cw_report_process process;
    const char *version;
};

/* "exit", "_exit", "quick_exit", "running", "died" or "unknown". */
const char *cw_report_end(const struct cw_report_source *source);
/* Whether the process ended by itself, so that exit_code means something. */
int cw_report_has_exit_code(const struct cw_report_source *source);

#define CW_DIAGNOSTICS        6
#define CW_DIAGNOSTICS_LOSSES 5 /* those after say nothing against the numbers */
/* Why the account is incomplete, or its stacks are, index < CW_DIAGNOSTICS: the length of the
 * sentence, 0: no reason. */
size_t cw_report_diagnostic(const struct cw_report_source *source, unsigned index, char *buf,
                            size_t cap);

#endif
