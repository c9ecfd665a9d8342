/* SPDX-License-Identifier: MIT */
/* The file of CUSIM_SHARED: what each process that takes part holds of each device.
 *
 * A process has a slot, and a lock on the slot's byte of the file for as long as it lives; a lock
 * on byte 0 makes a charge one step. Both are record locks of the process, which opens the file
 * once: they end with it however it ends, a forked child has none of them, and gVisor knows them.
 *
 * Always true: nobody but its owner adds to a slot; a slot whose byte is not locked holds nothing,
 * and is cleared by whoever comes across it. There is no sum that a killed process could leave
 * wrong.
 */
#include "sim_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NSLOTS 64

struct slot {
    int64_t pid; /* 0: free */
    uint64_t used[SIM_MAX_DEVICES];
};

static int fd = -1;
static struct slot *slots; /* NULL: nothing is shared */
static int own = -1;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "cusim: CUSIM_SHARED: %s: %s\n", what, strerror(errno));
    abort();
}

static bool lock_byte(int command, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int status;

    do {
        status = fcntl(fd, command, &lock);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

static bool is_owned(int slot)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + slot, .l_len = 1};

    if (slot == own)
        return true;
    if (fcntl(fd, F_GETLK, &lock) != 0)
        fail("cannot ask for a lock");
    return lock.l_type != F_UNLCK;
}

void sim_share_lock(void)
{
    if (slots && !lock_byte(F_SETLKW, F_WRLCK, 0))
        fail("cannot lock the file");
}

void sim_share_unlock(void)
{
    if (slots && !lock_byte(F_SETLK, F_UNLCK, 0))
        fail("cannot unlock the file");
}

void sim_share_open(void)
{
    const char *path = getenv("CUSIM_SHARED");
    void *mapped;

    if (slots || !path || !*path)
        return;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, NSLOTS * sizeof *slots) != 0)
        fail(path);
    mapped = mmap(NULL, NSLOTS * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        fail(path);
    slots = mapped;
}

bool sim_share_is_on(void)
{
    return slots != NULL;
}

/* What a killed process held is given back. */
static void sweep(void)
{
    for (int i = 0; i < NSLOTS; i++)
        if (slots[i].pid && !is_owned(i))
            memset(&slots[i], 0, sizeof slots[i]);
}

void sim_share_join(void)
{
    if (!slots || own >= 0)
        return;
    sim_share_lock();
    sweep();
    for (int i = 0; i < NSLOTS && own < 0; i++)
        if (!slots[i].pid && lock_byte(F_SETLK, F_WRLCK, 1 + i))
            own = i;
    if (own >= 0)
        slots[own].pid = getpid();
    sim_share_unlock();
    errno = EAGAIN;
    if (own < 0)
        fail("more processes than slots");
}

void sim_share_forget(void)
{
    if (!slots)
        return;
    munmap(slots, NSLOTS * sizeof *slots);
    close(fd);
    slots = NULL;
    fd = own = -1;
}

uint64_t sim_share_sum(int device)
{
    uint64_t sum = 0;

    sweep();
    for (int i = 0; i < NSLOTS; i++)
        sum += slots[i].used[device];
    return sum;
}

int sim_share_user(int slot, int device, int64_t *pid, uint64_t *used)
{
    if (slot == 0)
        sweep();
    for (; slot < NSLOTS; slot++) {
        if (!slots[slot].pid || !slots[slot].used[device])
            continue;
        *pid = slots[slot].pid;
        *used = slots[slot].used[device];
        return slot + 1;
    }
    return 0;
}

void sim_share_tell(int device, uint64_t used)
{
    if (own >= 0)
        slots[own].used[device] = used;
}
