// What the C++ header adds to the functions of C: objects, durations and functions.
#include <cuda_timelines.hpp>

#include <future>
#include <limits>
#include <ratio>

#include "../../examples/driver.h"

namespace cutl = cuda_timelines;
namespace chrono = std::chrono;

#define TRUE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) throw std::runtime_error(std::to_string(__LINE__) + ": " #what);              \
    } while (0)

static cutl_result thrown(const std::function<void()> &call) {
    try {
        call();
        return CUTL_OK;
    } catch (const cutl::Error &error) {
        return error.code();
    }
}

// An imported timeline cannot be poisoned. It stays, and its object still owns it.
static void poison(const cutl::Stream &stream) {
    cutl::File file;
    cutl::Timeline timeline(stream, file);
    cutl::Timeline imported = cutl::Timeline::open(file.descriptor(), timeline.descriptor());
    TRUE(thrown([&] { imported.poison(); }) == CUTL_ERROR_HANDLE);
    TRUE(imported);
    cutl_timeline *raw = imported.get();
    std::uint64_t value = 0;
    imported.reset();
    TRUE(cutl_timeline_completed(raw, &value) == CUTL_ERROR_HANDLE);
    timeline.poison();
    TRUE(!timeline);
}

static void durations(const cutl::Point &done) {
    using cutl::detail::Limit;
    using Seconds = chrono::duration<double>;
    using Centuries = chrono::duration<std::int64_t, std::ratio<3155760000>>;
    TRUE(Limit(cutl::forever).nanoseconds == CUTL_FOREVER);
    TRUE(Limit(chrono::seconds::max()).nanoseconds == CUTL_FOREVER);
    TRUE(Limit(chrono::hours::max()).nanoseconds == CUTL_FOREVER);
    TRUE(Limit(Centuries(3)).nanoseconds == CUTL_FOREVER);
    TRUE(Limit(Seconds(1e300)).nanoseconds == CUTL_FOREVER);
    TRUE(Limit(Seconds(std::numeric_limits<double>::infinity())).nanoseconds == CUTL_FOREVER);
    TRUE(Limit(Centuries(2)).nanoseconds == 6311520000u * std::uint64_t(1000000000));
    TRUE(Limit(chrono::milliseconds(3)).nanoseconds == 3000000);
    TRUE(Limit(Seconds(0.5)).nanoseconds == 500000000);
    TRUE(Limit(cutl::Nanoseconds(7)).nanoseconds == 7);
    TRUE(Limit(chrono::seconds(-1)).nanoseconds == 0);
    TRUE(Limit(chrono::hours::min()).nanoseconds == 0);
    TRUE(Limit(Seconds(std::numeric_limits<double>::quiet_NaN())).nanoseconds == 0);
    TRUE(done.wait() && done.wait(chrono::seconds::max()) && done.spin(Seconds(1)));
}

// A function that is empty is refused, and the driver's code is in the error.
static void functions(CUstream raw, const cutl::Stream &stream, const cutl::Point &done) {
    CUevent event;
    CUgraph graph;
    CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    cutl::Event adopted = cutl::Event::adopt(event, CU_EVENT_DISABLE_TIMING);
    TRUE(thrown([&] { done.on_done(nullptr); }) == CUTL_ERROR_ARGUMENT);
    TRUE(thrown([&] { stream.on_done(cutl::Callback()); }) == CUTL_ERROR_ARGUMENT);
    TRUE(thrown([&] { adopted.on_done(nullptr); }) == CUTL_ERROR_ARGUMENT);
    // A captured event cannot be queried, and the query ends the capture.
    CU(cuStreamBeginCapture_v2(raw, 2));
    CU(cuEventRecord(event, raw));
    std::promise<int> code;
    adopted.on_done([&](const cutl::Error *error) { code.set_value(error ? error->driver_code() : 0); });
    TRUE(code.get_future().get() == 907);
    TRUE(cuStreamEndCapture(raw, &graph) == 901);
    CU(cuEventDestroy_v2(event));
}

int main() try {
    CUdevice device;
    CUcontext context;
    CUstream raw;
    CU(cuInit(0));
    CU(cuDeviceGet(&device, 0));
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuStreamCreate(&raw, CU_STREAM_NON_BLOCKING));
    cutl::Stream stream(raw);
    cutl::Timeline timeline(stream);
    cutl::Point done = timeline.signal();
    poison(stream);
    durations(done);
    functions(raw, stream, done);
    std::puts("the header is right");
    return 0;
} catch (const std::exception &error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
}
