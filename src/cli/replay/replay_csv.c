/* SPDX-License-Identifier: MIT */
/* Lines, columns and values of a trace. See replay_csv.h. */
#include "cli/replay/replay_csv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdint.h>

#include "live/layout.h"
#include "live/view.h"
#include "base/compiler.h"
#include "cli/ui/message.h"

#define BUFFER       ((size_t)1 << 20)
#define INFLATED     (1u << 17) /* zlib's own buffer */
#define LINE_MAX_LEN ((size_t)1 << 16)
#define SECOND       UINT64_C(1000000000)
#define DAY          (86400 * SECOND)
#define OVERTAKEN    (60 * SECOND) /* by less than this */
#define CLIP         40            /* characters of a value quoted in a message */

struct text {
    const char *at;
    size_t len;
};

static const char *const column_names[] = {
    [CW_CSV_ACTION] = "Action", [CW_CSV_POINTER] = "Pointer", [CW_CSV_SIZE] = "Size",
    [CW_CSV_TIME] = "Time",     [CW_CSV_DEVICE] = "Device",   [CW_CSV_NANOSECONDS] = "Nanoseconds",
    [CW_CSV_KIND] = "Kind",
};

static const char *const action_names[] = {
    [CW_CSV_ALLOCATE] = "allocate",
    [CW_CSV_FREE] = "free",
    [CW_CSV_FAILURE] = "allocate failure",
};

static int is_text(struct text text, const char *word)
{
    return strlen(word) == text.len && memcmp(text.at, word, text.len) == 0;
}

/* ---- values: 0, or -1 ---- */

static int read_number(struct text text, unsigned base, uint64_t *out)
{
    uint64_t value = 0;

    if (text.len == 0)
        return -1;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i] | 0x20;
        unsigned digit = c >= 'a' ? c - 'a' + 10u : (unsigned)(text.at[i] - '0');

        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return -1;
    }
    *out = value;
    return 0;
}

static int read_pointer(struct text text, uint64_t *out)
{
    if (is_text(text, "(nil)")) {
        *out = 0;
        return 0;
    }
    if (text.len > 2 && text.at[0] == '0' && (text.at[1] | 0x20) == 'x')
        text = (struct text){text.at + 2, text.len - 2};
    return read_number(text, 16, out);
}

/* "HH:MM:SS.uuuuuu", or with a colon before the microseconds, as in old versions of RMM. */
static int read_clock(struct text text, uint64_t *out)
{
    static const char form[] = "00:00:00.000000";
    uint64_t part[4];

    if (text.len != sizeof(form) - 1 || text.at[2] != ':' || text.at[5] != ':' ||
        (text.at[8] != '.' && text.at[8] != ':') ||
        read_number((struct text){text.at, 2}, 10, &part[0]) ||
        read_number((struct text){text.at + 3, 2}, 10, &part[1]) ||
        read_number((struct text){text.at + 6, 2}, 10, &part[2]) ||
        read_number((struct text){text.at + 9, 6}, 10, &part[3]))
        return -1;
    *out = ((part[0] * 60 + part[1]) * 60 + part[2]) * SECOND + part[3] * 1000;
    return 0;
}

static int read_device(struct text text, uint8_t *out)
{
    uint64_t ordinal;

    if (is_text(text, "host")) {
        *out = CW_DEVICE_HOST;
        return 0;
    }
    if (read_number(text, 10, &ordinal) || ordinal >= CW_MAX_DEVICES)
        return -1;
    *out = (uint8_t)ordinal;
    return 0;
}

static int read_word(struct text text, const char *(*name)(unsigned), unsigned count, uint8_t *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (!is_text(text, name(i)))
            continue;
        *out = (uint8_t)i;
        return 0;
    }
    return -1;
}

static const char *action_name(unsigned action)
{
    return action_names[action];
}

/* ---- lines ---- */

static int fail_read(const struct cw_csv *csv)
{
    int code = Z_OK, saved = errno;
    const char *why = gzerror(csv->file, &code);
    const char *colon = strstr(why, ": "); /* after the file name that zlib adds */

    if (colon != NULL)
        why = colon + 2;
    cw_cli_error("cannot read '%s': %s", csv->path, code == Z_ERRNO ? strerror(saved) : why);
    return -1;
}

