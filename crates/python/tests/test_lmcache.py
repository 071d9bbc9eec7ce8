"""The backend for LMCache, with streams of cuda.core in place of PyTorch's.

LMCache imports PyTorch, which has no place on the software driver. So its protocol is checked if
LMCACHE names an unpacked wheel of it: its file with the protocol then runs by itself.
"""

import contextlib
import importlib.util
import os
import signal
import socket
import sys
import threading
import time
import types
import zlib

import pytest
from conftest import PATIENCE, held, python
from cuda.bindings import driver
from cuda_timelines import ExporterGone
from cuda_timelines.lmcache import Event, TimelineEventIPCBackend


class Stream:
    """What LMCache reads of a torch.cuda.Stream."""

    device_index = 0

    def __init__(self, stream):
        self.stream = stream
        self.cuda_stream = int(stream.handle)

    def __cuda_stream__(self):
        return (0, self.cuda_stream)


@pytest.fixture
def backend(device):
    backend = TimelineEventIPCBackend()
    backend.check_event_support(0)
    return backend


@pytest.fixture
def torch_stream(stream):
    return Stream(stream)


def test_the_protocol(backend, monkeypatch):
    if "LMCACHE" not in os.environ:
        pytest.skip("LMCACHE is not set")
    package = types.ModuleType("lmcache")
    package.torch_dev, package.torch_device_type = None, "cuda"
    monkeypatch.setitem(sys.modules, "lmcache", package)
    path = os.path.join(os.environ["LMCACHE"], "lmcache/v1/platform/base/event_ipc.py")
    spec = importlib.util.spec_from_file_location("lmcache_event_ipc", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(backend, module.EventIPCBackend)
    # And its arguments have the names of the protocol's.
    import inspect

    for name in dir(module.EventIPCBackend):
        if not name.startswith("_") and callable(getattr(module.EventIPCBackend, name)):
            wanted = inspect.signature(getattr(module.EventIPCBackend, name)).parameters
            assert list(inspect.signature(getattr(type(backend), name)).parameters) == list(wanted)


def test_never_recorded_is_complete(backend, torch_stream, stream):
    event = backend.create_event(0)
    assert backend.query_event(event)
    backend.synchronize_event(event, 0)
    backend.wait_event(event, torch_stream)
    event.wait(torch_stream)
    imported = backend.import_event(backend.export_event(event, 0), 0)
    assert backend.query_event(imported)
    backend.synchronize_event(imported, 0)
    backend.wait_event(imported, torch_stream)
    stream.sync()
    assert "never recorded" in repr(event)


def test_record_wait_and_query(backend, device, torch_stream, stream):
    other = device.create_stream()
    event = backend.create_event(0)
    with held(stream) as latch:
        backend.record_event(event, torch_stream)
        imported = backend.import_event(backend.export_event(event, 0), 0)
        for one in (event, imported):
            assert not backend.query_event(one)
            backend.wait_event(one, Stream(other))
        after = other.record()
        assert not after.is_done and "not done" in repr(imported)
        # A pending event of one stream delays no other one.
        free = device.create_stream()
        independent = backend.create_event(0)
        backend.record_event(independent, Stream(free))
        backend.synchronize_event(independent, 0)
        latch.signal()
        for one in (event, imported):
            backend.synchronize_event(one, 0)
            assert backend.query_event(one)
    after.sync()
    with pytest.raises(RuntimeError, match="imported event cannot be recorded"):
        backend.record_event(imported, torch_stream)


def test_an_export_is_a_snapshot(backend, torch_stream, stream):
    event = backend.create_event(0)
    backend.record_event(event, torch_stream)
    backend.synchronize_event(event, 0)
    first = backend.export_event(event, 0)
    with held(stream) as latch:
        backend.record_event(event, torch_stream)
        assert backend.export_event(event, 0) != first
        assert backend.query_event(backend.import_event(first, 0))
        assert not backend.query_event(event)
        latch.signal()
        backend.synchronize_event(event, 0)
    # An import exports what it came from.
    assert backend.export_event(backend.import_event(first, 0), 0) == first


def test_damaged_handles(backend, torch_stream):
    event = backend.create_event(0)
    backend.record_event(event, torch_stream)
    good = backend.export_event(event, 0)
    for place in range(len(good)):
        for change in (1, 0x80, 0xFF):
            bad = bytearray(good)
            bad[place] ^= change
            with pytest.raises(RuntimeError, match="event handle refused"):
                backend.import_event(bytes(bad), 0)
    for bad in (b"", good[:-1], good + b"x", b"x" * 64):
        with pytest.raises(RuntimeError, match="event handle refused"):
            backend.import_event(bad, 0)
    for bad in (None, "text", 5):
        with pytest.raises(RuntimeError, match="is bytes"):
            backend.import_event(bad, 0)
    assert isinstance(backend.import_event(bytearray(good), 0), Event)


def test_misuse(backend, torch_stream):
    event = backend.create_event(0)
    for bad in (None, object(), 5, event.native):
        for use in (
            lambda bad=bad: backend.record_event(bad, torch_stream),
            lambda bad=bad: backend.query_event(bad),
            lambda bad=bad: backend.export_event(bad, 0),
        ):
            with pytest.raises(RuntimeError, match="create_event or import_event"):
                use()
    for bad in ("stream", object(), True, 1.5):
        with pytest.raises(RuntimeError, match=r"torch\.cuda\.Stream"):
            backend.record_event(event, bad)
    for bad in (77, -1, object, True):
        with pytest.raises(RuntimeError):
            backend.create_event(bad if bad is not object else types.SimpleNamespace(index="x"))
    with pytest.raises(RuntimeError):
        backend.check_event_support(77)


class Device:
    """What is read of a torch.device."""

    def __init__(self, kind, index):
        self.type, self.index = kind, index


def test_devices_and_streams(backend, torch_stream):
    for good in (0, "cuda:0", Device("cuda", 0)):
        assert backend.create_event(good).native.device_index == 0
    event = backend.create_event(0)
    # None and "cuda" ask PyTorch, which is not here.
    for bad in ("cpu", "cpu:0", "cuda:", "cuda:x", "cuda:0 ", "xpu:0", 1.0, b"cuda:0", 1 << 70):
        with pytest.raises(RuntimeError, match="is not a CUDA device"):
            backend.create_event(bad)
    for bad in (Device("cpu", 0), Device("cuda", True), types.SimpleNamespace(index=0)):
        with pytest.raises(RuntimeError, match="is not a CUDA device"):
            backend.create_event(bad)
    for handle in (-1, 1 << 64, True, None, 1.5):
        with pytest.raises(RuntimeError, match=r"torch\.cuda\.Stream"):
            backend.record_event(event, types.SimpleNamespace(cuda_stream=handle))
    for index in (-1, 1 << 32, "0", None):
        bad = types.SimpleNamespace(cuda_stream=torch_stream.cuda_stream, device_index=index)
        for use in (backend.record_event, backend.wait_event):
            with pytest.raises(RuntimeError, match=r"torch\.cuda\.Stream"):
                use(event, bad)


def test_pytorch_that_fails(backend, monkeypatch):
    def fails():
        raise AssertionError("Torch not compiled with CUDA enabled")

    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_device=fails, current_stream=lambda device: 5.5)
    for module in (torch, None):
        monkeypatch.setitem(sys.modules, "torch", module)
        for none in (None, "cuda", Device("cuda", None)):
            with pytest.raises(RuntimeError, match="current_device failed"):
                backend.create_event(none)
        with pytest.raises(RuntimeError):
            backend.record_event(backend.create_event(0), None)


