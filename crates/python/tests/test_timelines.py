import asyncio
import ctypes
import gc
import os
import select
import signal
import subprocess
import threading
import time
import weakref
from contextlib import contextmanager, suppress

import cuda_timelines
import pytest
from conftest import PATIENCE, held, python
from cuda.bindings import driver
from cuda_timelines import DriverError, Error, HostTimeline, Point, Poisoned, Timeline
from cuda_timelines._native import Notifier


class Foreign:
    """An object with the protocol, and nothing else."""

    def __init__(self, answer):
        self.answer = answer

    def __cuda_stream__(self):
        return self.answer


def test_points_rise_and_are_reached(stream):
    with Timeline(stream) as timeline:
        first, second = timeline.signal(), timeline.signal()
        assert second.value == first.value + 1 == timeline.submitted
        assert second.wait() and first.done() and first.query()
        assert timeline.completed == second.value


def test_a_held_stream_is_pending(device, stream):
    other = device.create_stream()
    with Timeline(stream) as timeline:
        with held(stream) as latch:
            point = timeline.signal()
            assert not point.done() and not point.query()
            assert not point.wait(timeout=0) and not point.wait(0.001, spin=True)
            # Longer than the time between two looks for signals.
            assert not point.wait(timeout=0.06)
            point.stream_wait(other)
            after = other.record()
            assert not after.is_done
            latch.signal()
            assert point.wait(timeout=PATIENCE, spin=True) and point.wait(float("inf"))
        after.sync()


@pytest.mark.parametrize(
    "make", [lambda s: s, lambda s: int(s.handle), lambda s: Foreign(s.__cuda_stream__())]
)
def test_every_kind_of_stream(device, stream, make):
    other = device.create_stream()
    with Timeline(make(stream)) as timeline:
        point = timeline.signal()
        point.stream_wait(make(other))
        assert point.wait(timeout=PATIENCE)


def test_default_streams(device):
    # NULL, and the legacy default stream.
    for handle in (0, 1):
        with Timeline(handle) as timeline:
            assert timeline.signal().wait(timeout=PATIENCE)
    with pytest.raises(Error, match="per-thread default stream"):
        Timeline(2)


def test_default_stream_of_a_thread_without_a_context(device):
    class OfTorch(Foreign):
        device_index = 0

    def run(stream):
        checked(driver.cuCtxSetCurrent(driver.CUcontext(0)))
        try:
            with Timeline(stream) as timeline:
                return timeline.signal().wait(timeout=PATIENCE)
        except DriverError as error:
            return error

    error = in_thread(run, 0)
    assert isinstance(error, DriverError) and error.name == "CUDA_ERROR_INVALID_CONTEXT"
    assert error.code == 201 and "cuStreamGetCtx" in str(error)
    assert in_thread(run, OfTorch((0, 0))) is True


def in_thread(function, *arguments):
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*arguments)))
    thread.start()
    thread.join(PATIENCE)
    return results[0]


def checked(answer):
    code, *results = answer
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return results[0] if len(results) == 1 else results


def test_a_stream_of_another_context(device, stream):
    before = checked(driver.cuCtxGetCurrent())
    own = checked(driver.cuCtxCreate(None, 0, 0))
    theirs = checked(driver.cuStreamCreate(0))
    checked(driver.cuCtxSetCurrent(before))
    file = cuda_timelines.TimelineFile(device)
    with pytest.raises(Error, match="two contexts of device 0"):
        Timeline(int(theirs), file=file)
    with Timeline(stream) as timeline, Timeline(int(theirs)) as other:
        timeline.signal().stream_wait(int(theirs))
        other.signal().stream_wait(stream)
        assert other.signal().wait(PATIENCE) and timeline.signal().wait(PATIENCE)
    del other
    checked(driver.cuStreamDestroy(theirs))
    checked(driver.cuCtxDestroy(own))


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "stream",
        1.5,
        True,
        object(),
        b"",
        Foreign(None),
        Foreign((0,)),
        Foreign((0, "x")),
        Foreign((1, 5)),
    ],
)
def test_no_stream(device, stream, bad):
    with pytest.raises(TypeError):
        Timeline(bad)
    with Timeline(stream) as timeline:
        point = timeline.signal()
        with pytest.raises(TypeError):
            point.stream_wait(bad)
        with pytest.raises(TypeError):
            timeline.wait_ahead(bad, 1)


def test_no_handle(device):
    for bad in (-1, 1 << 64):
        with pytest.raises(ValueError, match="out of range"):
            Timeline(bad)


