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

#if CUDA_VERSION >= 12000
static NOINLINE CUlibrary load_library(void)
{
    CUlibrary library;
    CUdeviceptr address;
    size_t bytes;

    MUST(cuLibraryLoadData(&library, "cusim-module\nglobal table 4096\n", NULL, NULL, 0, NULL, NULL,
                           0));
    MUST(cuLibraryGetGlobal(&address, &bytes, library, "table"));
    return library;
}

static NOINLINE void library_and_unload(void)
{
    MUST(cuLibraryUnload(load_library()));
}

static NOINLINE void library_and_keep(void)
{
    load_library();
    say("json live('library_and_unload') == (0, 0)");
    say("json live('library_and_keep') == (1, 4096)");
}
#endif

int main(void)
{
    int kept = 1, bytes = 8292;

    use_device(0);
    load_and_unload();
    load_and_keep();
#if CUDA_VERSION >= 12000
    library_and_unload();
    library_and_keep();
    kept += 1;
    bytes += 4096;
#endif
    say("expect leaked_bytes=0 allocs=0 frees=0 failed=0");
    say("json live('load_and_unload') == (0, 0)");
    say("json live('load_and_keep') == (1, 8292)");
    say("json kind('module') == (%d, %d)", kept, bytes);
    return 0;
}
