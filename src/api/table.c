/* SPDX-License-Identifier: MIT */
/* The table that programs look for by its name (include/cuwarden/cuwarden.h). Only ever appended;
 * tests/check/api.list says how it was. */
#include "api/api.h"
#include "api/blocks.h"
#include "api/bridges.h"
#include "api/budgets.h"
#include "api/buffers.h"
#include "api/control.h"
#include "api/downloads.h"
#include "api/estimates.h"
#include "api/files.h"
#include "api/leaks.h"
#include "api/listeners.h"
#include "api/placements.h"
#include "api/prefetches.h"
#include "api/scopes.h"
#include "api/stats.h"
#include "api/streams.h"
#include "api/tags.h"
#include "base/compiler.h"

static int is_active(void)
{
    return cw_api_check_active() == CUWARDEN_OK;
}

static const char *version(void)
{
    return PACKAGE_VERSION;
}

extern const struct cuwarden_table cuwarden_table_1;

CW_EXPORT const struct cuwarden_table cuwarden_table_1 = {
    .size = sizeof(struct cuwarden_table),
    .is_active = is_active,
    .version = version,
    .error_text = cw_api_error_text,
    .tag_push = cw_api_tag_push,
    .tag_pop = cw_api_tag_pop,
    .step = cw_api_step,
    .stats = cw_api_stats,
    .block_find = cw_api_block_find,
    .block_name = cw_api_block_name,
    .mark = cw_api_mark,
    .visit = cw_api_visit,
    .leaks = cw_api_leaks,
    .report = cw_api_report,
    .record_start = cw_api_record_start,
    .record_stop = cw_api_record_stop,
    .pressure = cw_api_pressure,
    .pressure_listen = cw_api_pressure_listen,
    .memory_listen = cw_api_memory_listen,
    .trim = cw_api_trim,
    .limit = cw_api_limit,
    .pool_max = cw_api_pool_max,
    .batch_begin = cw_api_batch_begin,
    .batch_end = cw_api_batch_end,
    .scope_begin = cw_api_scope_begin,
    .scope_end = cw_api_scope_end,
    .keep = cw_api_keep,
    .budget_set = cw_api_budget_set,
    .budget_clear = cw_api_budget_clear,
    .budget_now = cw_api_budget_now,
    .buffer_make = cw_api_buffer_make,
    .buffer_find = cw_api_buffer_find,
    .buffer_ensure = cw_api_buffer_ensure,
    .buffer_use = cw_api_buffer_use,
    .buffer_now = cw_api_buffer_now,
    .buffer_visit = cw_api_buffer_visit,
    .buffer_shrink = cw_api_buffer_shrink,
    .buffer_clean = cw_api_buffer_clean,
    .buffer_end = cw_api_buffer_end,
    .download_make = cw_api_download_make,
    .download_start = cw_api_download_start,
    .download_after = cw_api_download_after,
    .download_before = cw_api_download_before,
    .download_wait = cw_api_download_wait,
    .download_release = cw_api_download_release,
    .download_now = cw_api_download_now,
    .download_end = cw_api_download_end,
    .device_pick = cw_api_device_pick,
    .device_alloc = cw_api_device_alloc,
    .bridge_make = cw_api_bridge_make,
    .bridge_copy = cw_api_bridge_copy,
    .bridge_wait = cw_api_bridge_wait,
    .bridge_now = cw_api_bridge_now,
    .bridge_end = cw_api_bridge_end,
    .estimate = cw_api_estimate,
    .streams_make = cw_api_streams_make,
    .streams_order = cw_api_streams_order,
    .work_begin = cw_api_work_begin,
    .work_end = cw_api_work_end,
    .streams_reset = cw_api_streams_reset,
    .streams_now = cw_api_streams_now,
    .streams_end = cw_api_streams_end,
    .prefetch_make = cw_api_prefetch_make,
    .prefetch_start = cw_api_prefetch_start,
    .prefetch_before = cw_api_prefetch_before,
    .prefetch_stage = cw_api_prefetch_stage,
    .prefetch_wait = cw_api_prefetch_wait,
    .prefetch_cancel = cw_api_prefetch_cancel,
    .prefetch_now = cw_api_prefetch_now,
    .prefetch_end = cw_api_prefetch_end,
};
