"""Compares what cuda-kernel-access decodes with what NVIDIA's disassembler prints, instruction by
instruction, in a corpus that is compiled here; see tools/kernels."""

import argparse
import collections
import pathlib
import re
import struct
import subprocess
import sys

ARCHITECTURES = [80, 86, 89, 90, 100, 103, 120]

LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*)$")
LABEL = re.compile(r"^([^\s/][^\s]*):\s*$")
REGISTER = re.compile(r"^[-~|!]*(U?R(?:\d+|Z))")
PREDICATE = re.compile(r"^!?U?P(?:\d|T)$")
SPECIAL = {"SR_LANEID": 0, "SR_TID.X": 0x21, "SR_TID.Y": 0x22, "SR_TID.Z": 0x23,
           "SR_CTAID.X": 0x25, "SR_CTAID.Y": 0x26, "SR_CTAID.Z": 0x27, "SRZ": 0xFF}
ACCESSES = {"LDG": "LOAD.GLOBAL", "LD": "LOAD.GENERIC", "LDS": "LOAD.SHARED", "LDL": "LOAD.LOCAL",
            "STG": "STORE.GLOBAL", "ST": "STORE.GENERIC", "STS": "STORE.SHARED", "STL": "STORE.LOCAL",
            "RED": "REDUCE.GLOBAL", "REDG": "REDUCE.GLOBAL", "ATOMG": "ATOMIC.GLOBAL",
            "ATOM": "ATOMIC.GENERIC", "ATOMS": "ATOMIC.SHARED", "LDGSTS": "COPY.GLOBAL",
            "LDSM": "LOAD.SHARED", "STSM": "STORE.SHARED", "UTMALDG": "COPY.TENSOR", "UTMAPF": "COPY.TENSOR", "UTMASTG": "STORE.TENSOR", "UTMAREDG": "REDUCE.TENSOR"}
# Bulk copies by where they copy to and from: what they do, and which place is in global memory.
BULK = {("UBLKCP", "S", "G"): ("COPY.GLOBAL", 1), ("UBLKCP", "G", "S"): ("STORE.GLOBAL", 0),
        ("UBLKRED", "G", "S"): ("REDUCE.GLOBAL", 0), ("UBLKCP", "S", "S"): ("STORE.SHARED", None)}


# What a texture is made of; their values go to the second place first.
TEXTURES = {"TEX", "TLD", "TLD4", "TXD", "TXQ"}
COMPARISONS = {"F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"}
KNOWN = {
    "IADD3": {"X", "64"}, "IADD": {"X", "64"}, "VIADD": set(), "MOV": {"64", "SPILL"}, "R2UR": set(),
    "LDC": {"U8", "S8", "U16", "S16", "64", "128"}, "ULDC": {"U8", "S8", "U16", "S16", "64", "128"},
    "LDCU": {"U8", "S8", "U16", "S16", "64", "128"},
    "IMAD": {"MOV", "SHL", "IADD", "U32", "WIDE", "HI", "X"}, "LEA": {"HI", "X", "SX32"},
    "SHF": {"L", "R", "W", "S64", "U64", "S32", "U32", "HI"}, "LOP3": {"LUT"}, "SEL": {"64"},
    "IMNMX": {"U32", "S64", "U64"}, "VIMNMX": {"U32", "S32"}, "VIADDMNMX": {"U32"}, "PLOP3": {"LUT"}, "IABS": set(),
    "ISETP": COMPARISONS | {"U32", "U64", "S64", "AND", "OR", "XOR", "EX"},
}


def disassembled(nvdisasm, cubin):
    """{kernel: {address: text}}, and its labels."""
    run = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True, check=True)
    kernels, labels, current = {}, {}, None
    waiting = []
    for line in run.stdout.splitlines():
        if line.startswith("//-----"):
            # Cubins of an older kind have no label where the code begins.
            section = re.search(r"\.text\.(\S+)", line)
            current = section[1] if section else None
            if current:
                kernels[current], labels[current] = {}, {}
        elif label := LABEL.match(line):
            waiting.append(label[1])
        elif current is not None and (match := LINE.match(line)):
            address = int(match[1], 16)
            for name in waiting:
                labels[current][name] = address
            waiting = []
            kernels[current][address] = match[2]
    return kernels, labels


