#!/usr/bin/env python3
"""Runs the random programs of random.cu under the order checker.

random.py [--command cuda-order-check] [--cases 2800] [--races 100] [--jobs 14] [--first 1]

They are compiled for the machine's GPU and to PTX. The status is 1 if anything was reported about a program
without a race. Of those with one it prints how many were found, and the calls of the others.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FORMS = {"machine code": ["-arch=native"], "PTX": ["-gencode", "arch=compute_80,code=compute_80"]}


def run(command, program, words):
    """What the program printed, the checker's log, and how many findings this has."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        words = [command, "run", "--log", log, "--", program, *map(str, words)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        with open(log) as file:
            text = file.read()
    found = re.findall(r"(\d+) findings? in ", text)
    if done.returncode != 0 or len(found) != 1:
        raise SystemExit(f"{words} ended with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout, text, int(found[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="cuda-order-check")
    parser.add_argument("--cases", type=int, default=2800)
    parser.add_argument("--races", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--first", type=int, default=1)
    options = parser.parse_args()
    command = os.path.abspath(shutil.which(options.command) or options.command)
    each = -(-options.cases // options.jobs)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for form, flags in FORMS.items():
            program = os.path.join(folder, "random")
            source = os.path.join(HERE, "random.cu")
            subprocess.run(["nvcc", "-std=c++17", *flags, "-o", program, source], check=True)

            def all_of(words):
                return pool.map(lambda own: run(command, program, own), words)

            calls, pairs = 0, 0
            for output, text, found in all_of([options.first + i * each, each] for i in range(options.jobs)):
                numbers = re.search(r"(\d+) calls, (\d+) unordered pairs", output)
                calls, pairs = calls + int(numbers[1]), pairs + int(numbers[2])
                wrong += found
                if found:
                    print("WRONG:", text, sep="\n")
            print(f"{form}: {calls} calls, {pairs} unordered pairs without a race")
            missed = []
            for output, _, found in all_of([10**6 + options.first + i, 1, "missing"] for i in range(options.races)):
                missed += [] if found else re.findall(r"race: (.*)", output)
            print(f"{form}: {options.races - len(missed)} of {options.races} races found; not:", *missed, sep="\n    ")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
