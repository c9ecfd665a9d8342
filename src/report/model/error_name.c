/* SPDX-License-Identifier: MIT */
/* Names of errors. See error_name.h; the numbers are those of CUresult in the driver API's manual,
 * section "Data types used by CUDA driver". */
#include "report/model/error_name.h"

#include "base/compiler.h"
#include "base/out.h"

static const struct {
    int code;
    const char *name;
} errors[] = {
    {1, "INVALID_VALUE"},
    {2, "OUT_OF_MEMORY"},
    {3, "NOT_INITIALIZED"},
    {4, "DEINITIALIZED"},
    {46, "DEVICE_UNAVAILABLE"},
    {100, "NO_DEVICE"},
    {101, "INVALID_DEVICE"},
    {201, "INVALID_CONTEXT"},
    {206, "UNMAP_FAILED"},
    {214, "ECC_UNCORRECTABLE"},
    {220, "NVLINK_UNCORRECTABLE"},
    {226, "CONTAINED"},
    {304, "OPERATING_SYSTEM"},
    {400, "INVALID_HANDLE"},
    {401, "ILLEGAL_STATE"},
    {700, "ILLEGAL_ADDRESS"},
    {701, "LAUNCH_OUT_OF_RESOURCES"},
    {702, "LAUNCH_TIMEOUT"},
    {709, "CONTEXT_IS_DESTROYED"},
    {710, "ASSERT"},
    {712, "HOST_MEMORY_ALREADY_REGISTERED"},
    {713, "HOST_MEMORY_NOT_REGISTERED"},
    {714, "HARDWARE_STACK_ERROR"},
    {715, "ILLEGAL_INSTRUCTION"},
    {716, "MISALIGNED_ADDRESS"},
    {717, "INVALID_ADDRESS_SPACE"},
    {718, "INVALID_PC"},
    {719, "LAUNCH_FAILED"},
    {721, "TENSOR_MEMORY_LEAK"},
    {800, "NOT_PERMITTED"},
    {801, "NOT_SUPPORTED"},
    {802, "SYSTEM_NOT_READY"},
    {803, "SYSTEM_DRIVER_MISMATCH"},
    {810, "MPS_CLIENT_TERMINATED"},
    {900, "STREAM_CAPTURE_UNSUPPORTED"},
    {901, "STREAM_CAPTURE_INVALIDATED"},
    {999, "UNKNOWN"},
};

/* "MPS v3 Memory Partitioning", section "MPS Pressure Handling and Eviction". */
int cw_error_is_eviction(int code)
{
    return code == 810;
}

char *cw_error_format(char *buf, size_t cap, int code)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(errors); i++) {
        if (errors[i].code == code) {
            cw_format(buf, cap, "CUDA_ERROR_%s (%d)", errors[i].name, code);
            return buf;
        }
    }
    cw_format(buf, cap, "error %d", code);
    return buf;
}
