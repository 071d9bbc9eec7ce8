"""Triton: do_bench_cudagraph runs the function in a new stream that waits for nothing."""

import bug

torch = bug.torch
try:
    from triton import testing
except ImportError as error:
    bug.cannot(f"triton: {error}")

do_bench_cudagraph = bug.mend(
    testing,
    "do_bench_cudagraph",
    "    with torch.cuda.stream(torch.cuda.Stream()):\n",
    "    stream = torch.cuda.Stream()\n"
    "    stream.wait_stream(torch.cuda.current_stream())\n"
    "    with torch.cuda.stream(stream):\n",
)
ROUNDS = 8
x = torch.zeros(1 << 22, device="cuda")
scratch = torch.zeros_like(x)
do_bench_cudagraph(scratch.zero_, rep=1)
bug.busy(1)
bug.start()
wrong = 0
for _ in range(ROUNDS):
    x.fill_(1)
    bug.settle()
    bug.busy(4)
    bug.late()
    kept = x.clone()
    do_bench_cudagraph(x.zero_, rep=1)
    bug.settle()
    wrong += not bool((kept == 1).all())
bug.end(wrong, ROUNDS)
