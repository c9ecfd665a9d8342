/* SPDX-License-Identifier: MIT */
/* Preloaded into an interpreter, for Python code to call by ctypes: what the reader of Python
 * frames sees from in there. */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/python/python.h"
#include "hook/tools/python_find.h"

#define EXPORT     __attribute__((visibility("default")))
#define FRAMES_MAX 4096

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look(void)
{
    struct cw_python_symbols symbols;

    if (cw_python_find(&symbols) == 0)
        cw_python_set_symbols(&symbols);
}

/* As the library would at the first call of the driver. */
EXPORT void probe_start(void)
{
    pthread_once(&once, look);
}

EXPORT const char *probe_status(void)
{
    probe_start();
    return cw_python_status();
}

/* One line for each frame: file, function, line, "entry" or "-", separated by tabs. */
EXPORT int probe_frames(char *text, size_t size, unsigned max)
{
    struct cw_python_frame frames[FRAMES_MAX];
    struct cw_python_text frame;
    unsigned count;
    size_t used = 0;

    probe_start();
    text[0] = '\0';
    count = cw_python_walk(frames, max < FRAMES_MAX ? max : FRAMES_MAX);
    for (unsigned i = 0; i < count && used < size; i++)
        if (cw_python_describe(&frames[i], &frame) == 0)
            used +=
                (size_t)snprintf(text + used, size - used, "%s\t%s\t%d\t%s\n", frame.file,
                                 frame.function, frame.line, frames[i].is_entry ? "entry" : "-");
        else
            used += (size_t)snprintf(text + used, size - used, "gone\n");
    return (int)count;
}

/* How many native frames of the evaluator there are, and how many entries the reader sees. */
EXPORT int probe_evaluators(int *entries)
{
    struct cw_python_frame frames[FRAMES_MAX];
    void *native[FRAMES_MAX];
    int depth = backtrace(native, FRAMES_MAX), evaluators = 0;
    unsigned count;
    Dl_info info;

    probe_start();
    count = cw_python_walk(frames, FRAMES_MAX);
    *entries = 0;
    for (unsigned i = 0; i < count; i++)
        *entries += frames[i].is_entry;
    for (int i = 0; i < depth; i++)
        if (dladdr(native[i], &info) != 0 && info.dli_sname != NULL &&
            strcmp(info.dli_sname, "_PyEval_EvalFrameDefault") == 0)
            evaluators++;
    return evaluators;
}

/* In bytes, as far as it is known by its name. */
EXPORT int probe_evaluator_size(void)
{
    const struct cw_python_symbols *symbols = cw_python_symbols_now();

    return symbols != NULL ? (int)(symbols->evaluator_end - symbols->evaluator) : 0;
}

EXPORT int probe_count(void)
{
    struct cw_python_frame frames[64];

    probe_start();
    return (int)cw_python_walk(frames, 64);
}

/* The innermost frame's code object and its stamp. */
EXPORT unsigned probe_stamp(unsigned long long *code)
{
    struct cw_python_frame frame = {0};

    probe_start();
    cw_python_walk(&frame, 1);
    *code = frame.code;
    return frame.stamp;
}

/* In a forked child. */
EXPORT void probe_reset(void)
{
    cw_python_reset();
}

/* A destructor of a capsule: runs while the frame that held it is being cleared. */
static int at_end[2];

EXPORT void probe_at_end(void *capsule)
{
    (void)capsule;
    at_end[0] = probe_evaluators(&at_end[1]);
}

EXPORT const int *probe_seen_at_end(void)
{
    return at_end;
}

/* ---- threads -----------------------------------------------------------------------------------
 */

static void *count_alone(void *arg)
{
    (void)arg;
    return (void *)(intptr_t)probe_count();
}

/* What a thread sees that Python does not know. */
EXPORT int probe_foreign_thread(void)
{
    pthread_t thread;
    void *count = (void *)-1;

    if (pthread_create(&thread, NULL, count_alone, NULL) == 0)
        pthread_join(thread, &count);
    return (int)(intptr_t)count;
}

static void *call_back(void *arg)
{
    ((void (*)(void))arg)();
    return NULL;
}

/* Runs Python code in a thread that Python does not know. */
EXPORT void probe_call_in_thread(void (*callback)(void))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, call_back, (void *)callback) == 0)
        pthread_join(thread, NULL);
}

EXPORT void probe_call(void (*callback)(void))
{
    callback();
}

EXPORT void probe_walk(unsigned rounds)
{
    struct cw_python_frame frames[64];

    probe_start();
    for (unsigned i = 0; i < rounds; i++)
        cw_python_walk(frames, 64);
}
