"""DeepSpeed, ZeRO 1 and 2 with overlapped communication: what a bucket's reduction waits for.

--case refill: the bucket is filled again while it is reduced (5606).
--case producers: it is reduced before all streams have filled it (8080).
"""

import types

import bug

torch = bug.torch
COMMITS = {
    "refill": ("1ef9b029cd6e9f64fa46956ea278bf60eec9dd51", "a41729f6a5b27b9df324b735bd3b16f387414272"),
    "producers": ("46c9e20f1e07623392633e3f1d9aaae41e348c0f", "711bd11ecc61bd2d7922601e1736f2558be45730"),
}
CASE = bug.CASE or "refill"
path = bug.source(
    "deepspeedai+DeepSpeed",
    COMMITS[CASE][bug.MENDED],
    "deepspeed/runtime/zero/stage_1_and_2.py",
)
accelerator = types.SimpleNamespace(
    current_stream=torch.cuda.current_stream,
    stream=torch.cuda.stream,
    resolves_data_dependency=lambda: False,
)
average_tensor = bug.definition(
    path,
    "DeepSpeedZeroOptimizer.average_tensor",
    {"torch": torch, "get_accelerator": lambda: accelerator},
)
# The older versions have one kind of bucket.
KIND = [torch.float32] if CASE == "producers" else []
SIZE, ROUNDS = 1 << 22, 16
side, done = torch.cuda.Stream(), torch.cuda.Stream()
results = []


def reduce(tensor, *_):
    """In place of the communication: what has arrived in the bucket."""
    if CASE == "refill":
        bug.busy(1)
        bug.late(3)
    results.append(tensor.sum())


bucket = types.SimpleNamespace(copy_streams=set(), params=[])
optimizer = types.SimpleNamespace(
    overlap_comm=True,
    reduction_stream=done,
    reduce_scatter=False,
    gradient_reduction_w_predivide=reduce,
    ipg_buckets={torch.float32: bucket},
)
buffers = [torch.zeros(SIZE, device="cuda") for _ in range(2)]
halves = [torch.full((SIZE // 2,), float(i + 1), device="cuda") for i in range(ROUNDS)]
for stream in (done, side, bug.current()):
    with torch.cuda.stream(stream):
        bug.busy(1)
bug.start()
for i in range(ROUNDS):
    # Two buffers in turn, as with contiguous gradients.
    buffer = buffers[i % 2]
    streams = [bug.current(), side if CASE == "producers" else bug.current()]
    if CASE == "producers":
        bug.settle()
    for part, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            if part and CASE == "producers":
                bug.busy(1)
                bug.late(3)
            buffer[part * SIZE // 2 :][: SIZE // 2].copy_(halves[i])
            bucket.copy_streams.add(bug.current())
    average_tensor(optimizer, buffer, *KIND)
    bucket.copy_streams.clear()
bug.settle()
wrong = sum(float(value) != (i + 1) * SIZE for i, value in enumerate(results))
bug.end(wrong, ROUNDS)
