"""The pytest plugin of the wheel, with cuda.core; crates/soft-driver/cli/test runs it."""

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

TWO_STREAMS = """
    import ctypes
    from cuda.bindings import driver
    from cuda.core import Device

    def call(name, *arguments):
        code, *results = getattr(driver, name)(*arguments)
        assert code == 0, (name, code)
        return results[0] if results else None

    def upload(memory, stream):
        call("cuMemsetD8Async", memory, 1, 64, stream)

    def both(wait):
        device = Device(0)
        device.set_current()
        first, second = device.create_stream(), device.create_stream()
        memory = call("cuMemAlloc", 64)
        upload(memory, first.handle)
        if wait:
            second.wait(first)
        upload(memory, second.handle)
        call("cuCtxSynchronize")
        call("cuMemFree", memory)

    def test_ordered():
        both(True)

    def test_unordered():
        both(False)
"""


def run(pytester, *arguments):
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_a_finding_fails_the_test_that_made_it(pytester):
    path = pytester.makepyfile(TWO_STREAMS)
    result = run(pytester, "--cuda-soft-driver", path)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*test_unordered*", "error: missing order: *", "*  at *:18 (both), called by *(test_unordered)*"]
    )
    run(pytester, "--cuda-soft-driver", "--cuda-soft-driver-settings=order=off", path).assert_outcomes(passed=2)


def test_the_fixtures(pytester):
    path = pytester.makepyfile(
        """
        import pytest
        from cuda.core import Device

        def test_devices(cuda_devices):
            assert list(cuda_devices) == [0, 1]
            assert len(Device.get_all_devices()) == 2

        def test_a_fault(cuda_soft_driver):
            device = Device(0)
            device.set_current()
            cuda_soft_driver.inject("cuStreamCreate*:once:code=2")
            with pytest.raises(Exception, match="OUT_OF_MEMORY"):
                device.create_stream()
            cuda_soft_driver.inject("cuEventCreate:code=2")

        def test_that_it_is_gone(cuda_soft_driver):
            device = Device(0)
            device.create_stream().record()
            with pytest.raises(ValueError, match="no entry point"):
                cuda_soft_driver.inject("cuNothing")
        """
    )
    settings = "--cuda-soft-driver-settings=devices=2,version=12.4"
    run(pytester, "--cuda-soft-driver", settings, path).assert_outcomes(passed=3)
    # Without the option nothing is changed, and such tests are skipped.
    run(pytester, path).assert_outcomes(skipped=3)


@pytest.mark.parametrize("settings", ["", "misuse=abort"])
def test_misuse_fails_the_test_that_makes_it(pytester, settings):
    path = pytester.makepyfile(
        """
        import pytest
        from cuda.bindings import driver
        from cuda.core import Device

        def destroy_twice():
            Device(0).set_current()
            code, event = driver.cuEventCreate(0)
            assert code == 0
            driver.cuEventDestroy(event)
            driver.cuEventDestroy(event)

        def test_silent():
            destroy_twice()

        @pytest.fixture
        def late():
            yield
            destroy_twice()

        def test_late(late):
            pass

        def test_that_fails():
            destroy_twice()
            assert False, "in the test"

        def test_looked_at(cuda_soft_driver):
            destroy_twice()
            assert "cuEventDestroy_v2" in cuda_soft_driver.take_misuses()

        def test_good():
            pass
        """
    )
    result = run(pytester, "--cuda-soft-driver", f"--cuda-soft-driver-settings={settings}", path)
    result.assert_outcomes(passed=3, failed=2, errors=1)
    result.stdout.fnmatch_lines(["*misuse: cuEventDestroy_v2*", "*AssertionError: in the test", "*misuse: *"])


