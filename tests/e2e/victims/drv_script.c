/* SPDX-License-Identifier: MIT */
/*
 * Does what its arguments say, one command each, and says what the driver returned: WORD:ARG:ARG...
 * Blocks, contexts and streams have names of one letter; a block keeps its address when it is
 * freed. What differs from run to run (addresses, counts of calls) goes to standard error.
 *
 *   repeat:N ... end      until:FILE ... end (as long as the file does not exist)
 *   thread ... end        fork ... end (the child ends with _exit)
 *
 * See the table of commands for the others, and those of script_memory.c and script_work.c, which
 * have what concerns how much memory there is.
 */
#include "script.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "in_thread.h"

#include <sys/wait.h>
#include <unistd.h>

#include "cusim.h"

#define UNTIL_MOST 300000 /* turns of until, each a millisecond or more: as long as tests wait */

/* Deprecated, and so not by their names. */
CUresult attach(CUcontext *context, unsigned flags) __asm__("cuCtxAttach");
CUresult detach(CUcontext context) __asm__("cuCtxDetach");

struct block blocks[128];
static CUcontext contexts[128];
static CUstream streams[128];
static __thread int quiet; /* inside a repeat */

static CUcontext *context_at(const struct args *args, int i)
{
    return &contexts[args->text[i][0] & 127];
}

static CUstream *stream_at(const struct args *args, int i)
{
    return &streams[args->text[i][0] & 127];
}

/* current[:CONTEXT]; attach: to the current one; release and reset:ORDINAL; free-again is for
 * stacks of its own. */
#define CALLS(ROW)                                                                                 \
    ROW("current", run_current, cuCtxSetCurrent(args->text[0][0] ? *context_at(args, 0) : NULL))   \
    ROW("destroy", run_destroy, cuCtxDestroy(*context_at(args, 0)))                                \
    ROW("attach", run_attach, attach(context_at(args, 0), 0))                                      \
    ROW("detach", run_detach, detach(*context_at(args, 0)))                                        \
    ROW("release", run_release, cuDevicePrimaryCtxRelease((int)size_at(args, 0)))                  \
    ROW("reset", run_reset, cuDevicePrimaryCtxReset((int)size_at(args, 0)))                        \
    ROW("sync", run_sync, cuCtxSynchronize())                                                      \
    ROW("free", run_free, cuMemFree(block_at(args, 0)->at))                                        \
    ROW("free-again", run_free_again, cuMemFree(block_at(args, 0)->at))                            \
    ROW("free-host", run_free_host, cuMemFreeHost((void *)block_at(args, 0)->at))                  \
    ROW("free-async", run_free_async, cuMemFreeAsync(block_at(args, 0)->at, NULL))                 \
    ROW("unregister", run_unregister, cuMemHostUnregister((void *)block_at(args, 0)->at))          \
    ROW("close", run_close, cuIpcCloseMemHandle(block_at(args, 0)->at))                            \
    ROW("stream", run_stream, cuStreamCreate(stream_at(args, 0), CU_STREAM_NON_BLOCKING))

/* WORD:BLOCK:BYTES, and pinned:BLOCK:BYTES:FLAGS. */
#define ALLOCS(ROW)                                                                                \
    ROW("alloc", run_alloc, cuMemAlloc(&block->at, block->bytes))                                  \
    ROW("host", run_host, cuMemAllocHost((void **)&block->at, block->bytes))                       \
    ROW("pinned", run_pinned,                                                                      \
        cuMemHostAlloc((void **)&block->at, block->bytes, (unsigned)size_at(args, 2)))

CALLS(DEFINE_CALL)
ALLOCS(DEFINE_ALLOC)

/* ---- contexts ---- */

static int run_device(const struct args *args) /* device:ORDINAL[:CONTEXT] */
{
    *context_at(args, 1) = use_device((int)size_at(args, 0));
    return 0;
}

static int run_context(const struct args *args) /* context:CONTEXT:ORDINAL */
{
    MUST(cuInit(0));
    return (int)cuCtxCreate_v2(context_at(args, 0), 0, (int)size_at(args, 1));
}

static int run_here(const struct args *args) /* here: the name of the current context */
{
    CUcontext current = NULL;
    int rc = (int)cuCtxGetCurrent(&current);
    char name = 127;

    (void)args;
    while (name > 0 && (current == NULL || contexts[(int)name] != current))
        name--;
    say("here: %d, %c", rc, name > 0 ? name : '-');
    return rc;
}

/* ---- memory ---- */

static NOINLINE int run_pitch(const struct args *args) /* pitch:BLOCK:WIDTH:HEIGHT:ELEMENT */
{
    struct block *block = block_at(args, 0);
    size_t pitch = 0;
    CUresult rc = cuMemAllocPitch(&block->at, &pitch, size_at(args, 1), size_at(args, 2),
                                  (unsigned)size_at(args, 3));

    block->bytes = pitch * size_at(args, 2);
    say("pitch %zu", pitch);
    return (int)rc;
}

