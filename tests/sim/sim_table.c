/* SPDX-License-Identifier: MIT */
/* The exported entry points and the table that describes them, both from the rows of sim_api.def.
 *
 * An export is a trampoline: it loads its row number and jumps to common code that calls
 * sim_enter() with the row and the return address, then the body with the caller's arguments, then
 * sim_leave(). One place thus counts, checks and locks for every function, and a body is nothing
 * but its behaviour. The trampolines
 * copy ten words of stack arguments: two and a handle of 64 bytes passed by value are the most.
 *
 * Each row has a second trampoline that is not exported: a driver is free to answer
 * cuGetProcAddress with addresses that dlsym does not know.
 */
#include "sim.h"

#ifndef CUSIM_VERSION
#define CUSIM_VERSION CUDA_VERSION /* of the driver: what is newer is not exported */
#endif

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

#if defined(__x86_64__)
/* Begins as UCX wants functions that it patches: hook/answers/entries.S. */
#define LOAD_ROW                                                                                   \
    "    movl $0, %eax\n    movl $0, %eax\n    movl $0, %eax\n"                                    \
    "    movl $sim_index, %r11d\n    jmp sim_trampoline\n"
__asm__(".text\n"
        ".type sim_trampoline,@function\n"
        "sim_trampoline:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    pushq %rdi\n    pushq %rsi\n    pushq %rdx\n"
        "    pushq %rcx\n    pushq %r8\n    pushq %r9\n"
        "    pushq %r11\n    pushq %r11\n"
        "    movl %r11d, %edi\n"
        "    movq 8(%rbp), %rsi\n"
        "    call sim_enter\n"
        "    popq %r11\n    popq %r11\n"
        "    popq %r9\n    popq %r8\n    popq %rcx\n"
        "    popq %rdx\n    popq %rsi\n    popq %rdi\n"
        "    testl %eax, %eax\n"
        "    jne 1f\n"
        "    pushq 88(%rbp)\n    pushq 80(%rbp)\n    pushq 72(%rbp)\n    pushq 64(%rbp)\n"
        "    pushq 56(%rbp)\n    pushq 48(%rbp)\n    pushq 40(%rbp)\n"
        "    pushq 32(%rbp)\n    pushq 24(%rbp)\n    pushq 16(%rbp)\n"
        "    leaq sim_bodies(%rip), %rax\n"
        "    movl %r11d, %r11d\n"
        "    call *(%rax,%r11,8)\n"
        "    movl %eax, %edi\n"
        "    call sim_leave\n"
        "1:  leave\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size sim_trampoline,.-sim_trampoline\n");
#elif defined(__aarch64__)
#define LOAD_ROW                                                                                   \
    "    cmp w0, w0\n    cmp w0, w0\n    cmp w0, w0\n    cmp w0, w0\n"                             \
    "    mov w16, #sim_index\n    b sim_trampoline\n"
__asm__(".text\n"
        ".type sim_trampoline,%function\n"
        "sim_trampoline:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, #-96]!\n"
        "    .cfi_def_cfa_offset 96\n"
        "    .cfi_offset x29, -96\n"
        "    .cfi_offset x30, -88\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n    stp x2, x3, [sp, #32]\n"
        "    stp x4, x5, [sp, #48]\n    stp x6, x7, [sp, #64]\n"
        "    str x16, [sp, #80]\n"
        "    mov w0, w16\n"
        "    mov x1, x30\n"
        "    bl sim_enter\n"
        "    cbnz w0, 1f\n"
        "    ldp x9, x10, [sp, #96]\n    ldp x11, x12, [sp, #112]\n"
        "    ldr x16, [sp, #80]\n"
        "    adrp x17, sim_bodies\n    add x17, x17, :lo12:sim_bodies\n"
        "    ldr x17, [x17, x16, lsl #3]\n"
        "    ldp x0, x1, [sp, #16]\n    ldp x2, x3, [sp, #32]\n"
        "    ldp x4, x5, [sp, #48]\n    ldp x6, x7, [sp, #64]\n"
        "    sub sp, sp, #32\n"
        "    stp x9, x10, [sp]\n    stp x11, x12, [sp, #16]\n"
        "    blr x17\n"
        "    mov sp, x29\n"
        "    bl sim_leave\n"
        "1:  ldp x29, x30, [sp], #96\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size sim_trampoline,.-sim_trampoline\n");
