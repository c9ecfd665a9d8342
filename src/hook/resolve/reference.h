/* SPDX-License-Identifier: MIT */
/*
 * The references of a loaded object to functions that we stand in front of: the words that the
 * loader filled with addresses, read from the object's own relocations.
 *
 * A reference escapes if it leads past us, to the driver, a runtime, NVML or the C library. In an
 * object that was opened with RTLD_DEEPBIND all do: its own libraries come before the preload.
 */
#ifndef CW_HOOK_REFERENCE_H
#define CW_HOOK_REFERENCE_H

#include <stdatomic.h>

#include "hook/resolve/object.h"

struct cw_reference {
    const char *name;
    const char *version;   /* that is asked for, or NULL */
    _Atomic(void *) *slot; /* in the object */
    void *ours;
};

/* Each reference to a name that we export; visit returns non-zero to stop, which is returned. The
 * object must be relocated, and stay loaded. */
int cw_reference_visit(const struct cw_object *object,
                       int (*visit)(const struct cw_reference *reference, void *arg), void *arg);

/* 1 if it leads past us now; one that is bound at its first call does not yet. */
int cw_reference_escapes(const struct cw_reference *reference);

/*
 * Makes all that escape lead to us, also those that would at their first call. 0, or the errno with
 * which the object's memory could not be made writable, or, *out_is_open, not be protected again.
 * Under the loader's own lock, so that nobody is relocating the object.
 */
int cw_reference_bind(const struct cw_object *object, int *out_is_open);

#endif
