// SPDX-License-Identifier: MIT
//
// Scopes and exceptions of cuwarden.hpp, over the driver; it checks the answers itself. The exit
// status is 0 with the library, 3 without.
#include <cuwarden/cuwarden.hpp>

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <thread>
#include <vector>

#define CHECK(condition)                                                                           \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (std::fprintf(stderr, "%d: not so: %s\n", __LINE__, #condition), std::exit(99)))

namespace
{

CUdeviceptr take(std::size_t bytes)
{
    CUdeviceptr block = 0;

    CHECK(cuMemAlloc(&block, bytes) == CUDA_SUCCESS);
    return block;
}

const void *at(CUdeviceptr block)
{
    return reinterpret_cast<const void *>(block);
}

// What the function throws; 0: nothing.
template <typename Function> int thrown(Function &&function)
{
    try {
        function();
    } catch (const cuwarden::error &error) {
        CHECK(std::strlen(error.what()) > 10);
        return error.code();
    }
    return 0;
}

struct stop {
};

void check_scopes()
{
    CUdeviceptr inner = 0, outer = 0, after = 0;

    try {
        cuwarden::tag first("outer");
        {
            cuwarden::tag second(std::string("inner"));

            inner = take(1000);
        }
        outer = take(2000);
        throw stop{};
    } catch (stop) {
        after = take(3000);
    }
    CHECK(cuwarden::tag_stats("inner").live_bytes == 1000);
    CHECK(cuwarden::tag_stats("outer", 0).live_bytes == 2000);
    CHECK(cuwarden::tag_stats("").live_bytes == 3000);
    CHECK(cuwarden::find_block(at(outer))->bytes == 2000 && !cuwarden::find_block(at(outer + 1)));
    for (CUdeviceptr block : {inner, outer, after})
        CHECK(cuMemFree(block) == CUDA_SUCCESS);
}

void check_visits()
{
    CUdeviceptr block = take(4000);
    unsigned count = 0;
    int caught = 0;

    cuwarden::name_block(at(block), "kept");
    cuwarden::visit(
        [&](const cuwarden::block &one) { count += std::strcmp(one.name, "kept") == 0; });
    CHECK(count == 1);
    cuwarden::visit({0, std::chrono::hours(1), std::nullopt, cuwarden::all_devices},
                    [&](const cuwarden::block &) { count++; });
    CHECK(count == 1);
    take(5000);
    cuwarden::visit([&](const cuwarden::block &) { return ++count == 2; });
    CHECK(count == 2);
    try {
        cuwarden::leak_check(0, [&](const cuwarden::block &) { throw stop{}; });
    } catch (stop) {
        caught = 1;
    }
    CHECK(caught && cuwarden::leak_check().bytes == 9000);
    CHECK(cuwarden::leak_check(cuwarden::mark()).bytes == 0);
}

void check_errors()
{
    CHECK(thrown([] { cuwarden::tag(""); }) == CUWARDEN_INVALID);
    CHECK(thrown([] { cuwarden::device_stats(63); }) == CUWARDEN_NO_DEVICE);
    CHECK(thrown([] { cuwarden::tag_stats("nobody"); }) == CUWARDEN_NOT_FOUND);
    CHECK(thrown([] { cuwarden::report("/proc/none/x"); }) == CUWARDEN_SYSTEM);
    {
        cuwarden::recording recording("recorded.csv");

        CHECK(thrown([] { cuwarden::recording other("other.csv"); }) == CUWARDEN_BUSY);
        CHECK(cuMemFree(take(6000)) == CUDA_SUCCESS);
    }
    CHECK(cuwarden_record_stop() == CUWARDEN_UNBALANCED);
    cuwarden::report("now.json");
}

void check_control()
{
    int asked = 0, changes = 0;
    CUdeviceptr cache = take(600 << 20);

    CHECK(cuwarden::pressure_now(0)->level == CUWARDEN_LOW && !cuwarden::pressure_now(1));
    {
        cuwarden::memory_listener give_up([&](int, std::uint64_t) {
            asked++;
            return cuMemFree(cache) == CUDA_SUCCESS;
        });

        cache = take(700 << 20);
    }
    CHECK(asked == 1);
    {
        cuwarden::memory_listener throws([](int, std::uint64_t) -> bool { throw stop{}; });
        CUdeviceptr none;

        CHECK(cuMemAlloc(&none, 700 << 20) == CUDA_ERROR_OUT_OF_MEMORY);
    }
    {
        cuwarden::pressure_listener hear(
            [&](const cuwarden::pressure &now, int before) { changes += now.level != before; });

        CHECK(cuMemFree(cache) == CUDA_SUCCESS);
        cuwarden::set_limit(std::uint64_t{100} << 20, 0);
        CHECK(cuMemFree(take(90 << 20)) == CUDA_SUCCESS);
        cuwarden::set_limit(0);
        cuwarden::set_budget("none", 1, cuwarden::budget_how::refuse);
        CHECK(cuwarden::budget_now("none")->bytes == 1);
        cuwarden::clear_budget("none");
        CHECK(!cuwarden::budget_now("none"));
        CHECK(cuMemFree(take(8 << 20)) == CUDA_SUCCESS);
    }
    CHECK(changes > 0 && cuwarden::trim() > 0 && cuwarden::trim(cuwarden::trim_by::shrink) == 0);
    CHECK(thrown([] { cuwarden::trim(cuwarden::trim_by::clear, 17); }) == CUWARDEN_NO_DEVICE);
}

void check_batches()
{
    const auto before = cuwarden::device_stats(0).live_blocks;
    CUdeviceptr kept = 0;

    try {
        cuwarden::scope scope("thrown out of");
        cuwarden::batch batch;

        kept = take(1000);
        cuwarden::keep(at(kept));
        take(2000);
        throw stop{};
    } catch (stop) {
        CHECK(cuwarden::device_stats(0).live_blocks == before + 1);
    }
    {
        cuwarden::scope scope("ended");

        take(3000);
        const auto freed = scope.end();
        CHECK(freed.blocks == 1 && freed.bytes == 3000 && freed.left_blocks == 0);
        take(4000);
    }
    CHECK(cuwarden::device_stats(0).live_blocks == before + 2);
}

void check_buffers()
{
    const auto before = cuwarden::device_stats(0).live_bytes;
    cuwarden::buffer_spec spec = cuwarden::preset(cuwarden::buffer_preset::positions, "positions");

    CHECK(spec.element_bytes == 12 && spec.is_asynchronous && spec.growth > 1.2);
    try {
        cuwarden::buffer buffer(spec);
        void *first = buffer.ensure_capacity(1000);
        unsigned count = 0;

        CHECK(buffer.ensure_capacity(1000000) == first && buffer.state().is_in_place);
        CHECK(cuwarden::buffer::find("positions", 12).id() == buffer.id());
        CHECK(thrown([&] { cuwarden::buffer other(spec); }) == CUWARDEN_EXISTS);
        CHECK(thrown([] { cuwarden::buffer::find("positions", 8); }) == CUWARDEN_WRONG_SIZE);
        CHECK(thrown([&] { buffer.use(std::uint64_t{1} << 40); }) == CUWARDEN_TOO_LARGE);
        cuwarden::visit_buffers([&](const cuwarden::buffer_state &one) { count += one.used > 0; });
        CHECK(count == 1);
        buffer.use(0);
        CHECK(cuwarden::clean_buffers(std::chrono::hours(1)) == 0 && buffer.shrink() > 12000000);
        throw stop{};
    } catch (stop) {
        CHECK(cuwarden::device_stats(0).live_bytes == before);
    }
    spec.is_copying = true;
    cuwarden::buffer moved(spec), taken(std::move(moved));

    CHECK(taken.state().capacity == 4096 / 12);
    taken.end();
    CHECK(thrown([&] { taken.end(); }) == CUWARDEN_NOT_FOUND);
}

// An end that is refused for now is made up for.
void check_ends()
{
    int count = 0;
    CUstream stream;
    CUgraph graph;

    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    {
        cuwarden::buffer buffer({"late", 4});
        CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
        CHECK(thrown([&] { buffer.end(); }) == CUWARDEN_BUSY);
        CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    }
    cuwarden::visit_buffers([&](const cuwarden::buffer_state &) { count++; });
    CHECK(count == 0);
}

// Whoever is inside a listener's function leaves it before the listener goes.
void check_leaving_listener()
{
    CUcontext context = nullptr;
    std::atomic<int> inside{0}, outside{0};
    std::thread other;

    CHECK(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
    cuwarden::set_limit(std::uint64_t{10} << 20, 0);
    {
        cuwarden::memory_listener hear([&](int, std::uint64_t) {
            inside = 1;
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            outside = 1;
            return false;
        });
        other = std::thread([&] {
            CUdeviceptr block = 0;

            CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
            CHECK(cuMemAlloc(&block, std::size_t{9} << 20) == CUDA_SUCCESS);
            CHECK(cuMemAlloc(&block, std::size_t{9} << 20) == CUDA_ERROR_OUT_OF_MEMORY);
            CHECK(cuMemFree(block) == CUDA_SUCCESS);
        });
        while (inside == 0)
            std::this_thread::yield();
    }
    CHECK(outside == 1);
    other.join();
    cuwarden::set_limit(0, 0);
}

void check_downloads()
{
    CUdeviceptr block = take(4000);
    CUstream stream = nullptr;
    CUevent event = nullptr;
    std::uint64_t started = 0;

    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    try {
        cuwarden::download made("frames", 4000), frames(std::move(made));

        CHECK(thrown([] { cuwarden::download other("frames", 1); }) == CUWARDEN_EXISTS);
        CHECK(thrown([&] { frames.wait(); }) == CUWARDEN_NOT_FOUND);
        for (unsigned i = 1; i <= 3; i++) {
            CHECK(cuMemsetD32Async(block, i, 1000, stream) == CUDA_SUCCESS);
            if (i == 1) {
                CHECK(cuEventRecord(event, stream) == CUDA_SUCCESS);
                frames.after_event(event);
            } else {
                frames.after(stream);
            }
            CHECK(frames.start(at(block), 4000, i == 3 ? stream : cuwarden::no_stream) == i);
            frames.before(stream);
            cuwarden::frame frame = frames.wait(i);
            CHECK(frame.number == i && static_cast<const unsigned *>(frame.data)[999] == i);
        }
        CHECK(frames.start(at(block), 4));
        for (int i = 0; frames.start(at(block), 4); i++) // one that has come is replaced
            CHECK(i < 100000);
        frames.release();
        CHECK(thrown([&] { frames.release(); }) == CUWARDEN_UNBALANCED);
        CHECK(frames.state().id == frames.id() && frames.state().refused == 1);
        started = frames.state().started;
        throw stop{};
    } catch (stop) {
        CHECK(cuwarden::device_stats(0).transfers == started);
    }
    cuwarden::download last("frames", 1);

    last.end();
    CHECK(thrown([&] { last.end(); }) == CUWARDEN_NOT_FOUND);
    CHECK(cuStreamDestroy(stream) == CUDA_SUCCESS && cuEventDestroy(event) == CUDA_SUCCESS);
    CHECK(cuMemFree(block) == CUDA_SUCCESS);
}

void check_places()
{
    auto device = cuwarden::pick_device(1000, "field");
    auto block = cuwarden::device_alloc(1000, "field");

    CHECK(device && block && *device == block->device);
    CHECK(cuwarden::find_block(block->data)->device == *device);
    CHECK(cuMemFree(reinterpret_cast<CUdeviceptr>(block->data)) == CUDA_SUCCESS);
    CHECK(thrown([] { cuwarden::pick_device(UINT64_C(1) << 60); }) == CUWARDEN_OUT_OF_DEVICE);
}

void check_bridges()
{
    CUdeviceptr from = take(4000), to = take(4000);
    cuwarden::bridge made("halo", 0, 0), bridge(std::move(made));

    CHECK(thrown([] { cuwarden::bridge other("halo", 0, 0); }) == CUWARDEN_EXISTS);
    CHECK(thrown([] { cuwarden::bridge other("other", 0, 17); }) == CUWARDEN_NO_DEVICE);
    auto copied = bridge.copy(reinterpret_cast<void *>(to), at(from), 4000);
    bridge.wait(copied.number);
    CHECK(copied.by == cuwarden::way::local && bridge.state().bytes == 4000);
    CHECK(thrown([&] { bridge.copy(reinterpret_cast<void *>(to), at(from), 4001); }) ==
          CUWARDEN_TOO_LARGE);
    bridge.end();
    CHECK(thrown([&] { bridge.wait(); }) == CUWARDEN_NOT_FOUND);
    CHECK(cuMemFree(from) == CUDA_SUCCESS && cuMemFree(to) == CUDA_SUCCESS);
}

void check_prefetches()
{
    CUdeviceptr block = 0;
    std::vector<unsigned char> content(70000), seen(70000);

    for (std::size_t i = 0; i < content.size(); i++)
        content[i] = static_cast<unsigned char>(i * 7 % 251);
    std::ofstream("weights", std::ios::binary)
        .write(reinterpret_cast<const char *>(content.data()), 70000);
    CHECK(cuMemAlloc(&block, 70000) == CUDA_SUCCESS);
    void *to = reinterpret_cast<void *>(block);
    cuwarden::prefetch made("weights", 4096), prefetch(std::move(made));
    auto number = prefetch.start("weights", 0, 70000, to);
    prefetch.before(nullptr, number);
    CHECK(prefetch.wait() == 70000 && prefetch.stage() == cuwarden::stage::arrived);
    CHECK(cuMemcpyDtoH(seen.data(), block, 70000) == CUDA_SUCCESS && seen == content);
    CHECK(thrown([&] { prefetch.start("weights", 0, 70001, to); }) == CUWARDEN_TOO_LARGE);
    prefetch.start("no such file", 0, 1, to);
    CHECK(thrown([&] { prefetch.wait(); }) == CUWARDEN_SYSTEM);
    prefetch.cancel();
    CHECK(prefetch.state().bytes == 70000 && prefetch.state().failed == 1);
    prefetch.end();
    CHECK(thrown([&] { prefetch.wait(number); }) == CUWARDEN_NOT_FOUND);
    CHECK(cuMemFree(block) == CUDA_SUCCESS);
}

// Who asks all the time how the set stands is in nobody's way.
void check_monitored(cuwarden::streams &streams)
{
    using cuwarden::lane;
    std::atomic<bool> is_over{false};
    std::thread monitor([&] {
        while (!is_over)
            streams.state();
    });

    for (int i = 0; i < 2000; i++) {
        cuwarden::streams::work work(streams, lane::out);

        streams.order(lane::in, lane::out);
    }
    is_over = true;
    monitor.join();
}

// A piece of work whose end falls into a capture does not stand in the way of the next.
void check_captured(cuwarden::streams &streams)
{
    using cuwarden::lane;
    CUstream stream = nullptr;
    CUgraph graph = nullptr;

    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    {
        cuwarden::streams::work work(streams, lane::out);

        CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
    }
    CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
    CHECK(cuGraphDestroy(graph) == CUDA_SUCCESS && cuStreamDestroy(stream) == CUDA_SUCCESS);
    CHECK(cuwarden::streams::work(streams, lane::out).is_counted());
}

void check_streams()
{
    using cuwarden::lane;
    cuwarden::streams made("stages", 0), streams(std::move(made));

    CHECK(thrown([] { cuwarden::streams other("stages", 0); }) == CUWARDEN_EXISTS);
    CHECK(thrown([] { cuwarden::streams other("other", 17); }) == CUWARDEN_NO_DEVICE);
    CHECK(streams.get(lane::compute) != streams.get(lane::in));
    streams.order(lane::out, lane::compute);
    {
        cuwarden::streams::work work(streams, lane::in);

        CHECK(work.is_counted());
        CHECK(thrown([&] { cuwarden::streams::work other(streams, lane::in); }) ==
              CUWARDEN_UNBALANCED);
    }
    CHECK(cuCtxSynchronize() == CUDA_SUCCESS && streams.state().works == 1);
    streams.reset();
    CHECK(streams.state().works == 0);
    check_monitored(streams);
    check_captured(streams);
    streams.end();
    CHECK(thrown([&] { streams.reset(); }) == CUWARDEN_NOT_FOUND);
}

} // namespace

// There is nobody to catch it, so the program ends at once, in the listener.
void throw_from_a_listener()
{
    std::set_terminate([] {
        std::puts("terminated");
        std::fflush(stdout);
        std::_Exit(42);
    });
    cuwarden::pressure_listener hear([](const cuwarden::pressure &, int) { throw stop{}; });
    CUdeviceptr block = take(8 << 20);

    try {
        cuwarden::set_limit(std::uint64_t{10} << 20, 0);
        cuMemFree(block);
        cuMemFree(take(9 << 20));
    } catch (...) {
        std::_Exit(98);
    }
}

int main(int argc, char **)
{
    CUcontext context;

    CHECK(cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    if (argc > 1) {
        throw_from_a_listener();
        return 97;
    }
    if (cuwarden::is_active()) {
        check_scopes();
        check_visits();
        check_errors();
        check_control();
        check_batches();
        check_buffers();
        check_ends();
        check_leaving_listener();
        check_downloads();
        check_places();
        check_bridges();
        check_streams();
        check_prefetches();
        return 0;
    }
    cuwarden::tag tag("nobody listens");
    cuwarden::recording recording("recorded.csv");
    cuwarden::name_block(&context, "nobody listens");
    cuwarden::visit([](const cuwarden::block &) { std::exit(99); });
    CHECK(!cuwarden::pressure_now() && cuwarden::trim() == 0);
    CHECK(cuwarden::mark() == 0 && cuwarden::device_stats().allocations == 0);
    CHECK(thrown([] { cuwarden::buffer({"none", 4}); }) == CUWARDEN_NOT_ACTIVE);
    CHECK(thrown([] { cuwarden::download("none", 4); }) == CUWARDEN_NOT_ACTIVE);
    CHECK(thrown([] { cuwarden::bridge("none", 0, 1); }) == CUWARDEN_NOT_ACTIVE);
    CHECK(thrown([] { cuwarden::streams("none", 0); }) == CUWARDEN_NOT_ACTIVE);
    CHECK(thrown([] { cuwarden::prefetch("none"); }) == CUWARDEN_NOT_ACTIVE);
    CHECK(!cuwarden::pick_device(1) && !cuwarden::device_alloc(1, "none"));
    cuwarden::visit_buffers([](const cuwarden::buffer_state &) { std::exit(99); });
    CHECK(!cuwarden::find_block(&context) && cuwarden::leak_check().blocks == 0);
    return 3;
}
