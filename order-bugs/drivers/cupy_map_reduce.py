"""CuPy, examples/stream/map_reduce.py: one generator's state is used in ten streams at once."""

import runpy

import bug

try:
    import cupy
except ImportError as error:
    bug.cannot(f"CuPy: {error}")

COMMIT = "6b6d9563c4f7410cd1866a11b2f71a60dd45a68c"
example = bug.source("cupy+cupy", COMMIT, "examples/stream/map_reduce.py")
normal = cupy.random.RandomState.normal
spin = cupy.RawKernel(
    r"""extern "C" __global__ void spin(long long cycles) {
        long long begin = clock64();
        while (clock64() - begin < cycles) {}
    }""",
    "spin",
)
drawn, last = [], []


def noted(self, *arguments, **rest):
    stream = cupy.cuda.get_current_stream()
    if bug.MENDED and last:
        # The generator's next kernel comes after the last one.
        stream.wait_event(last[-1])
    if bug.DELAY and len(drawn) % 4 == 0:
        spin((1,), (1,), (20_000_000,))
    numbers = normal(self, *arguments, **rest)
    drawn.append(numbers)
    last.append(stream.record())
    return numbers


def sums():
    drawn.clear()
    last.clear()
    runpy.run_path(example)
    cupy.cuda.Device().synchronize()
    return [float(numbers.sum()) for numbers in drawn]


# As it would be in one stream.
state = cupy.random.RandomState(seed=1)
expected = []
for i in range(20):
    expected.append(float(normal(state, size=(1, 1024**2)).sum()))
cupy.random.RandomState.normal = noted
bug.start()
found = sums()
wrong = sum(abs(one - other) > 1e-6 * 1024**2 for one, other in zip(found, expected))
bug.end(wrong, len(expected))
