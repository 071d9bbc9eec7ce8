/* The program that tools/guard-checker counts the instructions of: `loops OPERATION FEW MANY`. It
 * does an operation FEW times, and then MANY times in the function `counted`. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned code;
typedef unsigned long long address;
typedef void *handle;

/* The functions that it calls, each with its parameters. */
#define FUNCTIONS(_)                                                                             \
    _(cuInit, (unsigned))                                                                        \
    _(cuDevicePrimaryCtxRetain, (handle *, int))                                                 \
    _(cuCtxSetCurrent, (handle))                                                                 \
    _(cuCtxSynchronize, (void))                                                                  \
    _(cuStreamCreate, (handle *, unsigned))                                                      \
    _(cuStreamWaitEvent, (handle, handle, unsigned))                                             \
    _(cuStreamSynchronize, (handle))                                                             \
    _(cuEventCreate, (handle *, unsigned))                                                       \
    _(cuEventDestroy_v2, (handle))                                                               \
    _(cuEventRecord, (handle, handle))                                                           \
    _(cuMemAlloc_v2, (address *, size_t))                                                        \
    _(cuMemHostAlloc, (void **, size_t, unsigned))                                               \
    _(cuMemcpyDtoDAsync_v2, (address, address, size_t, handle))                                  \
    _(cuMemcpyHtoDAsync_v2, (address, const void *, size_t, handle))                             \
    _(cuMemsetD8Async, (address, unsigned char, size_t, handle))                                 \
    _(cuLaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
                       unsigned, handle, void **, void **))                                      \
    _(cuStreamBeginCapture_v2, (handle, unsigned))                                               \
    _(cuStreamEndCapture, (handle, handle *))                                                    \
    _(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long))                       \
    _(cuGraphLaunch, (handle, handle))

#define DECLARE(name, parameters) static code(*name) parameters;
FUNCTIONS(DECLARE)

