/* SPDX-License-Identifier: MIT */
/* Modules: the program itself, and shared objects that come, go, and come again. */
#include "core/stacks/module.h"

#include <criterion/criterion.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/account/site.h"
#include "core/process/thread.h"
#include "core/process/intern.h"
#include "core_file.h"
#include "fake_driver.h"
#include "live_fixture.h"

static char directory[] = "/tmp/cw-module-XXXXXX";
static char path[64];

static void teardown(void)
{
    if (path[0] != '\0') {
        unlink(path);
        rmdir(directory);
    }
}

TestSuite(module, .init = core_start, .fini = teardown);

/* Makes a shared object with one function, which returns the number. */
static void build_object(int number)
{
    const char *cc = getenv("CC");
    char command[512];

    snprintf(command, sizeof(command),
             "echo 'int guest(void) { return %d; }' | "
             "%s -shared -fPIC -Wl,--build-id=sha1 -x c -o %s - >&2",
             number, cc && *cc ? cc : "cc", path);
    cr_assert_eq(system(command), 0, "%s", command);
}

static void make_object(void)
{
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/guest.so", directory);
    build_object(4);
}

static uint64_t load(void **out_object)
{
    *out_object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(*out_object);
    return (uint64_t)(uintptr_t)dlsym(*out_object, "guest");
}

static uint32_t find(uint64_t pc)
{
    uint32_t module;

    cw_module_refresh();
    cw_lock_acquire(&cw_intern_lock);
    module = cw_module_find_locked(pc);
    cw_lock_release(&cw_intern_lock);
    return module;
}

static const struct cw_live_module *module_at(uint32_t module)
{
    return core_at(CW_TABLE_MODULE, module);
}

static const char *path_of(uint32_t module)
{
    struct cw_view view;

    cw_arena_view(core_arena, &view);
    return cw_view_text(&view, module_at(module)->path);
}

static unsigned count(void)
{
    return core_count(CW_TABLE_MODULE);
}

Test(module, the_program_is_found_with_its_build_id)
{
    uint32_t module = find((uint64_t)(uintptr_t)&find);
    const struct cw_live_module *found;
    const struct cw_live_module *expected;
    struct cw_view view;

    cr_assert_neq(module, 0u);
    found = module_at(module);
    fixture_create();
    expected = fixture_module_at(fixture_own_module());
    cr_expect_eq(found->bias, expected->bias);
    cr_expect_eq(found->build_id_len, expected->build_id_len);
    cr_expect_eq(memcmp(found->build_id, expected->build_id, sizeof(found->build_id)), 0);
    cw_arena_view(&fixture.arena, &view);
    cr_expect_str_eq(path_of(module), cw_view_text(&view, expected->path));
    cr_expect_leq(found->base, (uint64_t)(uintptr_t)&find);
    cr_expect_gt(found->end, (uint64_t)(uintptr_t)&find);
    cr_expect_eq(found->role, CW_MODULE_SELF); /* the core is linked into this very program */
    fixture_destroy();
}

Test(module, our_own_addresses_are_told_from_others)
{
    cr_expect(cw_module_is_self((uint64_t)(uintptr_t)&find));
    cr_expect_not(cw_module_is_self((uint64_t)(uintptr_t)&qsort));
    cr_expect_not(cw_module_is_self(0));
}

Test(module, addresses_in_no_module_are_in_none)
{
    int on_the_stack;

    cr_expect_eq(find(0), 0u);
    cr_expect_eq(find(8), 0u);
    cr_expect_eq(find(UINT64_MAX), 0u);
    cr_expect_eq(find((uint64_t)(uintptr_t)&on_the_stack), 0u);
}

Test(module, an_unchanged_list_is_not_read_again)
{
    unsigned before;

    find(0);
    before = count();
    for (int i = 0; i < 10; i++)
        find(0);
    cr_expect_eq(count(), before);
}

