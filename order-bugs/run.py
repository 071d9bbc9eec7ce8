#!/usr/bin/env python3
"""Runs the entries under every tool that the machine has, and writes docs/order-bugs.md.

run.py [--jobs 6] [--only ID...] [--tools NAME...] [--minutes M] [--checker cuda-order-check]
       [--json FILE] [--logs FOLDER] [--page FILE] [--from FILE]

get.py fetches first what is not installed. What cannot run is named, with its reason. An entry
counts if wrong values were seen in its faulty form, and none in its mended form. --from makes the
page of an earlier JSON, and runs nothing; results of --only are put into the file of --json.
"""

import argparse
import concurrent.futures
import fnmatch
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time

import get

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVERS = os.path.join(HERE, "drivers")
FORMS = ("faulty", "mended")
# The tools: what stands before the program, and seconds.
TOOLS = {
    "values": ("the values", 90),
    "delayed": ("the values, with a delay", 90),
    "checker": ("this checker", 240),
    "csan": ("PyTorch's CSAN", 240),
    "memcheck": ("compute-sanitizer", 420),
    "racecheck": ("racecheck", 420),
}
SANITIZER = ["compute-sanitizer", "--error-exitcode", "0", "--print-limit", "20", "--tool"]


def gpus():
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    except OSError:
        return 0
    return len(listed.stdout.splitlines())


def lacking(entry, number):
    """Why an entry cannot run here, or nothing."""
    if entry.get("gpus", 1) > number:
        return f"needs {entry.get('gpus', 1)} GPUs, and there are {number}"
    for module in entry.get("modules", []):
        try:
            found = importlib.util.find_spec(module)
        except (ImportError, ValueError) as error:
            return f"{module}: {error}"
        if found is None:
            return f"{module} is not installed"
    for repository, commit, *paths in entry.get("sources", []):
        for path in paths:
            where = os.path.join(repository.replace("/", "+"), commit, path)
            if not os.path.exists(os.path.join(get.TARGET, where)):
                return f"{where} is not there: get.py"
    for wheel in entry.get("wheels", []):
        if not os.path.isdir(os.path.join(get.TARGET, "unpacked", wheel.replace("==", "-"))):
            return f"{wheel} is not there: get.py"
    if not os.path.exists(os.path.join(DRIVERS, entry["driver"])):
        return "has no driver yet"
    return ""


def command(entry, form):
    """The words of a form's program; a program in C++ is built first."""
    driver = os.path.join(DRIVERS, entry["driver"])
    case = ["--case", entry["case"]] if "case" in entry else []
    if driver.endswith(".py"):
        return [sys.executable, driver, form, *case]
    program = os.path.join(get.TARGET, "built", f"{entry['id']}-{form}")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    root = os.path.join(get.TARGET, entry[form])
    words = ["nvcc", "-std=c++17", "-arch=native", "-lineinfo", "-w", "-o", program]
    words += [f"-I{DRIVERS}", *entry.get("flags", [])]
    words += [f"-I{os.path.join(root, path)}" for path in entry.get("include", [])]
    behind = os.path.join(get.TARGET, entry.get("also_of", ""))
    words += [f"-I{os.path.join(behind, path)}" for path in entry.get("also", [])]
    words += ["-DMENDED", *entry.get("mended_flags", [])] if form == "mended" else []
    words += [driver if entry["driver"] != "suite.cu" else os.path.join(root, entry["case"])]
    words += [os.path.join(root, path) for path in entry.get("extra", [])]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise RuntimeError("nvcc: " + (errors or [done.stderr.strip() or "failed"])[0][:200])
    return [program]


def findings(text):
    counts = [int(count) for count in re.findall(r"(\d+) findings? in ", text)]
    return sum(counts) if counts else None


