/* SPDX-License-Identifier: MIT */
/*
 * Names of ranges and marks, and their records in the live layout.
 *
 * A tag is the index of a name, and of its record in CW_TABLE_TAG. Names are found without a lock,
 * through chains that are only ever extended at their head, and added under a lock of CW_RANK_TAG.
 * They lie in memory of our own, not in the arena: a program may name things before it first calls
 * CUDA, and a forked child goes on with the names and the open ranges of its parent. When a session
 * is armed all names get their records, in the same order, so a tag is the same index in both.
 *
 * Names that differ only in digits ("step 1", "step 2") have one form. The second of them brings
 * the form's own name into being, the pattern "step #", which begins with what the first has
 * counted; from then on what counts for one of them counts for the pattern too. Each of the first
 * CW_TAG_OWN_NAMES has a tag of its own, and so has one that cw_tag_name_own was asked for; what
 * comes later has the pattern's. So "step 1" ... "step
 * 100000" are one sequence of steps, and a program with a dozen of "layer N" sees each by itself.
 * In the end there are at most CW_TAGS_MAX tags; the last of them, "(other)", stands for all names
 * that come later.
 */
#ifndef CW_CORE_TAG_NAME_H
#define CW_CORE_TAG_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "live/arena.h"

#define CW_TAGS_MAX      1024
#define CW_TAG_NAME_MAX  120 /* bytes, with the NUL; a longer name is cut */
#define CW_TAG_OWN_NAMES 16  /* of one form */
#define CW_TAG_DOMAINS   32  /* with the default one; the last stands for all that come later */

/* Any thread, no lock held. The domain of this name; 0, the default one, for NULL and "". */
uint8_t cw_tag_domain(const char *name);

/* The tag for this name (UTF-8), 0 for NULL and "". Any thread, no lock held. */
uint16_t cw_tag_name(uint8_t domain, const char *name);
/* The same in the default domain, faster for a text that the thread has asked for before: mostly a
 * constant. */
uint16_t cw_tag_name_again(const char *name);
/* Gives this name of the default domain a tag of its own, however many of its form there are. */
void cw_tag_name_own(const char *name);
/* As cw_tag_name, but a name that nobody has used has none: 0. */
uint16_t cw_tag_name_find(uint8_t domain, const char *name);

/* As reports show it: "forward", "forward@DOMAIN". Returns buf; "" for tag 0. */
#define CW_TAG_NAME_LABEL_MAX (2 * CW_TAG_NAME_MAX)
const char *cw_tag_name_label(uint16_t tag, char *buf, size_t cap);

/* Shows readers which budget counts the tag, from 1; 0: none. */
void cw_tag_name_show_budget(uint16_t tag, uint8_t budget);

/* 1 for an index that has been given out. */
int cw_tag_name_is_known(uint32_t tag);

/* One more range has begun, or a step has ended: for this name, and for its pattern. Nothing
 * happens before the session is armed, and for tag 0. */
void cw_tag_name_begun(uint16_t tag);
void cw_tag_name_step(uint16_t tag, uint64_t now_ns, uint64_t live_bytes);

void cw_tag_name_init(struct cw_arena *arena);
/* In a forked child. */
void cw_tag_name_reset(void);

#endif
