/* SPDX-License-Identifier: MIT */
/* The file behind an arena: what a reader finds in it, and what can go wrong with files. */
#include "live/arena.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process_status.h"
#include "live/live_copy.h"

#define MIB ((size_t)1 << 20)
#define DAY (24 * 60 * 60)

static char scratch[64];
static struct cw_arena arena;
static int said; /* what is printed on stderr */

static void setup(void)
{
    strcpy(scratch, "/tmp/cuwarden-unit-XXXXXX");
    cr_assert_not_null(mkdtemp(scratch));
}

static void teardown(void)
{
    char line[128];

    snprintf(line, sizeof(line), "rm -rf %s", scratch);
    cr_assert_eq(system(line), 0);
}

TestSuite(backing, .init = setup, .fini = teardown);

/* The path of a file there. */
static const char *in_scratch(const char *name)
{
    static char path[2][128]; /* of the last two */
    static unsigned which;

    which = 1 - which;
    snprintf(path[which], sizeof(path[which]), "%s/%s", scratch, name);
    return path[which];
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

static unsigned lines_said(void)
{
    char text[4096];
    ssize_t len = read(said, text, sizeof(text));
    unsigned lines = 0;

    for (ssize_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    return lines;
}

static void create(void)
{
    struct cw_live_dir place = {.directory = scratch};

    cr_assert_eq(cw_arena_create(&arena, 256 * MIB), 0);
    cr_assert_eq(cw_arena_back(&arena, &place), 0);
    cr_expect_lt(cw_process_status("FDSize"), 1024); /* making it that large takes 11 ms */
    arena.header->pid = 77;
}

static void publish(void)
{
    arena.header->size ^= UINT64_MAX / 2; /* as others may, meanwhile */
    cr_assert_eq(cw_backing_publish(&arena.backing, arena.header, arena.size), 0);
    arena.header->size ^= UINT64_MAX / 2;
}

/* As it is from the program's first call on. */
static void begin(void)
{
    create();
    publish();
}

static uint64_t key_of(uint32_t index)
{
    return index * UINT64_C(0x10001) + 5;
}

/* Blocks [from, to), and a text now and then, so that several tables grow. */
static void append(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        struct cw_live_block *block;

        cr_assert_eq(cw_arena_append(&arena, CW_TABLE_BLOCK), i);
        block = cw_arena_at(&arena, CW_TABLE_BLOCK, i);
        cr_assert_eq(block->key, 0u);
        block->key = key_of(i);
        cw_arena_show(&arena, block, sizeof(*block));
        if (i % 16 == 0)
            cr_assert_neq(cw_arena_text(&arena, "some text that takes room in its table", 38), 0u);
    }
}

static struct cw_live_copy read_image(void)
{
    int fd = open(arena.backing.path, O_RDONLY);
    struct cw_live_copy image;
    char why[256];

    cr_assert_geq(fd, 0, "%s", arena.backing.path);
    cr_assert_eq(cw_live_copy_read(fd, &image, why, sizeof(why)), 0, "%s", why);
    close(fd);
    return image;
}

static void expect_blocks(const struct cw_view *view, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const struct cw_live_block *block = cw_view_block(view, i);

        cr_assert_not_null(block);
        cr_assert_eq(block->key, key_of(i), "block %u", i);
    }
}

static unsigned count_files(const char *suffix)
{
    DIR *dir = opendir(scratch);
    struct dirent *entry;
    unsigned count = 0;

    while ((entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name), tail = strlen(suffix);

        count += entry->d_name[0] != '.' && len > tail &&
                 strcmp(entry->d_name + len - tail, suffix) == 0;
    }
    closedir(dir);
    return count;
}

