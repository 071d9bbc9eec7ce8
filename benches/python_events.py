"""The loops of the bench in Python: torch.cuda and NVIDIA's cuda.core, whichever is there.

Prints lines of JSON like those of the bench, to be put behind them. The time of a call includes
Python's own loop and method call, because nobody who calls from Python can do without them.
"""

import json
import statistics
import sys
import timeit

ROUNDS = 100
BATCH_SECONDS = 100e-6


def quantile(samples, share):
    return statistics.quantiles(samples, n=10, method="inclusive")[round(share * 10) - 1]


def measure(implementation, operations, names, settle):
    """Times every operation, a statement, in turns."""

    def timed(name, calls):
        """Nanoseconds for one."""
        return timers[name].timeit(calls) / calls * 1e9

    timers = {
        name: timeit.Timer(statement, globals=names) for name, statement in operations.items()
    }
    samples = {name: [] for name in operations}
    batches = {}
    for name in operations:
        try:
            timed(name, 20)
            batches[name] = max(10, min(20000, int(BATCH_SECONDS * 1e9 / timed(name, 50))))
        except Exception as error:  # What this version does not have is left out, and said.
            print(f"{implementation}: {name}: {error!r}", file=sys.stderr)
        settle()
    for _ in range(ROUNDS):
        for name, batch in batches.items():
            samples[name].append(timed(name, batch))
            settle()
    for name, batch in batches.items():
        mine = samples[name]
        row = {
            "kind": "time",
            "driver": "native",
            "operation": name,
            "implementation": implementation,
            "ns": {
                "median": round(statistics.median(mine), 1),
                "p10": round(quantile(mine, 0.1), 1),
                "p90": round(quantile(mine, 0.9), 1),
            },
            "rounds": ROUNDS,
            "batch": batch,
        }
        print(json.dumps(row), flush=True)


def with_torch():
    import torch

    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    event = torch.cuda.Event()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for each in (event, start, end):
        each.record(stream)
    stream.synchronize()
    operations = {
        "record": "event.record(stream)",
        "query, done": "event.query()",
        "synchronize, done": "event.synchronize()",
        "stream wait": "other.wait_event(event)",
        "elapsed": "start.elapsed_time(end)",
        "stream query": "stream.query()",
        "stream synchronize, idle": "stream.synchronize()",
        "record, timing": "end.record(stream)",
        # An event of torch's is created when it is first recorded.
        "record_event + drop": "stream.record_event()",
        "wait_stream": "stream.wait_stream(other)",
    }
    print(f"torch {torch.__version__}", file=sys.stderr)
    measure("torch", operations, locals(), torch.cuda.synchronize)


def with_cuda_core():
    import cuda.core
    from cuda.core import Device, EventOptions

    def timing():
        for name in ("timing_enabled", "enable_timing"):
            try:
                return EventOptions(**{name: True})
            except TypeError:
                continue
        raise RuntimeError("EventOptions has another name for timing")

    device = Device(0)
    device.set_current()
    stream, other = device.create_stream(), device.create_stream()
    event = device.create_event()
    start, end = device.create_event(timing()), device.create_event(timing())
    for each in (event, start, end):
        stream.record(each)
    stream.sync()
    operations = {
        "record": "stream.record(event)",
        "query, done": "event.is_done",
        "synchronize, done": "event.sync()",
        "stream wait": "other.wait(event)",
        "elapsed": "end - start",
        "stream synchronize, idle": "stream.sync()",
        "record, timing": "stream.record(end)",
        "create + drop": "device.create_event()",
        "record_event + drop": "stream.record()",
        "wait_stream": "stream.wait(other)",
    }
    print(f"cuda.core {cuda.core.__version__}", file=sys.stderr)

    def settle():
        stream.sync()
        other.sync()

    measure("cuda.core", operations, locals(), settle)


for peer in (with_torch, with_cuda_core):
    try:
        peer()
    except ImportError as error:
        print(f"{peer.__name__}: {error}", file=sys.stderr)
