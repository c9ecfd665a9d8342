/* SPDX-License-Identifier: MIT */
/*
 * Ends scopes while nobody can tell whose the memory is, and checks that none of it is freed.
 * LIBRARY: one with grow(), whose memory only the names of functions tell from the program's.
 *   drv_api_scopes descriptors: the program has none left, and then some again
 *   drv_api_scopes rules: the caller has named a file that is not there
 */
#include "api_victim.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/resource.h>

#define SLAB ((size_t)4 << 20)

static CUdeviceptr (*grow)(void);

static void limit_descriptors(rlim_t most)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = most;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

/* Of a scope in which the cache has grown, with so many descriptors at its end. */
static struct cuwarden_freed end_of_scope(rlim_t descriptors)
{
    struct cuwarden_freed freed = {.blocks = 99};
    CUdeviceptr slab, block, next;

    GIVES(CUWARDEN_OK, cuwarden_scope_begin("step"));
    slab = grow();
    MUST(cuMemAlloc(&block, 1000));
    limit_descriptors(descriptors);
    GIVES(CUWARDEN_OK, cuwarden_scope_end(&freed));
    limit_descriptors(256);
    MUST(cuMemsetD8(slab, 0, SLAB));
    MUST(cuMemAlloc(&next, SLAB));
    CHECK(slab != 0 && next != slab);
    MUST(cuMemFree(next));
    return freed;
}

static void expect_all_left(rlim_t descriptors)
{
    for (int i = 0; i < 3; i++) {
        struct cuwarden_freed freed = end_of_scope(descriptors);

        CHECK(!is_active || (freed.blocks == 0 && freed.left_blocks == 2));
    }
}

static void expect_the_programs_freed(void)
{
    struct cuwarden_freed freed = end_of_scope(256);

    CHECK(!is_active || (freed.blocks == 1 && freed.bytes == 1000 && freed.left_blocks == 1));
}

int main(int argc, char **argv)
{
    void *library = dlopen(getenv("LIBRARY"), RTLD_NOW);

    is_active = cuwarden_is_active();
    grow = library != NULL ? (CUdeviceptr(*)(void))dlsym(library, "grow") : NULL;
    CHECK(grow != NULL && argc == 2);
    use_device(0);
    if (strcmp(argv[1], "descriptors") == 0) {
        expect_all_left(3);
        expect_the_programs_freed();
    } else {
        expect_all_left(256);
    }
    printf("%s is done\n", argv[1]);
    return 0;
}
