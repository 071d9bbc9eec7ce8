"""NVIDIA's cuda.core and cuda-bindings, which were not written with the software driver in
mind, on whatever libcuda.so.1 the loader finds.

Every scenario asserts what it saw; the first one that is not as it should be ends the program with
a traceback. FOREIGN_DRIVER is `soft` or `native` and says which driver it must be.
"""

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import weakref

from cuda.bindings import driver
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Device,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    Stream,
    StreamOptions,
    launch,
)
from cuda.core.graph import GraphBuilder, GraphDefinition

PATIENCE = 60
SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


def checked(answer):
    """The results of a call of cuda-bindings, which must have succeeded."""
    code, *results = answer
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return results[0] if len(results) == 1 else results


def raises(kind, function):
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


class Latch:
    """Holds streams until it is opened: they wait for a word in pinned memory, and nothing of
    Python's is involved."""

    def __init__(self):
        self.memory = checked(driver.cuMemHostAlloc(4, driver.CU_MEMHOSTALLOC_DEVICEMAP))
        self.address = checked(driver.cuMemHostGetDevicePointer(self.memory, 0))
        self.word = ctypes.c_uint32.from_address(int(self.memory))
        self.word.value = 0

    def hold(self, stream):
        equal = driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
        checked(driver.cuStreamWaitValue32(stream.handle, self.address, 1, equal))

    def open(self):
        self.word.value = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Also after a failed assertion: a held stream would keep the process from ending.
        self.open()
        checked(driver.cuCtxSynchronize())
        del self.word
        checked(driver.cuMemFreeHost(self.memory))


@scenario
def every_entry_point_is_there(device, soft):
    if not soft:
        return
    # cuda-bindings looks all entry points up when it is imported, each at the version that it was
    # made for. A driver of its own version must have them all. Images are read, and an empty
    # one is none.
    program = (
        "from cuda.bindings._internal import driver as d\n"
        "found = d._inspect_function_pointers()\n"
        "assert len(found) > 500, len(found)\n"
        "absent = sorted(name for name, address in found.items() if not address)\n"
        "assert not absent, absent\n"
    )
    newest = {**os.environ, "CUDA_SOFT_DRIVER": "version=13.5"}
    subprocess.run([sys.executable, "-c", program], env=newest, check=True, timeout=PATIENCE)
    assert driver.cuModuleLoadData(b"")[0] == driver.CUresult.CUDA_ERROR_INVALID_IMAGE
    # This goes another way: cuda.core asks the CUDA runtime, which wants tables that only NVIDIA
    # knows. A driver that does not know a table says that it is an invalid value.
    assert "InvalidValue" in raises(Exception, device.sync)


@scenario
def multiprocessors(device, soft):
    resource = device.resources.sm
    assert resource.sm_count == device.properties.multiprocessor_count, resource.sm_count
    assert resource.sm_count >= resource.min_partition_size > 0, resource.min_partition_size


@scenario
def devices(device, soft):
    assert ("software driver" in device.name) == soft, (
        f"`{device.name}` is not of the driver that was asked for"
    )
    assert device.device_id == 0 and device in Device.get_all_devices()
    assert len(device.uuid) == 36 and device.uuid.strip("0-")
    assert device.compute_capability.major >= 3
    assert checked(driver.cuDeviceGetCount()) == len(Device.get_all_devices())
    properties = device.properties
    names = [name for name in dir(properties) if not name.startswith("_")]
    values = {name: getattr(properties, name) for name in names}
    assert values["warp_size"] > 0 and values["multiprocessor_count"] > 0, values
    assert len(values) > 100, len(values)
    free, total = checked(driver.cuMemGetInfo())
    assert 0 < free <= total


@scenario
def contexts(device, soft):
    context = device.context
    assert int(checked(driver.cuCtxGetCurrent())) == int(context.handle)
    assert device.context == context and hash(device.context) == hash(context)
    previous = device.set_current(context)
    assert previous == context
    own = checked(driver.cuCtxCreate(None, 0, 0))
    assert int(checked(driver.cuCtxGetCurrent())) == int(own) != int(context.handle)
    stream = checked(driver.cuStreamCreate(0))
    assert int(checked(driver.cuStreamGetCtx(stream))) == int(own)
    checked(driver.cuStreamDestroy(stream))
    checked(driver.cuCtxDestroy(own))
    assert int(checked(driver.cuCtxGetCurrent())) == int(context.handle)


