"""An event backend for LMCache: its protocol ``EventIPCBackend``, on timelines.

Call `install` in each process, the inference engine's and LMCache's, before they exchange events.
Only bytes travel. The processes need no shared ``/dev/shm``, no ``hostIPC`` and no common process
ids; they need one network namespace (containers of one pod, or ``hostNetwork``).

If the process that recorded an event ends first, waits of the host raise `ExporterGone` within
10 ms, and streams are released **as if the event were complete**: query the event before you trust
what a stream did after it.
"""

from __future__ import annotations

import re
from typing import Any, TypeGuard

from ._errors import Error
from ._native import TimelineEvent

__all__ = ["Event", "TimelineEventIPCBackend", "install"]


class Event:
    """An event of `TimelineEventIPCBackend`. Treat it as opaque."""

    __slots__ = ("native",)

    def __init__(self, native: TimelineEvent) -> None:
        self.native = native

    def wait(self, stream: Any = None) -> None:
        """Makes ``stream`` wait for the event; None is the current stream."""
        handle, device = _stream(stream, self.native.device_index)
        self.native.stream_wait(handle, device)

    def __repr__(self) -> str:
        return repr(self.native)


class TimelineEventIPCBackend:
    """LMCache's ``EventIPCBackend``. All its errors are a RuntimeError.

    Any thread may use it. An event that was never recorded is complete. Exported bytes name the
    last record, and stay as they are when the event is recorded again.
    """

    device_type = "cuda"

    def check_event_support(self, device: object) -> None:
        """Allocates what events of the device need, and tries it out."""
        TimelineEvent.check_support(_device(device))

    def create_event(self, device: object) -> Event:
        return Event(TimelineEvent(_device(device)))

    def export_event(self, event: object, device: object) -> bytes:
        return _native(event).to_bytes()

    def import_event(self, handle: bytes, device: object) -> Event:
        if not isinstance(handle, bytes):
            try:
                handle = bytes(memoryview(handle))
            except (TypeError, ValueError, BufferError):
                raise Error(f"an event handle is bytes, and not {type(handle)!r}") from None
        return Event(TimelineEvent.from_bytes(handle, _device(device)))

    def record_event(self, event: object, stream: object) -> None:
        """Records the event: two calls of the driver. The stream must be of the event's device, and
        must not capture."""
        native = _native(event)
        handle, device = _stream(stream, native.device_index)
        if device != native.device_index:
            raise Error(
                f"an event of device {native.device_index} cannot be recorded in a stream of "
                f"device {device}; create the event on the stream's device"
            )
        native.record(handle)

    def wait_event(self, event: object, stream: object) -> None:
        native = _native(event)
        native.stream_wait(*_stream(stream, native.device_index))

    def query_event(self, event: object) -> bool:
        return _native(event).query()

    def synchronize_event(self, event: object, device: object) -> None:
        """Blocks until the event is complete, with the GIL released."""
        _native(event).synchronize()


def install() -> TimelineEventIPCBackend:
    """Makes this LMCache's backend for CUDA in this process. For LMCache 0.5.6."""
    from lmcache.v1.platform import get_device_spec
    from lmcache.v1.platform.base.event_ipc import get_event_ipc_backend

    spec: Any = get_device_spec("cuda")
    if spec is None:
        raise Error("LMCache has no device of the type cuda here; is PyTorch built with CUDA?")
    backend = TimelineEventIPCBackend()
    spec._event_backend_cache = backend
    taken: object = get_event_ipc_backend("cuda")
    if taken is not backend:
        raise Error(
            "this LMCache does not take another event backend as 0.5.6 does; update cuda-timelines"
        )
    return backend


def _native(event: object) -> TimelineEvent:
    if type(event) is not Event:
        raise Error(
            f"an event of {TimelineEventIPCBackend.__name__}.create_event or import_event is "
            f"needed, and this is {type(event)!r}"
        )
    return event.native


def _torch(function: str, *arguments: object) -> Any:
    """What ``torch.cuda`` says is current."""
    try:
        import torch

        return getattr(torch.cuda, function)(*arguments)
    except Exception as error:
        raise Error(f"torch.cuda.{function} failed: {error!r}; name device and stream") from error


def _device(device: object) -> int:
    """The number of a device: an int, ``"cuda:0"`` or a ``torch.device``; without a number the
    current one."""
    index = device
    if isinstance(device, str):
        named = re.fullmatch("cuda(?::([0-9]{1,5}))?", device)
        index = -1 if named is None else None if named[1] is None else int(named[1])
    elif getattr(device, "type", None) == "cuda":
        index = getattr(device, "index", None)
    if index is None:
        index = _torch("current_device")
    if not _is_int(index, 1 << 16):
        raise Error(f"{device!r} is not a CUDA device")
    return index


def _stream(stream: Any, device: int) -> tuple[int, int]:
    """The handle of a ``torch.cuda.Stream``, and its device."""
    if stream is None:
        stream = _torch("current_stream", device)
    if _is_int(stream, 1 << 64):
        return stream, device
    handle, device = getattr(stream, "cuda_stream", None), getattr(stream, "device_index", device)
    if not _is_int(handle, 1 << 64) or not _is_int(device, 1 << 16):
        raise Error(f"a stream is a torch.cuda.Stream or its handle, and not {stream!r}")
    return handle, device


def _is_int(value: object, end: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < end
