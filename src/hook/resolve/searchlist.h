/* SPDX-License-Identifier: MIT */
/*
 * Where the loader searches for what a module refers to, told from the objects' own tables. The
 * loader itself, asked by dlsym, makes the thread wait until no other is inside dlopen, whose
 * constructors may wait for this thread, and changes what dlerror says.
 */
#ifndef CW_HOOK_SEARCHLIST_H
#define CW_HOOK_SEARCHLIST_H

#include "hook/resolve/object.h"

/* What `caller` (NULL: nobody knows) would have found after this library, or NULL: in what the
 * program started with, in what was opened with RTLD_GLOBAL, then in each opened object that
 * brought the caller, and what that one needs. version NULL: any. */
void *cw_searchlist_find(const struct cw_object *caller, const char *name, const char *version);

/* The last of these alone. */
void *cw_searchlist_brought_symbol(const struct cw_object *caller, const char *name,
                                   const char *version);

/* In the object and what it needs, breadth first, or NULL. version NULL: any. */
void *cw_searchlist_needed_symbol(const struct cw_object *object, const char *name,
                                  const char *version);

/* The same of the program. */
void *cw_searchlist_program_symbol(const char *name);

/* Before dlopen with RTLD_GLOBAL. */
void cw_searchlist_opening(const char *file);

#endif