static int run_physical(const struct args *args) /* physical:BYTES of virtual memory management */
{
    CUmemGenericAllocationHandle handle;

    return (int)cuMemCreate(&handle, size_at(args, 0), &on_device, 0);
}

static int run_same(const struct args *args) /* same:BLOCK:BLOCK, on standard error */
{
    fprintf(stderr, "%s %s\n", args->word,
            block_at(args, 0)->at == block_at(args, 1)->at ? "yes" : "no");
    return 0;
}

/* ---- what it is used for ---- */

static int run_write(const struct args *args) /* write:BLOCK:BYTE[:STREAM] */
{
    struct block *block = block_at(args, 0);
    unsigned char byte = (unsigned char)size_at(args, 1);

    return (int)cuMemsetD8Async(block->at, byte, block->bytes, *stream_at(args, 2));
}

/* At once and behind the driver's back: blocks are plain memory here. */
static int run_poke(const struct args *args) /* poke:BLOCK:BYTE */
{
    memset((void *)block_at(args, 0)->at, (int)size_at(args, 1), block_at(args, 0)->bytes);
    return 0;
}

static int run_holds(const struct args *args) /* holds:BLOCK, when all work is done */
{
    const struct block *block = block_at(args, 0);
    const unsigned char *byte = (const unsigned char *)block->at;
    size_t same = 0;

    cusim_wait_idle();
    while (same < block->bytes && byte[same] == byte[0])
        same++;
    say("%s: %zu times %d", args->word, same, same ? byte[0] : -1);
    return 0;
}

static int run_trap(const struct args *args)
{
    CUfunction function;
    CUmodule module;

    (void)args;
    MUST(cuModuleLoadData(&module, "cusim 1\nkernel trap\n"));
    MUST(cuModuleGetFunction(&function, module, "trap"));
    return (int)cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static int run_capture(const struct args *args) /* capture:STREAM:global|thread|relaxed */
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

    if (args->text[1][0] != 'g')
        mode = args->text[1][0] == 't' ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                       : CU_STREAM_CAPTURE_MODE_RELAXED;
    return (int)cuStreamBeginCapture(*stream_at(args, 0), mode);
}

static int run_capture_ends(const struct args *args)
{
    CUgraph graph;

    return (int)cuStreamEndCapture(*stream_at(args, 0), &graph);
}

/* ---- what the driver says of it ---- */

static int run_range(const struct args *args) /* range:BLOCK:OFFSET */
{
    struct block *block = block_at(args, 0);
    CUpointer_attribute names[2] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                                    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
    CUdeviceptr at = block->at + size_at(args, 1), base = 0, start = 0;
    size_t bytes = 0, only = 0, one = 0, both = 0;
    void *data[2] = {&both, &start};
    int rc = (int)cuMemGetAddressRange(&base, &bytes, at);

    cuMemGetAddressRange(NULL, &only, at);
    cuPointerGetAttribute(&one, names[0], at);
    cuPointerGetAttributes(2, names, data, at);
    say("%s: %zu %zu %zu %zu, %s", args->word, bytes, only, one, both,
        base == block->at && start == block->at ? "at its start" : "elsewhere");
    return rc;
}

/* id:BLOCK[:OFFSET]: notes the identity; the same as when it was noted last? */
static int run_id(const struct args *args)
{
    struct block *block = block_at(args, 0);
    CUdeviceptr at = block->at + size_at(args, 1);
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_BUFFER_ID;
    unsigned long long one = 0, other = 1, before = block->id;
    void *data = &other;
    int rc = (int)cuPointerGetAttribute(&one, name, at);

    cuPointerGetAttributes(1, &name, &data, at);
    block->id = one;
    say("%s: %s, %s", args->word, one == before ? "the same" : "another",
        one == other ? "both ways" : "two answers");
    return rc;
}

static int run_ids(const struct args *args) /* ids:BLOCK:BLOCK, as noted */
{
    say("%s: %s", args->word,
        block_at(args, 0)->id == block_at(args, 1)->id ? "the same" : "different");
    return 0;
}

static int run_export(const struct args *args) /* export:BLOCK:OFFSET:HOW */
{
    CUdeviceptr at = block_at(args, 0)->at + size_at(args, 1);
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_P2P_TOKENS;
    const char *how = args->text[2];
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
    void *data = &tokens;
    CUipcMemHandle handle;
    int yes = 1;

    if (strcmp(how, "ipc") == 0)
        return (int)cuIpcGetMemHandle(&handle, at);
    if (strcmp(how, "memops") == 0)
        return (int)cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at);
    if (strcmp(how, "tokens") == 0)
        return (int)cuPointerGetAttribute(data, name, at);
    if (strcmp(how, "tokenlist") == 0)
        return (int)cuPointerGetAttributes(1, &name, &data, at);
    if (cuMemGetHandleForAddressRange(&yes, at, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) != 0)
        return -1;
    return close(yes);
}

/* ---- the test's own ---- */

static int run_says(const struct args *args) /* says:CLAIM */
{
    puts(strchr(args->word, ':') + 1);
    fflush(stdout);
    return 0;
}