@pytest.mark.parametrize("bad", [None, "cuda:0", 1.5, True, object(), (0,), [0]])
def test_no_device(bad):
    with pytest.raises(TypeError):
        HostTimeline(bad)


def test_devices(device, stream):
    class OfTorch:
        index = 0

    for good in (0, device, OfTorch(), stream):
        with HostTimeline(good) as timeline:
            assert timeline.signal().done()
    with pytest.raises(ValueError, match="no device -1"):
        HostTimeline(-1)
    with pytest.raises(Error, match="device 77"):
        HostTimeline(77)


@pytest.mark.parametrize(
    "bad, error",
    [("1", TypeError), (True, TypeError), (-1, ValueError), (float("nan"), ValueError)],
)
def test_no_timeout(stream, bad, error):
    with Timeline(stream) as timeline, pytest.raises(error):
        timeline.signal().wait(timeout=bad)


def test_values_out_of_range(device, stream):
    with HostTimeline(device) as timeline:
        for bad in (-1, 1 << 64):
            with pytest.raises(OverflowError):
                timeline.wait_ahead(stream, bad)


def test_closed(device, stream):
    timeline = Timeline(stream)
    point = timeline.signal()
    timeline.close()
    timeline.close()
    timeline.poison()
    assert "closed" in repr(timeline)
    for use in (
        timeline.signal,
        lambda: timeline.completed,
        lambda: timeline.submitted,
        lambda: timeline.wait_ahead(stream, 1),
    ):
        with pytest.raises(Error, match="closed"):
            use()
    assert point.wait(timeout=PATIENCE)
    host = HostTimeline(device)
    host.close()
    with pytest.raises(Error, match="closed"):
        host.signal()
    file = cuda_timelines.TimelineFile(device)
    file.close()
    for use in (file.fileno, lambda: Timeline(stream, file=file), lambda: HostTimeline(file=file)):
        with pytest.raises(Error, match="closed"):
            use()


def test_a_stream_that_was_closed_first(device):
    stream = device.create_stream()
    timeline = Timeline(stream)
    timeline.signal()
    stream.close()
    with pytest.raises(RuntimeError, match="closed"):
        timeline.signal()
    with pytest.raises(RuntimeError, match="closed"):
        Timeline(stream)
    with pytest.raises(RuntimeError, match="closed"):
        timeline.signal().stream_wait(stream)
    timeline.close()


def test_an_object_that_stands_for_another_stream_by_now(device, stream):
    named, other = Foreign(stream.__cuda_stream__()), device.create_stream()
    with Timeline(named) as timeline:
        named.answer = other.__cuda_stream__()
        with pytest.raises(Error, match="is another one now"):
            timeline.signal()
        named.answer = stream.__cuda_stream__()
        assert timeline.signal().wait(timeout=PATIENCE)


def test_each_device_has_its_context(device):
    if "software" not in device.name:
        pytest.skip("this machine may have one device")
    program = """
from cuda.core import Device
from cuda_timelines import HostTimeline, Timeline, TimelineFile
first = HostTimeline(0)
for number in range(2):
    device = Device(number)
    device.set_current()
    with TimelineFile(number) as file, Timeline(device.create_stream(), file=file) as timeline:
        print(timeline.signal().wait(timeout=60))
"""
    process = python(program, env={**os.environ, "CUDA_SOFT_DRIVER": "devices=2"})
    assert process.communicate(timeout=PATIENCE)[0] == "True\nTrue\n"


def test_poison_of_a_stream_that_was_closed_first(device):
    stream, follower = device.create_stream(), device.create_stream()
    with held(stream) as latch:
        timeline, other = Timeline(stream), Timeline(stream)
        for one in (timeline, other):
            one.wait_ahead(follower, one.submitted + 2)
        point = timeline.signal()
        # It is destroyed; the driver does its work all the same.
        stream.close()
        with pytest.raises(Error, match="poison again when they are reached"):
            timeline.poison()
        assert not follower.record().is_done
        latch.signal()
        assert point.wait(timeout=PATIENCE)
    timeline.poison()
    assert "closed" in repr(timeline)
    other.close()
    follower.sync()