def split(text):
    parts, depth, part = [], 0, ""
    for char in text:
        depth += char in "[(" and 1 or char in "])" and -1 or 0
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return [*parts, part.strip()] if part.strip() else parts


def number(text):
    return f"{int(text, 16) & 0xFFFFFFFF:#x}"


def operand(text):
    """A source in our form."""
    text = text.replace("URZ", "RZ").replace("~", "-")
    if re.match(r"^-?0x", text):
        return number(text)
    if constant := re.match(r"^(-?)c\[(0x[0-9a-f]+)\]\[(.*)\]$", text):
        offset, index = 0, ""
        for term in re.findall(r"[+-]?[^+-]+", constant[3]):
            if "0x" in term:
                offset += int(term, 16)
            elif term.strip("+") != "RZ":
                index = term.strip("+") + "+"
        return f"{constant[1]}c[{constant[2]}][{index}{offset & 0xFFFF:#x}]"
    text = re.sub(r"^(-?U?R\w+)\.(64|H0_H0)$", r"\1", text)
    return text.replace("UPT", "PT")


def address(text):
    """An address in our form."""
    base, uniform, offset = "RZ", "", 0
    for term in re.findall(r"[+-]*[^+-]+", re.findall(r"\[([^\[\]]*)\]", text)[-1]):
        if "0x" in term:
            offset += int(term.replace("+-", "-"), 16)
        elif term.strip("+").startswith("UR"):
            uniform = "+" + term.strip("+").split(".")[0]
        else:
            base = term.strip("+").split(".")[0]
    return f"[{base}{uniform.replace('+URZ', '')}{offset:+#x}]".replace("+0x0]", "]")


def handle(parts):
    """Where a handle is among the constants, by a bank and a word, in our form."""
    pairs = [] if any(part.startswith("UR") for part in parts) else zip(parts, parts[1:])
    found = [pair for pair in pairs if all(part.startswith("0x") for part in pair)]
    return [f"c[{bank}][{int(word, 16) * 4:#x}]" for bank, word in found[:1]]


