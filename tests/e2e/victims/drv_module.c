/* SPDX-License-Identifier: MIT */
/* Variables of a module: known once the program has asked for them, and gone with the module. */
#include "victim.h"

static NOINLINE CUmodule load(void)
{
    CUmodule module;

    MUST(cuModuleLoadData(&module, "cusim-module\nglobal table 8192\nglobal state 100\n"
                                   "global unasked 70\n"));
    return module;
}

static NOINLINE void ask(CUmodule module, const char *name)
{
    CUdeviceptr address;
    size_t bytes;

    MUST(cuModuleGetGlobal(&address, &bytes, module, name));
}

static NOINLINE void load_and_unload(void)
{
    CUmodule module = load();

    ask(module, "table");
    MUST(cuModuleUnload(module));
}

static NOINLINE void load_and_keep(void)
{
    CUmodule module = load();

    ask(module, "table");
    ask(module, "state");
    ask(module, "table");
}

int main(void)
{
    use_device(0);
    load_and_unload();
    load_and_keep();
    say("expect leaked_bytes=0 allocs=0 frees=0 failed=0");
    say("json live('load_and_unload') == (0, 0)");
    say("json live('load_and_keep') == (1, 8292)");
    say("json kind('module') == (1, 8292)");
    return 0;
}