def test_wrong_settings_are_errors_of_usage(pytester, monkeypatch):
    pytester.makeconftest("import cuda.core; cuda.core.Device(0)")
    path = pytester.makepyfile("def test_good(): pass")
    for variable, settings, message in [
        ("", "nonsense=1", "*nonsense*"),
        ("devices=many", "", "*`many` is not a value of devices*"),
        ("", "version=99.0", "*99.0*"),
    ]:
        monkeypatch.setenv("CUDA_SOFT_DRIVER", variable)
        result = run(pytester, "--cuda-soft-driver", f"--cuda-soft-driver-settings={settings}", path)
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"ERROR: *CUDA_SOFT_DRIVER: {message}"])
    monkeypatch.delenv("CUDA_SOFT_DRIVER")
    pytester.makeconftest("")
    result = run(pytester, "--cuda-soft-driver-settings=devices=2", path)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --cuda-soft-driver-settings needs --cuda-soft-driver"])


def test_a_setting_that_aborts_reports(pytester, monkeypatch):
    path = pytester.makepyfile(TWO_STREAMS)
    monkeypatch.setenv("CUDA_SOFT_DRIVER", "order=abort")
    run(pytester, "--cuda-soft-driver", path).assert_outcomes(passed=1, failed=1)


def test_children_are_covered(pytester):
    child = pytester.makepyfile(child=TWO_STREAMS)
    path = pytester.makepyfile(
        f"""
        import subprocess, sys

        def test_a_child():
            code = "import sys; sys.path.insert(0, {str(child.parent)!r}); import child; child.both(False)"
            subprocess.run([sys.executable, "-c", code], check=True)
        """
    )
    result = run(pytester, "--cuda-soft-driver", path)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["error: missing order: *"])


def test_a_pytest_below_another_reports_its_own_findings(pytester):
    """As the workers of pytest-xdist, which inherit the environment of their controller."""
    tests = pytester.makepyfile(two_streams=TWO_STREAMS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--cuda-soft-driver", str(tests)]
    path = pytester.makepyfile(
        f"""
        import subprocess

        def test_below():
            done = subprocess.run({command!r}, capture_output=True, text=True)
            assert "1 failed, 1 passed" in done.stdout and "warning" not in done.stdout
        """
    )
    run(pytester, "--cuda-soft-driver", path).assert_outcomes(passed=1)


def test_a_log_of_the_user_is_not_used(pytester, monkeypatch):
    path = pytester.makepyfile(TWO_STREAMS)
    monkeypatch.setenv("CUDA_SOFT_DRIVER", f"order=report,order_format=json,order_log={pytester.path}/log")
    result = run(pytester, "--cuda-soft-driver", path)
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines([f"*order_log={pytester.path}/log is not used*"])
    off = "--cuda-soft-driver-settings=order=off"
    run(pytester, "--cuda-soft-driver", off, path).assert_outcomes(passed=2, warnings=1)


def test_the_last_setting_of_a_name_counts(pytester, monkeypatch):
    path = pytester.makepyfile(
        """
        import tempfile

        def test_devices(cuda_devices):
            assert list(cuda_devices) == [0, 1]
            assert tempfile.gettempdir().endswith("/a, b")
        """
    )
    names = "without=cuIpcGetEventHandle,without=cuIpcOpenEventHandle"
    monkeypatch.setenv("CUDA_SOFT_DRIVER", f"devices=3,order=report,{names}")
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("a, b")))
    settings = "--cuda-soft-driver-settings=devices=2,order=report"
    run(pytester, "--cuda-soft-driver", settings, path).assert_outcomes(passed=1)


def test_the_command(tmp_path):
    program = "from cuda.core import Device; print(len(Device.get_all_devices()))"
    run = ["cuda-soft-driver", "run", "--devices", "3", "--", sys.executable, "-c", program]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
    assert subprocess.run(["cuda-soft-driver", "install", tmp_path]).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["libcuda.so", "libcuda.so.1"]