/* Moves the rest to the front and reads more. 0, or -1 after a message. */
static int refill(struct cw_csv *csv)
{
    int code = Z_OK, n;

    memmove(csv->buf, csv->buf + csv->at, csv->len - csv->at);
    csv->len -= csv->at;
    csv->at = 0;
    n = gzread(csv->file, csv->buf + csv->len, (unsigned)(BUFFER - csv->len));
    gzerror(csv->file, &code);
    if (n < 0 || (n == 0 && code != Z_OK)) /* a truncated compressed file first yields its data */
        return fail_read(csv);
    csv->at_end = n == 0;
    csv->len += (size_t)n;
    return 0;
}

/* 1: *out is the next line, *is_whole if it has its newline; 0: the end; -1 after a message. */
static int next_line(struct cw_csv *csv, struct text *out, int *is_whole)
{
    const char *newline;

    while ((newline = memchr(csv->buf + csv->at, '\n', csv->len - csv->at)) == NULL &&
           !csv->at_end) {
        if (csv->len - csv->at >= LINE_MAX_LEN)
            break;
        if (refill(csv) != 0)
            return -1;
    }
    *is_whole = newline != NULL;
    *out = (struct text){csv->buf + csv->at, csv->len - csv->at};
    csv->line++;
    if (newline != NULL)
        out->len = (size_t)(newline - out->at);
    else if (out->len >= LINE_MAX_LEN && out->at[0] != '\0') {
        cw_cli_error("%s:%ju: line longer than 64 KiB; is this a trace?", csv->path,
                     (uintmax_t)csv->line);
        return -1;
    }
    csv->at += out->len + (newline != NULL);
    if (out->len > 0 && out->at[out->len - 1] == '\r')
        out->len--;
    return *is_whole || out->len > 0;
}

static unsigned split(struct text line, struct text out[CW_CSV_COLUMNS])
{
    unsigned count = 0;

    for (;;) {
        const char *comma = memchr(line.at, ',', line.len);
        size_t len = comma != NULL ? (size_t)(comma - line.at) : line.len;

        if (count < CW_CSV_COLUMNS)
            out[count] = (struct text){line.at, len};
        count++;
        if (comma == NULL)
            return count;
        line = (struct text){comma + 1, line.len - len - 1};
    }
}

/* ---- the first line ---- */

static int read_header(struct cw_csv *csv)
{
    struct text line, cell[CW_CSV_COLUMNS];
    int is_whole, rc = next_line(csv, &line, &is_whole);

    if (rc < 0)
        return -1;
    csv->columns = rc > 0 ? split(line, cell) : 0;
    for (unsigned i = 0; i < csv->columns && csv->columns <= CW_CSV_COLUMNS; i++) {
        uint8_t column = CW_CSV_ACTION;

        while (column < CW_CSV_OTHER && !is_text(cell[i], column_names[column]))
            column++;
        csv->column[i] = column;
        csv->has[column] = 1;
    }
    if (csv->columns > CW_CSV_COLUMNS) {
        cw_cli_error("%s:1: not a trace: the first line has %u columns, but a trace has at most %d",
                     csv->path, csv->columns, CW_CSV_COLUMNS);
        return -1;
    }
    if (csv->has[CW_CSV_ACTION] && csv->has[CW_CSV_POINTER] && csv->has[CW_CSV_SIZE])
        return 0;
    cw_cli_error("%s:1: not a trace: the first line must name the columns Action, Pointer and "
                 "Size, as in RMM's log and CUWARDEN_TRACE files",
                 csv->path);
    return -1;
}

/* Accepts plain and compressed files. */
static gzFile open_file(const char *path)
{
    int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : open(path, O_RDONLY | O_CLOEXEC);
    gzFile file;

    if (fd < 0)
        return NULL;
    file = gzdopen(fd, "rb");
    if (file == NULL)
        close(fd);
    return file;
}

