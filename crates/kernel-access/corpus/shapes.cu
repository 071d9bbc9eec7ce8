// Kernels of the shapes that programs have, from which the tests' machine code is compiled.
// Each function says by its name, and by `const`, what it does with its parameters.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <stdint.h>

extern "C" __global__ void unused_word(const float *never, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
}
extern "C" __global__ void axpy(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void grid_stride(const double *in, double *out, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        out[i] = in[i] * 2.0;
}
extern "C" __global__ void long_stride(const float *in, float *out, long long first, long long last) {
    // The compiler unrolls it, by the number of turns: a quotient.
    for (long long i = first + blockIdx.x * (long long)blockDim.x + threadIdx.x; i < last; i += (long long)gridDim.x * blockDim.x) out[i] = in[i];
}
extern "C" __global__ void clamped(const int *in, int *out, long long last, unsigned long long most) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x, j = i - 3;
    out[last < (long long)most ? -3ll : 5] = 0;
    out[min(max(j, 0ll), last)] = in[min((unsigned long long)i, most)] + in[max((unsigned long long)i, most)];
}
extern "C" __global__ void offset_and_stride(const int *in, int *out, int offset, int stride, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[offset + i * stride] = in[i];
}
extern "C" __global__ void vectors(const float4 *in, float4 *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float4 v = in[i]; v.x += v.y; out[i] = v; }
}
extern "C" __global__ void bytes_and_halves(const unsigned char *in, __half *out, short *also, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = __float2half((float)in[i]); also[i] = (short)-in[i]; }
}
extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
    __shared__ unsigned local[256];
    local[threadIdx.x & 255] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x & 255], local[threadIdx.x & 255]);
}
extern "C" __global__ void sum(const float *in, float *out, int n) {
    __shared__ float part[32];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += in[i];
    for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}
