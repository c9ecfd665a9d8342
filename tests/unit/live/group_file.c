/* SPDX-License-Identifier: MIT */
/* Sums over processes: never more than the maximum, whoever is killed, stopped or forked. */
#include "live/group_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/out.h"
#include "live/live_dir.h"

#define MOST 1000

static uint64_t key;

static void begin(void)
{
    key = (uint64_t)getpid() << 32 | 0x7e57;
}

static void done(void)
{
    char name[96];

    snprintf(name, sizeof(name), "/dev/shm/cuwarden-%u/group-%016jx.sum", geteuid(),
             (uintmax_t)key);
    unlink(name);
}

TestSuite(group_file, .init = begin, .fini = done);

/* Two descriptors of one process hold two locks, as two processes would. */
static struct cw_group_file open_one(void)
{
    struct cw_group_file group;

    cr_assert_eq(cw_group_file_open(&group, "/tmp", key), 0);
    return group;
}

Test(group_file, all_together_have_at_most_the_maximum)
{
    struct cw_group_file a = open_one(), b = open_one();

    cr_expect_neq(a.slot, b.slot);
    cr_expect_eq(cw_group_file_claim(&a, 0, 600, MOST), 0);
    cr_expect_eq(cw_group_file_others(&b), 600);
    cr_expect_eq(cw_group_file_claim(&b, 0, 401, MOST), -1);
    cr_expect_eq(cw_group_file_others(&a), 0);
    cr_expect_eq(cw_group_file_claim(&b, 0, 400, MOST), 0);
    cr_expect_eq(cw_group_file_claim(&a, 600, 1, MOST), -1);
    cw_group_file_show(&b, 100);
    cr_expect_eq(cw_group_file_claim(&a, 600, 300, MOST), 0);
    cr_expect_eq(cw_group_file_claim(&a, 900, UINT64_MAX, MOST), -1);
    cw_group_file_close(&a);
    cw_group_file_close(&b);
}

Test(group_file, other_keys_have_sums_of_their_own)
{
    struct cw_group_file a = open_one(), b;

    key++;
    b = open_one();
    cr_expect_eq(cw_group_file_claim(&a, 0, MOST, MOST), 0);
    cr_expect_eq(cw_group_file_claim(&b, 0, MOST, MOST), 0);
    cw_group_file_close(&a);
    cw_group_file_close(&b);
    done();
    key--;
}

