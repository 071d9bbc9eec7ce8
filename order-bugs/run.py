#!/usr/bin/env python3
"""Runs the entries under every tool that the machine has, and writes docs/order-bugs.md.

run.py [--jobs 6] [--only ID...] [--skip ID...] [--shown] [--tools NAME...] [--minutes M]
       [--checker cuda-order-check] [--json FILE] [--logs FOLDER] [--page FILE]
run.py --from [JSON] | --report ID

get.py fetches first what is not installed. What cannot run is named, with its reason. An entry
counts if wrong values were seen in its faulty form, and none in its mended form. --from makes the
page of an earlier JSON (results.json), and runs nothing; results of --only are put into the file of --json.
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


def save(data, file):
    """As JSON, a line an entry."""
    head = {name: value for name, value in data.items() if name != "results"}
    lines = (
        f"{json.dumps(name)}: {json.dumps(result, sort_keys=True)}"
        for name, result in sorted(data["results"].items())
    )
    file.write(json.dumps(head, sort_keys=True)[:-1] + ', "results": {\n' + ",\n".join(lines) + "\n}}\n")


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
    path = os.path.join(DRIVERS, entry["driver"])
    if entry.get("group") != "suite" and not os.path.exists(path):
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
    words += [f"-I{DRIVERS}", f"-I{DRIVERS}/stubs", *entry.get("flags", [])]
    words += [f"-I{os.path.join(root, path)}" for path in entry.get("include", [])]
    for path, name, *changes in entry.get("edits", []):
        with open(os.path.join(root, path)) as file:
            text = file.read()
        for old, new in zip(changes[::2], changes[1::2]):
            if text.count(old) != 1:
                raise RuntimeError(f"{path} is not the version that this entry is about")
            text = text.replace(old, new)
        os.makedirs(f"{program}-edited", exist_ok=True)
        with open(os.path.join(f"{program}-edited", name), "w") as file:
            file.write(text)
        words.append(f"-I{program}-edited")
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


def of_checker(logs, name):
    """What the checker's logs of a process and its children say."""
    text = ""
    for part in sorted(os.listdir(logs)):
        if part.startswith(f"{name}.checker-"):
            with open(os.path.join(logs, part), errors="replace") as file:
                text += file.read()
    counts = [int(count) for count in re.findall(r"(\d+) findings? in ", text)]
    possible = re.findall(r"(\d+) possible findings? w", text)
    why = re.findall(r"^order check: possible, (\d+) times: .*: (.*)$", text, re.MULTILINE)
    most = max(why, key=lambda one: int(one[0]))[1] if why else ""
    return {
        "found": sum(counts) if counts else None,
        "possible": sum(int(count) for count in possible),
        "why": most,
        "classes": sorted(set(re.findall(r"^  class +(\w+)", text, re.MULTILINE))),
    }


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
            left = options.end + 5 - time.time()
            status = process.wait(timeout=max(1, min(TOOLS[tool][1], left)))
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
        result.update(of_checker(options.logs, name))
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


def pair(options, entry, tool, words):
    """Both forms; a slow tool is asked about the mended one only if it found something."""
    results = {"faulty": run(options, entry, "faulty", tool, words["faulty"])}
    if tool not in ("memcheck", "racecheck") or (results["faulty"] or {}).get("found"):
        results["mended"] = run(options, entry, "mended", tool, words["mended"])
    return results


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
            return "", entry.get("note", "wrong values in the mended form")
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
    if faulty.get("found") == 0 and "mended" not in pair:
        return "missed", ""
    for one in (faulty, mended):
        if one.get("not_run") or one.get("found") is None:
            return "-", one.get("not_run") or one.get("failed") or "no summary"
    if mended["found"]:
        return "false", f"{mended['found']} about the mended form"
    return ("found" if faulty["found"] else "missed"), ""


def missed(entry, result):
    if result.get("possible") and "miss" not in entry:
        return f"possible only, as {result.get('why') or 'a kernel is not known'}"
    return entry.get("miss", "not known why")


def ratio(results, tool):
    """The time of the mended form, or else of the faulty one, under a tool, to its time without."""
    form = "mended" if "mended" in results.get(tool, {}) else "faulty"
    plain = results.get("values", {}).get(form, {})
    slow = results.get(tool, {}).get(form, {})
    key = "seconds" if "seconds" in plain and "seconds" in slow else "wall"
    if not plain.get(key) or not slow.get(key) or slow.get("failed"):
        return None
    return slow[key] / plain[key]


