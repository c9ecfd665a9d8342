/* SPDX-License-Identifier: MIT */
/* Live layouts made by hand, for tests of what reads them. */
#ifndef CW_TESTS_LIVE_FIXTURE_H
#define CW_TESTS_LIVE_FIXTURE_H

#include "live/arena.h"
#include "live/view.h"

#define FIXTURE_MS UINT64_C(1000000)

struct fixture {
    struct cw_arena arena;
    uint32_t next_key;
};

/* A process "./victim --size 3" with pid 4711 that ended with exit(3) after 0.4 s. */
void fixture_create(struct fixture *fixture);
void fixture_destroy(struct fixture *fixture);
struct cw_view fixture_view(const struct fixture *fixture);

uint32_t fixture_text(struct fixture *fixture, const char *s);
uint32_t fixture_module(struct fixture *fixture, const char *path, uint64_t bias,
                        enum cw_module_role role);
/* The test program itself, as it is mapped, with its build-id. */
uint32_t fixture_own_module(struct fixture *fixture);
struct cw_live_module *fixture_module_at(struct fixture *fixture, uint32_t module);

/* A call at `offset` in the module's file (its return address is one further). */
uint32_t fixture_frame(struct fixture *fixture, uint32_t caller, uint32_t module, uint64_t offset);

/* A line of Python. */
uint32_t fixture_line(struct fixture *fixture, uint32_t caller, const char *file,
                      const char *function, uint32_t line);

uint32_t fixture_site(struct fixture *fixture, uint32_t stack, const char *api, enum cw_kind kind,
                      unsigned device);
struct cw_live_site *fixture_site_at(struct fixture *fixture, uint32_t site);

/* A tag, in a domain unless that is NULL; a site's tag is set by hand. */
uint32_t fixture_tag(struct fixture *fixture, const char *name, const char *domain);

/* The counters as a tracker keeps them: of the site, its device and the process. */
void fixture_alloc(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks,
                   uint64_t t_ns);
void fixture_free(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks);
/* The blocks go with their context. */
void fixture_reclaim(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks);

/* Blocks of the pool, larger than what was asked for; the pool keeps them when they are freed. */
void fixture_pool_alloc(struct fixture *fixture, uint32_t site, uint64_t bytes, uint64_t held,
                        unsigned blocks, uint64_t t_ns);
void fixture_keep(struct fixture *fixture, uint32_t site, uint64_t bytes, unsigned blocks);
/* A record of its own with each call. Switches the pool on. */
struct cw_live_bucket *fixture_bucket(struct fixture *fixture, unsigned device, enum cw_kind kind,
                                      uint64_t size);

struct cw_live_event *fixture_event(struct fixture *fixture, enum cw_event_type type, uint32_t site,
                                    int code);
/* The account of an out of memory; its event, 0: none. */
struct cw_live_oom *fixture_oom(struct fixture *fixture, uint32_t event, uint32_t site);
/* A device on which memory is scarce: each counter of its struct cw_live_memory has a value, there
 * is an event of each type about it by `site`, and an account of an out of memory that `site` holds
 * most of. */
void fixture_scarce(struct fixture *fixture, unsigned device, uint32_t site);

/* A moment of all series, in slot `slot`; a record of a series, timeline or regrowth of its own
 * with each call. */
void fixture_moment(struct fixture *fixture, unsigned slot, uint64_t t_ns);
struct cw_live_series *fixture_series(struct fixture *fixture, uint32_t site);
struct cw_live_timeline *fixture_timeline(struct fixture *fixture, unsigned device);
struct cw_live_regrowth *fixture_regrowth(struct fixture *fixture, uint32_t site);
struct cw_live_tag *fixture_tag_at(struct fixture *fixture, uint32_t tag);
/* The tag ends a step, with so many bytes live in the process. */
void fixture_step(struct fixture *fixture, uint32_t tag, uint64_t t_ns, uint64_t bytes);

struct cw_live_device *fixture_device(struct fixture *fixture, unsigned device, const char *name);

#endif
