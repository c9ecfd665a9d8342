/* SPDX-License-Identifier: MIT */
/* What the functions share. See api.h. */
#include "api/api.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include "api/thread.h"
#include "base/compiler.h"
#include "base/printable.h"
#include "core/device/device.h"
#include "core/process/gate.h"

static const struct cw_options *settings;
static _Atomic uint32_t forks; /* from the first process to this one */

void cw_api_init(const struct cw_options *options)
{
    settings = options;
}

const struct cw_options *cw_api_options(void)
{
    return settings;
}

/* ---- failing ---- */

int cw_api_fail(int error, const char *fmt, ...)
{
    struct cw_api_thread *thread;
    va_list ap;

    if (cw_api_check_active() != CUWARDEN_OK)
        return CUWARDEN_NOT_ACTIVE;
    thread = cw_api_thread();
    if (thread == NULL)
        return error;
    va_start(ap, fmt);
    cw_vformat(thread->text, sizeof(thread->text), fmt, ap);
    va_end(ap);
    cw_printable_clean_string(thread->text); /* names are the program's, or a stranger's */
    thread->error = error;
    return error;
}

static const char *meaning(int error)
{
    switch (error) {
#define X(name, number, text)                                                                      \
    case number:                                                                                   \
        return text;
        CUWARDEN_ERRORS(X)
#undef X
    default:
        return "unknown error";
    }
}

static int is_off(void)
{
    return settings == NULL || settings->mode == CW_MODE_OFF;
}

/* Known from the state of the process: nothing is kept for a thread that only hears this. */
static const char *why_not_active(void)
{
    if (is_off())
        return "cuwarden is loaded and off (CUWARDEN_MODE=off)";
    return atomic_load(&cw_session.state) > CW_SESSION_ARMED
               ? "the account of this process has ended"
               : meaning(CUWARDEN_NOT_ACTIVE);
}

const char *cw_api_error_text(int error)
{
    const struct cw_api_thread *thread = cw_api_thread_seen();

    if (thread != NULL && error != CUWARDEN_OK && error == thread->error)
        return thread->text;
    return error == CUWARDEN_NOT_ACTIVE ? why_not_active() : meaning(error);
}

int cw_api_not_armed(void)
{
    /* By now another thread may have armed it. */
    return !is_off() && atomic_load(&cw_session.state) <= CW_SESSION_ARMED ? CUWARDEN_OK
                                                                           : CUWARDEN_NOT_ACTIVE;
}

int cw_api_not_there(const char *what, uint64_t number)
{
    int error = cw_api_check_active();

    if (error != CUWARDEN_OK)
        return error;
    return cw_api_fail(CUWARDEN_NOT_FOUND,
                       "there is no %s %ju: it has ended, or never was in this process", what,
                       (uintmax_t)number);
}

int cw_api_busy(void)
{
    return cw_api_fail(CUWARDEN_BUSY, "a stream is captured, or a context ends; ask again");
}

/* ---- devices ---- */

/* A device with memory is there. */
static int is_known(int device)
{
    return device >= 0 && device < CW_MAX_DEVICES &&
           atomic_load(&cw_device_state((uint8_t)device)->known);
}

unsigned cw_api_device_count(void)
{
    unsigned count = CW_MAX_DEVICES;

    if (!cw_session_is_armed() || !cw_gate_enter())
        return CW_MAX_DEVICES;
    if (cw_session.ops->device_count(&count) != 0 || count > CW_MAX_DEVICES)
        count = CW_MAX_DEVICES;
    cw_gate_leave();
    return count;
}

static int no_device(int device, unsigned count)
{
    return count == 0
               ? cw_api_fail(CUWARDEN_NO_DEVICE, "there is no device %d, nor another", device)
               : cw_api_fail(CUWARDEN_NO_DEVICE, "there is no device %d: devices are 0 to %u",
                             device, count - 1);
}

int cw_api_check_device(int device, uint8_t *out_first, uint8_t *out_end)
{
    unsigned count = CW_MAX_DEVICES;

    *out_first = 0;
    *out_end = CW_MAX_DEVICES;
    if (device == CUWARDEN_ALL_DEVICES)
        return CUWARDEN_OK;
    if (device != CUWARDEN_HOST && !is_known(device))
        count = cw_api_device_count();
    if (device != CUWARDEN_HOST && (device < 0 || (unsigned)device >= count))
        return no_device(device, count);
    *out_first = device == CUWARDEN_HOST ? CW_DEVICE_HOST : (uint8_t)device;
    *out_end = (uint8_t)(*out_first + 1);
    return CUWARDEN_OK;
}

/* ---- the program's functions ---- */

struct cw_api_outside cw_api_pause(void)
{
    struct cw_api_outside outside = {.depth = cw_thread.depth,
                                     .accounted = cw_thread.accounted,
                                     .api = cw_thread.api,
                                     .caller = cw_thread.caller,
                                     .stream = cw_thread.stream,
                                     .forks = atomic_load(&forks)};

    cw_thread.depth = 0;
    cw_thread.api = 0;
    return outside;
}

int cw_api_resume(const struct cw_api_outside *outside)
{
    cw_thread.depth = outside->depth;
    cw_thread.accounted = outside->accounted;
    cw_thread.api = outside->api;
    cw_thread.caller = outside->caller;
    cw_thread.stream = outside->stream;
    return outside->forks != atomic_load(&forks);
}

void cw_api_reset(void)
{
    atomic_fetch_add(&forks, 1);
}

void cw_api_give(void *out, size_t size, const void *from, size_t from_size)
{
    size_t common = size < from_size ? size : from_size;

    memcpy(out, from, common);
    memset((char *)out + common, 0, size - common);
}
