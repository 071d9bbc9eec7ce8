#!/usr/bin/env python3
"""Fetches what the entries need from others, into target/order-bugs.

get.py [--only ID...] [--git PATTERN] [--list]

Wheels come from the Python registry, files from public repositories at one commit. PATTERN is where
a repository is, with {owner} and {name}: an address, or the folder of a copy of it.
"""

import argparse
import fnmatch
import hashlib
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.environ.get("ORDER_BUGS_SOURCES") or os.path.join(HERE, "..", "target", "order-bugs")
WHEEL = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
WHEEL += ["--python-version", "3.12", "--implementation", "cp"]
for platform in ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"):
    WHEEL += ["--platform", f"{platform}_x86_64"]
WHEEL += ["--platform", "any"]


def entries():
    with open(os.path.join(HERE, "entries.toml"), "rb") as file:
        data = tomllib.load(file)
    all_of = data["entry"]
    # The programs of a suite, of which each has its mended form by a macro.
    suite = data["suite"]
    for path in suite["paths"]:
        name = os.path.splitext(os.path.basename(path))[0].replace("_", "-")
        place = f"{suite['repository'].replace('/', '+')}/{suite['commit']}"
        paths = [path, *suite["headers"]]
        entry = {"id": f"cusan-{name}", "group": "suite", "driver": "suite.cu", "case": path}
        entry.update(faulty=place, mended=place, flags=["-x", "cu", "--extended-lambda"])
        entry.update(mended_flags=["-DCUSAN_SYNC"], gpus=2 if "multi_gpu" in path else 1)
        entry["sources"] = [[suite["repository"], suite["commit"], *paths]]
        entry.update(project="CuSan", report=f"`{path}`", before=suite["commit"][:8])
        entry.update(mend="CUSAN_SYNC", wrong=suite["wrong"])
        for part, note in suite["notes"].items():
            if part in path:
                entry["note"] = note
        all_of.append(entry)
    return all_of


def files_of(repository, commit, paths, pattern, into):
    owner, name = repository.split("/")
    place = pattern.format(owner=owner, name=name)
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "--git-dir", place]
        if not os.path.isdir(place):
            git = ["git", "--git-dir", os.path.join(folder, "git")]
            subprocess.run([*git, "init", "--quiet"], check=True)
            fetch = ["fetch", "--quiet", "--depth", "1", "--filter=blob:none", place, commit]
            subprocess.run([*git, *fetch], check=True)
        archive = [*git, "archive", commit, *paths]
        files = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
    with lzma.open(into, "wb") as file:
        file.write(files)


def packed(*name):
    return os.path.join(TARGET, "packed", *name)


def archive_of(repository, commit, paths):
    kind = hashlib.sha256(" ".join(sorted(paths)).encode()).hexdigest()[:8]
    return packed(f"{repository.replace('/', '+')}-{commit}-{kind}.tar.xz")


def unpack():
    """Makes folders of what was fetched: OWNER+NAME/COMMIT for files, unpacked/NAME for wheels."""
    for entry in entries():
        for repository, commit, *paths in entry.get("sources", []):
            archive = archive_of(repository, commit, paths)
            into = os.path.join(TARGET, repository.replace("/", "+"), commit)
            if os.path.exists(archive) and not all(
                os.path.exists(os.path.join(into, path)) for path in paths
            ):
                with tarfile.open(archive) as tar:
                    tar.extractall(into, filter="data")
        for wheel in entry.get("wheels", []):
            wheel = wheel.replace("==", "-")
            into = os.path.join(TARGET, "unpacked", wheel)
            if os.path.isdir(packed(wheel)) and not os.path.isdir(into):
                for name in os.listdir(packed(wheel)):
                    with zipfile.ZipFile(packed(wheel, name)) as file:
                        file.extractall(into)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=["*"])
    parser.add_argument("--git", default="https://github.com/{owner}/{name}")
    parser.add_argument("--list", action="store_true", help="only say what is needed")
    options = parser.parse_args()
    os.makedirs(packed(), exist_ok=True)
    wheels, sources = set(), set()
    for entry in entries():
        if any(fnmatch.fnmatch(entry["id"], pattern) for pattern in options.only):
            wheels.update(entry.get("wheels", []))
            for repository, commit, *paths in entry.get("sources", []):
                sources.add((repository, commit, *paths))
    failed = []
    for wheel in sorted(wheels):
        folder = packed(wheel.replace("==", "-"))
        print(f"wheel {wheel}", flush=True)
        if not options.list and not os.path.isdir(folder):
            done = subprocess.run([*WHEEL, "--dest", folder, wheel])
            if done.returncode != 0:
                shutil.rmtree(folder, ignore_errors=True)
                failed.append(wheel)
    for repository, commit, *paths in sorted(sources):
        print(f"{repository} {commit}: {' '.join(paths)}", flush=True)
        into = archive_of(repository, commit, paths)
        if not options.list and not os.path.exists(into):
            try:
                files_of(repository, commit, paths, options.git, into)
            except subprocess.CalledProcessError as error:
                failed.append(f"{repository} {commit}: {error}")
    unpack()
    for what in failed:
        print(f"NOT FETCHED: {what}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
