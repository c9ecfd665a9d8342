/* SPDX-License-Identifier: MIT */
/* Who is asked for idle memory, and how long that may take. See neighbours.h. */
#include "core/request/neighbours.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/out.h"
#include "base/sys.h"
#include "core/account/idle.h"
#include "core/device/device.h"
#include "core/limits/pressure.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "live/foreign_open.h"
#include "live/file_lock.h"
#include "live/live_dir.h"
#include "live/mailbox.h"
#include "live/view.h"

#define UNKNOWN    ((uint64_t)64 << 20) /* what a request of unknown size asks for */
#define FOUND_MAX  64
#define FILES_MAX  512 /* looked at in one search */
#define RUNS_DEEP  3
#define LEFT_ALONE 16
#define POLL_NS    UINT64_C(200000)
/* Who has not answered by then does not keep others from being asked. */
#define SLOW_NS UINT64_C(15000000)
/* One that has not answered is not asked again for so long, unless it has been at work since; one
 * that was nudged is not nudged again. */
#define ALONE_NS UINT64_C(5000000000)
#define NUDGE_NS UINT64_C(1000000000) /* between two */

struct neighbour {
    uint64_t device, inode; /* of its file */
    int fd;
    uint8_t ordinal; /* of our device, there */
    uint8_t is_asked, is_done;
    uint32_t number;        /* of the request */
    uint64_t idle;          /* as it says */
    uint64_t before, given; /* what it gave to neighbours before; because of this request */
    uint64_t asked_ns;
};

/* Who is not to be asked, or nudged, and what it had idle and had given when that was found. */
struct alone {
    uint64_t device, inode, until_ns;
    uint64_t idle, before;
};

enum purpose { ASKED, NUDGED, PURPOSES };

struct search {
    enum purpose purpose;
    uint8_t uuid[16];
    uint64_t end_ns;
    unsigned files, depth;
    size_t named, len; /* of path: the directory to search; as it stands */
    char path[CW_PLACE_MAX];
    struct cw_live_header *header;     /* a copy, of the file in hand */
    struct neighbour found[FOUND_MAX]; /* most idle first */
    unsigned count;
};

static struct {
    const struct cw_options *options; /* NULL: nobody asks */
    _Atomic int busy;                 /* a thread searches or asks; all below is its own */
    struct search search;
    struct alone alone[PURPOSES][LEFT_ALONE];
    unsigned next_alone[PURPOSES];
    uint64_t nudge_ns[CW_MAX_DEVICES];
} self;

void cw_neighbours_init(const struct cw_options *options)
{
    self.options =
        options->neighbours == CW_NEIGHBOURS_ON && options->mode == CW_MODE_POOL ? options : NULL;
}

static void close_all(void)
{
    for (unsigned i = 0; i < self.search.count; i++) {
        int fd = self.search.found[i].fd;

        self.search.found[i].fd = -1;
        if (fd >= 0)
            cw_sys_close(fd);
    }
    self.search.count = 0;
}

/* Another thread of the parent may have been asking; its locks are its own. */
void cw_neighbours_reset(void)
{
    if (atomic_load(&self.busy))
        close_all();
    memset(&self, 0, sizeof(self));
}

static void rest(uint64_t ns)
{
    struct timespec moment = {.tv_nsec = (long)ns};

    syscall(SYS_nanosleep, &moment, NULL); /* the function is a cancellation point */
}

/* ---- who is left alone ---- */

/* A request that has found no memory asks whoever has changed since, whatever came of a nudge. */
static int is_left_alone(const struct search *search, const struct neighbour *neighbour)
{
    for (unsigned i = 0; i < LEFT_ALONE; i++) {
        const struct alone *alone = &self.alone[search->purpose][i];

        if (alone->inode == neighbour->inode && alone->device == neighbour->device &&
            cw_clock_ns() < alone->until_ns)
            return search->purpose == NUDGED ||
                   (alone->idle == neighbour->idle && alone->before == neighbour->before);
    }
    return 0;
}

static void leave_alone(enum purpose purpose, const struct neighbour *neighbour)
{
    struct alone *alone = &self.alone[purpose][self.next_alone[purpose]++ % LEFT_ALONE];

    *alone = (struct alone){.device = neighbour->device,
                            .inode = neighbour->inode,
                            .until_ns = cw_clock_ns() + ALONE_NS,
                            .idle = neighbour->idle,
                            .before = neighbour->before};
}

/* ---- who is there ---- */

static int is_own(const struct stat *info)
{
    const struct cw_backing *backing = &cw_session.arena.backing;

    return info->st_ino == backing->inode && info->st_dev == backing->device;
}

