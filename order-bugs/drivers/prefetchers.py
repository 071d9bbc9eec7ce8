"""Loaders that prefetch in a stream of their own, and free a batch while the model still reads it.

--case timm, convnets, efficientdet, basicsr, insightface, fastreid: packages with the same error.
"""

import contextlib
import functools
import typing

import bug

torch = bug.torch
CASE = bug.CASE or "timm"
BATCHES = 16
MEAN = torch.tensor([0.485 * 255, 0.456 * 255, 0.406 * 255])
DEVIATION = torch.tensor([0.229 * 255, 0.224 * 255, 0.225 * 255])
EXAMPLES = ("NVIDIA+DeepLearningExamples", "729963dd47e7c8bd462ad10bfac7a7b0b604e6dd")
STREAM = "            with torch.cuda.stream(stream):\n"
WAIT = "            stream.wait_stream(torch.cuda.current_stream())\n"


def images(i):
    return torch.full((32, 3, 112, 112), i, dtype=torch.uint8).pin_memory()


def labels(i):
    return torch.full((32,), i).pin_memory()


batches = [(images(i), labels(i)) for i in range(BATCHES)]
normal = [float(((i - MEAN) / DEVIATION).mean()) for i in range(BATCHES)]


def timm():
    version = "1.0.30" if bug.MENDED else "1.0.29"
    scope = {
        **vars(typing),
        "torch": torch,
        "partial": functools.partial,
        "suppress": contextlib.suppress,
        "IMAGENET_DEFAULT_MEAN": (0.485, 0.456, 0.406),
        "IMAGENET_DEFAULT_STD": (0.229, 0.224, 0.225),
        "RandomErasing": None,
        "adapt_to_chs": lambda values, channels: values,
    }
    path = bug.source("unpacked", f"timm-{version}", "timm/data/loader.py")
    loader = bug.definition(path, "PrefetchLoader", scope)
    return loader(batches, device=torch.device("cuda"))


def convnets():
    path = "PyTorch/Classification/ConvNets/image_classification/dataloaders.py"
    wrapper = bug.definition(
        bug.source(*EXAMPLES, path), "PrefetchedWrapper", {"torch": torch}, STREAM, WAIT + STREAM
    )
    return wrapper.prefetched_loader(batches, 1000, False)


def efficientdet():
    path = "PyTorch/Detection/Efficientdet/data/loader.py"
    scope = {
        "torch": torch,
        "IMAGENET_DEFAULT_MEAN": (0.485, 0.456, 0.406),
        "IMAGENET_DEFAULT_STD": (0.229, 0.224, 0.225),
    }
    loader = bug.definition(
        bug.source(*EXAMPLES, path), "PrefetchLoader", scope, STREAM, WAIT + STREAM
    )
    dictionaries = [(one, {"label": other}) for one, other in batches]
    return ((one, other["label"]) for one, other in loader(dictionaries))


def with_next(name, path, scope):
    line = "        with torch.cuda.stream(self.stream):\n"
    wait = "        self.stream.wait_stream(torch.cuda.current_stream())\n"
    return bug.definition(bug.source(*path), name, {"torch": torch, **scope}, line, wait + line)


def floats(i):
    return torch.full((1 << 20,), normal[i]).pin_memory()


class Loader:
    """Hands out new lists and dictionaries, as a DataLoader does."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return (type(batch)(batch) for batch in self.batches)


def basicsr():
    path = (
        "XPixelGroup+BasicSR",
        "8d56e3a045f9fb3e1d8872f92ee4a4f07f886b0a",
        "basicsr/data/prefetch_dataloader.py",
    )
    prefetcher = with_next("CUDAPrefetcher", path, {})
    pictures = [{"lq": floats(i), "gt": labels(i)} for i in range(BATCHES)]
    batch = prefetcher(Loader(pictures), {"num_gpu": 1})

    def each():
        one = batch.next()
        while one is not None:
            yield one["lq"], one["gt"]
            one = batch.next()

    return each()


def of_threads(path, batches):
    scope = {"DataLoader": Loader, "BackgroundGenerator": lambda batches, rank: batches}
    return with_next("DataLoaderX", path, scope)(0, batches=batches)


def insightface():
    path = (
        "deepinsight+insightface",
        "7fadd420c2351d0ffa8cac403421c1a3ed733365",
        "recognition/arcface_torch/dataset.py",
    )
    return of_threads(path, [[floats(i), labels(i)] for i in range(BATCHES)])


def fastreid():
    path = (
        "JDAI-CV+fast-reid",
        "c9bc3ceb2f7a6438b62fb515ea3df6d1e999e95d",
        "fastreid/data/data_utils.py",
    )
    loader = of_threads(path, [{"x": floats(i), "y": labels(i)} for i in range(BATCHES)])
    return ((one["x"], one["y"]) for one in loader)


CASES = {f.__name__: f for f in (timm, convnets, efficientdet, basicsr, insightface, fastreid)}
bug.busy(1)
bug.start()
seen = []
for inputs, target in CASES[CASE]():
    bug.busy(2)
    bug.late(10)
    seen.append((inputs.mean(), target.sum()))
bug.settle()
wrong = 0
for i, (value, label) in enumerate(seen):
    wrong += not abs(float(value) - normal[i]) < 1e-2 or int(label) != 32 * i
bug.end(wrong + BATCHES - len(seen), BATCHES)
