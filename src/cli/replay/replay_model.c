/* SPDX-License-Identifier: MIT */
/* The models on the simulated driver. See replay_model.h. */
#include "cli/replay/replay_model.h"

#include "base/round.h"
#include "cli/replay/replay_pieces.h"
#include "core/account/size_class.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

#define TORCH_UNIT    UINT64_C(512)
#define TORCH_SMALL   MIB /* the largest request that is */
#define TORCH_LARGE   (10 * MIB)
#define TORCH_STEP    (2 * MIB)
#define TORCH_SEGMENT (20 * MIB)
#define RMM_UNIT      UINT64_C(256)
#define LARGER_SHARE  8 /* of a request: how much larger a block of the unbounded cache may be */
#define UNCUT         UINT64_MAX

/* Pieces that serve the same requests. The number of a group is in the lowest bit of its keys. */
enum { SMALL, LARGE, SORTS };

static struct place {
    struct cw_pieces sort[SORTS];
    struct cw_live_sums now;
    uint64_t asked, given;
    uint64_t peak_live, peak_held;
    uint64_t segments; /* bytes */
    int is_set_up;
} places[CW_DEVICES];

static void note_peaks(struct place *place)
{
    if (place->now.live > place->peak_live)
        place->peak_live = place->now.live;
    if (place->now.held > place->peak_held)
        place->peak_held = place->now.held;
}

/* ---- segments ---- */

/* 0, or -1 if out of memory. */
static int add_segment(struct place *place, uint8_t device, unsigned sort, uint64_t bytes)
{
    uint64_t address = cw_replay_driver_alloc(device, bytes);

    if (address == 0)
        return -1;
    if (cw_pieces_add(&place->sort[sort], address, bytes) != 0) {
        cw_replay_driver_free(address);
        return -1;
    }
    place->segments += bytes;
    place->now.held += bytes;
    return 0;
}

static void drop_free_segments(struct place *place)
{
    uint64_t address, bytes;

    for (unsigned sort = 0; sort < SORTS; sort++) {
        while (cw_pieces_drop(&place->sort[sort], &address, &bytes)) {
            cw_replay_driver_free(address);
            place->segments -= bytes;
            place->now.held -= bytes;
        }
    }
}

/* ---- what each does with a request ---- */

struct wish {
    uint64_t bytes, most; /* of a piece used for a request */
    uint64_t rest;        /* minimum rest for which a piece is split */
    unsigned sort;
};

typedef int grow_function(struct place *place, uint8_t device, const struct wish *wish);

static int grow_unbounded(struct place *place, uint8_t device, const struct wish *wish)
{
    return add_segment(place, device, wish->sort, cw_size_round(wish->bytes));
}

static struct wish wish_unbounded(uint64_t bytes)
{
    uint64_t rounded = cw_size_round(bytes), larger = bytes + bytes / LARGER_SHARE;

    return (struct wish){bytes, rounded > larger ? rounded : larger, UNCUT, LARGE};
}

static int grow_pytorch(struct place *place, uint8_t device, const struct wish *wish)
{
    uint64_t bytes = wish->sort == SMALL         ? TORCH_STEP
                     : wish->bytes < TORCH_LARGE ? TORCH_SEGMENT
                                                 : cw_round_up(wish->bytes, TORCH_STEP);

    if (add_segment(place, device, wish->sort, bytes) == 0)
        return 0;
    drop_free_segments(place);
    return add_segment(place, device, wish->sort, bytes);
}

static struct wish wish_pytorch(uint64_t bytes)
{
    bytes = cw_round_up(bytes, TORCH_UNIT);
    return bytes <= TORCH_SMALL ? (struct wish){bytes, UINT64_MAX, TORCH_UNIT, SMALL}
                                : (struct wish){bytes, UINT64_MAX, MIB + 1, LARGE};
}

/* Half of the rest, or half of that, and so on down to the requested size. */
static int grow_rmm(struct place *place, uint8_t device, const struct wish *wish)
{
    uint64_t total = cw_replay_driver_total(), most = total / 10 * 9 / TORCH_STEP * TORCH_STEP;
    uint64_t remains = most > place->segments ? most - place->segments : 0, bytes;

    if (!place->is_set_up) {
        place->is_set_up = 1;
        bytes = total / 2 / TORCH_STEP * TORCH_STEP;
        if (add_segment(place, device, wish->sort, bytes) != 0)
            return -1;
        if (bytes >= wish->bytes)
            return 0;
        remains = most - bytes;
    }
    if (wish->bytes > remains)
        return -1;
    bytes = remains / 2 > wish->bytes ? remains / 2 : wish->bytes;
    bytes = cw_round_up(bytes, RMM_UNIT);
    while (add_segment(place, device, wish->sort, bytes) != 0) {
        if (bytes == wish->bytes)
            return -1;
        bytes = bytes / 2 > wish->bytes ? bytes / 2 / RMM_UNIT * RMM_UNIT : wish->bytes;
    }
    return 0;
}

