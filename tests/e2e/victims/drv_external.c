/* SPDX-License-Identifier: MIT */
/* Imports a file as external memory and maps it: shown apart, in no sum. */
#include "victim.h"

#include <sys/mman.h>
#include <unistd.h>

static NOINLINE CUexternalMemory import_file(size_t bytes)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                             .size = bytes};
    CUexternalMemory memory;

    desc.handle.fd = memfd_create("external", 0);
    if (desc.handle.fd < 0 || ftruncate(desc.handle.fd, (off_t)bytes) != 0)
        exit(99);
    MUST(cuImportExternalMemory(&memory, &desc));
    return memory;
}

static NOINLINE CUdeviceptr map_buffer(CUexternalMemory memory, size_t bytes)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = {.size = bytes};
    CUdeviceptr buffer;

    MUST(cuExternalMemoryGetMappedBuffer(&buffer, memory, &desc));
    return buffer;
}

int main(void)
{
    CUexternalMemory freed, kept;

    use_device(0);
    freed = import_file(65536);
    MUST(cuMemFree(map_buffer(freed, 65536))); /* as cuda.h says: by cuMemFree */
    MUST(cuDestroyExternalMemory(freed));
    kept = import_file(131072);
    map_buffer(kept, 131072);
    say("expect leaked_bytes=0 leaked_blocks=0 leak_sites=0 allocs=0 frees=0 peak_bytes=0");
    say("json kind('external') == (1, 131072) and kind('external-map') == (1, 131072)");
    say("report ^==[0-9]+== IMPORTS  256\\.0 KiB in 2 blocks, not counted as leaked");
    say("no report INVALID FREES");
    return 0;
}
