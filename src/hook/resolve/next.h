/* SPDX-License-Identifier: MIT */
/* The dlsym, dlvsym and dlopen that ours stand in front of. No state but their addresses. */
#ifndef CW_HOOK_NEXT_H
#define CW_HOOK_NEXT_H

/* The program's request. */
struct cw_next_query {
    void *handle;
    const char *name;
    const char *version; /* NULL for dlsym */
};

/* The answer as if called from this library: RTLD_NEXT means the objects after it. */
void *cw_next_ask(void *handle, const struct cw_next_query *query);

/* The functions themselves; until they are loaded, one that finds nothing. */
void *cw_next_dlsym(void);
void *cw_next_dlvsym(void);
void *cw_next_dlopen(void);

#endif
