/* SPDX-License-Identifier: MIT */
/*
 * Nodes that move, in buffers that grow with them: 1,000 at first, 1,024,000 in the end. What is on
 * the device stays there when a buffer grows; only new nodes are uploaded. What is there comes back
 * while the host is at work on what came before. Without cuwarden the arrays have their last size
 * from the start, each copy is waited for, and the sums printed are the same to the bit. The
 * arithmetic is the host's, so that no compiler of CUDA is needed.
 *
 *   cc $(pkg-config --cflags cuwarden) nbody.c -o nbody -lcudart $(pkg-config --libs cuwarden)
 *   cuwarden run -- ./nbody
 */
#include <cuda_runtime_api.h>
#include <cuwarden/cuwarden.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 1000
#define LAST  1024000
#define SIDE  64 /* cells of the grid in each direction */

struct vector {
    float x, y, z;
};

/* A spring between two nodes. */
struct edge {
    uint32_t from, to;
    float length, stiffness;
    float force[4];
};

struct cell {
    uint32_t count;
    float mass;
};

/* An array on the device, and where the host works on it. */
struct array {
    enum cuwarden_buffer_preset preset;
    const char *name;
    size_t element_bytes;
    uint64_t buffer;        /* 0: it is `at`, of the last size */
    uint64_t frames, frame; /* its download and the frame that was started; 0: there is none */
    void *at, *host;
};

enum { POSITIONS, VELOCITIES, EDGES, CELLS, ARRAYS };

static struct array arrays[ARRAYS] = {
    {CUWARDEN_POSITIONS, "positions", sizeof(struct vector), 0, 0, 0, NULL, NULL},
    {CUWARDEN_VELOCITIES, "velocities", sizeof(struct vector), 0, 0, 0, NULL, NULL},
    {CUWARDEN_EDGES, "edges", sizeof(struct edge), 0, 0, 0, NULL, NULL},
    {CUWARDEN_CELLS, "cells", sizeof(struct cell), 0, 0, 0, NULL, NULL},
};

static void must(int is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "nbody: %s\n", what);
    exit(1);
}

static size_t last_count(int which)
{
    return which == CELLS ? (size_t)SIDE * SIDE * SIDE : LAST;
}

static void begin(int which)
{
    struct array *array = &arrays[which];
    struct cuwarden_buffer_spec spec = cuwarden_preset(array->preset, array->name);
    size_t bytes = last_count(which) * array->element_bytes;
    int error = cuwarden_buffer_make(&spec, &array->buffer);

    must(error == CUWARDEN_OK || error == CUWARDEN_NOT_ACTIVE, cuwarden_error_text(error));
    if (error == CUWARDEN_NOT_ACTIVE)
        must(cudaMalloc(&array->at, bytes) == cudaSuccess, "no device memory");
    else if (which != CELLS) /* which never come back */
        error = cuwarden_download_make(array->name, bytes, &array->frames);
    must(error == CUWARDEN_OK || error == CUWARDEN_NOT_ACTIVE, cuwarden_error_text(error));
    array->host = malloc(bytes);
    must(array->host != NULL, "no memory");
}

static void end(int which)
{
    if (arrays[which].buffer != 0)
        cuwarden_buffer_end(arrays[which].buffer);
    else
        cudaFree(arrays[which].at);
    if (arrays[which].frames != 0)
        cuwarden_download_end(arrays[which].frames);
    free(arrays[which].host);
}

/* The array has room for so many, those from `from` on are the host's. */
static void upload(int which, size_t from, size_t count)
{
    struct array *array = &arrays[which];
    size_t size = array->element_bytes;
    int error = CUWARDEN_OK;

    if (array->buffer != 0)
        error = cuwarden_ensure_capacity(array->buffer, count, NULL, &array->at);
    must(error == CUWARDEN_OK, cuwarden_error_text(error));
    must(cudaMemcpy((char *)array->at + from * size, (char *)array->host + from * size,
                    (count - from) * size, cudaMemcpyHostToDevice) == cudaSuccess,
         "the upload failed");
}

/* Lets the first `count` come from the device; nobody waits for them yet. */
static void start_download(int which, size_t count)
{
    struct array *array = &arrays[which];
    int error;

    if (array->frames == 0)
        return;
    error = cuwarden_download_start(array->frames, array->at, count * array->element_bytes, NULL,
                                    &array->frame);
    must(error == CUWARDEN_OK, cuwarden_error_text(error));
}

/* Where they are. Until the next ones have come it is nobody else's. */
static const void *end_download(int which, size_t count)
{
    struct array *array = &arrays[which];
    struct cuwarden_frame frame = {.data = array->host};
    int error = CUWARDEN_OK;

    if (array->frames != 0)
        error = cuwarden_download_wait(array->frames, array->frame, &frame);
    else
        must(cudaMemcpy(array->host, array->at, count * array->element_bytes,
                        cudaMemcpyDeviceToHost) == cudaSuccess,
             "the download failed");
    must(error == CUWARDEN_OK, cuwarden_error_text(error));
    return frame.data;
}

