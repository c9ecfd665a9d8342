/* SPDX-License-Identifier: MIT */
/* The processes that a run has left behind. See run_left.h. */
#include "cli/run/run_left.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/options/options.h"

#define VARIABLE CW_OPTION_PREFIX "LIVE="
#define LOOKS    2

/* That of the run, or inside it that of a nested one. */
static int names_directory(const char *assignment, const char *directory)
{
    size_t len = strlen(directory);
    const char *value = assignment + strlen(VARIABLE);

    return strncmp(assignment, VARIABLE, strlen(VARIABLE)) == 0 &&
           strncmp(value, directory, len) == 0 && (value[len] == '\0' || value[len] == '/');
}

static int is_left(const char *pid, const char *directory)
{
    char path[32], *assignment = NULL;
    size_t room = 0;
    int found = 0;
    FILE *environment;

    snprintf(path, sizeof(path), "/proc/%.16s/environ", pid);
    environment = fopen(path, "re");
    while (environment && !found && getdelim(&assignment, &room, '\0', environment) > 0)
        found = names_directory(assignment, directory);
    if (environment)
        fclose(environment);
    free(assignment);
    return found;
}

static unsigned count_left(const char *directory)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    unsigned count = 0;

    while (dir && (entry = readdir(dir)))
        if (strspn(entry->d_name, "0123456789") == strlen(entry->d_name))
            count += (unsigned)is_left(entry->d_name, directory);
    if (dir)
        closedir(dir);
    return count;
}

/* While a process executes a program its environment is empty for a moment. */
unsigned cw_run_left_count(const char *directory)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    unsigned count = count_left(directory);

    for (int i = 0; count == 0 && i < LOOKS; i++) {
        nanosleep(&moment, NULL);
        count = count_left(directory);
    }
    return count;
}
