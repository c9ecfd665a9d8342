/* SPDX-License-Identifier: MIT */
/* Phrases shared by the formats of the report. See source.h. */
#include "report/symbols/source.h"

#include "base/out.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

const char *cw_report_end(const struct cw_report_source *source)
{
    switch (LOAD(cw_view_header(source->view)->exit_kind)) {
    case CW_EXIT_EXIT:
        return "exit";
    case CW_EXIT_QUICK_EXIT:
        return "quick_exit";
    case CW_EXIT_UNDERSCORE:
        return "_exit";
    default:
        break;
    }
    if (source->process == CW_REPORT_PROCESS_ALIVE)
        return "running";
    return source->process == CW_REPORT_PROCESS_DEAD ? "died" : "unknown";
}

int cw_report_has_exit_code(const struct cw_report_source *source)
{
    unsigned kind = LOAD(cw_view_header(source->view)->exit_kind);

    /* quick_exit does not pass the status to its handlers. */
    return kind == CW_EXIT_EXIT || kind == CW_EXIT_UNDERSCORE;
}

static size_t describe(char *buf, size_t cap, uint64_t count, const char *one, const char *many)
{
    buf[0] = '\0';
    return count == 0 ? 0 : cw_format(buf, cap, count == 1 ? one : many, (uintmax_t)count);
}

size_t cw_report_diagnostic(const struct cw_report_source *source, unsigned index, char *buf,
                            size_t cap)
{
    const struct cw_live_header *header = cw_view_header(source->view);
    uint32_t reason = LOAD(header->disarmed), python = LOAD(header->python);

    switch (index) {
    case 0:
        buf[0] = '\0';
        if (reason == 0)
            return 0;
        return cw_format(buf, cap, "it stopped early: %s", cw_view_text(source->view, reason));
    case 1:
        return describe(buf, cap, LOAD(header->lost_blocks),
                        "%ju allocation did not fit in the records",
                        "%ju allocations did not fit in the records");
    case 2:
        return describe(buf, cap, LOAD(header->untracked_frees),
                        "%ju free of memory whose allocation was not seen",
                        "%ju frees of memory whose allocation was not seen");
    case 3:
        /* The process itself has the data that is missing in the file. */
        return describe(buf, cap, source->process != CW_REPORT_PROCESS_UNKNOWN && LOAD(header->cut),
                        "the live file could not grow; later data is missing", "");
    case 4:
        return describe(buf, cap, LOAD(header->events_dropped),
                        "%ju event did not fit in the records",
                        "%ju events did not fit in the records");
    default:
        buf[0] = '\0';
        if (python == 0)
            return 0;
        return cw_format(buf, cap, "%s: native frames only", cw_view_text(source->view, python));
    }
}
