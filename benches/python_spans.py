"""Spans in PyTorch around the same work as the bench's: pairs of torch.cuda.Event, and
record_function under torch.profiler with the activities of the GPU.

Prints lines of JSON like those of the bench, to be put behind them, and a summary on stderr. The
exit code is 75 where it cannot run: without PyTorch, or without a GPU for it.
"""

import json
import statistics
import sys
import time

# As in src/spans.rs.
BATCH = 200
BATCHES = 10
SPANS = BATCH * BATCHES
EVENT_ROUNDS = 51
PROFILER_ROUNDS = 11
WORKS = ("none", "a memset of 4 bytes")


def not_run(why):
    print(f"python_spans.py: NOT RUN: {why}", file=sys.stderr)
    sys.exit(75)


try:
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function
except ImportError as error:
    not_run(error)
if not torch.cuda.is_available():
    not_run("PyTorch finds no GPU")

stream = torch.cuda.Stream()
word = torch.zeros(1, dtype=torch.int32, device="cuda")
pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(BATCH)]


def timed(run):
    started = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - started


def work_alone():
    for _ in range(BATCH):
        word.zero_()


def events(works):
    if works:
        for start, end in pairs:
            start.record(stream)
            word.zero_()
            end.record(stream)
    else:
        for start, end in pairs:
            start.record(stream)
            end.record(stream)


def read_events():
    for start, end in pairs:
        start.elapsed_time(end)


def spans(works):
    if works:
        for _ in range(BATCH):
            with record_function("span"):
                word.zero_()
    else:
        for _ in range(BATCH):
            with record_function("span"):
                pass


def spread(samples):
    tenths = statistics.quantiles(samples, n=10, method="inclusive")
    return {
        "median": round(statistics.median(samples), 1),
        "p10": round(tenths[0], 1),
        "p90": round(tenths[-1], 1),
    }


def report(work, implementation, record, read=None):
    row = {
        "kind": "span",
        "driver": "native",
        "work": work,
        "implementation": implementation,
        "ns": spread(record),
        "min_ns": round(min(record), 1),
        "rounds": len(record),
        "spans": SPANS,
    }
    text = f"{implementation}, around {work}: {row['ns']['median']} ns to record"
    if read:
        row["read_ns"] = spread(read)
        text += f", {row['read_ns']['median']} ns to read"
    print(json.dumps(row), flush=True)
    print(text, file=sys.stderr)


def without_profiler(work, works):
    alone, recorded, read = [], [], []
    for number in range(EVENT_ROUNDS + 1):
        sums = [0, 0, 0]
        for batch in range(BATCHES):
            for turn in range(2):
                stream.synchronize()
                if (turn + batch + number) % 2 == 0:
                    sums[0] += timed(work_alone)
                else:
                    sums[1] += timed(lambda: events(works))
                    stream.synchronize()
                    sums[2] += timed(read_events)
        # The first round warms up.
        if number > 0:
            for samples, total in zip((alone, recorded, read), sums):
                samples.append(total / SPANS)
    if works:
        report(work, "the work alone, torch", alone)
    report(work, "torch.cuda.Event", recorded, read)


def with_profiler(work, works):
    recorded, read = [], []
    for number in range(PROFILER_ROUNDS + 1):
        profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        profiler.start()
        took = 0
        for _ in range(BATCHES):
            took += timed(lambda: spans(works))
            stream.synchronize()
        found = []

        def read_all():
            profiler.stop()
            found.extend(event for event in profiler.events() if event.name == "span")

        reading = timed(read_all)
        # A span around work is there twice: on the host, and on the GPU.
        if len(found) < SPANS:
            not_run(f"the profiler has {len(found)} of {SPANS} spans")
        if number > 0:
            recorded.append(took / SPANS)
            read.append(reading / SPANS)
    report(work, "torch.profiler", recorded, read)


print(f"torch {torch.__version__}, {torch.cuda.get_device_name(0)}", file=sys.stderr)
with torch.cuda.stream(stream):
    # The profiler leaves hooks in the process, so it is last.
    for part in (without_profiler, with_profiler):
        for each in WORKS:
            part(each, each != "none")
