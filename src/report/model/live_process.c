/* SPDX-License-Identifier: MIT */
/* The process, its devices and the gaps in its account, from a live layout. See live_parts.h. */
#include "report/model/error_name.h"
#include "report/model/live_parts.h"

#include <string.h>

#include "base/options/options.h"
#include "base/out.h"

#define ARGV_MAX       4096
#define ENV_MAX        16
#define DIAGNOSTIC_MAX 256
#define UUID_MAX       48

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* ---- the process ---- */

/* How it ended; quick_exit does not pass the status to its handlers. */
static void read_end(struct cw_live_model *live)
{
    const struct cw_live_header *self = live->view->self;
    static const struct {
        const char *name;
        uint8_t has_code;
    } ends[] = {[CW_EXIT_EXIT] = {"exit", 1},
                [CW_EXIT_QUICK_EXIT] = {"quick_exit", 0},
                [CW_EXIT_UNDERSCORE] = {"_exit", 1}};
    static const char *const states[] = {[CW_REPORT_PROCESS_UNKNOWN] = "unknown",
                                         [CW_REPORT_PROCESS_ALIVE] = CW_END_RUNNING,
                                         [CW_REPORT_PROCESS_DEAD] = "died",
                                         [CW_REPORT_PROCESS_EXITED] = "_exit",
                                         [CW_REPORT_PROCESS_KILLED] = CW_END_KILLED};
    struct cw_process_facts *process = &live->model.process;
    unsigned kind = LOAD(self->exit_kind);

    if (kind > CW_EXIT_RUNNING && kind <= CW_EXIT_UNDERSCORE) {
        process->end = ends[kind].name;
        process->has_exit_code = ends[kind].has_code;
        process->exit_code = LOAD(self->exit_code);
    } else {
        process->end = states[live->process];
    }
}

/* Strings that lie one after the other, each with its NUL. */
static uint32_t split(struct cw_live_model *live, uint32_t at, uint32_t count, const char **out)
{
    uint32_t end = cw_view_count(live->view, CW_TABLE_TEXT);
    uint32_t found = 0;

    while (found < count && at != 0 && at < end) {
        const char *text = cw_view_text(live->view, at);

        out[found++] = cw_live_model_text(live, text);
        at += (uint32_t)strlen(text) + 1;
    }
    return found;
}

static void read_argv(struct cw_live_model *live)
{
    const struct cw_live_header *self = live->view->self;
    struct cw_process_facts *process = &live->model.process;
    uint32_t count = self->argc < ARGV_MAX ? self->argc : ARGV_MAX;

    process->argv = cw_live_model_take(live, count, sizeof(*process->argv));
    if (process->argv)
        process->argc = split(live, self->argv, count, process->argv);
    process->is_argv_cut = self->is_argv_cut || count < self->argc;
}

/* "NAME=VALUE" */
static void read_env(struct cw_live_model *live)
{
    const struct cw_live_header *self = live->view->self;
    struct cw_process_facts *process = &live->model.process;
    const char *entry[ENV_MAX];
    uint32_t count = split(live, self->env, self->envc < ENV_MAX ? self->envc : ENV_MAX, entry);

    process->env = cw_live_model_take(live, count, sizeof(*process->env));
    for (uint32_t i = 0; process->env && i < count; i++) {
        const char *equals = strchr(entry[i], '=');

        if (equals)
            process->env[process->envc++] = (struct cw_report_variable){
                cw_live_model_copy(live, entry[i], (size_t)(equals - entry[i])), equals + 1};
    }
}

static const char *read_unseen(struct cw_live_model *live, const struct cw_live_header *header)
{
    size_t len = strnlen(header->unseen, sizeof(header->unseen));

    return len != 0 ? cw_live_model_text(live, cw_live_model_copy(live, header->unseen, len))
                    : NULL;
}

void cw_live_model_read_process(struct cw_live_model *live)
{
    const struct cw_live_header *header = cw_view_header(live->view), *self = live->view->self;
    uint64_t end_ns = LOAD(header->end_ns);

    live->model.schema = "cuwarden-report/1";
    live->model.tool = "cuwarden";
    live->model.version = live->version ? live->version : "";
    live->model.source = "";
    live->model.invalid_frees = LOAD(header->invalid_frees);
    live->model.process = (struct cw_process_facts){
        .pid = self->pid,
        .ppid = self->ppid,
        .init_error = LOAD(header->init_error),
        .unseen = read_unseen(live, header),
        .is_uncalled = header->unseen[0] != '\0' && header->is_uncalled == 1,
        .exe = cw_live_model_text_at(live, self->exe),
        .cwd = cw_live_model_text_at(live, self->cwd),
        .host = cw_live_model_text_at(live, self->host),
        .rank = cw_live_model_text_at(live, self->rank),
        .command = cw_live_model_text_at(live, self->command),
        .start_realtime_ns = self->start_realtime_ns,
        .end_realtime_ns = end_ns != 0 ? self->start_realtime_ns + end_ns : 0,
        .has_no_stacks = self->stacks_mode == CW_STACKS_OFF,
        .driver_version = self->driver_version};
    read_end(live);
    read_argv(live);
    read_env(live);
}