def test_a_record_in_a_capture(backend, torch_stream, stream):
    event = backend.create_event(0)
    backend.record_event(event, torch_stream)
    backend.synchronize_event(event, 0)
    before = backend.export_event(event, 0)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    assert driver.cuStreamBeginCapture(stream.handle, mode)[0] == driver.CUresult.CUDA_SUCCESS
    with pytest.raises(RuntimeError, match="capture"):
        backend.record_event(event, torch_stream)
    code, graph = driver.cuStreamEndCapture(stream.handle)
    assert code == driver.CUresult.CUDA_SUCCESS
    assert driver.cuGraphDestroy(graph)[0] == driver.CUresult.CUDA_SUCCESS
    # The event is as it was, and of use.
    assert backend.export_event(event, 0) == before
    backend.record_event(event, torch_stream)
    backend.synchronize_event(event, 0)


def recorded(backend, stream):
    event = backend.create_event(0)
    backend.record_event(event, Stream(stream))
    return backend.export_event(event, 0)


def socket_of(handle):
    """The abstract socket that the handle names, and what it is asked."""
    return f"\0cuda-timelines-{int.from_bytes(handle[14:30], 'little'):032x}", handle[30:50]


def threads():
    """Those of the server: its own, and one for each client. Names have fifteen letters."""
    names = []
    for thread in os.listdir("/proc/self/task"):
        # One may end meanwhile.
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/comm") as file:
            names.append(file.read().strip())
    return names.count("cuda-timelines-")


