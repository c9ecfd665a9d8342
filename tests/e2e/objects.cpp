// SPDX-License-Identifier: MIT
// What C++ adds to the ways of a program: objects that end with the program or with a thread, and
// exceptions that pass through frames whose stacks are taken.
//
//   objects ends     blocks that static, thread_local and local objects free, or leak, when they
//   end objects throws   leaks on the way of exceptions; says which functions each stack has
//   (stack_claims.py)
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>

extern "C" {
int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *block, size_t bytes);
int cuMemFree_v2(unsigned long long block);
}

static void *context;

static void start()
{
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
}

[[gnu::noinline]] static unsigned long long take(size_t bytes)
{
    unsigned long long block = 0;

    if (cuMemAlloc_v2(&block, bytes) != 0)
        std::fprintf(stderr, "no block of %zu bytes\n", bytes);
    return block;
}

// Frees its block, and leaks `late` bytes, when it ends.
class Holder
{
  public:
    Holder(size_t bytes, size_t late) : late_(late)
    {
        if (context == nullptr)
            start();
        block_ = take(bytes);
    }
    ~Holder()
    {
        if (cuMemFree_v2(block_) != 0)
            std::puts("a block was not ours");
        if (late_ != 0)
            take(late_);
    }
    Holder(const Holder &) = delete;
    Holder &operator=(const Holder &) = delete;

  private:
    unsigned long long block_ = 0;
    size_t late_;
};

static Holder before_main(100000, 3);
static thread_local Holder *unused_by_main;

static Holder &first_used_in_main()
{
    static Holder holder(200000, 5);
    return holder;
}

static void use_in_thread()
{
    static thread_local Holder holder(300000, 7);

    cuCtxSetCurrent(context);
    (void)holder;
    (void)unused_by_main;
}

static int ends()
{
    static thread_local Holder of_main(400000, 11);

    first_used_in_main();
    (void)of_main;
    for (int i = 0; i < 10; i++)
        std::thread([] {
            cuCtxSetCurrent(context);
            use_in_thread();
        }).join();
    std::puts("expect leaked_bytes=89 leaked_blocks=13 allocs=26 frees=13 failed=0");
    return 17;
}

// ---- exceptions ----

static size_t next_size = 1000;
static const char *said = "";

[[gnu::noinline]] static void leak_here()
{
    size_t bytes = next_size++;

    std::printf("stack %zu take(unsigned long)<leak_here()<%s\n", bytes, said);
    take(bytes);
    asm volatile("");
}

struct Guard {
    const char *words;
    [[gnu::noinline]] ~Guard()
    {
        said = words;
        leak_here();
        asm volatile("");
    }
};

[[gnu::noinline]] static void thrower(int number)
{
    // The frame is left by the exception while the guard's destructor allocates.
    Guard guard{"Guard::~Guard()<..."};

    said = "thrower(int)<...";
    leak_here();
    if (number % 2 == 0)
        throw std::runtime_error("even");
    throw number;
}

[[gnu::noinline]] static void between(int number)
{
    try {
        thrower(number);
    } catch (const std::exception &) {
        said = "between(int)<...";
        leak_here();
        throw;
    }
}

[[gnu::noinline]] static void catcher(int number)
{
    try {
        between(number);
    } catch (const std::exception &) {
        said = "catcher(int)<...";
        leak_here();
    } catch (int) {
        said = "catcher(int)<...";
        leak_here();
    }
}

static int throws()
{
    for (int i = 0; i < 100; i++)
        catcher(i);
    return 18;
}

int main(int argc, char **argv)
{
    return argc > 1 && std::strcmp(argv[1], "throws") == 0 ? throws() : ends();
}