def ours(text, at, labels):
    """NVIDIA's line at an address in our form, or None where it says nothing that we have."""
    text = re.sub(r"\(\*.*?\*\)", "", text.split("/* 0x")[0]).replace(".reuse", "")
    text = text.strip().strip("{}").strip().rstrip(";").strip()
    guard = ""
    if text.startswith("@"):
        guard, text = text.split(None, 1)
        guard = "" if guard in ("@PT", "@UPT") else guard.replace("UPT", "PT") + " "
    name, _, rest = text.partition(" ")
    mods = name.split(".")
    # One number in our table.
    base = "UTCMMA" if re.match(r"^UTC.MMA$", mods[0]) else mods[0]
    parts = split(rest)
    plain = base[1:] if base[0] == "U" and base[1:] in (
        "MOV", "IADD3", "IMAD", "LEA", "SHF", "LOP3", "PRMT", "SEL", "ISETP", "PLOP3") else base

    def line(name, items):
        items = [item for item in items if item not in ("PT", "UPT")]
        return guard + (name + " " + ", ".join(items)).strip()

    # What says something that we would have to know is no reason to call two lines the same.
    negates = base == "VIADDMNMX" and any(part.startswith("-") for part in parts)
    if plain in ("VIMNMX", "VIADDMNMX") and (negates or set(mods[1:]) - KNOWN[plain]):
        return (guard + base, [operand(part) for part in parts])
    if plain in KNOWN and set(mods[1:]) - KNOWN[plain]:
        return None if base == "R2UR" else "NOT: " + name
    if plain == "IADD3" or base in ("IADD", "VIADD"):
        kind = "IADD" + (".64" if "64" in mods else "") + (".X" if "X" in mods else "")
        return line(kind, [operand(part) for part in parts])
    if plain in ("MOV", "R2UR"):
        out = [operand(part) for part in parts]
        if plain == "R2UR" and PREDICATE.match(parts[0]):
            out[0], out[1] = out[1], out[0]
        if plain == "MOV" and len(out) > 2:
            return None
        # Of a number that no operand can have it is only said where it goes.
        if "64" in mods and re.match(r"^-?0x", parts[1]):
            signed = (int(parts[1], 16) + (1 << 63)) % (1 << 64) - (1 << 63)
            if abs(signed) >= 1 << 31:
                return (guard + "MOV", out)
        return line("MOV" + (".64" if "64" in mods else ""), out)
    if base in ("S2R", "S2UR", "CS2R"):
        code = SPECIAL.get(parts[1])
        text = line("S2R", [operand(parts[0]), f"SR{code or 0:#x}"])
        return text if code is not None else (text, "*")
    if base in ("LDC", "ULDC", "LDCU"):
        size = {"U8": "1", "S8": "S1", "U16": "2", "S16": "S2", "64": "8", "128": "16"}
        kind = next((size[mod] for mod in mods if mod in size), "4")
        return line("LDC." + kind, [operand(part) for part in parts])
    if plain == "IMAD":
        wide = "WIDE" in mods or "HI" in mods
        kind = "IMAD" + (".WIDE" if "WIDE" in mods else "") + (".HI" if "HI" in mods else "")
        kind += (".U32" if wide and "U32" in mods else "") + (".X" if "X" in mods else "")
        return line(kind, [operand(part) for part in parts])
    if plain == "LEA":
        kind = "LEA" + "".join("." + mod for mod in ("HI", "X", "SX32") if mod in mods)
        return line(kind, [operand(part) for part in parts])
    if plain == "SHF":
        kind = f"SHF.{mods[1]}" + (".W" if "W" in mods else "")
        kind += "." + next(mod for mod in mods if mod in ("S64", "U64", "S32", "U32")) + (".HI" if "HI" in mods else "")
        return line(kind, [operand(part) for part in parts])
    if plain == "LOP3":
        out = [operand(part) for part in parts]
        if PREDICATE.match(parts[0]):
            out[0], out[1] = out[1], out[0]
        return line("LOP3", out)
    # In other modes it is one of those of which we have the name.
    if plain == "PRMT" and len(mods) == 1:
        return line("PRMT", [operand(part) for part in parts])
    if plain == "SEL":
        return line("SEL" + (".64" if "64" in mods else ""), [operand(part) for part in parts])
    if base in ("IMNMX", "VIMNMX"):
        return line("MNMX" + "".join(f".{kind}" for kind in ("U32", "S64", "U64") if kind in mods), [operand(part) for part in parts])
    if base == "VIADDMNMX":
        return line("ADDMNMX" + (".U32" if "U32" in mods else ""), [operand(part) for part in parts])
    if plain == "ISETP":
        kind = f"ISETP.{mods[1]}" + "".join("." + mod for mod in mods if mod in ("U32", "U64", "S64"))
        kind += "." + next(mod for mod in mods if mod in ("AND", "OR", "XOR")) + (".EX" if "EX" in mods else "")
        return line(kind, [operand(part) for part in parts])
    if plain == "PLOP3":
        return line("PLOP3", [operand(part) for part in parts])
    if base == "IABS":
        return line("IABS", [operand(part) for part in parts])
    if base == "HFMA2" and len(parts) == 5 and parts[1:3] == ["-RZ", "RZ"]:
        high, low = (struct.unpack("<H", struct.pack("<e", float(part.replace("QNAN", "nan").replace("INF", "inf"))))[0]
                     for part in parts[3:5])
        return line("HALVES", [parts[0], f"{high << 16 | low:#x}"])
    if base in TEXTURES:
        # The registers of both places, and those between.
        places = [int(part[1:]) for part in parts[:2] if part != "RZ"]
        return line("LOAD.GLOBAL.16", ([f"R{min(places)}"] if places else []) + handle(parts))
    if base in ("SULD", "SUST"):
        if "D" not in mods or mods[1:2] == ["P"]:
            return None
        size = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
        size = next((size[mod] for mod in mods if mod in size), 4)
        of = ("LOAD", parts[0]) if base == "SULD" else ("STORE", parts[1])
        return line(f"{of[0]}.GLOBAL.{size}", [operand(of[1]), *handle(parts)])
    if base in ("UBLKCP", "UBLKRED"):
        if "BYTEMASK" in mods:
            return line("UNKNOWN.GLOBAL.16", [])
        kind, place = BULK[tuple(mods[:3])]
        return line(f"{kind}.16", [*([] if place is None else [address(parts[place])]), parts[2]])
    if base in ACCESSES:
        kind = ACCESSES[base]
        if kind.endswith("TENSOR"):
            # The map's place is the second.
            return line(f"{kind}.1", [] if "IM2COL" in mods else [address(parts[1])])
        load = kind.startswith(("LOAD", "ATOMIC"))
        size = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "F64": 8, "F32x2": 8, "F32x4": 16,
                "F16x4": 8, "BF16x4": 8, "F16x8": 16, "BF16x8": 16}
        if base in ("LDSM", "STSM"):
            size = {"2": 8, "4": 16}
        if base in ("LDG", "STG"):
            size = {**size, "256": 32}
        size = next((size[mod] for mod in mods if mod in size), 4)
        out = [part for part in parts if not PREDICATE.match(part)]
        place = [part for part in out if "[" in part][-1]
        # What is before the address is written, and what is behind it is a condition.
        behind = parts[parts.index(place) + 1:] if base in ("LDG", "LD") else []
        conditions = [part for part in behind if PREDICATE.match(part)]
        predicates = [part for part in parts if PREDICATE.match(part)] if load and not conditions else []
        if size == 32 and load:
            # The registers of both halves, and those between.
            numbers = [int(part[1:]) for part in out[:2] if part != "RZ"]
            out = [f"R{min(numbers)}", place] if numbers else [place]
        # Of some a predicate is all that is named of what they write.
        items = ([operand(out[0])] if load and "[" not in out[0] else []) + predicates
        if not kind.endswith("SHARED"):
            items.append(address(place))
        if kind.startswith(("STORE", "REDUCE")):
            items += [operand(part) for part in out[-2 if size == 32 else -1:]]
        items += conditions
        text = line(f"{kind}.{size}", items)
        # How many bytes an atomic operation has is a bound.
        return (text, "size") if not kind.startswith(("LOAD", "STORE")) else text
    if base == "BRA":
        label = re.search(r"`\(([^)]*)\)", rest)
        target = labels.get(label[1]) if label else None
        if target is None:
            return None
        kind = "BRA.DIV" if any(mod in ("DIV", "ANY", "CONV") for mod in mods) else "BRA"
        predicates = [operand(part) for part in parts if PREDICATE.match(part)] if kind == "BRA" else []
        text = line(kind, [*predicates, f"{target:#x}"])
        return text if kind == "BRA" else (text, "predicates")
    if base == "BSSY":
        label = re.search(r"`\(([^)]*)\)", rest)
        return line("BSSY", [parts[0], f"{labels[label[1]]:#x}"])
    if base == "BSYNC":
        return line("BSYNC", [parts[0]])
    if base == "BMOV" and "PQUAD" not in mods and all(re.match(r"^[BR]", part) for part in parts):
        return line("BMOV" + (".CLEAR" if "CLEAR" in mods else ""), [operand(part) for part in parts])
    if base == "EXIT":
        return line("EXIT", [operand(part) for part in parts])
    if base == "CALL":
        label = re.search(r"`\(([^)]*)\)", rest)
        target = labels.get(label[1]) if label else None
        return line("CALL", [f"{target:#x}"]) if target is not None else (line("CALL", []), "*")
    if base == "R2P":
        return line("R2P", [f"P{bit}" for bit in range(7) if int(parts[2], 16) >> bit & 1])
    if base == "BRX":
        register, distance = rest.split()[:2]
        return line("BRX", [register, f"{at + 16 + int(distance, 16):#x}"])
    if base in ("RET", "BRXU", "JMX", "JMXU"):
        return line("RET" if base == "RET" else "BRX", [])
    return (guard + base, [operand(part) for part in parts])


