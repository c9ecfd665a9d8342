/* SPDX-License-Identifier: MIT */
/* User objects: something of the program's that graphs keep alive, and a function that ends it.
 *
 * A graph owns its shares; a copy of the graph, and so an executable one, has as many of its own.
 * The function runs on a thread of its own when nobody has a reference left, as the driver's does:
 * not in the call that gave the last one back. Guarded by sim.lock.
 */
#include "sim_user.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

struct sim_user { /* fits in what sim_object.c has for it */
    struct sim_object head;
    size_t refs; /* the program's and the graphs' */
    CUhostFn destroy;
    void *argument;
};

_Static_assert(sizeof(struct sim_user) <= sizeof(struct sim_object) + 64, "as large as its slot");

struct sim_share {
    struct sim_share *next;
    struct sim_user *user;
    size_t count;
};

struct farewell {
    CUhostFn destroy;
    void *argument;
};

static void *say(void *argument)
{
    struct farewell farewell = *(struct farewell *)argument;

    free(argument);
    farewell.destroy(farewell.argument);
    return NULL;
}

static void end(struct sim_user *user)
{
    struct farewell *farewell = malloc(sizeof *farewell);
    pthread_t thread;

    if (!farewell)
        abort();
    *farewell = (struct farewell){user->destroy, user->argument};
    sim_object_destroy(user);
    if (pthread_create(&thread, NULL, say, farewell) != 0)
        abort();
    pthread_detach(thread);
}

static void give_back(struct sim_user *user, size_t count)
{
    user->refs -= count;
    if (user->refs == 0)
        end(user);
}

static struct sim_share *share_of(const struct sim_graph *graph, const struct sim_user *user)
{
    struct sim_share *share = graph->shares;

    while (share && share->user != user)
        share = share->next;
    return share;
}

static void add_share(struct sim_graph *graph, struct sim_user *user, size_t count)
{
    struct sim_share *share = share_of(graph, user);

    if (!share) {
        share = calloc(1, sizeof *share);
        if (!share)
            abort();
        share->user = user;
        share->next = graph->shares;
        graph->shares = share;
    }
    share->count += count;
}

void sim_user_copy_shares(struct sim_graph *to, const struct sim_graph *from)
{
    for (const struct sim_share *share = from->shares; share; share = share->next) {
        share->user->refs += share->count;
        add_share(to, share->user, share->count);
    }
}

void sim_user_drop_shares(struct sim_graph *graph)
{
    while (graph->shares) {
        struct sim_share *share = graph->shares;

        graph->shares = share->next;
        give_back(share->user, share->count);
        free(share);
    }
}

static bool is_good(CUuserObject object, unsigned int count)
{
    return sim_object_is(object, SIM_USER) && count > 0 && count <= INT_MAX;
}

/* ---- entry points ---- */

CUresult sim_cuUserObjectCreate(CUuserObject *out, void *pointer, CUhostFn destroy,
                                unsigned int count, unsigned int flags)
{
    struct sim_user *user;

    if (!out || !destroy || count == 0 || count > INT_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    user = sim_object_create(SIM_USER);
    if (!user)
        return CUDA_ERROR_OUT_OF_MEMORY;
    user->refs = count;
    user->destroy = destroy;
    user->argument = pointer;
    *out = (CUuserObject)user;
    return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    if (!is_good(object, count))
        return CUDA_ERROR_INVALID_VALUE;
    ((struct sim_user *)object)->refs += count;
    return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    if (!is_good(object, count) || count > ((struct sim_user *)object)->refs)
        return CUDA_ERROR_INVALID_VALUE;
    give_back((struct sim_user *)object, count);
    return CUDA_SUCCESS;
}

/* Flags say that the caller's references are moved; else the graph has new ones. */
CUresult sim_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                     unsigned int flags)
{
    if (!sim_object_is(graph, SIM_GRAPH) || !is_good(object, count) ||
        (flags != 0 && flags != CU_GRAPH_USER_OBJECT_MOVE))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags == 0)
        ((struct sim_user *)object)->refs += count;
    add_share((struct sim_graph *)graph, (struct sim_user *)object, count);
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphReleaseUserObject(CUgraph handle, CUuserObject object, unsigned int count)
{
    struct sim_graph *graph = (struct sim_graph *)handle;
    struct sim_share **at, *share;

    if (!sim_object_is(graph, SIM_GRAPH) || !is_good(object, count))
        return CUDA_ERROR_INVALID_VALUE;
    share = share_of(graph, (struct sim_user *)object);
    if (!share || share->count < count)
        return CUDA_ERROR_INVALID_VALUE;
    share->count -= count;
    if (share->count == 0) {
        for (at = &graph->shares; *at != share; at = &(*at)->next)
            ;
        *at = share->next;
        free(share);
    }
    give_back((struct sim_user *)object, count);
    return CUDA_SUCCESS;
}
