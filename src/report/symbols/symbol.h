/* SPDX-License-Identifier: MIT */
/*
 * Names of functions for the frames of a live layout, from the symbol tables of the modules' files.
 *
 * In a batch: say which stacks matter (want), look all of them up (resolve), then ask (name). Each
 * file is opened once and its table read once. A file that is missing, or is no longer the one that
 * was mapped (build-id), names nothing.
 *
 * Source lines come from whoever can read debug information (struct cw_symbol_ops), which the
 * library cannot: there frames have names and no places. A name of the symbol table goes before one
 * of the debug information, so that the library and the command call a frame the same.
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

/* Where one function is at a call: at the call itself, or at that of what was inlined into it. */
struct cw_symbol_place {
    const char *function; /* as the compiler names it; NULL: not known */
    const char *file;     /* NULL: not known */
    uint32_t line;        /* 0: not known */
};

/* Functions at one call; what was inlined into each other more often than that is not told
 * apart. */
#define CW_SYMBOL_PLACES_MAX 256

/* Who reads debug information. */
struct cw_symbol_ops {
    /* That of the file, of this build-id if build_id_len is not 0; NULL: there is none. Stays valid
     * for as long as the ops. */
    void *(*open)(void *arg, const char *path, const uint8_t *build_id, size_t build_id_len);
    /* The functions at an address of the file, innermost first: those that were inlined, then that
     * whose code it is. How many; 0: nothing is known. The strings stay valid as the file does. */
    size_t (*find)(void *file, uint64_t address, struct cw_symbol_place *places, size_t cap);
    void *arg;
};

/* What the debug information says of a frame. */
struct cw_symbol_known {
    uint32_t first; /* in the array of places */
    uint16_t count;
    uint16_t is_named; /* the frame's name is from there: the symbol table has none */
};

/* A place, by where its strings begin in `text`. */
struct cw_symbol_record {
    uint32_t function, file, line;
};

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
    const struct cw_symbol_ops *ops; /* NULL: no places */
    const char *sysroot;             /* in front of the modules' paths, "" */
    struct cw_symbol_known *known;   /* of a frame's index; NULL without ops */
    struct cw_symbol_record *record; /* a reserved range too */
    uint32_t records;
};

/* 0, or -1 when there is no memory; every other call is harmless then, and nothing has a name. */
int cw_symbols_init(struct cw_symbols *symbols, const struct cw_view *view, cw_demangle_fn demangle,
                    void *demangle_arg);
void cw_symbols_fini(struct cw_symbols *symbols);

/* Behind init: who reads debug information (NULL: nobody), and the directory under which the
 * modules' paths are ("" or NULL: the root). Both must stay. */
void cw_symbols_use(struct cw_symbols *symbols, const struct cw_symbol_ops *ops,
                    const char *sysroot);

/* Marks every frame of the stack. */
void cw_symbols_want(struct cw_symbols *symbols, uint32_t innermost);
void cw_symbols_want_all(struct cw_symbols *symbols);
void cw_symbols_resolve(struct cw_symbols *symbols);

/* The function that the frame's call is in, or NULL. */
const char *cw_symbols_name(const struct cw_symbols *symbols, uint32_t frame);
/* The same where the symbol table has it, as the library would; or NULL. */
const char *cw_symbols_table_name(const struct cw_symbols *symbols, uint32_t frame);

/* How many functions the debug information has at the frame's call; 0: it has nothing. */
unsigned cw_symbols_places(const struct cw_symbols *symbols, uint32_t frame);
/* One of them, innermost first; the last is the frame's own function, with the frame's name. */
struct cw_symbol_place cw_symbols_place(const struct cw_symbols *symbols, uint32_t frame,
                                        unsigned index);

#endif
