"""Kernels in Python: functions that stand in for what a program launches."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

_LAUNCH_FAILED = 719
# How long the end of a test, or of the interpreter, waits for kernels that still run.
_LIMIT = 5.0
_THREAD = "cuda-soft-driver-kernels"


class _Launch(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("parameter_count", ctypes.c_uint32),
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
    ]


_Function = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.POINTER(_Launch), ctypes.c_void_p)

# Of the device: the host must not follow them.
_ADDRESSES = (ctypes._Pointer, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_wchar_p)


class _Failed(Exception):
    """The driver has refused an access, and printed why."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the driver returned {code}")
        self.code = code


class Launch:
    """A launch, which is valid until the function returns."""

    def __init__(self, library: ctypes.CDLL, launch: Any, types: Sequence[Any]) -> None:
        self._library, self._launch = library, launch
        # The function may have started threads that use the launch.
        self._lock = threading.Lock()
        of = launch.contents
        self.grid: tuple[int, ...] = tuple(of.grid)
        self.block: tuple[int, ...] = tuple(of.block)
        self.shared_bytes: int = of.shared_bytes
        #: The values of the parameters: of pointers the addresses, of structures the structures.
        self.parameters: tuple[Any, ...] = tuple(
            self._value(kind, of.parameters[index]) for index, kind in enumerate(types)
        )

    @staticmethod
    def _value(kind: Any, address: int) -> Any:
        kind = ctypes.c_size_t if issubclass(kind, _ADDRESSES) else kind
        value = kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(kind)))
        return value.value if isinstance(value, ctypes._SimpleCData) else value

    def _call(self, name: str, address: int, *arguments: Any) -> None:
        function = getattr(self._library, f"cuda_soft_driver_kernel_{name}")
        with self._lock:
            if self._launch is None:
                raise RuntimeError(f"{name} after the launch: its function has returned")
            code = function(self._launch, ctypes.c_uint64(address), *arguments)
        if code:
            raise _Failed(code)

    def _end(self) -> None:
        with self._lock:
            self._launch = None

    def load(self, address: int, size: int) -> bytes:
        """The bytes at an address."""
        memory = ctypes.create_string_buffer(size)
        self._call("load", address, memory, ctypes.c_size_t(size))
        return memory.raw

    def store(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Writes bytes to an address."""
        data = bytes(data)
        self._call("store", address, ctypes.c_char_p(data), ctypes.c_size_t(len(data)))

    def reads(self, address: int, size: int) -> None:
        """In ``accesses``: declares that the launch reads these bytes."""
        self._call("reads", address, ctypes.c_size_t(size))

    def writes(self, address: int, size: int) -> None:
        """In ``accesses``: declares that the launch writes these bytes."""
        self._call("writes", address, ctypes.c_size_t(size))


class Kernels:
    """The kernels that are registered with a driver, which live until the process ends."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        #: To whom kernels belong that are added from now on, for messages.
        self.owner = ""
        self._errors: list[str] = []
        # What the driver may call. A launch may be under way when its kernel is replaced or
        # removed, and a graph may launch it later: these are never freed.
        self._kept: list[Any] = []
        self._names: set[str] = set()
        # What runs, and the thread that waits for what was launched: see `finish`.
        self._changed = threading.Condition()
        self._running: list[str] = []
        self._requests: queue.SimpleQueue[threading.Event] | None = None
        self._done = threading.Event()
        self._done.set()
        self._process = os.getpid()
        # It also keeps this object alive, which the driver calls.
        atexit.register(self._exit)

    def add(
        self,
        name: str,
        run: Callable[[Launch], object],
        parameters: Sequence[Any] = (),
        accesses: Callable[[Launch], object] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a kernel is a string, and not {name!r}")
        if "\0" in name:
            raise ValueError(f"the name of a kernel has a zero byte: {name!r}")
        if not callable(run):
            raise TypeError(f"the kernel {name!r} is not a function: {run!r}")
        if accesses is not None and not callable(accesses):
            raise TypeError(f"accesses of the kernel {name!r} is not a function: {accesses!r}")
        types = tuple(parameters)
        for index, kind in enumerate(types):
            if not _is_type(kind):
                raise TypeError(
                    f"parameter {index} of the kernel {name!r} has no type of ctypes: {kind!r}"
                )
        sizes = (ctypes.c_size_t * len(types))(*map(ctypes.sizeof, types))
        title = f"the kernel {name!r}" + (f" of {self.owner}" if self.owner else "")
        functions = self._wrap(title, run, types), self._wrap(title, accesses, types)
        self._kept.append(functions)
        if self._requests is None:
            self._requests = queue.SimpleQueue()
            # A thread cannot be started while the interpreter exits.
            threading.Thread(
                target=self._synchronize, args=(self._requests,), name=_THREAD, daemon=True
            ).start()
        code = self._library.cuda_soft_driver_kernel(
            name.encode(), sizes, ctypes.c_size_t(len(types)), *functions, None
        )
        if code:
            raise ValueError(f"the driver returned {code} for the kernel {name!r}")
        self._names.add(name)

    def _wrap(
        self, title: str, function: Callable[[Launch], object] | None, types: Sequence[Any]
    ) -> Any:
        if function is None:
            return None

        def call(launch: Any, _: int | None) -> int:
            with self._changed:
                self._running.append(title)
            given = None
            try:
                given = Launch(self._library, launch, types)
                function(given)
            except BaseException as error:
                self._errors.append(f"{title} failed:\n{traceback.format_exc()}")
                return error.code if isinstance(error, _Failed) else _LAUNCH_FAILED
            finally:
                if given is not None:
                    given._end()
                with self._changed:
                    self._running.remove(title)
                    self._changed.notify_all()
            return 0

        return _Function(call)

    def take_errors(self) -> str:
        """The tracebacks of functions that have failed since the last time."""
        errors = self._errors[:]
        del self._errors[: len(errors)]
        return "\n".join(errors)

    def remove_all(self) -> None:
        for name in self._names:
            self._library.cuda_soft_driver_kernel(
                name.encode(), None, ctypes.c_size_t(0), None, None, None
            )
        self._names.clear()

    def finish(self) -> str:
        """Removes all kernels and waits for a few seconds until all launches are done. Returns
        which kernels still run."""
        if self._requests is None or os.getpid() != self._process:
            return ""
        self.remove_all()
        end = time.monotonic() + _LIMIT
        self._done = threading.Event()
        self._requests.put(self._done)
        self._done.wait(_LIMIT)
        with self._changed:
            # In a context that has failed, kernels may run after it was synchronized.
            self._changed.wait_for(lambda: not self._running, max(0, end - time.monotonic()))
            return ", ".join(self._running)

    def _synchronize(self, requests: queue.SimpleQueue[threading.Event]) -> None:
        """Waits for the work of primary contexts: a launch may be about to call Python."""
        cuda, count, active = self._library, ctypes.c_int(), ctypes.c_int()
        flags, context = ctypes.c_uint(), ctypes.c_void_p()
        while True:
            done = requests.get()
            # The driver lacks what a setting removed.
            with contextlib.suppress(AttributeError):
                # Without the driver's initialisation there are no contexts.
                if cuda.cuDeviceGetCount(ctypes.byref(count)):
                    count.value = 0
                for device in range(count.value):
                    of = ctypes.byref(flags), ctypes.byref(active)
                    cuda.cuDevicePrimaryCtxGetState(device, *of)
                    if active and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
                        cuda.cuCtxSetCurrent(context)
                        cuda.cuCtxSynchronize()
                        cuda.cuCtxSetCurrent(None)
                        cuda.cuDevicePrimaryCtxRelease_v2(device)
            done.set()

    def _exit(self) -> None:
        """At the interpreter's exit. A thread that calls Python later would end the process."""
        running = self.finish()
        if not running and not self._done.is_set():
            # A stream waits for ever. What it would do after that is left out in a failed context.
            self._library.cuda_soft_driver_control(b"fail=719", None, ctypes.c_size_t(0))
            running = self.finish()
        if running:
            print(f"cuda-soft-driver: at exit these still run: {running}", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)


def _is_type(kind: object) -> bool:
    try:
        return isinstance(kind, type) and kind is not ctypes.py_object and ctypes.sizeof(kind) > 0
    except TypeError:
        return False
