/* SPDX-License-Identifier: MIT */
/* What the files of the victim `edges` share. edges.c says what the program is.
 *
 * Everything here belongs to the first thread; families that start others say what these may touch.
 */
#ifndef EDGES_H
#define EDGES_H

#include "cusim.h"
#include "dice.h"
#include "victim.h"

#include <pthread.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

struct edges {
    const char *family;
    uint64_t seed;
    unsigned operation; /* of the running program */
    struct rng dice;    /* of the running program */
    bool is_verbose;
    bool is_native;   /* the program runs on the bare driver, which is asked what it thinks, too */
    bool is_full;     /* whatever is filled is filled up */
    const char *part; /* of the family, to be run alone; NULL: any */
    /* sums over all programs */
    unsigned long long operations, checks;
    uint64_t refused; /* programs that lacked what the pool may have made more of what lives */
};

extern struct edges edges;

void __attribute__((format(printf, 1, 2))) trace(const char *format, ...);
void __attribute__((format(printf, 1, 2), noreturn)) violated(const char *format, ...);
void expect(CUresult code, CUresult wanted, const char *what);
#define WORKS(call) expect(call, CUDA_SUCCESS, #call)

unsigned below(unsigned n);
bool chance(unsigned percent);
enum kind { DEVICE, PITCHED, PINNED };

/* Pitched: in rows of 512 bytes. Pinned: portable, and the address is that of the host. */
CUresult take_memory(enum kind kind, size_t size, CUdeviceptr *out);
CUresult give_memory(enum kind kind, CUdeviceptr address);

/* The part of a family that a program is of: the one asked for, or one of them by the dice. */
unsigned choose_part(const char *const *parts, unsigned nparts);

/* No program does what the driver calls misuse, and no library may: none since the last time, of
 * the kind named, or of all. */
void expect_no_misuse(const char *kind);
/* Of wrong frees at most as many as the program has made itself. */
void expect_few_frees(unsigned most);
void forget_misuse(void);

/* ---- the families: what is done once, then one program ---- */

void ends_run(void);
void unseen_prepare(void);
void unseen_run(void);
void fill_run(void);
void shares_run(void);
void beside_run(void);
void bound_prepare(void);
void bound_run(void);

#endif