Test(backing, a_reader_has_every_record)
{
    struct cw_view own;
    struct cw_live_copy image;

    begin();
    append(1, 150000);
    image = read_image();
    cr_expect_eq(image.is_locked, 1);
    cr_expect_eq(cw_view_count(&image.view, CW_TABLE_BLOCK), 150000u);
    expect_blocks(&image.view, 1, 150000);
    cw_arena_view(&arena, &own);
    expect_blocks(&own, 1, 150000);
    for (uint32_t at = 1; at < cw_view_count(&image.view, CW_TABLE_TEXT); at += 39)
        cr_assert_str_eq(cw_view_text(&image.view, at), cw_view_text(&own, at));
    cr_expect_eq(arena.header->cut, 0u);
    cw_live_copy_free(&image);
}

Test(backing, the_file_takes_what_is_used_and_no_more)
{
    struct stat status;

    begin();
    append(1, 150000);
    cr_assert_eq(stat(arena.backing.path, &status), 0);
    cr_expect_leq((uint64_t)status.st_blocks * 512,
                  150000 * sizeof(struct cw_live_block) + 4 * MIB);
    cr_expect_eq((uint64_t)status.st_blocks * 512 / MIB, arena.backing.taken / MIB);
    cr_expect_eq(status.st_mode & 07777, 0600u);
}

Test(backing, has_no_name_before_it_is_complete)
{
    create();
    cr_expect_eq(count_files(CW_PLACE_SUFFIX), 0u);
    publish();
    cr_expect_eq(count_files(CW_PLACE_SUFFIX), 1u);
    cw_backing_remove(&arena.backing);
    cr_expect_eq(count_files(CW_PLACE_SUFFIX), 0u);
    append(1, 30000);
}

Test(backing, an_arena_that_is_let_go_leaves_its_file)
{
    struct cw_live_copy image;
    char path[CW_PLACE_MAX];
    int fd;

    begin();
    append(1, 100);
    strcpy(path, arena.backing.path);
    fd = arena.backing.fd;
    image = read_image();
    cr_expect_eq(image.is_locked, 1);
    cw_arena_destroy(&arena);
    cr_expect_eq(fcntl(fd, F_GETFD), -1);
    strcpy(arena.backing.path, path);
    image = read_image();
    cr_expect_eq(image.is_locked, 0);
    expect_blocks(&image.view, 1, 100);
}

/* ---- the end of the space ---- */

static void expect_cut(void)
{
    struct cw_live_copy image;
    struct cw_view own;
    const struct cw_live_block *block;

    cr_expect_eq(lines_said(), 1u);
    cr_expect_eq(arena.header->cut, 1u);
    cw_arena_view(&arena, &own);
    expect_blocks(&own, 1, 150000);
    image = read_image();
    expect_blocks(&image.view, 1, 1000);
    block = cw_view_block(&image.view, 149999);
    cr_expect(block == NULL || block->key == 0);
    cw_live_copy_free(&image);
}

Test(backing, goes_on_in_memory_at_a_limit_on_files)
{
    struct rlimit limit = {3 * MIB + 5, 3 * MIB + 5};

    listen_to_stderr();
    begin();
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    append(1, 150000);
    expect_cut();
}

Test(backing, goes_on_in_memory_at_its_share_of_the_disk)
{
    listen_to_stderr();
    begin();
    arena.backing.room = 4 * MIB + 100;
    append(1, 150000);
    cr_expect_eq(arena.backing.taken, 4 * MIB);
    expect_cut();
}

Test(backing, goes_on_in_memory_when_the_file_cannot_be_reached)
{
    char path[CW_PLACE_MAX];

    listen_to_stderr();
    begin();
    append(1, 1000);
    strcpy(path, arena.backing.path);
    strcpy(arena.backing.path, "/nowhere/file");
    close(arena.backing.fd);
    append(1000, 150000);
    strcpy(arena.backing.path, path);
    expect_cut();
}

