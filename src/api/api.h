/* SPDX-License-Identifier: MIT */
/*
 * What the functions behind include/cuwarden/cuwarden.h share. The header says what each does;
 * table.c has the table in which programs find them.
 *
 * A body begins with one of the checks below, and counts as inside a hook while it works
 * (cw_api_enter), so that calls of the driver on the way are not taken for the program's. The
 * program's callbacks run outside of it, under no lock. Owns the thread's text of what failed; no
 * lock.
 */
#ifndef CW_API_API_H
#define CW_API_API_H

#include <stddef.h>
#include <stdint.h>

#include "base/options/options.h"
#include "base/out.h"
#include "core/process/gate.h"
#include "core/process/session.h"
#include "core/process/thread.h"
#include "cuwarden/cuwarden.h"

/* When the library is loaded: the options must live as long as the process. */
void cw_api_init(const struct cw_options *options);
const struct cw_options *cw_api_options(void);
const char *cw_api_error_text(int error);

/* ---- failing ---- */

/* Notes what the calling thread's call failed with, if there is memory for it; returns the error.
 * Where there is no account and will be none, that is what a call fails with: NOT_ACTIVE. */
int cw_api_fail(int error, const char *fmt, ...) CW_PRINTF(2, 3);

/* What is not armed: OK if the program has not called CUDA yet and will be accounted for. */
CW_COLD int cw_api_not_armed(void);

/* CUWARDEN_OK: there is an account, or there will be from the first call of CUDA on. */
static inline int cw_api_check_active(void)
{
    return CW_LIKELY(cw_session_is_armed()) ? CUWARDEN_OK : cw_api_not_armed();
}

/* CUWARDEN_OK: there is an account. */
static inline int cw_api_check_started(void)
{
    if (CW_LIKELY(cw_session_is_armed()))
        return CUWARDEN_OK;
    return cw_api_not_armed() == CUWARDEN_OK ? CUWARDEN_NOT_STARTED : CUWARDEN_NOT_ACTIVE;
}

/* NOT_FOUND: there is no "buffer" of this number, say; or whatever keeps there from being any. */
CW_COLD int cw_api_not_there(const char *what, uint64_t number);

CW_COLD int cw_api_busy(void);

/* Before a call of the driver: BUSY: a stream that captures would be spoilt. */
static inline int cw_api_check_driver(void)
{
    return CW_LIKELY(!cw_gate_is_capturing() && cw_gate_is_open()) ? CUWARDEN_OK : cw_api_busy();
}

/* Devices that the driver has; CW_MAX_DEVICES where it does not say, or may not be asked now. */
unsigned cw_api_device_count(void);
/* The devices from *out_first to before *out_end; the host is CW_DEVICE_HOST. All are as many as
 * there could be. */
int cw_api_check_device(int device, uint8_t *out_first, uint8_t *out_end);

/* ---- inside ---- */

static inline unsigned cw_api_enter(void)
{
    return cw_thread.depth++;
}

static inline void cw_api_leave(unsigned depth)
{
    cw_thread.depth = depth;
}

/* Around a call of the program's function: to it, and to what it calls, it is outside. */
struct cw_api_outside {
    unsigned depth, accounted;
    uint32_t api;
    void *caller;
    uint64_t stream;
    uint32_t forks;
};
struct cw_api_outside cw_api_pause(void);
/* 1: the function has forked, and returns in the child, which has no account: what the caller was
 * going through is gone. */
int cw_api_resume(const struct cw_api_outside *outside);
/* In a forked child. */
void cw_api_reset(void);

/* As much of a structure as the program knows; what it knows in addition becomes zero. */
void cw_api_give(void *out, size_t size, const void *from, size_t from_size);

#endif