def row_of(entry, results, named):
    how, _ = shown(entry, results)
    one = results["values" if how == "undelayed" else "delayed"]["faulty"]
    values = f"{one['wrong']}/{one['total']}" + ("" if how == "undelayed" else " delayed")
    words = [verdict(results, tool)[0] for tool in named]
    return [f"`{entry['id']}`", entry["report"], values, *words]


def table(head, rows):
    """A table of Markdown, without the bars at the ends."""
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    return [*lines, *(" | ".join(row) for row in rows), ""]


def page(data):
    # racecheck has no column: it is asked about a few entries only.
    named = [tool for tool in TOOLS if tool not in ("values", "delayed", "racecheck")]
    named = [tool for tool in named if any(tool in row for row in data["results"].values())]
    rows, left, misses, costs, counts = [], [], [], {}, {}
    suite = {"pairs": 0, "found": 0, "missed": 0, "false": 0}
    for entry in get.entries():
        name, group = entry["id"], entry.get("group", "real")
        results = data["results"].get(name)
        if results is None:
            left.append((name, data["not_run"].get(name, "not run")))
            continue
        how, why = shown(entry, results)
        if not how:
            left.append((name, why))
            continue
        for tool in named:
            word = verdict(results, tool)[0]
            if group == "real":
                tally = counts.setdefault(tool, {})
                tally[word] = tally.get(word, 0) + 1
            cost = ratio(results, tool)
            if cost:
                costs.setdefault(tool, []).append(cost)
        word = verdict(results, "checker")[0]
        if word == "missed":
            misses.append((name, missed(entry, results["checker"]["faulty"])))
        if group == "real":
            rows.append(row_of(entry, results, named))
        else:
            suite["pairs"] += 1
            suite[word] = suite.get(word, 0) + 1
    lines = [
        "# Real errors of stream order, and who finds them",
        "",
        f"`order-bugs/run.py`, {data['machine']}, {data['date']}. An entry counts if its faulty form",
        "gave wrong values, by itself or *delayed* on the card, and its mended form none.",
        "`order-bugs/entries.toml` says what goes wrong and which versions these are; `get.py` fetches",
        "what others wrote; `run.py --report ID` writes a report where there is none.",
        "",
    ]
    lines += table(["entry", "report", "wrong", *(TOOLS[tool][0] for tool in named)], rows)
    lines += ["*false*: it reports the mended form, too. *-*: it did not run, or not to its end.", ""]
    words = ("found", "missed", "false", "-")
    cells = [
        [TOOLS[tool][0], *(str(counts.get(tool, {}).get(word, 0)) for word in words)]
        for tool in named
    ]
    lines += table(["tool", *words], cells)
    if suite["pairs"]:
        lines += [
            f"CuSan's suite, {suite['pairs']} pairs that count, with those of two GPUs: this checker found "
            f"{suite['found']}, and",
            f"reported {suite['false']} mended forms.",
            "",
        ]
    if costs:
        said = []
        for tool, all_of in costs.items():
            said.append(f"{TOOLS[tool][0]} {sorted(all_of)[len(all_of) // 2]:.1f} x")
        apart = ("values", "delayed", "racecheck", *costs)
        absent = [TOOLS[tool][0] for tool in TOOLS if tool not in apart]
        lines += ["Cost, of the mended form where that ran, medians, several at a time: " + ", ".join(said) + "."]
        lines += [f"{', '.join(absent)} did not run.", ""] if absent else [""]
    asked = [row["racecheck"]["faulty"] for row in data["results"].values() if "racecheck" in row]
    asked = [one["found"] for one in asked if one.get("found") is not None]
    if asked:
        lines += [
            f"racecheck, which looks at shared memory, found {sum(map(bool, asked))} of the {len(asked)}",
            "programs in CUDA C++ that it brought to their end. Triton's GSan (3.9.0) has races with code",
            "that is not Triton's among its non-goals, and no entry has two kernels of Triton.",
            "",
        ]
    for title, items in (("Missed by this checker:", misses), ("Not in the table:", left)):
        reasons = {}
        for name, why in items:
            reasons.setdefault(why, []).append(f"`{name}`")
        for why, names in reasons.items():
            of_suite = [one for one in names if one.startswith("`cusan-")]
            if len(of_suite) > 1:
                rest = [one for one in names if one not in of_suite]
                reasons[why] = [*rest, f"{len(of_suite)} of CuSan's suite"]
        if reasons:
            lines += [title, ""]
            lines += [f"* {', '.join(names)}: {why}" for why, names in reasons.items()] + [""]
    return "\n".join(lines).rstrip() + "\n"


