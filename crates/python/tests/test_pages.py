"""The fragments of the pages run as they stand, one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import PATIENCE

CRATE = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "page",
    [CRATE / "README.md", CRATE.parents[1] / "docs" / "python.md"],
    ids=lambda page: page.name,
)
def test_a_page_pastes(page, tmp_path):
    fragments = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert fragments
    program = tmp_path / "page.py"
    program.write_text("\n".join(fragments))
    subprocess.run([sys.executable, program], check=True, timeout=PATIENCE, env={**os.environ})
