/* SPDX-License-Identifier: MIT */
/*
 * The readable form of a C++ name, by the C++ runtime's __cxa_demangle, which whoever has one looks
 * up. It reads encodings of types as well ("i" is "int"), which are names of C functions here: only
 * a name that says that it is mangled is one.
 */
#ifndef CW_REPORT_DEMANGLE_H
#define CW_REPORT_DEMANGLE_H

/* A cw_demangle_fn (symbol.h); demangler: __cxa_demangle. Takes memory from malloc. One thread at a
 * time. */
const char *cw_demangle(const char *mangled, void *demangler);

#endif
