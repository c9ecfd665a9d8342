/* SPDX-License-Identifier: MIT */
/* Answers requests of other processes. See control.h. */
#include "core/control/control.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/out.h"
#include "core/account/budget.h"
#include "core/control/adjust.h"
#include "core/device/device.h"
#include "core/process/gate.h"
#include "core/process/host.h"
#include "core/cache/retention.h"
#include "core/pending/pending.h"
#include "core/process/session.h"

#define WHOLE 10000u /* shares are in parts of this */

struct request {
    uint32_t what, device, is_share, asker;
    uint64_t argument;
    unsigned first, end; /* the devices that it is about */
    char subject[sizeof(((struct cw_live_control *)0)->subject)];
};

struct answer {
    int result; /* 0 or an errno */
    uint64_t bytes, blocks;
    struct cw_out text;
};

static void refuse(struct answer *answer, int error, const char *why)
{
    answer->result = error;
    answer->text.len = 0;
    cw_out_string(&answer->text, why);
}

/* ---- devices ---- */

/* Blocks released so far, for whatever reason. The difference of two sums also includes what other
 * threads released meanwhile. */
static uint64_t released_blocks(const struct request *request)
{
    uint64_t blocks = 0;

    for (unsigned i = request->first; i < request->end; i++) {
        const struct cw_live_pool *pool = &cw_device_at((uint8_t)i)->pool;

        for (unsigned why = 0; why < CW_RELEASE_COUNT; why++)
            blocks += atomic_load(&pool->released[why].blocks);
    }
    return blocks;
}

/* The devices of the request. -1: *answer has the reason. */
static int find_devices(struct request *request, struct answer *answer)
{
    unsigned count = 0;
    int rc = -1;

    if (cw_gate_enter()) {
        rc = cw_session.ops->device_count(&count);
        cw_gate_leave();
    }
    if (rc != 0 || count == 0) {
        refuse(answer, EAGAIN, "the driver does not say which devices there are; ask again");
        return -1;
    }
    count = count < CW_MAX_DEVICES ? count : CW_MAX_DEVICES;
    if (request->device == CW_CONTROL_ALL_DEVICES) {
        request->end = count;
        return 0;
    }
    if (request->device >= count) {
        answer->result = ENODEV;
        cw_out_printf(&answer->text, "it has no device %u; its devices are 0 to %u",
                      (unsigned)request->device, count - 1);
        return -1;
    }
    request->first = request->device;
    request->end = request->device + 1;
    return 0;
}

static void say_devices(const struct request *request, struct answer *answer)
{
    if (request->end - request->first == 1)
        cw_out_printf(&answer->text, "device %u: ", request->first);
    else
        cw_out_printf(&answer->text, "devices 0 to %u: ", request->end - 1);
}

static void say_size(struct answer *answer, uint64_t bytes)
{
    char size[24];

    cw_out_string(&answer->text, cw_format_size(size, sizeof(size), bytes));
}

static void say_given_back(struct answer *answer)
{
    cw_out_printf(&answer->text, "gave back %ju block%s, ", (uintmax_t)answer->blocks,
                  answer->blocks == 1 ? "" : "s");
    say_size(answer, answer->bytes);
}

static void say_more(struct answer *answer, uint64_t busy)
{
    if (busy == 0)
        return;
    cw_out_string(&answer->text, "; ");
    say_size(answer, busy);
    cw_out_string(&answer->text, " more once the device is done with it");
}

/* ---- what may be asked ---- */

static void give_back(const struct request *request, struct answer *answer, enum cw_trim how)
{
    uint64_t busy = 0;

    for (unsigned i = request->first; i < request->end; i++) {
        answer->bytes += cw_adjust_trim((uint8_t)i, how);
        busy += cw_pending_bytes((uint8_t)i);
    }
    answer->blocks = released_blocks(request) - answer->blocks;
    say_given_back(answer);
    say_more(answer, busy);
}

static void trim(const struct request *request, struct answer *answer)
{
    if (request->argument > 1)
        refuse(answer, EINVAL, "no such kind of trimming");
    else
        give_back(request, answer, request->argument == 1 ? CW_TRIM_ALL : CW_TRIM_READY);
}

