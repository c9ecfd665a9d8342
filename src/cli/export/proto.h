/* SPDX-License-Identifier: MIT */
/*
 * Messages in the wire format of Protocol Buffers, and the gzip stream that they are written to.
 * https://protobuf.dev/programming-guides/encoding/
 */
#ifndef CW_CLI_PROTO_H
#define CW_CLI_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

/* Zero-initialized: empty. */
struct cw_proto {
    unsigned char *data;
    size_t len, cap;
    int failed; /* out of memory */
};

void cw_proto_number(struct cw_proto *proto, unsigned field, uint64_t value);
void cw_proto_bytes(struct cw_proto *proto, unsigned field, const void *data, size_t len);
/* Nests `inner`, then empties it. */
void cw_proto_message(struct cw_proto *proto, unsigned field, struct cw_proto *inner);
void cw_proto_free(struct cw_proto *proto);

struct cw_gzip {
    z_stream stream;
    FILE *out;
    int failed;
};

/* 0, or -1 if out of memory. */
int cw_gzip_begin(struct cw_gzip *gzip, FILE *out);
void cw_gzip_write(struct cw_gzip *gzip, const void *data, size_t len);
/* Required after every begin; 0, or -1 if not everything was written. */
int cw_gzip_end(struct cw_gzip *gzip);

#endif
