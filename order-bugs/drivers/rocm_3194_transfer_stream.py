"""The program of ROCm/pytorch 3194: a product reads a weight that another stream uploads."""

import bug

torch = bug.torch
ROUNDS, SIZE = 50, 4096
side = torch.cuda.Stream()
torch.manual_seed(0)
host = [torch.randn(SIZE, SIZE).pin_memory() for _ in range(2)]
x = torch.randn(8, SIZE, device="cuda")
weight = torch.empty(SIZE, SIZE, device="cuda")
expected = [x @ one.cuda() for one in host]
bug.start()
wrong = 0
for i in range(ROUNDS):
    if bug.MENDED:
        side.wait_stream(bug.current())
    with torch.cuda.stream(side):
        bug.late(2)
        weight.copy_(host[i % 2], non_blocking=True)
    if bug.MENDED:
        bug.current().wait_stream(side)
    result = x @ weight
    bug.settle()
    wrong += not torch.equal(result, expected[i % 2])
bug.end(wrong, ROUNDS)
