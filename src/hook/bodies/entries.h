/* SPDX-License-Identifier: MIT */
/*
 * The driver's functions that we export are the short ones of hook/answers/entries.S; this names
 * the bodies, which they jump to, in the objects that define them. To be included before anything
 * that declares the functions: a file that forgot it defines them twice, and does not link.
 */
#ifndef CW_HOOK_ENTRIES_H
#define CW_HOOK_ENTRIES_H

#if defined(__x86_64__) || defined(__aarch64__)
#define CW_PRAGMA(text) _Pragma(#text)
#define HOOK(symbol, base, since, stream, family)                                                  \
    CW_PRAGMA(redefine_extname symbol cw_body_##symbol)
#include "hook/hooks.def"
#undef CW_PRAGMA
#endif

#endif
