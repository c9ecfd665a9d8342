/* SPDX-License-Identifier: MIT */
/*
 * Which device a program gets. See pick.h.
 *
 * The notes lie in a file of the user's own beside the live files, under a lock while a choice is
 * made. Where it cannot be had, the choice is made without them.
 */
#include "cli/devices/pick.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/device_reserve.h"
#include "base/estimate/estimate.h"
#include "base/options/options.h"
#include "base/out.h"
#include "base/sys.h"
#include "cli/ui/message.h"
#include "live/live_dir.h"

#define NOTES_NAME "picks"
#define LOCK_TRIES 1000
#define LOCK_NS    5000000
#define SIZE_TEXT  24
#define WHY_MAX    320

/* ---- the choice ---- */

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static struct cw_pick_doubt doubt_of(const struct cw_picks *picks, const char *uuid)
{
    struct cw_pick_doubt doubt = {.uuid = uuid};

    for (unsigned i = 0; i < picks->count; i++) {
        const struct cw_pick_note *note = &picks->note[i];

        if (strcmp(note->uuid, uuid) != 0)
            continue;
        doubt.starts++;
        doubt.bytes = cw_plus(doubt.bytes, note->bytes);
        doubt.time_ns = note->time_ns;
    }
    return doubt;
}

static uint64_t room_of(const struct cw_device_memory *device, const struct cw_picks *picks)
{
    uint64_t room = device->free;

    for (unsigned i = 0; i < picks->count; i++)
        if (strcmp(picks->note[i].uuid, device->uuid) == 0)
            room = minus(room, picks->note[i].bytes);
    return room;
}

static int is_chosen(const struct cw_pick *pick, unsigned device)
{
    for (unsigned i = 0; i < pick->count; i++)
        if (pick->device[i] == device)
            return 1;
    return 0;
}

/* The next best, the first of equals. -1: none. A process can use one MIG instance at most (CUDA C
 * Programming Guide, "Environment Variables"). */
static int next_best(const struct cw_devices *devices, const struct cw_picks *picks, uint64_t bytes,
                     unsigned count, const struct cw_pick *pick)
{
    int best = -1;

    for (unsigned i = 0; i < devices->count; i++) {
        const struct cw_device_memory *device = &devices->device[i];

        if (device->free < bytes || is_chosen(pick, i) || (count > 1 && device->is_mig))
            continue;
        if (best < 0 || room_of(device, picks) > room_of(&devices->device[best], picks))
            best = (int)i;
    }
    return best;
}

int cw_pick_choose(const struct cw_devices *devices, const struct cw_picks *picks, uint64_t bytes,
                   unsigned count, struct cw_pick *out)
{
    *out = (struct cw_pick){.count = 0};
    while (out->count < count) {
        int best = next_best(devices, picks, bytes, count, out);

        if (best < 0)
            return -1;
        out->device[out->count++] = (unsigned)best;
        if (room_of(&devices->device[best], picks) < bytes && !out->doubt.uuid)
            out->doubt = doubt_of(picks, devices->device[best].uuid);
    }
    return 0;
}

static void forget_old(struct cw_picks *picks, uint64_t now_ns)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < picks->count; i++)
        if (picks->note[i].time_ns <= now_ns && now_ns - picks->note[i].time_ns < CW_PICK_MEMORY_NS)
            picks->note[kept++] = picks->note[i];
    picks->count = kept;
}

void cw_picks_note(struct cw_picks *picks, const struct cw_devices *devices,
                   const struct cw_pick *pick, uint64_t bytes, uint64_t now_ns)
{
    forget_old(picks, now_ns);
    for (unsigned i = 0; i < pick->count && picks->count < CW_PICKS_MAX; i++) {
        struct cw_pick_note *note = &picks->note[picks->count++];

        *note = (struct cw_pick_note){.time_ns = now_ns, .bytes = bytes};
        memcpy(note->uuid, devices->device[pick->device[i]].uuid, sizeof(note->uuid));
    }
}

uint64_t cw_pick_room(uint64_t need, uint64_t reserve)
{
    return cw_plus(need, reserve == UINT64_MAX ? cw_device_reserve(need) : reserve);
}

/* ---- the file ---- */

static int lock(int fd)
{
    const struct timespec moment = {.tv_nsec = LOCK_NS};

    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -1;
        nanosleep(&moment, NULL);
    }
    return -1;
}

