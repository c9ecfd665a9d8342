/* SPDX-License-Identifier: MIT */
/* Random programs at the edges of what the pool promises, in families:
 *
 *   edges FAMILY[:PART] [-v] [-n] [-f] SEED [COUNT]
 *
 * runs COUNT programs of the family, one per seed, in one process. What a program demands is what
 * the bare driver does: without the library no seed fails.
 *
 *   ends     contexts end, in every way there is, while others still work on what was freed in them
 *   unseen   contexts come and go by calls of the driver's own functions, past the library
 *   fill     a device is filled up, and what fits natively must fit
 *   shares   threads share a device that is nearly full
 *   beside   frees, batches and scopes keep their promises while contexts end or something captures
 *   bound    no call does much more than what it was made for, and nothing piles up
 *
 *   -v       prints each operation
 *   -n       no library is preloaded: the programs' own accounts are held against the driver's
 *   -f       what is filled is filled up, to the last byte, each time by a process of its own; ends
 *            with how many of them were refused what the driver would have granted
 *   :PART    only this kind of program of the family; the families' files list them
 *
 * The first violation is printed with its seed, and how to see it again, and ends the process with
 * status 1.
 */
#include "edges.h"
#include "edges_ways.h"

#include <sys/wait.h>
#include <unistd.h>

struct edges edges;

static const struct family {
    const char *name, *memory,
        *devices;          /* of the simulated GPU, unless the environment says more */
    void (*prepare)(void); /* or NULL */
    void (*run)(void);
} families[] = {
    {"ends", "192M", "3", ways_prepare, ends_run},
    {"unseen", "256M", "2", unseen_prepare, unseen_run},
    {"fill", "1G", "1", NULL, fill_run},
    {"shares", "1G", "2", NULL, shares_run},
    {"beside", "256M", "3", NULL, beside_run},
    {"bound", "4G", "1", bound_prepare, bound_run},
};

enum { FAMILIES = sizeof families / sizeof *families };
enum { REFUSED = 3 }; /* what a process of -f ends with */

void trace(const char *format, ...)
{
    va_list arguments;

    if (!edges.is_verbose)
        return;
    flockfile(stdout);
    printf("  %u: ", edges.operation);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    funlockfile(stdout);
}

/* The driver's own words on it are in its report, if there is one. */
void violated(const char *format, ...)
{
    va_list arguments;

    flockfile(stdout);
    printf("violation: %s, seed %llu operation %u: ", edges.family, (unsigned long long)edges.seed,
           edges.operation);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nagain: edges %s%s%s -v %s%llu\n", edges.family, edges.part ? ":" : "",
           edges.part ? edges.part : "", edges.is_native ? "-n " : "",
           (unsigned long long)edges.seed);
    fflush(stdout);
    if (getenv("CUSIM_REPORT"))
        cusim_write_report(NULL);
    _exit(1);
}

void expect(CUresult code, CUresult wanted, const char *what)
{
    if (code != wanted)
        violated("%s returned %d, expected %d", what, (int)code, (int)wanted);
}

unsigned below(unsigned n)
{
    return roll_below(&edges.dice, n);
}

bool chance(unsigned percent)
{
    return roll_chance(&edges.dice, percent);
}

unsigned choose_part(const char *const *parts, unsigned nparts)
{
    unsigned part = below(nparts);

    if (!edges.part)
        return part;
    for (unsigned i = 0; i < nparts; i++)
        if (strcmp(edges.part, parts[i]) == 0)
            return i;
    fprintf(stderr, "edges: no part %s of %s\n", edges.part, edges.family);
    exit(2);
}

CUresult take_memory(enum kind kind, size_t size, CUdeviceptr *out)
{
    size_t pitch;
    void *pointer = NULL;
    CUresult code;

    if (kind == DEVICE)
        return cuMemAlloc(out, size);
    if (kind == PITCHED)
        return cuMemAllocPitch(out, &pitch, 512, size / 512 + 1, 4);
    code = cuMemHostAlloc(&pointer, size, CU_MEMHOSTALLOC_PORTABLE);
    *out = (CUdeviceptr)(uintptr_t)pointer;
    return code;
}