Test(backing, is_not_made_where_files_may_not_be_large)
{
    struct rlimit limit = {100, 100};
    struct cw_live_dir place = {.directory = scratch};

    cr_assert_eq(cw_arena_create(&arena, 256 * MIB), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_expect_eq(cw_arena_back(&arena, &place), -1);
    cr_expect_eq(errno, EFBIG);
    cr_expect_eq(count_files(""), 0u);
    append(1, 30000);
}

/* ---- programs and their descriptors ---- */

Test(backing, outlives_the_closing_of_its_descriptor)
{
    struct cw_live_copy image;

    begin();
    append(1, 1000);
    cr_assert_eq(close(arena.backing.fd), 0);
    append(1000, 150000);
    image = read_image();
    cr_expect_eq(image.is_locked, 1);
    cr_expect_eq(arena.header->cut, 0u);
    expect_blocks(&image.view, 1, 150000);
}

Test(backing, leaves_a_file_alone_that_took_its_descriptor)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, seen = lock;
    const char *path = in_scratch("other");
    struct stat status;
    struct cw_live_copy image;
    int other, taken;

    begin();
    append(1, 1000);
    other = open(path, O_RDWR | O_CREAT, 0600);
    cr_assert(write(other, "mine", 4) == 4 && fcntl(other, F_SETLK, &lock) == 0);
    taken = dup2(other, arena.backing.fd);
    append(1000, 150000);
    cr_expect(fcntl(other, F_OFD_GETLK, &seen) == 0 && seen.l_type != F_UNLCK);
    cr_assert_eq(stat(path, &status), 0);
    cr_expect_eq(status.st_size, 4);
    image = read_image();
    expect_blocks(&image.view, 1, 150000);
    cw_arena_destroy(&arena);
    cr_expect_neq(fcntl(taken, F_GETFD), -1);
}

Test(backing, its_descriptor_is_high_and_not_inherited)
{
    create();
    cr_expect_geq(arena.backing.fd, 50); /* the smallest table of descriptors has 64 */
    cr_expect_eq(fcntl(arena.backing.fd, F_GETFD), FD_CLOEXEC);
    for (int fd = 3; fd < 20; fd++) {
        struct stat status;

        cr_expect(fstat(fd, &status) != 0 || status.st_ino != arena.backing.inode);
    }
}

Test(backing, makes_do_with_few_descriptors)
{
    struct rlimit limit = {24, 24};

    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    begin();
    append(1, 150000);
    cr_expect_eq(arena.header->cut, 0u);
}

