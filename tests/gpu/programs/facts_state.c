/* SPDX-License-Identifier: MIT */
/* What blocks, contexts, pools and addresses are to the driver, and who still gets answers at the
 * end of a process. See facts.h. */
#include "facts.h"

#include <pthread.h>

static int by_first_form(const char *name, void **found, int version, uint64_t flags)
{
    int (*ask)(const char *, void **, int, uint64_t);

    *(void **)&ask = dlsym(cu_library, "cuGetProcAddress");
    return ask ? ask(name, found, version, flags) : -1;
}

static int proc_address(const char *name, void **found, int version, uint64_t flags)
{
    int (*ask)(const char *, void **, int, uint64_t, int *);
    int answer = -1;

    *(void **)&ask = dlsym(cu_library, "cuGetProcAddress_v2");
    return ask ? ask(name, found, version, flags, &answer)
               : by_first_form(name, found, version, flags);
}

static void say_pointer(const char *fact,
                        int (*ask)(const char *, void **, int version, uint64_t flags),
                        const char *name, int version, uint64_t flags)
{
    void *found = &found;
    int result = ask(name, &found, version, flags);

    say("fact address-of-%s %d, pointer %s", fact, result,
        !found            ? "null"
        : found == &found ? "untouched"
                          : "set");
}

#define LEGACY                                    1
#define THREAD                                    2
#define HOOK(symbol, base, since, stream, family) {#symbol, base, since, stream},

/* Every function that cuwarden stands in front of, as its table has it. */
static const struct {
    const char *symbol, *base;
    int since, flags;
} hooks[] = {
#include "../../../src/hook/hooks.def"
};

#define NOBODYS_FLAGS 4

/* An answer that dlsym does not give is found by name, version and flags alone. Needs no device. */
static void ask_addresses(void)
{
    size_t same = 0, differ = 0, absent = 0;
    void *found, *exported;

    cu_find();
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        found = NULL;
        exported = dlsym(cu_library, hooks[i].symbol);
        if (!exported) {
            absent++;
        } else if (proc_address(hooks[i].base, &found, hooks[i].since, hooks[i].flags) == 0 &&
                   found == exported) {
            same++;
        } else {
            differ++;
            say("fact address-of-hook-%s %s", hooks[i].symbol,
                found ? "differs from dlsym's" : "none");
        }
    }
    say("fact addresses-of-hooks %zu as from dlsym, %zu not, %zu absent", same, differ, absent);
    say_pointer("unknown", proc_address, "cuNoSuchFunction", 12000, 0);
    say_pointer("unknown-in-first-form", by_first_form, "cuNoSuchFunction", 12000, 0);
    say_pointer("too-new", proc_address, "cuMemAllocAsync", 11010, 0);
    say_pointer("wrong-flags", proc_address, "cuMemAlloc", 12000, NOBODYS_FLAGS);
    say_pointer("empty", proc_address, "", 12000, 0);
}

static void ask_fork(void)
{
    cu_block block;
    void *current;
    int status;
    pid_t child;

    begin();
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(LIMIT_S / 2);
        say("fact forked-child-current-context %d", cu.current(&current));
        say("fact forked-child-alloc %d", cu.alloc(&block, 4096));
        say("fact forked-child-init %d", cu.init(0));
        _exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        say("fact forked-child-signal %d", WTERMSIG(status));
}

static void at_exit(void)
{
    cu_block block;

    say("fact exit-handler-alloc %d", cu.alloc(&block, 4096));
}

static int asked_exit;

static void __attribute__((destructor)) at_end(void)
{
    size_t available, total;

    if (asked_exit)
        say("fact destructor-of-program %d", cu.info(&available, &total));
}

static void ask_exit(void)
{
    asked_exit = 1;
    atexit(at_exit);
    begin();
}

static int zeros(cu_block block, size_t bytes)
{
    char *copy = calloc(1, bytes);
    int clean = 1;

    if (!copy)
        return -1;
    memset(copy, 1, bytes);
    MUST(cu.to_host(copy, block, bytes));
    for (size_t i = 0; i < bytes && clean; i++)
        clean = copy[i] == 0;
    free(copy);
    return clean;
}

#define PIECE ((size_t)16 << 20)
#define SMALL ((size_t)64 << 10)

/* A page of the driver's that other blocks keep. */
static void ask_small_zero(void)
{
    cu_block blocks[8], again;

    for (int i = 0; i < 8; i++) {
        MUST(cu.alloc(&blocks[i], SMALL));
        MUST(cu.set_bytes(blocks[i], 0x5a, SMALL));
    }
    MUST(cu.synchronize());
    MUST(cu.free_block(blocks[4]));
    MUST(cu.alloc(&again, SMALL));
    say("fact small-block-after-free-is-zero %s, %s address", zeros(again, SMALL) ? "yes" : "no",
        blocks[4] == again ? "the same" : "another");
}

