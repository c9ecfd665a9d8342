/* SPDX-License-Identifier: MIT */
/*
 * Dumps: complete reports of the running process, each in a new file. They lie next to the file
 * that REPORT names; without one, or if that fails, in the user's private directory under TMPDIR
 * (live/live_dir.h).
 */
#ifndef CW_HOOK_DUMP_H
#define CW_HOOK_DUMP_H

#include <stddef.h>
#include <stdint.h>

enum cw_dump_cause {
    CW_DUMP_SIGNAL,
    CW_DUMP_INTERVAL,
};

/* Requests a dump from the next thread that serves (core/process/due.h). May be called in a signal
 * handler. */
void cw_dump_ask(enum cw_dump_cause cause);
/* 1: the calling thread must make it. With many blocks it takes a while, so the program's threads
 * leave it to the background thread, unless that is stuck (in a driver that hangs, say). */
int cw_dump_is_here(void);
/* Makes the requested dump; several requests share one. */
void cw_dump_serve(void);

/*
 * Makes one now; no lock held. Any thread, several at a time. Its name (of FORMAT=both that of the
 * text) goes to `name`. 0, or an errno after a warning. errno is preserved.
 */
int cw_dump_write(char *name, size_t cap);

/* For process `asker`, which is named on stderr. text: the name, or the reason. 0 or an errno. */
int cw_dump_for_process(uint32_t asker, char *text, size_t cap);

/* In a forked child: starts counting anew. */
void cw_dump_reset(void);

#endif
