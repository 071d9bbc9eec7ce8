#!/usr/bin/env python3
"""Runs programs that others published, built with nvcc as they are, under the order checker.

others.py SOURCES [--command cuda-order-check] [--jobs 12] [--build DIR] [--logs DIR] [--only PATTERN]

SOURCES has the folders cuda-samples (NVIDIA's), cuda-training-series (OLCF's course) and cusan (the tests of
CuSan, each built as it is, which is racy as a rule, and with CUSAN_SYNC). A program that does not build, needs
MPI or a window, or fails without the checker is counted, and named with --verbose.
"""

import argparse
import concurrent.futures
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import tempfile

LIBRARIES = "cuda cublas cufft curand cusparse cusolver nvrtc nvJitLink nppif nppisu nppc nppial nppicc nppidei nppist".split()
WINDOWS = re.compile(rb'#\s*include\s*[<"](GL/|GLES|GLFW|EGL|helper_gl|d3d|vulkan|windows\.h|mpi\.h|.*gpu_mpi\.h|nvscibuf)')


def sources(root):
    """Each program: its name, its files, its options for nvcc."""
    samples = os.path.join(root, "cuda-samples")
    for folder, _, files in sorted(os.walk(os.path.join(samples, "Samples"))):
        code = [os.path.join(folder, file) for file in sorted(files) if file.endswith((".cu", ".cpp"))]
        everything = b"".join(read(os.path.join(folder, file)) for file in files if file.endswith((".cu", ".cpp", ".h", ".cuh")))
        code = [file for file in code if not re.search(rb'#\s*include\s*[<"]' + os.path.basename(file).encode(), everything)]
        if any(re.search(rb"\bmain\s*\(", read(file)) for file in code):
            yield os.path.relpath(folder, os.path.join(samples, "Samples")), code, ["-I" + os.path.join(samples, "Common")]
    course = os.path.join(root, "cuda-training-series")
    for file in sorted(glob.glob(os.path.join(course, "**", "*.cu"), recursive=True)):
        yield "olcf/" + os.path.relpath(file, os.path.join(course, "exercises")), [file], []
    for file in sorted(glob.glob(os.path.join(root, "cusan", "test", "runtime", "*.c"))):
        name = "cusan/" + os.path.basename(file)
        yield name, [file], ["-x", "cu"]
        if b"CUSAN_SYNC" in read(file):
            yield name + "+sync", [file], ["-x", "cu", "-DCUSAN_SYNC"]


def read(file):
    with open(file, "rb") as opened:
        return opened.read()


def build(options, name, files, words):
    """The program's file, or why there is none."""
    if any(WINDOWS.search(read(file)) for file in files):
        return None, "needs MPI or a window"
    program = os.path.join(options.build, name.replace("/", "_"))
    if not os.path.exists(program):
        command = ["nvcc", "-std=c++17", "-w", "--extended-lambda", "-arch=native", *words, *files, "-o", program, "-Xcompiler", "-fopenmp"]
        done = subprocess.run(command + ["-l" + library for library in LIBRARIES], capture_output=True, text=True)
        if done.returncode != 0:
            return None, "does not build: " + (done.stderr.strip().splitlines() or [""])[0][-150:]
    return program, None


def start(words, folder):
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        return "no end in 60 s", ""


def one(options, name, files, words):
    program, why = build(options, name, files, words)
    if why:
        return name, why, None
    folder = os.path.dirname(files[0])
    plain, output = start([program], folder)
    if plain != 0:
        return name, f"status {plain} without the checker: {output.strip()[-100:]!r}", None
    with tempfile.TemporaryDirectory() as logs:
        log = os.path.join(logs, "log")
        status, output = start([options.command, "run", "--log", log + "-%p", "--", program], folder)
        text = "".join(read(file).decode(errors="replace") for file in sorted(glob.glob(log + "*")))
    if options.logs:
        with open(os.path.join(options.logs, name.replace("/", "_") + ".log"), "w") as file:
            file.write(text + "\n== output\n" + output)
    counts = [int(count) for count in re.findall(r"(\d+) findings? in ", text)]
    # A program that submits nothing has no summary.
    if status != plain:
        return name, f"WRONG: status {status} under the checker: {output.strip()[-200:]!r}", None
    return name, None, (sum(counts), re.findall(r"^missing order: .*", text, re.MULTILINE))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources")
    parser.add_argument("--command", default="cuda-order-check")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--build", default=os.path.join(tempfile.gettempdir(), "order-others"))
    parser.add_argument("--logs")
    parser.add_argument("--only", default="*")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.command = os.path.abspath(shutil.which(options.command) or options.command)
    options.sources = os.path.abspath(options.sources)
    for folder in (options.build, options.logs):
        if folder:
            os.makedirs(folder, exist_ok=True)

    programs = [program for program in sources(options.sources) if fnmatch.fnmatch(program[0], options.only)]
    reasons, ran, wrong = {}, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, why, result in pool.map(lambda program: one(options, *program), programs):
            if why:
                reasons.setdefault(why.split(":")[0], []).append(name)
                wrong += why.startswith("WRONG")
                if options.verbose or why.startswith("WRONG"):
                    print(f"{name}: {why}", flush=True)
                continue
            ran += 1
            if result[0]:
                print(f"{name}: {result[0]} findings", *sorted(set(result[1]))[:3], sep="\n    ", flush=True)
    for why, names in sorted(reasons.items()):
        print(f"NOT RUN: {len(names)}: {why}")
    print(f"{ran} of {len(programs)} programs ran under the checker, {wrong} wrong")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