struct Pointers { float *to[8]; const float *from[8]; int n[8]; };
extern "C" __global__ void many_tensors(Pointers p) {
    float *to = p.to[blockIdx.y];
    const float *from = p.from[blockIdx.y];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < p.n[blockIdx.y]; i += gridDim.x * blockDim.x) to[i] += from[i];
}
extern "C" __global__ void gather(const int *index, const float *from, float *to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[index[i]];
}
extern "C" __global__ void transpose(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(size_t)(y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) if (x < rows && y + j < columns) out[(size_t)(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void divided(const float *in, float *out, unsigned magic, unsigned shift, unsigned divisor, long long pitch, int n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (unsigned)n) return;
    unsigned q = (__umulhi(i, magic) + i) >> shift;
    out[i] = in[q * pitch + (i - q * divisor)];
}
extern "C" __global__ void remainders(const float *in, float *out, int width, int height, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[(i % width) * height + i / width] = in[i];
}
extern "C" __global__ void chosen(float *a, float *b, int which, int n) {
    float *p = which ? a : b;
    int i = threadIdx.x;
    if (i < n) p[i] = 0;
}
extern "C" __global__ void switched(int *out, int kind, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    switch (kind) {
    case 0: out[i] = 1; break;
    case 1: out[i + n] = i * i; break;
    case 2: out[i] += 7; break;
    case 3: out[i] = __popc(i); break;
    case 4: out[i] = __clz(i); break;
    case 5: out[i * 2] = i ^ n; break;
    case 6: out[i] = __brev(i); break;
    case 7: out[i] -= out[i + 1]; break;
    default: out[0] = kind;
    }
}
__device__ __noinline__ void store(float *to, float v) { *to = v; }
extern "C" __global__ void called(float *to, int n) {
    if (threadIdx.x < n) store(to + threadIdx.x, 2.0f);
}
extern "C" __global__ void copied_asynchronously(const float4 *in, float4 *out, int n) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) __pipeline_memcpy_async(&tile[threadIdx.x], &in[i], 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (i < n) out[i] = tile[255 - threadIdx.x];
}
extern "C" __global__ void reductions(int *sum, unsigned *most, unsigned long long *wide, float *f, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(sum, in[i]); atomicMax(most, (unsigned)in[i]); atomicAdd(f, 1.0f);
    if (atomicCAS(wide, 0ull, (unsigned long long)i) == 0) atomicExch(sum + 1, i);
}
extern "C" __global__ void pointers_in_memory(float *const *table, int n) {
    float *row = table[blockIdx.x];
    if (threadIdx.x < n) row[threadIdx.x] = 0;
}
__device__ float variable[128];
__constant__ float weights[64];
extern "C" __global__ void module_variables(float *out) { out[threadIdx.x] = variable[threadIdx.x] + weights[threadIdx.x & 63]; variable[threadIdx.x] = 0; }
extern "C" __global__ void local_array(const int *in, int *out, int n) {
    int a[16];
    for (int k = 0; k < 16; k++) a[k] = in[k];
    for (int k = 0; k < n; k++) a[(a[k & 15] + k) & 15] ^= k;
    out[threadIdx.x] = a[threadIdx.x & 15];
}
extern "C" __global__ void half_math(const __half2 *a, const __half2 *b, __half2 *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = __hfma2(a[i], b[i], c[i]);
}
extern "C" __global__ void backwards(const float *in, float *out, int n) {
    int i = n - 1 - (int)(blockIdx.x * blockDim.x + threadIdx.x);
    do { if (i >= 0) out[i] = sqrtf(in[i]) / in[n - 1]; i -= gridDim.x * blockDim.x; } while (i >= 0);
}
extern "C" __global__ void multiply(const float *a, const float *b, float *c, int n) {
    __shared__ float s[16][16], t[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float v = 0;
    for (int k = 0; k < n; k += 16) {
        s[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int j = 0; j < 16; j++) v += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = v;
}
extern "C" __global__ void wide_numbers(const long long *in, long long *out, long long n, unsigned long long step) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < n; i += step) out[i] = in[i] * in[n - i - 1] / (i + 3) + min(in[i], n) - (in[i] >> 3) + (in[i] << (i & 7));
}
struct Row { float *p; int a[30]; };
__device__ __noinline__ float look(const Row *row, int i) { return row->p[row->a[i]]; }
extern "C" __global__ void by_address(const __grid_constant__ Row row, float *out) { out[0] = look(&row, threadIdx.x & 15); }
extern "C" __global__ void sizes(int *out) {
    int block = blockDim.x + 100 * blockDim.y + 10000 * blockDim.z, grid = gridDim.x + 100 * gridDim.y + 10000 * gridDim.z;
    out[block + 1000000ll * grid] = 1;
    out[threadIdx.x + 100 * threadIdx.y + 10000 * threadIdx.z + 1000000ll * (blockIdx.x + 100 * blockIdx.y + 10000 * blockIdx.z)] = 2;
}
extern "C" __global__ void branches(const int *in, int *out, const int *more, int n) {
    int i = threadIdx.x, kept = n, changed = 2 * n;
    if (in[i] & 1) {
        changed = in[i + 32] % 3 ? i : 7;
        for (int k = 0; k < in[i + 64]; k++) changed += out[k] & 3;
        if (changed & 4) out[i + 1000] = changed;
    }
    out[i] = kept;
    out[more[i] & 15] = changed;
    out[32 + (changed & 7)] = 1;
    if (in[0] > n) return;
    out[i + 64] = 3;
    out[64 + (in[1] & 31)] = more[1] > n ? 1 : 2;
}
// Arrays that compilers keep in the memory of a thread, as an index chooses from them.
extern "C" __global__ void chosen_pointer(float *a, float *b, float *c, float *d, int n) {
    float *all[4] = {a, b, c, d};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) all[(blockIdx.x + threadIdx.x / 32) & 3][i] = 1;
}
struct Parts { float *to[6]; int from[6]; int sum; };
extern "C" __global__ void changed_copy(Parts parts, int n) {
    Parts own = parts;
    own.from[n & 1] += 7;
    int which = threadIdx.x % 6;
    own.to[which][own.from[which] + blockIdx.x] = own.sum;
}
