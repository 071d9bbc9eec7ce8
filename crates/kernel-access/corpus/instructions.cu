// Kernels whose instructions are compared with NVIDIA's disassembler, and nothing else: textures,
// surfaces, products of matrices, and atomic operations on several numbers.
extern "C" __global__ void tex_linear(float* out, cudaTextureObject_t t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float>(t, i);
}
extern "C" __global__ void tex_four(float4* out, cudaTextureObject_t t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float4>(t, i);
}
extern "C" __global__ void tex_plane2(float2* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w) out[y * w + x] = tex2D<float2>(t, x, y);
}
extern "C" __global__ void tex_cube(float4* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w) out[y * w + x] = texCubemap<float4>(t, x, y, 1.f);
}
extern "C" __global__ void tex_layer(float* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w) out[y * w + x] = tex2DLayered<float>(t, x, y, 3);
}
extern "C" __global__ void tex_grad(float4* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w) out[y * w + x] = tex2DGrad<float4>(t, x, y, make_float2(1.f, x), make_float2(2.f, y));
}
extern "C" __global__ void tex_gather(float4* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w) out[y * w + x] = tex2Dgather<float4>(t, x, y, 1);
}
extern "C" __global__ void tex_many(float* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float s = 0;
    for (int i = -8; i <= 8; i++) s += tex2D<float>(t, x + i, y) * i;
    out[y * w + x] = s;
}
extern "C" __global__ void tex_three(float3* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = tex2D<float4>(t, x, 1);
    out[x] = make_float3(a.x, a.y, a.z);
}
extern "C" __global__ void tex_odd(float2* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = tex2D<float4>(t, x, 1);
    out[x] = make_float2(a.y, a.w);
}
extern "C" __global__ void tex_half(unsigned short* out, cudaTextureObject_t t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    out[x] = tex2D<unsigned short>(t, x, 1);
}
extern "C" __global__ void tex_size(int* out, cudaTextureObject_t t) {
    int w, h;
    asm("txq.width.b32 %0, [%1];" : "=r"(w) : "l"(t));
    asm("txq.height.b32 %0, [%1];" : "=r"(h) : "l"(t));
    out[threadIdx.x] = w * h;
}
extern "C" __global__ void tex_table(float4* out, const cudaTextureObject_t* t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = tex2D<float4>(t[x & 3], x, 1);
    float b = tex1Dfetch<float>(t[x & 7], x);
    a.x += b;
    out[x] = a;
}
extern "C" __global__ void tex_table2(float4* out, const cudaTextureObject_t* t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = tex2Dgather<float4>(t[x & 3], x, 1, 1);
    float4 b = tex2DGrad<float4>(t[x & 7], x, 2, make_float2(1.f, x), make_float2(2.f, x));
    a.x += b.x * b.y + b.z * b.w;
    int v;
    asm("txq.width.b32 %0, [%1];" : "=r"(v) : "l"(t[x & 1]));
    a.y += v;
    out[x] = a;
}
extern "C" __global__ void surf_copy(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float4 v;
    surf2Dread(&v, from, x * 16, y);
    surf2Dwrite(v, to, x * 16, y);
}
extern "C" __global__ void surf_byte(cudaSurfaceObject_t from, unsigned char* to, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    to[x] = surf2Dread<unsigned char>(from, x, y, cudaBoundaryModeClamp);
}
extern "C" __global__ void surf_table(float* out, const cudaSurfaceObject_t* t, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    float v;
    surf2Dread(&v, t[x & 3], x * 4, 1);
    out[x] = v;
    surf2Dwrite(v + 1, t[x & 1], x * 4, 2);
}
extern "C" __global__ void imma8(int* d, int a, int b, int c) {
    int x = threadIdx.x, y = x + 1;
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(x), "+r"(y) : "r"(a), "r"(b));
    d[threadIdx.x] = x + y;
}
extern "C" __global__ void bmma(int* d, int a, int b) {
    int x = threadIdx.x, y = x + 1;
    asm volatile("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%0,%1}, {%2}, {%3}, {%0,%1};" : "+r"(x), "+r"(y) : "r"(a), "r"(b));
    d[threadIdx.x] = x + y;
}
extern "C" __global__ void dmma(double *d, double a, double b) {
    double x = threadIdx.x, y = x + 1;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(x), "+d"(y) : "d"(a), "d"(b));
    d[threadIdx.x] = x + y;
}
extern "C" __global__ void atomic_results(double *p, float *q, unsigned long long *t) {
    int i = threadIdx.x;
    p[i + 64] = atomicAdd(p + i, 1.0);
    q[i + 64] = atomicAdd(q + i, 1.f);
    t[i + 64] = atomicMax(t + i, 5ull);
    atomicAdd(p + i + 128, 1.0);
    atomicAdd(q + i + 128, 1.f);
    atomicMin((long long *)t + i + 128, -5ll);
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
extern "C" __global__ void atomic_floats(float2 *p, float4 *q) {
    int i = threadIdx.x;
    p[i + 64] = atomicAdd(p + i, make_float2(1, 2));
    q[i + 64] = atomicAdd(q + i, make_float4(1, 2, 3, 4));
    atomicAdd(p + i + 128, make_float2(1, 2));
    atomicAdd(q + i + 128, make_float4(1, 2, 3, 4));
}
extern "C" __global__ void reduced_halves(unsigned *p) {
    unsigned a = p[64], b = p[65], c = p[66], d = p[67];
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(p), "r"(a));
    asm volatile("red.global.v2.f16x2.add.noftz [%0], {%1, %2};" :: "l"(p), "r"(a), "r"(b));
    asm volatile("red.global.v4.f16x2.add.noftz [%0], {%1, %2, %3, %4};" :: "l"(p), "r"(a), "r"(b), "r"(c), "r"(d));
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" :: "l"(p), "r"(a));
    asm volatile("red.global.v2.bf16x2.add.noftz [%0], {%1, %2};" :: "l"(p), "r"(a), "r"(b));
    asm volatile("red.global.v4.bf16x2.add.noftz [%0], {%1, %2, %3, %4};" :: "l"(p), "r"(a), "r"(b), "r"(c), "r"(d));
}
#endif
#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
struct alignas(64) TensorMap { char bytes[128]; };
extern "C" __global__ void tensor_map(const __grid_constant__ TensorMap map, int x, int y) {
    __shared__ alignas(128) char box[4096];
    __shared__ alignas(8) long long barrier;
    unsigned to = __cvta_generic_to_shared(box), at = __cvta_generic_to_shared(&barrier);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(x), "r"(y), "r"(at) : "memory");
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %2}], [%4], {%5};"
                 :: "r"(to), "l"(&map), "r"(x), "r"(y), "r"(at), "h"((short)x) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];"
                 :: "r"(to), "l"(&map), "r"(x), "r"(y) : "memory");
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%1, {%2, %3}], [%0];"
                 :: "r"(to), "l"(&map), "r"(x), "r"(y) : "memory");
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" :: "l"(&map), "r"(x), "r"(y));
}
extern "C" __global__ void bulk_copies(const int *in, int *out, int *sum, unsigned bytes) {
    __shared__ alignas(16) int tile[1024];
    __shared__ alignas(8) unsigned long long barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile), at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(in + 4 * blockIdx.x), "r"(bytes), "r"(at) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to), "l"(in), "r"(bytes), "r"(at), "h"((short)3) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(to + 256), "r"(bytes), "r"(at) : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + 4 * blockIdx.x), "r"(to), "r"(bytes) : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(sum), "r"(to), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in + 64), "r"(bytes) : "memory");
    }
}
#endif
