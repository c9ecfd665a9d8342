/* SPDX-License-Identifier: MIT */
/*
 * dlsym, dlvsym and dlopen on x86-64: ask the filter, then return its answer or jump on.
 *
 * The jump leaves registers and stack as the caller made them: the real dlsym finds the caller by its
 * return address, which decides what RTLD_NEXT and RTLD_DEFAULT mean, and the real dlopen whose paths are
 * searched. A C wrapper would make "next"
 * mean next after us, and programs that ask for themselves would find themselves for ever.
 */
#ifdef __CET__
#include <cet.h> /* marks the object: the functions begin with endbr64 */
#endif
        .text

        /* For functions of two arguments. */
        .macro  ask symbol, filter
        .globl  \symbol
        .type   \symbol, @function
        .balign 16
\symbol:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp                /* the call needs a stack aligned to 16 */
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rdx          /* the caller's return address */
        call    \filter@PLT
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jz      1f
        jmp     *%rax
1:      movq    %rdx, %rax
        ret
        .cfi_endproc
        .size   \symbol, .-\symbol
        .endm

        ask     dlsym, cw_dlsym_filter
        ask     dlopen, cw_dlopen_filter

        .globl  dlvsym
        .type   dlvsym, @function
        .balign 16
dlvsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rcx
        call    cw_dlvsym_filter@PLT
        movq    %rdx, %r11
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rax, %rax
        jz      1f
        jmp     *%rax
1:      movq    %r11, %rax
        ret
        .cfi_endproc
        .size   dlvsym, .-dlvsym

        .section .note.GNU-stack, "", @progbits