def memory_files():
    """How many of them this process has open."""
    number = 0
    for file in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # it was that of the folder itself
            number += os.readlink(f"/proc/self/fd/{file}").startswith("/memfd:")
    return number


def forge(good, name, ask=None, timeline=b""):
    """A handle that names another socket, and may ask it for something else and name a timeline
    that this process has not imported."""
    rest = good[50 : 50 + 8] + timeline + good[50 + 8 + len(timeline) : -4]
    forged = good[:14] + name + (ask or good[30:50]) + rest
    return forged + zlib.crc32(forged).to_bytes(4, "little")


def test_refused_files_are_closed(backend, device):
    good = recorded(backend, device.create_stream())
    name, rounds = os.urandom(16), 20
    before = memory_files()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(socket_of(forge(good, name))[0])
        server.listen()
        server.settimeout(PATIENCE)

        def serve():
            for _ in range(rounds):
                client, _ = server.accept()
                client.recv(20)
                file = os.memfd_create("no timelines")
                socket.send_fds(client, [b"x"], [file])
                os.close(file)
                client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        for _ in range(rounds):
            with pytest.raises(RuntimeError):
                backend.import_event(forge(good, name, os.urandom(20), os.urandom(8)), 0)
        thread.join(PATIENCE)
    assert memory_files() == before


