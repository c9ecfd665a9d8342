/* SPDX-License-Identifier: MIT */
/* The dump of what the program held when it ran out of memory. See oom_dump.h. */
#include "hook/services/oom_dump.h"

#include "base/log.h"
#include "core/request/oom.h"
#include "core/process/session.h"
#include "hook/services/dump.h"
#include "report/leaks/holders.h"
#include "report/report_oom.h"

static void add_holders(const struct cw_view *view, uint32_t account, uint8_t device)
{
    struct cw_report_holder found[CW_OOM_HOLDERS];
    struct cw_oom_holder holder[CW_OOM_HOLDERS];
    uint64_t rest_bytes = 0, rest_blocks = 0;
    unsigned count = cw_report_holders(view, device, found, &rest_bytes, &rest_blocks);

    for (unsigned i = 0; i < count; i++)
        holder[i] = (struct cw_oom_holder){
            .site = found[i].site, .bytes = found[i].bytes, .blocks = found[i].blocks};
    cw_oom_set_holders(account, holder, count, rest_bytes, rest_blocks);
}

void cw_oom_dump(uint32_t account)
{
    struct cw_report_request request = {.form = CW_REPORT_TEXT, .version = PACKAGE_VERSION};
    const struct cw_live_oom *oom;
    struct cw_arena_copy copy;
    char file[CW_LOG_LINE_MAX];

    cw_arena_copy_begin(&cw_session.arena, &copy);
    oom = cw_view_oom(&copy.view, account);
    if (oom != NULL)
        add_holders(&copy.view, account, oom->device);
    cw_arena_copy_end(&copy);
    if (oom == NULL || cw_session.options->dump_oom != CW_DUMP_OOM_ON)
        return;
    if (cw_dump_write(file, sizeof(file)) == 0)
        request.destination = file;
    if (cw_log_get_level() < CW_LOG_WARN)
        return;
    cw_arena_copy_begin(&cw_session.arena, &copy); /* with the holders */
    cw_report_oom(&copy.view, account, &request);
    cw_arena_copy_end(&copy);
}