/* ---- devices ---- */

static const char *format_uuid(struct cw_live_model *live, const uint8_t *uuid)
{
    char text[UUID_MAX];
    size_t len = cw_format(text, sizeof(text), "GPU-");

    for (unsigned i = 0; i < 16; i++)
        len += cw_format(text + len, sizeof(text) - len,
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
    return cw_live_model_copy(live, text, len);
}

void cw_live_model_read_devices(struct cw_live_model *live)
{
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct cw_live_device *from = &cw_view_header(live->view)->device[i];
        struct cw_snapshot_device *device = &live->model.snapshot.device[i];

        if (!LOAD(from->known))
            continue;
        if (from->name[0] != '\0')
            device->name = cw_live_model_text(
                live,
                cw_live_model_copy(live, from->name, strnlen(from->name, sizeof(from->name))));
        device->uuid = format_uuid(live, from->uuid);
        device->total = from->total;
        device->shares_host = from->shares_host != 0;
        device->properties = from->properties;
        device->has_properties = from->properties.capability_major != 0;
    }
}

/* ---- gaps in the account ---- */

struct reason {
    uint64_t count; /* 0: it is none */
    uint8_t is_loss;
    const char *one, *many; /* formats with the count; `one` may have `text` instead */
    const char *text;
};

static const char *format_reason(const struct reason *reason, char *buf, size_t cap)
{
    if (reason->text)
        cw_format(buf, cap, reason->one, reason->text);
    else
        cw_format(buf, cap, reason->count == 1 ? reason->one : reason->many,
                  (uintmax_t)reason->count);
    return buf;
}

void cw_live_model_read_diagnostics(struct cw_live_model *live)
{
    const struct cw_live_header *header = cw_view_header(live->view);
    uint32_t disarmed = LOAD(header->disarmed), python = LOAD(header->python);
    int32_t init_error = LOAD(header->init_error);
    char error[CW_ERROR_NAME_MAX];
    /* Only a file lacks data: the process itself has all of it. */
    int is_cut = live->process != CW_REPORT_PROCESS_UNKNOWN && LOAD(header->cut);
    const struct reason reasons[] = {
        {init_error != 0, 0, "CUDA could not be used: cuInit returned %s", NULL,
         cw_error_format(error, sizeof(error), init_error)},
        {live->model.process.unseen != NULL, 1,
         "without what '%s' calls of CUDA: it was opened with RTLD_DEEPBIND, see CUWARDEN_DEEPBIND",
         NULL, live->model.process.unseen},
        {disarmed, 1, "it stopped early: %s", NULL, cw_live_model_text_at(live, disarmed)},
        {LOAD(header->lost_blocks), 1, "%ju allocation did not fit in the records",
         "%ju allocations did not fit in the records", NULL},
        {LOAD(header->untracked_frees), 1, "%ju free of memory whose allocation was not seen",
         "%ju frees of memory whose allocation was not seen", NULL},
        {(uint64_t)is_cut, 1, "the live file could not grow; later data is missing", NULL, NULL},
        {LOAD(header->events_dropped), 1, "%ju event did not fit in the records",
         "%ju events did not fit in the records", NULL},
        {python, 0, "%s: native frames only", NULL, cw_live_model_text_at(live, python)},
    };
    const unsigned count = sizeof(reasons) / sizeof(reasons[0]);
    struct cw_report_model *model = &live->model;

    model->diagnostic = cw_live_model_take(live, count, sizeof(*model->diagnostic));
    for (unsigned i = 0; model->diagnostic && i < count; i++) {
        char buf[DIAGNOSTIC_MAX];
        const char *text;

        if (reasons[i].count == 0)
            continue;
        text = format_reason(&reasons[i], buf, sizeof(buf));
        text = cw_live_model_text(live, cw_live_model_copy(live, text, strlen(text)));
        model->diagnostic[model->diagnostics++] =
            (struct cw_report_diagnostic){text, reasons[i].is_loss};
    }
}