def test_a_server_whose_queue_is_full(backend, device):
    good = recorded(backend, device.create_stream())
    forged = forge(good, os.urandom(16), timeline=os.urandom(8))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(socket_of(forged)[0])
        server.listen(1)
        with contextlib.suppress(BlockingIOError):
            while True:
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(socket_of(forged)[0])
        # The user can end it, and otherwise it ends by itself.
        main = threading.main_thread().ident
        timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            backend.import_event(forged, 0)
        timer.join()
        with pytest.raises(RuntimeError, match="does not answer: timed out"):
            backend.import_event(forged, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_clients_of_another_user_take_few_places(backend, device):
    good = recorded(backend, device.create_stream())
    name, _ = socket_of(good)
    end = time.monotonic() + PATIENCE
    while threads() > 1 and time.monotonic() < end:
        time.sleep(0.001)
    before, seen = threads(), []
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            clients = [socket.socket(socket.AF_UNIX) for _ in range(100)]
            for client in clients:
                client.settimeout(PATIENCE)
                client.connect(name)
            os.write(writer, b"connected")
            # Most are refused before they have said anything; eight are waited for.
            refused = 0
            for client in clients:
                client.settimeout(0.001)
                with contextlib.suppress(TimeoutError):
                    refused += client.recv(1) == b""
            code = 0 if refused >= 92 else 2
        finally:
            os._exit(code)
    os.close(writer)
    assert os.read(reader, 9) == b"connected"
    ended = 0
    while ended == 0:
        seen.append(threads())
        ended, status = os.waitpid(child, os.WNOHANG)
    os.close(reader)
    assert os.waitstatus_to_exitcode(status) == 0
    assert max(seen) <= before + 8


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_server_of_another_user_gets_no_secret(backend, device):
    good = recorded(backend, device.create_stream())
    forged = forge(good, os.urandom(16), timeline=os.urandom(8))
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(12345)
            server = socket.socket(socket.AF_UNIX)
            server.bind(socket_of(forged)[0])
            server.listen()
            os.write(writer, b"listens")
            server.settimeout(PATIENCE)
            client, _ = server.accept()
            client.settimeout(PATIENCE)
            code = 0 if client.recv(1) == b"" else 2
        finally:
            os._exit(code)
    os.close(writer)
    assert os.read(reader, 7) == b"listens"
    os.close(reader)
    with pytest.raises(RuntimeError, match="its socket is user 12345's, who is neither"):
        backend.import_event(forged, 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_who_does_not_know_the_secret_gets_no_file(backend, torch_stream):
    event = backend.create_event(0)
    backend.record_event(event, torch_stream)
    name, ask = socket_of(backend.export_event(event, 0))
    for wrong in (bytes(20), bytes([ask[0] ^ 1]) + ask[1:], ask[:16] + b"\xff" * 4, ask):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(name)
            client.sendall(wrong)
            data, files, _, _ = socket.recv_fds(client, 1, 1)
            for file in files:
                os.close(file)
            assert (data, len(files)) == ((b"\1", 1) if wrong == ask else (b"", 0)), wrong


def test_a_forked_worker_does_not_keep_the_socket(backend):
    fork = "import os, time\nif os.fork() == 0:\n    time.sleep(300)\n"
    program = MAKER.replace("sys.stdin.read()", fork + "print('forked', flush=True)\nsys.stdin.read()")
    process = python(program, cwd=os.path.dirname(__file__), start_new_session=True)
    handle = bytes.fromhex(process.stdout.readline())
    process.stdout.readline()
    assert process.stdout.readline() == "forked\n"
    process.kill()
    process.wait(PATIENCE)
    try:
        with pytest.raises(RuntimeError, match="does not answer: Connection refused"):
            backend.import_event(handle, 0)
    finally:
        os.killpg(process.pid, signal.SIGKILL)


def test_a_forked_worker_does_not_keep_clients():
    fork = """
import os, time
sys.stdin.readline()
if os.fork() == 0:
    time.sleep(300)
print("forked", flush=True)
"""
    program = MAKER.replace("sys.stdin.read()", fork + "sys.stdin.read()")
    process = python(program, cwd=os.path.dirname(__file__), start_new_session=True)
    handle = bytes.fromhex(process.stdout.readline())
    process.stdout.readline()
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            name, ask = socket_of(handle)
            client.connect(name)
            # The server has accepted it when another one is answered.
            with socket.socket(socket.AF_UNIX) as second:
                second.connect(name)
                second.sendall(ask)
                assert second.recv(1) == b"\1"
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "forked\n"
            process.kill()
            process.wait(PATIENCE)
            client.settimeout(5)
            assert client.recv(1) == b""
    finally:
        os.killpg(process.pid, signal.SIGKILL)


def test_an_exporter_that_does_not_answer(backend, device, request):
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    request.addfinalizer(lambda: signal.signal(signal.SIGUSR1, before))
    good = recorded(backend, device.create_stream())
    forged = forge(good, os.urandom(16), timeline=os.urandom(8))
    raised = []

    def imports():
        try:
            backend.import_event(forged, 0)
        except RuntimeError as error:
            raised.append(str(error))

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(socket_of(forged)[0])
        server.listen()
        server.settimeout(PATIENCE)
        thread = threading.Thread(target=imports)
        thread.start()
        client, _ = server.accept()
        # It waits, also through signals of the system, and others do not wait for it.
        assert client.recv(20) == forged[30:50]
        for _ in range(10):
            signal.pthread_kill(thread.ident, signal.SIGUSR1)
            time.sleep(0.001)
        assert backend.query_event(backend.import_event(good, 0)) in (True, False)
        client.close()
        thread.join(PATIENCE)
    # It did not give up before.
    assert len(raised) == 1 and "refused to send its file" in raised[0]


def test_many_clients_that_say_nothing(backend, device):
    name, ask = socket_of(recorded(backend, device.create_stream()))

    def connected():
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(PATIENCE)
        client.connect(name)
        return client

    # Those of the clients of earlier tests end first.
    end = time.monotonic() + PATIENCE
    while threads() > 1 and time.monotonic() < end:
        time.sleep(0.001)
    before = threads()
    clients = [connected() for _ in range(100)]
    last = connected()
    last.sendall(ask)
    end = time.monotonic() + PATIENCE
    while threads() < before + 64 and time.monotonic() < end:
        time.sleep(0.001)
    last.settimeout(0.1)
    with pytest.raises(TimeoutError):
        last.recv(1)
    assert threads() <= before + 64
    for client in clients:
        client.close()
    last.settimeout(PATIENCE)
    _, files, _, _ = socket.recv_fds(last, 1, 1)
    assert len(files) == 1
    os.close(files[0])
    last.close()


def test_more_streams_than_places(backend, device):
    # Timelines of idle streams serve others. The handles name the files that they are in.
    files = set()
    for _ in range(200):
        stream = device.create_stream()
        event = backend.create_event(0)
        backend.record_event(event, Stream(stream))
        backend.synchronize_event(event, 0)
        handle = backend.export_event(event, 0)
        assert backend.query_event(backend.import_event(handle, 0))
        files.add(handle[14:50])
    assert len(files) <= 2
    # Of streams that are all pending, none is taken.
    streams = [device.create_stream() for _ in range(100)]
    events = [backend.create_event(0) for _ in streams]
    gate = device.create_stream()
    with held(gate) as latch:
        opened = gate.record()
        for stream, event in zip(streams, events, strict=True):
            stream.wait(opened)
            backend.record_event(event, Stream(stream))
        assert not any(backend.query_event(event) for event in events)
        latch.signal()
        for event in events:
            backend.synchronize_event(event, 0)


def test_a_refused_record_takes_no_timeline(backend, torch_stream):
    event = backend.create_event(0)
    before = memory_files()
    for _ in range(130):
        with pytest.raises(RuntimeError, match="per-thread default stream"):
            backend.record_event(event, 2)
    assert memory_files() == before
    backend.record_event(event, torch_stream)
    handle = backend.export_event(event, 0)
    # The bytes stay the same, however often they are sent on.
    assert backend.export_event(backend.import_event(handle, 0), 0) == handle


def test_a_handle_that_comes_back(backend, device):
    first = device.create_stream()
    handle = int(first.handle)
    early, late = backend.create_event(0), backend.create_event(0)
    with held(first):
        backend.record_event(early, Stream(first))
        # It is destroyed with its work pending, and the next stream has its handle.
        first.close()
        streams = [device.create_stream() for _ in range(8)]
        (again,) = [stream for stream in streams if int(stream.handle) == handle]
        backend.record_event(late, Stream(again))
        again.sync()
        assert backend.query_event(late) and not backend.query_event(early)
    backend.synchronize_event(early, 0)


def test_many_threads_wait(backend, torch_stream, stream):
    events = [backend.create_event(0) for _ in range(100)]
    with held(stream) as latch:
        for event in events:
            backend.record_event(event, torch_stream)
        threads = [
            threading.Thread(target=backend.synchronize_event, args=(event, 0)) for event in events
        ]
        for thread in threads:
            thread.start()
        assert not any(backend.query_event(event) for event in events)
        latch.signal()
        for thread in threads:
            thread.join(PATIENCE)
        assert not any(thread.is_alive() for thread in threads)


# The maker sends the bytes of an event that is complete and of one that never will be.
MAKER = """
import sys
from conftest import held
from cuda.core import Device
from cuda_timelines.lmcache import TimelineEventIPCBackend
from test_lmcache import Stream
device = Device(0)
device.set_current()
stream = device.create_stream()
backend = TimelineEventIPCBackend()
backend.check_event_support(0)
done, never = backend.create_event(0), backend.create_event(0)
backend.record_event(done, Stream(stream))
backend.synchronize_event(done, 0)
hold = held(stream)
hold.__enter__()
backend.record_event(never, Stream(stream))
for event in (done, never):
    print(backend.export_event(event, 0).hex(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("namespaces", [False, True], ids=["plain", "namespaces"])
def test_a_peer_that_is_killed(backend, device, torch_stream, stream, namespaces):
    unshare = ["unshare", "--mount-proc", "--pid", "--ipc", "--fork", "--kill-child"]
    if namespaces and os.spawnvp(os.P_WAIT, "unshare", [*unshare, "true"]) != 0:
        pytest.skip("this process may not make namespaces")
    process = python(MAKER, before=unshare if namespaces else [], cwd=os.path.dirname(__file__))
    done, never = (
        backend.import_event(bytes.fromhex(process.stdout.readline()), 0) for _ in range(2)
    )
    assert backend.query_event(done) and not backend.query_event(never)
    backend.synchronize_event(done, 0)
    backend.wait_event(never, torch_stream)
    after = stream.record()
    assert not after.is_done
    raised = []

    def wait():
        try:
            backend.synchronize_event(never, 0)
        except ExporterGone as error:
            raised.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    process.kill()
    process.wait(PATIENCE)
    waiter.join(PATIENCE)
    assert len(raised) == 1
    # The stream is released.
    after.sync()
    with pytest.raises(ExporterGone):
        while not backend.query_event(never):
            pass
    assert backend.query_event(done)


def test_an_exporter_that_is_gone_before_the_import(backend):
    process = python(MAKER, cwd=os.path.dirname(__file__))
    handle = bytes.fromhex(process.stdout.readline())
    process.kill()
    process.wait(PATIENCE)
    with pytest.raises(RuntimeError, match="it has ended, or runs in another network namespace"):
        backend.import_event(handle, 0)


def test_imports_of_exporters_that_have_ended_are_dropped(backend):
    counts = []
    for _ in range(2):
        process = python(MAKER, cwd=os.path.dirname(__file__))
        backend.import_event(bytes.fromhex(process.stdout.readline()), 0)
        counts.append(memory_files())
        process.kill()
        process.wait(PATIENCE)
    assert counts[0] == counts[1]


def test_a_record_in_a_forked_child(backend, torch_stream):
    event = backend.create_event(0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            backend.record_event(event, torch_stream)
        except RuntimeError as error:
            code = 0 if "forked" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert driver.cuCtxSynchronize()[0] == driver.CUresult.CUDA_SUCCESS
