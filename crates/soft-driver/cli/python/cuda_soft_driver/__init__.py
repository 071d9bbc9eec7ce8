"""A CUDA driver in software, for tests without a GPU.

``library()`` is the path of the driver: the file of the command ``cuda-soft-driver``.
"""

import shutil
import sys
import sysconfig
from pathlib import Path

__all__ = ["library"]


def library() -> Path:
    """The file that is both the command and the library."""
    beside = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    # Where pip was told to put packages into a folder of its own.
    beside.append(Path(__file__).resolve().parent.parent / "bin")
    for folder in beside:
        path = folder / "cuda-soft-driver"
        if path.is_file():
            return path.resolve()
    found = shutil.which("cuda-soft-driver")
    if found is None:
        raise FileNotFoundError("the command cuda-soft-driver is not installed")
    return Path(found).resolve()
