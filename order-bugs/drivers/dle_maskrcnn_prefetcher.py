"""NVIDIA's DeepLearningExamples, MaskRCNN: the wait for the loader's stream comes before its copy."""

import bug

torch = bug.torch
path = bug.source(
    "NVIDIA+DeepLearningExamples",
    "729963dd47e7c8bd462ad10bfac7a7b0b604e6dd",
    "PyTorch/Segmentation/MaskRCNN/pytorch/maskrcnn_benchmark/engine/trainer.py",
)
LINE = "        if self.done:\n"
Prefetcher = bug.definition(
    path,
    "Prefetcher",
    {"torch": torch},
    LINE,
    "        torch.cuda.current_stream().wait_stream(self.loader_stream)\n"
    "        for one in [self.images, *(self.targets or [])]:\n"
    "            if one is not None:\n"
    "                one.record_stream(torch.cuda.current_stream())\n" + LINE,
)
BATCHES, SIZE = 16, 1 << 22


class Late:
    """Boxes, whose copy can be held back."""

    def __init__(self, boxes):
        self.boxes = boxes

    def to(self, device, non_blocking=False):
        bug.late(5)
        return self.boxes.to(device, non_blocking=non_blocking)


batches = [
    (torch.full((16,), float(i)), [Late(torch.full((SIZE,), float(i)).pin_memory())], i)
    for i in range(1, BATCHES + 1)
]
bug.busy(1)
bug.start()
sums = []
for images, targets in Prefetcher(batches, torch.device("cuda")):
    sums.append(targets[0].sum())
    bug.settle()
wrong = sum(float(value) != (i + 1) * SIZE for i, value in enumerate(sums))
bug.end(wrong, BATCHES)
