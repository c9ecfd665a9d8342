/* SPDX-License-Identifier: MIT */
/*
 * The asker's side of a request to another process (layout_control.h): in its live file, which
 * somebody has opened for reading and writing and has found to be the user's (foreign_open.h).
 *
 * The file is not mapped but for a call that wakes who waits there: one that is cut off meanwhile
 * is an error here and not a signal. Owns nothing; no lock but the one in the file.
 */
#ifndef CW_LIVE_MAILBOX_H
#define CW_LIVE_MAILBOX_H

#include <stddef.h>
#include <stdint.h>

#include "live/layout.h"

/* Where a member of the header, or of its struct cw_live_control, lies in the file. */
#define CW_MAILBOX_AT(field)      offsetof(struct cw_live_header, field)
#define CW_MAILBOX_CONTROL(field) (CW_MAILBOX_AT(control) + offsetof(struct cw_live_control, field))

struct cw_mail {
    enum cw_control what;
    uint32_t device, is_share;
    uint64_t argument;
    const char *subject;
};

/* A number of the header; 0 also if the file ends before it. */
uint32_t cw_mailbox_get(int fd, size_t at);

/* The place of the one asker, which goes with the descriptor and those that a fork copied. 0, or -1
 * with errno: EAGAIN or EACCES if somebody else has it. */
int cw_mailbox_lock(int fd);
/* Also where a forked child has a copy of the descriptor. */
void cw_mailbox_unlock(int fd);

/* Under the lock. 0 with the number of the request, or -1 with errno. */
int cw_mailbox_ask(int fd, const struct cw_mail *mail, uint32_t *out_number);
int cw_mailbox_is_answered(int fd, uint32_t number);
/* 1 if the request will no longer be carried out; otherwise the process has taken it. */
int cw_mailbox_withdraw(int fd, uint32_t number);

#endif