def test_an_exception_is_on_its_way_while_a_timeline_ends():
    # In another process, which may crash.
    program = """
from cuda.core import Device
from cuda_timelines import Timeline
device = Device(0)
device.set_current()
stream, follower = device.create_stream(), device.create_stream()
def waited_for(timeline):
    timeline.wait_ahead(follower, timeline.submitted + 1)
    return timeline
try:
    [waited_for(Timeline(stream)), 1 / 0]
except ZeroDivisionError:
    follower.sync()
    print("released")
"""
    process = python(program)
    assert process.communicate(timeout=PATIENCE)[0] == "released\n"


def test_a_stream_that_may_be_destroyed_when_python_ends():
    # The interpreter ends the timeline when nobody can ask the stream any more.
    program = """
import atexit
from cuda.core import Device
from cuda_timelines import Timeline
device = Device(0)
device.set_current()
stream, follower = device.create_stream(), device.create_stream()
timeline = Timeline(stream)
timeline.wait_ahead(follower, timeline.submitted + 1)
atexit.register(stream.close)
print("ends")
"""
    process = python(program, stderr=subprocess.PIPE)
    ended = process.communicate(timeout=PATIENCE)
    assert (process.returncode, *ended) == (0, "ends\n", "")


def test_poison_releases_a_blocked_signal(device, stream):
    timeline, host = Timeline(stream), HostTimeline(device)
    # A card blocks a call for a stream that is full; here the stream is held and the poison comes
    # while another thread is in the timeline's own calls.
    with held(stream):
        ended = threading.Event()

        def signals():
            with pytest.raises((Error, RuntimeError)):
                while True:
                    timeline.signal()
            ended.set()

        thread = threading.Thread(target=signals, daemon=True)
        thread.start()
        timeline.poison()
        assert ended.wait(PATIENCE)
        thread.join(PATIENCE)
    host.poison()
    with pytest.raises(Error, match="closed"):
        host.signal()


def control(command):
    """Executes a command of the software driver, and returns the answer."""
    answer = ctypes.create_string_buffer(1 << 12)
    library = ctypes.CDLL("libcuda.so.1")
    code = library.cuda_soft_driver_control(command.encode(), answer, ctypes.c_size_t(1 << 12))
    assert code == 0, answer.value
    return answer.value.decode()


@contextmanager
def signal_in_the_driver(device, timeline):
    """Another thread is in a signal, which the driver does not return from before the end."""
    if "software" not in device.name:
        pytest.skip("a GPU's driver is not made to block")

    def signals():
        with suppress(Error):
            timeline.signal()

    before = control("injected")
    control("fault=cuStreamWriteValue64*:once:block")
    thread = threading.Thread(target=signals, daemon=True)
    thread.start()
    try:
        until(lambda: control("injected") != before)
        yield
    finally:
        # It is counted a moment before it blocks.
        until(lambda: control("release") != "0")
        thread.join(PATIENCE)
    assert not thread.is_alive()


def until(happens):
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_poison_does_not_wait_for_a_signal_in_the_driver(device, stream):
    follower = device.create_stream()
    timeline = Timeline(stream)
    timeline.wait_ahead(follower, timeline.submitted + 5)
    after = follower.record()
    ended = threading.Event()

    def poisons():
        timeline.poison()
        ended.set()

    with signal_in_the_driver(device, timeline):
        threading.Thread(target=poisons, daemon=True).start()
        # A card's driver may block the signal until this stream goes on.
        until(lambda: after.is_done)
        assert not ended.is_set()
    assert ended.wait(PATIENCE)
    assert "closed" in repr(timeline)


def test_poison_of_a_closed_stream_does_not_wait_for_a_signal(device, stream):
    class Closed:
        """A stream whose owner has closed it. The driver still has it, for the signal."""

        is_closed = False

        def __cuda_stream__(self):
            if self.is_closed:
                raise RuntimeError("the stream is closed")
            return stream.__cuda_stream__()

    def poisoned():
        try:
            timeline.poison()
        except Error as error:
            assert "call poison again when they are reached" in str(error)
            return False
        return True

    owner, follower = Closed(), device.create_stream()
    timeline = Timeline(owner)
    timeline.wait_ahead(follower, timeline.submitted + 5)
    after = follower.record()
    with signal_in_the_driver(device, timeline):
        owner.is_closed = True
        # It is neither used nor dropped under the other thread, and stays open. But what waits is
        # released: a card's driver may block the signal until then.
        for _ in range(2):
            with pytest.raises(Error, match="another thread uses the timeline right now"):
                timeline.poison()
            until(lambda: after.is_done)
    until(poisoned)
    assert "closed" in repr(timeline)
    until(lambda: after.is_done)


