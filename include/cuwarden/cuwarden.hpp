// SPDX-License-Identifier: MIT
//
// What a program may ask of cuwarden, in C++17: cuwarden.h, which says what each function does, its
// units, threads and cost, with scopes that end by themselves and errors that are thrown.
//
// Without the library nothing is thrown: scopes and marks do nothing, results are empty or zero.
// Whoever wants to know asks is_active(). A function that is passed to visit() or leak_check() may
// throw: the visit ends, and the exception goes on from there.
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
template <typename Function> struct caller {
    Function &function;
    std::exception_ptr thrown;

    static int call(const cuwarden_block *block, void *self)
    {
        auto *me = static_cast<caller *>(self);

        try {
            if constexpr (std::is_void_v<decltype(me->function(*block))>)
                return me->function(*block), 0;
            else
                return me->function(*block) ? 1 : 0;
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

// Its texts are valid until the thread's next call.
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

} // namespace cuwarden

#endif
