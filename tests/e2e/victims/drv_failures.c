/* SPDX-License-Identifier: MIT */
/* Calls every function that allocates or frees once, whatever it returns, and says what that was.
 * The test makes some of them fail. */
#include "victim.h"

#define TRY(call) say("%.*s %d", (int)strcspn(#call, "("), #call, (int)(call))

#include <string.h>

static char host[8192] __attribute__((aligned(4096)));

int main(void)
{
    CUDA_ARRAY_DESCRIPTOR shape = {
        .Width = 64, .Height = 16, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr plain = 0, managed = 0, async = 0, reserved = 0;
    CUcontext context = NULL;
    CUarray array = NULL;
    CUstream stream = NULL;
    void *pinned = NULL;
    size_t unit = 2 << 20;

    use_device(0);
    TRY(cuMemAlloc(&plain, 4096));
    TRY(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
    TRY(cuMemHostAlloc(&pinned, 4096, 0));
    TRY(cuMemHostRegister(host, sizeof(host), 0));
    TRY(cuArrayCreate(&array, &shape));
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemAllocAsync(&async, 4096, stream));
    TRY(cuMemAddressReserve(&reserved, unit, 0, 0, 0));
    TRY(cuMemCreate(&handle, unit, &on_device, 0));
    TRY(cuMemMap(reserved, unit, 0, handle, 0));
    TRY(cuMemUnmap(reserved, unit));
    TRY(cuMemRelease(handle));
    TRY(cuMemAddressFree(reserved, unit));
    TRY(cuMemFreeAsync(async, stream));
    TRY(cuStreamSynchronize(stream));
    TRY(cuStreamDestroy(stream));
    TRY(cuArrayDestroy(array));
    TRY(cuMemHostUnregister(host));
    TRY(cuMemFreeHost(pinned));
    TRY(cuMemFree(managed));
    TRY(cuMemFree(plain));
    context = create_context(0);
    TRY(cuCtxDestroy(context));
    TRY(cuDevicePrimaryCtxRelease(0));
    return 0;
}