/* Our device, as the process counts it: CW_MAX_DEVICES if it does not know it. */
static unsigned find_device(const struct search *search)
{
    unsigned i = 0;

    while (i < CW_MAX_DEVICES && (atomic_load(&search->header->device[i].known) == 0 ||
                                  memcmp(search->header->device[i].uuid, search->uuid, 16) != 0))
        i++;
    return i;
}

/* 1 if it has something to give. Its file is the user's, and its process runs. */
static int read_header(const struct search *search, struct neighbour *neighbour)
{
    struct cw_live_header *header = search->header;
    struct cw_live_sums sums;
    struct cw_view view;
    unsigned ordinal;

    if (cw_sys_read_at(neighbour->fd, header, sizeof(*header), 0) < sizeof(*header) ||
        cw_view_open(&view, header, sizeof(*header)) != 0 || !header->pool_mode ||
        atomic_load(&header->exit_kind) != CW_EXIT_RUNNING)
        return 0;
    ordinal = find_device(search);
    if (ordinal == CW_MAX_DEVICES)
        return 0;
    sums = cw_view_device_live(&view, ordinal);
    neighbour->ordinal = (uint8_t)ordinal;
    neighbour->idle = sums.held > sums.live ? sums.held - sums.live : 0;
    neighbour->before =
        atomic_load(&header->device[ordinal].pool.released[CW_RELEASE_NEIGHBOUR].bytes);
    return neighbour->idle != 0;
}

static int is_candidate(const struct search *search, struct neighbour *neighbour, uint32_t uid)
{
    struct stat info;

    if (uid != geteuid() || cw_sys_stat(neighbour->fd, &info) != 0 || is_own(&info) ||
        cw_file_lock_is_claimed(neighbour->fd) != 1)
        return 0;
    neighbour->device = info.st_dev;
    neighbour->inode = info.st_ino;
    return read_header(search, neighbour) && !is_left_alone(search, neighbour);
}

/* The same file may be found twice, where a directory is named twice. */
static int is_known(const struct search *search, const struct neighbour *neighbour)
{
    for (unsigned i = 0; i < search->count; i++)
        if (search->found[i].inode == neighbour->inode &&
            search->found[i].device == neighbour->device)
            return 1;
    return 0;
}

/* In its place by what it has idle. Of too many the last one is closed. */
static void keep(struct search *search, struct neighbour neighbour)
{
    for (unsigned i = 0; i < search->count; i++)
        if (neighbour.idle > search->found[i].idle) {
            struct neighbour other = search->found[i];

            search->found[i] = neighbour;
            neighbour = other;
        }
    if (search->count < FOUND_MAX)
        search->found[search->count++] = neighbour;
    else
        cw_sys_close(neighbour.fd);
}

static void look_at_file(struct search *search)
{
    struct neighbour neighbour = {.fd = -1};
    uint32_t uid = 0;
    char why[64];

    search->files++;
    neighbour.fd = cw_foreign_open(search->path, search->named, O_RDWR, CW_FOREIGN_OWN, &uid, why,
                                   sizeof(why));
    if (neighbour.fd < 0)
        return;
    if (is_candidate(search, &neighbour, uid) && !is_known(search, &neighbour))
        keep(search, neighbour);
    else
        cw_sys_close(neighbour.fd);
}

static void look_at_directory(struct search *search);

static int look_at_entry(void *of, const char *name)
{
    struct search *search = of;
    size_t len = search->len,
           more = cw_format(search->path + len, sizeof(search->path) - len, "/%s", name);

    if (len + more < sizeof(search->path)) {
        search->len = len + more;
        if (name[0] != '.' && cw_live_dir_is_file(name))
            look_at_file(search);
        else if (cw_live_dir_is_run(name) && search->depth < RUNS_DEEP)
            look_at_directory(search);
    }
    search->len = len;
    search->path[len] = '\0';
    return search->files >= FILES_MAX || cw_clock_ns() >= search->end_ns;
}