def same(mine, theirs):
    """Whether they say the same; NVIDIA's may be partly in another form."""
    if isinstance(theirs, str):
        return mine == theirs
    text, kind = theirs
    if kind == "*":
        return mine.split()[: 2 if text.startswith("@") else 1] == text.split()[: 2 if text.startswith("@") else 1]
    if kind == "size":
        cut = re.compile(r"\.(\d+)(?= |$)")
        at_most, size = int(cut.search(mine)[1]), int(cut.search(text)[1])
        return cut.sub("", mine, 1) == cut.sub("", text, 1) and at_most >= size
    if kind == "predicates":
        return mine.split()[-1] == text.split()[-1]
    # One of the others: its guard, its name, and what it writes.
    guard = mine.split()[0] + " " if mine.startswith("@") else ""
    name, *written = mine[len(guard):].replace(",", "").split()
    if guard + name != text:
        return False
    registers = [part for part in kind if REGISTER.match(part) and not PREDICATE.match(part)]
    predicates = []
    for part in kind:
        if not PREDICATE.match(part):
            if registers and part == registers[0] and "VOTE" in text and not predicates:
                predicates += [other for other in kind[1:2] if other not in ("PT", "UPT")]
            break
        if part not in ("PT", "UPT"):
            predicates.append(part)
    for item in written:
        if item == "RZ":
            continue
        if REGISTER.match(item) and not PREDICATE.match(item):
            if not registers or item != registers[0]:
                return False
        elif item not in kind:
            return False
    if "VOTE" in text:
        # What follows is read.
        predicates = predicates[:1]
    return "BREAK" in text or all(part in written for part in predicates)


