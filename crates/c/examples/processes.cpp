// Two processes, in C++: a producer shares a timeline by a file descriptor and 20 bytes, and is
// killed; the consumer's wait ends with an error, and its stream is released.
//
//     processes                both
//     processes producer FD    the producer, over the Unix socket FD: a file descriptor, the bytes
//                              of the descriptor, and 8 bytes for the value of each signal
#include <cuda_timelines.hpp>

#include <csignal>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

namespace cutl = cuda_timelines;

namespace {

CUstream new_stream() {
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

// One byte, with a file descriptor beside it.
void exchange(int socket, bool send, int &file) {
    char byte = 'f';
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    iovec part = {&byte, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    if (send) {
        cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &file, sizeof file);
        if (sendmsg(socket, &message, 0) != 1) throw std::runtime_error("the consumer is gone");
        return;
    }
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == nullptr)
        throw std::runtime_error("the producer is gone");
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
}

void write_all(int socket, const void *bytes, std::size_t length) {
    if (write(socket, bytes, length) != static_cast<ssize_t>(length)) throw std::runtime_error("the peer is gone");
}

void read_all(int socket, void *bytes, std::size_t length) {
    if (recv(socket, bytes, length, MSG_WAITALL) != static_cast<ssize_t>(length)) throw std::runtime_error("the peer is gone");
}

void never_ends(void *) { pause(); }

void produce(int socket) {
    CUstream raw = new_stream();
    cutl::Stream stream(raw);
    cutl::File file;
    cutl::Timeline timeline(stream, file);
    int descriptor = static_cast<int>(file.descriptor());
    exchange(socket, true, descriptor);
    cutl::Bytes bytes = timeline.descriptor();
    write_all(socket, bytes.data(), bytes.size());
    // One signal that comes, and one that never does.
    for (int round = 0; round < 2; round++) {
        if (round == 1) CU(cuLaunchHostFunc(raw, never_ends, nullptr));
        std::uint64_t value = timeline.signal().value();
        write_all(socket, &value, sizeof value);
    }
    // Until the consumer is gone, if it does not kill this process. The stream never gets empty.
    char none;
    _exit(recv(socket, &none, 1, 0) == 0 ? 0 : 1);
}

void consume(int socket, pid_t producer) {
    CUstream raw = new_stream();
    cutl::Stream stream(raw);
    int file = -1;
    exchange(socket, false, file);
    cutl::Bytes bytes(CUTL_FILE_TIMELINE_BYTES);
    read_all(socket, bytes.data(), bytes.size());
    cutl::Timeline timeline = cutl::Timeline::open(file, bytes);
    close(file);

    std::uint64_t value = 0;
    read_all(socket, &value, sizeof value);
    cutl::Point comes = timeline.point(value);
    stream.wait(comes);
    comes.wait();
    CU(cuStreamSynchronize(raw));
    std::printf("the first signal came\n");

    read_all(socket, &value, sizeof value);
    cutl::Point never = timeline.point(value);
    stream.wait(never);
    std::printf("after 10 ms: %s\n", never.wait(std::chrono::milliseconds(10)) ? "done" : "pending");
    kill(producer, SIGKILL);
    try {
        never.wait();
        std::printf("done, which is wrong\n");
    } catch (const cutl::Error &error) {
        std::printf("%s: %s\n", cutl_result_name(error.code()), error.what());
    }
    CU(cuStreamSynchronize(raw));
    std::printf("the stream is released\n");
    int status = 0;
    waitpid(producer, &status, 0);
    timeline.reset();
    stream.reset();
    CU(cuStreamDestroy_v2(raw));
}

} // namespace

int main(int argc, char **argv) try {
    if (argc == 3 && std::strcmp(argv[1], "producer") == 0) {
        produce(std::atoi(argv[2]));
        return 0;
    }
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return std::perror("socketpair"), 1;
    // Another program from the start: CUDA does not work in a forked child.
    pid_t producer = fork();
    if (producer == 0) {
        std::string number = std::to_string(sockets[1]);
        execl("/proc/self/exe", argv[0], "producer", number.c_str(), static_cast<char *>(nullptr));
        _exit(127);
    }
    close(sockets[1]);
    consume(sockets[0], producer);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
