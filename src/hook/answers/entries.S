/* SPDX-License-Identifier: MIT */
/*
 * The driver's functions as we export them: each jumps to its body (hook/bodies/entries.h).
 *
 * UCX, which MPI libraries bring, learns of device memory by writing a jump over the first 12 bytes of what
 * dlsym gives it, or 16 on aarch64, and runs what was there elsewhere. It does so only if it knows these
 * instructions (in UCX 1.22, ucm_bistro_relocate_one), else it watches no device memory at all. A compiler's
 * prologues are nothing to rely on, and endbr64 and bti it does not know; so each function begins with
 * instructions whose results nobody looks at. tests/e2e/ucx.test has the real one.
 */
        .text

#if defined(__x86_64__)

        .macro  entry symbol
        .globl  \symbol
        .type   \symbol, @function
        .balign 16
\symbol:
        .cfi_startproc
        movl    $0, %eax
        movl    $0, %eax
        movl    $0, %eax
        jmp     cw_body_\symbol@PLT     /* ours: hook/versions.map */
        .cfi_endproc
        .size   \symbol, .-\symbol
        .endm

#elif defined(__aarch64__)

        .macro  entry symbol
        .globl  \symbol
        .type   \symbol, %function
        .balign 16
\symbol:
        .cfi_startproc
        cmp     w0, w0
        cmp     w0, w0
        cmp     w0, w0
        cmp     w0, w0
        b       cw_body_\symbol
        .cfi_endproc
        .size   \symbol, .-\symbol
        .endm

#endif

#define HOOK(symbol, base, since, stream, family) entry symbol ;
#include "hook/hooks.def"

#ifdef __CET__
/* Marked for shadow stacks alone: indirect branch tracking wants endbr64 first. */
        .section .note.gnu.property, "a"
        .balign 8
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 2, 0     /* GNU_PROPERTY_X86_FEATURE_1_AND: SHSTK */
#endif
        .section .note.GNU-stack, "", %progbits