@scenario
def streams(device, soft):
    least, greatest = checked(driver.cuCtxGetStreamPriorityRange())
    for priority in range(greatest, least + 1):
        stream = device.create_stream(
            options=StreamOptions(nonblocking=priority % 2 == 0, priority=priority)
        )
        assert stream.priority == priority and stream.is_nonblocking == (priority % 2 == 0)
        assert stream.device == device and stream.context == device.context
        stream.sync()
        same = Stream.from_handle(int(stream.handle))
        assert same == stream and hash(same) == hash(stream)
        assert same.priority == priority and same.is_nonblocking == stream.is_nonblocking
        assert driver.cuStreamQuery(stream.handle)[0] == driver.CUresult.CUDA_SUCCESS
        stream.close()
        assert stream.is_closed
    raises(ValueError, lambda: device.create_stream(options=StreamOptions(priority=greatest - 1)))
    per_thread = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM") == "1"
    assert device.default_stream == (
        PER_THREAD_DEFAULT_STREAM if per_thread else LEGACY_DEFAULT_STREAM
    )
    for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
        assert stream.context == device.context
        event = stream.record()
        event.sync()
        assert event.is_done
        stream.sync()
    checked(driver.cuCtxSynchronize())


@scenario
def events(device, soft):
    stream = device.create_stream()
    for options in (
        None,
        EventOptions(timing_enabled=True),
        EventOptions(blocking_sync=True),
        EventOptions(timing_enabled=True, blocking_sync=True),
    ):
        event = device.create_event(options)
        wanted = options or EventOptions()
        assert event.is_timing_enabled == wanted.timing_enabled
        assert event.is_blocking_sync == wanted.blocking_sync
        assert not event.is_ipc_enabled
        assert event.device == device and event.context == device.context
        assert event.is_done, "an event that was never recorded has nothing to wait for"
        event.sync()
        assert stream.record(event) == event
        event.sync()
        assert event.is_done
        stream.wait(event)
        event.close()
        assert event.is_closed
    stream.sync()


@scenario
def waiting(device, soft):
    held, follower, free = (device.create_stream() for _ in range(3))
    before = held.record()
    before.sync()
    with Latch() as latch:
        latch.hold(held)
        after = held.record()
        assert before.is_done and not after.is_done
        assert driver.cuStreamQuery(held.handle)[0] == driver.CUresult.CUDA_ERROR_NOT_READY
        follower.wait(after)
        done = follower.record()
        assert not done.is_done
        free.record().sync()
        # The event is used again; the follower keeps waiting for what it was told to wait for.
        free.record(after)
        after.sync()
        assert after.is_done and not done.is_done
        # A stream in place of an event: cuda.core records one of its own.
        free.wait(follower)
        assert not free.record().is_done
        latch.open()
        done.sync()
        free.sync()
        held.sync()


@scenario
def timing(device, soft):
    stream = device.create_stream()
    start, middle, end = (device.create_event(EventOptions(timing_enabled=True)) for _ in range(3))
    assert "must be recorded" in raises(RuntimeError, lambda: end - start)
    stream.record(start)
    stream.record(middle)
    with Latch() as latch:
        latch.hold(stream)
        stream.record(end)
        middle.sync()
        assert "not completed" in raises(RuntimeError, lambda: end - start)
        latch.open()
        end.sync()
    total, first, second = end - start, middle - start, end - middle
    assert 0 <= first <= total < 60_000 and 0 <= second <= total
    # A millisecond count is a 32-bit float, of a clock with half a microsecond per tick.
    assert abs(first + second - total) < 0.01
    assert start - end == -total and start - start == 0
    untimed = stream.record()
    untimed.sync()
    assert "timing enabled" in raises(RuntimeError, lambda: untimed - start)
    raises(
        TypeError, lambda: device.create_event(EventOptions(timing_enabled=True, ipc_enabled=True))
    )
    raises(
        TypeError,
        lambda: stream.record(options=EventOptions(timing_enabled=True, ipc_enabled=True)),
    )


class LatchKernel:
    """As cuda.core's own tests have it: a kernel that waits for a word."""

    def __init__(self, device):
        self.kernel = compiled(device, "latch")
        self.memory = LegacyPinnedMemoryResource().allocate(4)
        self.word = ctypes.c_int32.from_address(int(self.memory.handle))
        self.word.value = 0

    def launch(self, stream, timeout=1 << 40):
        config = LaunchConfig(grid=1, block=1)
        launch(stream, config, self.kernel, int(self.memory.handle), ctypes.c_uint64(timeout))

    def release(self):
        self.word.value = 1


