/* SPDX-License-Identifier: MIT */
/* Neighbours: who is asked for idle memory, and what is read of its answer. The neighbour is a live
 * file that this test writes, in which our devices have each other's numbers. */
#include "core/request/neighbours.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ask_fixture.h"
#include "base/clock.h"
#include "base/out.h"
#include "core/device/device.h"
#include "core/process/session.h"
#include "core_file.h"
#include "live/file_lock.h"

#define IDLE   (600 * MIB)
#define MINUTE UINT64_C(60000000000)
#define MS     UINT64_C(1000000)
#define SOON   (4000 * MS) /* for less than that one that gave nothing is surely left alone */

static struct cw_live_header *neighbour;
static int its_file;

static void have_idle(unsigned ordinal, unsigned ours)
{
    struct cw_live_device *device = &neighbour->device[ordinal];

    memcpy(device->uuid, cw_device_state((uint8_t)ours)->uuid, sizeof(device->uuid));
    atomic_store(&device->known, 1);
    atomic_store(&device->held_bytes, IDLE);
    atomic_store(&device->live_bytes, 0);
}

static void setup(void)
{
    size_t size = sizeof(*neighbour);
    char path[sizeof(core_options()->live) + 32];
    int own;

    core_on_file();
    ask_arm("", "", ASK_TOTAL);
    fake_driver.uuid_end = (uint64_t)getpid(); /* of no other program on this machine */
    for (unsigned i = 0; i < 2; i++) {
        fake_set_current(pooled_context(i, i));
        ask_get(MIB);
    }
    cw_format(path, sizeof(path), "%s/7-7-7.live", core_options()->live);
    its_file = open(path, O_RDWR | O_CREAT, 0600);
    cr_assert_eq(ftruncate(its_file, (off_t)size), 0);
    neighbour = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, its_file, 0);
    own = open(cw_session.arena.backing.path, O_RDONLY);
    cr_assert_eq(read(own, neighbour, size), (ssize_t)size);
    close(own);
    have_idle(0, 1);
    have_idle(1, 0);
    cr_assert_eq(cw_file_lock_claim(its_file), 0);
}

TestSuite(neighbours, .init = setup, .fini = core_remove_file);

static uint64_t asked(uint8_t device)
{
    return cw_device_at(device)->memory.neighbours.asked;
}

/* It gives what it has of the device that it is asked for, and answers. */
static void *give(void *unused)
{
    struct cw_live_control *control = &neighbour->control;

    while (atomic_load(&control->what) != CW_CONTROL_LEND)
        (void)usleep(200);
    atomic_fetch_add(&neighbour->device[control->device].pool.released[CW_RELEASE_NEIGHBOUR].bytes,
                     IDLE);
    atomic_store(&control->answered, atomic_load(&control->asked));
    return unused;
}

Test(neighbours, give_of_the_device_that_they_are_asked_for)
{
    uint64_t left = MINUTE;
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, give, NULL), 0);
    cr_expect_eq(cw_neighbours_ask(0, 500 * MIB, 0, &left), IDLE);
    pthread_join(thread, NULL);
    cr_expect_eq(neighbour->control.device, 1u);
    cr_expect_eq(neighbour->control.argument, 500 * MIB);
    cr_expect_eq(asked(0), 1u);
}

/* A request for the other device follows, which nobody was asked about yet. */
Test(neighbours, that_gave_nothing_are_left_alone)
{
    uint64_t begin, left, before, first;

    do {
        cw_neighbours_reset();
        cw_neighbours_init(core_options());
        before = asked(1);
        begin = cw_clock_ns();
        left = 50 * MS;
        first = asked(0);
        cr_expect_eq(cw_neighbours_ask(0, 500 * MIB, 0, &left), 0u);
        left = 50 * MS;
        cr_expect_eq(cw_neighbours_ask(1, 500 * MIB, 0, &left), 0u);
    } while (asked(0) == first || cw_clock_ns() - begin > SOON);
    cr_expect_eq(asked(1), before);
}
