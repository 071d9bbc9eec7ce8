"""The wheel of the command, with the software driver in the place of NVIDIA's; crates/order-check/cli/test runs it."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

PROGRAM = """
import ctypes
import sys

driver = ctypes.CDLL("libcuda.so.1")

def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    assert code == 0, (name, code)

def new(name, *arguments):
    made = ctypes.c_void_p()
    call(name, ctypes.byref(made), *arguments)
    return made

def upload(memory, stream):
    call("cuMemsetD8Async", memory, 1, ctypes.c_size_t(64), stream)

def both(wait):
    call("cuInit", 0)
    call("cuCtxSetCurrent", new("cuDevicePrimaryCtxRetain", 0))
    first, second = new("cuStreamCreate", 1), new("cuStreamCreate", 1)
    memory = new("cuMemAlloc_v2", ctypes.c_size_t(64))
    upload(memory, first)
    if wait:
        event = new("cuEventCreate", 2)
        call("cuEventRecord", event, first)
        call("cuStreamWaitEvent", second, event, 0)
    upload(memory, second)
    call("cuCtxSynchronize")
"""
TESTS = (
    PROGRAM
    + """
def test_ordered():
    both(True)

def test_unordered():
    both(False)

def test_after_it():
    pass
"""
)


def run(pytester, *arguments):
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


@pytest.mark.parametrize("command", [["cuda-order-check"], [sys.executable, "-m", "cuda_order_check"]])
def test_the_command(tmp_path, command):
    program = tmp_path / "program.py"
    for wait, code, found in [(True, 0, 0), (False, 7, 1)]:
        program.write_text(PROGRAM + f"both({wait})\n")
        done = subprocess.run(
            [*command, "run", "--exitcode", "7", "--", sys.executable, program], capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        assert done.stderr.count("error: missing order: ") == found
        s = "" if found == 1 else "s"
        assert f"order check: {found} finding{s} in " in done.stderr
    done = subprocess.run([*command, "--version"], capture_output=True, text=True)
    assert done.stdout.startswith("cuda-order-check 0.")


def test_a_finding_fails_the_test_that_made_it(pytester):
    path = pytester.makepyfile(test_races=TESTS)
    result = run(pytester, "--cuda-order-check", path)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*test_unordered*",
            "missing order: test_races.py:28 (both) overwrites what test_races.py:23 (both) writes, *",
            "  writes   cuMemsetD8Async in stream *",
            "cuda-order-check: 1 finding; 1 process called the driver",
        ]
    )
    # With CI in the environment pytest's summary at the end has the whole text, too.
    text, _, _ = result.stdout.str().partition("short test summary info")
    assert text.count("  class    copy") == 1, "nothing is shown twice"
    result.stderr.fnmatch_lines(["cuda-order-check: the driver's library is */libcuda.so.1"])
    # Without the option nothing is changed.
    result = run(pytester, path)
    result.assert_outcomes(passed=3)
    assert "cuda-order-check:" not in result.stdout.str() + result.stderr.str()


def test_settings_and_options_are_kept(pytester, monkeypatch):
    """Also those of an interpreter, and of a pytest that is a module."""
    path = pytester.makepyfile(TESTS + "\ndef test_flags():\n    assert sys.flags.utf8_mode == 1\n")
    (pytester.path / "left-out").write_text("function:upload\n")
    monkeypatch.setenv("CUDA_ORDER_CHECK", f"suppressions={pytester.path}/left-out,log={pytester.path}/log")
    program = ["-X", "utf8", "-m", "pytest", "-p", "no:cacheprovider", "--cuda-order-check", "-k", "flags or unordered", path]
    result = pytester.run(sys.executable, *program)
    result.assert_outcomes(passed=2, deselected=2)
    assert "1 suppressed" in (pytester.path / "log").read_text()
    monkeypatch.setenv("CUDA_ORDER_CHECK", "class=reads")
    result = run(pytester, "--cuda-order-check", path)
    assert result.ret == 2
    result.stderr.fnmatch_lines(["cuda-order-check: `class=reads`: begin with + or -*"])


def test_below_the_command(pytester):
    path = pytester.makepyfile(test_races=TESTS)
    arguments = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--cuda-order-check", path]
    result = pytester.run("cuda-order-check", "run", "--json", "all.jsonl", "--log", "log", "--", *arguments)
    result.assert_outcomes(passed=2, failed=1)
    result.stderr.fnmatch_lines([f"cuda-order-check: json={pytester.path}/all.jsonl is not used: findings fail the tests"])
    assert "error: missing order" in (pytester.path / "log").read_text()


def test_children_and_fixtures(pytester):
    child = pytester.makepyfile(child=TESTS)
    path = pytester.makepyfile(
        f"""
        import subprocess, sys
        import pytest

        def below():
            code = "import sys; sys.path.insert(0, {str(child.parent)!r}); import child; child.both(False)"
            subprocess.run([sys.executable, "-c", code], check=True)

        def test_a_child():
            below()

        def test_that_fails():
            below()
            assert False, "by itself"

        def test_that_skips():
            below()
            pytest.skip("not here")

        @pytest.fixture
        def early():
            below()

        @pytest.fixture
        def late():
            yield
            below()

        def test_early(early):
            pass

        def test_late(late):
            pass

        def test_good():
            pass
        """
    )
    result = run(pytester, "--cuda-order-check", path)
    result.assert_outcomes(passed=2, failed=3, errors=2)
    result.stdout.fnmatch_lines(
        ["*AssertionError: by itself", "*cuda-order-check call*", "missing order: *", "*: 5 findings; 5 processes called *"]
    )


def test_a_pytest_below_another_has_its_own_findings(pytester):
    """As the workers of pytest-xdist, which inherit the environment of their controller."""
    tests = pytester.makepyfile(both=TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--cuda-order-check", str(tests)]
    path = pytester.makepyfile(
        f"""
        import subprocess, os
        import pytest

        @pytest.mark.parametrize("worker", [False, True])
        def test_below(worker):
            environment = {{**os.environ, **({{"PYTEST_XDIST_WORKER": "gw0"}} if worker else {{}})}}
            done = subprocess.run({command!r}, capture_output=True, text=True, env=environment)
            assert "1 failed, 2 passed" in done.stdout and "1 finding;" in done.stdout, done.stdout
        """
    )
    run(pytester, "--cuda-order-check", path).assert_outcomes(passed=2)


def test_a_finding_about_a_kernel_fails_its_test(pytester, monkeypatch):
    """It waits for the kernel's next launch, which there is not, until the plugin asks for it."""
    path = pytester.makepyfile(
        test_races=PROGRAM
        + """
import os
from pathlib import Path

@ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)
def run(launch, _):
    return 0

def test_a_kernel():
    call("cuInit", 0)
    call("cuCtxSetCurrent", new("cuDevicePrimaryCtxRetain", 0))
    library = dict(pair.split("=", 1) for pair in os.environ["CUDA_ORDER_CHECK"].split(","))["library"]
    # By the name of the driver it would be the stand-in.
    soft = ctypes.CDLL(str(Path(library).resolve()))
    assert soft.cuda_soft_driver_kernel(b"own", (ctypes.c_size_t * 1)(8), ctypes.c_size_t(1), run, None, None) == 0
    function = new("cuModuleGetFunction", new("cuModuleLoadData", b"anything"), b"own")
    first, second = new("cuStreamCreate", 1), new("cuStreamCreate", 1)
    memory = new("cuMemAlloc_v2", ctypes.c_size_t(64))
    upload(memory, first)
    address = ctypes.c_uint64(memory.value)
    values = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    call("cuLaunchKernel", function, *[1] * 6, 0, second, values, None)

def test_after_it():
    pass
"""
    )
    # Of this kernel there is no code.
    monkeypatch.setenv("CUDA_ORDER_CHECK", "possible=on")
    result = run(pytester, "--cuda-order-check", path)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["missing order: test_races.py:51 (test_a_kernel) reads what test_races.py:16 *", "FAILED *::test_a_kernel - *"])


def test_what_cannot_be(pytester, monkeypatch):
    path = pytester.makepyfile("def test_good(): pass")
    result = run(pytester, "--cuda-order-check", path)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["cuda-order-check: 0 findings; 0 processes called the driver"])
    monkeypatch.setenv("CUDA_ORDER_CHECK", "library=/nowhere/libcuda.so.1")
    result = run(pytester, "--cuda-order-check", path)
    assert result.ret == 2
    result.stderr.fnmatch_lines(["cuda-order-check: /nowhere/libcuda.so.1 is no file"])