/* A file of the user's own there; -1: none. */
static int open_in(const char *directory, int is_private)
{
    int dir = cw_live_dir_open(directory, is_private), fd;
    struct stat info;

    if (dir < 0)
        return -1;
    fd = cw_sys_open_at(dir, NOTES_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    cw_sys_close(dir);
    if (fd < 0 || (cw_sys_stat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                   info.st_uid == geteuid() && lock(fd) == 0))
        return fd;
    cw_sys_close(fd);
    return -1;
}

/* Locked, where live files go; -1: there is no place. */
static int open_notes(void)
{
    static struct cw_options options;
    char directory[CW_PLACE_MAX];
    const char *named;
    int fd = -1;

    cw_options_parse(environ, 1, &options, NULL);
    if (strcmp(options.live, "off") == 0)
        return -1;
    named = cw_live_dir_named(options.live, directory, sizeof(directory));
    if (named)
        return open_in(named, 0);
    for (unsigned i = 0; i < CW_PLACE_DEFAULTS && fd < 0; i++)
        if (cw_live_dir_default(i, geteuid(), options.tmpdir, directory, sizeof(directory)) == 0)
            fd = open_in(directory, 1);
    return fd;
}

static void read_notes(int fd, struct cw_picks *picks)
{
    ssize_t got = fd >= 0 ? pread(fd, picks->note, sizeof(picks->note), 0) : 0;

    picks->count = got > 0 ? (unsigned)((size_t)got / sizeof(*picks->note)) : 0;
    for (unsigned i = 0; i < picks->count; i++)
        picks->note[i].uuid[CW_DEVICE_UUID_MAX - 1] = '\0';
    forget_old(picks, cw_clock_real_ns());
}

static void write_notes(int fd, const struct cw_picks *picks)
{
    size_t len = picks->count * sizeof(*picks->note);

    if (cw_write(fd, picks->note, len, 0) == 0) /* from its beginning: it was opened for this */
        (void)!ftruncate(fd, (off_t)len);
}

/* ---- for this environment ---- */

/* "no GPU has"; of a single one that the user named, "GPU 1 does not have". */
static void say_who(const struct cw_devices *devices, unsigned count, char *text, size_t cap)
{
    char label[32];

    if (count > 1)
        snprintf(text, cap, "fewer than %u GPUs have", count);
    else if (devices->count == 1)
        snprintf(text, cap, "%s does not have",
                 cw_device_label(&devices->device[0], label, sizeof(label)));
    else
        snprintf(text, cap, "no GPU has");
}

static void say_full(const struct cw_devices *devices, uint64_t need, uint64_t bytes,
                     unsigned count)
{
    char size[4][SIZE_TEXT], label[32], who[64];

    say_who(devices, count, who, sizeof(who));
    cw_cli_error("%s %s free: %s, and %s in reserve for driver and context", who,
                 cw_format_size(size[0], SIZE_TEXT, bytes),
                 cw_format_size(size[1], SIZE_TEXT, need),
                 cw_format_size(size[2], SIZE_TEXT, bytes - need));
    for (unsigned i = 0; i < devices->count; i++) {
        const struct cw_device_memory *device = &devices->device[i];

        cw_cli_error("%s: %s free of %s  %s  %s", cw_device_label(device, label, sizeof(label)),
                     cw_format_size(size[0], SIZE_TEXT, device->free),
                     cw_format_size(size[1], SIZE_TEXT, device->total), device->name, device->uuid);
    }
}

static void warn_of_doubt(const struct cw_pick_doubt *doubt)
{
    char size[SIZE_TEXT];
    unsigned ago = (unsigned)(minus(cw_clock_real_ns(), doubt->time_ns) / 1000000000);

    cw_format_size(size, sizeof(size), doubt->bytes);
    if (doubt->starts == 1)
        cw_cli_warn("%s was picked for another start (%s) %u seconds ago; it may not have "
                    "allocated yet, and may not fit beside this one",
                    doubt->uuid, size, ago);
    else
        cw_cli_warn("%s was picked for %u other starts (%s together), the last one %u seconds "
                    "ago; they may not have allocated yet, and may not fit beside this one",
                    doubt->uuid, doubt->starts, size, ago);
}

static int look(const struct cw_pick_request *request, struct cw_devices *devices)
{
    char why[WHY_MAX];

    if (cw_devices_look(devices) != 0)
        return -1;
    if (!request->among || cw_devices_keep(devices, request->among, why, sizeof(why)) == 0)
        return 0;
    cw_cli_error("%s %s", request->named_by, why);
    return -1;
}

int cw_pick_now(const struct cw_pick_request *request, struct cw_devices *devices,
                struct cw_pick *out)
{
    static struct cw_picks picks;
    uint64_t room = cw_pick_room(request->need, request->reserve);
    uint64_t bytes = request->need != 0 ? room : 0; /* else any has enough */
    unsigned count = request->count;
    int notes, rc;

    if (look(request, devices) != 0)
        return -1;
    if (count == 0)
        count = devices->count;
    notes = open_notes();
    read_notes(notes, &picks);
    rc = cw_pick_choose(devices, &picks, bytes, count, out);
    if (rc != 0)
        say_full(devices, request->need, bytes, count);
    else if (out->doubt.uuid)
        warn_of_doubt(&out->doubt);
    if (rc == 0 && notes >= 0) {
        cw_picks_note(&picks, devices, out, room, cw_clock_real_ns());
        write_notes(notes, &picks);
    }
    if (notes >= 0)
        cw_sys_close(notes);
    return rc == 0 ? 0 : 1;
}

const char *cw_pick_uuids(const struct cw_devices *devices, const struct cw_pick *pick, char *buf,
                          size_t cap)
{
    size_t len = 0;

    buf[0] = '\0';
    for (unsigned i = 0; i < pick->count; i++)
        len += cw_format(buf + len, cap - len, "%s%s", i > 0 ? "," : "",
                         devices->device[pick->device[i]].uuid);
    return buf;
}
