/* SPDX-License-Identifier: MIT */
/*
 * Ranges and marks of NVTX: drv_nvtx WHAT
 *   all     one leak under each kind of name; the client sees the levels that it must
 *   steps   a range around each of 40 iterations that leak 4096 bytes, and other steps
 *   early   NVTX alone, CUDA is never called; with a number: so many threads more
 *   fork    a child that goes on in its parent's range
 *   off     as all, but nobody may listen
 * Built with our own client, and by nvtx.test with that of NVTX's headers (-DWITH_HEADERS).
 */
#ifdef WITH_HEADERS
#include <nvtx3/nvToolsExt.h>
#else
#include "nvtx_client.h"
#endif

#include "leak.h"
#include "in_thread.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_heard = 1; /* 0: there must be no tool */

static void expect(long got, long wanted, const char *what)
{
    if (got == (is_heard ? wanted : NVTX_NO_PUSH_POP_TRACKING))
        return;
    fprintf(stderr, "%s returned %ld\n", what, got);
    exit(99);
}
#define LEVEL(call, level) expect(call, level, #call)

static nvtxEventAttributes_t attributes_of(int type)
{
    nvtxEventAttributes_t attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = type;
    return attributes;
}

static void leak_in_domains(void)
{
    nvtxEventAttributes_t chars = attributes_of(NVTX_MESSAGE_TYPE_ASCII);
    nvtxEventAttributes_t wide = attributes_of(NVTX_MESSAGE_TYPE_UNICODE);
    nvtxEventAttributes_t registered = attributes_of(NVTX_MESSAGE_TYPE_REGISTERED);
    nvtxEventAttributes_t old = chars;
    nvtxDomainHandle_t lib = nvtxDomainCreateA("LIB"), other = nvtxDomainCreateW(L"Bibliothek");

    chars.message.ascii = "gather";
    wide.message.unicode = L"\u00fcbertragen";
    LEVEL(nvtxDomainRangePushEx(lib, &chars), 0);
    leak(4000);
    registered.message.registered = nvtxDomainRegisterStringA(lib, "reduce");
    LEVEL(nvtxDomainRangePushEx(lib, &registered), 1);
    leak(5000);
    registered.message.registered = nvtxDomainRegisterStringW(other, L"scatter");
    LEVEL(nvtxDomainRangePushEx(other, &registered), 0);
    leak(6000);
    LEVEL(nvtxDomainRangePop(lib), 1);
    LEVEL(nvtxDomainRangePop(lib), 0);
    LEVEL(nvtxDomainRangePop(lib), -1);
    LEVEL(nvtxDomainRangePushEx(other, &wide), 1);
    leak(7000);
    LEVEL(nvtxDomainRangePop(other), 1);
    LEVEL(nvtxDomainRangePop(other), 0);
    nvtxDomainDestroy(other);
    /* Attributes that are too short to have a message: a range without a name. */
    old.size = 24;
    old.message.ascii = "cut off";
    LEVEL(nvtxDomainRangePushEx(NULL, &old), 1);
    leak(8000);
    LEVEL(nvtxDomainRangePop(NULL), 1);
    LEVEL(nvtxRangePushEx(&chars), 1);
    leak(9000);
    LEVEL(nvtxRangePop(), 1);
}

static void run_all(void)
{
    LEVEL(nvtxRangePushA("outer"), 0); /* before CUDA */
    use_device(0);
    leak(1000);
    LEVEL(nvtxRangePushA("forward"), 1);
    leak(2000);
    LEVEL(nvtxRangePop(), 1);
    LEVEL(nvtxRangePushW(L"gr\u00f6\u00dfe \U0001F600"), 1);
    leak(3000);
    LEVEL(nvtxRangePop(), 1);
    leak_in_domains();
    LEVEL(nvtxRangePop(), 0);
    LEVEL(nvtxRangePop(), -1);
    leak(100);
}

static void *end_range(void *range)
{
    nvtxRangeEnd(*(nvtxRangeId_t *)range);
    return NULL;
}

static void run_steps(void)
{
    nvtxEventAttributes_t tick = attributes_of(NVTX_MESSAGE_TYPE_ASCII);
    nvtxRangeId_t phase, other;
    char name[32];

    use_device(0);
    phase = nvtxRangeStartA("phase");
    other = nvtxRangeStartA("phase");
    if (phase == 0 || phase == other)
        exit(99);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "step %d", i);
        nvtxRangePushA("train");
        nvtxRangePushA(name);
        leak(4096);
        nvtxRangePop();
        nvtxRangePop();
    }
    tick.message.ascii = "tick";
    nvtxMarkA("tick");
    nvtxMarkW(L"tick");
    nvtxMarkEx(&tick);
    nvtxDomainMarkEx(nvtxDomainCreateA("LIB"), &tick);
    in_thread(end_range, &phase);
    nvtxRangePushA("still open");
}

static void *push_only(void *arg)
{
    LEVEL(nvtxRangePushA("in a thread"), 0);
    return arg;
}

static void run_early(int threads)
{
    LEVEL(nvtxRangePushA("outer"), 0);
    LEVEL(nvtxRangePushA("inner"), 1);
    nvtxMarkA("tick");
    for (int i = 0; i < threads; i++)
        in_thread(push_only, NULL);
    LEVEL(nvtxRangePop(), 1);
    LEVEL(nvtxRangePop(), 0);
    LEVEL(nvtxRangePop(), -1);
}

static void run_fork(void)
{
    pid_t child;

    LEVEL(nvtxRangePushA("parent"), 0);
    child = fork();
    if (child != 0) {
        int status;

        if (waitpid(child, &status, 0) != child || status != 0)
            exit(99);
        return;
    }
    LEVEL(nvtxRangePushA("child"), 1);
    use_device(0);
    leak(1000);
    LEVEL(nvtxRangePop(), 1);
    leak(2000);
    LEVEL(nvtxRangePop(), 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;

    is_heard = strcmp(what, "off") != 0;
    if (strcmp(what, "all") == 0 || strcmp(what, "off") == 0)
        run_all();
    else if (strcmp(what, "steps") == 0)
        run_steps();
    else if (strcmp(what, "early") == 0)
        run_early(number);
    else if (strcmp(what, "fork") == 0)
        run_fork();
    else
        return 2;
    return 0;
}
