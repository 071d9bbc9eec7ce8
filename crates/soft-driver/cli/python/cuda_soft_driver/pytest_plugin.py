"""The pytest plugin: ``pytest --cuda-soft-driver`` runs the tests on the software driver."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cuda_soft_driver import library
from cuda_soft_driver.kernels import Kernels, Launch

_SETTINGS = "CUDA_SOFT_DRIVER"
# Settings that may appear more than once.
_REPEATED = ("fault", "without", "null", "order_suppress")
# How the name of a folder begins that this plugin or the command has made.
_FOLDER = "cuda-soft-driver-"
_ACTIVE = pytest.StashKey["CudaSoftDriver"]()
# What kernels raised after the last test.
_LATE = pytest.StashKey[str]()
# A wrong setting ends the process at the first call of the driver, so another one makes it.
_FIRST_CALL = """
import ctypes, sys
ctypes.CDLL(sys.argv[1]).cuDriverGetVersion(ctypes.byref(ctypes.c_int()))
"""


class CudaSoftDriver:
    """The software driver of this process."""

    def __init__(self, settings: str) -> None:
        # A setting cannot have a comma or white space.
        base = tempfile.gettempdir()
        base = "/tmp" if "," in base or len(base.split()) != 1 else base
        self._folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=base))
        self._read: dict[Path, int] = {}
        links = self._folder / "lib"
        links.mkdir()
        for name in ("libcuda.so.1", "libcuda.so"):
            (links / name).symlink_to(library())
        # Misuse fails the test that makes it, and not the whole run.
        pairs = {
            "misuse": "misuse=error",
            "order": "order=report",
            "order_backtraces": "order_backtraces=on",
        }
        for pair in f"{os.environ.get(_SETTINGS, '')},{settings}".replace(",", " ").split():
            name = pair.partition("=")[0]
            # The last pair of a name counts, except for those that may appear more than once.
            pairs[pair if name in _REPEATED else name] = pair
        # This plugin reads the log, as text. That of a pytest around this one, such as the
        # controller of pytest-xdist, is for that one.
        log = Path(pairs.pop("order_log", "").partition("=")[2])
        pairs.pop("order_format", None)
        # An abort would end the whole run, and what it prints is in the output that pytest has
        # captured, and lost.
        for name, milder in (("order", "report"), ("misuse", "error")):
            if pairs[name] == f"{name}=abort":
                pairs[name] = f"{name}={milder}"
        if pairs["order"] == "order=off":
            pairs = {name: pair for name, pair in pairs.items() if not pair.startswith("order_")}
        else:
            pairs["order_log"] = f"order_log={self._folder}/order-%p"
        self.unused_log = "" if log.parent.name.startswith(_FOLDER) else log.name and str(log)
        chosen = ",".join(pairs.values())
        first = subprocess.run(
            [sys.executable, "-c", _FIRST_CALL, str(library())],
            env={**os.environ, _SETTINGS: chosen},
            capture_output=True,
            text=True,
        )
        if first.returncode:
            self._remove()
            raise ValueError(first.stderr.strip())
        os.environ[_SETTINGS] = chosen
        # For children. This process finds the name inside the library that it has opened.
        others = os.environ.get("LD_LIBRARY_PATH")
        os.environ["LD_LIBRARY_PATH"] = f"{links}:{others}" if others else str(links)
        for name in ("CUDA_EVENTS_DRIVER", "NUMBA_CUDA_DRIVER"):
            os.environ.pop(name, None)
        self._library = ctypes.CDLL(str(links / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
        self._kernels = Kernels(self._library)
        self._misuses = 0

    def control(self, command: str) -> str:
        """Executes a text command, such as ``leaks`` or ``fail=719``; see
        ``SoftDriver::control`` of the crate cuda-soft-driver."""
        room = 1 << 20
        answer = ctypes.create_string_buffer(room)
        code = self._library.cuda_soft_driver_control(
            command.encode(), answer, ctypes.c_size_t(room)
        )
        text = answer.value.decode()
        if code:
            raise ValueError(text)
        return text

    def inject(self, fault: str) -> None:
        """Makes calls fail, such as ``cuEventRecord*:nth=2:code=2``, until the test ends."""
        self.control(f"fault={fault}")

    def clear(self) -> None:
        """Removes all faults and kernels."""
        self.control("clear")
        self._kernels.remove_all()

    def kernel(
        self,
        name: str,
        run: Callable[[Launch], object],
        parameters: Sequence[Any] = (),
        accesses: Callable[[Launch], object] | None = None,
    ) -> None:
        """Registers a function that stands in for a kernel until the test ends.

        Modules and libraries can be loaded from any image as soon as a kernel is registered.
        ``parameters`` are types of ctypes, ``accesses`` declares what a launch reads and writes.
        A function that raises fails the test, and the launch's context. It runs in stream order on
        a thread of the driver, and needs the interpreter's lock (GIL): a blocking call of the
        driver that does not release the lock, such as by ``ctypes.PyDLL``, never returns.
        At the end of the test the fixture waits five seconds for kernels that still run."""
        self._kernels.add(name, run, parameters, accesses)

    def take_kernel_errors(self) -> str:
        """The tracebacks of kernels that have raised since the last time. They no longer fail the
        test."""
        return self._kernels.take_errors()

    def leaks(self) -> str:
        """What is alive, with the calls that made it."""
        return self.control("leaks")

    @property
    def devices(self) -> int:
        """The number of devices, which the setting ``devices=N`` chooses for the whole run."""
        count = ctypes.c_int()
        for code in (self._library.cuInit(0), self._library.cuDeviceGetCount(ctypes.byref(count))):
            if code == 100:
                return 0
            if code:
                raise RuntimeError(f"the driver returned {code}")
        return count.value

    def take_misuses(self) -> str:
        """The calls since the last time that are undefined on a real driver. They no longer fail the
        test."""
        lines = self.control("misuses").splitlines()
        new, self._misuses = lines[self._misuses :], len(lines)
        return "\n".join(f"misuse: {line}" for line in new)

    def _take_errors(self) -> str:
        """What fails a test and its fixtures: tracebacks of kernels, and misuse."""
        return "\n".join(filter(None, (self.take_kernel_errors(), self.take_misuses())))

    def _take_reports(self) -> str:
        """What fails a test: errors and findings."""
        return "\n".join(filter(None, (self._take_errors(), self.take_findings())))

    def take_findings(self) -> str:
        """What the order checker has found since the last time, in this process and in children."""
        findings = []
        for path in sorted(self._folder.glob("order-*")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read().decode(errors="replace")
                self._read[path] = file.tell()
            if "error: " in text:
                findings.append(text[text.index("error: ") :])
        lines = "\n".join(findings).splitlines()
        return "\n".join(line for line in lines if line)

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cuda-soft-driver")
    group.addoption(
        "--cuda-soft-driver",
        action="store_true",
        help="run on the CUDA driver in software, without a GPU; accesses that nothing orders fail "
        "the test that makes them",
    )
    group.addoption(
        "--cuda-soft-driver-settings",
        metavar="TEXT",
        default="",
        help="its settings beside those of the variable CUDA_SOFT_DRIVER, such as "
        "devices=2,version=12.4",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before anything is imported that opens the driver.
    options = early_config.known_args_namespace
    if options.cuda_soft_driver:
        try:
            driver = CudaSoftDriver(options.cuda_soft_driver_settings)
        except ValueError as wrong:
            raise pytest.UsageError(str(wrong)) from None
        early_config.stash[_ACTIVE] = driver
        if driver.unused_log:
            text = f"order_log={driver.unused_log} is not used: findings fail the tests"
            early_config.issue_config_time_warning(pytest.PytestConfigWarning(text), stacklevel=2)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.cuda_soft_driver_settings and not config.option.cuda_soft_driver:
        raise pytest.UsageError("--cuda-soft-driver-settings needs --cuda-soft-driver")


def pytest_unconfigure(config: pytest.Config) -> None:
    driver = config.stash.get(_ACTIVE, None)
    if driver is not None:
        driver._remove()


def _report(item: pytest.Item, when: str, take: Callable[[], str]) -> Generator[None, Any, Any]:
    """Fails a part of a test for what happened in it."""
    try:
        result = yield
    except pytest.skip.Exception:
        if report := take():
            raise pytest.fail.Exception(report, pytrace=False) from None
        raise
    except BaseException:
        # It has failed by itself, too, which comes first.
        if report := take():
            item.add_report_section(when, "cuda-soft-driver", report)
        raise
    if report := take():
        pytest.fail(report, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    driver = item.config.stash.get(_ACTIVE, None)
    if driver is None:
        return (yield)
    # Of fixtures, or of what ran between tests.
    driver.take_findings()
    return (yield from _report(item, "call", driver._take_reports))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    driver = item.config.stash.get(_ACTIVE, None)
    if driver is None:
        return (yield)
    return (yield from _report(item, "teardown", driver._take_errors))


def pytest_sessionfinish(session: pytest.Session) -> None:
    driver = session.config.stash.get(_ACTIVE, None)
    if driver is not None and (late := driver.take_kernel_errors()):
        session.config.stash[_LATE] = late
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if late := config.stash.get(_LATE, ""):
        terminalreporter.section("kernels that failed after their tests", red=True)
        terminalreporter.write_line(late)


@pytest.fixture
def cuda_soft_driver(request: pytest.FixtureRequest) -> Iterator[CudaSoftDriver]:
    """The software driver; skips the test without --cuda-soft-driver. Its faults and kernels end
    with the test."""
    driver = request.config.stash.get(_ACTIVE, None)
    if driver is None:
        pytest.skip("needs --cuda-soft-driver")
    driver._kernels.owner = request.node.nodeid
    yield driver
    driver.clear()
    if running := driver._kernels.finish():
        pytest.fail(f"these still run: {running}", pytrace=False)


@pytest.fixture
def cuda_devices(cuda_soft_driver: CudaSoftDriver) -> range:
    """The ordinals of the devices."""
    return range(cuda_soft_driver.devices)
