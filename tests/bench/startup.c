/* SPDX-License-Identifier: MIT */
/*
 * What a preload adds to the life of a short program, from fork to exit.
 *
 *   startup RUNS LIBRARY PROGRAM
 *
 * Runs PROGRAM in turn without the library, with it and CUWARDEN_MODE=off, and with it as it is by
 * default: RUNS times each, alternating, so that a change of the machine's mood meets all alike.
 * Prints the three medians in milliseconds. The programs get no other environment.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum { PLAIN, OFF, TRACK, VARIANTS };

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Milliseconds, or -1 when the program failed. */
static double run_once(char *program, char **environment)
{
    char *arguments[] = {program, NULL};
    double start = now_ms();
    int status;
    pid_t pid;

    if (posix_spawn(&pid, program, NULL, NULL, arguments, environment) != 0)
        return -1;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return -1;
    return now_ms() - start;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

int main(int argc, char **argv)
{
    int runs = argc == 4 ? atoi(argv[1]) : 0;
    double *took[VARIANTS];
    static char preload[4096], off[] = "CUWARDEN_MODE=off";
    char *environment[VARIANTS][3] = {{NULL}, {preload, off, NULL}, {preload, NULL}};

    if (runs < 1)
        return 2;
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", argv[2]);
    for (int v = 0; v < VARIANTS; v++) {
        took[v] = calloc((size_t)runs, sizeof(double));
        if (!took[v])
            return 2;
    }
    for (int i = 0; i < runs; i++)
        for (int v = 0; v < VARIANTS; v++) {
            took[v][i] = run_once(argv[3], environment[v]);
            if (took[v][i] < 0) {
                fprintf(stderr, "%s failed\n", argv[3]);
                return 1;
            }
        }
    for (int v = 0; v < VARIANTS; v++) {
        qsort(took[v], (size_t)runs, sizeof(double), by_size);
        printf("%.3f%c", took[v][runs / 2], v == VARIANTS - 1 ? '\n' : ' ');
    }
    return 0;
}
