// SPDX-License-Identifier: MIT
//
// What a program may ask of cuwarden, in C++17: cuwarden.h, which says what each function does, its
// units, threads and cost, with scopes that end by themselves and errors that are thrown.
//
// Without the library nothing is thrown: scopes and marks do nothing, results are empty or zero.
// Whoever wants to know asks is_active(). Only buffers, downloads, bridges, prefetches and stream
// sets are things of their own, and cannot do without: making one throws NOT_ACTIVE. A function
// that is passed to visit() or leak_check() may throw: the visit ends, and the exception goes on
// from there.
#ifndef CUWARDEN_CUWARDEN_HPP
#define CUWARDEN_CUWARDEN_HPP

#include <cuwarden/cuwarden.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace cuwarden
{

inline constexpr int all_devices = CUWARDEN_ALL_DEVICES;
inline constexpr int host = CUWARDEN_HOST;

using block = cuwarden_block; // its texts are valid inside the function that it is passed to
using stats = cuwarden_stats;
using leaks = cuwarden_leaks;

// what() is one line with the numbers, code() one of CUWARDEN_...
class error : public std::runtime_error
{
  public:
    explicit error(int code) : std::runtime_error(cuwarden_error_text(code)), code_(code)
    {
    }
    int code() const noexcept
    {
        return code_;
    }
    const char *name() const noexcept
    {
        return cuwarden_error_name(code_);
    }

  private:
    int code_;
};

// Throws what a function of cuwarden.h has returned; not that there is no library. Returns whether
// there is one.
inline bool check(int code)
{
    if (code != CUWARDEN_OK && code != CUWARDEN_NOT_ACTIVE)
        throw error(code);
    return code == CUWARDEN_OK;
}

inline bool is_active() noexcept
{
    return cuwarden_is_active() != 0;
}

inline std::string version()
{
    return cuwarden_version();
}

// ---- tags and steps ----

// What this thread allocates while it lives has this tag. It must end on the thread that made it,
// in the reverse order of the others, which is how variables of blocks end.
class tag
{
  public:
    explicit tag(const char *name) : is_open_(check(cuwarden_tag_push(name)))
    {
    }
    explicit tag(const std::string &name) : tag(name.c_str())
    {
    }
    ~tag()
    {
        if (is_open_)
            cuwarden_tag_pop();
    }
    tag(const tag &) = delete;
    tag &operator=(const tag &) = delete;

  private:
    bool is_open_;
};

inline void step(const char *name)
{
    check(cuwarden_step(name));
}
inline void step(const std::string &name)
{
    step(name.c_str());
}

// ---- statistics ----

inline stats device_stats(int device = all_devices)
{
    stats out{};

    check(cuwarden_device_stats(device, &out));
    return out;
}

inline stats tag_stats(const std::string &name, int device = all_devices)
{
    stats out{};

    check(cuwarden_tag_stats(name.c_str(), device, &out));
    return out;
}

// ---- blocks ----

struct filter {
    std::uint64_t since = 0; // a mark
    std::chrono::nanoseconds older_than{0};
    std::optional<std::string> tag; // "": without any
    int device = all_devices;       // all_devices includes memory of the host here
};

namespace detail
{

// Calls the program's function; false, or nothing, goes on. Nothing is thrown through C.
template <typename Function, typename Thing = cuwarden_block> struct caller {
    Function &function;
    std::exception_ptr thrown;

    static int call(const Thing *thing, void *self)
    {
        auto *me = static_cast<caller *>(self);

        try {
            if constexpr (std::is_void_v<decltype(me->function(*thing))>)
                return me->function(*thing), 0;
            else
                return me->function(*thing) ? 1 : 0;
        } catch (...) {
            me->thrown = std::current_exception();
            return 1;
        }
    }
    void go_on() const
    {
        if (thrown)
            std::rethrow_exception(thrown);
    }
};

// Memory cannot be done without.
inline void must(int code)
{
    if (code != CUWARDEN_OK)
        throw error(code);
}

// The number of what the owner ends.
struct owned {
    owned() = default;
    owned(owned &&other) noexcept : id(other.id), is_owner(std::exchange(other.is_owner, false))
    {
    }
    owned &operator=(owned &&other) noexcept
    {
        std::swap(id, other.id);
        std::swap(is_owner, other.is_owner);
        return *this;
    }
    std::uint64_t id = 0;
    bool is_owner = false;
};

// BUSY: nothing has changed, and the owner ends it yet.
inline void end(owned &its, int code)
{
    its.is_owner = its.is_owner && code == CUWARDEN_BUSY;
    must(code);
}

} // namespace detail

// function(const block &): returns nothing, or true to end the visit.
template <typename Function> void visit(const filter &which, Function &&function)
{
    detail::caller<std::remove_reference_t<Function>> caller{function, nullptr};
    cuwarden_filter in{};

    in.since = which.since;
    in.older_than_ns = static_cast<std::uint64_t>(which.older_than.count());
    in.tag = which.tag ? which.tag->c_str() : nullptr;
    in.device = which.device;
    check(cuwarden_visit(&in, &caller.call, &caller));
    caller.go_on();
}

template <typename Function> void visit(Function &&function)
{
    visit(filter{}, std::forward<Function>(function));
}

// Its texts are valid until the thread's next call of this function.
inline std::optional<block> find_block(const void *address)
{
    block out{};
    int code = cuwarden_block_find(address, &out);

    if (code == CUWARDEN_NOT_FOUND || !check(code))
        return std::nullopt;
    return out;
}

inline void name_block(const void *address, const std::string &name)
{
    check(cuwarden_block_name(address, name.c_str()));
}

inline std::uint64_t mark()
{
    std::uint64_t out = 0;

    check(cuwarden_mark(&out));
    return out;
}

template <typename Function> leaks leak_check(std::uint64_t since, Function &&function)
{
    detail::caller<std::remove_reference_t<Function>> caller{function, nullptr};
    leaks out{};

    check(cuwarden_leak_check(since, &caller.call, &caller, &out));
    caller.go_on();
    return out;
}

inline leaks leak_check(std::uint64_t since = 0)
{
    leaks out{};

    check(cuwarden_leak_check(since, nullptr, nullptr, &out));
    return out;
}

// ---- files ----

inline void report(const std::string &path)
{
    check(cuwarden_report(path.c_str()));
}

// Records while it lives, or until stop().
class recording
{
  public:
    explicit recording(const std::string &path)
        : is_open_(check(cuwarden_record_start(path.c_str())))
    {
    }
    ~recording()
    {
        if (is_open_)
            cuwarden_record_stop();
    }
    recording(const recording &) = delete;
    recording &operator=(const recording &) = delete;
    void stop()
    {
        if (std::exchange(is_open_, false))
            check(cuwarden_record_stop());
    }

  private:
    bool is_open_;
};

// ---- control ----

using pressure = cuwarden_pressure;

enum class trim_by {
    shrink = CUWARDEN_SHRINK,
    clear = CUWARDEN_CLEAR,
    emergency = CUWARDEN_EMERGENCY
};

// Of a device, or of the one where memory is scarcest; nothing if the program uses none of them.
inline std::optional<pressure> pressure_now(int device = all_devices)
{
    pressure out{};
    int code = cuwarden_pressure_now(device, &out);

    if (code == CUWARDEN_UNUSED_DEVICE || code == CUWARDEN_NOT_STARTED || !check(code))
        return std::nullopt;
    return out;
}

// The bytes that went back to the driver.
inline std::uint64_t trim(trim_by how = trim_by::clear, int device = all_devices)
{
    std::uint64_t bytes = 0;

    check(cuwarden_trim(device, static_cast<cuwarden_trim_how>(how), &bytes));
    return bytes;
}

// 0: none.
inline void set_limit(std::uint64_t bytes, int device = all_devices)
{
    check(cuwarden_limit_set(device, bytes));
}

inline void set_pool_max(std::uint64_t bytes, int device = all_devices)
{
    check(cuwarden_pool_max_set(device, bytes));
}

// The device with most room; nothing without the library.
inline std::optional<int> pick_device(std::uint64_t bytes, const char *name = nullptr)
{
    std::int32_t device = 0;

    if (!check(cuwarden_device_pick(name, bytes, &device)))
        return std::nullopt;
    return device;
}

struct placed {
    void *data; // freed by cudaFree()
    int device;
};

// Memory there; nothing without the library.
inline std::optional<placed> device_alloc(std::uint64_t bytes, const char *name = nullptr)
{
    std::int32_t device = 0;
    void *data = nullptr;

    if (!check(cuwarden_device_alloc(name, bytes, &device, &data)))
        return std::nullopt;
    return placed{data, device};
}

using budget = cuwarden_budget;

enum class budget_how { warn = CUWARDEN_WARN, refuse = CUWARDEN_REFUSE };

inline void set_budget(const char *tag, std::uint64_t bytes, budget_how how = budget_how::warn)
{
    check(cuwarden_budget_set(tag, bytes, static_cast<cuwarden_budget_how>(how)));
}

inline void clear_budget(const char *tag)
{
    check(cuwarden_budget_clear(tag));
}

// Nothing if no budget counts the tag.
inline std::optional<budget> budget_now(const char *tag)
{
    budget out{};
    int code = cuwarden_budget_now(tag, &out);

    if (code == CUWARDEN_NOT_FOUND || !check(code))
        return std::nullopt;
    return out;
}

// Calls function(const pressure &now, int level_before) while it lives. What that throws ends the
// program (noexcept): there is nobody to catch it.
template <typename Function> class pressure_listener
{
  public:
    explicit pressure_listener(Function function)
        : function_(std::move(function)), is_on_(check(cuwarden_pressure_listen(&call, this)))
    {
    }
    ~pressure_listener()
    {
        if (is_on_)
            cuwarden_pressure_unlisten(&call, this);
    }
    pressure_listener(const pressure_listener &) = delete;
    pressure_listener &operator=(const pressure_listener &) = delete;

  private:
    static void call(const cuwarden_pressure *now, int before, void *self) noexcept
    {
        static_cast<pressure_listener *>(self)->function_(*now, before);
    }
    Function function_;
    bool is_on_;
};

// Calls function(int device, std::uint64_t bytes), which says whether it has freed something,
// before a request fails. One that throws has freed nothing.
template <typename Function> class memory_listener
{
  public:
    explicit memory_listener(Function function)
        : function_(std::move(function)), is_on_(check(cuwarden_memory_listen(&call, this)))
    {
    }
    ~memory_listener()
    {
        if (is_on_)
            cuwarden_memory_unlisten(&call, this);
    }
    memory_listener(const memory_listener &) = delete;
    memory_listener &operator=(const memory_listener &) = delete;

  private:
    static int call(int device, std::uint64_t bytes, void *self) noexcept
    {
        try {
            return static_cast<memory_listener *>(self)->function_(device, bytes) ? 1 : 0;
        } catch (...) {
            return 0;
        }
    }
    Function function_;
    bool is_on_;
};

// ---- batches and scopes ----

// The frees of this thread while it lives share one wait, which its end makes. end() says if the
// driver reported an error there.
class batch
{
  public:
    batch() : is_open_(check(cuwarden_batch_begin()))
    {
    }
    ~batch()
    {
        if (is_open_)
            cuwarden_batch_end();
    }
    batch(const batch &) = delete;
    batch &operator=(const batch &) = delete;
    void end()
    {
        if (std::exchange(is_open_, false))
            check(cuwarden_batch_end());
    }

  private:
    bool is_open_;
};

// Frees at its end what this thread has allocated meanwhile, and neither freed nor kept.
class scope
{
  public:
    explicit scope(const char *name) : is_open_(check(cuwarden_scope_begin(name)))
    {
    }
    ~scope()
    {
        if (is_open_)
            cuwarden_scope_end(nullptr);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;
    cuwarden_freed end()
    {
        cuwarden_freed out{};

        if (std::exchange(is_open_, false))
            check(cuwarden_scope_end(&out));
        return out;
    }

  private:
    bool is_open_;
};

inline void keep(const void *address)
{
    check(cuwarden_keep(address));
}

// ---- growable buffers ----

using buffer_state = cuwarden_buffer; // its name is valid until the buffer ends

struct buffer_spec {
    std::string name;
    std::uint64_t element_bytes = 0;
    std::uint64_t count = 0; // elements that it has room for from the start
    std::uint64_t least_bytes = 0;
    std::uint64_t most_bytes = 0;
    double growth = 0;
    bool is_asynchronous = false;
    bool is_copying = false;
};

enum class buffer_preset {
    positions = CUWARDEN_POSITIONS,
    velocities = CUWARDEN_VELOCITIES,
    edges = CUWARDEN_EDGES,
    cells = CUWARDEN_CELLS
};

inline buffer_spec preset(buffer_preset which, std::string name)
{
    const auto from = cuwarden_preset(static_cast<cuwarden_buffer_preset>(which), "");
    buffer_spec out;

    out.name = std::move(name);
    out.element_bytes = from.element_bytes;
    out.most_bytes = from.most_bytes;
    out.growth = from.growth;
    out.is_asynchronous = (from.flags & CUWARDEN_ASYNCHRONOUS) != 0;
    return out;
}

// Device memory that grows, and ends with the object that made it. Every failure is thrown, that
// there is no library too.
class buffer
{
  public:
    explicit buffer(const buffer_spec &spec)
    {
        cuwarden_buffer_spec in{};

        in.name = spec.name.c_str();
        in.element_bytes = spec.element_bytes;
        in.count = spec.count;
        in.least_bytes = spec.least_bytes;
        in.most_bytes = spec.most_bytes;
        in.growth = spec.growth;
        in.flags = (spec.is_asynchronous ? unsigned{CUWARDEN_ASYNCHRONOUS} : 0U) |
                   (spec.is_copying ? unsigned{CUWARDEN_COPYING} : 0U);
        detail::must(cuwarden_buffer_make(&in, &its_.id));
        its_.is_owner = true;
    }
    // The one of this name, which ends with whoever made it. element_bytes 0: of any size.
    static buffer find(const std::string &name, std::uint64_t element_bytes = 0)
    {
        buffer out;

        detail::must(cuwarden_buffer_find(name.c_str(), element_bytes, &out.its_.id));
        return out;
    }
    ~buffer()
    {
        if (its_.is_owner)
            cuwarden_buffer_end(its_.id);
    }
    buffer(buffer &&) noexcept = default;
    buffer &operator=(buffer &&) noexcept = default;

    // Where the elements are, of which there is room for so many.
    void *ensure_capacity(std::uint64_t count, void *stream = nullptr)
    {
        void *address = nullptr;

        detail::must(cuwarden_ensure_capacity(its_.id, count, stream, &address));
        return address;
    }
    void use(std::uint64_t count)
    {
        detail::must(cuwarden_buffer_use(its_.id, count));
    }
    buffer_state state() const
    {
        buffer_state out{};

        detail::must(cuwarden_buffer_now(its_.id, &out));
        return out;
    }
    // The bytes that went back.
    std::uint64_t shrink()
    {
        std::uint64_t bytes = 0;

        detail::must(cuwarden_buffer_shrink(its_.id, &bytes));
        return bytes;
    }
    // Now, and says if the driver refused. BUSY: not now; the object still ends it.
    void end()
    {
        detail::end(its_, cuwarden_buffer_end(its_.id));
    }
    std::uint64_t id() const noexcept
    {
        return its_.id;
    }

  private:
    buffer() = default;
    detail::owned its_;
};

// function(const buffer_state &): returns nothing, or true to end the visit.
template <typename Function> void visit_buffers(Function &&function)
{
    detail::caller<std::remove_reference_t<Function>, cuwarden_buffer> caller{function, nullptr};

    check(cuwarden_buffer_visit(&caller.call, &caller));
    caller.go_on();
}

// Shrinks what was not used for so long and is used to a smaller share; the bytes that went back.
inline std::uint64_t clean_buffers(std::chrono::nanoseconds unused, double below = 1)
{
    std::uint64_t bytes = 0;

    check(cuwarden_buffer_clean(static_cast<std::uint64_t>(unused.count()), below, &bytes));
    return bytes;
}

// What a model takes of each device; nothing without the library.
using model = cuwarden_model; // `model it{};` and what is known
using estimate = cuwarden_estimate;

inline std::optional<estimate> estimate_of(const model &of)
{
    estimate out{};

    if (!check(cuwarden_estimate_make(&of, &out)))
        return std::nullopt;
    return out;
}

// ---- asynchronous downloads ----

using frame = cuwarden_frame; // the program's until it is released, or the next is waited for
using download_state = cuwarden_download; // its name is valid until the download ends

// For download::start(): the copy waits for no stream by itself.
inline void *const no_stream = CUWARDEN_NO_STREAM;

// Frames that come from the device while the program computes, in pinned memory that ends with the
// object. Every failure is thrown, that there is no library too.
class download
{
  public:
    download(const std::string &name, std::uint64_t most_bytes)
    {
        detail::must(cuwarden_download_make(name.c_str(), most_bytes, &its_.id));
        its_.is_owner = true;
    }
    ~download()
    {
        if (its_.is_owner)
            cuwarden_download_end(its_.id);
    }
    download(download &&) noexcept = default;
    download &operator=(download &&) noexcept = default;

    // The frame's number; nothing (BUSY): both halves are on their way or held, and it was not
    // started.
    std::optional<std::uint64_t> start(const void *from, std::uint64_t bytes,
                                       void *stream = nullptr)
    {
        std::uint64_t number = 0;
        int code = cuwarden_download_start(its_.id, from, bytes, stream, &number);

        if (code == CUWARDEN_BUSY)
            return std::nullopt;
        detail::must(code);
        return number;
    }
    // Later frames wait for what the stream has been given until now, or for an event.
    void after(void *stream)
    {
        detail::must(cuwarden_download_after(its_.id, stream, nullptr));
    }
    void after_event(void *event)
    {
        detail::must(cuwarden_download_after(its_.id, nullptr, event));
    }
    // What the stream is given from now on waits for the frames that were started.
    void before(void *stream)
    {
        detail::must(cuwarden_download_before(its_.id, stream));
    }
    // The last complete frame, of at least this number; waits only if none is complete.
    frame wait(std::uint64_t least = 0)
    {
        frame out{};

        detail::must(cuwarden_download_wait(its_.id, least, &out));
        return out;
    }
    void release()
    {
        detail::must(cuwarden_download_release(its_.id));
    }
    download_state state() const
    {
        download_state out{};

        detail::must(cuwarden_download_now(its_.id, &out));
        return out;
    }
    // Now, and says if the driver refused. BUSY: not now; the object still ends it.
    void end()
    {
        detail::end(its_, cuwarden_download_end(its_.id));
    }
    std::uint64_t id() const noexcept
    {
        return its_.id;
    }

  private:
    detail::owned its_;
};

// ---- from device to device ----

using bridge_state = cuwarden_bridge; // its name is valid until the bridge ends

enum class way { local = CUWARDEN_LOCAL, peer = CUWARDEN_PEER, staged = CUWARDEN_STAGED };

// Carries bytes from a device to another, and ends with the object. Every failure is thrown, that
// there is no library too.
class bridge
{
  public:
    struct copied {
        std::uint64_t number;
        way by;
    };

    // As peers where they can, unless staged is asked for; chunk_bytes 0: 4 MiB.
    bridge(const std::string &name, int from_device, int to_device, std::uint64_t chunk_bytes = 0,
           way by = way::peer)
    {
        detail::must(cuwarden_bridge_make(name.c_str(), from_device, to_device, chunk_bytes,
                                          static_cast<int>(by), &its_.id));
        its_.is_owner = true;
    }
    ~bridge()
    {
        if (its_.is_owner)
            cuwarden_bridge_end(its_.id);
    }
    bridge(bridge &&) noexcept = default;
    bridge &operator=(bridge &&) noexcept = default;

    // After what the stream was given, before what it is given later; no_stream: waits for it. What
    // is thrown as BUSY may be done again.
    copied copy(void *to, const void *from, std::uint64_t bytes, void *stream = nullptr)
    {
        std::uint64_t number = 0;
        std::int32_t by = 0;

        detail::must(cuwarden_bridge_copy(its_.id, to, from, bytes, stream, &number, &by));
        return {number, static_cast<way>(by)};
    }
    // For the copy of this number (0: the last one), and all before it.
    void wait(std::uint64_t number = 0)
    {
        detail::must(cuwarden_bridge_wait(its_.id, number));
    }
    bridge_state state() const
    {
        bridge_state out{};

        detail::must(cuwarden_bridge_now(its_.id, &out));
        return out;
    }
    // Now, and says if the driver refused. BUSY: not now; the object still ends it.
    void end()
    {
        detail::end(its_, cuwarden_bridge_end(its_.id));
    }
    std::uint64_t id() const noexcept
    {
        return its_.id;
    }

  private:
    detail::owned its_;
};

// ---- streams for computing, in and out ----

using streams_state = cuwarden_streams; // its name and streams are valid until the set ends

enum class lane { compute = CUWARDEN_COMPUTE, in = CUWARDEN_IN, out = CUWARDEN_OUT };

// Three non-blocking streams of a device, which end with the object. Every failure is thrown, that
// there is no library too.
class streams
{
  public:
    // A piece of work, from here to the end of the block. Where 32 are on their way it is not
    // counted, and says so.
    class work
    {
      public:
        work(const streams &set, lane which) : id_(set.id()), which_(static_cast<int>(which))
        {
            int error = cuwarden_work_begin(id_, which_);

            is_counted_ = error == CUWARDEN_OK;
            if (error != CUWARDEN_BUSY)
                detail::must(error);
        }
        ~work()
        {
            if (is_counted_)
                cuwarden_work_end(id_, which_);
        }
        work(const work &) = delete;
        work &operator=(const work &) = delete;
        bool is_counted() const noexcept
        {
            return is_counted_;
        }

      private:
        std::uint64_t id_;
        int which_;
        bool is_counted_;
    };

    streams(const std::string &name, int device)
    {
        detail::must(cuwarden_streams_make(name.c_str(), device, &its_.id));
        its_.is_owner = true;
    }
    ~streams()
    {
        if (its_.is_owner)
            cuwarden_streams_end(its_.id);
    }
    streams(streams &&) noexcept = default;
    streams &operator=(streams &&) noexcept = default;

    // A CUstream or cudaStream_t.
    void *get(lane which) const
    {
        streams_state now = state();

        return which == lane::compute ? now.compute : which == lane::in ? now.in : now.out;
    }
    // What `later` is given from now on begins after what `earlier` was given.
    void order(lane later, lane earlier)
    {
        detail::must(
            cuwarden_streams_order(its_.id, static_cast<int>(later), static_cast<int>(earlier)));
    }
    // Times and counts begin anew.
    void reset()
    {
        detail::must(cuwarden_streams_reset(its_.id));
    }
    streams_state state() const
    {
        streams_state out{};

        detail::must(cuwarden_streams_now(its_.id, &out));
        return out;
    }
    // Now, and says if the driver refused. BUSY: not now; the object still ends it.
    void end()
    {
        detail::end(its_, cuwarden_streams_end(its_.id));
    }
    std::uint64_t id() const noexcept
    {
        return its_.id;
    }

  private:
    detail::owned its_;
};

// ---- files to the device ----

using prefetch_state = cuwarden_prefetch; // its name is valid until the prefetch ends

enum class stage {
    reading = CUWARDEN_READING,
    arriving = CUWARDEN_ARRIVING,
    arrived = CUWARDEN_ARRIVED
};

// Brings files to memory of the current context's device, and ends with the object. Every failure
// is thrown, that there is no library too.
class prefetch
{
  public:
    explicit prefetch(const std::string &name, std::uint64_t chunk_bytes = 0)
    {
        detail::must(cuwarden_prefetch_make(name.c_str(), chunk_bytes, &its_.id));
        its_.is_owner = true;
    }
    ~prefetch()
    {
        if (its_.is_owner)
            cuwarden_prefetch_end(its_.id);
    }
    prefetch(prefetch &&) noexcept = default;
    prefetch &operator=(prefetch &&) noexcept = default;

    // After what the stream was given; never waits for the disk. The request's number.
    std::uint64_t start(const std::string &path, std::uint64_t offset, std::uint64_t bytes,
                        void *to, void *stream = nullptr)
    {
        return start(path.c_str(), -1, offset, bytes, to, stream);
    }
    // The same of a file that is open, and may be closed at once.
    std::uint64_t start(int fd, std::uint64_t offset, std::uint64_t bytes, void *to,
                        void *stream = nullptr)
    {
        return start(nullptr, fd, offset, bytes, to, stream);
    }
    // What the stream is given from now on begins after the request of this number (0: the last
    // one) has arrived; waits for the disk if it must, never for the device.
    void before(void *stream, std::uint64_t number = 0)
    {
        detail::must(cuwarden_prefetch_before(its_.id, number, stream));
    }
    cuwarden::stage stage(std::uint64_t number = 0) const
    {
        std::int32_t out = 0;

        detail::must(cuwarden_prefetch_stage(its_.id, number, &out));
        return static_cast<cuwarden::stage>(out);
    }
    // The bytes that came: fewer than were asked for at the end of the file.
    std::uint64_t wait(std::uint64_t number = 0)
    {
        std::uint64_t bytes = 0;

        detail::must(cuwarden_prefetch_wait(its_.id, number, &bytes));
        return bytes;
    }
    // Nothing more is read for the request (0: for all).
    void cancel(std::uint64_t number = 0)
    {
        detail::must(cuwarden_prefetch_cancel(its_.id, number));
    }
    prefetch_state state() const
    {
        prefetch_state out{};

        detail::must(cuwarden_prefetch_now(its_.id, &out));
        return out;
    }
    // Now, and says if the driver refused. BUSY: not now; the object still ends it.
    void end()
    {
        detail::end(its_, cuwarden_prefetch_end(its_.id));
    }
    std::uint64_t id() const noexcept
    {
        return its_.id;
    }

  private:
    std::uint64_t start(const char *path, int fd, std::uint64_t offset, std::uint64_t bytes,
                        void *to, void *stream)
    {
        std::uint64_t number = 0;

        detail::must(
            cuwarden_prefetch_start(its_.id, path, fd, offset, bytes, to, stream, &number));
        return number;
    }

    detail::owned its_;
};

} // namespace cuwarden

#endif
