// SPDX-License-Identifier: MIT
//
// Asks of its own account, and runs the same without it.
//
//   c++ -std=c++17 session.cpp -o session -lcudart $(pkg-config --cflags --libs cuwarden)
//
//   cuwarden run -- ./session
#include <cuda_runtime_api.h>
#include <cuwarden/cuwarden.hpp>

#include <iostream>

namespace
{

void *take(std::size_t bytes, const char *name)
{
    void *block = nullptr;

    if (cudaMalloc(&block, bytes) == cudaSuccess)
        cuwarden::name_block(block, name);
    return block;
}

void *take_tagged(std::size_t bytes, const char *tag, const char *name)
{
    cuwarden::tag scope(tag);

    return take(bytes, name);
}

} // namespace

int main()
{
    void *weights = take_tagged(4 << 20, "model", "weights");
    const auto mark = cuwarden::mark();

    for (int i = 0; i < 3; i++) {
        cudaFree(take(1 << 20, "scratch"));
        cuwarden::step("iteration");
    }
    void *cache = take_tagged(2 << 20, "cache", "keys");

    if (!cuwarden::is_active())
        std::cout << cuwarden_error_text(CUWARDEN_NOT_ACTIVE) << '\n';
    else {
        const auto leaks = cuwarden::leak_check(mark, [](const cuwarden::block &block) {
            std::cout << "left: " << block.bytes << " bytes, tag '" << block.tag << "', name '"
                      << block.name << "'\n";
        });
        const auto stats = cuwarden::device_stats(0);

        std::cout << "since the mark: " << leaks.bytes << " bytes\n"
                  << "live: " << stats.live_bytes << " bytes, "
                  << static_cast<int>(100 * stats.hit_rate + 0.5)
                  << "% of requests from freed memory\n";
    }
    cudaFree(cache);
    cudaFree(weights);
}
