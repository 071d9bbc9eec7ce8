"""Kernels of CuPy, by parts: python cupy_programs.py PART."""

import sys

import cupy as cp

cp.cuda.set_allocator(None)


def elementwise():
    for dtype in (cp.float32, cp.float64, cp.int32):
        a = cp.arange(1000, dtype=dtype)
        b = a * 2 + 1
        a += b
        cp.maximum(a, b), cp.where(a > 5, a, b), a[::3] + 1, a.astype(cp.float16), a % 7, a // 3, cp.clip(a, 2, 9)
        b[10:20] = 3
        cp.sin(a.astype(cp.float32)), a.reshape(10, 100).T + 1, a.reshape(10, 100).T.copy(), a.reshape(10, 100)[:, ::2] * 2
        a[None, :5] + a[:7, None]


def reductions():
    for shape in ((1000,), (33, 70), (300001,)):
        a = cp.arange(cp.prod(cp.array(shape)).item(), dtype=cp.float32).reshape(shape)
        for f in (cp.sum, cp.mean, cp.max, cp.min, cp.argmax, cp.std, cp.prod, cp.any):
            f(a), f(a, axis=0), f(a, axis=-1)
        cp.cumsum(a), cp.cumprod(a, axis=-1), cp.linalg.norm(a)


def sorting():
    for n in (10, 3000, 100000):
        a = cp.random.rand(n)
        cp.sort(a), cp.argsort(a), cp.unique((a * 10).astype(cp.int32)), cp.searchsorted(cp.sort(a), a[:5]), cp.partition(a, 3)
    cp.sort(cp.random.rand(20, 30), axis=0), cp.lexsort(cp.random.rand(2, 30))


def indexing():
    a = cp.arange(3000, dtype=cp.float32).reshape(100, 30)
    index = cp.array([3, 1, 99, 5])
    a[index], cp.take(a, index, axis=1), a[a > 100], cp.nonzero(a)
    a[index] = 1
    cp.add.at(a, index, 1)
    cp.concatenate([a, a]), cp.stack([a, a]), cp.bincount(index), cp.histogram(a, 10), cp.roll(a, 3), cp.tile(a, 2)
    cp.random.randint(0, 9, 100), cp.random.normal(size=100), cp.random.permutation(50), cp.tril(a), cp.diag(a[:30])
    cp.dot(a, a.T), a.T @ a, cp.einsum("ij,kj->ik", a, a), cp.tensordot(a, a.T, 1)


def raw():
    source = r"""
    extern "C" __global__ void axpy(const float* x, float* y, float a, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = a * x[i] + y[i];
    }
    extern "C" __global__ void strided(const int* x, int* y, int n) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[n - 1 - i];
    }
    extern "C" __global__ void tile(const float* x, float* y, int w, int h) {
        __shared__ float t[16][17];
        int cx = blockIdx.x * 16 + threadIdx.x, cy = blockIdx.y * 16 + threadIdx.y;
        if (cx < w && cy < h) t[threadIdx.y][threadIdx.x] = x[cy * w + cx];
        __syncthreads();
        cx = blockIdx.y * 16 + threadIdx.x; cy = blockIdx.x * 16 + threadIdx.y;
        if (cx < h && cy < w) y[cy * h + cx] = t[threadIdx.x][threadIdx.y];
    }
    extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, long long n) {
        for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
            atomicAdd(bins + x[i], 1u);
    }
    struct Item { double value; short tag; char name[6]; };
    extern "C" __global__ void structures(const Item* in, Item* out, int n) {
        int i = threadIdx.x + blockDim.x * blockIdx.x;
        if (i < n) { Item one = in[i]; if (one.tag & 1) one.value = -one.value; out[n - 1 - i] = one; }
    }
    """
    m = cp.RawModule(code=source)
    x, y = cp.arange(1000, dtype=cp.float32), cp.ones(1000, dtype=cp.float32)
    for n in (1000, 777, 1):
        m.get_function("axpy")((4,), (256,), (x, y, cp.float32(2), cp.int32(n)))
        m.get_function("strided")((3,), (64,), (x.view(cp.int32), y.view(cp.int32), cp.int32(n)))
    a, b = cp.arange(33 * 50, dtype=cp.float32), cp.zeros(33 * 50, dtype=cp.float32)
    m.get_function("tile")((4, 3), (16, 16), (a, b, cp.int32(50), cp.int32(33)))
    c, bins = cp.arange(5000, dtype=cp.uint8), cp.zeros(256, dtype=cp.uint32)
    m.get_function("histogram")((4,), (128,), (c, bins, cp.int64(5000)))
    s, t = cp.arange(160, dtype=cp.uint8), cp.zeros(160, dtype=cp.uint8)
    m.get_function("structures")((1,), (32,), (s, t, cp.int32(10)))
    square = cp.ElementwiseKernel("T x", "T y", "y = x * x", "square_it")
    square(x), square(x.astype(cp.int64))
    cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm_it")(x)


for part in (elementwise, reductions, sorting, indexing, raw):
    if part.__name__ in sys.argv[1:]:
        part()
        cp.cuda.Device().synchronize()
