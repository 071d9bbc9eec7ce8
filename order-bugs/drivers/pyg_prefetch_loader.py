"""torch_geometric: PrefetchLoader frees a batch while the consumer's kernels read it."""

import bug

torch = bug.torch
try:
    from torch_geometric.loader import PrefetchLoader
except ImportError as error:
    bug.cannot(f"torch_geometric: {error}")

bug.mend(
    PrefetchLoader,
    "__iter__",
    "        with self.device_helper.stream_context():\n",
    "        self.device_helper.stream.wait_stream(torch.cuda.current_stream())\n"
    "        with self.device_helper.stream_context():\n",
)
BATCHES = 24
batches = [torch.full((1 << 20,), float(i)) for i in range(BATCHES)]
bug.busy(1)
batches[0].cuda().sum()
bug.start()
sums = []
for batch in PrefetchLoader(batches, device=torch.device("cuda")):
    bug.busy(2)
    bug.late(10)
    sums.append(batch.sum())
bug.settle()
wrong = sum(float(value) != i * (1 << 20) for i, value in enumerate(sums))
bug.end(wrong, BATCHES)
