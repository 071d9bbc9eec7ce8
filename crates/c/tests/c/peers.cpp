// What processes share by bytes alone, through the C++ header: a timeline in device memory and an
// interprocess event. The exporter is killed while both are pending.
//
//     peers                both
//     peers exporter FD    the exporter, over the socket FD
#include <cuda_timelines.hpp>

#include <csignal>
#include <cstring>
#include <future>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/driver.h"

namespace cutl = cuda_timelines;

#define TRUE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) throw std::runtime_error(std::to_string(__LINE__) + ": " #what);              \
    } while (0)

static CUstream new_stream() {
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CU(cuInit(0));
    CU(cuDeviceGet(&device, 0));
    CU(cuDevicePrimaryCtxRetain(&context, device));
    CU(cuCtxSetCurrent(context));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static void send_bytes(int socket, const void *bytes, std::size_t length) {
    TRUE(write(socket, bytes, length) == static_cast<ssize_t>(length));
}

static void receive(int socket, void *bytes, std::size_t length) {
    TRUE(recv(socket, bytes, length, MSG_WAITALL) == static_cast<ssize_t>(length));
}

static void never_ends(void *) { pause(); }

static void exporter(int socket) {
    const unsigned flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    CUstream raw = new_stream();
    CUevent event;
    CU(cuEventCreate(&event, flags));
    cutl::Stream stream(raw);
    cutl::Memory memory;
    cutl::Timeline timeline(stream, memory);
    cutl::Event exported = cutl::Event::adopt(event, flags);
    TRUE(exported.raw() == event);
    send_bytes(socket, timeline.descriptor().data(), CUTL_MEMORY_TIMELINE_BYTES);
    send_bytes(socket, exported.descriptor().data(), CUTL_EVENT_BYTES);
    char go;
    for (int round = 0; round < 2; round++) {
        // In the second round nothing comes.
        if (round == 1) CU(cuLaunchHostFunc(raw, never_ends, nullptr));
        CU(cuEventRecord(event, raw));
        std::uint64_t value = timeline.signal().value();
        send_bytes(socket, &value, sizeof value);
        if (recv(socket, &go, 1, 0) != 1) _exit(1);
    }
    pause();
}

static cutl_result thrown(const std::function<void()> &call) {
    try {
        call();
        return CUTL_OK;
    } catch (const cutl::Error &error) {
        return error.code();
    }
}

static void importer(int socket, pid_t child) {
    CUstream raw = new_stream();
    cutl::Stream stream(raw);
    cutl::Bytes of_timeline(CUTL_MEMORY_TIMELINE_BYTES), of_event(CUTL_EVENT_BYTES);
    receive(socket, of_timeline.data(), of_timeline.size());
    receive(socket, of_event.data(), of_event.size());
    for (std::size_t at = 0; at < of_timeline.size(); at++) {
        cutl::Bytes damaged = of_timeline;
        damaged[at] ^= 0x10;
        TRUE(thrown([&] { cutl::Timeline::open_memory(damaged); }) == CUTL_ERROR_DESCRIPTOR);
    }
    cutl::Timeline timeline = cutl::Timeline::open_memory(of_timeline);
    cutl::Event event = cutl::Event::import(of_event);
    TRUE(timeline.exporter() == CUTL_EXPORTER_RUNNING);
    TRUE(thrown([&] { event.descriptor(); }) == CUTL_ERROR_ARGUMENT);
    TRUE(thrown([&] { event.on_done([](const cutl::Error *) {}); }) == CUTL_ERROR_HANDLE);

    std::uint64_t value = 0;
    receive(socket, &value, sizeof value);
    cutl::Point comes = timeline.point(value);
    stream.wait(comes);
    TRUE(comes.wait() && comes.is_done() && timeline.completed() >= value);
    TRUE(event.wait());
    CU(cuStreamWaitEvent(raw, event.raw(), 0));
    CU(cuStreamSynchronize(raw));
    send_bytes(socket, "g", 1);

    receive(socket, &value, sizeof value);
    cutl::Point never = timeline.point(value);
    stream.wait(never);
    std::promise<cutl_result> called;
    never.on_done([&](const cutl::Error *error) { called.set_value(error ? error->code() : CUTL_OK); });
    TRUE(!never.query() && !event.wait(std::chrono::milliseconds(1)));
    // It ends as soon as that is reported, which looks for nothing.
    timeline.exporter_ended();
    TRUE(thrown([&] { never.wait(); }) == CUTL_ERROR_EXPORTER_GONE);
    TRUE(timeline.exporter() == CUTL_EXPORTER_ENDED && !event.wait(cutl::Nanoseconds::zero()));
    TRUE(kill(child, SIGKILL) == 0);
    TRUE(thrown([&] { event.wait(); }) == CUTL_ERROR_EXPORTER_GONE);
    TRUE(thrown([&] { never.wait(); }) == CUTL_ERROR_EXPORTER_GONE);
    TRUE(called.get_future().get() == CUTL_ERROR_EXPORTER_GONE);
    CU(cuStreamSynchronize(raw));
    TRUE(timeline.exporter() == CUTL_EXPORTER_ENDED);
    TRUE(thrown([&] { event.wait(cutl::Nanoseconds::zero()); }) == CUTL_ERROR_EXPORTER_GONE);
    int status = 0;
    TRUE(waitpid(child, &status, 0) == child);
    // The objects move, and can be empty.
    cutl::Timeline moved = std::move(timeline);
    TRUE(moved && !timeline);
    TRUE(thrown([&] { timeline.signal(); }) == CUTL_ERROR_HANDLE);
    std::puts("both ends are seen");
}

int main(int argc, char **argv) try {
    if (argc == 3) return exporter(std::atoi(argv[2])), 0;
    int sockets[2];
    TRUE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    pid_t child = fork();
    if (child == 0) {
        std::string number = std::to_string(sockets[1]);
        execl("/proc/self/exe", argv[0], "exporter", number.c_str(), static_cast<char *>(nullptr));
        _exit(127);
    }
    close(sockets[1]);
    importer(sockets[0], child);
    return 0;
} catch (const std::exception &error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
}
