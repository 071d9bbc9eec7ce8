import mmap
import os
import socket

import pytest
from conftest import PATIENCE, python
from cuda_timelines import (
    Error,
    ExporterGone,
    HostTimeline,
    ImportedTimeline,
    Poisoned,
    Timeline,
    TimelineFile,
    TimelineMemory,
)

# The maker: sends what names its timeline, and the value of one signal that is reached. Then it
# holds its stream, and its next signals stay pending until it is killed.
MAKER = """
import os, socket, sys
from conftest import held
from cuda.core import Device
from cuda_timelines import Timeline, TimelineFile, TimelineMemory
connection = socket.socket(fileno=int(sys.argv[1]))
device = Device(0)
device.set_current()
stream = device.create_stream()
if sys.argv[2] == "memory":
    memory, file = TimelineMemory(device), None
    timeline = Timeline(stream, memory=memory)
else:
    file = TimelineFile(device, writable=sys.argv[2] == "writable")
    timeline = Timeline(stream, file=file)
point = timeline.signal()
assert point.wait(timeout=60)
latch = held(stream)
latch.__enter__()
timeline.signal()
message = point.value.to_bytes(8, "little") + timeline.descriptor
socket.send_fds(connection, [message], [] if file is None else [file.fileno()])
connection.recv(1)
"""


class Maker:
    def __init__(self, kind):
        self.ours, theirs = socket.socketpair()
        with theirs:
            self.process = python(
                MAKER,
                str(theirs.fileno()),
                kind,
                pass_fds=[theirs.fileno()],
                cwd=os.path.dirname(__file__),
            )
        self.ours.settimeout(PATIENCE)
        message, files, _, _ = socket.recv_fds(self.ours, 1024, 1)
        self.value, self.descriptor = int.from_bytes(message[:8], "little"), message[8:]
        self.file = files[0] if files else None

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.stdout.close()
        self.process.stdin.close()
        self.ours.close()
        if self.file is not None:
            os.close(self.file)


@pytest.mark.parametrize("kind", ["sealed", "writable", "memory"])
def test_a_maker_that_is_killed(device, stream, kind):
    with Maker(kind) as maker:
        with ImportedTimeline(device, maker.descriptor, maker.file) as imported:
            reached, pending = imported.point(maker.value), imported.point(maker.value + 1)
            assert reached.wait(timeout=PATIENCE)
            assert imported.exporter_alive and not pending.done() and not pending.query()
            pending.stream_wait(stream)
            after = stream.record()
            assert not after.is_done
            maker.kill()
            with pytest.raises(ExporterGone, match="has ended"):
                pending.wait(timeout=PATIENCE)
            after.sync()
            assert imported.exporter_alive is False and reached.done()


def test_an_end_that_is_reported(device, stream):
    with Maker("memory") as maker, ImportedTimeline(device, maker.descriptor) as imported:
        pending = imported.point(maker.value + 1)
        pending.stream_wait(stream)
        imported.exporter_ended()
        with pytest.raises(ExporterGone, match="has ended"):
            pending.wait(timeout=PATIENCE)
        stream.sync()
        assert imported.exporter_alive is False


def test_await_of_a_maker_that_is_killed(device):
    import asyncio

    async def run(maker, imported):
        async def wait():
            await imported.point(maker.value + 1)

        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        maker.kill()
        with pytest.raises(ExporterGone):
            await asyncio.wait_for(task, PATIENCE)

    with Maker("sealed") as maker:
        asyncio.run(run(maker, ImportedTimeline(device, maker.descriptor, maker.file)))


def test_a_host_timeline_in_this_process(device, stream):
    with TimelineFile(device) as file, HostTimeline(file=file) as host:
        imported = ImportedTimeline(device, host.descriptor, file)
        assert repr(file) == f"<cuda_timelines.TimelineFile, descriptor {file.fileno()}>"
        later = imported.point(host.completed + 1)
        later.stream_wait(stream)
        assert host.signal().done() and later.wait(timeout=PATIENCE)
        assert imported.completed == host.completed
        beyond = imported.point(host.completed + 1)
        host.close()
        with pytest.raises(Poisoned):
            beyond.wait(timeout=PATIENCE)
    stream.sync()


def test_points_keep_their_import(device):
    with TimelineFile(device) as file, HostTimeline(file=file) as host:
        point = ImportedTimeline(device, host.descriptor, file).point(host.completed + 1)
        assert not point.wait(timeout=0.02)
        host.signal()
        assert point.wait(timeout=PATIENCE)


def test_descriptors_that_are_damaged(device):
    with TimelineFile(device) as file, HostTimeline(file=file) as host:
        good = host.descriptor
        for place in range(len(good)):
            bad = bytearray(good)
            bad[place] ^= 1
            with pytest.raises(Error, match="refused"):
                ImportedTimeline(device, bytes(bad), file)
        for bad in (b"", good[:-1], good + b"x"):
            with pytest.raises(Error, match="bytes, not"):
                ImportedTimeline(device, bad, file)
        for bad in (None, "text", bytearray(good), 5):
            with pytest.raises(TypeError):
                ImportedTimeline(device, bad, file)


def test_files_that_are_none(device):
    with TimelineFile(device) as file, HostTimeline(file=file) as host, open(os.devnull) as null:
        good = host.descriptor
        with pytest.raises(Error, match="memfd"):
            ImportedTimeline(device, good, null)
        with pytest.raises(Error, match="ImportedTimeline"):
            ImportedTimeline(device, good)
        with pytest.raises(OSError):
            ImportedTimeline(device, good, 1_000_000)
        with pytest.raises(ValueError, match="file descriptor"):
            ImportedTimeline(device, good, -1)
        for bad in ("file", 1.5, True, object()):
            with pytest.raises(TypeError):
                ImportedTimeline(device, good, bad)


def test_memory_of_this_process(device, stream):
    with TimelineMemory(device) as memory, Timeline(stream, memory=memory) as timeline:
        assert repr(memory) == "<cuda_timelines.TimelineMemory of device 0>"
        with pytest.raises(Error, match="this process"):
            ImportedTimeline(device, timeline.descriptor)
        with TimelineFile(device) as file, pytest.raises(TypeError):
            Timeline(stream, file=file, memory=memory)


def test_only_writable_files_are_writable(device):
    def write(file):
        access = mmap.PROT_READ | mmap.PROT_WRITE
        mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_SHARED, access).close()

    with TimelineFile(device) as file, pytest.raises(PermissionError):
        write(file)
    with TimelineFile(device, writable=True) as file:
        write(file)


def test_a_file_that_is_full(device):
    with TimelineFile(device) as file:
        timelines = [HostTimeline(file=file) for _ in range(63)]
        with pytest.raises(Error, match="no place left"):
            HostTimeline(file=file)
        assert len({timeline.descriptor for timeline in timelines}) == 63


def test_neither_or_both(device):
    with TimelineFile(device) as file:
        for arguments in ({}, {"device": device, "file": file}):
            with pytest.raises(TypeError, match="a device or a file"):
                HostTimeline(**arguments)
