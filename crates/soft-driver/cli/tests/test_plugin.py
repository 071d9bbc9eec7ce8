"""The pytest plugin of the wheel, with cuda.core; crates/soft-driver/cli/test runs it."""

import subprocess
import sys


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
        ["*test_unordered*", "error: missing order: *", "*Python: upload, at *:11", "*Python: both, at *:18"]
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
    result.stdout.fnmatch_lines(["*missing order: two calls touch the same 64 bytes*", "*RuntimeError: as planned"])


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