static void shrink(const struct request *request, struct answer *answer)
{
    give_back(request, answer, CW_TRIM_SHRINK);
}

static void clear(const struct request *request, struct answer *answer)
{
    give_back(request, answer, CW_TRIM_CLEAR);
}

static void dump(const struct request *request, struct answer *answer)
{
    struct cw_out *text = &answer->text;

    if (cw_host->dump == NULL) {
        refuse(answer, ENOTSUP, "it cannot write reports while it runs");
        return;
    }
    answer->result = cw_host->dump(request->asker, text->buf, text->cap);
    text->len = strnlen(text->buf, text->cap);
}

/* The bytes of the request on this device. -1: a share of a device of unknown size. */
static int amount(const struct request *request, uint8_t device, uint64_t *out_bytes)
{
    *out_bytes = request->argument;
    if (!request->is_share)
        return 0;
    if (!cw_device_describe(device))
        return -1;
    *out_bytes =
        (uint64_t)((unsigned __int128)cw_device_state(device)->total * request->argument / WHOLE);
    return 0;
}

static int is_amount(const struct request *request)
{
    return request->is_share == 0 || (request->is_share == 1 && request->argument <= WHOLE);
}

static void set(const struct request *request, struct answer *answer, const char *name,
                uint64_t (*set_one)(uint8_t device, uint64_t bytes))
{
    uint64_t bytes = 0;

    if (!is_amount(request)) {
        refuse(answer, EINVAL, "a share is at most all of the device");
        return;
    }
    for (unsigned i = request->first; i < request->end; i++) {
        if (amount(request, (uint8_t)i, &bytes) != 0) {
            refuse(answer, EAGAIN, "the driver does not say how large the device is; ask again");
            return;
        }
        answer->bytes += set_one((uint8_t)i, bytes);
    }
    answer->blocks = released_blocks(request) - answer->blocks;
    say_devices(request, answer);
    cw_out_printf(&answer->text, "%s ", name);
    if (request->is_share)
        cw_out_printf(&answer->text, "%u.%02u%%", (unsigned)(request->argument / 100),
                      (unsigned)(request->argument % 100));
    else
        say_size(answer, bytes);
    cw_out_string(&answer->text, ", ");
    say_given_back(answer);
}

static void limit(const struct request *request, struct answer *answer)
{
    if (request->argument != 0 || request->is_share) {
        set(request, answer, "limit", cw_adjust_limit);
        return;
    }
    for (unsigned i = request->first; i < request->end; i++)
        cw_adjust_limit((uint8_t)i, 0);
    answer->blocks = 0;
    say_devices(request, answer);
    cw_out_string(&answer->text, "no limit");
}

static void pool_max(const struct request *request, struct answer *answer)
{
    uint64_t excess = 0;

    if (cw_session.options->mode != CW_MODE_POOL) {
        refuse(answer, ENOTSUP, "it has no pool (CUWARDEN_MODE=track)");
        return;
    }
    if (request->device == CW_CONTROL_ALL_DEVICES && !request->is_share)
        cw_adjust_pool_max(CW_DEVICE_HOST, request->argument);
    set(request, answer, "pool-max", cw_adjust_pool_max);
    for (unsigned i = request->first; answer->result == 0 && i < request->end; i++)
        excess += cw_retention_excess((uint8_t)i);
    say_more(answer, excess);
}

/* The asker reads the numbers, and nobody the words. */
static void lend(const struct request *request, struct answer *answer)
{
    answer->result = cw_adjust_lend((uint8_t)request->first, request->argument, &answer->bytes);
    answer->blocks = released_blocks(request) - answer->blocks;
    say_given_back(answer);
}

/* A budget takes nothing away, so more than it may be live already. */
static void say_used(const struct cw_budget_rule *rule, struct answer *answer)
{
    struct cw_budget_view view;

    for (uint8_t i = 1; cw_budget_read(i, &view) == 0; i++) {
        if (view.rule.is_name || strcmp(view.rule.pattern, rule->pattern) != 0)
            continue;
        cw_out_string(&answer->text, ", ");
        say_size(answer, view.used_bytes);
        cw_out_string(&answer->text, " live");
        answer->bytes = view.used_bytes;
    }
}

