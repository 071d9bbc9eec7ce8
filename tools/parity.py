#!/usr/bin/env python3
"""Which public members of events and streams docs/parity.md does not name.

    tools/parity.py WHEEL...    wheels of torch and cuda-core, as `pip download --no-deps` gets them

Reads the Python sources and stubs in the wheels and runs nothing of them, so a wheel for another
system does. Exit status: 0 all members are named, 1 some are not, or a class was not found.
"""

import ast
import fnmatch
import re
import sys
import zipfile
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "parity.md"
# Where a class stands in a wheel, and the part of the page's headings under which its members are.
CLASSES = {
    "torch": [
        ("torch/_C/__init__.pyi", "Event", "torch.Event"),
        ("torch/_C/__init__.pyi", "_CudaEventBase", "torch.Event"),
        ("torch/cuda/streams.py", "Event", "torch.Event"),
        ("torch/_C/__init__.pyi", "Stream", "torch.Stream"),
        ("torch/_C/__init__.pyi", "_CudaStreamBase", "torch.Stream"),
        ("torch/cuda/streams.py", "Stream", "torch.Stream"),
        ("torch/mps/event.py", "Event", "torch.mps"),
        ("torch/mps/streams.py", "Stream", "torch.mps"),
    ],
    "cuda_core": [
        ("cuda/core/*/_event.pyi", "EventOptions", "cuda.core: Event"),
        ("cuda/core/*/_event.pyi", "Event", "cuda.core: Event"),
        ("cuda/core/*/_stream.pyi", "StreamOptions", "cuda.core: Stream"),
        ("cuda/core/*/_stream.pyi", "Stream", "cuda.core: Stream"),
    ],
}


def members(source, name):
    """Public methods and attributes of a class."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    found.add(item.name)
                elif isinstance(item, ast.AnnAssign):
                    found.add(item.target.id)
    return {member for member in found if not member.startswith("_") or member == "__cuda_stream__"}


def section(page, heading):
    """The words in backticks under the headings that contain the text."""
    parts = re.split(r"^## ", page, flags=re.MULTILINE)
    text = "".join(part for part in parts if heading in part.partition("\n")[0])
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", text))))


def main(wheels):
    page, missing = PAGE.read_text(), 0
    if not wheels:
        sys.exit(__doc__)
    for wheel in wheels:
        package, version = Path(wheel).name.split("-")[:2]
        with zipfile.ZipFile(wheel) as archive:
            for pattern, name, heading in CLASSES[package]:
                paths = fnmatch.filter(archive.namelist(), pattern)
                names = set().union(*(members(archive.read(path), name) for path in paths))
                if not names:
                    print(f"{package} {version}: no class {name} in {pattern}")
                    missing += 1
                for member in sorted(names - section(page, heading)):
                    print(f"{package} {version}: {name}.{member} is not under {heading}")
                    missing += 1
    print(f"{missing} not named")
    return missing > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
