/* SPDX-License-Identifier: MIT */
/* The classes of memory that was never freed; leak_class.h assigns them to sites. */
#ifndef CW_REPORT_LEAK_H
#define CW_REPORT_LEAK_H

#include <stdint.h>

/* X(ID, "name", counted as leaked). */
#define CW_LEAKS(X)                                                                                \
    X(NONE, "", 0)                     /* nothing is left */                                       \
    X(LOST, "lost", 1)                 /* blocks that are still live */                            \
    X(GROWING, "growing", 1)           /* the same, more and more of them (snapshot_growth.h) */   \
    X(CONTEXT, "context-destroyed", 1) /* nothing live, but blocks that went with their context */ \
    X(LIBRARY, "library", 0)           /* either, owned by a library of NVIDIA */                  \
    X(CACHE, "cache", 0)               /* either, kept on purpose by a framework's allocator */    \
    X(IMPORT, "imported", 0)           /* of another process or API, still open */                 \
    X(IPC, "ipc-imported", 0)          /* the same, opened by an IPC handle */                     \
    X(HANDLE, "handle", 0)             /* holds no memory: reservations, pools, modules */         \
    X(SUPPRESSED, "suppressed", 0)     /* any but handles, by a rule of the user's */

enum cw_leak_class {
#define X(id, name, counted) CW_LEAK_##id,
    CW_LEAKS(X)
#undef X
        CW_LEAK_COUNT
};

static inline int cw_leak_is_counted(unsigned leak)
{
    static const uint8_t is_counted[CW_LEAK_COUNT] = {
#define X(id, name, counted) [CW_LEAK_##id] = (counted),
        CW_LEAKS(X)
#undef X
    };

    return leak < CW_LEAK_COUNT && is_counted[leak];
}

/* The name in the table; "" for no class. */
const char *cw_leak_class_name(unsigned leak);

#endif