/* A call that must succeed. */
#define MUST(call)                                                                               \
    do {                                                                                         \
        if ((call) != 0) {                                                                       \
            fprintf(stderr, "loops: %s failed\n", #call);                                        \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

/* As many as the buffers of a step of a training, in eight allocations. */
enum { BUFFERS = 200, ALLOCATIONS = 8, BYTES = 1 << 16 };

static address buffers[BUFFERS];
static char *pinned;
static handle stream, other, event, exec;

static void launch(handle function, unsigned long at) {
    address a = buffers[at % BUFFERS], b = buffers[(at + 7) % BUFFERS],
            c = buffers[(at + 13) % BUFFERS];
    int count = 1000;
    void *parameters[] = {&a, &b, &c, &count};
    MUST(cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
}

/* A structure as frameworks have it: sizes, strides, divisors and some addresses. */
static void do_launch_structure(unsigned long at) {
    static unsigned long long words[64];
    for (unsigned long long word = 0; word < 64; word++)
        words[word] = word % 2 ? word : 0x8000000100000000 + word;
    for (int word = 0; word < 4; word++)
        words[16 * word] = buffers[(at + word) % BUFFERS];
    void *parameters[] = {words};
    MUST(cuLaunchKernel((handle)0x9000, 64, 1, 1, 256, 1, 1, 0, stream, parameters, NULL));
}

static handle kernel(unsigned long at) {
    return (handle)(0x5000 + at % 16 * 64);
}

static void do_launch(unsigned long at) { (void)at; launch(kernel(0), 0); }

/* The same after many events were destroyed, with handles like the stream's. */
static void do_launch_after_events(unsigned long at) {
    static int destroyed;
    for (; destroyed < 100; destroyed++) {
        handle gone;
        MUST(cuEventCreate(&gone, 2));
        MUST(cuEventDestroy_v2(gone));
    }
    do_launch(at);
}
static void do_launch_varied(unsigned long at) { launch(kernel(at), at); }
static void do_memset(unsigned long at) {
    MUST(cuMemsetD8Async(buffers[at % BUFFERS], 0, BYTES, stream));
}
static void do_copy_device(unsigned long at) {
    MUST(cuMemcpyDtoDAsync_v2(buffers[at % BUFFERS], buffers[(at + 7) % BUFFERS], BYTES, stream));
}
/* From 16 buffers in turn, each of which is waited for before it is used again. */
static void do_copy_pinned(unsigned long at) {
    MUST(cuMemcpyHtoDAsync_v2(buffers[at % BUFFERS], pinned + at % 16 * BYTES, BYTES, stream));
    if (at % 16 == 15)
        MUST(cuStreamSynchronize(stream));
}
static void do_record_wait(unsigned long at) {
    (void)at;
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(other, event, 0));
}
static void do_graph(unsigned long at) { (void)at; MUST(cuGraphLaunch(exec, stream)); }
static void do_synchronize(unsigned long at) { (void)at; MUST(cuCtxSynchronize()); }
/* What a step of a training did, in the default stream: 394 launches, 46 copies and memsets, and a
 * wait. */
static void do_step(unsigned long at) {
    (void)at;
    stream = NULL;
    for (unsigned long one = 0; one < 394; one++) {
        if (one % 2)
            do_launch_structure(one);
        else
            do_launch_varied(one);
        if (one % 17 == 0) {
            do_memset(one);
            do_copy_device(one + 1);
        }
    }
    MUST(cuCtxSynchronize());
}
/* Both streams write the same bytes, and nothing orders them. */
static void do_found(unsigned long at) {
    MUST(cuMemsetD8Async(buffers[0], 0, BYTES, at % 2 ? stream : other));
}

static const struct {
    const char *name;
    void (*once)(unsigned long at);
} operations[] = {
    {"launch", do_launch},           {"launch_varied", do_launch_varied},
    {"launch_structure", do_launch_structure},
    {"launch_after_events", do_launch_after_events},
    {"copy_device", do_copy_device}, {"copy_pinned", do_copy_pinned},
    {"memset", do_memset},           {"record_wait", do_record_wait},
    {"graph_of_10", do_graph},       {"synchronize", do_synchronize},
    {"step", do_step},               {"found", do_found},
};

/* What is counted. Nothing of it is inlined. */
__attribute__((noinline)) void counted(void (*once)(unsigned long at), unsigned long many) {
    for (unsigned long at = 0; at < many; at++)
        once(at);
    __asm__ volatile("" ::: "memory");
}

static void begin(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "loops: %s\n", dlerror());
        exit(1);
    }
#define LOOK_UP(name, parameters)                                                                \
    if (!(name = (code(*) parameters)dlsym(library, #name))) {                                   \
        fprintf(stderr, "loops: there is no %s\n", #name);                                       \
        exit(1);                                                                                 \
    }
    FUNCTIONS(LOOK_UP)
    handle context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, 1));
    MUST(cuStreamCreate(&other, 1));
    MUST(cuEventCreate(&event, 2));
    for (int of = 0; of < ALLOCATIONS; of++) {
        address memory;
        MUST(cuMemAlloc_v2(&memory, 20 << 20));
        for (int at = of; at < BUFFERS; at += ALLOCATIONS)
            buffers[at] = memory + (address)(at / ALLOCATIONS) * 2 * BYTES;
    }
    void *memory;
    MUST(cuMemHostAlloc(&memory, 16 * BYTES, 0));
    pinned = memory;
    handle graph;
    MUST(cuStreamBeginCapture_v2(stream, 0));
    for (unsigned long node = 0; node < 10; node++)
        do_launch_varied(node);
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

int main(int count, char **arguments) {
    for (size_t at = 0; count == 4 && at < sizeof operations / sizeof *operations; at++) {
        if (strcmp(operations[at].name, arguments[1]) != 0)
            continue;
        begin();
        unsigned long few = strtoul(arguments[2], NULL, 10);
        for (unsigned long one = 0; one < few; one++)
            operations[at].once(one);
        counted(operations[at].once, strtoul(arguments[3], NULL, 10));
        return 0;
    }
    return 2;
}
