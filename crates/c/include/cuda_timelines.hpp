// cuda_timelines.h for C++11 and newer: objects that destroy their handles, and errors as
// exceptions. cuda_timelines.h has the rules of each function, its errors and who owns what.
#ifndef CUDA_TIMELINES_HPP
#define CUDA_TIMELINES_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda_timelines.h"

namespace cuda_timelines {

// What a call throws whose result is negative: its code, and the text with what to do.
class Error : public std::runtime_error {
public:
    Error(cutl_result code, const char *text, int driver_code = 0)
        : std::runtime_error(text), code_(code), driver_code_(driver_code) {}
    cutl_result code() const noexcept { return code_; }
    // The driver's CUresult; 0 if it was no error of a driver call.
    int driver_code() const noexcept { return driver_code_; }

private:
    cutl_result code_;
    int driver_code_;
};

// Throws for an error. Otherwise whether the work is done.
inline bool check(cutl_result result) {
    if (result < 0) throw Error(result, cutl_error_text(), cutl_error_driver_code());
    return result == CUTL_OK;
}

using Bytes = std::vector<std::uint8_t>;
using Nanoseconds = std::chrono::nanoseconds;
constexpr Nanoseconds forever = Nanoseconds::max();

// Called once, on a thread of the library, with the error or without one. It must not throw, and an
// empty one is refused.
using Callback = std::function<void(const Error *)>;

namespace detail {

// How long to wait: any duration. One that Nanoseconds cannot hold has no end.
struct Limit {
    template <class Rep, class Period>
    Limit(const std::chrono::duration<Rep, Period> &time) {
        long double exact = std::chrono::duration<long double, std::nano>(time).count();
        if (exact >= static_cast<long double>(forever.count())) nanoseconds = CUTL_FOREVER;
        else if (exact > 0) nanoseconds = static_cast<std::uint64_t>(exact);
    }
    std::uint64_t nanoseconds = 0;
};

// Owns one handle, and can be moved.
template <class H, cutl_result (*destroy)(H *)>
class Owned {
public:
    Owned() noexcept = default;
    explicit Owned(H *handle) noexcept : handle_(handle) {}
    Owned(Owned &&other) noexcept : handle_(other.release()) {}
    Owned &operator=(Owned &&other) noexcept {
        if (this != &other) {
            reset();
            handle_ = other.release();
        }
        return *this;
    }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;
    ~Owned() { reset(); }

    H *get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != nullptr; }
    // The caller destroys it from now on.
    H *release() noexcept {
        H *handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    void reset() noexcept {
        if (handle_ != nullptr) destroy(release());
    }

private:
    H *handle_ = nullptr;
};

extern "C" inline void cuda_timelines_call(void *user, cutl_result result, const char *text) noexcept {
    std::unique_ptr<Callback> callback(static_cast<Callback *>(user));
    if (result == CUTL_OK) return (*callback)(nullptr);
    Error error(result, text, cutl_error_driver_code());
    (*callback)(&error);
}

// Hands a function over by `start`, which takes the two arguments of C.
template <class Start>
void on_done(Callback function, Start start) {
    if (!function) throw Error(CUTL_ERROR_ARGUMENT, "the callback is empty");
    std::unique_ptr<Callback> user(new Callback(std::move(function)));
    check(start(&cuda_timelines_call, static_cast<void *>(user.get())));
    user.release();
}

template <class Copy>
Bytes bytes(std::size_t most, Copy copy) {
    Bytes buffer(most);
    std::size_t length = 0;
    check(copy(buffer.data(), buffer.size(), &length));
    buffer.resize(length);
    return buffer;
}

template <class H, class Make>
H *made(Make make) {
    H *handle = nullptr;
    check(make(&handle));
    return handle;
}

} // namespace detail

// Loads the driver; throws if there is none. The others do so as well.
inline void init() { check(cutl_init()); }

// A place in a timeline: a value. Copy it as you like.
class Point {
public:
    explicit Point(const cutl_point &raw) noexcept : raw_(raw) {}
    const cutl_point &raw() const noexcept { return raw_; }

    std::uint64_t value() const {
        std::uint64_t value = 0;
        check(cutl_point_value(&raw_, &value));
        return value;
    }
    // One load. After true the caller sees the writes of the work before the point.
    bool is_done() const { return check(cutl_point_is_done(&raw_)); }
    // The same, and throws if the point cannot be reached.
    bool query() const { return check(cutl_point_query(&raw_)); }
    // Whether it was reached within the time. The thread sleeps, or spins.
    bool wait(detail::Limit time = forever) const { return check(cutl_point_wait(&raw_, time.nanoseconds)); }
    bool spin(detail::Limit time = forever) const { return check(cutl_point_spin(&raw_, time.nanoseconds)); }
    void on_done(Callback function) const {
        detail::on_done(std::move(function), [this](cutl_callback call, void *user) {
            return cutl_point_on_done(&raw_, call, user);
        });
    }

private:
    cutl_point raw_;
};

// A stream of other code, which must outlive it and its timelines.
class Stream : public detail::Owned<cutl_stream, cutl_stream_destroy> {
public:
    explicit Stream(CUstream_st *stream, CUctx_st *context = nullptr)
        : Owned(detail::made<cutl_stream>([=](cutl_stream **out) { return cutl_stream_adopt(context, stream, out); })) {}

    // Later work in the stream runs after the point.
    void wait(const Point &point) const { check(cutl_stream_wait(get(), &point.raw())); }
    void on_done(Callback function) const {
        detail::on_done(std::move(function), [this](cutl_callback call, void *user) {
            return cutl_stream_on_done(get(), call, user);
        });
    }
};

// A memory file for timelines that other processes see. A null context is the current one.
class File : public detail::Owned<cutl_file, cutl_file_destroy> {
public:
    explicit File(bool writable = false, CUctx_st *context = nullptr)
        : Owned(detail::made<cutl_file>([=](cutl_file **out) { return cutl_file_create(context, writable, out); })) {}