/* Takes all that are left; how many those were. */
static unsigned take_descriptors(int *fds, unsigned cap)
{
    unsigned count = 0;

    while (count < cap && (fds[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    return count;
}

Test(backing, grows_again_once_a_descriptor_is_free)
{
    struct rlimit limit = {64, 64};
    struct cw_live_copy image;
    int fds[64];
    unsigned taken;

    listen_to_stderr();
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    begin();
    append(1, 1000);
    taken = take_descriptors(fds, 64);
    append(1000, 50000);
    for (unsigned i = 0; i < taken; i++)
        close(fds[i]);
    cr_expect_gt(arena.backing.missed, 1u);
    cr_expect_eq(lines_said(), 1u);
    append(50000, 150000);
    image = read_image();
    cr_expect_eq(arena.header->cut, 1u);
    expect_blocks(&image.view, 1, 1000);
    expect_blocks(&image.view, 70000,
                  150000); /* some of the first ones share a step with the missed */
    for (uint32_t i = 1; i < 150000; i++) {
        const struct cw_live_block *block = cw_arena_at(&arena, CW_TABLE_BLOCK, i);

        cr_assert_eq(block->key, key_of(i));
    }
}

/* As kernels before 4.11 and some sandboxes do. */
static void forbid_statx(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        cr_skip_test("takes seccomp");
}

Test(backing, does_without_statx)
{
    struct cw_live_copy image;
    int dir;

    forbid_statx();
    begin();
    append(1, 150000);
    cr_expect_eq(arena.header->cut, 0u);
    image = read_image();
    expect_blocks(&image.view, 1, 150000);
    dir = cw_live_dir_open(in_scratch("private"), 1);
    cr_expect_geq(dir, 0);
    cw_live_dir_sweep(dir);
}

Test(backing, a_forked_child_lets_go_of_the_parents_file)
{
    struct cw_live_copy image;
    int status;
    pid_t child;

    begin();
    append(1, 1000);
    child = fork();
    if (child == 0) {
        cw_arena_destroy(&arena);
        create();
        append(1, 10);
        _exit(arena.backing.published ? 1 : 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    image = read_image();
    cr_expect_eq(image.is_locked, 1);
    cr_expect_eq(cw_view_count(&image.view, CW_TABLE_BLOCK), 1000u);
    expect_blocks(&image.view, 1, 1000);
}

/* ---- sweeping ---- */

static void make_file(const char *name, mode_t mode, int age_seconds)
{
    struct timeval then = {.tv_sec = time(NULL) - age_seconds}, times[2] = {then, then};
    const char *path = in_scratch(name);
    int fd;

    fd = open(path, O_RDWR | O_CREAT, 0600);
    cr_assert_geq(fd, 0);
    cr_assert_eq(fchmod(fd, mode), 0);
    close(fd);
    cr_assert_eq(utimes(path, times), 0);
}

static int exists(const char *name)
{
    return access(in_scratch(name), F_OK) == 0;
}

static void sweep(void)
{
    int dir = open(scratch, O_RDONLY | O_DIRECTORY);

    cw_live_dir_sweep(dir);
    close(dir);
}

Test(backing, the_age_of_the_dead_counts_from_when_they_were_seen)
{
    make_file("1-1-a.live", 0600, 40 * DAY); /* it may have died a moment ago */
    make_file("2-1-b.live", 0400, DAY - 3600);
    make_file("3-1-c.live", 0400, DAY + 60);
    make_file(".4-1-d.live", 0600, 60); /* not complete yet, or never will be */
    make_file(".5-1-e.live", 0600, DAY + 60);
    sweep();
    cr_expect(exists(".4-1-d.live"));
    cr_expect_not(exists(".5-1-e.live"));
    cr_expect(exists("1-1-a.live"));
    cr_expect(exists("2-1-b.live"));
    cr_expect_not(exists("3-1-c.live"));
    sweep();
    cr_expect(exists("1-1-a.live"));
}

Test(backing, what_is_no_live_file_is_not_swept_and_reports_stay_a_week)
{
    make_file("train.4711.txt", 0400, 40 * DAY);
    make_file(".live", 0400, 40 * DAY);
    make_file("train.4711.dump-1.txt", 0600, 8 * DAY);
    make_file("train.4711.dump-2.json", 0600, 6 * DAY);
    sweep();
    cr_expect(exists("train.4711.txt"));
    cr_expect(exists(".live"));
    cr_expect_not(exists("train.4711.dump-1.txt"));
    cr_expect(exists("train.4711.dump-2.json"));
}

Test(backing, what_lives_is_not_swept)
{
    struct timeval old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

    begin();
    cr_assert_eq(chmod(arena.backing.path, 0400), 0);
    cr_assert_eq(utimes(arena.backing.path, old), 0);
    sweep();
    cr_expect_eq(count_files(CW_PLACE_SUFFIX), 1u);
}

Test(backing, looks_at_some_entries_only)
{
    char name[32];

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "%d-1-f.live", i + 1);
        make_file(name, 0400, 2 * DAY);
    }
    sweep();
    cr_expect_geq(count_files(CW_PLACE_SUFFIX), 300u - CW_PLACE_SWEPT);
    cr_expect_leq(count_files(CW_PLACE_SUFFIX), 300u - CW_PLACE_SWEPT + 2);
}

/* A tenth of them old, the others have only just died; those beyond the first listing too. */
Test(backing, gets_at_all_that_the_dead_left)
{
    unsigned left = 10000, sweeps = 0;
    char name[64];

    for (unsigned i = 0; i < 10000; i++) {
        snprintf(name, sizeof(name), "%u-1700000000-%016x.live", i + 1, i);
        make_file(name, 0400, i % 10 ? 60 : 2 * DAY);
    }
    for (; sweeps < 1000 && left > 9000; sweeps++) {
        sweep();
        left = sweeps % 20 == 0 ? count_files(CW_PLACE_SUFFIX) : left;
    }
    cr_expect_eq(left, 9000u);
}
