/* SPDX-License-Identifier: MIT */
/* From a program's name to its file. See program_file.h. */
#include "cli/doctor/program_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "cli/doctor/sysroot.h"

#define LINE_MAX_BYTES 256 /* of a script's first line, as in Linux */

/* ---- one file ---- */

static enum cw_program_state look(struct cw_program_file *file, const char *root, const char *path,
                                  char *resolved)
{
    char outside[PATH_MAX];

    if (cw_sysroot_resolve(root, path, resolved) != 0 ||
        cw_sysroot_outside(root, resolved, outside, sizeof(outside)) != 0 ||
        stat(outside, &file->status) != 0) {
        file->error = errno;
        return CW_PROGRAM_MISSING;
    }
    if (S_ISDIR(file->status.st_mode))
        return CW_PROGRAM_DIRECTORY;
    if (!S_ISREG(file->status.st_mode) || access(outside, X_OK) != 0) {
        file->error = EACCES;
        return CW_PROGRAM_NOT_EXECUTABLE;
    }
    return CW_PROGRAM_FOUND;
}

/* Like execvp: files that may not be executed are skipped while there are other directories. */
static enum cw_program_state search_path(struct cw_program_file *file, const char *root,
                                         const char *name, const char *search, char *resolved)
{
    enum cw_program_state state = CW_PROGRAM_MISSING, next;
    char candidate[PATH_MAX];
    size_t len;

    if (strchr(name, '/') || !*name)
        return look(file, root, name, resolved);
    file->error = ENOENT;
    for (; search; search = search[len] ? search + len + 1 : NULL) {
        len = strcspn(search, ":");
        if (snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)len, search, len > 0 ? "/" : "",
                     name) >= (int)sizeof(candidate))
            continue;
        next = look(file, root, candidate, resolved);
        if (next == CW_PROGRAM_FOUND)
            return next;
        if (next == CW_PROGRAM_NOT_EXECUTABLE)
            state = next;
    }
    if (state != CW_PROGRAM_MISSING)
        return state;
    next = look(file, root, name, resolved); /* "." and the like, which no one searches for */
    file->error = ENOENT;
    return next == CW_PROGRAM_DIRECTORY ? next : CW_PROGRAM_MISSING;
}

/* ---- scripts ---- */

/* The first line after "#!", without surrounding blanks. 1 if the file is a script. */
static int read_line(const char *root, const char *path, char *line)
{
    char outside[PATH_MAX], *text = line;
    uint64_t size;
    ssize_t len = -1;
    int fd = -1;

    if (cw_sysroot_outside(root, path, outside, sizeof(outside)) == 0)
        fd = cw_regular_open(outside, 0, &size);
    if (fd >= 0) {
        len = read(fd, line, LINE_MAX_BYTES - 1);
        close(fd);
    }
    line[len > 0 ? len : 0] = '\0';
    if (line[0] != '#' || line[1] != '!')
        return 0;
    text += 2 + strspn(text + 2, " \t");
    text[strcspn(text, "\r\n")] = '\0';
    memmove(line, text, strlen(text) + 1);
    return 1;
}

/* The program that env(1) runs: after its flags and VAR=value. */
static const char *skip_env(struct cw_program_file *file, char *arguments)
{
    char *word, *rest = arguments;

    while ((word = strsep(&rest, " \t"))) {
        if (strcmp(word, "-i") == 0 || strcmp(word, "-") == 0 ||
            strcmp(word, "--ignore-environment") == 0)
            file->drops_environment = 1;
        else if (*word && *word != '-' && !strchr(word, '='))
            return word;
    }
    return "";
}

/* The program that the line executes, as a pointer into the line. */
static const char *interpreter_of(struct cw_program_file *file, char *line)
{
    size_t len = strcspn(line, " \t");
    int has_arguments = line[len] != '\0';
    const char *slash;

    line[len] = '\0';
    slash = strrchr(line, '/');
    if (!has_arguments || strcmp(slash ? slash + 1 : line, "env") != 0)
        return line;
    return skip_env(file, line + len + 1);
}

/* ---- all ---- */

static enum cw_program_state read_facts(struct cw_program_file *file, const char *root,
                                        const char *path)
{
    char outside[PATH_MAX];

    if (cw_sysroot_outside(root, path, outside, sizeof(outside)) != 0 ||
        cw_elf_facts_read(&file->facts, outside) != 0) {
        file->error = errno;
        return CW_PROGRAM_UNREADABLE;
    }
    return file->facts.is_elf ? CW_PROGRAM_FOUND : CW_PROGRAM_NO_FORMAT;
}

void cw_program_file_find(struct cw_program_file *file, const char *root, const char *name,
                          const char *search)
{
    char line[LINE_MAX_BYTES];

    *file = (struct cw_program_file){.state = CW_PROGRAM_LOOP};
    while (file->steps < CW_PROGRAM_STEPS) {
        struct cw_program_step *step = &file->step[file->steps++];

        snprintf(step->name, sizeof(step->name), "%s", name);
        file->state = search_path(file, root, name, search, step->path);
        if (file->state != CW_PROGRAM_FOUND)
            return;
        if (!read_line(root, step->path, line)) {
            file->state = read_facts(file, root, step->path);
            return;
        }
        name = interpreter_of(file, line);
        file->state = CW_PROGRAM_LOOP;
    }
}

void cw_program_file_free(struct cw_program_file *file)
{
    cw_elf_facts_free(&file->facts);
}
