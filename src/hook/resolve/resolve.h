/* SPDX-License-Identifier: MIT */
/*
 * The functions behind ours: the real functions of the driver, of NVML and of the runtimes. The
 * callers in front of ours are in hook/answers/answer.h.
 */
#ifndef CW_HOOK_RESOLVE_H
#define CW_HOOK_RESOLVE_H

#include <stdint.h>

#include "hook/resolve/hook_table.h"
#include "hook/resolve/object.h"

/* Finds libcuda and libnvidia-ml among the loaded objects and fills cw_real[]. Cheap when nothing
 * is new. */
void cw_resolve_libraries(void);
/* After a dlclose: a driver that was unloaded must not be called any more. */
void cw_resolve_forget_unloaded(void);
/* In a forked child. */
void cw_resolve_reset(void);
int cw_resolve_is_loaded(unsigned library);
/* Says so, once, if two drivers are loaded, as by a compatibility package beside the system's: the
 * one that we stand before, and another. */
void cw_resolve_tell_second(void);

/* Another library behind us intercepts the driver's calls, which it does not get: we call the
 * driver. 1, or 0 if there is none. */
int cw_resolve_interposer(struct cw_object *out);
/* No driver is loaded, and a library behind us has cuInit: what it answers is what a program would
 * get without us. 1, or 0 if there is none. */
int cw_resolve_stand_in(struct cw_object *out);
/* One in front of us has a dlsym, which need not hand on to ours. 1, or 0 if there is none. */
int cw_resolve_other_dlsym(struct cw_object *out);

/* 1 if the object is such a library by its name. */
int cw_resolve_is_library(const struct cw_object *object, unsigned library);
/* The driver resolves its own parts by dlsym (WSL loads one libcuda from another): not our
 * business. */
int cw_resolve_is_driver_part(const struct cw_object *object);
/* Takes the object's exports as the real functions. */
void cw_resolve_adopt(const struct cw_object *object, unsigned library);
/* 1 if calls of this object's functions may come to ours: it is the one that was taken, or another
 * face of it. Contexts and memory of two drivers have nothing to do with each other. */
int cw_resolve_is_served(const struct cw_object *object, unsigned library);
/* The row of which this is the driver's function, or -1. */
int cw_resolve_row_at(const void *address);

/* The function of a runtime (cudart) that the module of `caller` would have bound to, or NULL.
 * version: by which the call came (hook/bodies/runtime_versions.h), NULL: by none. */
void *cw_resolve_runtime(const char *name, const char *version, const void *caller);

#endif