/* Forks one that takes so much, tells it and waits. */
static pid_t fork_holder(uint64_t bytes)
{
    int told[2];
    char byte;
    pid_t pid;

    cr_assert_eq(pipe(told), 0);
    pid = fork();
    if (pid == 0) {
        struct cw_group_file group;

        if (cw_group_file_open(&group, "/tmp", key) != 0 ||
            cw_group_file_claim(&group, 0, bytes, MOST) != 0 || write(told[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    cr_assert_eq(read(told[0], &byte, 1), 1);
    close(told[0]);
    close(told[1]);
    return pid;
}

Test(group_file, what_the_killed_had_is_free)
{
    struct cw_group_file a = open_one();
    pid_t pid = fork_holder(900);

    cr_expect_eq(cw_group_file_claim(&a, 0, 101, MOST), -1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    cr_expect_eq(cw_group_file_claim(&a, 0, MOST, MOST), 0);
    cw_group_file_close(&a);
}

static void end_holding(uint64_t bytes)
{
    pid_t pid = fork_holder(bytes);

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

Test(group_file, the_ended_count_no_more_once_somebody_looks)
{
    struct cw_group_file a = open_one(), b;

    end_holding(900);
    cr_expect_eq(cw_group_file_others(&a), 900);
    cw_group_file_reap(&a);
    cr_expect_eq(cw_group_file_others(&a), 0);
    end_holding(800);
    b = open_one(); /* in the slot of the one that ended last */
    cr_expect_eq(cw_group_file_others(&b), 0);
    cr_expect_eq(cw_group_file_others(&a), 0);
    cw_group_file_close(&a);
    cw_group_file_close(&b);
}

Test(group_file, beyond_the_limit_on_files_is_an_error)
{
    struct rlimit limit = {4096, 4096};
    struct cw_group_file group;

    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_expect_eq(cw_group_file_open(&group, "/tmp", key), EFBIG);
}

Test(group_file, a_stopped_process_keeps_what_it_has_and_nobody_waiting)
{
    struct cw_group_file a = open_one();
    pid_t pid = fork_holder(900);

    kill(pid, SIGSTOP);
    cr_expect_eq(cw_group_file_claim(&a, 0, 101, MOST), -1);
    cr_expect_eq(cw_group_file_claim(&a, 0, 100, MOST), 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    cw_group_file_close(&a);
}

/* A process that ended while it wanted something leaves its wish behind. */
Test(group_file, a_dead_wish_is_taken_away)
{
    struct cw_group_file a = open_one(), b = open_one();

    b.slots[b.slot].wanted = b.slots[b.slot].held = 900;
    cw_group_file_close(&b);
    cr_expect_eq(cw_group_file_claim(&a, 0, MOST, MOST), 0);
    cw_group_file_close(&a);
}

/* ---- files that nobody has ---- */

static int is_swept(time_t age)
{
    struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    char directory[96], name[48];
    int dir, is_gone;

    cr_assert_eq(cw_live_dir_default(0, geteuid(), "/tmp", directory, sizeof(directory)), 0);
    dir = cw_live_dir_open(directory, 1);
    snprintf(name, sizeof(name), "group-%016jx.sum", (uintmax_t)key);
    cr_assert_eq(utimensat(dir, name, times, 0), 0);
    /* Each looks at some entries, of as many as other processes have there. */
    for (unsigned i = 0; i < 1000 && faccessat(dir, name, F_OK, 0) == 0; i++) {
        cr_assert_eq(lseek(dir, 0, SEEK_SET), 0);
        cw_live_dir_sweep(dir);
    }
    is_gone = faccessat(dir, name, F_OK, 0) != 0;
    close(dir);
    return is_gone;
}

Test(group_file, one_that_nobody_has_goes_after_a_day)
{
    struct cw_group_file a = open_one();

    cr_expect_not(is_swept(30 * 60 * 60)); /* in use */
    cr_expect_not(is_swept(60 * 60));      /* other programs sweep as soon as it is not */
    cw_group_file_close(&a);
    cr_expect_not(is_swept(60 * 60));
    cr_expect(is_swept(30 * 60 * 60));
}

/* Who closes all descriptors, and gets the number for a file of its own, keeps that file as it is.
 */
Test(group_file, leaves_a_file_alone_that_took_its_descriptor)
{
    struct cw_group_file a = open_one(), b = open_one();
    FILE *other = tmpfile();
    int taken = b.fd;

    cw_group_file_show(&a, 100);
    cr_assert_eq(dup2(fileno(other), taken), taken);
    cr_expect_eq(cw_group_file_reap(&b), -1);
    cr_expect_eq(cw_group_file_others(&b), 100u);
    cw_group_file_close(&b);
    cr_expect_neq(fcntl(taken, F_GETFD), -1);
    cw_group_file_close(&a);
}

Test(group_file, its_descriptor_is_high)
{
    struct cw_group_file a = open_one();

    cr_expect_geq(a.fd, 50); /* the smallest table of descriptors has 64 */
    cr_expect_eq(fcntl(a.fd, F_GETFD), FD_CLOEXEC);
    cw_group_file_close(&a);
}

#define WORKERS 4
#define ROUNDS  3000

/* Takes and gives back; what all have is counted in `sum` after it was granted, before it is given
 * back. */
static void work(_Atomic uint64_t *sum, _Atomic uint64_t *granted, unsigned seed)
{
    struct cw_group_file group;
    uint64_t held = 0;

    if (cw_group_file_open(&group, "/tmp", key) != 0)
        _exit(1);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t bytes = 1 + (seed = seed * 1103515245 + 12345) % 500;

        if (cw_group_file_claim(&group, held, bytes, MOST) == 0) {
            held += bytes;
            atomic_fetch_add(granted, 1);
            if (atomic_fetch_add(sum, bytes) + bytes > MOST)
                _exit(2);
        }
        if (seed % 3 != 0 || held == 0)
            continue;
        atomic_fetch_sub(sum, held);
        held = 0;
        cw_group_file_show(&group, 0);
    }
    atomic_fetch_sub(sum, held);
    _exit(0);
}

Test(group_file, processes_never_overshoot_together)
{
    _Atomic uint64_t *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[WORKERS];
    int status;

    cr_assert_neq(shared, MAP_FAILED);
    for (unsigned i = 0; i < WORKERS; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            work(&shared[0], &shared[1], i + 1);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        cr_assert_eq(waitpid(pid[i], &status, 0), pid[i]);
        cr_expect_eq(status, 0, "process %u: %x", i, (unsigned)status);
    }
    cr_expect_gt(shared[1], ROUNDS / 2);
}