def compare(nvdisasm, command, cubin, count, unknown, wrong):
    kernels, labels = disassembled(nvdisasm, cubin)
    run = subprocess.run([command, cubin, "--code"], capture_output=True, text=True)
    # Three where there is no kernel: in a cubin of variables.
    if run.returncode not in (0, 3):
        wrong.append(f"{cubin}: {run.stderr}")
    current, architecture = None, None
    for line in run.stdout.splitlines():
        if head := re.match(r"^sm_(\d+) (\S+): ", line):
            architecture, current = head[1], head[2]
            if int(architecture) not in ARCHITECTURES:
                return
            count["kernels " + architecture] += 1
            continue
        match = re.match(r"^  ([0-9a-f]{4,}) (.*)$", line)
        if not match:
            continue
        text = kernels[current].pop(int(match[1], 16), None)
        count["instructions"] += 1
        if text is None:
            wrong.append(f"sm_{architecture} {current} {match[1]}: {match[2]}: not in NVIDIA's text")
        elif re.match(r"^(@!?U?P\w )?\?$", match[2]):
            name = re.sub(r"^@\S+\s+", "", text.strip().lstrip("{ ")).split()[0].split(".")[0].rstrip(";")
            unknown[name] += 1
        else:
            theirs = ours(text, int(match[1], 16), labels[current])
            if theirs is None:
                count["not compared"] += 1
            elif not same(match[2], theirs):
                wrong.append(f"sm_{architecture} {current} {match[1]}: {match[2]} | {theirs} | {text.strip()}")
    for kernel, left in kernels.items():
        if left:
            wrong.append(f"{kernel}: {len(left)} instructions that we do not have")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvidia", type=pathlib.Path, required=True, help="the folder with bin/nvdisasm and bin/nvcc")
    parser.add_argument("--command", required=True, help="the command kernel-access")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where cubins are compiled")
    parser.add_argument("--source", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--machine-code", type=pathlib.Path, action="append", default=[],
                        help="a source that is not compiled to PTX")
    parser.add_argument("cubins", nargs="*")
    arguments = parser.parse_args()
    cubins = list(arguments.cubins)
    for source in arguments.source + arguments.machine_code:
        for architecture in ARCHITECTURES:
            cubin = arguments.work / f"{source.stem}.{architecture}.cubin"
            subprocess.run([arguments.nvidia / "bin/nvcc", f"-arch=sm_{architecture}", "-cubin", "-w", "-o", cubin, source],
                           check=True)
            cubins.append(cubin)
            if source in arguments.machine_code:
                continue
            # For the test that compares what is said of both; see crates/kernel-access/tests/ptx/compiled.rs.
            subprocess.run([arguments.nvidia / "bin/nvcc", f"-arch=compute_{architecture}", "-ptx", "-w", "-o",
                            cubin.with_suffix(".ptx"), source], check=True)
    count, unknown, wrong = collections.Counter(), collections.Counter(), []
    for cubin in cubins:
        compare(arguments.nvidia / "bin/nvdisasm", arguments.command, cubin, count, unknown, wrong)
    for line in wrong[:100]:
        print(line)
    kernels = {name.split()[1]: number for name, number in sorted(count.items()) if name.startswith("kernels")}
    print("kernels and functions: " + ", ".join(f"sm_{name} {number}" for name, number in kernels.items())
          + f"; together {sum(kernels.values())}")
    print("not known: " + (", ".join(f"{name} {number}" for name, number in unknown.most_common()) or "none"))
    total = count["instructions"]
    print(f"{total} instructions: {total - len(wrong) - unknown.total() - count['not compared']} the same, {len(wrong)} differ, "
          f"{unknown.total()} not known, {count['not compared']} not compared")
    sys.exit(1 if wrong or not total else 0)


if __name__ == "__main__":
    main()
