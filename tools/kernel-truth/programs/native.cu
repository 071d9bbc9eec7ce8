// Kernels of CUDA C++ and of cub: native PART. nvcc needs --extended-lambda.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cub/cub.cuh>
#include <cuda_pipeline.h>

#define CHECK(call)                                                                  \
    do {                                                                             \
        cudaError_t error = (call);                                                  \
        if (error != cudaSuccess) {                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

template <typename T> T* make(size_t count, int modulus = 251) {
    std::vector<T> host(count);
    for (size_t i = 0; i < count; i++) host[i] = (T)((i * 7919 + 13) % modulus);
    T* device;
    CHECK(cudaMalloc(&device, count * sizeof(T)));
    CHECK(cudaMemcpy(device, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

__global__ void axpy(int n, float a, const float* __restrict__ x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

__global__ void strided(size_t n, const float* x, float* y) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        y[i] = x[i] * 2;
}

__global__ void backwards(int n, const int* x, int* y) {
    for (int i = n - 1 - (blockIdx.x * blockDim.x + threadIdx.x); i >= 0; i -= gridDim.x * blockDim.x) y[i] = x[n - 1 - i];
}

template <int T> __global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float sa[T][T], sb[T][T];
    int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += T) {
        sa[threadIdx.y][threadIdx.x] = row < n && k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0;
        sb[threadIdx.y][threadIdx.x] = column < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < T; i++) sum += sa[threadIdx.y][i] * sb[i][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

__global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(own + x[i], 1u);
    __syncthreads();
    atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
}

// A jump table.
__global__ void switched(int kind, const int* x, int* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    switch (kind + x[i] % 4) {
        case 0: y[i] = x[i] + 1; break;
        case 1: y[i] = x[i] * x[i]; break;
        case 2: y[n - 1 - i] = x[i] / 3; break;
        case 3: y[i] = __popc(x[i]) << 3; break;
        case 4: y[i] = min(x[i], 17) ^ 5; break;
        case 5: y[i] = x[(i + 1) % n]; break;
        default: y[0] = 7;
    }
}

// Addresses from memory, and a list of addresses among the parameters.
__global__ void table(float* const* all, int count, int n) {
    float* own = all[blockIdx.x % count];
    for (int i = threadIdx.x; i < n; i += blockDim.x) own[i] += 1;
}
struct List { float* all[8]; int sizes[8]; };
__global__ void list(List one) {
    float* own = one.all[blockIdx.x];
    for (int i = threadIdx.x; i < one.sizes[blockIdx.x]; i += blockDim.x) own[i] = i;
}

__global__ void gather(const int* index, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[index[i]];
}

__device__ float coefficients[16];
__constant__ float weights[16];
__global__ void variables(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * weights[i & 15] + coefficients[i & 15];
    if (i < 16) coefficients[i] += 1;
}

__device__ __noinline__ void store(float* at, float value) { *at = value; }
__global__ void called(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) store(y + i, x[i] + 1);
}
typedef float (*Function)(float);
__device__ float twice(float x) { return 2 * x; }
__device__ float halved(float x) { return x / 2; }
__device__ Function functions[2] = {twice, halved};
__global__ void pointed(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = functions[i & 1](x[i]);
}

__global__ void staged(const float4* x, float4* y, int n) {
    __shared__ float4 tile[128];
    for (int start = blockIdx.x * 128; start < n; start += gridDim.x * 128) {
        if (start + threadIdx.x < n) __pipeline_memcpy_async(tile + threadIdx.x, x + start + threadIdx.x, 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        if (start + threadIdx.x < n) y[start + threadIdx.x] = tile[(threadIdx.x ^ 1) < n - start ? threadIdx.x ^ 1 : threadIdx.x];
        __syncthreads();
    }
}

__global__ void divided(const short* x, short* y, unsigned rows, unsigned columns, unsigned depth) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns * depth) return;
    unsigned d = i % depth, c = i / depth % columns, r = i / depth / columns;
    y[(d * columns + c) * rows + r] = x[i];
}

// By numbers that the compiler does not know, with a sign.
template <typename N> __global__ void rows(const int* x, int* y, N count, N width, N height) {
    N i = blockIdx.x * (N)blockDim.x + threadIdx.x;
    if (i < count) y[i % width * height + i / width] = x[i];
}

// The compiler unrolls it, by the number of turns.
template <typename N> __global__ void turns(const float* x, float* y, N first, N last) {
    for (N i = first + blockIdx.x * (N)blockDim.x + threadIdx.x; i < last; i += (N)gridDim.x * blockDim.x) y[i] = x[i] + 1;
}

__global__ void last_block(const float* x, float* out, unsigned* count, int n) {
    __shared__ float own[256];
    __shared__ bool last;
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
    own[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) own[threadIdx.x] += own[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = own[0];
        __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float all = 0;
        for (int i = 0; i < gridDim.x; i++) all += out[1 + i];
        out[0] = all;
    }
}

__global__ void recursive_sum(const double* x, double* y, int n, int depth) {
    // A local array that is indexed by data.
    double stack[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < depth; k++) stack[k] = x[(i + k) % n];
    double sum = 0;
    for (int k = 0; k < depth; k++) sum += stack[((int)x[i] + k) % depth];
    y[i] = sum;
}

static void own() {
    const int n = 5000;
    float *x = make<float>(n), *y = make<float>(n);
    for (int count : {1, 777, 5000}) {
        axpy<<<(count + 255) / 256, 256>>>(count, 2, x, y);
        strided<<<3, 128>>>(count, x, y);
        called<<<(count + 255) / 256, 256>>>(x, y, count);
        pointed<<<(count + 255) / 256, 256>>>(x, y, count);
        variables<<<(count + 255) / 256, 256>>>(x, y, count);
        staged<<<3, 128>>>((float4*)x, (float4*)y, count / 4);
    }
    int *a = make<int>(n), *b = make<int>(n);
    for (int kind = 0; kind < 4; kind++) switched<<<20, 256>>>(kind, a, b, n);
    backwards<<<4, 64>>>(n, a, b);
    float *p = make<float>(50 * 50), *q = make<float>(50 * 50), *o = make<float>(50 * 50);
    multiply<16><<<dim3(4, 4), dim3(16, 16)>>>(p, q, o, 50);
    multiply<8><<<dim3(7, 7), dim3(8, 8)>>>(p, q, o, 50);
    histogram<<<4, 256>>>(make<unsigned char>(n), make<unsigned>(256), n);
    List one = {};
    std::vector<float*> all;
    for (int i = 0; i < 8; i++) all.push_back(one.all[i] = make<float>(100 * (i + 1))), one.sizes[i] = 100 * (i + 1) - i;
    float** device;
    CHECK(cudaMalloc(&device, sizeof(float*) * 8));
    CHECK(cudaMemcpy(device, all.data(), sizeof(float*) * 8, cudaMemcpyHostToDevice));
    table<<<8, 32>>>(device, 8, 100);
    list<<<8, 32>>>(one);
    gather<<<20, 256>>>(a, x, y, n);
    short *s = make<short>(7 * 11 * 13), *t = make<short>(7 * 11 * 13);
    divided<<<8, 128>>>(s, t, 7, 11, 13);
    for (int width : {1, 7, 32, 333}) {
        rows<int><<<8, 128>>>(a, b, 999, width, (999 + width - 1) / width);
        rows<long long><<<8, 128>>>(a, b, 999, width, (999 + width - 1) / width);
    }
    for (int first : {0, 3, 500}) {
        turns<int><<<3, 96>>>(x, y, first, n - 1);
        turns<long long><<<3, 96>>>(x, y, first, n - 1);
        turns<long long><<<3, 96>>>(x, y, first, first + 1);
    }
    unsigned* count = make<unsigned>(1, 1);
    CHECK(cudaMemset(count, 0, 4));
    last_block<<<8, 256>>>(x, make<float>(9), count, n);
    double *d = make<double>(300), *e = make<double>(300);
    recursive_sum<<<2, 256>>>(d, e, 300, 9);
    CHECK(cudaDeviceSynchronize());
}

template <typename F> static void with_space(F f) {
    size_t bytes = 0;
    CHECK(f((void*)nullptr, bytes));
    void* space;
    CHECK(cudaMalloc(&space, bytes + 1));
    CHECK(f(space, bytes));
    CHECK(cudaDeviceSynchronize());
}

static void library() {
    for (int n : {10, 5000, 200000}) {
        int *in = make<int>(n), *out = make<int>(n + 1), *values = make<int>(n), *sorted = make<int>(n);
        with_space([&](void* s, size_t& b) { return cub::DeviceReduce::Sum(s, b, in, out, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceReduce::ArgMin(s, b, in, (cub::KeyValuePair<int, int>*)sorted, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceScan::InclusiveSum(s, b, in, out, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceScan::ExclusiveSum(s, b, in, out, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceRadixSort::SortKeys(s, b, in, out, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceRadixSort::SortPairs(s, b, in, out, values, sorted, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceMergeSort::SortKeys(s, b, in, n, [] __host__ __device__(int a, int c) { return a < c; }); });
        int* count = make<int>(1);
        with_space([&](void* s, size_t& b) { return cub::DeviceSelect::If(s, b, in, out, count, n, [] __host__ __device__(int a) { return a & 1; }); });
        with_space([&](void* s, size_t& b) { return cub::DeviceSelect::Unique(s, b, in, out, count, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceRunLengthEncode::Encode(s, b, in, out, sorted, count, n); });
        with_space([&](void* s, size_t& b) { return cub::DeviceHistogram::HistogramEven(s, b, in, out, 9, 0, 251, n); });
        with_space([&](void* s, size_t& b) { return cub::DevicePartition::If(s, b, in, out, count, n, [] __host__ __device__(int a) { return a > 100; }); });
    }
}

int main(int count, char** names) {
    for (int i = 1; i < count; i++) {
        if (!strcmp(names[i], "own")) own();
        if (!strcmp(names[i], "cub")) library();
    }
    return 0;
}
