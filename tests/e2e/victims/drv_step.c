/* SPDX-License-Identifier: MIT */
/*
 * One instruction at a time through an allocation and its free, and after each one inside the
 * library, by DEED:
 *   signal      the handler of a signal allocates and frees
 *   copy=DIR    the live file is copied into DIR, where it has changed: a killed program would have
 *               left it so
 *   exit=N      the handler of a signal ends the program, after the Nth
 *   count       nothing
 *
 * drv_step DEED WAY, what is walked through:
 *   own         the thread takes it from its own, and keeps it
 *   far         another thread has allocated it
 *   shared      the thread has no slot, because there are too many threads
 *   large       too large for a thread to keep to itself
 *   pinned      pinned memory
 *   end         the end of a thread that has kept blocks, instead
 *
 * The processor itself stops after each instruction (the trap flag), so nobody has to be allowed to
 * trace the program. Without one that does, the exit status is 77.
 */
#include "victim.h"
#include "in_thread.h"

#if defined(__x86_64__)

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100ull
#define ROUNDS    8
#define OTHERS    80 /* threads; more than there are slots */
#define SMALL     4000
#define LARGE     (3u << 20)

static struct {
    const char *deed, *way, *directory;
    unsigned long begin, end; /* the library's code */
    unsigned long steps, last, copies;
    const void *live; /* the live file, as others see it */
    void *seen;
    size_t size;
} self;

static size_t size_of_block(void)
{
    return strcmp(self.way, "large") == 0 ? LARGE : SMALL;
}

static CUdeviceptr take(void)
{
    CUdeviceptr block = 0;
    void *host = NULL;

    if (strcmp(self.way, "pinned") != 0) {
        MUST(cuMemAlloc(&block, size_of_block()));
        return block;
    }
    MUST(cuMemHostAlloc(&host, SMALL, 0));
    return (CUdeviceptr)(uintptr_t)host;
}

static void give(CUdeviceptr block)
{
    if (strcmp(self.way, "pinned") == 0)
        MUST(cuMemFreeHost((void *)(uintptr_t)block));
    else
        MUST(cuMemFree(block));
}

/* ---- after each instruction ---- */

static void copy(void)
{
    char path[4096];
    int fd;

    if (memcmp(self.live, self.seen, self.size) == 0)
        return;
    memcpy(self.seen, self.live, self.size);
    snprintf(path, sizeof(path), "%s/%06lu.live", self.directory, self.steps);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, self.seen, self.size) != (ssize_t)self.size)
        _exit(98);
    close(fd);
    self.copies++;
}

static void after_one(int number, siginfo_t *info, void *context)
{
    const ucontext_t *here = context;
    unsigned long pc = (unsigned long)here->uc_mcontext.gregs[REG_RIP];
    int saved = errno;

    (void)number, (void)info;
    if (pc < self.begin || pc >= self.end)
        return;
    self.steps++;
    if (self.deed[0] == 's')
        give(take());
    else if (self.directory != NULL)
        copy();
    else if (self.steps == self.last)
        _exit(7);
    errno = saved;
}

static void begin_steps(void)
{
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
}

static void end_steps(void)
{
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~TRAP_FLAG);
}

/* ---- what is looked at ---- */

static int find_code(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (strstr(object->dlpi_name, "libcuwarden") == NULL)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];

        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        self.begin = object->dlpi_addr + part->p_vaddr;
        self.end = self.begin + part->p_memsz;
    }
    return 1;
}

static void find_live_file(void)
{
    DIR *directory = opendir(getenv("CUWARDEN_LIVE"));
    const struct dirent *entry = NULL;
    struct stat file;
    int fd = -1;

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (atoi(entry->d_name) == (int)getpid())
            fd = openat(dirfd(directory), entry->d_name, O_RDONLY);
    if (fd < 0 || fstat(fd, &file) != 0)
        exit(98);
    self.size = (size_t)file.st_size;
    self.live = mmap(NULL, self.size, PROT_READ, MAP_SHARED, fd, 0);
    self.seen = calloc(1, self.size);
    if (self.live == MAP_FAILED || self.seen == NULL)
        exit(98);
    closedir(directory);
    close(fd);
}

/* ---- the program ---- */

static CUcontext context;
static pthread_key_t last_key;
static pthread_barrier_t is_there, all_done;

static void *take_elsewhere(void *out_block)
{
    MUST(cuCtxSetCurrent(context));
    *(CUdeviceptr *)out_block = take();
    return NULL;
}

/* So that the thread has a slot, and keeps it. */
static void *occupy(void *unused)
{
    CUdeviceptr block;

    take_elsewhere(&block);
    give(block);
    pthread_barrier_wait(&is_there);
    pthread_barrier_wait(&all_done);
    return unused;
}

/* Each round comes from the same lines: in the first all is met for the first time, the last is the
 * usual one; how many instructions it has differs, as now and then something is due. */
static void *walk(void *unused)
{
    int is_end = strcmp(self.way, "end") == 0, steps_first = self.deed[0] == 's' && !is_end;

    MUST(cuCtxSetCurrent(context));
    for (int round = 0; round < ROUNDS || (self.steps < self.last && !is_end); round++) {
        CUdeviceptr block = 0;

        if (strcmp(self.way, "far") == 0) {
            in_thread(take_elsewhere, &block);
        }
        if (round == ROUNDS - 1 && self.directory != NULL)
            find_live_file();
        if ((steps_first && round == 0) || (round >= ROUNDS - 1 && !is_end))
            begin_steps();
        if (block == 0)
            block = take();
        give(block);
        end_steps();
    }
    if (is_end) {
        pthread_setspecific(last_key, &last_key);
        begin_steps();
    }
    return unused;
}

/* After the library's, whose key was made before. */
static void end_steps_of_thread(void *unused)
{
    (void)unused;
    end_steps();
}

static void walk_in_thread(void)
{
    do
        in_thread(walk, NULL);
    while (self.steps < self.last);
}

static void walk_without_slot(void)
{
    pthread_t other[OTHERS];

    pthread_barrier_init(&is_there, NULL, 2);
    pthread_barrier_init(&all_done, NULL, OTHERS + 1);
    for (int i = 0; i < OTHERS; i++) { /* one after the other: they are not to raise the peak */
        pthread_create(&other[i], NULL, occupy, NULL);
        pthread_barrier_wait(&is_there);
    }
    walk_in_thread();
    pthread_barrier_wait(&all_done);
    join_threads(other, OTHERS);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = after_one, .sa_flags = SA_SIGINFO};
    CUdeviceptr stays;

    alarm(300); /* a handler that waits for the one that it has interrupted waits for ever */
    if (argc != 3)
        return 98;
    self.deed = argv[1];
    self.way = argv[2];
    self.directory = strncmp(self.deed, "copy=", 5) == 0 ? self.deed + 5 : NULL;
    self.last = strncmp(self.deed, "exit=", 5) == 0 ? strtoul(self.deed + 5, NULL, 10) : 0;
    context = use_device(0);
    dl_iterate_phdr(find_code, NULL);
    sigaction(SIGTRAP, &action, NULL);
    pthread_key_create(&last_key, end_steps_of_thread);
    stays = take();
    if (strcmp(self.way, "shared") == 0)
        walk_without_slot();
    else if (strcmp(self.way, "end") == 0)
        walk_in_thread();
    else
        walk(NULL);
    give(stays);
    say("steps %lu, copies %lu", self.steps, self.copies);
    return self.steps == 0 ? 77 : 0;
}

#else

int main(void)
{
    return 77;
}

#endif
