/* SPDX-License-Identifier: MIT */
/* The answers of our dlsym, dlvsym and dlopen (dlsym_*.S). */
#ifndef CW_HOOK_DLSYM_H
#define CW_HOOK_DLSYM_H

/*
 * Called by the assembly of dlsym, dlvsym and dlopen. jump != NULL: continue there with the
 * caller's registers and stack untouched. Else return value.
 */
struct cw_dlsym_answer {
    void *jump;
    void *value;
};
struct cw_dlsym_answer cw_dlsym_filter(void *handle, const char *name, const void *caller);
struct cw_dlsym_answer cw_dlvsym_filter(void *handle, const char *name, const char *version,
                                        const void *caller);
struct cw_dlsym_answer cw_dlopen_filter(const char *file, int flags, const void *caller);

#endif
