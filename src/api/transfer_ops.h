/* SPDX-License-Identifier: MIT */
/*
 * What downloads, bridges, stream sets and prefetches need of the driver besides a place and its
 * context (api/buffer_ops.h). The hook layer gives functions over it, unit tests a fake.
 *
 * For every function: no lock is held, the thread counts as inside a hook, and the context of the
 * stream or event is current. It returns the driver's code, 0 for success, and writes its
 * out-parameters on 0 only. None but event_wait and stream_wait waits for the device.
 */
#ifndef CW_API_TRANSFER_OPS_H
#define CW_API_TRANSFER_OPS_H

#include <stdint.h>

/* Codes that are told apart (cuda.h). */
#define CW_TRANSFER_NOT_READY 600 /* CUDA_ERROR_NOT_READY */

struct cw_transfer_ops {
    /* Pinned memory, as the program would take it and give it back. */
    int (*host_alloc)(uint64_t bytes, void **out);
    int (*host_free)(void *address);

    /* Does not wait for the default stream, nor it for this one. */
    int (*stream_create)(void **out);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);

    int (*event_create)(int is_timed, void **out);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    /* Later work of the stream begins after what the event was recorded for. */
    int (*event_order)(void *event, void *stream);
    /* CW_TRANSFER_NOT_READY: not yet. */
    int (*event_query)(void *event);
    int (*event_wait)(void *event);
    /* Between two timed events, both of which have passed. */
    int (*event_elapsed)(void *begin, void *end, uint64_t *out_ns);

    int (*download)(void *to, uint64_t from, uint64_t bytes, void *stream);
};

#endif
