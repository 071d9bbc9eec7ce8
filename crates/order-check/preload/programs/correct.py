"""Correct programs, as people write them: the checker must say nothing about them.

python3 correct.py --list       the names, and how many GPUs each needs
python3 correct.py NAME         runs one; those with a figure print `time: MILLISECONDS`
"""

import os
import sys
import threading
import time

PROGRAMS, GPUS = {}, {}


def program(function, gpus=1):
    PROGRAMS[function.__name__] = function
    GPUS[function.__name__] = gpus
    return function


def of_two_gpus(function):
    return program(function, 2)


def timed(step, rounds, warm=5):
    """The median of the steps' times, in milliseconds."""
    import torch

    times = []
    for i in range(warm + rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        if i >= warm:
            times.append((time.perf_counter() - start) * 1e3)
    print(f"time: {sorted(times)[rounds // 2]:.3f}")


@program
def train_with_a_loader():
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    model = torch.nn.Sequential(
        torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)
    ).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.randn(4096, 512), torch.randint(0, 10, (4096,)))
    for _ in range(3):
        for x, y in DataLoader(data, 64, pin_memory=True, num_workers=2, shuffle=True):
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        loss.item()


def transformer(layers=6, width=256):
    import torch

    layer = torch.nn.TransformerEncoderLayer(width, 4, batch_first=True)
    return torch.nn.TransformerEncoder(layer, layers).cuda()


@program
def training_step():
    import torch

    model = transformer(8, 512)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 128, 512, device="cuda")

    def step():
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    timed(step, 60)


@program
def inference_of_small_kernels():
    import torch

    model = transformer().eval()
    x = torch.randn(1, 16, 256, device="cuda")
    with torch.no_grad():
        timed(lambda: model(x), 200)


@program
def resnet():
    import torch
    import torchvision

    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x = torch.randn(8, 3, 224, 224, device="cuda")

    def step():
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    timed(step, 20)


@program
def mixed_precision():
    import torch

    model = transformer(2)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(30):
        x = torch.randn(8, 32, 256, device="cuda")
        with torch.autocast("cuda", torch.float16):
            loss = model(x).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@program
def generation_with_a_cache():
    import torch

    with torch.no_grad():
        heads, size, length = 8, 64, 256
        layers = [torch.nn.Linear(512, 3 * 512).cuda() for _ in range(4)]
        keys = torch.zeros(4, heads, length, size, device="cuda")
        values = torch.zeros_like(keys)
        table = torch.randn(1000, 512, device="cuda")
        token = torch.zeros(1, dtype=torch.long, device="cuda")
        for at in range(100):
            x = table[token]
            for i, layer in enumerate(layers):
                q, k, v = layer(x).view(3, heads, 1, size)
                keys[i, :, at] = k[:, 0]
                values[i, :, at] = v[:, 0]
                seen = keys[i, :, : at + 1], values[i, :, : at + 1]
                x = torch.nn.functional.scaled_dot_product_attention(q, *seen).reshape(1, 512)
            token = (x @ table.T).argmax(1)
            token.item()


@program
def cache_offload():
    """Blocks go to host memory and come back, with the events that this takes."""
    import torch

    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    blocks = [torch.randn(1 << 18, device="cuda") for _ in range(8)]
    host = [torch.empty(1 << 18).pin_memory() for _ in range(8)]
    for _ in range(20):
        side.wait_stream(main)
        with torch.cuda.stream(side):
            for block, place in zip(blocks, host):
                place.copy_(block, non_blocking=True)
            stored = side.record_event()
        main.wait_event(stored)
        for block in blocks:
            block.add_(1)
        stored.synchronize()
        sum(float(place[0]) for place in host)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            for block, place in zip(blocks, host):
                block.copy_(place, non_blocking=True)
        main.wait_stream(side)
    torch.cuda.synchronize()


