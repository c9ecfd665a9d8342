/* SPDX-License-Identifier: MIT */
/*
 * The driver's functions as we export them on x86-64: each jumps to its body (hook/bodies/entries.h).
 *
 * UCX, which MPI libraries bring, learns of device memory by writing a jump over the first 12 bytes of what
 * dlsym gives it, and runs what was there elsewhere. It does so only if it knows these instructions (in UCX
 * 1.22, ucm_bistro_relocate_one), else it watches no device memory at all. A compiler's prologues are
 * nothing to rely on, and endbr64 it does not know; so each function begins with loads of an immediate into
 * a register that no call passes anything in. tests/e2e/ucx.test has the real one.
 */
        .text

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

#define HOOK(symbol, base, since, stream, family) entry symbol ;
#include "hook/hooks.def"

#ifdef __CET__
/* Marked for shadow stacks alone (cet.h would add indirect branch tracking, for which functions begin with endbr64). */
        .section .note.gnu.property, "a"
        .balign 8
        .long   4, 16, 5
        .asciz  "GNU"
        .long   0xc0000002, 4, 2, 0     /* GNU_PROPERTY_X86_FEATURE_1_AND: SHSTK */
#endif
        .section .note.GNU-stack, "", @progbits