static void ask_zero(void)
{
    cu_block first, again;

    begin();
    MUST(cu.alloc(&first, PIECE));
    say("fact fresh-block-is-zero %s", zeros(first, PIECE) ? "yes" : "no");
    MUST(cu.set_bytes(first, 0x5a, PIECE));
    MUST(cu.synchronize());
    MUST(cu.free_block(first));
    MUST(cu.alloc(&again, PIECE));
    say("fact block-after-free-is-zero %s, %s address", zeros(again, PIECE) ? "yes" : "no",
        first == again ? "the same" : "another");
    ask_small_zero();
}

#define POINTER_BUFFER_ID 7

static void ask_identity(void)
{
    unsigned long long id = 0, id_again = 0;
    struct cu_ipc handle, handle_again;
    int shared, shared_again;
    cu_block first, again;

    begin();
    memset(&handle, 0, sizeof(handle));
    memset(&handle_again, 0, sizeof(handle_again));
    MUST(cu.alloc(&first, PIECE));
    MUST(cu.pointer(&id, POINTER_BUFFER_ID, first));
    shared = cu.ipc(&handle, first);
    MUST(cu.free_block(first));
    MUST(cu.alloc(&again, PIECE));
    MUST(cu.pointer(&id_again, POINTER_BUFFER_ID, again));
    shared_again = cu.ipc(&handle_again, again);
    say("fact reused-block-address %s", first == again ? "the same" : "another");
    say("fact reused-block-buffer-id %s", id == id_again ? "the same" : "another");
    say("fact buffer-id-is-below-2-to-63 %s", (id | id_again) >> 63 ? "no" : "yes");
    if (shared || shared_again)
        say("fact reused-block-ipc-handle none, results %d and %d", shared, shared_again);
    else
        say("fact reused-block-ipc-handle %s",
            memcmp(&handle, &handle_again, sizeof(handle)) ? "another" : "the same");
}

static void ask_reset(void)
{
    unsigned long long id = 0, id_again = 0;
    cu_block block, kept;
    void *fresh;
    int device, retained;

    begin();
    MUST(cu.device(&device, 0));
    MUST(cu.alloc(&kept, 4096));
    if (more.id)
        MUST(more.id(context, &id));
    MUST(cu_fill(&kernels, 0x10, 1, 64, NULL));
    say("fact wild-write-synchronize %d", cu.synchronize());
    say("fact wild-write-alloc %d", cu.alloc(&block, 4096));
    say("fact wild-write-free %d", cu.free_block(kept));
    say("fact reset-after-wild-write %d", cu.reset(device));
    retained = cu.retain(&fresh, device);
    say("fact retain-after-reset %d", retained);
    if (retained != 0)
        return;
    say("fact set-after-reset %d", cu.set(fresh));
    say("fact context-after-reset %s handle, %s id", fresh == context ? "the same" : "another",
        !more.id || more.id(fresh, &id_again) != 0 ? "no"
        : id == id_again                           ? "the same"
                                                   : "another");
    say("fact alloc-after-reset %d", cu.alloc(&block, 4096));
}

/* Frees that cuwarden refuses itself while the pool keeps the block: with the driver's own code? */
static void ask_bad_frees(void)
{
    cu_block block;
    void *pinned;

    begin();
    MUST(cu.alloc(&block, PIECE));
    say("fact free-inside-block %d", cu.free_block(block + 512));
    MUST(cu.free_block(block));
    say("fact double-free %d", cu.free_block(block));
    say("fact free-of-nobodys-address %d", cu.free_block(1));
    MUST(cu.alloc_host(&pinned, 4096, 0));
    MUST(cu.free_host(pinned));
    say("fact double-free-host %d", cu.free_host(pinned));
    say("fact address-range-of-nobodys-address %d", cu.range(&block, NULL, 1));
}

static void ask_sizes(void)
{
    static const size_t odd[] = {1, 513, 4097, 70000, (1 << 20) + 1, (64 << 20) + 1};
    size_t before, after, total, pitch, pitch_again;
    cu_block bits = 0, block, base, rows;

    begin();
    MUST(cu.alloc(&block, 1));
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        MUST(cu.info(&before, &total));
        MUST(cu.alloc(&block, odd[i]));
        MUST(cu.info(&after, &total));
        bits |= block;
    }
    say("fact addresses-are-multiples-of %llu", (unsigned long long)(bits & -bits));
    say("fact device-use-of-64MiB-and-1 %s, %zu bytes",
        (before - after) % (2 << 20) == 0 ? "pages of 2 MiB" : "no pages of 2 MiB", before - after);
    MUST(cu.alloc(&block, 1000));
    MUST(cu.range(&base, &after, block));
    say("fact address-range-of-1000-bytes %zu", after);
    MUST(more.alloc_pitch(&rows, &pitch, 1000, 30, 4));
    MUST(cu.free_block(rows));
    MUST(more.alloc_pitch(&rows, &pitch_again, 1000, 77, 4));
    say("fact pitch-of-same-width %s", pitch == pitch_again ? "the same" : "another");
}