static int run_calls(const struct args *args) /* calls:SYMBOL, on standard error */
{
    fprintf(stderr, "%s %llu\n", args->word, cusim_calls(args->text[0]));
    return 0;
}

static int run_delay(const struct args *args)
{
    cusim_set_delay_us((long)size_at(args, 0));
    return 0;
}

static int run_pause(const struct args *args) /* pause:MILLISECONDS */
{
    usleep((useconds_t)size_at(args, 0) * 1000);
    return 0;
}

static int
run_forbid(const struct args *args) /* forbid: from now on the system has no membarrier(2) */
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = 4, .filter = rules};

    (void)args;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static int run_fail(const struct args *args) /* fail:RULES, as in CUSIM_FAIL */
{
    cusim_fail(args->text[0][0] ? strchr(args->word, ':') + 1 : NULL);
    return 0;
}

static const struct command commands[] = {
    {"device", run_device, 1},
    {"context", run_context, 0},
    {"here", run_here, 1},
    {"pitch", run_pitch, 0},
    {"physical", run_physical, 0},
    {"same", run_same, 1},
    {"write", run_write, 0},
    {"poke", run_poke, 1},
    {"holds", run_holds, 1},
    {"trap", run_trap, 0},
    {"capture", run_capture, 0},
    {"capture-ends", run_capture_ends, 0},
    {"range", run_range, 0},
    {"id", run_id, 0},
    {"ids", run_ids, 1},
    {"export", run_export, 0},
    {"says", run_says, 1},
    {"calls", run_calls, 1},
    {"delay", run_delay, 1},
    {"pause", run_pause, 1},
    {"forbid", run_forbid, 1},
    {"fail", run_fail, 1},
    CALLS(ENTRY)  /* those of one call */
    ALLOCS(ENTRY) /* and those that allocate by one */
    {NULL, NULL, 0},
};

static const struct command *find_command(const struct command *table, const char *name)
{
    while (table->name != NULL && strcmp(table->name, name) != 0)
        table++;
    return table->name != NULL ? table : NULL;
}

static void run_command(const char *word)
{
    struct args args = {.word = word};
    char copy[1000], *rest = copy;
    const struct command *command;
    const char *name;
    int rc;

    snprintf(copy, sizeof(copy), "%s", word);
    name = strsep(&rest, ":");
    for (int i = 0; i < ARGS && rest != NULL; i++)
        snprintf(args.text[i], sizeof(args.text[i]), "%s", strsep(&rest, ":"));
    command = find_command(commands, name);
    if (command == NULL)
        command = find_command(memory_commands, name);
    if (command == NULL)
        command = find_command(work_commands, name);
    if (command != NULL) {
        rc = command->run(&args);
        if (!command->silent && (!quiet || rc != 0))
            say("%s: %d", word, rc);
        return;
    }
    fprintf(stderr, "no command %s\n", word);
    exit(98);
}

struct words {
    char **word;
    int count;
};

static void run_words(struct words words);

static int starts(const char *word, const char *with)
{
    return strncmp(word, with, strlen(with)) == 0;
}

static int is_nest(const char *word)
{
    return starts(word, "repeat:") || starts(word, "until:") || strcmp(word, "thread") == 0 ||
           strcmp(word, "fork") == 0;
}

/* What stands between the first word and its "end". */
static struct words body_of(struct words words)
{
    int depth = 1, i = 1;

    for (; i < words.count && depth > 0; i++)
        depth += is_nest(words.word[i]) - (strcmp(words.word[i], "end") == 0);
    if (depth > 0)
        exit(97);
    return (struct words){words.word + 1, i - 2};
}

static void *run_in_thread(void *words)
{
    run_words(*(struct words *)words);
    return NULL;
}

static void run_loop(const char *word, struct words body)
{
    const char *file = starts(word, "until:") ? word + 6 : NULL;
    long times = file != NULL ? UNTIL_MOST : strtol(word + 7, NULL, 0);

    quiet++;
    for (long n = 0; n < times && (file == NULL || access(file, F_OK) != 0); n++) {
        run_words(body);
        if (file != NULL)
            usleep(1000);
    }
    quiet--;
}

static void run_nest(const char *word, struct words body)
{
    int status;

    if (starts(word, "repeat:") || starts(word, "until:")) {
        run_loop(word, body);
    } else if (strcmp(word, "thread") == 0) {
        in_thread(run_in_thread, &body);
    } else if (fork() == 0) {
        run_words(body);
        _exit(0);
    } else {
        wait(&status);
        say("the child ended with %d", status);
    }
}

static void run_words(struct words words)
{
    while (words.count > 0) {
        int done = 1;

        if (is_nest(words.word[0])) {
            struct words body = body_of(words);

            run_nest(words.word[0], body);
            done = body.count + 2;
        } else {
            run_command(words.word[0]);
        }
        words.word += done;
        words.count -= done;
    }
}

int main(int argc, char **argv)
{
    run_words((struct words){argv + 1, argc - 1});
    return 0;
}
