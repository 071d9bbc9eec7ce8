"""The streams of the tests are those of cuda.core, on whatever libcuda.so.1 the loader finds."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cuda.core import Device, Stream
from cuda_timelines import HostTimeline

# What a hang is. No test waits as long.
PATIENCE = 60


@pytest.fixture
def device() -> Device:
    device = Device(0)
    device.set_current()
    return device


@pytest.fixture
def stream(device: Device) -> Iterator[Stream]:
    stream = device.create_stream()
    yield stream
    if not stream.is_closed:
        stream.sync()


@contextmanager
def held(stream: Stream) -> Iterator[HostTimeline]:
    """Holds the stream until the block ends, or until the latch is signalled."""
    with HostTimeline(stream) as latch:
        latch.wait_ahead(stream, latch.completed + 1)
        yield latch


def python(
    program: str, *arguments: str, before: list[str] | None = None, **options: object
) -> subprocess.Popen[str]:
    """Another process, by the command `before` if there is one."""
    command = [*(before or []), sys.executable, "-c", program, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, **options
    )