def test_the_timeline_keeps_its_stream(device):
    timeline = Timeline(device.create_stream())
    gc.collect()
    assert timeline.signal().wait(timeout=PATIENCE)
    point = Timeline(device.create_stream()).signal()
    gc.collect()
    assert point.wait(timeout=PATIENCE)


def test_closing_and_poison_release_waits(device, stream):
    timeline = Timeline(stream)
    ahead = timeline.submitted + 1
    follower = device.create_stream()
    timeline.wait_ahead(follower, ahead)
    timeline.poison()
    follower.sync()
    host = HostTimeline(device)
    host.wait_ahead(follower, host.completed + 1)
    host.close()
    follower.sync()


def test_a_failed_context_raises(device):
    if "software" not in device.name:
        pytest.skip("a GPU's context is not made to fail")
    # In another process: it cannot use the device afterwards.
    program = """
import os
from conftest import held
from cuda.core import Device
from cuda_timelines import DriverError, Timeline
device = Device(0)
device.set_current()
stream = device.create_stream()
timeline, hold = Timeline(stream), held(stream)
hold.__enter__()
point = timeline.signal()
try:
    point.wait()
except DriverError as error:
    print(error.name, error.code, flush=True)
os._exit(0)
"""
    environment = {**os.environ, "CUDA_SOFT_DRIVER": "fault=cuEventQuery:nth=3:code=719:context"}
    process = python(program, env=environment, cwd=os.path.dirname(__file__))
    assert process.communicate(timeout=PATIENCE)[0] == "CUDA_ERROR_LAUNCH_FAILED 719\n"


def test_repr(device, stream):
    with Timeline(stream) as timeline, held(stream) as latch:
        point = timeline.signal()
        assert repr(point) == f"<cuda_timelines.Point {point.value}, not done>"
        assert repr(timeline).startswith("<cuda_timelines.Timeline of stream 0x")
        assert f"{point.value - 1} of {point.value} signals reached" in repr(timeline)
        assert repr(latch) == f"<cuda_timelines.HostTimeline, {latch.completed} signals>"
        latch.signal()
        point.wait()
        assert repr(point) == f"<cuda_timelines.Point {point.value}, done>"
    assert repr(timeline) == "<cuda_timelines.Timeline, closed>"


def test_points_compare(stream):
    with Timeline(stream) as timeline, Timeline(stream) as other:
        first, second = timeline.signal(), timeline.signal()
        assert first == first and first != second and first != other.signal() and first != 1
        assert len({first, first, second}) == 2


def test_a_wait_releases_the_gil(stream):
    with Timeline(stream) as timeline, held(stream) as latch:
        point = timeline.signal()
        waiter = threading.Thread(target=point.wait)
        waiter.start()
        # This thread goes on, and ends the wait.
        latch.signal()
        waiter.join(PATIENCE)
        assert not waiter.is_alive()


def test_a_signal_ends_a_wait():
    # A wait that nothing else ends; the handler runs in the main thread, between two looks.
    program = """
from conftest import held
from cuda.core import Device
from cuda_timelines import Timeline
device = Device(0)
device.set_current()
stream = device.create_stream()
with Timeline(stream) as timeline, held(stream):
    point = timeline.signal()
    try:
        print("waits", flush=True)
        point.wait()
    except KeyboardInterrupt:
        print("interrupted")
"""
    process = python(program, cwd=os.path.dirname(__file__))
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[0] == "interrupted\n"


def test_await(device, stream):
    async def run():
        with Timeline(stream) as timeline:
            await timeline.signal()
            with held(stream) as latch:
                points = [timeline.signal() for _ in range(100)]

                async def wait(point):
                    await point
                    return point.done()

                tasks = [asyncio.ensure_future(wait(point)) for point in points]
                twice = asyncio.ensure_future(wait(points[0]))
                given_up = asyncio.ensure_future(wait(points[-1]))
                # All wait, and the loop is free.
                await asyncio.sleep(0)
                assert not any(task.done() for task in tasks)
                given_up.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await given_up
                latch.signal()
                assert all(await asyncio.wait_for(asyncio.gather(*tasks, twice), PATIENCE))

    # One loop after another.
    for _ in range(3):
        asyncio.run(run())


def test_await_that_times_out(stream):
    async def run():
        with Timeline(stream) as timeline, held(stream):
            point = timeline.signal()

            async def wait():
                await point

            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wait(), 0.01)
        await point

    asyncio.run(run())


