// CUDA C++ programs with one planted error of order each, and their mended twins, as in pytorch.py.
// nvcc -o native native.cu; ./native --list; ./native NAME planted|mended

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t code = (call);                                                                 \
        if (code != cudaSuccess) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(code));                            \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

static const int COUNT = 1 << 20, ROUNDS = 14;
static const size_t SIZE = COUNT * sizeof(float);

__global__ void add_one(float *x, int count) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < count) x[i] += 1;
}

static void compute(float *x, cudaStream_t stream) {
    add_one<<<COUNT / 256, 256, 0, stream>>>(x, COUNT);
    CHECK(cudaGetLastError());
}

static cudaStream_t stream() {
    cudaStream_t made;
    CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
}

static float *device() {
    float *made;
    CHECK(cudaMalloc(&made, SIZE));
    CHECK(cudaMemset(made, 0, SIZE));
    CHECK(cudaDeviceSynchronize());
    return made;
}

static float *pinned() {
    float *made;
    CHECK(cudaMallocHost(&made, SIZE));
    memset(made, 0, SIZE);
    return made;
}

static void wait(cudaStream_t later, cudaStream_t earlier) {
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventRecord(event, earlier));
    CHECK(cudaStreamWaitEvent(later, event, 0));
    CHECK(cudaEventDestroy(event));
}

static volatile float sink;

static void native_upload(bool right) {
    cudaStream_t side = stream(), work = stream();
    float *x = device(), *source = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        wait(side, work);
        CHECK(cudaMemcpyAsync(x, source, SIZE, cudaMemcpyHostToDevice, side));
        if (right) wait(work, side);
        compute(x, work);
    }
}

static void native_memset(bool right) {
    cudaStream_t side = stream(), work = stream();
    float *x = device();
    for (int i = 0; i < ROUNDS; i++) {
        if (right) wait(side, work);
        CHECK(cudaMemsetAsync(x, 0, SIZE, side));
        wait(work, side);
        compute(x, work);
    }
}

static void native_wait_the_wrong_way(bool right) {
    cudaStream_t side = stream(), work = stream();
    float *x = device(), *source = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        wait(side, work);
        CHECK(cudaMemcpyAsync(x, source, SIZE, cudaMemcpyHostToDevice, side));
        if (right) wait(work, side);
        else wait(side, work);
        compute(x, work);
    }
}

// The legacy default stream does not order a non-blocking stream.
static void native_non_blocking_and_default(bool right) {
    cudaStream_t side;
    CHECK(cudaStreamCreateWithFlags(&side, right ? cudaStreamDefault : cudaStreamNonBlocking));
    float *x = device(), *source = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(cudaMemcpyAsync(x, source, SIZE, cudaMemcpyHostToDevice, side));
        compute(x, nullptr);
    }
}

static void native_rows(bool right) {
    cudaStream_t side = stream(), work = stream();
    float *x = device(), *source = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        wait(side, work);
        CHECK(cudaMemcpy2DAsync(x, 4096, source, 4096, 1024, 1024, cudaMemcpyHostToDevice, side));
        if (right) wait(work, side);
        compute(x, work);
    }
}

// A ring of slots. Kernels get its begin, which is in the first slot, and the others are used.
static const int SLOTS = 4, SLOT = COUNT / SLOTS;
static const size_t BYTES = SLOT * sizeof(float);

__global__ void add_one_to_slot(float *ring, int slot, int count) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < count) ring[slot * count + i] += 1;
}

static void compute_slot(float *ring, int slot, cudaStream_t stream) {
    add_one_to_slot<<<SLOT / 256, 256, 0, stream>>>(ring, slot, SLOT);
    CHECK(cudaGetLastError());
}

static cudaEvent_t event() {
    cudaEvent_t made;
    CHECK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
    return made;
}

// The next slot is copied while a kernel works on this one.
static void native_ring_upload(bool right) {
    cudaStream_t side = stream(), work = stream();
    float *ring = device(), *source = pinned();
    cudaEvent_t used[SLOTS] = {event(), event(), event(), event()};
    for (int i = 0; i < ROUNDS; i++) {
        int slot = 1 + i % (SLOTS - 1);
        CHECK(cudaStreamWaitEvent(side, used[slot], 0));
        CHECK(cudaMemcpyAsync(ring + slot * SLOT, source, BYTES, cudaMemcpyHostToDevice, side));
        if (right) wait(work, side);
        compute_slot(ring, slot, work);
        CHECK(cudaEventRecord(used[slot], work));
    }
}

