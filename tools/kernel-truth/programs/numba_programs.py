"""Two kernels of numba, which hands its own code to the driver."""

import numpy as np
from numba import cuda


@cuda.jit
def axpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


@cuda.jit
def total(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i])


x, y = cuda.to_device(np.arange(1000, dtype=np.float32)), cuda.to_device(np.ones(1000, dtype=np.float32))
out = cuda.to_device(np.zeros(1, dtype=np.float32))
axpy[8, 128](np.float32(2), x, y)
total[8, 128](x, out)
cuda.synchronize()