def test_a_point_that_is_woken_early_is_still_awaited(device, stream):
    other = device.create_stream()
    notifier = Notifier()

    def woken():
        return bool(select.select([notifier], [], [], PATIENCE)[0])

    with Timeline(stream) as timeline, Timeline(other) as later:
        with held(stream) as first, held(other) as second:
            assert not notifier.add(1, timeline.signal()) and not notifier.add(2, timeline.signal())
            first.signal()
            assert woken()
            # Under the key that was woken there is another point by now.
            notifier.remove(1)
            assert not notifier.add(1, later.signal())
            ready = notifier.ready()
            while not ready:
                assert woken()
                ready = notifier.ready()
            assert ready == [(2, None)]
            second.signal()
            assert woken()
            assert notifier.ready() == [(1, None)]
            # Each is said once.
            assert notifier.ready() == []


def test_a_point_that_is_not_awaited_any_more(stream):
    notifier, ready = Notifier(), []
    with Timeline(stream) as timeline:
        with held(stream) as latch:
            assert not notifier.add(1, timeline.signal()) and not notifier.add(2, timeline.signal())
            notifier.remove(1)
            latch.signal()
            while not ready:
                assert select.select([notifier], [], [], PATIENCE)[0]
                ready = notifier.ready()
            assert ready == [(2, None)]


def test_a_loop_that_ends_with_an_await_is_freed(stream):
    async def wait(point):
        await point

    with Timeline(stream) as timeline, held(stream):
        loop = asyncio.new_event_loop()
        task = loop.create_task(wait(timeline.signal()))
        task._log_destroy_pending = False
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        freed = weakref.ref(loop)
        del loop, task
        gc.collect()
        assert freed() is None


def test_await_outside_of_a_loop(stream):
    with Timeline(stream) as timeline, pytest.raises(RuntimeError, match="event loop"):
        timeline.signal().__await__().send(None)


def test_loops_in_threads(device):
    async def run():
        stream = device.create_stream()
        with Timeline(stream) as timeline:
            for _ in range(50):
                await timeline.signal()
        return True

    def loop():
        device.set_current()
        return asyncio.run(run())

    results = []
    threads = [threading.Thread(target=lambda: results.append(loop())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert results == [True] * 4


def test_many_threads_use_one_timeline(stream):
    with Timeline(stream) as timeline:
        values = []

        def run():
            for _ in range(50):
                point = timeline.signal()
                assert point.wait(timeout=PATIENCE)
                values.append(point.value)

        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(set(values)) == 400


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork(device, stream):
    timeline = Timeline(stream)
    point = timeline.signal()
    host = HostTimeline(device)
    assert point.wait()
    child = os.fork()
    if child == 0:
        uses = [
            timeline.signal,
            host.signal,
            point.wait,
            point.query,
            lambda: Timeline(stream),
            lambda: HostTimeline(0),
            lambda: point.stream_wait(int(stream.handle)),
            lambda: cuda_timelines.TimelineFile(0),
        ]
        code = 0
        try:
            for use in uses:
                try:
                    use()
                    code = 1
                except Error as error:
                    code = code or (0 if "forked" in str(error) else 2)
            timeline.close()
            host.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert timeline.signal().wait(timeout=PATIENCE)


def test_no_driver():
    program = """
from cuda_timelines import Error, HostTimeline, Timeline, TimelineFile, TimelineMemory
for make in (HostTimeline, TimelineFile, TimelineMemory, Timeline):
    try:
        make(0)
    except Error as error:
        assert "/nowhere/libcuda.so.1" in str(error) and "CUDA_EVENTS_DRIVER" in str(error), error
        print(type(error).__name__)
"""
    environment = {**os.environ, "CUDA_EVENTS_DRIVER": "/nowhere/libcuda.so.1"}
    process = python(program, env=environment)
    assert process.communicate(timeout=PATIENCE)[0] == "Error\n" * 4


def test_exceptions():
    for kind in (cuda_timelines.ExporterGone, Poisoned, DriverError):
        assert issubclass(kind, Error) and issubclass(kind, RuntimeError)
    import pickle

    error = DriverError("a call failed", 719, "CUDA_ERROR_LAUNCH_FAILED")
    same = pickle.loads(pickle.dumps(error))
    assert (str(same), same.code, same.name) == (str(error), 719, "CUDA_ERROR_LAUNCH_FAILED")


def test_no_object_is_made_by_hand():
    for kind in (Point,):
        with pytest.raises(TypeError):
            kind()
