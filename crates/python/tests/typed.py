"""How the types are meant: mypy checks this file, and expects an error where one is ignored."""

import socket

from cuda_timelines import (
    DriverError,
    HostTimeline,
    ImportedTimeline,
    Point,
    Timeline,
    TimelineFile,
)


class Stream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 5)


class Device:
    device_id = 0


class Index:
    index = 0


async def uses(stream: Stream, device: Device) -> None:
    with Timeline(stream) as timeline, HostTimeline(device) as host:
        point: Point = timeline.signal()
        done: bool = point.wait(timeout=1, spin=True)
        await point
        point.stream_wait(5)
        host.wait_ahead(stream, host.completed + 1)
        print(done)
    with TimelineFile(Index()) as file, Timeline(stream, file=file) as shared:
        descriptor = shared.descriptor
        assert descriptor is not None
        ImportedTimeline(0, descriptor, file)
        ImportedTimeline(stream, descriptor, socket.socket())
    error = DriverError("text")
    code: int = error.code
    print(code, error.name.lower())


def misuses(stream: Stream) -> None:
    Timeline("stream")  # type: ignore[arg-type]
    Timeline(None)  # type: ignore[arg-type]
    Timeline(stream).signal().wait("1")  # type: ignore[arg-type]
    HostTimeline("cuda:0")  # type: ignore[arg-type]
    ImportedTimeline(0, "text")  # type: ignore[arg-type]