KERNELS = """
    import ctypes
    import pytest
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, ObjectCode, launch

    def call(name, *arguments):
        code, *results = getattr(driver, name)(*arguments)
        assert code == 0, (name, code)
        return results[0] if results else None

    def fill(launch):
        address, count, value = launch.parameters
        launch.store(address, bytes([value * launch.grid[0]]) * count)

    def accesses(launch):
        launch.writes(*launch.parameters[:2])

    TYPES = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_ubyte]

    @pytest.fixture
    def two(cuda_soft_driver):
        device = Device(0)
        device.set_current()
        cuda_soft_driver.kernel("fill", fill, TYPES, accesses)
        kernel = ObjectCode.from_cubin(b"anything").get_kernel("fill")
        memory = call("cuMemAlloc", 64)
        first, second = device.create_stream(), device.create_stream()

        def start(stream, address=int(memory), value=3):
            arguments = address, ctypes.c_uint(64), ctypes.c_ubyte(value)
            launch(stream, LaunchConfig(grid=2, block=32), kernel, *arguments)

        yield first, second, int(memory), start
        driver.cuCtxSynchronize()

    def test_a_launch(two):
        stream, _, memory, start = two
        start(stream)
        out = bytearray(64)
        call("cuMemcpyDtoHAsync", out, memory, 64, stream.handle)
        stream.sync()
        assert out == bytes([6]) * 64

    def test_an_unordered_launch(two):
        first, second, memory, start = two
        start(first)
        call("cuMemsetD8Async", memory, 1, 64, second.handle)

    def test_a_name_that_is_not_registered(two, capfd):
        with pytest.raises(Exception, match="NOT_FOUND"):
            ObjectCode.from_cubin(b"anything").get_kernel("fi")
        assert 'no kernel "fi" is registered with this driver, but "fill"' in capfd.readouterr().err

    def test_a_captured_launch(two):
        stream, _, memory, start = two
        builder = stream.create_graph_builder().begin_building()
        start(builder)
        graph = builder.end_building().complete()
        graph.launch(stream)
        out = bytearray(64)
        call("cuMemcpyDtoHAsync", out, memory, 64, stream.handle)
        stream.sync()
        assert out == bytes([6]) * 64

    def test_a_kernel_that_raises(two, cuda_soft_driver):
        def raises(launch):
            raise RuntimeError("as planned")
        cuda_soft_driver.kernel("fill", raises, TYPES)
        two[3](two[0])
        with pytest.raises(Exception, match="LAUNCH_FAILED"):
            two[0].sync()
"""


def test_kernels(pytester):
    path = pytester.makepyfile(KERNELS)
    result = run(pytester, "--cuda-soft-driver", path)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines(["*missing order: *", "*bytes *, the whole of 64 bytes *", "*RuntimeError: as planned"])


def test_a_kernel_outside_of_its_memory(pytester):
    path = pytester.makepyfile(
        KERNELS
        + """
    def test_illegal(two, cuda_soft_driver):
        two[3](two[0], address=two[2] + 1)
        with pytest.raises(Exception, match="ILLEGAL_ADDRESS"):
            two[0].sync()
        assert "store" in cuda_soft_driver.take_kernel_errors()
    """
    )
    run(pytester, "--cuda-soft-driver", "--cuda-soft-driver-settings=order=off", "-k", "illegal", path).assert_outcomes(
        passed=1
    )


def test_a_kernel_that_raises_in_a_test_that_fails(pytester):
    path = pytester.makepyfile(
        KERNELS
        + """
    def launch_one_that_raises(two, cuda_soft_driver):
        def raises(launch):
            raise RuntimeError("in the kernel")
        cuda_soft_driver.kernel("fill", raises, TYPES)
        two[3](two[0])
        driver.cuCtxSynchronize()

    def test_both(two, cuda_soft_driver):
        launch_one_that_raises(two, cuda_soft_driver)
        first, second, memory, start = two
        assert memory == 0, "in the test"

    def test_skipped(two, cuda_soft_driver):
        launch_one_that_raises(two, cuda_soft_driver)
        pytest.skip("in the test")
    """
    )
    # The context has failed after the first one.
    for name, own in ("both", ["E * AssertionError: in the test"]), ("skipped", []):
        result = run(pytester, "--cuda-soft-driver", "-k", name, path)
        result.assert_outcomes(failed=1)
        kernel = f"the kernel 'fill' of *::test_{name} failed:"
        result.stdout.fnmatch_lines([*own, kernel, "RuntimeError: in the kernel"])


