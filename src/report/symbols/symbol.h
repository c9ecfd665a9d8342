/* SPDX-License-Identifier: MIT */
/*
 * Function names for the frames of a live layout, from the symbol tables of the modules' files.
 *
 * In a batch: mark the relevant stacks (want), look all of them up (resolve), then query (name).
 * Each file is opened once and its table read once.
 *
 * What has no name may have none, or one that could not be read; who frees memory by names must
 * know. A file has no names where it is no longer there, is no longer the one that was mapped
 * (build-id), is no ELF file or was stripped: that is final, and no error. Everything else that
 * stands before names is one, and may pass: no descriptor, no memory, no permission, a read that
 * fails, no room for the text. The mapping of a file that was deleted is not read instead: its
 * process may be another one, or may unmap it meanwhile.
 *
 * Source lines come from a reader of debug information (struct cw_symbol_ops), which the library
 * does not have: there frames have names but no places. Names from the symbol table take precedence
 * over debug information, so that the library and the command use the same names.
 */
#ifndef CW_REPORT_SYMBOL_H
#define CW_REPORT_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

#include "live/view.h"

/* Longest stored name, with its NUL; longer ones are truncated. */
#define CW_SYMBOL_NAME_MAX 4096

/* A readable form of a mangled name, valid until the next call; NULL: keep the name. */
typedef const char *(*cw_demangle_fn)(const char *mangled, void *arg);

/* The place of one function at a call: the call itself, or the call of a function inlined into
 * it. */
struct cw_symbol_place {
    const char *function; /* as named by the compiler; NULL: unknown */
    const char *file;     /* NULL: unknown */
    uint32_t line;        /* 0: not known */
};

/* Maximum functions at one call; deeper inlining is not distinguished. */
#define CW_SYMBOL_PLACES_MAX 256

/* A reader of debug information. */
struct cw_symbol_ops {
    /* The debug information of the file, with this build-id if build_id_len is not 0; NULL: none.
     * Stays valid as long as the ops. */
    void *(*open)(void *arg, const char *path, const uint8_t *build_id, size_t build_id_len);
    /* The functions at an address of the file, innermost first: the inlined ones, then the one
     * whose code it is. Returns their number; 0: unknown. The strings stay valid as long as the
     * file. */
    size_t (*find)(void *file, uint64_t address, struct cw_symbol_place *places, size_t cap);
    void *arg;
};

/* Debug information of a frame. */
struct cw_symbol_known {
    uint32_t first; /* in the array of places */
    uint16_t count;
    uint16_t is_named; /* the frame's name comes from it: the symbol table has none */
};

/* A place, with offsets of its strings in `text`. */
struct cw_symbol_record {
    uint32_t function, file, line;
};

struct cw_symbols {
    const struct cw_view *view;
    cw_demangle_fn demangle; /* may be NULL */
    void *demangle_arg;
    uint32_t *name;  /* by frame index: offset in `text`, 0: no name */
    uint32_t frames; /* entries in `name` */
    uint32_t wanted; /* entries marked but not yet resolved */
    char *text;      /* reserved; pages are allocated on first access */
    size_t text_len;
    size_t text_cap;
    int error;          /* of the first names that could not be read, the errno; 0: none */
    const char *unread; /* their file; NULL: there was no memory for any */
    const struct cw_symbol_ops *ops; /* NULL: no places */
    const char *sysroot;             /* prefix of the modules' paths, or "" */
    struct cw_symbol_known *known;   /* by frame index; NULL without ops */
    struct cw_symbol_record *record; /* reserved, too */
    uint32_t records;
};

/* 0, or -1 if out of memory; then all other calls are harmless, and nothing has a name. */
int cw_symbols_init(struct cw_symbols *symbols, const struct cw_view *view, cw_demangle_fn demangle,
                    void *demangle_arg);
void cw_symbols_fini(struct cw_symbols *symbols);

/* After init: sets the reader of debug information (NULL: none), and the directory that contains
 * the modules' paths ("" or NULL: the root). Both must stay valid. */
void cw_symbols_use(struct cw_symbols *symbols, const struct cw_symbol_ops *ops,
                    const char *sysroot);

/* Marks every frame of the stack. */
void cw_symbols_want(struct cw_symbols *symbols, uint32_t innermost);
/* 0, or an errno: what is marked, or was before, may lack names that it has. */
int cw_symbols_resolve(struct cw_symbols *symbols);

/* The function containing the frame's call, or NULL. */
const char *cw_symbols_name(const struct cw_symbols *symbols, uint32_t frame);
/* The same if it is in the symbol table, as in the library; or NULL. */
const char *cw_symbols_table_name(const struct cw_symbols *symbols, uint32_t frame);

/* The number of functions in the debug information at the frame's call; 0: none. */
unsigned cw_symbols_places(const struct cw_symbols *symbols, uint32_t frame);
/* One of them, innermost first; the last is the frame's own function, with the frame's name. */
struct cw_symbol_place cw_symbols_place(const struct cw_symbols *symbols, uint32_t frame,
                                        unsigned index);

#endif