Test(module, every_loaded_object_lies_apart_from_the_others)
{
    find(0);
    cr_assert_gt(count(), 2u);
    for (uint32_t i = 1; i <= count(); i++) {
        cr_expect_lt(module_at(i)->base, module_at(i)->end);
        for (uint32_t j = 1; j < i; j++)
            cr_expect(module_at(i)->end <= module_at(j)->base ||
                      module_at(j)->end <= module_at(i)->base);
    }
}

Test(module, an_object_that_is_loaded_again_at_its_old_place_is_the_module_it_was)
{
    uint64_t pc, pc_again;
    uint32_t module, again;
    void *object;

    make_object();
    find(0);
    pc = load(&object);
    module = find(pc);
    cr_assert_neq(module, 0u);
    cr_expect_str_eq(path_of(module), path);
    cr_expect_eq(module_at(module)->build_id_len, 20);
    cr_expect_eq(module_at(module)->role, CW_MODULE_PROGRAM);
    cr_expect_eq(find(pc), module);

    cr_assert_eq(dlclose(object), 0);
    cr_expect_eq(find(pc), 0u);
    cr_expect_str_eq(path_of(module), path); /* the record stays */

    pc_again = load(&object);
    again = find(pc_again);
    cr_assert_neq(again, 0u);
    if (pc_again == pc)
        cr_expect_eq(again, module);
    else
        cr_expect_neq(again, module);
    cr_expect_eq(memcmp(module_at(again)->build_id, module_at(module)->build_id, 20), 0);
    dlclose(object);
}

Test(module, others_keep_their_records_when_one_comes_and_goes)
{
    uint64_t pc = (uint64_t)(uintptr_t)&find;
    uint32_t program = find(pc);
    unsigned before = count();
    void *object;

    make_object();
    for (unsigned i = 1; i <= 5; i++) {
        find(load(&object));
        cr_expect_leq(count(), before + i); /* the loader may choose another place */
        cr_expect_eq(find(pc), program);
        dlclose(object);
        cr_expect_eq(find(pc), program);
    }
}

Test(module, a_stack_through_another_object_at_the_same_address_is_another_stack)
{
    const struct cw_live_frame *frame;
    uint32_t stack, again;
    void *object;
    uint64_t pc;

    make_object();
    pc = load(&object) + 1;
    stack = cw_stack_intern(&pc, 1);
    cr_expect_eq(cw_stack_intern(&pc, 1), stack);
    dlclose(object);
    unlink(path);
    build_object(5);
    cw_epoch_advance(); /* the hook of dlclose does that */
    pc = load(&object) + 1;
    again = cw_stack_intern(&pc, 1);
    cr_expect_neq(again, stack);
    frame = core_at(CW_TABLE_FRAME, again);
    cr_expect_eq(frame->module, find(pc));
    dlclose(object);
}

/* ---- somebody writes over the live file ---- */

Test(module_file, keeps_the_modules_that_it_has, .init = core_start_with_file, .fini = teardown)
{
    uint64_t pc = (uint64_t)(uintptr_t)&find;
    uint32_t program = find(pc);
    unsigned before = count();
    void *object;

    make_object();
    core_scribble(CW_TABLE_MODULE, 'A');
    core_scribble(CW_TABLE_TEXT, 'A');
    find(load(&object));
    cr_expect_eq(count(), before + 1);
    cr_expect_eq(find(pc), program);
    dlclose(object);
}

/* ---- many threads ---- */

static _Atomic unsigned wrong;

static void load_and_find(unsigned id)
{
    uint64_t program = (uint64_t)(uintptr_t)&find;

    for (int i = 0; i < 100; i++) {
        if (id % 2 == 0) {
            void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

            if (object == NULL || find((uint64_t)(uintptr_t)dlsym(object, "guest")) == 0)
                wrong++;
            if (object != NULL)
                dlclose(object);
        } else if (find(program) == 0) {
            wrong++;
        }
    }
}

Test(module, what_is_loaded_is_found_while_others_load_and_unload)
{
    uint32_t program;

    make_object();
    program = find((uint64_t)(uintptr_t)&find);
    run_threads(6, load_and_find);
    cr_expect_eq(wrong, 0u);
    cr_expect_eq(find((uint64_t)(uintptr_t)&find), program);
}
