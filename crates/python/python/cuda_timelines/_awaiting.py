"""``await point`` under asyncio."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Generator
from weakref import WeakKeyDictionary, WeakValueDictionary

from ._native import Notifier, Point


class _Loop:
    """What an event loop waits for. It is watched only while there is something."""

    def __init__(self) -> None:
        self.notifier = Notifier()
        # Weak: a future holds its loop, which is the key of `_loops`.
        self.futures: WeakValueDictionary[int, asyncio.Future[None]] = WeakValueDictionary()
        self.keys = itertools.count()

    def wait(self, loop: asyncio.AbstractEventLoop, point: Point) -> Generator[object, None, None]:
        key = next(self.keys)
        future: asyncio.Future[None] = loop.create_future()
        if not self.futures:
            loop.add_reader(self.notifier.fileno(), self.look)
        self.futures[key] = future
        try:
            if not self.notifier.add(key, point):
                yield from future
        finally:
            # Also if the task was cancelled.
            self.notifier.remove(key)
            self.futures.pop(key, None)
            if not self.futures:
                loop.remove_reader(self.notifier.fileno())

    def look(self) -> None:
        for key, error in self.notifier.ready():
            future = self.futures.get(key)
            if future is None or future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)


_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = WeakKeyDictionary()


def wait(point: Point) -> Generator[object, None, None]:
    loop = asyncio.get_running_loop()
    if not point.done():
        yield from _loop(loop).wait(loop, point)


def _loop(loop: asyncio.AbstractEventLoop) -> _Loop:
    found = _loops.get(loop)
    if found is None:
        found = _loops[loop] = _Loop()
    return found
