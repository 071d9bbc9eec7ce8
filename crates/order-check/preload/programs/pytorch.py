"""PyTorch programs with one planted error of order each, and their mended twins.

python3 pytorch.py --list                 names and classes
python3 pytorch.py NAME planted|mended    runs one

A class is that of the checker: `copy`, `free` and `host` are on by default; `reads`, `pools` and
`kernels` are not. All errors are errors of order, so none depends on luck: the programs are wrong on
every run, whether their results are or not.
"""

import os
import queue
import sys
import threading

if "free" in " ".join(sys.argv):
    # The driver's own pool: what PyTorch's caching allocator does inside is no call of the driver.
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"

import torch

from planting import planted, run

N = 1 << 20
ROUNDS = 14


def pinned(value=1.0, count=N):
    return torch.full((count,), value).pin_memory()


def device(count=N):
    return torch.zeros(count, device="cuda")


def current():
    return torch.cuda.current_stream()


def settle():
    torch.cuda.synchronize()


@planted("copy")
def upload_without_a_wait(right):
    side, source, x = torch.cuda.Stream(), pinned(), device()
    settle()
    for _ in range(ROUNDS):
        side.wait_stream(current())
        with torch.cuda.stream(side):
            x.copy_(source, non_blocking=True)
        if right:
            current().wait_stream(side)
        x * 2


@planted("copy")
def upload_over_a_reader(right):
    """The kernel waits for the copy, but the next copy does not wait for the kernel."""
    side, source, x = torch.cuda.Stream(), pinned(), device()
    settle()
    for _ in range(ROUNDS):
        if right:
            side.wait_stream(current())
        with torch.cuda.stream(side):
            x.copy_(source, non_blocking=True)
        current().wait_stream(side)
        x * 2


@planted("copy")
def event_before_the_copy(right):
    side, source, x = torch.cuda.Stream(), pinned(), device()
    settle()
    for _ in range(ROUNDS):
        ready = torch.cuda.Event()
        side.wait_stream(current())
        with torch.cuda.stream(side):
            if not right:
                ready.record()
            x.copy_(source, non_blocking=True)
            if right:
                ready.record()
        current().wait_event(ready)
        x * 2


@planted("copy")
def wait_in_another_stream(right):
    """The stream that waits is not the one that computes."""
    side, compute, source, x = torch.cuda.Stream(), torch.cuda.Stream(), pinned(), device()
    settle()
    for _ in range(ROUNDS):
        side.wait_stream(compute)
        with torch.cuda.stream(side):
            x.copy_(source, non_blocking=True)
        (compute if right else current()).wait_stream(side)
        with torch.cuda.stream(compute):
            x * 2


@planted("copy")
def wait_for_the_first_of_two(right):
    """Two copies, and an event after the first of them."""
    side, first, second = torch.cuda.Stream(), pinned(1.0), pinned(2.0)
    x, y = device(), device()
    settle()
    for _ in range(ROUNDS):
        ready = torch.cuda.Event()
        side.wait_stream(current())
        with torch.cuda.stream(side):
            x.copy_(first, non_blocking=True)
            if not right:
                ready.record()
            y.copy_(second, non_blocking=True)
            if right:
                ready.record()
        current().wait_event(ready)
        x + y


@planted("copy")
def two_uploads(right):
    one, two, x = torch.cuda.Stream(), torch.cuda.Stream(), device()
    first, second = pinned(1.0), pinned(2.0)
    settle()
    with torch.cuda.stream(one):
        x.copy_(first, non_blocking=True)
    if right:
        two.wait_stream(one)
    with torch.cuda.stream(two):
        x.copy_(second, non_blocking=True)


@planted("copy")
def device_copy_on_a_side_stream(right):
    side, x, y = torch.cuda.Stream(), device(), device()
    settle()
    for _ in range(ROUNDS):
        side.wait_stream(current())
        with torch.cuda.stream(side):
            y.copy_(x)
        if right:
            current().wait_stream(side)
        y * 2


@planted("copy")
def double_buffer_freed_too_early(right):
    """The event that gives a buffer back is recorded before the kernel that reads it."""
    side, source, buffers = torch.cuda.Stream(), pinned(), [device(), device()]
    free = [torch.cuda.Event(), torch.cuda.Event()]
    settle()
    for i in range(2 * ROUNDS):
        side.wait_event(free[i % 2])
        with torch.cuda.stream(side):
            buffers[i % 2].copy_(source, non_blocking=True)
        current().wait_stream(side)
        if not right:
            free[i % 2].record()
        buffers[i % 2] * 2
        if right:
            free[i % 2].record()


@planted("copy")
def loader_thread_without_an_event(right):
    """A thread copies in its own stream and hands the tensor over in a queue."""
    source, full, empty = pinned(), queue.Queue(), queue.Queue()
    x = device()
    settle()

    def load():
        side = torch.cuda.Stream()
        for _ in range(ROUNDS):
            side.wait_event(empty.get())
            with torch.cuda.stream(side):
                x.copy_(source, non_blocking=True)
            full.put(side.record_event())

    thread = threading.Thread(target=load)
    thread.start()
    for _ in range(ROUNDS):
        empty.put(current().record_event())
        ready = full.get()
        if right:
            current().wait_event(ready)
        x * 2
    thread.join()


