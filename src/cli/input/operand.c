/* SPDX-License-Identifier: MIT */
/* Resolves and reads operands. See operand.h. */
#include "cli/input/operand.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdio.h>

#include "base/options/options.h"
#include "cli/input/foreign_file.h"
#include "cli/input/live_files.h"
#include "cli/ui/message.h"

#define LOOK_SIZE 256 /* a report begins with its schema */
#define WHY_MAX   256

static int is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

/* ---- directories ---- */

static int add(struct cw_operands *operands, const char *name, size_t named)
{
    struct cw_operand *grown = reallocarray(operands->operand, operands->count + 1, sizeof(*grown));
    char *copy = strdup(name);

    if (grown)
        operands->operand = grown;
    if (!grown || !copy) {
        cw_cli_error("'%s': out of memory", name);
        free(copy);
        return -1;
    }
    operands->operand[operands->count++] = (struct cw_operand){.name = copy, .named = named};
    return 0;
}

/* The descriptor, or -1 after a warning if it is a stranger's: one planted file must not keep the
 * others from being read. */
static int open_found(const char *path, size_t named)
{
    char why[WHY_MAX];
    int fd = cw_foreign_open(path, named, O_RDONLY, CW_FOREIGN_DIRECTORY, NULL, why, sizeof(why));

    if (fd < 0 && why[0]) {
        cw_cli_warn("'%s' %s; skipped", path, why);
        errno = EPERM;
    }
    return fd;
}

static int is_strange(const struct cw_live_name *file)
{
    int fd = open_found(file->path, file->named);

    if (fd >= 0)
        close(fd);
    return fd < 0 && errno == EPERM;
}

/* The directory may have other JSON files, such as merged reports. */
static int is_report(const char *path, size_t named)
{
    int fd = open_found(path, named);
    char begin[LOOK_SIZE];
    ssize_t len;

    if (fd < 0)
        return 0;
    len = pread(fd, begin, sizeof(begin), 0);
    close(fd);
    return len > 0 && memmem(begin, (size_t)len, "\"cuwarden-report/", 17) != NULL;
}

/* "r.dump-12.json" is an intermediate report; the process's final report may be next to it. */
static int is_name_of_dump(const char *name)
{
    const char *at = strstr(name, ".dump-");

    return at && isdigit((unsigned char)at[6]);
}

static int is_name_of_json(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0 &&
           !is_name_of_dump(entry->d_name);
}

static int add_reports(struct cw_operands *operands, const char *directory)
{
    struct dirent **entry;
    int count = scandir(directory, &entry, is_name_of_json, alphasort);
    int rc = 0;

    for (int i = 0; i < count; i++) {
        char *path = NULL;

        if (rc == 0 && asprintf(&path, "%s/%s", directory, entry[i]->d_name) < 0)
            rc = -1;
        else if (rc == 0 && is_report(path, strlen(directory)))
            rc = add(operands, path, strlen(directory));
        free(path);
        free(entry[i]);
    }
    if (count >= 0)
        free(entry);
    return rc;
}

static int add_directory(struct cw_operands *operands, const char *directory)
{
    struct cw_live_files files = {.count = 0};
    size_t before = operands->count;
    int rc = cw_live_files_add(&files, directory, 0, 1);

    if (rc != 0)
        cw_cli_error("cannot read '%s': %s", directory, strerror(errno));
    for (size_t i = 0; rc == 0 && i < files.count; i++)
        if (!is_strange(&files.file[i]))
            rc = add(operands, files.file[i].path, files.file[i].named);
    cw_live_files_free(&files);
    if (rc == 0)
        rc = add_reports(operands, directory);
    if (rc == 0 && operands->count == before) {
        cw_cli_error("'%s' has neither reports in JSON (*.json) nor live files "
                     "(PID-START-RANDOM.live); CUWARDEN_FORMAT=json makes such reports",
                     directory);
        rc = -1;
    }
    return rc;
}

int cw_operands_add(struct cw_operands *operands, const char *operand)
{
    struct stat status;

    if (!is_number(operand) && stat(operand, &status) == 0 && S_ISDIR(status.st_mode))
        return add_directory(operands, operand);
    return add(operands, operand, 0);
}

void cw_operands_free(struct cw_operands *operands)
{
    for (size_t i = 0; i < operands->count; i++)
        free(operands->operand[i].name);
    free(operands->operand);
    *operands = (struct cw_operands){.count = 0};
}