@program
def blocks_of_a_cache():
    """Blocks are loaded and stored that no table of a running request has."""
    import torch

    load, store = torch.cuda.Stream(), torch.cuda.Stream()
    cache, host = torch.zeros(64, 4096, device="cuda"), torch.ones(64, 4096).pin_memory()
    tables = [torch.tensor([4 * i, 4 * i + 1, 4 * i + 2], device="cuda") for i in range(16)]
    new = torch.randn(3, 4096, device="cuda")
    done = [torch.cuda.Event() for _ in tables]
    torch.cuda.synchronize()
    for step in range(32):
        own, other = step % 16, (step + 8) % 16
        load.wait_event(done[other])
        with torch.cuda.stream(load):
            for block in range(4 * other, 4 * other + 3):
                cache[block].copy_(host[block], non_blocking=True)
            loaded = load.record_event()
        cache.index_copy_(0, tables[own], new)
        cache[tables[own]].sum()
        done[own].record()
        store.wait_event(done[own])
        with torch.cuda.stream(store):
            host[4 * own].copy_(cache[4 * own], non_blocking=True)
            stored = store.record_event()
        load.wait_event(stored)
        torch.cuda.current_stream().wait_event(loaded)
        torch.cuda.current_stream().wait_event(stored)
    torch.cuda.synchronize()


@program
def prefetcher():
    """The next batch is copied in a side stream while the model works on this one."""
    import torch

    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    batches = [torch.randn(256, 512).pin_memory() for _ in range(30)]
    model = torch.nn.Linear(512, 512).cuda()

    def upload(batch):
        with torch.cuda.stream(side):
            return batch.to("cuda", non_blocking=True)

    coming = upload(batches[0])
    for batch in batches[1:] + [None]:
        main.wait_stream(side)
        x = coming
        x.record_stream(main)
        if batch is not None:
            coming = upload(batch)
        model(x).sum()
    torch.cuda.synchronize()


@program
def staging_with_events():
    """Pinned buffers in turn, each refilled when the event of its copy has come."""
    import torch

    side = torch.cuda.Stream()
    sources = [torch.empty(1 << 20).pin_memory() for _ in range(3)]
    done = [torch.cuda.Event() for _ in range(3)]
    x = torch.empty(3, 1 << 20, device="cuda")
    torch.cuda.synchronize()
    for i in range(60):
        done[i % 3].synchronize()
        sources[i % 3].fill_(i)
        with torch.cuda.stream(side):
            x[i % 3].copy_(sources[i % 3], non_blocking=True)
            done[i % 3].record()
    torch.cuda.synchronize()


@program
def polled_results():
    """The host asks an event until it has come, and reads then."""
    import torch

    x, result = torch.zeros(1 << 20, device="cuda"), torch.empty(1 << 20).pin_memory()
    for _ in range(30):
        x.add_(1)
        result.copy_(x, non_blocking=True)
        event = torch.cuda.current_stream().record_event()
        while not event.query():
            pass
        result.sum()


@program
def graphs():
    import torch

    x = torch.randn(512, 512, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            (x @ x).relu().sum()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x @ x).relu().sum()
    for _ in range(100):
        x.copy_(torch.randn(512, 512).pin_memory(), non_blocking=True)
        graph.replay()
        y.item()


@program
def graph_of_two_streams():
    import torch

    x, y = torch.randn(512, 512, device="cuda"), torch.zeros(512, 512, device="cuda")
    source = torch.randn(512, 512).pin_memory()
    side = torch.cuda.Stream()
    x @ x
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            y.copy_(source, non_blocking=True)
        z = x @ x
        main.wait_stream(side)
        z = z + y
    for _ in range(50):
        graph.replay()
    torch.cuda.synchronize()


@program
def compiled():
    import torch

    @torch.compile
    def f(x, y):
        return (x.sin() + y.cos()).softmax(-1).sum()

    x = torch.randn(256, 256, device="cuda", requires_grad=True)
    for _ in range(20):
        f(x, x * 2).backward()