def report(name):
    """A text for the owner of an entry's code, for a person to send."""
    entry = {entry["id"]: entry for entry in get.entries()}[name]
    case = f" --case {entry['case']}" if "case" in entry else ""
    program = f"order-bugs/drivers/{entry['driver']} (of this project, to be attached)"
    if entry["driver"].endswith(".py"):
        see = f"`python3 {entry['driver']} faulty{case}` with {program} prints how many values are wrong;\nwith `--delay` the earlier access is held back on the card."
    else:
        see = f"{program}, built with nvcc; `faulty` prints how many values are wrong, and `mended` none."
    return f"""To: {entry['project']}, {entry['before']}
Subject: missing stream order: {entry['wrong']}

What: {entry['wrong']}. Nothing orders the two streams, so the outcome depends on how busy they are.
Where: {entry.get('where', 'see the driver')}
How to see it: {see}
A mend: {entry.get('remedy', entry['mend'])}. With it (`mended`) no value is wrong.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--only", nargs="+", default=["*"])
    parser.add_argument("--skip", nargs="+", default=[])
    parser.add_argument("--shown", action="store_true", help="only what the JSON has wrong values of")
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=list(TOOLS))
    parser.add_argument("--minutes", type=float, default=600, help="what has not begun then is left out")
    parser.add_argument("--checker", default="cuda-order-check")
    parser.add_argument("--json", default=os.path.join(get.TARGET, "results.json"))
    parser.add_argument("--logs", default=os.path.join(get.TARGET, "logs"))
    parser.add_argument("--page", default=os.path.join(HERE, "..", "docs", "order-bugs.md"))
    parser.add_argument("--report", metavar="ID", help="print a report of an entry, to be sent")
    earlier = {"nargs": "?", "const": os.path.join(HERE, "results.json"), "dest": "earlier"}
    parser.add_argument("--from", help="make only the page, of a JSON", **earlier)
    options = parser.parse_args()
    if options.report:
        print(report(options.report), end="")
        return
    if options.earlier:
        with open(options.earlier) as file:
            data = json.load(file)
        for name, row in data["results"].items():
            for form, one in row.get("checker", {}).items():
                part = f"{name}-{form}-checker"
                logs = os.listdir(options.logs) if os.path.isdir(options.logs) else []
                if any(log.startswith(f"{part}.checker-") for log in logs):
                    one.update(of_checker(options.logs, part))
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
        if options.shown and not shown(entry, data["results"].get(entry["id"], {}))[0]:
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
        # The shortest first, since time may be short.
        def length(one):
            plain = data["results"].get(one[0]["id"], {}).get("values", {})
            return plain.get("faulty", {}).get("wall", 0)

        ready.sort(key=length)
        tasks = {}
        for tool in tools:
            for entry, words in ready:
                python = entry["driver"].endswith(".py")
                if tool == "csan" and not (python and entry.get("csan", True)):
                    continue
                if tool == "delayed" and entry["driver"] == "suite.cu":
                    continue
                # What happens inside a kernel: nothing of PyTorch's is asked for it.
                if tool == "racecheck" and python:
                    continue
                tasks[pool.submit(pair, options, entry, tool, words)] = (entry, tool)
        for task in concurrent.futures.as_completed(tasks):
            entry, tool = tasks[task]
            for form, result in task.result().items():
                if result is None:
                    print(f"NOT RUN: {entry['id']} {form} {tool}: no time", flush=True)
                    continue
                row = data["results"].setdefault(entry["id"], {})
                row.setdefault(tool, {})[form] = result
                data["not_run"].pop(entry["id"], None)
                print(f"{entry['id']} {form} {tool}: {json.dumps(result)}", flush=True)
            with open(options.json + ".new", "w") as file:
                save(data, file)
            os.replace(options.json + ".new", options.json)
    with open(options.json, "w") as file:
        save(data, file)
    text = page(data)
    with open(options.page, "w") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