#else
#error "the trampolines of the simulated GPU are written for x86-64 and aarch64 only"
#endif

/* The local names serve the address tables: a reference by the exported name could be preempted
 * by the very library under test. */
#define ENTRY(symbol, since)                                                                       \
    ".if " TEXT(since) " <= " TEXT(CUSIM_VERSION) "\n.globl " #symbol "\n.endif\n"                 \
                                                  ".type " #symbol ",@function\n" #symbol ":\n"    \
                                                  "sim_export_" #symbol ":\n" LOAD_ROW             \
                                                  ".size " #symbol ",.-" #symbol "\n"              \
                                                  "sim_private_" #symbol ":\n" LOAD_ROW            \
                                                  ".pushsection .data.rel.ro,\"aw\"\n"             \
                                                  "    .quad sim_export_" #symbol                  \
                                                  "\n    .quad sim_private_" #symbol "\n"          \
                                                  ".popsection\n"                                  \
                                                  ".set sim_index, sim_index + 1\n"

/* clang-format off */
__asm__(".pushsection .data.rel.ro,\"aw\"\n"
        ".balign 16\n"
        ".hidden sim_addresses\n.globl sim_addresses\n"
        "sim_addresses:\n"
        ".popsection\n"
        ".text\n"
        ".balign 16\n"
        ".set sim_index, 0\n"
#define OWN(symbol, base, since, flavour, guard) ENTRY(symbol, since)
#define SAME(symbol, body, base, since, flavour, guard) ENTRY(symbol, since)
#define NONE(symbol, base, since, flavour) ENTRY(symbol, since)
#include "sim_api.def"
#undef OWN
#undef SAME
#undef NONE
);
/* clang-format on */

#define OWN(symbol, base, since, flavour, guard)        (void *)sim_##symbol,
#define SAME(symbol, body, base, since, flavour, guard) (void *)sim_##body,
#define NONE(symbol, base, since, flavour)              (void *)sim_cu_unsupported,
__attribute__((visibility("hidden"), used)) void *const sim_bodies[] = {
#include "sim_api.def"
};
#undef OWN
#undef SAME
#undef NONE

#define OWN(symbol, base, since, flavour, guard) {#symbol, base, since, SIM_##flavour, guard},
#define SAME(symbol, body, base, since, flavour, guard)                                            \
    {#symbol, base, since, SIM_##flavour, guard},
#define NONE(symbol, base, since, flavour) {#symbol, base, since, SIM_##flavour, SIM_NEEDS_NOTHING},
const struct sim_row sim_rows[] = {
#include "sim_api.def"
};
#undef OWN
#undef SAME
#undef NONE

const unsigned sim_nrows = sizeof sim_rows / sizeof *sim_rows;
struct sim_tally sim_tallies[sizeof sim_rows / sizeof *sim_rows];
extern void *const sim_addresses[];

void *sim_row_export(unsigned index)
{
    return sim_rows[index].since <= CUSIM_VERSION ? sim_addresses[2 * index] : NULL;
}

void *sim_row_private(unsigned index)
{
    return sim_addresses[2 * index + 1];
}

int sim_row_find(const char *symbol)
{
    for (unsigned i = 0; i < sim_nrows; i++)
        if (!__builtin_strcmp(sim_rows[i].symbol, symbol))
            return (int)i;
    return -1;
}

CUresult sim_cu_unsupported(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}
