/* SPDX-License-Identifier: MIT */
/*
 * The user's settings: the options, read once and constant afterwards except for names of files,
 * which the first call of CUDA completes; the launcher's environment; the process's.
 */
#ifndef CW_HOOK_SETTINGS_H
#define CW_HOOK_SETTINGS_H

#include "base/launcher.h"
#include "base/options/options.h"

/* Reads the options, if that was not done. Any time: a constructor of another library may come
 * before ours. */
void cw_settings_read(void);

/* At the first call of CUDA, once, after they were read: says what is wrong with them and, unless
 * the mode is off, reads the launcher and completes names of files. */
void cw_settings_announce(void);

const struct cw_options *cw_settings_options(void);
const struct cw_launcher *cw_settings_launcher(void);

/* As it is now. */
char *const *cw_settings_environment(void);
/* 1 if the options need the program's ranges and marks. Any time. */
int cw_settings_want_tags(void);

#endif