def test_a_kernel_that_raises_after_its_test(pytester):
    path = pytester.makepyfile(
        KERNELS
        + """
    import threading

    @pytest.fixture
    def late(cuda_soft_driver):
        Device(0).set_current()
        test_is_over, started = threading.Event(), threading.Event()
        def raises(launch):
            started.set()
            test_is_over.wait()
            raise RuntimeError("too late")
        cuda_soft_driver.kernel("late", raises)
        kernel = ObjectCode.from_cubin(b"anything").get_kernel("late")
        launch(Device(0).create_stream(), LaunchConfig(grid=1, block=1), kernel)
        started.wait()
        yield
        test_is_over.set()

    def test_late(late):
        pass
    """
    )
    result = run(pytester, "--cuda-soft-driver", "-k", "late", path)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_late*", "the kernel 'late' of *::test_late failed:", "RuntimeError: too late"]
    )


def test_a_kernel_that_outlives_its_test(pytester):
    pytester.makeconftest(
        """
        import threading
        import cuda_soft_driver.kernels

        cuda_soft_driver.kernels._LIMIT = 0.2
        after_all, ended = threading.Event(), threading.Event()

        def pytest_sessionstart(session):
            session.config.events = after_all, ended

        def pytest_sessionfinish(session):
            after_all.set()
            ended.wait()
        """
    )
    path = pytester.makepyfile(
        KERNELS
        + """
    import threading

    def test_stays(cuda_soft_driver, pytestconfig):
        Device(0).set_current()
        after_all, ended = pytestconfig.events
        started = threading.Event()
        class Ends(Exception):
            def __del__(self):
                ended.set()
        def stays(launch):
            started.set()
            after_all.wait()
            raise Ends("at last")
        cuda_soft_driver.kernel("stays", stays)
        kernel = ObjectCode.from_cubin(b"anything").get_kernel("stays")
        launch(Device(0).create_stream(), LaunchConfig(grid=1, block=1), kernel)
        started.wait()
    """
    )
    result = run(pytester, "--cuda-soft-driver", "-k", "stays", path)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "these still run: the kernel 'stays' of *::test_stays",
            "*kernels that failed after their tests*",
            "the kernel 'stays' of *::test_stays failed:",
            "*Ends: at last",
        ]
    )


# A program with kernels and without pytest, which calls the driver by ctypes.
PROGRAM = """
import atexit, ctypes, gc, sys, threading, time
import cuda_soft_driver.kernels
from cuda_soft_driver import library
from cuda_soft_driver.kernels import Kernels

# So that a loaded machine does not decide.
cuda_soft_driver.kernels._LIMIT = 100
cuda = ctypes.CDLL(str(library()))

def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)

def new(name, *arguments):
    made = ctypes.c_void_p()
    call(name, ctypes.byref(made), *arguments)
    return made

def start(name, *parameters):
    given = (ctypes.c_void_p * len(parameters))(*map(ctypes.addressof, parameters))
    function = new("cuModuleGetFunction", module, name.encode())
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, stream, given, None)

def hold():
    word = ctypes.c_uint32.from_address(new("cuMemAllocHost_v2", ctypes.c_size_t(4)).value)
    word.value = 0
    call("cuStreamWaitValue32_v2", stream, ctypes.c_uint64(ctypes.addressof(word)), 1, 1)
    def release():
        word.value = 1
    return release

call("cuInit", 0)
call("cuCtxSetCurrent", new("cuDevicePrimaryCtxRetain", 0))
stream = new("cuStreamCreate", 1)
begin = getattr(sys.modules["__main__"], "begin", lambda: None)
begin()
kernels = Kernels(cuda)
kernels.add("first", lambda launch: None)
module = new("cuModuleLoadData", b"anything")
started = threading.Event()

def slow(launch):
    started.set()
    for _ in range(100):
        time.sleep(0.005)
    print("done", flush=True)
"""


def program(tmp_path, text, before=""):
    file = tmp_path / "program.py"
    file.write_text(before + PROGRAM + text)
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)


def test_the_interpreter_waits_for_a_running_kernel(tmp_path):
    done = program(tmp_path, "kernels.add('slow', slow); start('slow'); started.wait()")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_the_interpreter_waits_for_launches(tmp_path):
    done = program(tmp_path, "kernels.add('slow', slow)\nfor _ in range(3): start('slow')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n" * 3, "")