@planted("copy")
def graph_input_without_a_wait(right):
    side, source, x = torch.cuda.Stream(), pinned(), device()
    warm = torch.cuda.Stream()
    warm.wait_stream(current())
    with torch.cuda.stream(warm):
        x * 2
    current().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        y.sum()
    settle()
    for _ in range(ROUNDS):
        side.wait_stream(current())
        with torch.cuda.stream(side):
            x.copy_(source, non_blocking=True)
        if right:
            current().wait_stream(side)
        graph.replay()


@planted("copy")
def weights_while_a_step_runs(right):
    """New weights arrive in a stream of their own while the old ones are in use."""
    side = torch.cuda.Stream()
    weight, x = torch.randn(1024, 1024, device="cuda"), torch.randn(1024, 1024, device="cuda")
    new = torch.randn(1024, 1024).pin_memory()
    settle()
    for _ in range(ROUNDS):
        torch.nn.functional.linear(x, weight)
        if right:
            side.wait_stream(current())
        with torch.cuda.stream(side):
            weight.copy_(new, non_blocking=True)
        current().wait_stream(side)


@planted("copy")
def synchronized_the_wrong_stream(right):
    side, other, source, x = torch.cuda.Stream(), torch.cuda.Stream(), pinned(), device()
    settle()
    for _ in range(ROUNDS):
        side.wait_stream(current())
        with torch.cuda.stream(side):
            x.copy_(source, non_blocking=True)
        (side if right else other).synchronize()
        x * 2


@planted("free")
def freed_while_another_stream_reads(right):
    """Without `record_stream`, or a wait, the memory goes back while the side stream reads it."""
    side = torch.cuda.Stream()
    for _ in range(ROUNDS):
        x = device()
        side.wait_stream(current())
        with torch.cuda.stream(side):
            x * 2
        if right:
            current().wait_stream(side)
        del x


@planted("host")
def staging_buffer_refilled(right):
    source, x = pinned(count=1 << 22), device(1 << 22)
    settle()
    for i in range(ROUNDS):
        x.copy_(source, non_blocking=True)
        if right:
            current().synchronize()
        source.fill_(i)


@planted("host")
def staging_pair_with_early_events(right):
    """Two buffers, each with an event that is recorded before its copy."""
    sources, targets = [pinned(), pinned()], [device(), device()]
    done = [torch.cuda.Event(), torch.cuda.Event()]
    settle()
    for i in range(ROUNDS):
        at = i % 2
        done[at].synchronize()
        sources[at].fill_(i)
        if not right:
            done[at].record()
        targets[at].copy_(sources[at], non_blocking=True)
        if right:
            done[at].record()


@planted("host")
def result_read_too_early(right):
    x, result = device(), pinned()
    settle()
    for _ in range(ROUNDS):
        x.add_(1)
        result.copy_(x, non_blocking=True)
        if right:
            current().synchronize()
        result.sum()


@planted("host")
def result_read_by_another_thread(right):
    x, result, ready = device(), pinned(), queue.Queue()
    settle()

    def read():
        for _ in range(ROUNDS):
            event = ready.get()
            if right:
                event.synchronize()
            result.sum()
            ready.task_done()

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(ROUNDS):
        x.add_(1)
        result.copy_(x, non_blocking=True)
        ready.put(current().record_event())
        ready.join()
    thread.join()


@planted("host")
def result_written_to_a_pipe_too_early(right):
    x, result = device(), pinned()
    view = memoryview(result.numpy())
    settle()
    read_end, write_end = os.pipe()
    for _ in range(ROUNDS):
        result.copy_(x, non_blocking=True)
        if right:
            current().synchronize()
        os.write(write_end, view[:1024])
        os.read(read_end, 4096)


@planted("host")
def numpy_reads_half_a_page_too_early(right):
    """Two results share a page. One has arrived, the other has not."""
    x, both = device(64), pinned(count=128)
    side = torch.cuda.Stream()
    settle()
    for _ in range(ROUNDS):
        both[:64].copy_(x, non_blocking=True)
        current().synchronize()
        with torch.cuda.stream(side):
            both[64:].copy_(x, non_blocking=True)
        both.numpy()[:64].sum() if right else both.numpy()[64:].sum()
        side.synchronize()


@planted("reads")
def download_without_a_wait(right):
    side, x, result = torch.cuda.Stream(), device(), pinned()
    settle()
    for _ in range(ROUNDS):
        x.add_(1)
        if right:
            side.wait_stream(current())
        with torch.cuda.stream(side):
            result.copy_(x, non_blocking=True)
        side.synchronize()


