"""apex, imagenet example: the prefetcher frees a batch while the model's kernels read it."""

import bug

torch = bug.torch
COMMIT = "d5e2bb4bdeedd27b1dfaf5bb2b24d6c000dee9be"
PARENT = "c3bcf18edbb5106313099e9af14db4bd0980751d"
data_prefetcher = bug.definition(
    bug.source("NVIDIA+apex", COMMIT if bug.MENDED else PARENT, "examples/imagenet/main_amp.py"),
    "data_prefetcher",
    {"torch": torch},
)
BATCHES = 16
batches = [
    (
        torch.full((32, 3, 112, 112), i, dtype=torch.uint8).pin_memory(),
        torch.full((32,), i).pin_memory(),
    )
    for i in range(BATCHES)
]
mean = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255])
deviation = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255])
bug.busy(1)
bug.start()
prefetcher = data_prefetcher(batches)
seen = []
for _ in range(BATCHES):
    images, target = prefetcher.next()
    bug.busy(2)
    bug.late(10)
    seen.append((images.mean(), target.sum()))
bug.settle()
wrong = 0
for i, (value, label) in enumerate(seen):
    right = float(((i - mean) / deviation).mean())
    wrong += abs(float(value) - right) > 1e-2 or int(label) != 32 * i
bug.end(wrong, BATCHES)