// The kernel comes first, and what it has made of a slot is copied.
static void native_ring_download(bool right) {
    cudaStream_t side = stream(), work = stream();
    float *ring = device(), *result = pinned();
    cudaEvent_t copied[SLOTS] = {event(), event(), event(), event()};
    for (int i = 0; i < ROUNDS; i++) {
        int slot = 1 + i % (SLOTS - 1);
        CHECK(cudaStreamWaitEvent(work, copied[slot], 0));
        compute_slot(ring, slot, work);
        if (right) wait(side, work);
        CHECK(cudaMemcpyAsync(result, ring + slot * SLOT, BYTES, cudaMemcpyDeviceToHost, side));
        CHECK(cudaEventRecord(copied[slot], side));
    }
}

// One kernel gets the ring, and the other one a slot.
static void native_ring_kernels(bool right) {
    cudaStream_t side = stream(), work = stream();
    float *ring = device();
    cudaEvent_t used[SLOTS] = {event(), event(), event(), event()};
    for (int i = 0; i < ROUNDS; i++) {
        int slot = 1 + i % (SLOTS - 1);
        CHECK(cudaStreamWaitEvent(side, used[slot], 0));
        compute_slot(ring, slot, side);
        if (right) wait(work, side);
        add_one<<<SLOT / 256, 256, 0, work>>>(ring + slot * SLOT, SLOT);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(used[slot], work));
    }
}

static void native_free(bool right) {
    cudaStream_t side = stream(), work = stream();
    for (int i = 0; i < ROUNDS; i++) {
        float *x;
        CHECK(cudaMallocAsync(&x, SIZE, side));
        wait(work, side);
        compute(x, work);
        if (right) wait(side, work);
        CHECK(cudaFreeAsync(x, side));
    }
}

static void native_allocated_in_another_stream(bool right) {
    cudaStream_t side = stream(), work = stream();
    for (int i = 0; i < ROUNDS; i++) {
        float *x;
        CHECK(cudaMallocAsync(&x, SIZE, side));
        if (right) wait(work, side);
        compute(x, work);
        wait(side, work);
        CHECK(cudaFreeAsync(x, side));
    }
}

// A graph built node by node lacks an edge.
static void native_built_graph(bool right) {
    float *x = device(), *source = pinned();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t copy, kernel;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, x, source, SIZE,
                                   cudaMemcpyHostToDevice));
    int count = COUNT;
    void *arguments[] = {&x, &count};
    cudaKernelNodeParams params = {};
    params.func = (void *)add_one;
    params.gridDim = dim3(COUNT / 256);
    params.blockDim = dim3(256);
    params.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &copy, right ? 1 : 0, &params));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    cudaStream_t work = stream();
    for (int i = 0; i < ROUNDS; i++) CHECK(cudaGraphLaunch(exec, work));
}

static void native_refill(bool right) {
    cudaStream_t work = stream();
    float *x = device(), *source = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(cudaMemcpyAsync(x, source, SIZE, cudaMemcpyHostToDevice, work));
        if (right) CHECK(cudaStreamSynchronize(work));
        source[i * 1000] = (float)i;
    }
}

static void native_read(bool right) {
    cudaStream_t work = stream();
    float *x = device(), *result = pinned();
    for (int i = 0; i < ROUNDS; i++) {
        compute(x, work);
        CHECK(cudaMemcpyAsync(result, x, SIZE, cudaMemcpyDeviceToHost, work));
        if (right) CHECK(cudaStreamSynchronize(work));
        sink = result[i * 1000];
    }
}