int cw_csv_open(struct cw_csv *csv, const char *path)
{
    memset(csv, 0, sizeof(*csv));
    csv->path = path;
    csv->file = open_file(path);
    if (csv->file == NULL) {
        cw_cli_error("cannot open '%s': %s", path, strerror(errno));
        return -1;
    }
    gzbuffer(csv->file, INFLATED);
    csv->buf = malloc(BUFFER);
    if (csv->buf == NULL) {
        cw_cli_error("not enough memory to read '%s'", path);
        cw_csv_close(csv);
        return -1;
    }
    if (read_header(csv) == 0)
        return 0;
    cw_csv_close(csv);
    return -1;
}

void cw_csv_close(struct cw_csv *csv)
{
    free(csv->buf);
    csv->buf = NULL;
    if (csv->file != NULL)
        gzclose(csv->file);
    csv->file = NULL;
}

/* ---- the others ---- */

static int read_cell(enum cw_csv_column column, struct text cell, struct cw_csv_event *out,
                     uint64_t *clock)
{
    switch (column) {
    case CW_CSV_ACTION:
        return read_word(cell, action_name, CW_ARRAY_LEN(action_names), &out->action);
    case CW_CSV_POINTER:
        return read_pointer(cell, &out->pointer);
    case CW_CSV_SIZE:
        return read_number(cell, 10, &out->bytes);
    case CW_CSV_TIME:
        return read_clock(cell, clock);
    case CW_CSV_NANOSECONDS:
        return read_number(cell, 10, &out->ns);
    case CW_CSV_DEVICE:
        return read_device(cell, &out->device);
    case CW_CSV_KIND:
        return read_word(cell, cw_kind_name, CW_KIND_COUNT, &out->kind);
    default:
        return 0;
    }
}

/* A time of day goes back at midnight; small steps back come from threads that overtook each other,
 * also across midnight. */
static void settle_time(struct cw_csv *csv, struct cw_csv_event *out, uint64_t clock)
{
    if (!csv->has[CW_CSV_NANOSECONDS]) {
        if (csv->day_ns != 0 && clock > csv->clock_ns && csv->clock_ns + DAY - clock < OVERTAKEN)
            clock = csv->clock_ns;
        if (clock + DAY / 2 < csv->clock_ns)
            csv->day_ns += DAY;
        csv->clock_ns = clock;
        out->ns = csv->day_ns + clock;
    }
    if (out->ns < csv->ns)
        out->ns = csv->ns;
    csv->ns = out->ns;
}

static int parse(struct cw_csv *csv, struct text line, struct cw_csv_event *out)
{
    struct text cell[CW_CSV_COLUMNS];
    unsigned count = split(line, cell);
    uint64_t clock = 0;

    if (count != csv->columns) {
        cw_cli_error("%s:%ju: this line has %u columns, but the first line has %u", csv->path,
                     (uintmax_t)csv->line, count, csv->columns);
        return -1;
    }
    *out = (struct cw_csv_event){.line = csv->line, .kind = CW_KIND_DEVICE};
    for (unsigned i = 0; i < count; i++) {
        if (read_cell(csv->column[i], cell[i], out, &clock) == 0)
            continue;
        cw_cli_error("%s:%ju: invalid %s '%.*s'", csv->path, (uintmax_t)csv->line,
                     column_names[csv->column[i]], (int)(cell[i].len < CLIP ? cell[i].len : CLIP),
                     cell[i].at);
        return -1;
    }
    settle_time(csv, out, clock);
    return 1;
}

static int is_incomplete(const struct cw_csv *csv, struct text line, int is_whole)
{
    struct text cell[CW_CSV_COLUMNS];

    return memchr(line.at, '\0', line.len) != NULL ||
           (!is_whole && split(line, cell) < csv->columns);
}

int cw_csv_next(struct cw_csv *csv, struct cw_csv_event *out)
{
    struct text line;
    int is_whole, rc;

    do {
        rc = csv->is_cut ? 0 : next_line(csv, &line, &is_whole);
        if (rc <= 0)
            return rc;
        if (is_incomplete(csv, line, is_whole)) {
            csv->is_cut = 1;
            return 0;
        }
    } while (line.len == 0);
    return parse(csv, line, out);
}
