/* SPDX-License-Identifier: MIT */
/* State, clock and arena. See session.h. */
#include "core/process/session.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/out.h"
#include "base/reason.h"
#include "live/live_dir.h"

/* Address space, not memory: room for more than 100 million blocks. Falls back to less. */
#define RESERVE         ((size_t)16 << 30)
#define RESERVE_LIMITED ((size_t)1 << 30)
#define RESERVE_LEAST   ((size_t)16 << 20)

CW_ALIGNED_LINE struct cw_session cw_session;
static struct cw_once arming;

/* With a limit on the address space, most of it is left to the driver. */
static size_t wanted_reserve(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return RESERVE;
    if (limit.rlim_cur / 64 > RESERVE_LIMITED)
        return RESERVE_LIMITED;
    return limit.rlim_cur / 64 < RESERVE_LEAST ? RESERVE_LEAST : limit.rlim_cur / 64;
}

/* Another user can keep us from a default directory, but not without a word. */
static void say_passed_over(const char *tmpdir)
{
    const char *path = cw_session.arena.backing.path;
    char taken[CW_PLACE_MAX];

    if (cw_live_dir_passed_over(path, tmpdir, taken, sizeof(taken)))
        cw_log(CW_LOG_WARN,
               "'%s' belongs to another user or is no directory, so the live file is in '%.*s'; "
               "remove it, or name a place with CUWARDEN_LIVE=DIRECTORY",
               taken, (int)(strrchr(path, '/') - path), path);
}

/* Without a file the account is kept in memory, and lost if the process dies. */
static void back_arena(void)
{
    const char *live = cw_session.options->live;
    char named[CW_PLACE_MAX];
    struct cw_live_dir place = {.directory = cw_live_dir_named(live, named, sizeof(named)),
                                .tmpdir = cw_session.options->tmpdir};
    int saved = errno; /* the program's */

    if (strcmp(live, "off") == 0)
        return;
    if (cw_arena_back(&cw_session.arena, &place) != 0)
        cw_log(CW_LOG_WARN,
               "no live file in %s: %s (errno %d); if the process dies its report is lost; "
               "CUWARDEN_LIVE=DIRECTORY names another place, CUWARDEN_LIVE=off does without",
               place.directory ? place.directory : "/dev/shm or TMPDIR", cw_reason(errno), errno);
    else if (place.directory == NULL)
        say_passed_over(place.tmpdir);
    errno = saved;
}

int cw_session_make_arena(void)
{
    if (cw_arena_create(&cw_session.arena, wanted_reserve()) != 0)
        return -1;
    back_arena();
    return 0;
}

int cw_session_publish(void)
{
    struct cw_arena *arena = &cw_session.arena;
    int error = cw_backing_publish(&arena->backing, arena->header, arena->size);

    if (error > 0)
        cw_log(CW_LOG_WARN, "the live file '%s' cannot be given its name: %s (errno %d)",
               arena->backing.path, cw_reason(error), error);
    return error < 0 ? -1 : 0;
}

int cw_session_begin(const struct cw_driver_ops *ops, const struct cw_options *options)
{
    if (atomic_load(&cw_session.state) == CW_SESSION_DISARMED || !cw_once_begin(&arming))
        return 0;
    cw_session.ops = ops;
    cw_session.options = options;
    return 1;
}

void cw_session_begun(int is_built)
{
    int fresh = CW_SESSION_NEW;

    if (is_built) {
        atomic_compare_exchange_strong(&cw_session.state, &fresh, CW_SESSION_ARMED);
    } else {
        cw_backing_remove(&cw_session.arena.backing);
        cw_session_disarm("no memory for its own tables");
    }
    cw_once_end(&arming);
}

void cw_session_set_init_error(int code)
{
    int32_t none = 0;

    if (cw_session.arena.header == NULL || atomic_load(&cw_session.has_driver))
        return;
    if (code != 0) {
        atomic_compare_exchange_strong(&cw_session.arena.header->init_error, &none, code);
        return;
    }
    atomic_store(&cw_session.has_driver, 1);
    atomic_store(&cw_session.arena.header->init_error, 0);
}

void cw_session_set_unseen(const char *object, int is_uncalled)
{
    struct cw_live_header *header = cw_session.arena.header;

    if (header == NULL)
        return;
    header->is_uncalled = is_uncalled != 0;
    cw_format(header->unseen, sizeof(header->unseen), "%s", object);
}

void cw_session_disarm(const char *why)
{
    int armed = CW_SESSION_ARMED;

    if (!atomic_compare_exchange_strong(&cw_session.state, &armed, CW_SESSION_DISARMED)) {
        int fresh = CW_SESSION_NEW;

        if (!atomic_compare_exchange_strong(&cw_session.state, &fresh, CW_SESSION_DISARMED))
            return;
    }
    atomic_store(&cw_session.disarmed_ns, cw_clock_ns());
    if (cw_session.arena.header != NULL)
        atomic_store(&cw_session.arena.header->disarmed,
                     cw_arena_text(&cw_session.arena, why, strlen(why)));
    cw_log(CW_LOG_ERROR, "accounting stopped: %s; the program runs on, its calls pass through",
           why);
}

enum cw_session_state cw_session_close(void)
{
    int was = CW_SESSION_ARMED;

    if (cw_session.arena.header == NULL || cw_session.pid != getpid())
        return CW_SESSION_NEW; /* never armed, or a vfork child that shares our memory */
    /* A disarmed session still reports what was seen up to then. */
    if (!atomic_compare_exchange_strong(&cw_session.state, &was, CW_SESSION_FINISHED) &&
        !(was == CW_SESSION_DISARMED &&
          atomic_compare_exchange_strong(&cw_session.state, &was, CW_SESSION_FINISHED)))
        return CW_SESSION_NEW;
    return (enum cw_session_state)was;
}

void cw_session_reported(void)
{
    cw_backing_unlink(&cw_session.arena.backing);
}

void cw_session_reset(void)
{
    atomic_store(&cw_session.due, 0);
    cw_arena_destroy(&cw_session.arena);
    arming = (struct cw_once){0};
    atomic_store(&cw_session.has_driver, 0);
    atomic_store(&cw_session.state, CW_SESSION_NEW);
}
