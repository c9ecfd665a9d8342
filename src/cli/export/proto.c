/* SPDX-License-Identifier: MIT */
/* Protocol Buffers and gzip. See proto.h. */
#include "cli/export/proto.h"

#include <stdlib.h>
#include <string.h>

#define VARINT_MAX   10
#define WIRE_VARINT  0u
#define WIRE_BYTES   2u
#define CHUNK        16384
#define GZIP_FORMAT  16 /* zlib: write a gzip header */
#define MEMORY_LEVEL 8

static unsigned char *reserve(struct cw_proto *proto, size_t len)
{
    if (proto->failed)
        return NULL;
    if (proto->cap - proto->len < len) {
        size_t cap = (proto->cap + len) * 2;
        unsigned char *grown = realloc(proto->data, cap);

        if (!grown) {
            proto->failed = 1;
            return NULL;
        }
        proto->data = grown;
        proto->cap = cap;
    }
    return proto->data + proto->len;
}

static void put_varint(struct cw_proto *proto, uint64_t value)
{
    unsigned char *at = reserve(proto, VARINT_MAX);

    if (!at)
        return;
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    proto->len = (size_t)(at - proto->data);
}

void cw_proto_number(struct cw_proto *proto, unsigned field, uint64_t value)
{
    put_varint(proto, field << 3 | WIRE_VARINT);
    put_varint(proto, value);
}

void cw_proto_bytes(struct cw_proto *proto, unsigned field, const void *data, size_t len)
{
    unsigned char *at;

    put_varint(proto, field << 3 | WIRE_BYTES);
    put_varint(proto, len);
    at = reserve(proto, len);
    if (!at || len == 0)
        return;
    memcpy(at, data, len);
    proto->len += len;
}

void cw_proto_message(struct cw_proto *proto, unsigned field, struct cw_proto *inner)
{
    cw_proto_bytes(proto, field, inner->data, inner->len);
    if (inner->failed)
        proto->failed = 1;
    inner->len = 0;
}

void cw_proto_free(struct cw_proto *proto)
{
    free(proto->data);
    *proto = (struct cw_proto){.data = NULL};
}

/* ---- gzip ---- */

int cw_gzip_begin(struct cw_gzip *gzip, FILE *out)
{
    *gzip = (struct cw_gzip){.out = out};
    return deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_FORMAT,
                        MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK
               ? 0
               : -1;
}

static void put_deflated(struct cw_gzip *gzip, int flush)
{
    unsigned char chunk[CHUNK];

    do {
        size_t len;

        gzip->stream.next_out = chunk;
        gzip->stream.avail_out = sizeof(chunk);
        if (deflate(&gzip->stream, flush) == Z_STREAM_ERROR)
            gzip->failed = 1;
        len = sizeof(chunk) - gzip->stream.avail_out;
        if (fwrite(chunk, 1, len, gzip->out) != len)
            gzip->failed = 1;
    } while (gzip->stream.avail_out == 0 && !gzip->failed);
}

void cw_gzip_write(struct cw_gzip *gzip, const void *data, size_t len)
{
    gzip->stream.next_in = (unsigned char *)data;
    gzip->stream.avail_in = (uInt)len;
    put_deflated(gzip, Z_NO_FLUSH);
}

int cw_gzip_end(struct cw_gzip *gzip)
{
    put_deflated(gzip, Z_FINISH);
    deflateEnd(&gzip->stream);
    return gzip->failed ? -1 : 0;
}
