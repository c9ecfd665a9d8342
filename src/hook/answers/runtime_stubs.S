/* SPDX-License-Identifier: MIT */
/*
 * The versions of the runtime's functions (runtime_versions.h): each notes its number in cw_runtime_bound,
 * for cw_runtime_enter, and jumps to the function. Arguments, stack and return address stay as the
 * caller made them.
 */
#include "hook/bodies/runtime_versions.h"

#ifdef __CET__
#include <cet.h> /* marks the object: the functions begin with endbr64 */
#endif
        .text

#if defined(__x86_64__)

        .macro  stub number, node, symbol
        .globl  cw_runtime_stub_\number\()_\symbol
        .type   cw_runtime_stub_\number\()_\symbol, @function
        .balign 16
cw_runtime_stub_\number\()_\symbol:
        .cfi_startproc
        endbr64
        movq    cw_runtime_bound@gottpoff(%rip), %rax
        movl    $\number, %fs:(%rax)
        jmp     \symbol@PLT             /* ours: -Bsymbolic */
        .cfi_endproc
        .size   cw_runtime_stub_\number\()_\symbol, .-cw_runtime_stub_\number\()_\symbol
        .symver cw_runtime_stub_\number\()_\symbol, \symbol\()@\node
        .endm

#elif defined(__aarch64__)

        .macro  stub number, node, symbol
        .globl  cw_runtime_stub_\number\()_\symbol
        .type   cw_runtime_stub_\number\()_\symbol, %function
        .balign 16
cw_runtime_stub_\number\()_\symbol:
        .cfi_startproc
        hint    #34                     /* bti c */
        mrs     x16, tpidr_el0
        adrp    x17, :gottprel:cw_runtime_bound
        ldr     x17, [x17, #:gottprel_lo12:cw_runtime_bound]
        mov     w15, #\number
        str     w15, [x16, x17]
        b       \symbol
        .cfi_endproc
        .size   cw_runtime_stub_\number\()_\symbol, .-cw_runtime_stub_\number\()_\symbol
        .symver cw_runtime_stub_\number\()_\symbol, \symbol\()@\node
        .endm

#endif

        .macro  stubs symbol
#define NODE(number, node) stub number, node, \symbol ;
        CW_RUNTIME_VERSIONS(NODE)
        .endm

#define RUNTIME(symbol) stubs symbol ;
#include "hook/hooks.def"

        .section .note.GNU-stack, "", %progbits
