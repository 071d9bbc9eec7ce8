#!/usr/bin/env python3
"""What an event of LMCache costs with cuda_timelines.lmcache, and with LMCache's own backend, and how
long after a stream's release a waiting thread is woken. Needs a GPU, PyTorch and LMCache 0.5.6.

python_lmcache.py [--own]       --own: LMCache's backend, and the cost only
"""

import statistics
import sys
import threading
import time

import torch
from lmcache.v1.platform.base.event_ipc import get_event_ipc_backend

DEVICE = torch.device("cuda:0")
OWN = "--own" in sys.argv
if not OWN:
    import cuda_timelines.lmcache

    cuda_timelines.lmcache.install()
backend = get_event_ipc_backend(DEVICE)
backend.check_event_support(DEVICE)
stream = torch.cuda.Stream()


def create_record_export():
    event = backend.create_event(0)
    backend.record_event(event, stream)
    backend.export_event(event, 0)


times = []
for _ in range(2000):
    start = time.perf_counter_ns()
    create_record_export()
    times.append(time.perf_counter_ns() - start)
name = type(backend).__name__
print(f"{name}: create, record and export {statistics.median(times) / 1e3:.2f} us, median of 2000")
if OWN:
    sys.exit()

host = cuda_timelines.HostTimeline(0)
memory = torch.zeros(1024, device="cuda")


def ours():
    event = backend.create_event(0)
    backend.record_event(event, stream)
    return event


def imported():
    return backend.import_event(backend.export_event(ours(), 0), 0)


def of_torch():
    event = torch.cuda.Event(interprocess=True)
    event.record(stream)
    return event


def woken(make, wait, kernel):
    """From the release of the stream to a thread that has waited for the event, in us."""
    host.wait_ahead(stream, host.completed + 1)
    if kernel:
        with torch.cuda.stream(stream):
            memory.fill_(1)
    event, end = make(), []
    waiter = threading.Thread(target=lambda: (wait(event), end.append(time.perf_counter_ns())))
    waiter.start()
    time.sleep(0.005)
    start = time.perf_counter_ns()
    host.signal()
    waiter.join()
    return (end[0] - start) / 1e3


def synchronize(event):
    backend.synchronize_event(event, 0)


KINDS = {
    "torch.cuda.Event": (of_torch, lambda event: event.synchronize()),
    "an event": (ours, synchronize),
    "an imported event": (imported, synchronize),
}
for kernel in (True, False):
    samples = {kind: [] for kind in KINDS}
    for number in range(320):
        for kind in sorted(KINDS, key=lambda kind: hash((kind, number))):
            samples[kind].append(woken(*KINDS[kind], kernel))
    for kind, taken in samples.items():
        parts = statistics.quantiles(taken[20:], n=100)
        between = "a kernel" if kernel else "nothing"
        print(f"{kind}, {between} between: p50 {parts[49]:.1f}, p99 {parts[98]:.1f} us of 300")

host.wait_ahead(stream, host.completed + 1)
threads = [threading.Thread(target=synchronize, args=(imported(),)) for _ in range(300)]
for thread in threads:
    thread.start()
time.sleep(0.2)
start = time.perf_counter()
host.signal()
for thread in threads:
    thread.join()
print(f"300 threads with a wait each: all woken after {(time.perf_counter() - start) * 1e3:.1f} ms")
