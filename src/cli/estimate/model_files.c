/* SPDX-License-Identifier: MIT */
/* The files of a model: which there are, and what kind each is. See model_files.h. */
#include "cli/estimate/model_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/ui/message.h"

#define LOOK_SIZE 64

static int fail(const char *path, const char *why)
{
    cw_cli_error("'%s' %s", path, why);
    return -1;
}

/* Anything that can be read like a file: the user named it, or the directory that it lies in, and
 * models are kept as links into caches. A FIFO is not waited for. -1 with errno. */
static int open_file(const char *path, uint64_t *size, const char **why)
{
    int fd = cw_sys_open(path, O_RDONLY | O_NONBLOCK, 0);
    struct stat info;

    *why = NULL;
    if (fd < 0)
        return -1;
    if (cw_sys_stat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        *size = (uint64_t)info.st_size;
        return fd;
    }
    *why = "is not a regular file";
    cw_sys_close(fd);
    return -1;
}

/* "NAME-00002-of-00005.safetensors" */
static int is_one_of_several(const char *path)
{
    const char *of = strstr(path, "-of-");
    unsigned whole = 0;

    return of && sscanf(of, "-of-%5u.safetensors", &whole) == 1 && whole > 1;
}

static int read_open(struct cw_facts *facts, const char *path, int fd, uint64_t size)
{
    char begin[LOOK_SIZE] = "";
    ssize_t len = pread(fd, begin, sizeof(begin) - 1, 0);
    ssize_t at = 0;

    if (len < 0)
        return cw_facts_refuse(facts, "cannot be read: %s", strerror(errno));
    if (len >= 4 && memcmp(begin, "GGUF", 4) == 0)
        return cw_facts_read_gguf(facts, fd, size);
    if (len >= 9 && begin[8] == '{') {
        if (is_one_of_several(path))
            return cw_facts_refuse(facts, "has a part of the weights: name the directory, or the "
                                          "file that ends in .safetensors.index.json");
        return cw_facts_read_safetensors(facts, fd, size);
    }
    while (at < len && isspace((unsigned char)begin[at]))
        at++;
    if (at < len && begin[at] == '{')
        return cw_facts_read_json(facts, fd, size);
    return cw_facts_refuse(facts, "is neither a config.json, nor the index of safetensors, nor a "
                                  "file in safetensors or GGUF");
}

/* 0: read, or not there and that is no error; -1 after a message. */
static int read_file(struct cw_facts *facts, const char *path, int is_optional)
{
    uint64_t size = 0;
    const char *why;
    int fd = open_file(path, &size, &why), rc;

    if (fd < 0 && !why && is_optional && errno == ENOENT)
        return 0;
    if (fd < 0 && why)
        return fail(path, why);
    if (fd < 0) {
        cw_cli_error("cannot read '%s': %s%s", path, strerror(errno),
                     errno == ENOENT ? "; name a file or a directory on this machine: nothing is "
                                       "fetched"
                                     : "");
        return -1;
    }
    facts->why[0] = '\0';
    rc = read_open(facts, path, fd, size);
    cw_sys_close(fd);
    if (rc > 0)
        snprintf(facts->shapeless, sizeof(facts->shapeless), "'%.*s' %s", CW_FACTS_PATH, path,
                 facts->why);
    return rc >= 0 ? 0 : fail(path, facts->why);
}

static int read_beside(struct cw_facts *facts, const char *directory, size_t len, const char *name)
{
    char path[PATH_MAX];

    if (len + strlen(name) + 2 > sizeof(path))
        return 0;
    snprintf(path, sizeof(path), "%.*s/%s", (int)len, directory, name);
    return read_file(facts, path, 1);
}

/* As save_pretrained() of transformers names them. */
static int read_directory(struct cw_facts *facts, const char *path)
{
    size_t len = strlen(path);

    if (read_beside(facts, path, len, "config.json") != 0 ||
        read_beside(facts, path, len, "model.safetensors.index.json") != 0)
        return -1;
    if (!facts->has_weights && read_beside(facts, path, len, "model.safetensors") != 0)
        return -1;
    return facts->has_shape || facts->has_weights || *facts->shapeless
               ? 0
               : fail(path, "has no config.json, model.safetensors.index.json or "
                            "model.safetensors; name the file");
}

static int is_directory(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

int cw_model_files_read(struct cw_facts *facts, const char *path)
{
    const char *slash = strrchr(path, '/');

    *facts = (struct cw_facts){.has_shape = 0};
    if (is_directory(path))
        return read_directory(facts, path);
    if (read_file(facts, path, 0) != 0)
        return -1;
    if (facts->has_shape || *facts->shapeless)
        return 0;
    return read_beside(facts, slash ? path : ".", slash ? (size_t)(slash - path) : 1,
                       "config.json");
}
