#!/usr/bin/env python3
"""Two streams, events, pinned copies both ways and two kernels a round, for so many seconds; prints
rounds and the process's memory twelve times.

python3 soak.py SECONDS
"""

import sys
import time

import torch


def mebibytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4 // 1024


seconds = float(sys.argv[1])
first, second = torch.cuda.Stream(), torch.cuda.Stream()
data = torch.zeros(1 << 16, device="cuda")
source, result = (torch.zeros(1 << 16).pin_memory() for _ in range(2))
events = [torch.cuda.Event() for _ in range(4)]
torch.cuda.synchronize()
begun = time.time()
rounds, seen, due = 0, [], 0.0
while (passed := time.time() - begun) < seconds:
    for index in range(50):
        with torch.cuda.stream(first):
            data.copy_(source, non_blocking=True)
            doubled = data * 2
            events[index % 4].record(first)
        second.wait_event(events[index % 4])
        with torch.cuda.stream(second):
            result.copy_(doubled + data, non_blocking=True)
        doubled.record_stream(second)
        first.wait_stream(second)
    rounds += 50
    first.synchronize()
    second.synchronize()
    source[0] = float(result[0])
    if passed >= due:
        due += seconds / 12
        seen.append((rounds, mebibytes()))
print(f"{rounds} rounds; rounds and MiB: {seen}")