static void look_at_directory(struct search *search)
{
    int dir = cw_sys_open(search->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

    if (dir < 0)
        return;
    search->depth++;
    cw_live_dir_each(dir, look_at_entry, search);
    search->depth--;
    cw_sys_close(dir);
}

/* Without the directories of runs at its end: processes of other runs lie beside them. */
static void look_beside_own(struct search *search)
{
    const struct cw_backing *backing = &cw_session.arena.backing;
    char *slash;

    cw_format(search->path, sizeof(search->path), "%s", backing->path);
    slash = strrchr(search->path, '/');
    while (slash != NULL) {
        *slash = '\0';
        slash = strrchr(search->path, '/');
        if (slash == NULL || !cw_live_dir_is_run(slash + 1))
            break;
    }
    search->len = search->named = strlen(search->path);
    look_at_directory(search);
}

static void look_by_default(struct search *search, unsigned which)
{
    struct stat info;

    if (cw_live_dir_default(which, geteuid(), self.options->tmpdir, search->path,
                            sizeof(search->path)) != 0 ||
        cw_sys_stat_path(search->path, &info) != 0 || info.st_uid != geteuid())
        return;
    search->len = search->named = strlen(search->path);
    look_at_directory(search);
}

/* Takes a hundred microseconds or so: each file costs an open, a look at its lock, and its header.
 */
static void search_all(uint8_t device, enum purpose purpose, uint64_t end_ns)
{
    struct search *search = &self.search;

    search->purpose = purpose;
    search->count = search->files = search->depth = 0;
    search->end_ns = end_ns;
    memcpy(search->uuid, cw_device_state(device)->uuid, sizeof(search->uuid));
    search->header = cw_mem_alloc(sizeof(*search->header));
    if (search->header == NULL)
        return;
    for (unsigned i = 0; i < CW_PLACE_DEFAULTS; i++)
        look_by_default(search, i);
    look_beside_own(search);
    cw_mem_free(search->header, sizeof(*search->header));
    search->header = NULL;
}

/* Only a process that can be asked itself asks. */
static int may_ask(uint8_t device)
{
    int state = atomic_load(&cw_session.arena.backing.state);

    return self.options != NULL && device < CW_MAX_DEVICES && state != CW_BACKING_NONE &&
           state != CW_BACKING_GONE && cw_device_describe(device);
}

/* ---- asking ---- */

static struct cw_live_neighbours *counters(uint8_t device)
{
    return &cw_device_at(device)->memory.neighbours;
}

/* 0: it was asked. -1, and it is not done: somebody else asks it at this moment. */
static int ask(uint8_t device, struct neighbour *neighbour, uint64_t bytes)
{
    struct cw_mail mail = {
        .what = CW_CONTROL_LEND, .device = neighbour->ordinal, .argument = bytes, .subject = ""};

    if (cw_mailbox_lock(neighbour->fd) != 0)
        return -1;
    neighbour->is_asked = 1;
    neighbour->asked_ns = cw_clock_ns();
    if (cw_mailbox_ask(neighbour->fd, &mail, &neighbour->number) != 0) {
        cw_mailbox_unlock(neighbour->fd);
        neighbour->is_done = 1;
        return -1;
    }
    atomic_fetch_add(&counters(device)->asked, 1);
    return 0;
}

/* It may still be giving when it has answered: in the frees of its own program. */
static void listen_to(struct neighbour *neighbour)
{
    uint64_t now = 0;
    size_t at = CW_MAILBOX_AT(device[0]) + neighbour->ordinal * sizeof(struct cw_live_device) +
                offsetof(struct cw_live_device, pool.released[CW_RELEASE_NEIGHBOUR].bytes);
    int is_answered = cw_mailbox_is_answered(neighbour->fd, neighbour->number);

    (void)cw_sys_read_at(neighbour->fd, &now, sizeof(now), at);
    neighbour->given = now > neighbour->before ? now - neighbour->before : 0;
    if (is_answered)
        neighbour->is_done =
            cw_mailbox_get(neighbour->fd, CW_MAILBOX_CONTROL(result)) != (uint32_t)EINPROGRESS;
}

/* What was given, and what may still come of those that were asked lately. */
static uint64_t expected(uint64_t now_ns, uint64_t *out_given, unsigned *out_open)
{
    uint64_t sum = 0;

    *out_given = 0;
    *out_open = 0;
    for (unsigned i = 0; i < self.search.count; i++) {
        const struct neighbour *neighbour = &self.search.found[i];
        uint64_t coming = neighbour->given;

        if (neighbour->is_asked && !neighbour->is_done) {
            ++*out_open;
            if (now_ns < neighbour->asked_ns + SLOW_NS && neighbour->idle > coming)
                coming = neighbour->idle;
        }
        if (__builtin_add_overflow(*out_given, neighbour->given, out_given))
            *out_given = UINT64_MAX;
        if (__builtin_add_overflow(sum, coming, &sum))
            sum = UINT64_MAX;
    }
    return sum;
}

/* Asks the next one that nobody else asks. 1: it was asked; 0: *out_left are to be asked later. */
static int ask_next(uint8_t device, uint64_t bytes, unsigned *out_left)
{
    *out_left = 0;
    for (unsigned i = 0; i < self.search.count; i++) {
        if (self.search.found[i].is_asked)
            continue;
        if (ask(device, &self.search.found[i], bytes) == 0)
            return 1;
        *out_left += !self.search.found[i].is_done;
    }
    return 0;
}

/* Asks one after the other until enough was given, or all that may still give have said no, or the
 * time is over. */
static uint64_t collect(uint8_t device, uint64_t need)
{
    uint64_t given, now;

    while ((now = cw_clock_ns()) < self.search.end_ns && !cw_gate_is_over()) {
        unsigned open, left = 0;
        uint64_t sum = expected(now, &given, &open);

        if (given >= need)
            break;
        if (sum < need && ask_next(device, need - given, &left))
            continue;
        if (open == 0 && left == 0)
            break;
        rest(POLL_NS);
        for (unsigned i = 0; i < self.search.count; i++)
            if (self.search.found[i].is_asked && !self.search.found[i].is_done)
                listen_to(&self.search.found[i]);
    }
    (void)expected(now, &given, &(unsigned){0});
    return given;
}

static void take_leave(uint8_t device)
{
    for (unsigned i = 0; i < self.search.count; i++) {
        struct neighbour *neighbour = &self.search.found[i];

        if (neighbour->number == 0)
            continue;
        if (!cw_mailbox_is_answered(neighbour->fd, neighbour->number)) {
            (void)cw_mailbox_withdraw(neighbour->fd, neighbour->number);
            atomic_fetch_add(&counters(device)->silent, 1);
            leave_alone(ASKED, neighbour);
        }
        cw_mailbox_unlock(neighbour->fd);
    }
}

/* What all together say that they have. */
static int is_enough(uint64_t need)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < self.search.count && sum < need; i++)
        if (__builtin_add_overflow(sum, self.search.found[i].idle, &sum))
            return 1;
    return sum >= need;
}

