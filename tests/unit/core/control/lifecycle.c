/* SPDX-License-Identifier: MIT */
/* The session: armed once, disarmed once with a reason, finished once, new in a forked child. */
#include "core/process/session.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"
#include "core/control/lifecycle.h"
#include "core/device/context.h"
#include "core/process/gate.h"
#include "core/request/request.h"
#include "core/account/site.h"
#include "core/account/tracker.h"
#include "core/process/intern.h"
#include "fake_driver.h"

#define HANDLE 0xc0ffee00u

static struct cw_options options;
static int said; /* what the library prints */

static void setup(void)
{
    fake_driver_init();
    cw_options_parse(NULL, 1, &options, NULL);
    strcpy(options.live, "off");
}

TestSuite(lifecycle, .init = setup);

static void arm(void)
{
    cw_lifecycle_arm(&fake_driver_ops, &options, NULL, 12040);
}

static void listen_to_stderr(void)
{
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    said = ends[0];
}

static unsigned count_lines(char *buf, size_t cap)
{
    ssize_t len = read(said, buf, cap - 1);
    unsigned lines = 0;

    buf[len > 0 ? len : 0] = '\0';
    for (const char *at = buf; *at != '\0'; at++)
        lines += *at == '\n';
    return lines;
}

CoreTest(lifecycle, is_new_until_it_is_armed)
{
    cr_expect_not(cw_session_is_armed());
    arm();
    cr_expect(cw_session_is_armed());
    cr_expect_eq(cw_session_now(), 1u); /* 0 would mean never */
    fake_driver.now_ns += 5;
    cr_expect_eq(cw_session_now(), 5u);
}

CoreTest(lifecycle, knows_the_process)
{
    char path[4096];
    char cwd[4096];
    ssize_t len;

    arm();
    len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    cr_assert_gt(len, 0);
    path[len] = '\0';
    cr_expect_eq(core_header()->pid, (uint32_t)getpid());
    cr_expect_eq(core_header()->ppid, (uint32_t)getppid());
    cr_expect_str_eq(core_text(core_header()->exe), path);
    cr_expect_str_eq(core_text(core_header()->cwd), getcwd(cwd, sizeof(cwd)));
    cr_expect_gt(strlen(core_text(core_header()->host)), 0u);
    cr_expect_geq(core_header()->argc, 1u);
    cr_expect_eq(strncmp(core_text(core_header()->command), core_text(core_header()->argv),
                         strlen(core_text(core_header()->argv))),
                 0);
    cr_expect_eq(core_header()->driver_version, 12040u);
    cr_expect_eq(core_header()->exit_kind, (uint32_t)CW_EXIT_RUNNING);
    cr_expect_eq(core_header()->end_ns, 0u);
}

CoreTest(lifecycle, knows_its_rank)
{
    static struct cw_launcher launcher;
    const char *env;

    cw_launcher_read(&launcher,
                     (char *[]){"LOCAL_RANK=1", "RANK=17", "CUDA_VISIBLE_DEVICES=", NULL});
    cw_lifecycle_arm(&fake_driver_ops, &options, &launcher, 12040);
    cr_expect_str_eq(core_text(core_header()->rank), "17");
    cr_assert_eq(core_header()->envc, 3u);
    env = core_text(core_header()->env);
    cr_expect_str_eq(env, "RANK=17");
    cr_expect_str_eq(env + 8, "LOCAL_RANK=1");
    cr_expect_str_eq(env + 21, "CUDA_VISIBLE_DEVICES=");
}

CoreTest(lifecycle, has_no_rank_outside_of_a_job)
{
    static struct cw_launcher launcher;

    cw_launcher_read(&launcher, NULL);
    cw_lifecycle_arm(&fake_driver_ops, &options, &launcher, 12040);
    cr_expect_eq(core_header()->rank, 0u);
    cr_expect_eq(core_header()->env, 0u);
    cr_expect_eq(core_header()->envc, 0u);
}

static struct cw_live_header *armed_with[8];

static void arm_at_once(unsigned id)
{
    arm();
    armed_with[id] = core_header();
}

CoreTest(lifecycle, is_armed_once_by_eight_threads_at_once)
{
    run_threads(8, arm_at_once);
    cr_expect(cw_session_is_armed());
    for (unsigned i = 0; i < 8; i++) {
        cr_expect_not_null(armed_with[i]);
        cr_expect_eq(armed_with[i], armed_with[0]);
    }
}

