/* SPDX-License-Identifier: MIT */
/* Workers see the frames of the thread that waits for them, in interpreters of every version that
 * are no interpreters. */
#include "core/python/python.h"

#include <criterion/criterion.h>

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "core/python/python_waiting.h"
#include "python_fixture.h"

#define MAX 64
#define OWN 8 /* the first frame of the worker's own */

static struct fake_text graph, autograd, run_backward, backward;
static struct cw_python_frame out[MAX];

static void set_text(struct fake_text *text, const char *chars)
{
    fake_set_text(text, chars, strlen(chars), 1, 1);
}

/* The thread with `fake.state` waits in the innermost of three frames. */
static void start_waiting(uint32_t version)
{
    fake_start(version);
    set_text(&graph, "/lib/torch/autograd/graph.py");
    set_text(&autograd, "/lib/torch/autograd/__init__.py");
    set_text(&run_backward, "_engine_run_backward");
    set_text(&backward, "backward");
    for (unsigned i = 0; i < 3; i++)
        fake_set_frame(i, FAKE_THREAD, 4 + (int32_t)i * 2);
    fake_set_frame(3, FAKE_SHIM, 0);
    fake_link(fake.layout.minor >= 12 ? 4 : 3);
    fake_put_word(fake.code[0], fake.layout.file, (uintptr_t)&graph);
    fake_put_word(fake.code[0], fake.layout.name, (uintptr_t)&run_backward);
    fake_put_word(fake.code[0], fake.layout.function, (uintptr_t)&run_backward);
    fake_arm();
}

/* As at its first allocation. */
static void meet_waiting(void)
{
    cr_assert_eq(cw_python_walk(out, MAX), 3);
}

static void finish(void)
{
    cw_python_set_symbols(NULL);
    pthread_key_delete(fake.key);
}

/* A thread with a state of its own, which is at this frame, or at none. */
struct worker {
    const char *name;
    unsigned frame;
    unsigned max, count;
    struct cw_python_frame out[MAX];
    struct cw_python_text text[MAX];
    int is_described[MAX];
    uint64_t state[64], cframe[4];
};

static void set_place(struct worker *worker)
{
    uintptr_t frame = worker->frame != 0 ? (uintptr_t)fake.frame[worker->frame] : 0;

    fake_put_word(worker->state, fake.layout.thread_id, (uintptr_t)pthread_self());
    if (frame != 0 && fake.layout.cframe_frame != CW_PYTHON_NONE) {
        fake_put_word(worker->cframe, fake.layout.cframe_frame, frame);
        frame = (uintptr_t)worker->cframe;
    }
    fake_put_word(worker->state, fake.layout.thread_frame, frame);
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    prctl(PR_SET_NAME, worker->name);
    set_place(worker);
    pthread_setspecific(fake.key, worker->state);
    worker->count = cw_python_walk(worker->out, worker->max);
    for (unsigned i = 0; i < worker->count; i++)
        worker->is_described[i] = cw_python_describe(&worker->out[i], &worker->text[i]) == 0;
    return NULL;
}