static uint64_t missing(uint8_t device, uint64_t bytes)
{
    uint64_t left;

    if (bytes == 0)
        return UNKNOWN;
    if (cw_device_ask_free(device, &left) != 0)
        return bytes;
    left += cw_idle_bytes(device);              /* kept, as it would not be enough by itself */
    return left < bytes ? bytes - left : bytes; /* else free, but in pieces */
}

static uint64_t search_and_ask(uint8_t device, uint64_t bytes, int is_all, uint64_t end_ns)
{
    uint64_t given = 0, need = is_all ? UINT64_MAX : missing(device, bytes);

    search_all(device, ASKED, end_ns);
    if (is_all || bytes == 0 || is_enough(need))
        given = collect(device, need);
    take_leave(device);
    close_all();
    return given;
}

/* 1: another thread has asked meanwhile. */
static int wait_for_other(uint64_t end_ns)
{
    while (atomic_load(&self.busy) && cw_clock_ns() < end_ns && !cw_gate_is_over())
        rest(POLL_NS);
    return !atomic_load(&self.busy);
}

uint64_t cw_neighbours_ask(uint8_t device, uint64_t bytes, int is_all, uint64_t *left_ns)
{
    uint64_t start = cw_clock_ns(), end = start + *left_ns, given, passed;
    int saved = errno; /* the program's */

    if (*left_ns == 0 || !may_ask(device))
        return 0;
    if (atomic_exchange(&self.busy, 1)) {
        given = (uint64_t)wait_for_other(end);
    } else {
        given = search_and_ask(device, bytes, is_all, end);
        atomic_store(&self.busy, 0);
    }
    passed = cw_clock_ns() - start;
    atomic_fetch_add(&counters(device)->wait_ns, passed);
    *left_ns = passed < *left_ns ? *left_ns - passed : 0;
    errno = saved;
    return given;
}

/* ---- under pressure ---- */

/* One at a time: if memory is still scarce afterwards, another one has most. */
static void nudge(uint8_t device)
{
    search_all(device, NUDGED, cw_clock_ns() + SLOW_NS);
    if (self.search.count > 0 && self.search.found[0].idle > cw_idle_bytes(device)) {
        struct neighbour *neighbour = &self.search.found[0];

        if (ask(device, neighbour, 0) == 0)
            cw_mailbox_unlock(neighbour->fd);
        leave_alone(NUDGED, neighbour);
    }
    close_all();
}

void cw_neighbours_nudge(void)
{
    uint64_t now = cw_clock_ns();

    if (atomic_exchange(&self.busy, 1))
        return;
    for (unsigned i = 0; i < CW_MAX_DEVICES; i++) {
        uint8_t device = (uint8_t)i;

        if (atomic_load(&cw_device_state(device)->known) == 0 ||
            !cw_pressure_is_of_device(device) || now < self.nudge_ns[i] || !may_ask(device))
            continue;
        self.nudge_ns[i] = now + NUDGE_NS;
        nudge(device);
    }
    atomic_store(&self.busy, 0);
}