def run(options, entry, form, tool, words):
    """One process: its status, the wrong values, what the tool found, seconds."""
    name = f"{entry['id']}-{form}-{tool}"
    log = os.path.join(options.logs, name)
    environment = dict(os.environ, ORDER_BUGS_LIMIT=str(TOOLS[tool][1] - 10))
    environment.setdefault("HF_HUB_OFFLINE", "1")
    words = list(words)
    if time.time() > options.end:
        return None
    if tool == "delayed":
        words.append("--delay")
    elif tool == "checker":
        words = [options.checker, "run", "--log", f"{log}.checker-%p", "--", *words]
    elif tool == "csan":
        environment["TORCH_CUDA_SANITIZER"] = "1"
    elif tool == "memcheck":
        words = [*SANITIZER, "memcheck", "--track-stream-ordered-races", "all", *words]
    elif tool == "racecheck":
        words = [*SANITIZER, "racecheck", *words]
    for old in os.listdir(options.logs):
        if old.startswith(f"{name}.checker-"):
            os.remove(os.path.join(options.logs, old))
    begin = time.time()
    with open(f"{log}.txt", "w") as output:
        process = subprocess.Popen(
            words,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
            cwd=options.logs,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=TOOLS[tool][1])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            status = "no end"
    seconds = time.time() - begin
    with open(f"{log}.txt", errors="replace") as file:
        text = file.read()
    result = {"status": status, "wall": round(seconds, 2)}
    if "case" in entry and entry["driver"] == "suite.cu":
        result["wrong"], result["total"] = int("[Error] sync" in text), 1
    values = re.search(r"^wrong: (\d+) of (\d+)", text, re.MULTILINE)
    if values:
        result["wrong"], result["total"] = int(values[1]), int(values[2])
    inner = re.search(r"^seconds: ([\d.]+)", text, re.MULTILINE)
    if inner:
        result["seconds"] = float(inner[1])
    if tool == "checker":
        found = ""
        for part in sorted(os.listdir(options.logs)):
            if part.startswith(f"{name}.checker-"):
                with open(os.path.join(options.logs, part), errors="replace") as file:
                    found += file.read()
        result["found"] = findings(found)
        result["possible"] = sum(
            int(count) for count in re.findall(r"(\d+) possible findings? w", found)
        )
        result["classes"] = sorted(set(re.findall(r"^  class +(\w+)", found, re.MULTILINE)))
    elif tool == "csan":
        result["found"] = int("CSAN detected a possible data race" in text)
    elif tool == "memcheck":
        summary = re.search(r"ERROR SUMMARY: (\d+) error", text)
        result["found"] = int(summary[1]) if summary else None
    elif tool == "racecheck":
        summary = re.search(r"RACECHECK SUMMARY: (\d+) hazard", text)
        result["found"] = int(summary[1]) if summary else None
    reason = re.search(r"^NOT RUN: (.*)", text, re.MULTILINE)
    if reason:
        result["not_run"] = reason[1]
    elif status != 0 and not (tool == "csan" and result["found"]):
        lines = [line for line in text.strip().splitlines() if line.strip()]
        result["failed"] = f"status {status}: {(lines or ['no output'])[-1][:160]}"
    return result


def shown(entry, results):
    """How wrong values were seen: `undelayed`, `delayed`, or nothing, and why."""
    of = {tool: results.get(tool, {}) for tool in ("values", "delayed")}
    for form in FORMS:
        for tool in of:
            one = of[tool].get(form, {})
            if "not_run" in one:
                return "", one["not_run"]
            if "failed" in one and tool == "values":
                return "", f"{form}: {one['failed']}"
    for tool, word in (("values", "undelayed"), ("delayed", "delayed")):
        if of[tool].get("mended", {}).get("wrong"):
            return "", "wrong values in the mended form"
    for tool, word in (("values", "undelayed"), ("delayed", "delayed")):
        if of[tool].get("faulty", {}).get("wrong"):
            return word, ""
    return "", "no wrong value was seen"