/* A request that fails is made once more after something was given back. */
static void ask_out_of_memory(void)
{
    size_t available, total;
    cu_block block;

    begin();
    MUST(cu.info(&available, &total));
    say("fact too-large-alloc %d", cu.alloc(&block, 2 * total));
    say("fact alloc-after-out-of-memory %d", cu.alloc(&block, 4096));
    say("fact synchronize-after-out-of-memory %d", cu.synchronize());
}

static void ask_ended_context(void)
{
    void *second;
    cu_block block, base;
    size_t bytes;

    begin();
    second = new_context();
    MUST(cu.alloc(&block, PIECE));
    MUST(more.destroy(second));
    MUST(cu.set(context));
    say("fact block-after-context-destroy %s",
        cu.range(&base, &bytes, block) == 0 ? "there" : "gone");
}

/* A pool of device 0, as CUmemPoolProps has it. */
struct pool_shape {
    int type, handles, location, device;
    uint64_t rest[9];
};

#define PINNED            1
#define ON_DEVICE         1
#define RELEASE_THRESHOLD 4

static void ask_pools(void)
{
    struct pool_shape shape = {.type = PINNED, .location = ON_DEVICE};
    cu_block block, base;
    void *pool;
    size_t bytes;

    begin();
    if (!more.make_pool || !cu.alloc_async || cu.alloc_async(&block, PIECE, NULL) != 0) {
        say("fact free-of-async-block missing");
        return;
    }
    MUST(cu.synchronize());
    say("fact free-of-async-block %d", cu.free_block(block));
    MUST(more.make_pool(&pool, &shape));
    MUST(more.alloc_from_pool(&block, PIECE, pool, NULL));
    MUST(cu.synchronize());
    MUST(more.end_pool(pool));
    say("fact block-after-pool-destroy %s", cu.range(&base, &bytes, block) == 0 ? "there" : "gone");
    say("fact free-after-pool-destroy %d", cu.free_async(block, NULL));
    MUST(cu.synchronize());
}

/* Half of the device lies unused in a pool, and three quarters are asked for. */
static void ask_full_device(void)
{
    unsigned long long keep = ~0ull;
    size_t available, total;
    cu_block block;
    void *pool;
    int device;

    begin();
    MUST(cu.device(&device, 0));
    MUST(cu.info(&available, &total));
    if (!more.default_pool || more.default_pool(&pool, device) != 0 ||
        more.set_pool(pool, RELEASE_THRESHOLD, &keep) != 0 ||
        cu.alloc_async(&block, available / 2, NULL) != 0) {
        say("fact full-device-takes-from-pools missing");
        return;
    }
    MUST(cu.free_async(block, NULL));
    MUST(cu.synchronize());
    say("fact full-device-takes-from-pools %d", cu.alloc(&block, available / 4 * 3));
}

#define OWN_STREAM ((void *)2) /* CU_STREAM_PER_THREAD */

static void *capture_and_end(void *unused)
{
    MUST(cu.set(context));
    MUST(cu.begin_capture(OWN_STREAM, 0));
    return unused;
}

/* Of its own default stream, in mode GLOBAL, which other threads would feel. */
static void ask_ended_thread(void)
{
    pthread_t thread;
    cu_block block;

    begin();
    if (pthread_create(&thread, NULL, capture_and_end, NULL) == 0)
        pthread_join(thread, NULL);
    say("fact alloc-after-a-thread-ended-in-a-capture %d", cu.alloc(&block, 4096));
    say("fact synchronize-after-a-thread-ended-in-a-capture %d", cu.synchronize());
}

static const struct subject subjects[] = {
    {"addresses", ask_addresses},
    {"fork", ask_fork},
    {"exit", ask_exit},
    {"zero", ask_zero},
    {"identity", ask_identity},
    {"bad-frees", ask_bad_frees},
    {"sizes", ask_sizes},
    {"out-of-memory", ask_out_of_memory},
    {"ended-context", ask_ended_context},
    {"ended-thread", ask_ended_thread},
    {"pools", ask_pools},
    {"full-device", ask_full_device},
    {"reset", ask_reset},
};

int main(int argc, char **argv)
{
    return facts_main(argc, argv, subjects, sizeof(subjects) / sizeof(subjects[0]));
}
