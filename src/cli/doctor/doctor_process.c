/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden doctor PID`: whether a running process is monitored, judged by /proc and its live file.
 */
#include "cli/doctor/doctor.h"
#include "base/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRON_MAX (2u << 20)

static void fill_path(const struct cw_doctor *doctor, const char *name, char *path, size_t cap)
{
    snprintf(path, cap, "/proc/%u/%s", (unsigned)doctor->pid, name);
}

/* 1 if a mapped file has `part` in its path, which goes to `found`; -1 with errno. */
static int find_mapped(const struct cw_doctor *doctor, const char *part, char *found, size_t cap)
{
    char line[PATH_MAX + 128];
    int is_there = 0;
    FILE *maps;

    fill_path(doctor, "maps", line, sizeof(line));
    maps = fopen(line, "re");
    if (!maps)
        return -1;
    while (!is_there && fgets(line, sizeof(line), maps)) {
        const char *path = strchr(line, '/');

        if (!path || !strstr(path, part))
            continue;
        snprintf(found, cap, "%.*s", (int)strcspn(path, "\n"), path);
        is_there = 1;
    }
    fclose(maps);
    return is_there;
}

/* Root may lack the right to look into processes, in a container. */
static const char *way_to_rights(void)
{
    return geteuid() != 0 ? "run cuwarden doctor as its user or as root"
                          : "run cuwarden doctor where root has CAP_SYS_PTRACE, as in a container "
                            "with --cap-add=SYS_PTRACE";
}

static void check_process(struct cw_doctor *doctor)
{
    char path[64], target[PATH_MAX];
    ssize_t len;

    fill_path(doctor, "exe", path, sizeof(path));
    len = readlink(path, target, sizeof(target) - 1);
    if (len >= 0) {
        cw_doctor_ok(doctor, "process %u runs %.*s", (unsigned)doctor->pid, (int)len, target);
        return;
    }
    doctor->is_over = 1;
    if (errno == EACCES || errno == EPERM)
        cw_doctor_problem(doctor, way_to_rights(), "no permission to inspect process %u",
                          (unsigned)doctor->pid);
    else
        cw_doctor_problem(doctor, "look for it with ps; if it died, try 'cuwarden report'",
                          "there is no process %u, or it is a kernel thread",
                          (unsigned)doctor->pid);
}

/* Whether the initial environment of the process names the library. */
static int was_asked_for(const struct cw_doctor *doctor)
{
    char path[64], *text = malloc(ENVIRON_MAX);
    ssize_t len = -1;
    int fd, is_named = 0;

    fill_path(doctor, "environ", path, sizeof(path));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && text) {
        size_t done = 0;

        while (done < ENVIRON_MAX - 1 && (len = read(fd, text + done, ENVIRON_MAX - 1 - done)) > 0)
            done += (size_t)len;
        text[done] = '\0';
        for (size_t at = 0; at < done && !is_named; at += strlen(text + at) + 1)
            is_named = strncmp(text + at, "LD_PRELOAD=", 11) == 0 &&
                       strstr(text + at, "libcuwarden.so") != NULL;
    }
    if (fd >= 0)
        close(fd);
    free(text);
    return is_named;
}

static void check_preloaded(struct cw_doctor *doctor)
{
    char found[PATH_MAX];
    int is_mapped = find_mapped(doctor, "/libcuwarden.so", found, sizeof(found));

    if (is_mapped == 1) {
        cw_doctor_ok(doctor, "the library is preloaded: %s", found);
        return;
    }
    doctor->is_over = 1;
    if (is_mapped < 0)
        cw_doctor_problem(doctor, way_to_rights(), "its mapped files cannot be read: %s",
                          strerror(errno));
    else if (was_asked_for(doctor))
        cw_doctor_problem(
            doctor, "'cuwarden doctor PROGRAM' says why",
            "LD_PRELOAD in its environment names the library, but the library is not loaded");
    else
        cw_doctor_problem(
            doctor, "restart the program: cuwarden run -- PROGRAM",
            "it was not started under libcuwarden.so, and the library cannot be added later");
}

static void check_armed(struct cw_doctor *doctor)
{
    char found[PATH_MAX];

    if (find_mapped(doctor, "/libcuda.so", found, sizeof(found)) == 1)
        cw_doctor_ok(doctor, "it has loaded the driver: %s", found);
    else
        cw_doctor_ok(doctor, "it has not loaded the driver yet, so there is nothing to monitor");
}

static void check_live_file(struct cw_doctor *doctor)
{
    char found[PATH_MAX];
    size_t len;

    if (find_mapped(doctor, ".live", found, sizeof(found)) != 1) {
        cw_doctor_warn(
            doctor, "wait for its first CUDA call; with CUWARDEN_LIVE=off there is no live file",
            "it has no live file: it has not called CUDA, or the file could not be created");
        return;
    }
    len = strlen(found);
    if (len > 10 && strcmp(found + len - 10, " (deleted)") == 0)
        cw_doctor_warn(doctor, "wait for the report at its end, which will be complete",
                       "its live file was removed: %s", found);
    else
        cw_doctor_ok(doctor, "it is monitored; its live file is %s", found);
}

void cw_doctor_check_process(struct cw_doctor *doctor)
{
    static const struct cw_check checks[] = {
        {"process", check_process},
        {"preload", check_preloaded},
        {"driver", check_armed},
        {"live", check_live_file},
    };

    cw_doctor_run(doctor, checks, CW_ARRAY_LEN(checks));
}