CUresult give_memory(enum kind kind, CUdeviceptr address)
{
    return kind == PINNED ? cuMemFreeHost((void *)(uintptr_t)address) : cuMemFree(address);
}

/* ---- misuse ---- */

static const char *const misuses[] = {
    "use_after_free", "out_of_bounds", "wild_access", "no_access",  "stale_handle",
    "after_teardown", "capture",       "double_free", "wrong_free", "unknown_free",
};

enum { MISUSES = sizeof misuses / sizeof *misuses };

static unsigned long long seen[MISUSES];

void forget_misuse(void)
{
    for (unsigned i = 0; i < MISUSES; i++)
        seen[i] = cusim_misuse_of(misuses[i]);
}

void expect_no_misuse(const char *kind)
{
    for (unsigned i = 0; i < MISUSES; i++) {
        unsigned long long now = cusim_misuse_of(misuses[i]);

        if (now != seen[i] && (!kind || strcmp(kind, misuses[i]) == 0))
            violated("the driver noticed %llu cases of %s", now - seen[i], misuses[i]);
    }
    edges.checks++;
}

void expect_few_frees(unsigned most)
{
    static const char *const kinds[] = {"double_free", "wrong_free", "unknown_free"};
    unsigned long long frees = 0;

    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < MISUSES; k++)
            if (strcmp(kinds[i], misuses[k]) == 0)
                frees += cusim_misuse_of(kinds[i]) - seen[k];
    if (frees > most)
        violated("the driver noticed %llu wrong frees, the program made %u", frees, most);
    edges.checks++;
}

/* ---- the process ---- */

static const struct family *find_family(char *name)
{
    char *colon = strchr(name, ':');

    if (colon) {
        *colon = '\0';
        edges.part = colon + 1;
    }
    for (unsigned i = 0; i < FAMILIES; i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    fprintf(stderr, "edges: no family %s\n", name);
    exit(2);
}

static void run_program(const struct family *family, uint64_t seed)
{
    edges.seed = seed;
    edges.operation = 0;
    seed_dice(&edges.dice, seed);
    if (edges.is_verbose)
        printf("program %llu\n", (unsigned long long)seed);
    family->run();
    edges.operations += edges.operation;
}

/* 1: it was refused something. */
static int run_process(const struct family *family, uint64_t seed)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        edges.refused = 0;
        MUST(cuInit(0));
        run_program(family, seed);
        exit(edges.refused ? REFUSED : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFEXITED(status) ||
        (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != REFUSED))
        exit(1);
    return WEXITSTATUS(status) == REFUSED;
}

static void run_programs(const struct family *family, uint64_t first, uint64_t count)
{
    for (uint64_t seed = first; seed < first + count; seed++)
        if (edges.is_full)
            edges.refused += run_process(family, seed);
        else
            run_program(family, seed);
}

int main(int argc, char **argv)
{
    const struct family *family;
    uint64_t first, count;
    int option;

    while ((option = getopt(argc, argv, "vnf")) != -1) {
        if (option == '?')
            return 2;
        edges.is_verbose |= option == 'v';
        edges.is_native |= option == 'n';
        edges.is_full |= option == 'f';
    }
    if (argc - optind < 2)
        return 2;
    family = find_family(argv[optind]);
    first = strtoull(argv[optind + 1], NULL, 10);
    count = argc - optind > 2 ? strtoull(argv[optind + 2], NULL, 10) : 1;
    setenv("CUSIM_MEMORY", family->memory, 0);
    setenv("CUSIM_DEVICES", family->devices, 0);
    setenv("CUSIM_FREE_WAITS", "2", 0);
    if (family->prepare)
        family->prepare();
    edges.family = family->name;
    if (!edges.is_full)
        MUST(cuInit(0));
    run_programs(family, first, count);
    if (edges.is_full)
        say("%llu of %llu programs of %s were refused memory", (unsigned long long)edges.refused,
            (unsigned long long)count, family->name);
    else
        say("%llu programs of %s, %llu operations, %llu checks", (unsigned long long)count,
            family->name, edges.operations, edges.checks);
    return 0;
}
