/* SPDX-License-Identifier: MIT */
/*
 * A leak check while the program runs, by the classes of the report. See api.h.
 *
 * What a scope frees hangs on it, so it is made of nothing that somebody else could have written:
 * stacks, names and what a site is from private memory, what is live from the blocks.
 */
#include "api/leaks.h"

#include "api/blocks.h"
#include "api/thread.h"
#include "core/account/owner.h"
#include "report/leaks/cache.h"
#include "report/report.h"
#include "report/snapshot/leak.h"

struct check {
    struct cw_arena_copy copy;
    struct cw_report_job *job;
    const struct cw_snapshot *snapshot;
    uint64_t since;
    cuwarden_block_fn fn;
    void *arg;
    struct cuwarden_leaks found;
};

static int open_check(struct check *check)
{
    struct cw_report_request request = {.process = CW_REPORT_PROCESS_ALIVE,
                                        .suppressions = cw_api_options()->suppressions,
                                        .is_to_act_upon = 1};

    if (cw_arena_copy_begin(&cw_session.arena, &check->copy) != 0)
        return -1;
    check->job = cw_report_open(&check->copy.view, &request);
    if (check->job == NULL) {
        cw_arena_copy_end(&check->copy);
        return -1;
    }
    check->snapshot = &cw_report_of(check->job)->snapshot;
    return 0;
}

static void close_check(struct check *check)
{
    cw_report_close(check->job);
    cw_arena_copy_end(&check->copy);
}

/* 0: go on. A site that came after the snapshot has no class yet: it counts. */
static int judge(struct check *check, const struct cw_api_block *read)
{
    const struct cw_snapshot_site *site = cw_snapshot_find(check->snapshot, read->site);

    if (site != NULL && !cw_leak_is_counted(site->leak)) {
        check->found.excused_blocks++;
        check->found.excused_bytes += read->block.bytes;
        return 0;
    }
    check->found.blocks++;
    check->found.bytes += read->block.bytes;
    return check->fn != NULL ? cw_api_block_tell(read, check->fn, check->arg) : 0;
}

static void look(struct check *check)
{
    uint32_t count = cw_arena_count(&cw_session.arena, CW_TABLE_BLOCK);
    struct cw_api_block read;

    for (uint32_t i = 1; i < count; i++)
        if (cw_api_block_read(i, &read) == 0 && read.block.id >= check->since &&
            judge(check, &read) != 0)
            return;
}

static enum cw_api_owner owner_of(const struct cw_snapshot_site *site)
{
    if (site == NULL || site->leak == CW_LEAK_NONE)
        return CW_API_OWNER_UNKNOWN;
    return cw_leak_is_counted(site->leak) && site->cache == CW_CACHE_NONE ? CW_API_OWNER_PROGRAM
                                                                          : CW_API_OWNER_OTHER;
}

int cw_api_leaks_owners(uint8_t *of, uint32_t sites)
{
    struct check check = {.since = 0};

    if (open_check(&check) != 0)
        return -1;
    for (uint32_t i = 0; i < sites; i++)
        of[i] = (uint8_t)owner_of(cw_snapshot_find(check.snapshot, i));
    close_check(&check);
    return 0;
}

int cw_api_leaks(uint64_t since, cuwarden_block_fn fn, void *arg, struct cuwarden_leaks *out,
                 size_t size)
{
    struct check check = {.since = since, .fn = fn, .arg = arg};
    int error = cw_api_check_active();
    unsigned depth;

    if (error != CUWARDEN_OK)
        return error;
    if (cw_session_is_armed()) {
        depth = cw_api_enter();
        error = open_check(&check) == 0
                    ? CUWARDEN_OK
                    : cw_api_fail(CUWARDEN_OUT_OF_HOST,
                                  "cannot tell who owns the memory of %u sites: out of memory, or "
                                  "suppressions or function names cannot be read",
                                  cw_arena_count(&cw_session.arena, CW_TABLE_SITE));
        if (error == CUWARDEN_OK) {
            look(&check);
            close_check(&check);
        }
        cw_api_leave(depth);
    }
    if (error == CUWARDEN_OK)
        cw_api_give(out, size, &check.found, sizeof(check.found));
    return error;
}
