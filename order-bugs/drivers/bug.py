"""What the drivers share.

A driver is `python3 NAME.py faulty|mended [--delay]`. It prints `seconds: S` and `wrong: K of N`,
or `NOT RUN: REASON` with status 3.
"""

import argparse
import ast
import faulthandler
import importlib.util
import inspect
import os
import sys
import textwrap
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.environ.get("ORDER_BUGS_SOURCES") or os.path.join(HERE, "..", "..", "target", "order-bugs")

_parser = argparse.ArgumentParser()
_parser.add_argument("form", choices=["faulty", "mended"])
_parser.add_argument("--case", help="which of several errors of a driver")
_parser.add_argument("--delay", action="store_true", help="hold the earlier access back on the card")
_options = _parser.parse_args()
MENDED = _options.form == "mended"
DELAY = _options.delay
CASE = _options.case

faulthandler.dump_traceback_later(int(os.environ.get("ORDER_BUGS_LIMIT", 60)), exit=True)
_begin = time.time()


def cannot(reason):
    print(f"NOT RUN: {reason}", flush=True)
    os._exit(3)


try:
    import torch
except ImportError as error:
    cannot(f"PyTorch: {error}")
if not torch.cuda.is_available():
    cannot("there is no GPU that PyTorch can use")


def source(*path):
    """A file that get.py has brought."""
    name = os.path.join(SOURCES, *path)
    if not os.path.exists(name):
        cannot(f"{os.path.join(*path)} is not there: order-bugs/get.py")
    return name


def wheel(name):
    """Puts a package of another version in front of those that are installed."""
    sys.path.insert(0, source("unpacked", name))


def load(path, name):
    """Loads one file of a package without the package."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def definition(path, name, scope, old="", new=""):
    """The class or function of a file that `name` says, as in `Test.test_one.fn`, alone.

    In the form `mended`, `old` in its text is replaced by `new`.
    """
    with open(path) as file:
        text = file.read()
    node = ast.parse(text, path)
    for part in name.split("."):
        named = [inner for inner in node.body if getattr(inner, "name", None) == part]
        if not named:
            cannot(f"{path} has no {name}")
        node = named[-1]
    lines = text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno]
    code = textwrap.dedent("".join(lines))
    if old and code.count(old) != 1:
        cannot(f"{name} is not the version that this entry is about")
    if MENDED and old:
        code = code.replace(old, new)
    exec(compile(code, path, "exec"), scope)
    return scope[node.name]


def mend(owner, name, old, new):
    """Replaces lines of a function of Python, in this process, if the form is `mended`."""
    function = inspect.unwrap(getattr(owner, name))
    text = textwrap.dedent(inspect.getsource(function))
    if text.count(old) != 1:
        cannot(f"{name} is not the version that this entry is about")
    if MENDED:
        scope = {}
        code = compile(text.replace(old, new), f"<{name}, mended>", "exec")
        exec(code, function.__globals__, scope)
        setattr(owner, name, scope[name])
    return getattr(owner, name)


def current():
    return torch.cuda.current_stream()


def settle():
    torch.cuda.synchronize()


def hold(milliseconds=20):
    """Work for the current stream that touches no memory."""
    torch.cuda._sleep(int(milliseconds * 1.7e6))


def late(milliseconds=20):
    if DELAY:
        hold(milliseconds)


_busy = {}


def busy(times=4, size=4096):
    """Work as a program has it: products of matrices in the current stream."""
    if "matrix" not in _busy:
        _busy["matrix"] = torch.ones(size, size, device="cuda")
        settle()
    stream = current().cuda_stream
    if stream not in _busy:
        _busy[stream] = _busy["matrix"] @ _busy["matrix"]
        settle()
    for _ in range(times):
        torch.mm(_busy["matrix"], _busy["matrix"], out=_busy[stream])


def start():
    """The begin of what is timed."""
    global _begin
    settle()
    _begin = time.time()


def end(wrong, total):
    settle()
    print(f"seconds: {time.time() - _begin:.3f}")
    print(f"wrong: {wrong} of {total}", flush=True)
