"""Interprocess events between this crate and programs that are not ours: NVIDIA's
cuda.core and PyTorch, both ways.

    peers.py PEER [--driver PATH] [cuda.core] [torch]

PEER is the example `ipc_peer`, built. PATH is the driver library that it opens; without it, it
looks as every program does. Closes with a line "N passed, N failed".
"""

import ctypes
import subprocess
import sys

from cuda.bindings import driver


def checked(result):
    code, *values = result
    assert code == driver.CUresult.CUDA_SUCCESS, code
    return values[0] if values else None


class Peer:
    """The crate's side, in a process of its own."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer, f"the peer ended at {line!r}"
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)


class Latch:
    """Holds a stream with a wait for a value in pinned memory."""

    def __init__(self, stream):
        flags = driver.CU_MEMHOSTALLOC_DEVICEMAP | driver.CU_MEMHOSTALLOC_PORTABLE
        self.memory = checked(driver.cuMemHostAlloc(64, flags))
        self.word = ctypes.c_uint32.from_address(int(self.memory))
        self.word.value = 0
        address = checked(driver.cuMemHostGetDevicePointer(self.memory, 0))
        checked(driver.cuStreamWaitValue32(driver.CUstream(stream), address, 1, 0))

    def release(self):
        self.word.value = 1


class CudaCore:
    """cuda.core's events and streams."""

    def __init__(self):
        from cuda.core import Device

        self.device = Device(0)
        self.device.set_current()

    def stream(self):
        stream = self.device.create_stream()
        return stream, int(stream.handle)

    def export(self, stream):
        from cuda.core import EventOptions

        event = stream.record(options=EventOptions(ipc_enabled=True))
        # What pickle would send: the bytes, and the blocking flag.
        handle, _ = event.ipc_descriptor.__reduce__()[1]
        return event, handle

    def import_event(self, handle):
        from cuda.core import Event
        from cuda.core._event import IPCEventDescriptor

        return Event.from_ipc_descriptor(IPCEventDescriptor._init(handle, False))

    def record(self, stream):
        return stream.record()

    def wait(self, stream, event):
        stream.wait(event)

    def is_done(self, event):
        return event.is_done

    def synchronize(self, event):
        event.sync()


class Torch:
    """PyTorch's events and streams."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.cuda.init()
        torch.zeros(1, device="cuda:0")

    def stream(self):
        stream = self.torch.cuda.Stream(0)
        return stream, stream.cuda_stream

    def export(self, stream):
        event = self.torch.cuda.Event(interprocess=True)
        event.record(stream)
        return event, event.ipc_handle()

    def import_event(self, handle):
        return self.torch.cuda.Event.from_ipc_handle(0, handle)

    def record(self, stream):
        return stream.record_event()

    def wait(self, stream, event):
        stream.wait_event(event)

    def is_done(self, event):
        return event.query()

    def synchronize(self, event):
        event.synchronize()


def they_export(library, command):
    stream, raw = library.stream()
    latch = Latch(raw)
    event, handle = library.export(stream)
    assert len(handle) == 64
    with Peer(command) as peer:
        assert peer.ask("import " + handle.hex()) == "imported"
        assert peer.ask("query") == "false", "their work is held"
        assert peer.ask("wait") == "queued"
        assert peer.ask("check") == "false", "our stream waits for theirs"
        assert not library.is_done(event)
        latch.release()
        assert peer.ask("finish") == "true"
        assert peer.ask("query") == "true"
    library.synchronize(event)


def they_import(library, command):
    with Peer(command) as peer:
        word, handle = peer.ask("export").split()
        assert word == "handle"
        event = library.import_event(bytes.fromhex(handle))
        stream, _ = library.stream()
        assert not library.is_done(event), "our work is held"
        library.wait(stream, event)
        own = library.record(stream)
        assert not library.is_done(own), "their stream waits for ours"
        assert peer.ask("release") == "released"
        library.synchronize(own)
        assert library.is_done(event)
        # The exporter keeps its event until the importer is done with it.
        del event, own


def main():
    arguments = sys.argv[1:]
    command = [arguments.pop(0)]
    if arguments[:1] == ["--driver"]:
        command.append(arguments[1])
        del arguments[:2]
    passed = failed = 0
    for name in arguments:
        library = {"cuda.core": CudaCore, "torch": Torch}[name]()
        for direction in they_export, they_import:
            try:
                direction(library, command)
                passed += 1
                print(f"ok      {name}: {direction.__name__}")
            except Exception as error:
                failed += 1
                print(f"FAILED  {name}: {direction.__name__}: {error!r}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0 or passed == 0)


if __name__ == "__main__":
    main()
