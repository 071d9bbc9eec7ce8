"""Kernels in Python: functions that stand in for what a program launches."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Sequence
from typing import Any

_LAUNCH_FAILED = 719


class _Launch(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("parameter_count", ctypes.c_uint32),
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
    ]


_Function = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.POINTER(_Launch), ctypes.c_void_p)


class _Failed(Exception):
    """The driver has refused an access, and printed why."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the driver returned {code}")
        self.code = code


class Launch:
    """A launch, which is valid until the function returns."""

    def __init__(self, library: ctypes.CDLL, launch: Any, types: Sequence[Any]) -> None:
        self._library, self._launch = library, launch
        of = launch.contents
        self.grid: tuple[int, ...] = tuple(of.grid)
        self.block: tuple[int, ...] = tuple(of.block)
        self.shared_bytes: int = of.shared_bytes
        #: The values of the parameters; of structures, the structures.
        self.parameters: tuple[Any, ...] = tuple(
            self._value(kind, of.parameters[index]) for index, kind in enumerate(types)
        )

    @staticmethod
    def _value(kind: Any, address: int) -> Any:
        value = kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(kind)))
        return getattr(value, "value", value)

    def _call(self, name: str, address: int, *arguments: Any) -> None:
        function = getattr(self._library, f"cuda_soft_driver_kernel_{name}")
        if code := function(self._launch, ctypes.c_uint64(address), *arguments):
            raise _Failed(code)

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
    """The kernels that are registered with a driver."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._errors: list[str] = []
        # A launch may still be under way when its kernel is replaced or removed.
        self._kept: list[Any] = []
        self._names: set[str] = set()

    def add(
        self,
        name: str,
        run: Callable[[Launch], object],
        parameters: Sequence[Any] = (),
        accesses: Callable[[Launch], object] | None = None,
    ) -> None:
        types = tuple(parameters)
        sizes = (ctypes.c_size_t * len(types))(*map(ctypes.sizeof, types))
        functions = self._wrap(run, types), self._wrap(accesses, types)
        self._kept.append(functions)
        code = self._library.cuda_soft_driver_kernel(
            name.encode(), sizes, ctypes.c_size_t(len(types)), *functions, None
        )
        if code:
            raise ValueError(f"the driver returned {code} for the kernel {name!r}")
        self._names.add(name)

    def _wrap(self, function: Callable[[Launch], object] | None, types: Sequence[Any]) -> Any:
        if function is None:
            return None

        def call(launch: Any, _: int | None) -> int:
            try:
                function(Launch(self._library, launch, types))
            except _Failed as error:
                self._errors.append(traceback.format_exc())
                return error.code
            except BaseException:
                self._errors.append(traceback.format_exc())
                return _LAUNCH_FAILED
            return 0

        return _Function(call)

    def take_errors(self) -> str:
        """The tracebacks of functions that have failed since the last time."""
        errors, self._errors = self._errors, []
        return "\n".join(errors)

    def remove_all(self) -> None:
        for name in self._names:
            self._library.cuda_soft_driver_kernel(
                name.encode(), None, ctypes.c_size_t(0), None, None, None
            )
        self._names.clear()