/* `none` after the pattern takes the budget away. */
static void budget(const struct request *request, struct answer *answer)
{
    struct cw_budget_rule rule;
    int is_none;

    if (cw_budget_rule_parse(request->subject, 1, &rule, &is_none) != 0) {
        refuse(answer, EINVAL, "no such budget");
    } else if (is_none) {
        if (cw_budget_unset(rule.pattern, 0) != 0)
            refuse(answer, ENOENT, "it has no budget of this pattern");
        else
            cw_out_printf(&answer->text, "no budget for tag:%s", rule.pattern);
    } else if (cw_budget_set(&rule) != 0) {
        answer->result = ENOSPC;
        cw_out_printf(&answer->text, "it has %d budgets of other patterns already", CW_BUDGETS);
    } else {
        cw_out_string(&answer->text, "budget ");
        cw_budget_rule_print(&rule, &answer->text);
        say_used(&rule, answer);
    }
}

/* ---- requests ---- */

static const struct {
    void (*answer)(const struct request *request, struct answer *answer);
    int needs_driver;
} verbs[CW_CONTROL_COUNT] = {
    [CW_CONTROL_TRIM] = {trim, 1},     [CW_CONTROL_DUMP] = {dump, 0},
    [CW_CONTROL_LIMIT] = {limit, 1},   [CW_CONTROL_POOL_MAX] = {pool_max, 1},
    [CW_CONTROL_SHRINK] = {shrink, 1}, [CW_CONTROL_CLEAR] = {clear, 1},
    [CW_CONTROL_BUDGET] = {budget, 0}, [CW_CONTROL_LEND] = {lend, 1},
};

static void answer_request(struct request *request, struct answer *answer)
{
    if (request->what >= CW_CONTROL_COUNT || verbs[request->what].answer == NULL) {
        refuse(answer, EINVAL, "it does not know this request; use the command of its version");
        return;
    }
    if (!verbs[request->what].needs_driver) {
        verbs[request->what].answer(request, answer);
        return;
    }
    if (cw_gate_is_capturing() || !cw_gate_is_open()) {
        refuse(answer, EBUSY, "it captures a stream, or ends a context; ask again");
        return;
    }
    if (find_devices(request, answer) != 0)
        return;
    answer->blocks = released_blocks(request); /* before; the verb turns it into a difference */
    verbs[request->what].answer(request, answer);
    if (answer->result != 0)
        answer->blocks = 0;
}

void cw_control_serve(void)
{
    struct cw_live_control *control = &cw_session.arena.header->control;
    struct request request = {.what = atomic_exchange(&control->what, CW_CONTROL_NONE)};
    struct answer answer = {.result = 0};
    char text[sizeof(control->answer)];
    uint32_t asked;

    if (request.what == CW_CONTROL_NONE)
        return;
    asked = atomic_load(&control->asked);
    request.asker = atomic_load(&control->asker);
    request.device = atomic_load(&control->device);
    request.is_share = atomic_load(&control->is_share);
    request.argument = atomic_load(&control->argument);
    cw_format(request.subject, sizeof(request.subject), "%.*s", (int)sizeof(control->subject),
              control->subject);
    cw_out_init(&answer.text, -1, text, sizeof(text) - 1);
    atomic_store(&control->taken, asked);
    if (atomic_load(&control->withdrawn) == asked) /* after the store: see layout_control.h */
        refuse(&answer, ECANCELED, "it was withdrawn");
    else
        answer_request(&request, &answer);
    text[answer.text.len] = '\0';
    memcpy(control->answer, text, answer.text.len + 1);
    atomic_store(&control->result_bytes, answer.bytes);
    atomic_store(&control->result_blocks, answer.blocks);
    atomic_store(&control->result, answer.result);
    atomic_store(&control->answered, asked);
}