def compiled(device, name):
    """Of a source that nothing here compiles: kernels.c has the kernel of this name."""
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    source = f'extern "C" __global__ void {name}();'
    return Program(source, code_type="c++", options=options).compile("cubin").get_kernel(name)


@scenario
def kernels(device, soft):
    """The three tests of events in cuda.core's suite that launch one."""
    if not soft:
        return
    stream, other = device.create_stream(), device.create_stream()
    timed = EventOptions(timing_enabled=True)
    start = stream.record(options=timed)
    launch(stream, LaunchConfig(grid=1, block=1), compiled(device, "nanosleep_kernel"))
    end = stream.record(options=timed)
    end.sync()
    assert 10 < end - start < 60_000

    latch = LatchKernel(device)
    start = stream.record(options=timed)
    latch.launch(stream)
    end = stream.record(options=timed)
    assert "not completed" in raises(RuntimeError, lambda: end - start)
    other.record().sync()
    latch.release()
    end.sync()
    assert end - start > 0

    latch = LatchKernel(device)
    with Child(child_imports) as child:
        latch.launch(stream)
        event = stream.record(options=EventOptions(ipc_enabled=True, blocking_sync=True))
        child.connection.send(event)
        assert child.recv() == (False, False) and not event.is_done
        latch.release()
        assert child.recv() == (True, True) and event.is_done
        child.connection.send("end")

    latch = LatchKernel(device)
    builder = stream.create_graph_builder().begin_building()
    latch.launch(builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    done = stream.record()
    assert not done.is_done
    latch.release()
    done.sync()
    graph.close()
    builder.close()


@scenario
def memory(device, soft):
    size = 4096
    first, second = device.create_stream(), device.create_stream()
    one, two = device.allocate(size, stream=first), device.allocate(size, stream=first)
    host = LegacyPinnedMemoryResource().allocate(size)
    content = (ctypes.c_uint8 * size).from_address(int(host.handle))
    one.fill(0xA5, stream=first)
    second.wait(first)
    one.copy_to(two, stream=second)
    first.wait(second)
    two.copy_to(host, stream=first)
    first.sync()
    assert bytes(content) == b"\xa5" * size
    content[:] = bytes(range(256)) * (size // 256)
    two.copy_from(host, stream=first)
    first.sync()

    # Into memory that the driver knows nothing of, a copy is over when the call returns.
    plain = (ctypes.c_uint8 * size)()
    checked(driver.cuMemcpyDtoHAsync(ctypes.addressof(plain), int(two.handle), size, first.handle))
    assert bytes(plain) == bytes(content)
    # And out of it, the source may be used again.
    plain[:] = b"\x11" * size
    checked(driver.cuMemcpyHtoDAsync(int(two.handle), ctypes.addressof(plain), size, first.handle))
    plain[:] = b"\x22" * size
    two.copy_to(host, stream=first)
    first.sync()
    assert bytes(content) == b"\x11" * size

    assert (one.is_device_accessible, one.is_host_accessible, one.device_id) == (True, False, 0)
    assert (host.is_device_accessible, host.is_host_accessible, host.is_managed) == (
        True,
        True,
        False,
    )
    for buffer in (one, two, host):
        buffer.close(first)
        assert buffer.is_closed


@scenario
def host_functions(device, soft):
    stream, follower = device.create_stream(), device.create_stream()
    ran, may_end = threading.Event(), threading.Event()
    calls = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def function(data):
        calls.append(data)
        ran.set()
        may_end.wait(PATIENCE)

    address = ctypes.cast(function, ctypes.c_void_p).value
    checked(driver.cuLaunchHostFunc(stream.handle, driver.CUhostFn(address), 42))
    after = stream.record()
    follower.wait(after)
    assert ran.wait(PATIENCE), "the host function was not run"
    assert not after.is_done
    may_end.set()
    follower.sync()
    assert after.is_done and calls == [42]

    statuses = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    def callback(handle, status, data):
        statuses.append((handle, status, data))

    address = ctypes.cast(callback, ctypes.c_void_p).value
    checked(driver.cuStreamAddCallback(stream.handle, driver.CUstreamCallback(address), 7, 0))
    stream.sync()
    assert statuses == [(int(stream.handle), 0, 7)], statuses


@scenario
def captured_callbacks(device, soft):
    stream = device.create_stream()
    calls = []
    builder = device.create_graph_builder().begin_building()
    assert builder.is_building

    def callback():
        calls.append("before")

    builder.callback(callback)
    left, right = builder.split(2)
    left.callback(lambda: calls.append("left"))
    right.callback(lambda: calls.append("right"))
    builder = GraphBuilder.join(left, right)
    builder.callback(lambda: calls.append("after"))
    builder.end_building()
    graph = builder.complete()
    assert calls == [], "to capture is not to run"
    released = threading.Event()
    weakref.finalize(callback, released.set)
    del callback
    graph.upload(stream)
    for number in range(1, 4):
        with Latch() as latch:
            latch.hold(stream)
            graph.launch(stream)
            done = stream.record()
            assert not done.is_done and len(calls) == 4 * (number - 1)
            latch.open()
            done.sync()
        order = calls[-4:]
        assert len(calls) == 4 * number and order[0] == "before" and order[3] == "after", calls
        assert set(order[1:3]) == {"left", "right"}
    # The graph's definition goes first; the launches of what was made of it go on.
    builder.close()
    graph.launch(stream)
    stream.sync()
    assert len(calls) == 16 and not released.is_set()
    # The graphs own the callback through a user object; the last of them lets it go, on a thread of
    # the driver's.
    graph.close()
    deadline = time.monotonic() + PATIENCE
    while not released.wait(0.01):
        assert time.monotonic() < deadline, "the callback was never released"


@scenario
def graphs_with_events(device, soft):
    stream, other = device.create_stream(), device.create_stream()
    start, end = (device.create_event(EventOptions(timing_enabled=True)) for _ in range(2))
    signal = device.create_event()
    calls = []
    definition = GraphDefinition()
    recorded = definition.record(start)
    waited = recorded.wait(signal)
    called = waited.callback(lambda: calls.append(signal.is_closed))
    last = called.record(end)
    assert recorded.event == start and waited.event == signal and last.event == end
    assert len(definition.nodes()) == 4 and len(definition.edges()) == 3
    graph = definition.instantiate()
    with Latch() as latch:
        latch.hold(other)
        other.record(signal)
        graph.launch(stream)
        assert not end.is_done and calls == []
        latch.open()
        stream.sync()
    assert calls == [False] and end.is_done and end - start >= 0
    graph.close()


def child_imports(connection):
    device = Device(0)
    device.set_current()
    event = connection.recv()
    assert event.is_ipc_enabled and not event.is_timing_enabled and event.is_blocking_sync
    stream = device.create_stream()
    stream.wait(event)
    mine = stream.record()
    connection.send((event.is_done, mine.is_done))
    event.sync()
    stream.sync()
    connection.send((event.is_done, mine.is_done))
    connection.recv()
    event.close()


def child_exports(connection):
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    with Latch() as latch:
        latch.hold(stream)
        event = stream.record(options=EventOptions(ipc_enabled=True))
        connection.send(event)
        assert connection.recv() == "open"
        latch.open()
        event.sync()
    # The importer's duty is over before the exporter's event goes away.
    assert connection.recv() == "end"


class Child:
    def __init__(self, target):
        self.connection, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=target, args=(theirs,))
        self.process.start()
        theirs.close()

    def recv(self):
        assert self.connection.poll(PATIENCE), "the child says nothing"
        return self.connection.recv()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        assert kind is not None or self.process.exitcode == 0, self.process.exitcode


@scenario
def an_event_for_another_process(device, soft):
    stream = device.create_stream()
    with Latch() as latch, Child(child_imports) as child:
        latch.hold(stream)
        event = stream.record(options=EventOptions(ipc_enabled=True, blocking_sync=True))
        assert event.is_ipc_enabled and event.ipc_descriptor == event.ipc_descriptor
        child.connection.send(event)
        assert child.recv() == (False, False)
        assert not event.is_done
        latch.open()
        assert child.recv() == (True, True)
        assert event.is_done
        child.connection.send("end")


@scenario
def an_event_of_another_process(device, soft):
    stream = device.create_stream()
    with Child(child_exports) as child:
        event = child.recv()
        assert event.is_ipc_enabled and not event.is_done
        stream.wait(event)
        mine = stream.record()
        assert not mine.is_done
        child.connection.send("open")
        mine.sync()
        event.sync()
        assert event.is_done
        event.close()
        child.connection.send("end")


def main():
    multiprocessing.set_start_method("spawn")
    soft = {"soft": True, "native": False}[os.environ["FOREIGN_DRIVER"]]
    device = Device(0)
    device.set_current()
    for function in SCENARIOS:
        function(device, soft)
    names = ", ".join(function.__name__.replace("_", " ") for function in SCENARIOS)
    print(f"{len(SCENARIOS)} scenarios: {names}")


if __name__ == "__main__":
    main()