@program
def expandable_segments():
    """The allocator maps and unmaps memory."""
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    import torch

    side = torch.cuda.Stream()
    for i in range(20):
        x = torch.randn(1 << 20 << i % 5, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x * 2
            x.record_stream(side)
        torch.cuda.current_stream().wait_stream(side)
        (x + y).sum().item()
        del x, y
        torch.cuda.empty_cache()


@program
def threads():
    import torch

    def work():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.no_grad():
            model = torch.nn.Linear(256, 256).cuda()
            for _ in range(40):
                x = torch.randn(64, 256).pin_memory().to("cuda", non_blocking=True)
                model(x).sum().item()

    all_threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()


@program
def collectives_of_one_rank():
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000))
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(20):
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        x.mul_(0.5)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def rank_of_two(rank, port):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=2, device_id=torch.device("cuda", rank))
    layers = [torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), device_ids=[rank])
    optimizer = torch.optim.Adam(model.parameters())
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    for _ in range(30):
        x = torch.randn(256, 64).pin_memory().cuda(non_blocking=True)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            dist.all_reduce(total, async_op=True).wait()
        main.wait_stream(side)
        gathered = [torch.empty_like(total) for _ in range(2)]
        dist.all_gather(gathered, total)
        assert torch.equal(*gathered)
    blocks, part = torch.ones(2 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    dist.reduce_scatter_tensor(part, blocks)
    first, second = (dist.send, dist.recv) if rank == 0 else (dist.recv, dist.send)
    first(part, 1 - rank)
    second(part, 1 - rank)
    assert part.eq(2).all()
    dist.destroy_process_group()


@of_two_gpus
def collectives_of_two_ranks():
    import torch

    port = str(20000 + os.getpid() % 20000)
    torch.multiprocessing.spawn(rank_of_two, args=(port,), nprocs=2)


@of_two_gpus
def copies_between_gpus():
    """Both directions at once, in side streams, ordered by events; a thread each."""
    import torch

    def copy(here, there):
        make, move, use = torch.cuda.Stream(here), torch.cuda.Stream(here), torch.cuda.Stream(there)
        with torch.cuda.stream(make):
            ramp = torch.ones(1 << 20, device=here)
        with torch.cuda.stream(use):
            total = torch.zeros(1 << 20, device=there)
        for number in range(100):
            with torch.cuda.stream(make):
                x = ramp * number
                made = make.record_event()
            move.wait_event(made)
            with torch.cuda.stream(use), torch.cuda.stream(move):
                y = x.to(there, non_blocking=True)
                moved = move.record_event()
            x.record_stream(move)
            use.wait_event(moved)
            with torch.cuda.stream(use):
                total += y
        use.synchronize()
        assert total.eq(99 * 50).all()

    ways = [("cuda:0", "cuda:1"), ("cuda:1", "cuda:0")]
    all_threads = [threading.Thread(target=copy, args=way) for way in ways]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()


@program
def cupy_arrays():
    import cupy

    for _ in range(10):
        x = cupy.random.rand(512, 512)
        cupy.linalg.svd(x @ x.T)
        cupy.fft.fft2(x).real.sum().item()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    for stream in streams:
        with stream:
            cupy.sort(cupy.random.rand(1 << 18)).get()


@program
def jax_training():
    import jax
    import jax.numpy as jnp

    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    step = jax.jit(lambda w, x: w - 0.1 * jax.grad(loss)(w, x))
    w = jnp.ones((256, 256))
    for i in range(50):
        w = step(w, jax.random.normal(jax.random.PRNGKey(i), (64, 256)))
    w.block_until_ready()


@program
def numba_streams():
    import numpy

    # Versions of numba that are older than their numpy ask for it.
    numpy.row_stack = numpy.vstack
    from numba import cuda

    @cuda.jit
    def add(x, y):
        i = cuda.grid(1)
        if i < x.size:
            x[i] += y[i]

    stream = cuda.stream()
    with cuda.pinned(numpy.ones(1)):
        pass
    x, y = cuda.pinned_array(1 << 18), cuda.pinned_array(1 << 18)
    x[:], y[:] = 1, 2
    for _ in range(20):
        on_x, on_y = cuda.to_device(x, stream), cuda.to_device(y, stream)
        add[1024, 256, stream](on_x, on_y)
        on_x.copy_to_host(x, stream)
        stream.synchronize()
        x[0] += 1


@program
def faulthandler_of_python():
    """The interpreter has a handler of its own for the signal that the host's class uses."""
    import faulthandler

    import torch

    faulthandler.enable()
    x, result = torch.zeros(1 << 20, device="cuda"), torch.empty(1 << 20).pin_memory()
    for _ in range(20):
        result.copy_(x, non_blocking=True)
        torch.cuda.synchronize()
        result.fill_(1)
        x.copy_(result, non_blocking=True)
        torch.cuda.synchronize()


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        for name, gpus in GPUS.items():
            print(name, gpus)
    else:
        PROGRAMS[sys.argv[1]]()