static const struct worker *run_worker(struct worker worker)
{
    static struct worker kept;
    pthread_t thread;

    kept = worker;
    if (kept.max == 0)
        kept.max = MAX;
    if (kept.name == NULL)
        kept.name = "pt_autograd_0";
    cr_assert_eq(pthread_create(&thread, NULL, work, &kept), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    return &kept;
}

static unsigned frames_of(struct worker worker)
{
    return run_worker(worker)->count;
}

Test(python_waiting, the_frames_of_the_thread_that_waits_in_each_version)
{
    for (unsigned v = 0; v < FAKE_VERSIONS; v++) {
        const struct worker *worker;

        start_waiting(fake_versions[v]);
        meet_waiting();
        worker = run_worker((struct worker){0});
        cr_assert_eq(worker->count, 3, "version %x: %u", fake_versions[v], worker->count);
        for (unsigned i = 0; i < 3; i++) {
            cr_assert_eq(worker->out[i].code, (uintptr_t)fake.code[i]);
            cr_assert_eq(worker->out[i].instr, 4 + (int)i * 2);
            cr_assert(worker->is_described[i]);
            cr_assert_eq(worker->text[i].line, 100 + (int)i);
        }
        cr_assert_str_eq(worker->text[0].file, "/lib/torch/autograd/graph.py");
        cr_assert_str_eq(worker->text[0].function, "_engine_run_backward");
        cr_assert_str_eq(worker->text[2].file, "file.py");
        cr_assert_str_eq(worker->text[2].function, "name");
        finish();
    }
}

Test(python_waiting, at_most_as_many_as_are_asked_for)
{
    start_waiting(0x030c01f0);
    meet_waiting();
    for (unsigned max = 1; max <= 4; max++)
        cr_assert_eq(frames_of((struct worker){.max = max}), max < 3 ? max : 3);
}

Test(python_waiting, behind_what_the_worker_has_itself)
{
    for (unsigned v = 0; v < FAKE_VERSIONS; v++) {
        const struct worker *worker;

        start_waiting(fake_versions[v]);
        fake_set_frame(OWN, FAKE_THREAD, 10);
        fake_put_word(fake.frame[OWN], fake.layout.previous, 0);
        meet_waiting();
        worker = run_worker((struct worker){.frame = OWN});
        cr_assert_eq(worker->count, 4, "version %x: %u", fake_versions[v], worker->count);
        cr_assert_eq(worker->out[0].code, (uintptr_t)fake.code[OWN]);
        cr_assert_eq(worker->out[1].code, (uintptr_t)fake.code[0]);
        finish();
    }
}

Test(python_waiting, where_older_versions_wait)
{
    start_waiting(0x030b02f0);
    meet_waiting();
    fake_put_word(fake.code[0], fake.layout.file, (uintptr_t)&autograd);
    cr_assert_eq(frames_of((struct worker){0}), 0);
    fake_put_word(fake.code[0], fake.layout.function, (uintptr_t)&backward);
    cr_assert_eq(frames_of((struct worker){0}), 3);
}

/* ---- nobody waits, or one cannot tell ---- */

Test(python_waiting, only_workers_look)
{
    start_waiting(0x030d00f0);
    meet_waiting();
    cr_assert_eq(frames_of((struct worker){.name = "python3"}), 0);
    cr_assert_eq(frames_of((struct worker){.name = "pt_autograd_7"}), 3);
}

Test(python_waiting, a_thread_that_does_something_else)
{
    start_waiting(0x030d00f0);
    meet_waiting();
    set_text(&run_backward, "_engine_run_backwards");
    cr_assert_eq(frames_of((struct worker){0}), 0);
    set_text(&run_backward, "_engine_run_backward");
    set_text(&graph, "/lib/torch/autograd/graph.pyc");
    cr_assert_eq(frames_of((struct worker){0}), 0);
    set_text(&graph, "/lib/torch/autograd/graph.py");
    cr_assert_eq(frames_of((struct worker){0}), 3);
    fake_link(0);
    cr_assert_eq(frames_of((struct worker){0}), 0);
}

Test(python_waiting, a_thread_that_never_walked)
{
    start_waiting(0x030d00f0);
    cr_assert_eq(frames_of((struct worker){0}), 0);
    meet_waiting();
    cr_assert_eq(frames_of((struct worker){0}), 3);
}

Test(python_waiting, after_a_fork_the_thread_is_met_again)
{
    start_waiting(0x030d00f0);
    meet_waiting();
    cw_python_reset();
    cr_assert_eq(frames_of((struct worker){0}), 0);
    meet_waiting();
    cr_assert_eq(frames_of((struct worker){0}), 3);
}

static pthread_barrier_t both;

static void *wait_too(void *arg)
{
    struct worker *worker = arg;

    set_place(worker);
    pthread_setspecific(fake.key, worker->state);
    worker->count = cw_python_walk(worker->out, MAX);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    return NULL;
}

Test(python_waiting, two_threads_wait)
{
    static struct worker other;
    pthread_t thread;

    start_waiting(0x030d00f0);
    fake_set_frame(OWN, FAKE_THREAD, 10);
    fake_put_word(fake.frame[OWN], fake.layout.previous, 0);
    fake_put_word(fake.code[OWN], fake.layout.file, (uintptr_t)&graph);
    fake_put_word(fake.code[OWN], fake.layout.function, (uintptr_t)&run_backward);
    meet_waiting();
    other.frame = OWN;
    pthread_barrier_init(&both, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, wait_too, &other), 0);
    pthread_barrier_wait(&both);
    cr_assert_eq(other.count, 1);
    cr_assert_eq(frames_of((struct worker){0}), 0);
    fake_put_word(fake.code[OWN], fake.layout.function, (uintptr_t)&backward);
    cr_assert_eq(frames_of((struct worker){0}), 3);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
}