def verdict(results, tool):
    """found, missed, false (reported about the mended form, too), or `-` with a reason."""
    pair = results.get(tool, {})
    if not pair:
        return "-", "not run"
    faulty, mended = pair.get("faulty", {}), pair.get("mended", {})
    for one in (faulty, mended):
        if one.get("not_run") or one.get("found") is None:
            return "-", one.get("not_run") or one.get("failed") or "no summary"
    if mended["found"]:
        return "false", f"{mended['found']} about the mended form"
    return ("found" if faulty["found"] else "missed"), ""


def ratio(results, tool):
    """The time of the mended form under a tool, to its time without."""
    plain = results.get("values", {}).get("mended", {})
    slow = results.get(tool, {}).get("mended", {})
    key = "seconds" if "seconds" in plain and "seconds" in slow else "wall"
    if not plain.get(key) or not slow.get(key):
        return None
    return slow[key] / plain[key]


def page(data):
    entries = {entry["id"]: entry for entry in get.entries()}
    named = [one for one in TOOLS if one not in ("values", "delayed")]
    named = [one for one in named if any(one in row for row in data["results"].values())]
    lines, counts, left, costs = [], {}, [], {}
    for group in ("real", "suite"):
        rows = []
        for name, entry in entries.items():
            if entry.get("group", "real") != group:
                continue
            results = data["results"].get(name)
            if results is None:
                left.append((name, data["not_run"].get(name, "not run")))
                continue
            how, why = shown(entry, results)
            if not how:
                left.append((name, why))
                continue
            tool = "values" if how == "undelayed" else "delayed"
            one = results[tool]["faulty"]
            values = f"{one['wrong']} of {one['total']}" + ("" if how == "undelayed" else ", delayed")
            cells = []
            for tool in named:
                word, why = verdict(results, tool)
                tally = counts.setdefault((group, tool), {})
                tally[word] = tally.get(word, 0) + 1
                cost = ratio(results, tool)
                if cost:
                    costs.setdefault(tool, []).append(cost)
                if tool == "checker" and word == "missed":
                    possible = results[tool]["faulty"].get("possible")
                    other = "a possible finding" if possible else "not known why"
                    word = f"missed: {entry.get('miss', other)}"
                cells.append(word)
            what = f"{entry['report']}; {entry['before']}, mended: {entry['mend']}"
            rows.append([f"`{name}`", what, entry["wrong"], values, *cells])
        if not rows:
            continue
        head = ["entry", "report and versions", "what goes wrong", "wrong values"]
        head += [TOOLS[tool][0] for tool in named]
        title = "## Errors of published code" if group == "real" else "## CuSan's suite"
        lines += [title, "", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
        lines += ["| " + " | ".join(row) + " |" for row in rows] + [""]
        lines += ["| tool | found | missed | also about the mended form | did not run |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for tool in named:
            tally = counts.get((group, tool), {})
            cells = [str(tally.get(word, 0)) for word in ("found", "missed", "false", "-")]
            lines.append(f"| {TOOLS[tool][0]} | " + " | ".join(cells) + " |")
        lines.append("")
    first = [
        "# Real errors of stream order, and who finds them",
        "",
        f"`order-bugs/run.py`, {data['machine']}, {data['date']}. An entry is here if its faulty form",
        "gave wrong values, by itself or with a delay on the card, and its mended form none.",
        "`order-bugs/get.py` fetches what others wrote; `entries.toml` has the details.",
        "",
    ]
    if costs:
        said = []
        for tool, all_of in costs.items():
            middle = sorted(all_of)[len(all_of) // 2]
            said.append(f"{TOOLS[tool][0]} {middle:.1f} x")
        lines += ["Cost, medians of the mended forms, several at a time: " + ", ".join(said) + ".", ""]
    if left:
        lines += ["Not in the table:", ""]
        lines += [f"* `{name}`: {why}" for name, why in left] + [""]
    return "\n".join(first + lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--only", nargs="+", default=["*"])
    parser.add_argument("--skip", nargs="+", default=[])
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--minutes", type=float, default=600, help="what has not begun then is left out")
    parser.add_argument("--checker", default="cuda-order-check")
    parser.add_argument("--json", default=os.path.join(get.TARGET, "results.json"))
    parser.add_argument("--logs", default=os.path.join(get.TARGET, "logs"))
    parser.add_argument("--page", default=os.path.join(HERE, "..", "docs", "order-bugs.md"))
    parser.add_argument("--from", dest="earlier", help="a JSON, of which only the page is made")
    options = parser.parse_args()
    if options.earlier:
        with open(options.earlier) as file:
            data = json.load(file)
        with open(options.page, "w") as file:
            file.write(page(data))
        return
    options.end = time.time() + 60 * options.minutes
    options.logs = os.path.abspath(options.logs)
    os.makedirs(options.logs, exist_ok=True)
    get.unpack()
    number = gpus()
    tools = list(options.tools)
    checker = shutil.which(options.checker)
    sanitizer = shutil.which("compute-sanitizer")
    for tool in list(tools):
        if tool == "checker" and not checker:
            print(f"NOT RUN: {options.checker} is not there", flush=True)
            tools.remove(tool)
        elif tool in ("memcheck", "racecheck") and not sanitizer:
            print(f"NOT RUN: {tool}: compute-sanitizer is not there", flush=True)
            tools.remove(tool)
    options.checker = os.path.abspath(checker) if checker else ""
    data = {"results": {}, "not_run": {}}
    if os.path.exists(options.json):
        with open(options.json) as file:
            data = json.load(file)
    smi = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        machine = subprocess.run(smi, capture_output=True, text=True).stdout.splitlines()
    except OSError:
        machine = []
    data["machine"] = f"{number} x {machine[0]}" if machine else "no GPU"
    data["date"] = time.strftime("%Y-%m-%d")

    chosen = []
    for entry in get.entries():
        asked = any(fnmatch.fnmatch(entry["id"], pattern) for pattern in options.only)
        if not asked or any(fnmatch.fnmatch(entry["id"], pattern) for pattern in options.skip):
            continue
        why = lacking(entry, number)
        if why:
            print(f"NOT RUN: {entry['id']}: {why}", flush=True)
            data["not_run"][entry["id"]] = why
        else:
            chosen.append(entry)
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        built = {
            (entry["id"], form): pool.submit(command, entry, form)
            for entry in chosen
            for form in FORMS
        }
        ready = []
        for entry in chosen:
            try:
                ready.append((entry, {form: built[entry["id"], form].result() for form in FORMS}))
            except (RuntimeError, OSError) as error:
                print(f"NOT RUN: {entry['id']}: {error}", flush=True)
                data["not_run"][entry["id"]] = str(error)
        tasks = {}
        for tool in tools:
            for entry, words in ready:
                python = entry["driver"].endswith(".py") and entry.get("csan", True)
                if tool == "csan" and not python:
                    continue
                if tool == "delayed" and entry["driver"] == "suite.cu":
                    continue
                for form in FORMS:
                    task = pool.submit(run, options, entry, form, tool, words[form])
                    tasks[task] = (entry, form, tool)
        for task in concurrent.futures.as_completed(tasks):
            entry, form, tool = tasks[task]
            result = task.result()
            if result is None:
                print(f"NOT RUN: {entry['id']} {form} {tool}: no time", flush=True)
                continue
            row = data["results"].setdefault(entry["id"], {})
            row.setdefault(tool, {})[form] = result
            data["not_run"].pop(entry["id"], None)
            print(f"{entry['id']} {form} {tool}: {json.dumps(result)}", flush=True)
            with open(options.json + ".new", "w") as file:
                json.dump(data, file, indent=1, sort_keys=True)
            os.replace(options.json + ".new", options.json)
    with open(options.json, "w") as file:
        json.dump(data, file, indent=1, sort_keys=True)
    text = page(data)
    with open(options.page, "w") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
