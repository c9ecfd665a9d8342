/* SPDX-License-Identifier: MIT */
/* See row_memory.h. */
#include "api/row_memory.h"

/* The bytes from an address on, of a block or of what is mapped behind it piece by piece. */
static int look_far(const struct cw_bridge_ops *ops, uint64_t address, uint64_t wanted,
                    struct cw_bridge_memory *out, uint64_t *out_bytes)
{
    struct cw_bridge_memory next;
    int code = ops->look(address, out);

    if (code != 0)
        return code;
    *out_bytes = out->base + out->bytes - address;
    while (*out_bytes < wanted && out->context == 0 &&
           ops->look(address + *out_bytes, &next) == 0 && next.context == 0 &&
           next.device == out->device && next.base == address + *out_bytes && next.bytes != 0)
        *out_bytes += next.bytes;
    return 0;
}

int cw_rows_check_memory(const struct cw_rows *rows, const struct cw_row *row,
                         const struct cw_bridge_ops *ops, const struct cw_buffer_place *place,
                         const void *at, uint64_t bytes, struct cw_bridge_memory *out)
{
    const char *what = rows->what, *name = row->name;
    uint64_t there = 0;

    if (look_far(ops, (uint64_t)(uintptr_t)at, bytes, out, &there) != 0)
        return cw_api_fail(CUWARDEN_NOT_FOUND,
                           "%s '%s' cannot copy: the program has no block at %p", what, name, at);
    if (out->is_host)
        return cw_api_fail(CUWARDEN_INVALID, "%s '%s' cannot copy: %p is memory of the host", what,
                           name, at);
    if (out->device != place->device)
        return cw_api_fail(CUWARDEN_INVALID,
                           "%s '%s' cannot copy: %p is on device %d, and should be on device %u",
                           what, name, at, out->device, place->device);
    if (out->context != 0 && out->context != place->context.handle)
        return cw_api_fail(CUWARDEN_INVALID,
                           "%s '%s' was made for another context of device %u than that of %p",
                           what, name, place->device, at);
    if (there < bytes)
        return cw_api_fail(CUWARDEN_TOO_LARGE,
                           "%s '%s' cannot copy %ju bytes: at %p the block has %ju", what, name,
                           (uintmax_t)bytes, at, (uintmax_t)there);
    return CUWARDEN_OK;
}
