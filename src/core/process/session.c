/* SPDX-License-Identifier: MIT */
/* Arming, disarming, the end. See session.h. */
#include "core/process/session.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/own_path.h"
#include "base/reason.h"
#include "base/sys.h"
#include "core/device/context.h"
#include "core/device/device.h"
#include "core/device/driver_pool.h"
#include "core/account/event.h"
#include "core/request/fallback.h"
#include "core/process/gate.h"
#include "core/device/graph.h"
#include "core/growth/growth.h"
#include "core/account/index.h"
#include "core/account/freed.h"
#include "core/limits/inject.h"
#include "core/limits/limit.h"
#include "core/stacks/module.h"
#include "core/request/oom.h"
#include "core/device/pitch.h"
#include "core/pool/pool.h"
#include "core/limits/pressure.h"
#include "core/account/regrowth.h"
#include "core/account/site.h"
#include "core/process/slot.h"
#include "core/tags/tag.h"
#include "core/account/tally.h"
#include "core/process/thread.h"
#include "core/account/trace.h"
#include "core/account/tracker.h"
#include "core/device/vmm.h"

/* Address space, not memory: room for more than 100 million blocks. Less is taken where less is
 * given. */
#define RESERVE         ((size_t)16 << 30)
#define RESERVE_LIMITED ((size_t)1 << 30)
#define RESERVE_LEAST   ((size_t)16 << 20)
#define COMMAND_MAX     4096

CW_ALIGNED_LINE struct cw_session cw_session;
static struct cw_once arming;

static uint32_t text_of_own_path(void)
{
    char path[PATH_MAX];

    return cw_own_path(path, sizeof(path)) == 0
               ? cw_arena_text(&cw_session.arena, path, strlen(path))
               : 0;
}

/* The arguments as the kernel has them: argv of main is not ours to read. */
static void describe_command(struct cw_live_header *header)
{
    char buf[COMMAND_MAX];
    int fd = cw_sys_open("/proc/self/cmdline", O_RDONLY, 0);
    size_t len = fd >= 0 ? cw_sys_read_at(fd, buf, sizeof(buf) - 1, 0) : 0;

    if (fd >= 0)
        cw_sys_close(fd);
    if (len == 0) {
        header->command = header->exe; /* better than no name at all */
        return;
    }
    buf[len] = '\0';
    header->argv = cw_arena_text(&cw_session.arena, buf, len);
    for (size_t i = 0; i < len; i++) {
        if (buf[i] != '\0')
            continue;
        header->argc++;
        if (i + 1 < len)
            buf[i] = ' ';
    }
    header->command = cw_arena_text(&cw_session.arena, buf, strlen(buf));
}

static void describe_rank(struct cw_live_header *header, const struct cw_launcher *launcher)
{
    if (!launcher)
        return;
    if (launcher->rank[0] != '\0')
        header->rank = cw_arena_text(&cw_session.arena, launcher->rank, strlen(launcher->rank));
    if (launcher->envc > 0)
        header->env = cw_arena_text(&cw_session.arena, launcher->env, launcher->env_len - 1);
    if (header->env != 0)
        header->envc = launcher->envc;
}

static void describe_process(const struct cw_launcher *launcher, unsigned driver_version)
{
    struct cw_live_header *header = cw_session.arena.header;
    struct utsname system;
    char cwd[PATH_MAX];

    header->pid = (uint32_t)getpid();
    header->ppid = (uint32_t)getppid();
    header->start_realtime_ns = cw_clock_real_ns();
    header->start_ns = cw_session.start_ns = cw_session.ops->now_ns();
    header->driver_version = driver_version;
    header->stacks_mode = (uint32_t)cw_session.options->stacks;
    header->exe = text_of_own_path();
    describe_command(header);
    describe_rank(header, launcher);
    if (getcwd(cwd, sizeof(cwd)) != NULL)
        header->cwd = cw_arena_text(&cw_session.arena, cwd, strlen(cwd));
    if (uname(&system) == 0)
        header->host = cw_arena_text(&cw_session.arena, system.nodename, strlen(system.nodename));
}

/* With a limit on the address space the driver needs what there is: be modest. */
static size_t wanted_reserve(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return RESERVE;
    if (limit.rlim_cur / 64 > RESERVE_LIMITED)
        return RESERVE_LIMITED;
    return limit.rlim_cur / 64 < RESERVE_LEAST ? RESERVE_LEAST : limit.rlim_cur / 64;
}

/* Without a file the account is kept in memory, and lost if the process dies. */
static void back_arena(void)
{
    const char *live = cw_session.options->live;
    struct cw_place place = {.directory = live, .tmpdir = cw_session.options->tmpdir};
    int saved = errno; /* the program's */

    if (strcmp(live, "off") == 0)
        return;
    if (strcmp(live, "auto") == 0)
        place.directory = NULL;
    if (cw_arena_back(&cw_session.arena, &place) != 0)
        cw_log(CW_LOG_WARN,
               "no live file in %s: %s (errno %d); if the process dies its report is lost; "
               "CUWARDEN_LIVE=DIRECTORY names another place, CUWARDEN_LIVE=off does without",
               place.directory ? live : "/dev/shm or TMPDIR", cw_reason(errno), errno);
    errno = saved;
}

