/* SPDX-License-Identifier: MIT */
/*
 * A server that answers prompts, as those with continuous batches do: server SECONDS
 *
 * A thread for each of 48 clients copies a prompt to the device and waits for the answer. The
 * engine's thread makes steps: it lets requests join and leave the batch, takes a block for the
 * keys and values of each 64 tokens of each request in it, and takes for each step what the layers
 * need for the tokens of this step: prompts in parts of up to 2048 tokens, one token of each other
 * request. Requests come at random, in some minutes more, in some hardly any. Nothing is computed.
 */
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAYERS      6
#define WIDTH       2048
#define HIDDEN      8192
#define WORDS       128256
#define KEY_WIDTH   512 /* of keys or values of one token and layer */
#define BLOCK       64  /* tokens */
#define PART        2048
#define BATCH_MOST  48
#define BLOCKS_MOST 128
#define CLIENTS     48
#define QUEUE       256
#define HALF        2 /* bytes of a number */

struct request {
    int prompt, answer; /* tokens */
    int read, written;  /* of them */
    void *block[BLOCKS_MOST];
    int blocks;
    void *tokens; /* of the client's: the prompt */
    double arrival;
    int is_done;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct request *queue[QUEUE];
static int queued, is_over;
static double start, seconds;

/* ---- time ---- */

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9 - start;
}

static void pause_for(double span)
{
    struct timespec at = {(time_t)span, (long)((span - (double)(time_t)span) * 1e9)};

    nanosleep(&at, NULL);
}

/* ---- chance ---- */

static __thread unsigned long long dice;

static double chance(void)
{
    dice = dice * 6364136223846793005ull + 1442695040888963407ull;
    return ((double)(dice >> 11) + 0.5) / 9007199254740992.0;
}

static double spread(double median, double sigma)
{
    return median * exp(sigma * sqrt(-2 * log(chance())) * cos(6.283185307 * chance()));
}

static int between(double value, int least, int most)
{
    return value < least ? least : value > most ? most : (int)value;
}

/* ---- memory ---- */

static void *take(size_t bytes)
{
    void *block = NULL;

    if (cudaMalloc(&block, bytes) != cudaSuccess) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return block;
}

/* ---- the engine ---- */

static void grow(struct request *request, int tokens)
{
    int wanted = (tokens + BLOCK - 1) / BLOCK;

    while (request->blocks < wanted && request->blocks < BLOCKS_MOST)
        request->block[request->blocks++] = take((size_t)BLOCK * LAYERS * 2 * KEY_WIDTH * HALF);
}

/* Reads a part of the prompt, or writes one token. Returns how many tokens that are. */
static int advance(struct request *request, int room)
{
    int part = request->prompt - request->read;

    if (part > 0) {
        part = part < room ? part : room;
        request->read += part;
        grow(request, request->read);
        return part;
    }
    request->written++;
    grow(request, request->prompt + request->written);
    return 1;
}

/* What a step needs for so many tokens, of which the last of each request go to the head. */
static void run_layers(int tokens, int requests)
{
    size_t n = (size_t)tokens;
    void *values = take(n * WIDTH * HALF), *tables = take((size_t)requests * BLOCKS_MOST * 4);

    for (int i = 0; i < LAYERS; i++) {
        void *normed = take(n * WIDTH * HALF), *mixed = take(n * (WIDTH + 2 * KEY_WIDTH) * HALF);
        void *out, *up, *next;

        cudaFree(normed);
        out = take(n * WIDTH * HALF);
        cudaFree(mixed);
        next = take(n * WIDTH * HALF);
        cudaFree(out);
        cudaFree(values);
        up = take(n * HIDDEN * 2 * HALF);
        values = take(n * WIDTH * HALF);
        cudaFree(up);
        cudaFree(next);
    }
    {
        void *last = take((size_t)requests * WIDTH * HALF);
        void *scores = take((size_t)requests * WORDS * 4),
             *sorted = take((size_t)requests * WORDS * 8);
        int token;

        cudaFree(values);
        cudaMemcpy(&token, last, sizeof(token), cudaMemcpyDeviceToHost);
        cudaFree(sorted);
        cudaFree(scores);
        cudaFree(last);
        cudaFree(tables);
    }
}

static void leave(struct request **batch, int *count, int i)
{
    struct request *request = batch[i];

    for (int k = 0; k < request->blocks; k++)
        cudaFree(request->block[k]);
    batch[i] = batch[--*count];
    pthread_mutex_lock(&lock);
    request->is_done = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Those that may join; waits while there is nothing to do. Returns 0 at the end. */
static int join(struct request **batch, int *count)
{
    pthread_mutex_lock(&lock);
    while (*count == 0 && queued == 0 && !is_over)
        pthread_cond_wait(&changed, &lock);
    while (*count < BATCH_MOST && queued > 0) {
        batch[(*count)++] = queue[0];
        memmove(&queue[0], &queue[1], (size_t)--queued * sizeof(queue[0]));
    }
    pthread_mutex_unlock(&lock);
    return *count > 0;
}

static void *run_engine(void *unused)
{
    struct request *batch[BATCH_MOST];
    int count = 0;

    (void)unused;
    while (join(batch, &count)) {
        int tokens = 0;

        for (int i = 0; i < count; i++)
            if (PART - tokens > 0)
                tokens += advance(batch[i], PART - tokens);
        run_layers(tokens, count);
        pause_for(0.022 + tokens * 60e-6);
        for (int i = count; i-- > 0;)
            if (batch[i]->written >= batch[i]->answer)
                leave(batch, &count, i);
    }
    return NULL;
}

/* ---- the clients ---- */

static void answer(struct request *request)
{
    size_t bytes = (size_t)request->prompt * 8;
    void *host = calloc(1, bytes);
    void *mask;

    request->tokens = take(bytes);
    cudaMemcpy(request->tokens, host, bytes, cudaMemcpyHostToDevice);
    mask = take((size_t)request->prompt);
    pthread_mutex_lock(&lock);
    if (queued < QUEUE)
        queue[queued++] = request;
    else
        request->is_done = 1;
    pthread_cond_broadcast(&changed);
    while (!request->is_done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    cudaFree(mask);
    cudaFree(request->tokens);
    free(host);
}

static void *run_client(void *number)
{
    dice = (unsigned long long)(size_t)number * 7919 + 17;
    chance();
    while (now() < seconds) {
        struct request request = {.prompt = between(spread(350, 1.0), 8, 6000),
                                  .answer = between(spread(120, 0.7), 4, 1000)};
        /* Ten seconds with many requests, ten with some, ten with hardly any. */
        int phase = (int)(now() / 10) % 3;

        pause_for(-log(chance()) * (phase == 0 ? 3.0 : phase == 1 ? 9.0 : 40.0));
        if (now() < seconds)
            answer(&request);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t engine, client[CLIENTS];
    size_t layer = (size_t)WIDTH * (WIDTH * 2 + 2 * KEY_WIDTH + 3 * HIDDEN) * HALF;

    if (argc != 2)
        return 2;
    seconds = atof(argv[1]);
    start = now();
    for (int i = 0; i < LAYERS; i++)
        take(layer);
    take((size_t)WORDS * WIDTH * HALF);
    pthread_create(&engine, NULL, run_engine, NULL);
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_create(&client[i], NULL, run_client, (void *)i);
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(client[i], NULL);
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(engine, NULL);
    return 0;
}
