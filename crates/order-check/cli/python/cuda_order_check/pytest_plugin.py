"""The pytest plugin: ``pytest --cuda-order-check`` runs the tests under the command."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from cuda_order_check import command

_SETTINGS = "CUDA_ORDER_CHECK"
# The process that a pytest has started again under the checker, and its folder: for nobody else.
_STARTED = "CUDA_ORDER_CHECK_PYTEST"
_FOLDER = "cuda-order-check-"
_ACTIVE = pytest.StashKey["Checked"]()
_LATE = pytest.StashKey[str]()


def _flush() -> Any:
    """The function of the checker's library in this process that has findings written; ``None``
    without the library."""
    return getattr(ctypes.CDLL(None), "cuda_order_check_flush", None)


class Checked:
    """The findings of this process and of its children: each has a file of JSON lines."""

    def __init__(self, folder: Path) -> None:
        self._flush = _flush()
        if self._flush is None:
            raise OSError("the loader does not take the library into this Python")
        # Launches have stacks from here on.
        self._flush()
        # Here, as the command may have refused its settings before.
        folder.mkdir(mode=0o700)
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.findings = 0

    def take(self) -> str:
        """What was found since the last time."""
        # A finding about a kernel would wait for the kernel's next launch.
        self._flush()
        texts = []
        for path in sorted(self._folder.glob("found-*")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                new = file.read()
            # Of a child, the last line may not have come to its end.
            new = new[: new.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(new)
            found = (json.loads(line) for line in new.splitlines())
            texts += [each["text"] for each in found if each.get("severity") == "error"]
        self.findings += len(texts)
        return "\n\n".join(texts)

    @property
    def processes(self) -> int:
        """How many have called the driver."""
        return len(self._read)

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _new_folder() -> Path:
    """Where a folder can be made."""
    # A setting cannot have a comma, nor white space at its end.
    base = tempfile.gettempdir()
    return Path("/tmp" if "," in base else base, _FOLDER + secrets.token_hex(8))


def _settings(folder: Path) -> tuple[str, str]:
    """The settings with a file for this plugin, and that of the user which it replaces."""
    given = os.environ.get(_SETTINGS, "")
    pairs = [pair.strip() for pair in given.split(",") if pair.strip()]
    files = [pair.partition("=")[2] for pair in pairs if pair.startswith("json=")]
    unused = files[-1] if files and not Path(files[-1]).parent.name.startswith(_FOLDER) else ""
    pairs = [pair for pair in pairs if not pair.startswith("json=")]
    return ",".join([*pairs, f"json={folder}/found-%p"]), unused


def _start_again(config: pytest.Config) -> None:
    """This process becomes the command, and that becomes this pytest."""
    folder = _new_folder()
    settings, unused = _settings(folder)
    program = [sys.executable, *sys.orig_argv[1:]]
    if _flush() is None:
        # The failed test has the text.
        settings += "" if "log=" in settings else f",log={folder}/log-%p"
        program = [str(command()), "run", "--", *program]
    os.environ[_SETTINGS] = settings
    os.environ[_STARTED] = f"{os.getpid()}:{folder}"
    # Standard output and error are those of before.
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    if unused:
        print(f"cuda-order-check: json={unused} is not used: findings fail the tests", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program[0], program)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cuda-order-check")
    group.addoption(
        "--cuda-order-check",
        action="store_true",
        help="run under the command cuda-order-check: accesses that nothing orders fail the test that "
        "makes them; the variable CUDA_ORDER_CHECK has settings, such as class=+pools",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before anything is imported that opens the driver.
    options = early_config.known_args_namespace
    if not options.cuda_order_check:
        return
    if getattr(options, "cuda_soft_driver", False):
        raise pytest.UsageError("--cuda-soft-driver checks by itself, without --cuda-order-check")
    process, _, folder = os.environ.get(_STARTED, "").partition(":")
    try:
        if process != str(os.getpid()):
            if "PYTEST_XDIST_WORKER" not in os.environ:
                _start_again(early_config)
            # Its controller talks to this process. The library reads its settings later, when the
            # first test opens the driver.
            folder = str(_new_folder())
            os.environ[_SETTINGS], _ = _settings(Path(folder))
        early_config.stash[_ACTIVE] = Checked(Path(folder))
    except OSError as error:
        raise pytest.UsageError(f"--cuda-order-check: {error}") from None


def pytest_unconfigure(config: pytest.Config) -> None:
    checked = config.stash.get(_ACTIVE, None)
    if checked is not None:
        checked.remove()


def _checked(item: pytest.Item, when: str) -> Generator[None, Any, Any]:
    """Fails a part of a test for what was found in it."""
    checked = item.config.stash.get(_ACTIVE, None)
    if checked is None:
        return (yield)
    try:
        result = yield
    except pytest.skip.Exception:
        if found := checked.take():
            raise pytest.fail.Exception(found, pytrace=False) from None
        raise
    except BaseException:
        # It has failed by itself, too, which comes first.
        if found := checked.take():
            item.add_report_section(when, "cuda-order-check", found)
        raise
    if found := checked.take():
        pytest.fail(found, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _checked(item, "setup"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _checked(item, "call"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from _checked(item, "teardown"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    checked = session.config.stash.get(_ACTIVE, None)
    if checked is not None and (late := checked.take()):
        session.config.stash[_LATE] = late
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    checked = config.stash.get(_ACTIVE, None)
    if checked is None:
        return
    if late := config.stash.get(_LATE, ""):
        terminalreporter.section("found after the tests", red=True)
        terminalreporter.write_line(late)
    # The workers of pytest-xdist have findings of their own.
    if not config.getoption("numprocesses", None):
        count, processes = checked.findings, checked.processes
        findings = "1 finding" if count == 1 else f"{count} findings"
        called = "1 process" if processes == 1 else f"{processes} processes"
        terminalreporter.write_line(f"cuda-order-check: {findings}; {called} called the driver")
