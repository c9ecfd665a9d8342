/* SPDX-License-Identifier: MIT */
/*
 * Static probes (USDT) for profilers that look from outside: `alloc` when the program gets a block,
 * `free` when it gives one back, in the order of the trace (trace.h). The first three arguments are
 * those of OpenTelemetry's contract for memory profiling
 * (open-telemetry/opentelemetry-ebpf-profiler, design-docs/00003-memory-profiling): pointer, bytes,
 * and weighted bytes, which are the bytes, since no call is left out. The fourth is the device's
 * ordinal, or CW_DEVICE_HOST.
 *
 * The provider is `cuwarden`, not the contract's `otel_memory`: an allocator of the host's memory
 * may fire that one in the same process, and a profiler would add device memory to the host's.
 * PROBES=otel fires `otel_memory` too, for device memory alone, from the trace's slow path.
 *
 * A probe is one nop and a note in the library's ELF file; no semaphore, so nothing is asked before
 * it. Its arguments are in registers anyway. Without <sys/sdt.h> at build time there is none.
 */
#ifndef CW_CORE_PROBE_H
#define CW_CORE_PROBE_H

#include <stdint.h>

#include "base/compiler.h"

#if CW_HAVE_SDT
#include <sys/sdt.h>
#else
#define STAP_PROBE1(provider, name, ptr)               ((void)(ptr))
#define STAP_PROBE3(provider, name, ptr, size, weight) ((void)(ptr), (void)(size), (void)(weight))
#define STAP_PROBE4(provider, name, ptr, size, weight, on)                                         \
    STAP_PROBE3(, , ptr, size, (weight) + (on))
#endif

static CW_INLINE void cw_probe_alloc(uint64_t ptr, uint64_t bytes, uint8_t device)
{
    STAP_PROBE4(cuwarden, alloc, ptr, bytes, bytes, (uint32_t)device);
}

static CW_INLINE void cw_probe_free(uint64_t ptr)
{
    STAP_PROBE1(cuwarden, free, ptr);
}

/* The contract's own provider. */
static CW_INLINE void cw_probe_otel_alloc(uint64_t ptr, uint64_t bytes)
{
    STAP_PROBE3(otel_memory, alloc, ptr, bytes, bytes);
}

static CW_INLINE void cw_probe_otel_free(uint64_t ptr)
{
    STAP_PROBE1(otel_memory, free, ptr);
}

#endif
