/* SPDX-License-Identifier: MIT */
/* Identifies files by their first bytes. See file_kind.h. */
#include "cli/input/file_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/compiler.h"
#include "base/out.h"
#include "cli/ui/message.h"

#define BEGIN_MAX    16
#define CHUNK        65536
#define UNPACKED     UINT64_C(100) /* times as long */
#define UNPACKED_MIN (UINT64_C(128) << 20)

static const struct {
    const char *bytes;
    size_t len;
    const char *words;
} kinds[] = {
#define KIND(bytes, words)                                                                         \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, words                                                            \
    }
    KIND("\xef\xbb\xbf", "text with a byte order mark: a report in JSON begins with {"),
    KIND("\xff\xfe", "text in UTF-16: a report in JSON is UTF-8"),
    KIND("\xfe\xff", "text in UTF-16: a report in JSON is UTF-8"),
    KIND("[", "JSON, but an array: a report is one object, and begins with {"),
    KIND("==", "a report in text: report on the live file, or on a report in JSON"),
    KIND("<!DOCTYPE", "a page of HTML: report on the live file, or on a report in JSON"),
    KIND("\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first"),
    KIND("\xfd"
         "7zXZ",
         "compressed with xz: decompress it first"),
    KIND("BZh", "compressed with bzip2: decompress it first"),
    KIND("PK\x03\x04", "an archive of zip: decompress it first"),
    KIND("\x7f"
         "ELF",
         "a program or a library: name its live file, or its report in JSON"),
#undef KIND
};

static size_t read_begin(int fd, char begin[BEGIN_MAX])
{
    ssize_t len = pread(fd, begin, BEGIN_MAX, 0);

    return len > 0 ? (size_t)len : 0;
}

const char *cw_file_kind(int fd)
{
    char begin[BEGIN_MAX];
    size_t len = read_begin(fd, begin);

    for (size_t i = 0; i < CW_ARRAY_LEN(kinds); i++)
        if (len >= kinds[i].len && memcmp(begin, kinds[i].bytes, kinds[i].len) == 0)
            return kinds[i].words;
    return NULL;
}

int cw_file_is_gzip(int fd)
{
    static const char magic[] = {'\x1f', '\x8b'};
    char begin[BEGIN_MAX];

    return read_begin(fd, begin) > sizeof(magic) && memcmp(begin, magic, sizeof(magic)) == 0;
}

/* What it may become: a small file can stand for one that fills the memory. */
static uint64_t unpacked_max(int fd)
{
    struct stat info;
    uint64_t most = fstat(fd, &info) == 0 ? UNPACKED * (uint64_t)info.st_size : 0;

    return most > UNPACKED_MIN ? most : UNPACKED_MIN;
}

static int unpack(gzFile gzip, int to, uint64_t most, const char *path)
{
    static char chunk[CHUNK];
    uint64_t sum = 0;
    int got, error;

    while ((got = gzread(gzip, chunk, sizeof(chunk))) > 0) {
        sum += (uint64_t)got;
        if (sum > most) {
            cw_cli_error("'%s' is more than %ju MiB when it is decompressed: decompress it first",
                         path, (uintmax_t)(most >> 20));
            return -1;
        }
        error = cw_write(to, chunk, (size_t)got, 0);
        if (error == 0)
            continue;
        cw_cli_error("'%s': cannot decompress it in memory: %s", path, strerror(error));
        return -1;
    }
    (void)gzerror(gzip, &error); /* also reports a missing end */
    if (got == 0 && error == Z_OK)
        return 0;
    cw_cli_error("'%s' is a gzip file that is damaged or truncated", path);
    return -1;
}

int cw_file_gunzip(int from, int to, const char *path)
{
    int copy = fcntl(from, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* which gzclose closes */
    gzFile gzip = NULL;
    int rc = -1;

    if (copy >= 0 && lseek(copy, 0, SEEK_SET) == 0)
        gzip = gzdopen(copy, "rb");
    if (gzip) {
        rc = unpack(gzip, to, unpacked_max(from), path);
        gzclose(gzip);
        return rc;
    }
    cw_cli_error("cannot read '%s': %s", path, strerror(errno));
    if (copy >= 0)
        close(copy);
    return rc;
}
