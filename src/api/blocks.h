/* SPDX-License-Identifier: MIT */
/* Blocks: what the program is told of one, and how it gets at them. */
#ifndef CW_API_BLOCKS_H
#define CW_API_BLOCKS_H

#include "api/api.h"
#include "core/tags/tag_name.h"

int cw_api_block_find(const void *address, struct cuwarden_block *out, size_t size);
int cw_api_block_name(const void *address, const char *name);
int cw_api_mark(uint64_t *out);
int cw_api_visit(const struct cuwarden_filter *filter, size_t size, cuwarden_block_fn fn,
                 void *arg);

/* A block as the program sees it, with room for its texts. */
struct cw_api_block {
    struct cuwarden_block block;
    uint32_t site; /* record of the live layout */
    char tag[CW_TAG_NAME_LABEL_MAX];
};

/* Reads a record; 0, or -1 if the program has no block of counted memory there. */
int cw_api_block_read(uint32_t index, struct cw_api_block *out);

/* Calls the program's function, as from outside. Not 0: it has had enough, or it has forked and
 * this is the child, which has no account to go on with. */
int cw_api_block_tell(const struct cw_api_block *read, cuwarden_block_fn fn, void *arg);

/* Memory that we have taken for the program: it has this name (cw_owner_text), and no scope frees
 * it. block 0: nothing happens. */
void cw_api_block_own(uint32_t block, uint32_t name);

#endif
