"""Finds missing order between the streams of a CUDA program that nobody changed.

``command()`` is the path of the command ``cuda-order-check``, which ``python -m cuda_order_check``
becomes.
"""

import shutil
import sys
import sysconfig
from pathlib import Path

__all__ = ["command"]


def command() -> Path:
    """The file of the command, which is also the library that it puts into programs."""
    beside = [Path(sysconfig.get_path("scripts")), Path(sys.executable).parent]
    # Where pip was told to put packages into a folder of its own, or into that of the user.
    beside.append(Path(__file__).resolve().parent.parent / "bin")
    beside.append(Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))))
    for folder in beside:
        path = folder / "cuda-order-check"
        if path.is_file():
            return path.resolve()
    found = shutil.which("cuda-order-check")
    if found is None:
        raise FileNotFoundError("the command cuda-order-check is not installed")
    return Path(found).resolve()