static int publish(void)
{
    int error = cw_backing_publish(&cw_session.arena.backing, cw_session.arena.header);

    if (error > 0)
        cw_log(CW_LOG_WARN, "the live file '%s' cannot be given its name: %s (errno %d)",
               cw_session.arena.backing.path, cw_reason(error), error);
    return error < 0 ? -1 : 0;
}

static int build(const struct cw_launcher *launcher, unsigned driver_version)
{
    struct cw_arena *arena = &cw_session.arena;

    if (cw_arena_create(arena, wanted_reserve()) != 0)
        return -1;
    back_arena();
    cw_slot_init();
    describe_process(launcher, driver_version);
    cw_module_init(arena);
    cw_context_init(arena, cw_session.ops);
    cw_device_init(arena);
    cw_event_init(arena);
    cw_oom_init(arena);
    cw_limit_init(arena, cw_session.options);
    cw_pressure_init(cw_session.options);
    cw_inject_init(&cw_session.options->fail);
    cw_fallback_init(cw_session.options);
    cw_pool_init(arena, cw_session.options);
    cw_tally_init(arena);
    cw_tracker_init(arena);
    cw_regrowth_init(arena, cw_session.options->growth == CW_GROWTH_ON);
    cw_tag_init(arena);
    if (cw_site_init(arena, cw_session.options->stacks,
                     (unsigned)cw_session.options->stack_depth) != 0)
        return -1;
    cw_growth_init(arena, cw_session.options);
    return publish();
}

void cw_session_arm(const struct cw_driver_ops *ops, const struct cw_options *options,
                    const struct cw_launcher *launcher, unsigned driver_version)
{
    if (atomic_load(&cw_session.state) == CW_SESSION_DISARMED || !cw_once_begin(&arming))
        return;
    cw_session.ops = ops;
    cw_session.options = options;
    if (build(launcher, driver_version) == 0) {
        int fresh = CW_SESSION_NEW;

        atomic_compare_exchange_strong(&cw_session.state, &fresh, CW_SESSION_ARMED);
        cw_log(CW_LOG_DEBUG, "armed, driver %u.%u", driver_version / 1000,
               driver_version % 1000 / 10);
    } else {
        cw_backing_remove(&cw_session.arena.backing);
        cw_session_disarm("no memory for its own tables");
    }
    cw_once_end(&arming);
}

void cw_session_disarm(const char *why)
{
    int armed = CW_SESSION_ARMED;

    if (!atomic_compare_exchange_strong(&cw_session.state, &armed, CW_SESSION_DISARMED)) {
        int fresh = CW_SESSION_NEW;

        if (!atomic_compare_exchange_strong(&cw_session.state, &fresh, CW_SESSION_DISARMED))
            return;
    }
    if (cw_session.arena.header != NULL)
        atomic_store(&cw_session.arena.header->disarmed, cw_site_text(why));
    cw_log(CW_LOG_ERROR, "accounting stopped: %s; the program runs on, its calls pass through",
           why);
}

int cw_session_finish(enum cw_exit_kind kind, int code)
{
    struct cw_live_header *header = cw_session.arena.header;
    int armed = CW_SESSION_ARMED;
    uint64_t now;

    if (header == NULL || header->pid != (uint32_t)getpid())
        return 0; /* never armed, or a vfork child that shares our memory */
    /* After a disarm there is still a report to give, of what was seen up to then. */
    if (!atomic_compare_exchange_strong(&cw_session.state, &armed, CW_SESSION_FINISHED) &&
        !(armed == CW_SESSION_DISARMED &&
          atomic_compare_exchange_strong(&cw_session.state, &armed, CW_SESSION_FINISHED)))
        return 0;
    cw_stack_note_python();
    atomic_store(&header->exit_kind, (uint32_t)kind);
    atomic_store(&header->exit_code, code);
    now = cw_session_now();
    if (armed == CW_SESSION_ARMED) /* what came after a disarm is not in any counter */
        cw_growth_finish(now);
    atomic_store(&header->end_ns, now);
    return 1;
}

void cw_session_reported(void)
{
    cw_backing_unlink(&cw_session.arena.backing);
}

void cw_session_reset(void)
{
    cw_lock_reset_thread();
    cw_mem_reset();
    cw_gate_reset();
    cw_index_reset();
    cw_site_reset();
    cw_module_reset();
    cw_tracker_reset();
    cw_regrowth_reset();
    cw_tally_reset();
    cw_tag_reset();
    cw_pool_reset();
    cw_limit_reset();
    cw_pressure_reset();
    cw_inject_reset();
    cw_driver_pool_reset();
    cw_freed_reset();
    cw_pitch_reset();
    cw_fallback_reset();
    cw_slot_reset();
    cw_context_reset();
    cw_vmm_reset();
    cw_graph_reset();
    cw_growth_reset();
    cw_trace_reset();
    cw_thread_reset();
    cw_arena_destroy(&cw_session.arena);
    arming = (struct cw_once){0};
    atomic_store(&cw_session.state, CW_SESSION_NEW);
}