/* ---- the nodes ---- */

static uint32_t state = 1;

static float random_part(void)
{
    state = state * 1664525 + 1013904223;
    return (float)(state >> 8) / (float)(1 << 24);
}

static void add_nodes(size_t from, size_t count)
{
    struct vector *position = arrays[POSITIONS].host, *velocity = arrays[VELOCITIES].host;
    struct edge *edge = arrays[EDGES].host;

    for (size_t i = from; i < count; i++) {
        position[i] = (struct vector){random_part(), random_part(), random_part()};
        velocity[i] = (struct vector){0, 0, 0};
        edge[i] = (struct edge){.from = (uint32_t)i,
                                .to = (uint32_t)(random_part() * (float)i),
                                .length = 0.01F,
                                .stiffness = random_part()};
    }
    for (int which = POSITIONS; which <= EDGES; which++)
        upload(which, from, count);
}

static size_t cell_of(struct vector at)
{
    size_t x = (size_t)(at.x * SIDE) % SIDE, y = (size_t)(at.y * SIDE) % SIDE;

    return (x * SIDE + y) * SIDE + (size_t)(at.z * SIDE) % SIDE;
}

static float inside(float at)
{
    return at < 0 ? -at : at > 1 ? 2 - at : at;
}

static void move(size_t count)
{
    struct vector *position = arrays[POSITIONS].host, *velocity = arrays[VELOCITIES].host;
    struct cell *cell = arrays[CELLS].host;
    const struct vector *old, *old_velocity;
    const struct edge *edge;

    for (int which = POSITIONS; which <= EDGES; which++)
        start_download(which, count);
    memset(cell, 0, last_count(CELLS) * sizeof(*cell));
    old = end_download(POSITIONS, count);
    for (size_t i = 0; i < count; i++)
        cell[cell_of(old[i])].count++;
    old_velocity = end_download(VELOCITIES, count);
    edge = end_download(EDGES, count);
    for (size_t i = 0; i < count; i++) {
        const struct vector *other = &old[edge[i].to];
        float pull = edge[i].stiffness * 0.001F;

        velocity[i].x = old_velocity[i].x + (other->x - old[i].x - edge[i].length) * pull;
        velocity[i].y = old_velocity[i].y + (other->y - old[i].y - edge[i].length) * pull;
        velocity[i].z = old_velocity[i].z + (other->z - old[i].z - edge[i].length) * pull;
    }
    for (size_t i = 0; i < count; i++) {
        float crowd = 1.0F / (1.0F + (float)cell[cell_of(old[i])].count);

        position[i].x = inside(old[i].x + velocity[i].x * crowd);
        position[i].y = inside(old[i].y + velocity[i].y * crowd);
        position[i].z = inside(old[i].z + velocity[i].z * crowd);
    }
    upload(POSITIONS, 0, count);
    upload(VELOCITIES, 0, count);
    upload(CELLS, 0, count / 8 < last_count(CELLS) ? count / 8 : last_count(CELLS));
}

/* FNV-1a over all bytes that are on the device. */
static uint64_t sum(int which, size_t count)
{
    const unsigned char *byte = end_download(which, count);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < count * arrays[which].element_bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void tell_sums(size_t count)
{
    printf("%zu nodes:", count);
    for (int which = POSITIONS; which <= EDGES; which++)
        start_download(which, count);
    for (int which = POSITIONS; which <= EDGES; which++)
        printf(" %016" PRIx64, sum(which, count));
    printf("\n");
}

static void tell_more(void)
{
    struct cuwarden_buffer now;
    struct cuwarden_stats stats;

    for (int which = 0; which < ARRAYS; which++)
        if (cuwarden_buffer_now(arrays[which].buffer, &now) == CUWARDEN_OK)
            fprintf(stderr,
                    "%s: %" PRIu64 " of %" PRIu64 " elements, %" PRIu64 " resizes, %" PRIu64
                    " bytes copied\n",
                    now.name, now.used, now.capacity, now.resizes, now.copied_bytes);
    if (cuwarden_device_stats(0, &stats) == CUWARDEN_OK)
        fprintf(stderr, "%" PRIu64 " downloads of %" PRIu64 " bytes, overlapped by %.0f%%\n",
                stats.transfers, stats.transfer_bytes, 100 * stats.transfer_overlap);
}

/* -v: also how buffers and downloads stand, on stderr. */
int main(int argc, char **argv)
{
    size_t before = 0;

    cudaFree(NULL); /* a context, for the buffers */
    for (int which = 0; which < ARRAYS; which++)
        begin(which);
    for (size_t count = FIRST; count <= LAST; count *= 2) {
        add_nodes(before, count);
        move(count);
        tell_sums(count);
        cuwarden_step("growth");
        before = count;
    }
    if (argc == 2 && strcmp(argv[1], "-v") == 0)
        tell_more();
    for (int which = 0; which < ARRAYS; which++)
        end(which);
    return 0;
}