@planted("pools")
def block_of_a_pool_without_a_wait(right):
    """A paged cache: the kernel gets the address of the whole, the copy fills a block of it."""
    side, cache, block = torch.cuda.Stream(), device(1 << 24), pinned(count=1 << 16)
    settle()
    for i in range(1, ROUNDS):
        side.wait_stream(current())
        with torch.cuda.stream(side):
            cache[i << 16 : (i + 1) << 16].copy_(block, non_blocking=True)
        if right:
            current().wait_stream(side)
        cache.sum()


@planted("kernels")
def two_kernels_without_a_wait(right):
    side, x = torch.cuda.Stream(), device()
    settle()
    for _ in range(ROUNDS):
        side.wait_stream(current())
        x.add_(1)
        if right:
            side.wait_stream(current())
        with torch.cuda.stream(side):
            x.mul_(2)
        current().wait_stream(side)


# Errors that were published, written anew from their descriptions.


@planted("host")
def published_block_offsets(right):
    """TensorRT-LLM 15546: one pinned table is overwritten for the next batch while the copy of the
    last one may wait behind other work."""
    table = torch.zeros(64 * 512, dtype=torch.int32).pin_memory()
    on_device = torch.zeros(64 * 512, dtype=torch.int32, device="cuda")
    work = torch.randn(2048, 2048, device="cuda")
    settle()
    for step in range(ROUNDS):
        if right:
            table = torch.empty_like(table).pin_memory()
        table.copy_(torch.arange(64 * 512, dtype=torch.int32) + step)
        work @ work
        on_device.copy_(table, non_blocking=True)
        on_device.sum()


@planted("host")
def published_to_cpu(right):
    """PyTorch 127612: the copy to the host is not blocking, and is read at once."""
    x = torch.randn(N, device="cuda")
    settle()
    y = x.to("cpu", non_blocking=True)
    if right:
        settle()
    y.norm()


@planted("copy")
def published_retrieved_blocks(right):
    """LMCache's retrieve, as reported to rtx6kpro (47): blocks that come back from host memory are
    written in the cache's own stream, and the model's stream is not asked."""
    load = torch.cuda.Stream()
    cache = [torch.zeros(64, 4096, device="cuda") for _ in range(4)]
    host = torch.ones(64, 4096).pin_memory()
    query = torch.randn(16, 4096, device="cuda")
    settle()
    for _ in range(ROUNDS):
        for layer in cache:
            query @ layer.T
        if right:
            load.wait_stream(current())
        with torch.cuda.stream(load):
            for layer in cache:
                layer.copy_(host, non_blocking=True)
        current().wait_stream(load)


@planted("copy")
def published_overlapped_schedule(right):
    """SGLang 26380: the schedule of the next step writes tables that the step under way reads."""
    forward = torch.cuda.Stream()
    lengths = torch.zeros(4096, dtype=torch.int64, device="cuda")
    new = torch.ones(4096, dtype=torch.int64).pin_memory()
    settle()
    for _ in range(ROUNDS):
        if right:
            current().wait_stream(forward)
        lengths.copy_(new, non_blocking=True)
        forward.wait_stream(current())
        with torch.cuda.stream(forward):
            lengths + 1


@planted("copy")
def published_shared_prefix(right):
    """LMCache 2706: a request loads blocks that another one is storing to host memory."""
    load, store = torch.cuda.Stream(), torch.cuda.Stream()
    blocks, incoming, outgoing = device(), pinned(), pinned()
    settle()
    for _ in range(ROUNDS):
        with torch.cuda.stream(store):
            outgoing.copy_(blocks, non_blocking=True)
        if right:
            load.wait_stream(store)
        with torch.cuda.stream(load):
            blocks.copy_(incoming, non_blocking=True)
        store.wait_stream(load)


@planted("reads")
def published_stored_blocks(right):
    """vLLM 45704, as the test of its mend has it: blocks are stored while a kernel fills the cache."""
    compute, store = torch.cuda.Stream(), torch.cuda.Stream()
    cache = torch.zeros(64, 4096, dtype=torch.int8, device="cuda")
    host = torch.zeros(64, 4096, dtype=torch.int8).pin_memory()
    settle()
    for step in range(ROUNDS):
        with torch.cuda.stream(compute):
            cache.fill_(step)
        if right:
            store.wait_stream(compute)
        with torch.cuda.stream(store):
            for block in range(8, 16):
                host[block].copy_(cache[block], non_blocking=True)
        compute.wait_stream(store)


@planted("copy")
def published_loaded_block(right):
    """vLLM 47282: a block is loaded while a kernel reads it, which has it from a table."""
    load = torch.cuda.Stream()
    cache = torch.zeros(64, 16, 512, device="cuda")
    host = torch.zeros(64, 16, 512).pin_memory()
    table = torch.tensor([3, 5, 9], device="cuda")
    settle()
    for _ in range(ROUNDS):
        cache[table].sum()
        if right:
            load.wait_stream(current())
        with torch.cuda.stream(load):
            cache[5].copy_(host[5], non_blocking=True)
        current().wait_stream(load)


if __name__ == "__main__":
    run(settle)
