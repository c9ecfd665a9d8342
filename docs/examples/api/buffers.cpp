// SPDX-License-Identifier: MIT
//
// A buffer that grows and ends by itself; without cuwarden there is none, and this says so.
//
//   c++ -std=c++17 buffers.cpp -o buffers -lcudart $(pkg-config --cflags --libs cuwarden)
//
//   cuwarden run -- ./buffers
#include <cuda_runtime_api.h>
#include <cuwarden/cuwarden.hpp>

#include <cstdio>
#include <vector>

int main()
{
    const std::vector<float> first(3000, 1.5F);
    std::vector<float> back(3000);

    cudaFree(nullptr); // a context, for the buffer
    try {
        cuwarden::buffer positions(
            cuwarden::preset(cuwarden::buffer_preset::positions, "positions"));

        cudaMemcpy(positions.ensure_capacity(1000), first.data(), 12000, cudaMemcpyHostToDevice);
        cudaMemcpy(back.data(), positions.ensure_capacity(1000000), 12000, cudaMemcpyDeviceToHost);
        std::printf("kept: %s, used: %.2f\n", back == first ? "all" : "not all",
                    positions.state().utilisation);
        positions.ensure_capacity(std::uint64_t{1} << 30);
    } catch (const cuwarden::error &error) {
        std::printf("%s: %s\n", error.name(), error.what());
    }
}
