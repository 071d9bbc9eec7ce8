"""Timelines for CUDA streams: counters that a stream or the host advances, and that hosts read
without a driver call, asyncio awaits, and other processes import.

See docs/python.md in the source tree. After a fork, every method raises Error: CUDA does not
survive a fork, so use the start method ``spawn``.
"""

from ._errors import DriverError, Error, ExporterGone, Poisoned
from ._native import (
    HostTimeline,
    ImportedTimeline,
    Point,
    Timeline,
    TimelineFile,
    TimelineMemory,
)

__all__ = [
    "DriverError",
    "Error",
    "ExporterGone",
    "HostTimeline",
    "ImportedTimeline",
    "Point",
    "Poisoned",
    "Timeline",
    "TimelineFile",
    "TimelineMemory",
]
