/* SPDX-License-Identifier: MIT */
/*
 * Names of functions for the frames of a live layout, from the symbol tables of the modules' files.
 *
 * In a batch: say which stacks matter (want), look all of them up (resolve), then ask (name). Each
 * file is opened once and its table read once. A file that is missing, or is no longer the one that
 * was mapped (build-id), names nothing.
 */
#ifndef CW_REPORT_SYMBOL_H
#define CW_REPORT_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

#include "live/view.h"

/* Longest name that is kept, with its NUL; longer ones are cut. */
#define CW_SYMBOL_NAME_MAX 4096

/* A readable form of a mangled name, valid until the next call; NULL: as it stands. */
typedef const char *(*cw_demangle_fn)(const char *mangled, void *arg);

struct cw_symbols {
    const struct cw_view *view;
    cw_demangle_fn demangle; /* may be NULL */
    void *demangle_arg;
    uint32_t *name;  /* of a frame's index: where in `text` it begins, 0: no name */
    uint32_t frames; /* entries in `name` */
    uint32_t wanted; /* entries that are marked and not yet resolved */
    char *text;      /* a reserved range; its pages come when they are touched */
    size_t text_len;
    size_t text_cap;
};

/* 0, or -1 when there is no memory; every other call is harmless then, and nothing has a name. */
int cw_symbols_init(struct cw_symbols *symbols, const struct cw_view *view, cw_demangle_fn demangle,
                    void *demangle_arg);
void cw_symbols_fini(struct cw_symbols *symbols);

/* Marks every frame of the stack. */
void cw_symbols_want(struct cw_symbols *symbols, uint32_t innermost);
void cw_symbols_want_all(struct cw_symbols *symbols);
void cw_symbols_resolve(struct cw_symbols *symbols);

/* The function that the frame's call is in, or NULL. */
const char *cw_symbols_name(const struct cw_symbols *symbols, uint32_t frame);

#endif