CoreTest(lifecycle, a_second_arming_changes_nothing)
{
    const struct cw_live_header *first;

    arm();
    first = core_header();
    cw_lifecycle_arm(NULL, NULL, NULL, 99);
    cr_expect_eq(core_header(), first);
    cr_expect_eq(core_header()->driver_version, 12040u);
    cr_expect_eq(cw_session.ops, &fake_driver_ops);
}

/* ---- the live file ---- */

static _Atomic int stop_growing;

static void grow_or_end(unsigned id)
{
    if (id > 0) {
        while (!atomic_load(&stop_growing)) {
            if (atomic_load(&core_header()->size) < 32u << 20)
                cw_arena_append(&cw_session.arena, CW_TABLE_FRAME);
            else
                sched_yield();
        }
        return;
    }
    while (atomic_load(&core_header()->size) < 4u << 20)
        cw_arena_append(&cw_session.arena, CW_TABLE_FRAME);
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cw_session_reported();
    for (int i = 0; i < 100000; i++)
        cw_arena_append(&cw_session.arena, CW_TABLE_FRAME);
    atomic_store(&stop_growing, 1);
}

/* Threads that outlive main go on in what is mapped. */
CoreTest(lifecycle, the_file_goes_while_others_make_it_grow)
{
    char lines[4096], directory[] = "/tmp/cuwarden-unit-XXXXXX";
    struct cw_backing *backing = &cw_session.arena.backing;

    listen_to_stderr();
    cr_assert_not_null(mkdtemp(directory));
    strcpy(options.live, directory);
    arm();
    backing->stays = 0; /* as in a directory of our own */
    cr_assert_eq(backing->published, 1);
    run_threads(3, grow_or_end);
    cr_expect_eq(access(backing->path, F_OK), -1);
    cr_expect_eq(backing->state, CW_BACKING_GONE);
    cr_expect_eq(core_header()->cut, 0u);
    cr_expect_eq(count_lines(lines, sizeof(lines)), 0u, "%s", lines);
    cr_expect_eq(rmdir(directory), 0);
}

/* ---- disarming ---- */

static void disarm(unsigned id)
{
    cw_session_disarm(id % 2 ? "this" : "that");
}

CoreTest(lifecycle, a_disarm_says_why_once)
{
    char buf[4096];

    listen_to_stderr();
    arm();
    run_threads(8, disarm);
    cw_session_disarm("more");
    cr_expect_eq(count_lines(buf, sizeof(buf)), 1u, "%s", buf);
    cr_expect_not_null(strstr(buf, "accounting stopped: th"));
    cr_expect_not(cw_session_is_armed());
    cr_expect(strcmp(core_text(core_header()->disarmed), "this") == 0 ||
              strcmp(core_text(core_header()->disarmed), "that") == 0);
    arm();
    cr_expect_not(cw_session_is_armed());
}

Test(lifecycle, a_disarm_before_arming_keeps_it_from_arming)
{
    char buf[4096];

    listen_to_stderr();
    cw_session_disarm("early");
    cr_expect_eq(count_lines(buf, sizeof(buf)), 1u);
    arm();
    cr_expect_not(cw_session_is_armed());
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 0);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_LIMIT false
#else
#define CAN_LIMIT true
#endif

Test(lifecycle, without_memory_it_disarms_and_says_so, .disabled = !CAN_LIMIT)
{
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    char buf[4096];

    listen_to_stderr();
    setrlimit(RLIMIT_AS, &limit);
    arm();
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_AS, &limit);
    cr_expect_not(cw_session_is_armed());
    cr_expect_eq(count_lines(buf, sizeof(buf)), 1u);
    cr_expect_not_null(strstr(buf, "accounting stopped: no memory for its own tables"));
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 0);
}

/* ---- the end ---- */

static _Atomic unsigned finished;

static void finish(unsigned id)
{
    finished += (unsigned)cw_lifecycle_finish(CW_EXIT_EXIT, (int)id);
}

CoreTest(lifecycle, one_of_eight_threads_finishes_it)
{
    arm();
    fake_driver.now_ns += 7;
    run_threads(8, finish);
    cr_expect_eq(finished, 1u);
    cr_expect_not(cw_session_is_armed());
    cr_expect_eq(core_header()->exit_kind, (uint32_t)CW_EXIT_EXIT);
    cr_expect_eq(core_header()->end_ns, 7u);
}

CoreTest(lifecycle, the_first_end_is_the_one_that_counts)
{
    arm();
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_UNDERSCORE, 3), 1);
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 0);
    cr_expect_eq(core_header()->exit_kind, (uint32_t)CW_EXIT_UNDERSCORE);
    cr_expect_eq(core_header()->exit_code, 3);
}

