/* SPDX-License-Identifier: MIT */
/* dlsym, dlvsym and dlopen on aarch64: as dlsym_x86_64.S. The return address is in x30. */
        .text

        /* For functions of two arguments. */
        .macro  ask symbol, filter
        .globl  \symbol
        .type   \symbol, %function
        .balign 16
\symbol:
        .cfi_startproc
        hint    #34                     /* bti c; the jump on is through x16, which it admits */
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset 29, -48
        .cfi_offset 30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        mov     x2, x30                 /* the caller's return address */
        bl      \filter
        mov     x16, x0
        mov     x17, x1
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #48
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        cbz     x16, 1f
        br      x16
1:      mov     x0, x17
        ret
        .cfi_endproc
        .size   \symbol, .-\symbol
        .endm

        ask     dlsym, cw_dlsym_filter
        ask     dlopen, cw_dlopen_filter

        .globl  dlvsym
        .type   dlvsym, %function
        .balign 16
dlvsym:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset 29, -48
        .cfi_offset 30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        mov     x3, x30
        bl      cw_dlvsym_filter
        mov     x16, x0
        mov     x17, x1
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        ldp     x29, x30, [sp], #48
        .cfi_restore 29
        .cfi_restore 30
        .cfi_def_cfa_offset 0
        cbz     x16, 1f
        br      x16
1:      mov     x0, x17
        ret
        .cfi_endproc
        .size   dlvsym, .-dlvsym

        .section .note.GNU-stack, "", %progbits
