/* SPDX-License-Identifier: MIT */
/* Lines of LOG=debug. See debug_log.h. */
#include "core/account/debug_log.h"

#include <stdatomic.h>

#include "base/out.h"
#include "core/account/site.h"
#include "core/account/site_count.h"
#include "core/account/usage.h"
#include "live/view.h"

#define LOAD(field)  atomic_load_explicit(&(field), memory_order_relaxed)
#define WORDS_MAX    24
#define DEVICE_WORDS 16

static const char *name(uint8_t device, char *buf)
{
    if (device == CW_DEVICE_HOST)
        return "host";
    cw_format(buf, DEVICE_WORDS, "device %u", device);
    return buf;
}

void cw_debug_log_block(const struct cw_live_block *block, int is_taken)
{
    const struct cw_live_site *site = cw_site_own(cw_site_at(LOAD(block->site)));
    char device[DEVICE_WORDS], size[WORDS_MAX], held[WORDS_MAX];
    const char *api;

    if (cw_kind_counted(site->kind) == CW_COUNTED_NONE)
        return;
    api = is_taken ? cw_arena_text_at(cw_site_arena, site->api) : "";
    cw_log(CW_LOG_DEBUG, "%s: %s%s%s %s, %s held", name(site->device, device), api,
           is_taken ? " took " : "gave back ", cw_format_size(size, WORDS_MAX, LOAD(block->held)),
           is_taken ? "from the driver" : "to the driver",
           cw_format_size(held, WORDS_MAX, cw_usage_device(site->device).held));
}

void cw_debug_log_fallback(uint8_t device, uint64_t bytes)
{
    const struct cw_live_memory *memory = &cw_site_count_devices[device].memory;
    char words[DEVICE_WORDS], size[WORDS_MAX], all[WORDS_MAX];

    if (!cw_debug_log_is_on())
        return;
    cw_log(CW_LOG_DEBUG, "%s: %s served from managed memory, %s so far", name(device, words),
           cw_format_size(size, WORDS_MAX, bytes),
           cw_format_size(all, WORDS_MAX, LOAD(memory->fallback_bytes)));
}

void cw_debug_log_bypass(uint8_t device, enum cw_bypass why)
{
    static const char *const labels[CW_BYPASS_COUNT] = {
#define X(id, json_name, label) [CW_BYPASS_##id] = (label),
        CW_BYPASSES(X)
#undef X
    };
    const struct cw_live_pool *pool = &cw_site_count_devices[device].pool;
    char words[DEVICE_WORDS];

    if (cw_debug_log_is_on())
        cw_log(CW_LOG_DEBUG, "%s: passed to the driver: %s, %ju so far", name(device, words),
               labels[why], (uintmax_t)LOAD(pool->bypassed[why]));
}
