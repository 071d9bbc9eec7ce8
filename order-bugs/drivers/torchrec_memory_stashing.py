"""torchrec: memory is freed while its copy to the host still reads it."""

import logging
import sys
import types

import bug

torch = bug.torch
for name in ("torchrec", "torchrec.distributed", "torchrec.sparse"):
    sys.modules[name] = types.ModuleType(name)
for name, parts in (
    ("torchrec.distributed.embedding_types", ("GroupedEmbeddingConfig", "EmbeddingComputeKernel")),
    ("torchrec.distributed.logger", ("capped_logger", "one_time_rank0_logger")),
    ("torchrec.sparse.jagged_tensor", ("KeyedJaggedTensor",)),
):
    module = types.ModuleType(name)
    for part in parts:
        setattr(module, part, logging.getLogger(part))
    sys.modules[name] = module

version = "1.7.0" if bug.MENDED else "1.6.1"
path = bug.source("unpacked", f"torchrec-{version}", "torchrec/distributed/memory_stashing.py")
manager = bug.load(path, "memory_stashing").MemoryStashingManager
down = torch.cuda.Stream()
manager.set_streams(torch.cuda.Stream(), down)
SIZE, ROUNDS = 1 << 22, 12
bug.busy(1)
bug.start()
wrong = 0
for i in range(1, ROUNDS + 1):
    table = torch.full((SIZE,), float(i), device="cuda")
    bug.settle()
    with torch.cuda.stream(down):
        bug.late(5)
    await_restore, restore = manager._stash_tensors([table])[:2]
    # What the program computes next takes the memory that is free.
    others = [torch.full((SIZE,), -1.0, device="cuda") for _ in range(4)]
    bug.settle()
    del others
    restore()
    await_restore()
    bug.settle()
    wrong += not bool((table == i).all())
bug.end(wrong, ROUNDS)
