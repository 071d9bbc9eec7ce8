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
batches = [torch.full((1 << 19,), float(i)) for i in range(BATCHES)]
bug.busy(1)
batches[0].cuda().sum()
bug.start()
sums = []
for batch in PrefetchLoader(batches, device=torch.device("cuda")):
    # More than the host needs to pin a batch.
    bug.busy(10)
    bug.late(40)
    sums.append(batch.sum())
bug.settle()
wrong = sum(float(value) != i * (1 << 19) for i, value in enumerate(sums))
bug.end(wrong, BATCHES)