    // The library's file descriptor (on Windows the HANDLE): send it, and do not close it.
    std::ptrdiff_t descriptor() const {
        std::ptrdiff_t descriptor = -1;
        check(cutl_file_descriptor(get(), &descriptor));
        return descriptor;
    }
};

// Device memory for timelines that other processes open by bytes alone.
class Memory : public detail::Owned<cutl_memory, cutl_memory_destroy> {
public:
    explicit Memory(CUctx_st *context = nullptr)
        : Owned(detail::made<cutl_memory>([=](cutl_memory **out) { return cutl_memory_create(context, out); })) {}
};

// A counter that a stream, the host or another process advances.
class Timeline : public detail::Owned<cutl_timeline, cutl_timeline_destroy> {
    template <class Make>
    static Timeline make(Make make) { return Timeline(detail::made<cutl_timeline>(make)); }
    using Out = cutl_timeline **;

public:
    explicit Timeline(cutl_timeline *handle) noexcept : Owned(handle) {}
    explicit Timeline(const Stream &stream)
        : Timeline(make([&](Out out) { return cutl_timeline_create(stream.get(), out); })) {}
    Timeline(const Stream &stream, const File &file)
        : Timeline(make([&](Out out) { return cutl_timeline_create_in_file(stream.get(), file.get(), out); })) {}
    Timeline(const Stream &stream, const Memory &memory)
        : Timeline(make([&](Out out) { return cutl_timeline_create_in_memory(stream.get(), memory.get(), out); })) {}
    static Timeline host(CUctx_st *context = nullptr) {
        return make([=](Out out) { return cutl_timeline_create_host(context, out); });
    }
    static Timeline host(const File &file) {
        return make([&](Out out) { return cutl_timeline_create_host_in_file(file.get(), out); });
    }
    static Timeline open(std::ptrdiff_t file, const Bytes &bytes, CUctx_st *context = nullptr) {
        return make([&](Out out) { return cutl_timeline_open(context, file, bytes.data(), bytes.size(), out); });
    }
    // The bytes must come from a process that you trust.
    static Timeline open_memory(const Bytes &bytes, CUctx_st *context = nullptr) {
        return make([&](Out out) { return cutl_timeline_open_memory(context, bytes.data(), bytes.size(), out); });
    }

    Point signal() const {
        cutl_point raw;
        check(cutl_timeline_signal(get(), &raw));
        return Point(raw);
    }
    // Of an imported timeline: the point of a value that the other process has sent.
    Point point(std::uint64_t value) const {
        cutl_point raw;
        check(cutl_timeline_point(get(), value, &raw));
        return Point(raw);
    }
    std::uint64_t completed() const {
        std::uint64_t value = 0;
        check(cutl_timeline_completed(get(), &value));
        return value;
    }
    // It can deadlock: see cutl_timeline_wait_ahead.
    void wait_ahead(const Stream &stream, std::uint64_t value) const {
        check(cutl_timeline_wait_ahead(get(), stream.get(), value));
    }
    Bytes descriptor() const {
        return detail::bytes(CUTL_MEMORY_TIMELINE_BYTES, [this](std::uint8_t *to, std::size_t room, std::size_t *length) {
            return cutl_timeline_descriptor(get(), to, room, length);
        });
    }
    cutl_exporter exporter() const {
        cutl_exporter state = CUTL_EXPORTER_UNKNOWN;
        check(cutl_timeline_exporter(get(), &state));
        return state;
    }
    void exporter_ended() const { check(cutl_timeline_exporter_ended(get())); }
    // Ends it now, with an error for all who wait. The object is empty afterwards, except after
    // CUTL_ERROR_HANDLE: an imported timeline stays.
    void poison() {
        cutl_result result = cutl_timeline_poison(get());
        if (result != CUTL_ERROR_HANDLE) release();
        check(result);
    }
};

// An event of other code, or one that another process exported.
class Event : public detail::Owned<cutl_event, cutl_event_destroy> {
    explicit Event(cutl_event *handle) noexcept : Owned(handle) {}

public:
    // `flags` are those of cuEventCreate.
    static Event adopt(CUevent_st *event, unsigned flags, CUctx_st *context = nullptr) {
        return Event(detail::made<cutl_event>([=](cutl_event **out) { return cutl_event_adopt(context, event, flags, out); }));
    }
    // The bytes must come from a process that you trust.
    static Event import(const Bytes &bytes, CUctx_st *context = nullptr) {
        return Event(detail::made<cutl_event>([&](cutl_event **out) {
            return cutl_event_import(context, bytes.data(), bytes.size(), out);
        }));
    }

    Bytes descriptor() const {
        return detail::bytes(CUTL_EVENT_BYTES, [this](std::uint8_t *to, std::size_t room, std::size_t *length) {
            return cutl_event_export(get(), to, room, length);
        });
    }
    CUevent_st *raw() const {
        CUevent_st *event = nullptr;
        check(cutl_event_raw(get(), &event));
        return event;
    }
    bool wait(detail::Limit time = forever) const { return check(cutl_event_wait(get(), time.nanoseconds)); }
    void on_done(Callback function) const {
        detail::on_done(std::move(function), [this](cutl_callback call, void *user) {
            return cutl_event_on_done(get(), call, user);
        });
    }
};

} // namespace cuda_timelines

#endif // CUDA_TIMELINES_HPP