static void *work_twice(void *arg)
{
    work(arg);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    work(arg);
    return NULL;
}

Test(python_waiting, what_the_thread_did_between_two_walks)
{
    static struct worker twice = {.name = "pt_autograd_0", .max = MAX};
    pthread_t thread;

    start_waiting(0x030d00f0);
    meet_waiting();
    pthread_barrier_init(&both, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, work_twice, &twice), 0);
    pthread_barrier_wait(&both);
    cr_assert_eq(twice.count, 3);
    fake_set_frame(1, FAKE_THREAD, 8);
    fake_put_word(fake.frame[1], fake.layout.previous, 0);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    cr_assert_eq(twice.count, 2);
    cr_assert_eq(twice.out[1].instr, 8);
}

Test(python_waiting, threads_that_end_leave_room_for_others)
{
    start_waiting(0x030d00f0);
    for (unsigned i = 0; i < 100; i++)
        cr_assert_eq(frames_of((struct worker){.name = "python3"}), 0);
    meet_waiting();
    for (unsigned i = 0; i < 100; i++)
        cr_assert_eq(frames_of((struct worker){.name = "python3"}), 0);
    cr_assert_eq(frames_of((struct worker){0}), 3);
}

/* ---- memory that is not there ---- */

Test(python_waiting, frames_and_states_that_are_gone)
{
    static const uint32_t two[] = {0x030c01f0, 0x030a0000};

    for (unsigned v = 0; v < sizeof(two) / sizeof(two[0]); v++) {
        start_waiting(two[v]);
        meet_waiting();
        fake_put_word(fake.frame[2], fake.layout.previous, fake_nowhere());
        cr_assert_eq(frames_of((struct worker){0}), 0);
        fake_put_word(fake.frame[0], fake.layout.previous, fake_nowhere() + 4);
        cr_assert_eq(frames_of((struct worker){0}), 0);
        fake_put_word(fake.frame[0], fake.layout.code, fake_nowhere());
        cr_assert_eq(frames_of((struct worker){0}), 0);
        fake_put_word(fake.state, fake.layout.thread_frame, fake_nowhere());
        cr_assert_eq(frames_of((struct worker){0}), 0);
        finish();
    }
}

Test(python_waiting, a_chain_without_an_end)
{
    start_waiting(0x030d00f0);
    meet_waiting();
    fake_put_word(fake.frame[3], fake.layout.previous, (uintptr_t)fake.frame[3]);
    cr_assert_eq(frames_of((struct worker){0}), 0);
    fake_put_word(fake.state, fake.layout.thread_frame, (uintptr_t)fake.frame[3]);
    cr_assert_eq(frames_of((struct worker){0}), 0);
    fake_link(4);
    fake_put_word(fake.frame[2], fake.layout.previous, (uintptr_t)fake.frame[0]);
    cr_assert_eq(frames_of((struct worker){0}), MAX);
}

Test(python_waiting, names_that_are_gone)
{
    const struct worker *worker;

    start_waiting(0x030d00f0);
    meet_waiting();
    fake_put_word(fake.code[1], fake.layout.file, fake_nowhere());
    fake_put_word(fake.code[1], fake.layout.line_table, fake_nowhere());
    fake_put_word(fake.code[2], fake.layout.function, fake_nowhere());
    worker = run_worker((struct worker){0});
    cr_assert_eq(worker->count, 3);
    cr_assert_str_eq(worker->text[1].file, "?");
    cr_assert_str_eq(worker->text[1].function, "name");
    cr_assert_eq(worker->text[1].line, 101);
    cr_assert_str_eq(worker->text[2].function, "?");
}

Test(python_waiting, a_code_object_that_went_after_the_walk)
{
    struct cw_python_frame frame;
    struct cw_python_text text;

    start_waiting(0x030d00f0);
    meet_waiting();
    frame = run_worker((struct worker){0})->out[1];
    cr_assert_eq(cw_python_describe(&frame, &text), 0);
    frame.code = fake_nowhere();
    cr_assert_eq(cw_python_describe(&frame, &text), -1);
}
