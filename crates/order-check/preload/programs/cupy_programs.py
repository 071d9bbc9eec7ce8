"""CuPy programs with one planted error of order each, and their mended twins, as in pytorch.py."""

import cupy
import numpy

from planting import planted, run

N = 1 << 20
ROUNDS = 14


def pinned(count=N):
    memory = cupy.cuda.alloc_pinned_memory(count * 4)
    array = numpy.frombuffer(memory, numpy.float32, count)
    array[:] = 1
    return array


def streams(count=2):
    return [cupy.cuda.Stream(non_blocking=True) for _ in range(count)]


def settle():
    cupy.cuda.Device().synchronize()


double = cupy.RawKernel(
    r"""
    extern "C" __global__ void double_all(float *x, int count) {
        int i = blockDim.x * blockIdx.x + threadIdx.x;
        if (i < count) x[i] *= 2;
    }
    """,
    "double_all",
)


def compute(x, stream):
    with stream:
        double((x.size // 256,), (256,), (x, numpy.int32(x.size)))


@planted("copy")
def cupy_set_without_a_wait(right):
    (side, main), source, x = streams(), pinned(), cupy.zeros(N, cupy.float32)
    settle()
    for _ in range(ROUNDS):
        side.wait_event(main.record())
        x.set(source, stream=side)
        if right:
            main.wait_event(side.record())
        compute(x, main)


@planted("copy")
def cupy_memset_without_a_wait(right):
    (side, main), x = streams(), cupy.zeros(N, cupy.float32)
    settle()
    for _ in range(ROUNDS):
        if right:
            side.wait_event(main.record())
        x.data.memset_async(0, x.nbytes, side)
        main.wait_event(side.record())
        compute(x, main)


@planted("copy")
def cupy_copy_on_the_device(right):
    (side, main), x = streams(), cupy.zeros(N, cupy.float32)
    y = cupy.ones(N, cupy.float32)
    settle()
    for _ in range(ROUNDS):
        side.wait_event(main.record())
        x.data.copy_from_device_async(y.data, y.nbytes, side)
        if right:
            main.wait_event(side.record())
        compute(x, main)


@planted("copy")
def cupy_event_of_the_wrong_stream(right):
    (side, main), source, x = streams(), pinned(), cupy.zeros(N, cupy.float32)
    settle()
    for _ in range(ROUNDS):
        side.wait_event(main.record())
        x.set(source, stream=side)
        main.wait_event((side if right else main).record())
        compute(x, main)


@planted("free")
def cupy_pool_of_another_stream(right):
    (side, main) = streams()
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    for _ in range(ROUNDS):
        with main:
            x = cupy.empty(N, cupy.float32)
        side.wait_event(main.record())
        compute(x, side)
        if right:
            main.wait_event(side.record())
        with main:
            del x
    cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)


@planted("host")
def cupy_result_read_too_early(right):
    (main,), result, x = streams(1), pinned(), cupy.zeros(N, cupy.float32)
    settle()
    for _ in range(ROUNDS):
        compute(x, main)
        x.get(stream=main, out=result, blocking=False)
        if right:
            main.synchronize()
        result.sum()


@planted("host")
def cupy_source_refilled(right):
    (main,), source, x = streams(1), pinned(1 << 22), cupy.zeros(1 << 22, cupy.float32)
    settle()
    for i in range(ROUNDS):
        x.set(source, stream=main)
        if right:
            main.synchronize()
        source[:] = i


if __name__ == "__main__":
    run(settle)
