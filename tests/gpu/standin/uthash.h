/* SPDX-License-Identifier: MIT */
/*
 * Stands in for uthash.h where gpu-check compiles a checkout and there is none: the part of its
 * interface that src/base/map.c uses, over a table of fixed size. The library is built with uthash.
 */
#ifndef UTHASH_STANDIN_H
#define UTHASH_STANDIN_H

#include <stddef.h>
#include <string.h>

typedef struct UT_hash_handle {
    struct UT_hash_table *tbl;
    void *prev, *next;             /* elements, in no order */
    struct UT_hash_handle *behind; /* in the same bucket */
    const void *key;
    unsigned length, hash;
} UT_hash_handle;

struct UT_hash_table {
    UT_hash_handle *buckets[4096];
    unsigned count;
    size_t offset; /* of the handle in an element */
};

static inline UT_hash_handle *ut_handle(const struct UT_hash_table *table, void *element)
{
    return (UT_hash_handle *)((char *)element + table->offset);
}

static inline UT_hash_handle **ut_bucket(struct UT_hash_table *table, unsigned hash)
{
    return &table->buckets[hash % 4096];
}

/* Puts the element before `head`, which may be NULL. */
static inline void ut_add(struct UT_hash_table *table, void *head, void *element,
                          UT_hash_handle handle)
{
    UT_hash_handle *own = ut_handle(table, element);
    UT_hash_handle **bucket = ut_bucket(table, handle.hash);

    *own = handle;
    own->tbl = table;
    own->next = head;
    own->behind = *bucket;
    *bucket = own;
    if (head)
        ut_handle(table, head)->prev = element;
    table->count++;
}

/* Returns the new head. */
static inline void *ut_delete(UT_hash_handle *own, void *head)
{
    struct UT_hash_table *table = own->tbl;
    UT_hash_handle **link = ut_bucket(table, own->hash);

    while (*link != own)
        link = &(*link)->behind;
    *link = own->behind;
    if (own->next)
        ut_handle(table, own->next)->prev = own->prev;
    if (own->prev)
        ut_handle(table, own->prev)->next = own->next;
    table->count--;
    return own->prev ? head : own->next;
}

static inline struct UT_hash_table *ut_empty(struct UT_hash_table *table, size_t offset)
{
    if (table) {
        memset(table, 0, sizeof(*table));
        table->offset = offset;
    }
    return table;
}

#define HASH_COUNT(head) ((head) ? (head)->hh.tbl->count : 0u)

#define HASH_ADD(hh, head, field, bytes, add)                                                      \
    do {                                                                                           \
        size_t ut_size = sizeof(struct UT_hash_table);                                             \
        struct UT_hash_table *ut_table =                                                           \
            (head) ? (head)->hh.tbl                                                                \
                   : ut_empty(uthash_malloc(ut_size), offsetof(__typeof__(*(add)), hh));           \
        UT_hash_handle ut_own = {.key = &(add)->field, .length = (bytes)};                         \
        if (ut_table) {                                                                            \
            HASH_FUNCTION(ut_own.key, ut_own.length, ut_own.hash);                                 \
            ut_add(ut_table, (head), (add), ut_own);                                               \
            (head) = (add);                                                                        \
        } else {                                                                                   \
            uthash_nonfatal_oom(add);                                                              \
        }                                                                                          \
    } while (0)

#define HASH_FIND(hh, head, wanted, bytes, out)                                                    \
    do {                                                                                           \
        UT_hash_handle *ut_at = NULL;                                                              \
        unsigned ut_hash = 0;                                                                      \
        HASH_FUNCTION((wanted), (bytes), ut_hash);                                                 \
        if (head)                                                                                  \
            ut_at = *ut_bucket((head)->hh.tbl, ut_hash);                                           \
        while (ut_at && (ut_at->length != (bytes) || HASH_KEYCMP(ut_at->key, (wanted), (bytes))))  \
            ut_at = ut_at->behind;                                                                 \
        (out) = ut_at ? (void *)((char *)ut_at - ut_at->tbl->offset) : NULL;                       \
    } while (0)

#define HASH_CLEAR(hh, head)                                                                       \
    do {                                                                                           \
        if (head)                                                                                  \
            uthash_free((head)->hh.tbl, sizeof(struct UT_hash_table));                             \
        (head) = NULL;                                                                             \
    } while (0)

#define HASH_DELETE(hh, head, element)                                                             \
    do {                                                                                           \
        struct UT_hash_table *ut_table = (element)->hh.tbl;                                        \
        (head) = ut_delete(&(element)->hh, (head));                                                \
        if (ut_table->count == 0)                                                                  \
            uthash_free(ut_table, sizeof(*ut_table));                                              \
    } while (0)

#endif
