"""PyTorch, Inductor: compiled code reads what a copy to the host may not have brought yet."""

import os
import tempfile

os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"

import bug

torch = bug.torch
import torch._inductor.ir as ir

if bug.MENDED:
    codegen = ir.DeviceCopy.codegen

    def waiting(self, wrapper):
        codegen(self, wrapper)
        if self.get_device().type == "cpu":
            wrapper.writeline("torch.cuda.current_stream().synchronize()")

    ir.DeviceCopy.codegen = waiting


@torch.compile
def total(x):
    return (x.sum() * 2).to("cpu", non_blocking=True).item()


ROUNDS, N = 20, 1 << 22
x = torch.zeros(N, device="cuda")
try:
    total(x)
except Exception as error:
    bug.cannot(f"torch.compile: {str(error).splitlines()[0]}")
bug.busy(1)
bug.start()
wrong = 0
for i in range(1, ROUNDS + 1):
    x.fill_(i % 4)
    bug.settle()
    bug.busy(1)
    bug.late(5)
    wrong += total(x) != 2 * N * (i % 4)
bug.end(wrong, ROUNDS)
