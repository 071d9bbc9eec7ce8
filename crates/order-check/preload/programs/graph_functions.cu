// Host functions of graphs that are cloned, updated, nested and destroyed, under the checker and
// without it: each must run as often as there are rounds, and the memory must not grow.
// nvcc -o graph_functions graph_functions.cu; cuda-order-check run -- ./graph_functions 20000

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <thread>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t code = (call);                                                                 \
        if (code != cudaSuccess) {                                                                 \
            fprintf(stderr, "%d: %s: %s\n", __LINE__, #call, cudaGetErrorName(code));              \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

static std::atomic<long> runs[4];

static void count(void *run) { ++*(std::atomic<long> *)run; }

static long resident() {
    long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &resident) != 2) exit(2);
    fclose(file);
    return resident * 4;
}

static cudaGraph_t captured(cudaStream_t stream, float *x, int which) {
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMemsetAsync(x, 0, 4096, stream));
    CHECK(cudaLaunchHostFunc(stream, count, &runs[which]));
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

static void round(cudaStream_t stream, float *x) {
    cudaGraph_t first = captured(stream, x, 0), second = captured(stream, x, 1), clone;
    cudaGraphExec_t exec;
    CHECK(cudaGraphClone(&clone, first));
    CHECK(cudaGraphInstantiate(&exec, first, 0));
    CHECK(cudaGraphDestroy(first));
    CHECK(cudaGraphLaunch(exec, stream));
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, second, &info));
    CHECK(cudaGraphDestroy(second));
    CHECK(cudaGraphLaunch(exec, stream));

    // In a child graph.
    cudaGraph_t parent;
    cudaGraphNode_t node;
    cudaGraphExec_t nested;
    CHECK(cudaGraphCreate(&parent, 0));
    CHECK(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, clone));
    CHECK(cudaGraphDestroy(clone));
    CHECK(cudaGraphInstantiate(&nested, parent, 0));
    CHECK(cudaGraphDestroy(parent));
    CHECK(cudaGraphLaunch(nested, stream));

    // Set in an executable graph, which was made with another one.
    cudaGraph_t built;
    cudaGraphExec_t changed;
    cudaHostNodeParams function = {count, &runs[2]};
    CHECK(cudaGraphCreate(&built, 0));
    CHECK(cudaGraphAddHostNode(&node, built, nullptr, 0, &function));
    CHECK(cudaGraphInstantiate(&changed, built, 0));
    CHECK(cudaGraphLaunch(changed, stream));
    function.userData = &runs[3];
    CHECK(cudaGraphExecHostNodeSetParams(changed, node, &function));
    CHECK(cudaGraphLaunch(changed, stream));
    CHECK(cudaGraphDestroy(built));
    for (auto of : {exec, nested, changed}) CHECK(cudaGraphExecDestroy(of));
}

int main(int, char **words) {
    int rounds = words[1] ? atoi(words[1]) : 1000;
    cudaStream_t stream;
    float *x;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&x, 4096));
    long before = 0;
    for (int i = 0; i < rounds; i++) {
        if (i == rounds / 4) before = resident();
        round(stream, x);
        if (i % 50 == 0) {
            // A per-thread default stream.
            CHECK(cudaStreamSynchronize(stream));
            std::thread([&] {
                CHECK(cudaMemsetAsync(x, 0, 64, cudaStreamPerThread));
                CHECK(cudaStreamSynchronize(cudaStreamPerThread));
            }).join();
        }
    }
    CHECK(cudaDeviceSynchronize());
    long all[] = {runs[0], runs[1], runs[2], runs[3]};
    printf("%d rounds: functions ran %ld %ld %ld %ld times, %ld and then %ld KiB\n", rounds, all[0],
           all[1], all[2], all[3], before, resident());
    // The first one runs in its own graph and as a child.
    return all[0] != 2L * rounds || all[1] != rounds || all[2] != rounds || all[3] != rounds;
}
