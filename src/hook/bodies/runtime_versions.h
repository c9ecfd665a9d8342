/* SPDX-License-Identifier: MIT */
/*
 * Versions of the runtime's symbols: each cudart names its functions after itself, and a process
 * may have several. For the assembler too.
 *
 * Our functions have each of these versions besides a default one, so the loader binds every module
 * to the one that it was linked with, and a call tells which runtime it is for, whoever makes it: a
 * tail call and a function pointer show another module's return address. A module that wants a
 * version which is not here, of a runtime yet to come, is bound past us: its calls are accounted
 * for at the driver, and the report shows the driver's names.
 *
 * X(number, node); a node must be in hook/versions.map too.
 */
#ifndef CW_HOOK_RUNTIME_VERSIONS_H
#define CW_HOOK_RUNTIME_VERSIONS_H

/* The nodes are no C. */
/* clang-format off */
#define CW_RUNTIME_VERSIONS(X) \
    X(1, libcudart.so.11.0) \
    X(2, libcudart.so.12) \
    X(3, libcudart.so.13) \
    X(4, libcudart.so.14)
/* clang-format on */

#endif