static struct wish wish_rmm(uint64_t bytes)
{
    bytes = cw_round_up(bytes, RMM_UNIT);
    return (struct wish){bytes, UINT64_MAX, RMM_UNIT, LARGE};
}

/* ---- calls ---- */

static int is_modelled(unsigned kind, uint8_t device)
{
    return (kind == CW_KIND_DEVICE || kind == CW_KIND_PITCHED) && device < CW_MAX_DEVICES;
}

static uint32_t find(struct place *place, const struct wish *wish)
{
    return cw_pieces_take(&place->sort[wish->sort], wish->bytes, wish->most, wish->rest);
}

static void take_piece(struct cw_replay_take *take, struct wish wish, grow_function *grow)
{
    struct place *place = &places[take->device];
    uint32_t number = find(place, &wish);

    take->is_hit = number != 0;
    if (number == 0 && grow(place, take->device, &wish) == 0)
        number = find(place, &wish);
    if (number == 0)
        return;
    take->key = (uint64_t)number << 1 | wish.sort;
    place->asked += take->bytes;
    place->given += cw_pieces_bytes(&place->sort[wish.sort], number);
    place->now.live += take->bytes;
    note_peaks(place);
}

static void take_plain(struct cw_replay_take *take)
{
    struct place *place = &places[take->device];

    take->key = cw_replay_driver_alloc(take->device, take->bytes);
    if (take->key == 0)
        return;
    place->now.live += take->bytes;
    place->now.held += take->bytes;
    note_peaks(place);
}

static void take_with(struct cw_replay_take *take, struct wish (*wish)(uint64_t),
                      grow_function *grow)
{
    take->cause = CW_CAUSE_DRIVER;
    if (is_modelled(take->kind, take->device))
        take_piece(take, wish(take->bytes), grow);
    else
        take_plain(take);
}

static void take_unbounded(struct cw_replay_take *take)
{
    take_with(take, wish_unbounded, grow_unbounded);
}

static void take_pytorch(struct cw_replay_take *take)
{
    take_with(take, wish_pytorch, grow_pytorch);
}

static void take_rmm(struct cw_replay_take *take)
{
    take_with(take, wish_rmm, grow_rmm);
}

static int give(const struct cw_replay_block *block)
{
    struct place *place = &places[block->device];

    place->now.live -= block->bytes;
    if (is_modelled(block->kind, block->device)) {
        cw_pieces_give(&place->sort[block->key & 1], (uint32_t)(block->key >> 1));
        return 0;
    }
    cw_replay_driver_free(block->key);
    place->now.held -= block->bytes;
    return 1;
}

static struct cw_live_sums sums(uint8_t device)
{
    return places[device].now;
}

static uint64_t no_limit(uint8_t device)
{
    (void)device;
    return 0;
}

/* ---- begin and end ---- */

static int start(const struct cw_options *options)
{
    (void)options;
    return 0;
}

static int finish(struct cw_replay_result *result)
{
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        const struct place *place = &places[i];
        struct cw_replay_device *device = &result->device[i];

        device->peak_live = place->peak_live;
        device->peak_held = place->peak_held;
        device->asked = place->asked;
        device->given = place->given;
    }
    return 0;
}

static void stop(void)
{
    for (unsigned i = 0; i < CW_DEVICES; i++) {
        for (unsigned sort = 0; sort < SORTS; sort++)
            cw_pieces_destroy(&places[i].sort[sort]);
        places[i] = (struct place){.segments = 0};
    }
}

#define MODEL(name)                                                                                \
    .start = start, .take = take_##name, .give = give, .sums = sums, .limit = no_limit,            \
    .finish = finish, .stop = stop

const struct cw_replay_engine cw_replay_unbounded = {MODEL(unbounded), .has_endless_device = 1};
const struct cw_replay_engine cw_replay_pytorch = {MODEL(pytorch)};
const struct cw_replay_engine cw_replay_rmm = {MODEL(rmm)};