// The host waits for a flag that the stream writes, and sets it back.
static void native_flag(bool right) {
    typedef int (*WriteValue)(cudaStream_t, unsigned long long, unsigned, unsigned);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    auto write_value = (WriteValue)dlsym(driver, "cuStreamWriteValue32_v2");
    cudaStream_t work = stream();
    float *x = device(), *result = pinned();
    auto flag = (volatile unsigned *)pinned();
    for (int i = 0; i < ROUNDS; i++) {
        compute(x, work);
        CHECK(cudaMemcpyAsync(result, x, SIZE, cudaMemcpyDeviceToHost, work));
        if (right) {
            if (write_value(work, (unsigned long long)flag, 1, 0)) exit(2);
            while (!*flag) {}
            *flag = 0;
        }
        sink = result[i * 1000];
    }
}

// Memory is unmapped while a stream may use it: that call waits for nothing.
static void native_unmap(bool right) {
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
#define DRIVER(name) auto name = (decltype(&::name))dlsym(driver, #name)
    DRIVER(cuMemAddressReserve);
    DRIVER(cuMemCreate);
    DRIVER(cuMemMap);
    DRIVER(cuMemSetAccess);
    DRIVER(cuMemUnmap);
    cudaStream_t work = stream();
    float *x = device();
    CUmemAllocationProp memory = {};
    memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemAccessDesc access = {memory.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    if (cuMemCreate(&handle, SIZE, &memory, 0) || cuMemAddressReserve(&at, SIZE, 0, 0, 0)) exit(2);
    for (int i = 0; i < ROUNDS; i++) {
        if (cuMemMap(at, SIZE, 0, handle, 0) || cuMemSetAccess(at, SIZE, &access, 1)) exit(2);
        CHECK(cudaMemcpyAsync((void *)at, x, SIZE, cudaMemcpyDeviceToDevice, work));
        if (right) CHECK(cudaStreamSynchronize(work));
        // The copy is most likely done, but nothing says so.
        usleep(2000);
        if (cuMemUnmap(at, SIZE)) exit(2);
    }
}

__global__ void spin(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) {}
}

// An event that another thread waits for is destroyed.
static void native_destroyed_event(bool right) {
    cudaStream_t work = stream();
    cudaEvent_t event;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming));
    spin<<<1, 1, 0, work>>>(400000000);
    CHECK(cudaEventRecord(event, work));
    std::atomic<long> waiting(0);
    std::thread waits([&] {
        waiting = syscall(SYS_gettid);
        cudaEventSynchronize(event);
    });
    char path[64], text[256] = "";
    while (!strstr(text, ") S ")) {
        snprintf(path, sizeof path, "/proc/self/task/%ld/stat", waiting.load());
        FILE *file = fopen(path, "r");
        if (file && !fgets(text, sizeof text, file)) text[0] = 0;
        if (file) fclose(file);
    }
    if (right) waits.join();
    CHECK(cudaEventDestroy(event));
    // The driver crashes when the thread wakes up (an H200, driver 580.159.04).
    if (!right) _exit(0);
}

static const struct {
    const char *name, *kind;
    void (*run)(bool);
} PROGRAMS[] = {
    {"native_upload", "copy", native_upload},
    {"native_memset", "copy", native_memset},
    {"native_wait_the_wrong_way", "copy", native_wait_the_wrong_way},
    {"native_non_blocking_and_default", "copy", native_non_blocking_and_default},
    {"native_rows", "copy", native_rows},
    {"native_ring_upload", "copy", native_ring_upload},
    {"native_ring_download", "reads", native_ring_download},
    {"native_ring_kernels", "kernels", native_ring_kernels},
    {"native_free", "free", native_free},
    {"native_allocated_in_another_stream", "free", native_allocated_in_another_stream},
    {"native_unmap", "free", native_unmap},
    {"native_built_graph", "copy", native_built_graph},
    {"native_refill", "host", native_refill},
    {"native_read", "host", native_read},
    {"native_flag", "host", native_flag},
    {"native_destroyed_event", "objects", native_destroyed_event},
};

int main(int count, char **words) {
    for (auto &program : PROGRAMS) {
        if (count == 2 && !strcmp(words[1], "--list")) printf("%s %s\n", program.name, program.kind);
        if (count == 3 && !strcmp(words[1], program.name)) {
            program.run(!strcmp(words[2], "mended"));
            CHECK(cudaDeviceSynchronize());
        }
    }
}
