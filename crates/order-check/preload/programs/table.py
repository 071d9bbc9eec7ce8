#!/usr/bin/env python3
"""Runs all programs of this folder under the order checker, and makes a table.

table.py [--command cuda-order-check] [--runs 10] [--jobs 6] [--only PATTERN...] [--skip PATTERN...]

Programs that need what the machine lacks (CuPy, JAX, nvcc, a second GPU) are named. The status is 1 if an error
was missed in any run, or if anything was reported about a correct program. A cost is the best of
five processes, plain and checked in turn: a machine with other guests only ever adds time.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT = ("copy", "free", "host", "objects")
LANGUAGES = {
    "pytorch.py": "PyTorch",
    "two_gpus.py": "PyTorch, two GPUs",
    "cupy_programs.py": "CuPy",
}
TIMED = ["training_step", "resnet", "inference_of_small_kernels"]


def run(options, words, number, checked=True, classes=""):
    """The process's status, the number of findings (None without a summary), its output."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        if checked:
            classes = ["--class", classes] if classes else []
            words = [options.command, "run", "--log", f"{log}-%p", *classes, "--", *words]
        try:
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, timeout=120
            )
            status, output = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            status, output = "no end in 120 s", ""
        text = ""
        for name in sorted(os.listdir(folder)):
            if name.startswith("log"):
                with open(os.path.join(folder, name), errors="replace") as file:
                    text += file.read()
    found = [int(count) for count in re.findall(r"(\d+) findings? in ", text)]
    if options.logs:
        name = "-".join(words[-2:]).replace("/", "_") + f"-{number}.log"
        with open(os.path.join(options.logs, name), "w") as file:
            file.write(text + "\n== output\n" + output)
    return status, sum(found) if found else None, output


def listed(words):
    done = subprocess.run(words + ["--list"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"NOT RUN: {words[-1]}: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return []
    return [line.split() for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", default="cuda-order-check")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--only", default=["*"], nargs="+")
    parser.add_argument("--skip", default=[], nargs="+")
    parser.add_argument("--json")
    parser.add_argument("--logs")
    parser.add_argument("--architecture", default="native", help="of native.cu; with compute_80 the driver compiles PTX")
    parser.add_argument("--native", default=os.path.join(tempfile.gettempdir(), "order-native"))
    options = parser.parse_args()
    options.command = os.path.abspath(shutil.which(options.command) or options.command)
    if options.logs:
        os.makedirs(options.logs, exist_ok=True)

    nvcc = ["nvcc", f"-arch={options.architecture}", "-o", options.native, os.path.join(HERE, "native.cu")]
    try:
        subprocess.run(nvcc, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"NOT RUN: native.cu: {error}", flush=True)
    smi = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    gpus = len(smi.stdout.splitlines())
    names = ["pytorch.py", "cupy_programs.py"]
    if gpus > 1:
        names.append("two_gpus.py")
    else:
        print(f"NOT RUN: two_gpus.py: the machine has {gpus} GPU", flush=True)
    files = [os.path.join(HERE, name) for name in names]
    python = [[sys.executable, file] for file in files]
    native = [[options.native]] if os.path.exists(options.native) else []

    tasks, languages = [], {}
    for words in python + native:
        for name, kind in listed(words):
            file = os.path.basename(words[-1])
            languages[name] = LANGUAGES.get(file, "CUDA C++, static runtime")
            if name.startswith("published_"):
                languages[name] += ", after published reports"
            classes = "" if kind in DEFAULT else f"+{kind}"
            for variant in ("planted", "mended"):
                for number in range(options.runs):
                    tasks.append((name, kind, variant, words + [name, variant], number, classes))
    correct = [sys.executable, os.path.join(HERE, "correct.py")]
    for name, needs in listed(correct):
        if int(needs) > gpus:
            print(f"NOT RUN: {name}: the machine has {gpus} GPU", flush=True)
        elif name not in TIMED:
            tasks.append((name, "correct", "correct", correct + [name], 0, ""))

    def asked(name):
        first, second = (
            any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
            for patterns in (options.only, options.skip)
        )
        return first and not second

    tasks = [task for task in tasks if asked(task[0])]

    results, wrong = {}, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, options, task[3], task[4], True, task[5]) for task in tasks]
        for (name, kind, variant, *_), future in zip(tasks, runs):
            status, found, output = future.result()
            row = results.setdefault((name, kind), {}).setdefault(variant, [])
            row.append([status, found])
            if status != 0:
                last = (output.strip().splitlines() or [""])[-1]
                print(f"{name} {variant}: status {status}: {last[:160]}", flush=True)

    print("| program | class | found, of the runs | in its mended twin |\n| --- | --- | --- | --- |")
    sums = {}
    for (name, kind), row in results.items():
        all_runs = [run for runs in row.values() for run in runs]
        bad = any(status != 0 or found is None for status, found in all_runs)
        if kind == "correct":
            found = row["correct"][0][1]
            bad |= found != 0
            print(f"| `{name}` | correct | {found} | |" + (" WRONG" if bad else ""))
        else:
            hits = sum(bool(found) for _, found in row["planted"])
            false = sum(bool(found) for _, found in row["mended"])
            bad |= hits < len(row["planted"]) or false > 0
            found = f"{hits} of {len(row['planted'])}"
            print(f"| `{name}` | {kind} | {found} | {false} |" + (" WRONG" if bad else ""))
            counts = [1, hits, len(row["planted"]), false, len(row["mended"])]
            before = sums.get((languages[name], kind), [0] * 5)
            sums[languages[name], kind] = [one + other for one, other in zip(before, counts)]
        wrong += bad

    # The table of docs/preload.md.
    print("\n| programs | class | planted | found, of all runs | reports about their twins |")
    print("| --- | --- | --- | --- | --- |")
    for (language, kind), (planted, hits, runs, false, twins) in sorted(sums.items()):
        print(f"| {language} | `{kind}` | {planted} | {hits} of {runs} | {false} of {twins} |")
    print()

    costs = {}
    for name in TIMED:
        if not asked(name):
            continue
        costs[name] = {"plain": [], "checked": []}
        for number in range(5):
            for checked in (False, True):
                status, found, output = run(options, correct + [name], number, checked)
                value = re.search(r"time: ([\d.]+)", output)
                if status != 0 or not value or (checked and found != 0):
                    print(f"{name}: status {status}, {found} findings: {output[-300:]}")
                    wrong += 1
                    continue
                costs[name]["checked" if checked else "plain"].append(float(value[1]))
        plain, checked = (sorted(costs[name][kind]) for kind in ("plain", "checked"))
        if plain and checked:
            print(f"{name}: plain {plain} ms, checked {checked} ms, {checked[0] / plain[0]:.2f} x")
    if options.json:
        with open(options.json, "w") as file:
            rows = [[name, kind, row] for (name, kind), row in results.items()]
            json.dump({"date": time.strftime("%Y-%m-%d"), "rows": rows, "costs": costs}, file)
    print(f"{len(results)} programs, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