CoreTest(lifecycle, a_finished_one_is_not_disarmed)
{
    char buf[4096];

    listen_to_stderr();
    arm();
    cw_lifecycle_finish(CW_EXIT_EXIT, 0);
    cw_session_disarm("late");
    cr_expect_eq(count_lines(buf, sizeof(buf)), 0u, "%s", buf);
    cr_expect_eq(core_header()->disarmed, 0u);
}

Test(lifecycle, there_is_no_end_of_one_that_was_never_armed)
{
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 0);
}

CoreTest(lifecycle, a_disarmed_one_still_gives_its_report)
{
    listen_to_stderr();
    arm();
    cw_session_disarm("why");
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 0);
    cr_expect_str_eq(core_text(core_header()->disarmed), "why");
}

/* ---- other processes ---- */

/* The child's answer: 0 for yes. */
static int ask_child(int (*question)(void))
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(question());
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int can_finish(void)
{
    return cw_lifecycle_finish(CW_EXIT_EXIT, 9) == 0 && core_header()->exit_code == 0 &&
                   core_header()->exit_kind == CW_EXIT_RUNNING
               ? 0
               : 1;
}

CoreTest(lifecycle, a_process_with_another_pid_does_not_finish_it)
{
    arm();
    cr_expect_eq(ask_child(can_finish), 0);
    cr_expect_eq(cw_lifecycle_finish(CW_EXIT_EXIT, 0), 1);
}

static uint32_t allocate(uint64_t key)
{
    struct cw_request request = core_request(CW_KIND_DEVICE, 0, key, 64);
    uint8_t device;

    request.context = cw_context_current(&device);
    return cw_request_granted(&request, cw_site_text("cudaMalloc"));
}

static int starts_clean(void)
{
    cw_lifecycle_reset();
    if (cw_session_is_armed() || core_header() != NULL)
        return 1;
    arm();
    if (!cw_session_is_armed() || core_header()->pid != (uint32_t)getpid())
        return 2;
    if (cw_tracker_find(CW_SPACE_ADDRESS, 0x1000) != 0 || core_live_total() != 0)
        return 3;
    if (core_header()->table[CW_TABLE_BLOCK].count != 1 ||
        core_header()->table[CW_TABLE_CONTEXT].count != 1)
        return 4;
    if (allocate(0x1000) != 1 || core_live_total() != 64 || core_check() != 0)
        return 5;
    return cw_lifecycle_finish(CW_EXIT_EXIT, 0) == 1 ? 0 : 6;
}

static void arm_and_use(void)
{
    arm();
    fake_context(0, HANDLE, 7, 0);
    fake_set_current(HANDLE);
    for (uint64_t i = 0; i < 100; i++)
        allocate(0x1000 + i);
    for (uint64_t i = 0; i < 50; i++)
        cw_tracker_finish(cw_tracker_take(CW_SPACE_ADDRESS, 0x1000 + i), CW_FREE_DONE);
}

CoreTest(lifecycle, a_forked_child_starts_clean)
{
    arm_and_use();
    cr_expect_eq(ask_child(starts_clean), 0);
    cr_expect_eq(core_live_total(), 50u * 64);
}

CoreTest(lifecycle, a_child_forked_in_a_capture_has_an_open_gate)
{
    arm_and_use();
    cw_gate_close(CW_GATE_CAPTURE);
    cr_expect_eq(ask_child(starts_clean), 0);
}

CoreTest(lifecycle, a_child_forked_while_the_sites_were_locked_starts_clean)
{
    arm_and_use();
    cw_lock_acquire(&cw_intern_lock);
    cr_expect_eq(ask_child(starts_clean), 0);
    cw_lock_release(&cw_intern_lock);
}

CoreTest(lifecycle, a_child_of_a_disarmed_one_starts_anew)
{
    listen_to_stderr();
    arm_and_use();
    cw_session_disarm("why");
    cr_expect_eq(ask_child(starts_clean), 0);
}

Test(lifecycle, the_first_refusal_to_start_is_the_one_that_is_told)
{
    arm();
    cw_session_set_init_error(100);
    cw_session_set_init_error(4);
    cr_expect_eq(cw_session.arena.header->init_error, 100);
    cw_session_set_init_error(0);
    cr_expect_eq(cw_session.arena.header->init_error, 0);
    cw_session_set_init_error(4);
    cr_expect_eq(cw_session.arena.header->init_error, 0, "the driver had started");
}