def test_the_interpreter_waits_for_a_kernel_in_a_failed_context(tmp_path):
    text = """
kernels.add("slow", slow)
start("slow")
started.wait()
assert cuda.cuda_soft_driver_control(b"fail=719", None, ctypes.c_size_t(0)) == 0
"""
    done = program(tmp_path, text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_the_interpreter_does_not_wait_for_ever(tmp_path):
    text = """
cuda_soft_driver.kernels._LIMIT = 0.2
def endless(launch):
    started.set()
    threading.Event().wait()
kernels.add("endless", endless)
start("endless")
started.wait()
"""
    done = program(tmp_path, text)
    assert done.returncode == 1
    assert done.stderr == "cuda-soft-driver: at exit these still run: the kernel 'endless'\n"


def test_what_is_held_at_exit_does_not_begin_later(tmp_path):
    """The handler that was registered first comes last, and releases the stream."""
    before = "def begin(): atexit.register(lambda: release())\n"
    text = """
cuda_soft_driver.kernels._LIMIT = 0.2
kernels.add("slow", slow)
release = hold()
start("slow")
"""
    done = program(tmp_path, text, before)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_kernels_that_nothing_refers_to_run(tmp_path):
    text = """
kernels.add("slow", slow)
release = hold()
start("slow")
del kernels
gc.collect()
release()
call("cuCtxSynchronize")
"""
    done = program(tmp_path, text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_launch_after_its_end(tmp_path):
    text = """
launches = []
kernels.add("late", launches.append, (), launches.append)
start("late")
call("cuCtxSynchronize")
memory = new("cuMemAlloc_v2", ctypes.c_size_t(8)).value
for method in ("load", "store", "reads", "writes"):
    for launch in launches:
        try:
            getattr(launch, method)(memory, b"12345678" if method == "store" else 8)
        except RuntimeError as error:
            print(error)
"""
    done = program(tmp_path, text)
    methods = ("load", "store", "reads", "writes")
    expected = "".join(f"{method} after the launch: its function has returned\n" * 2 for method in methods)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_the_values_of_parameters(tmp_path):
    text = """
class Value(ctypes.Structure):
    _fields_ = [("value", ctypes.c_int), ("other", ctypes.c_int)]
given = [
    (ctypes.c_void_p, ctypes.c_void_p()),
    (ctypes.c_char_p, ctypes.c_uint64(8)),
    (ctypes.POINTER(ctypes.c_float), ctypes.c_uint64(16)),
    (ctypes.c_float, ctypes.c_float(0.5)),
    (Value, Value(3, 4)),
    (ctypes.c_char * 4, ctypes.c_uint32(0x00410042)),
]
def look(launch):
    *values, structure, characters = launch.parameters
    print(*values, structure.value, structure.other, characters.raw)
kernels.add("look", look, [kind for kind, _ in given])
start("look", *(value for _, value in given))
call("cuCtxSynchronize")
assert not kernels.take_errors()
"""
    done = program(tmp_path, text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 8 16 0.5 3 4 b'B\\x00A\\x00'\n", "")


def test_what_cannot_be_a_kernel(tmp_path):
    text = """
def run(launch):
    pass
for arguments in (
    ("a\\0b", run), (b"a", run), ("a", 7), ("a", run, [4]), ("a", run, [ctypes.c_int(4)]),
    ("a", run, [int]), ("a", run, [ctypes.py_object]), ("a", run, [], 7),
):
    try:
        kernels.add(*arguments)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, error)
"""
    done = program(tmp_path, text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "ValueError the name of a kernel has a zero byte: 'a\\x00b'",
        "TypeError the name of a kernel is a string, and not b'a'",
        "TypeError the kernel 'a' is not a function: 7",
        "TypeError parameter 0 of the kernel 'a' has no type of ctypes: 4",
        "TypeError parameter 0 of the kernel 'a' has no type of ctypes: c_int(4)",
        "TypeError parameter 0 of the kernel 'a' has no type of ctypes: <class 'int'>",
        "TypeError parameter 0 of the kernel 'a' has no type of ctypes: <class 'ctypes.py_object'>",
        "TypeError accesses of the kernel 'a' is not a function: 7",
    ]
