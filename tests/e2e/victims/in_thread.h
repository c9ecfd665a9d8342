/* SPDX-License-Identifier: MIT */
/* Threads of victims that use some, and do not care about much else. */
#ifndef IN_THREAD_H
#define IN_THREAD_H

#include <pthread.h>
#include <stdlib.h>

/* From its beginning to its end. */
static inline void in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, argument) != 0 || pthread_join(thread, NULL) != 0)
        exit(99);
}

static inline void start_threads(pthread_t *threads, int count, void *(*body)(void *), void *arg)
{
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, body, arg) != 0)
            exit(97);
}

static inline void join_threads(const pthread_t *threads, int count)
{
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

#endif
