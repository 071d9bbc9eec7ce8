"""Compares wrapper.h with the vendor's headers, and src/sys/bindings.rs with wrapper.h.

Every function-pointer typedef, record layout and constant of wrapper.h is looked up in cuda.h and
cudaTypedefs.h of several CUDA versions from 11.8 to 13.5. Those headers come out of the vendor's
PyPI wheels, are kept under the target folder and never enter the repository. vendor-docs/abi.md
lists what is compared, and the rules.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import CursorKind, Index, TypeKind

ROOT = Path(__file__).resolve().parent.parent

# CUDA version, wheel, its SHA-256. Ascending; the last one decides what must be complete.
HEADERS = [
    (
        (11, 8),
        "nvidia-cuda-runtime-cu11==11.8.89",
        "92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1",
    ),
    (
        (12, 0),
        "nvidia-cuda-runtime-cu12==12.0.146",
        "18c038592af387684812fa712642aa9a26c12da80acb488b6709f7cced147f71",
    ),
    (
        (12, 4),
        "nvidia-cuda-runtime-cu12==12.4.127",
        "64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5",
    ),
    (
        (12, 8),
        "nvidia-cuda-runtime-cu12==12.8.90",
        "adade8dcbd0edf427b7204d480d6066d33902cab2a4707dcfc48a2d0fd44ab90",
    ),
    (
        (12, 9),
        "nvidia-cuda-runtime-cu12==12.9.79",
        "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",
    ),
    (
        (13, 0),
        "nvidia-cuda-runtime==13.0.96",
        "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    ),
    (
        (13, 5),
        "nvidia-cuda-runtime==13.5.37",
        "df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d",
    ),
]

# Each is compared under these; `long` and enums differ between them.
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc"]

# Typedefs whose presence in a header is not what the version in their name says: name -> (versions,
# reason).
PRESENCE_EXCEPTIONS = {}

# A name that stood for another number in an old header: (name, version) -> (number there, reason).
VALUE_EXCEPTIONS = {
    ("CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS", (11, 8)): (
        93,
        "the name went to the second ABI in 12.0",
    ),
    ("CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR", (11, 8)): (
        94,
        "the name went to the second ABI in 12.0",
    ),
}

# Records that grew inside the padding that the vendor keeps around them: record -> (first version
# with the layout of wrapper.h, reason). Compared whole from there on. Before, they must be no
# larger than in wrapper.h, and each field that is there must be at its place: then an older driver
# writes within the record of wrapper.h, and means what that says.
LAYOUT_SINCE = {
    "CUdevResource": ((13, 1), "the link to the next resource took the place of padding"),
    "CUdevSmResource": (
        (13, 4),
        "a field was added at the end; it is a member of CUdevResource's padded union",
    ),
}

# Unions and enums of which wrapper.h declares a part on purpose, and why. The part is compared all
# the same.
PARTIAL = {
    "CUdevice_attribute": "the attributes that matter to events and streams",
    "CUlaunchAttributeID": "the attributes that a stream can carry",
    "CUlaunchAttributeValue": "the members for those attributes, and the padding that gives the "
                              "full size",
    "CUstreamBatchMemOpParams": "not the atomic reduction, an operation that the newest headers "
                                "added",
    "CUstreamBatchMemOpType": "likewise",
    "CUexecAffinityType": "not the count of its values, which changes",
    "CUctx_flags": "not the mask of all flags, which changes, nor a second name of one flag",
}

# What the vendor's headers include from the C library, reduced to what they use. It makes the proof
# independent of the machine's own headers; the libclang wheel brings none.
C_LIBRARY = {
    "stddef.h": "typedef __SIZE_TYPE__ size_t;\n",
    "stdlib.h": "#include <stddef.h>\n",
    "stdint.h": "typedef __UINT8_TYPE__ uint8_t;\ntypedef __UINT16_TYPE__ uint16_t;\n"
    "typedef __UINT32_TYPE__ uint32_t;\ntypedef __UINT64_TYPE__ uint64_t;\n"
    "typedef __INT32_TYPE__ int32_t;\ntypedef __INT64_TYPE__ int64_t;\ntypedef __UINTPTR_TYPE__ "
    "uintptr_t;\n",
}

CLANG_ARGS = ["-x", "c", "-std=c11", "-nostdinc", "-ferror-limit=0"]

INTEGERS = {
    **dict.fromkeys(
        (TypeKind.UCHAR, TypeKind.USHORT, TypeKind.UINT, TypeKind.ULONG, TypeKind.ULONGLONG),
        "unsigned",
    ),
    **dict.fromkeys(
        (TypeKind.SCHAR, TypeKind.SHORT, TypeKind.INT, TypeKind.LONG, TypeKind.LONGLONG), "signed"
    ),
}

# How wrapper.h names a union that the vendor leaves without a name: <struct>_u, and its member `u`
# where that has no name either. The proof takes both for unnamed.
UNNAMED = "_u"

RECORDS = (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL)


class Failure(Exception):
    """The proof cannot be carried out; not a difference."""


@dataclass
class Record:
    kind: str  # "struct" or "union"
    size: int
    align: int
    # Path (anonymous members are looked through) -> (offset in bits, size in bytes, type in words).
    fields: dict


@dataclass
class Declarations:
    """What one header, or wrapper.h, declares; types in words that are comparable between headers.
    """

    functions: dict = field(default_factory=dict)  # PFN_... -> (result, parameter, parameter, ...)
    callbacks: dict = field(default_factory=dict)  # other function-pointer typedefs, the same
    records: dict = field(default_factory=dict)  # name -> Record
    scalars: dict = field(default_factory=dict)  # name -> the type that a typedef stands for
    enums: dict = field(default_factory=dict)  # name -> {constant: value}
    constants: dict = field(default_factory=dict)  # free constants and macros -> value


def parse(name: str, source: str, target: str, include: list):
    args = (
        CLANG_ARGS
        + [f"--target={target}"]
        + [word for path in include for word in ("-I", str(path))]
    )
    unit = Index.create().parse(name, args=args, unsaved_files=[(name, source)])
    errors = [str(d) for d in unit.diagnostics if d.severity >= d.Error]
    if errors:
        raise Failure("\n".join(errors[:10]))
    return unit


def tag_stem(name: str) -> str:
    """The vendor's tags carry an ending, wrapper.h names a record by its typedef."""
    return re.sub(r"_(st|union|enum)$", "", name)


class Reader:
    """Collects the declarations of one translation unit.

    `vendor`: plain `char` reads as `unsigned char`. wrapper.h writes every text, handle and UUID
    byte as `unsigned char`, because bindgen turns `char` into i8 or u8 by target. The two have the
    same size, alignment and calling convention, so the difference is by design and the only one
    that is let through.
    """

    def __init__(self, unit, wanted, vendor: bool):
        self.vendor = vendor
        self.names = {}  # USR of a record or enum -> the name that it is compared by
        self.out = Declarations()
        cursors = list(unit.cursor.get_children())
        for cursor in cursors:
            if cursor.kind == CursorKind.TYPEDEF_DECL:
                target = cursor.underlying_typedef_type.get_canonical().get_declaration()
                # A tag can have several typedefs (..._v1 and the plain one): the first that
                # wrapper.h uses, else the first.
                if target.kind in (*RECORDS, CursorKind.ENUM_DECL):
                    known = self.names.get(target.get_usr())
                    if known is None or (known not in wanted and cursor.spelling in wanted):
                        self.names[target.get_usr()] = cursor.spelling
        for cursor in cursors:
            self.declaration(cursor)

    def name(self, cursor) -> str:
        # A typedef's name where wrapper.h uses it too; a nested tag has none.
        return self.names.get(cursor.get_usr()) or tag_stem(cursor.spelling)

    def is_unnamed(self, cursor) -> bool:
        if not self.vendor and self.name(cursor).endswith(UNNAMED):
            return True
        return cursor.get_usr() not in self.names and not cursor.spelling.isidentifier()

    def is_looked_through(self, member) -> bool:
        if not self.vendor and member.spelling == "u":
            return self.is_unnamed(member.type.get_canonical().get_declaration())
        return not member.spelling.isidentifier()

    def words(self, kind) -> str:
        kind = kind.get_canonical()
        const = "const " if kind.is_const_qualified() else ""
        if kind.kind == TypeKind.POINTER:
            return f"{const}pointer to {self.words(kind.get_pointee())}"
        if kind.kind == TypeKind.FUNCTIONPROTO:
            result, *parameters = self.signature(kind)
            return f"function({', '.join(parameters)}) -> {result}"
        if kind.kind == TypeKind.CONSTANTARRAY:
            return f"array of {kind.element_count} {self.words(kind.element_type)}"
        if kind.kind in (TypeKind.RECORD, TypeKind.ENUM):
            target = kind.get_declaration()
            if self.is_unnamed(target):
                return const + self.inline(target)
            word = {CursorKind.UNION_DECL: "union", CursorKind.ENUM_DECL: "enum"}.get(
                target.kind, "struct"
            )
            width = f" of {kind.get_size()} bytes" if word == "enum" else ""
            return f"{const}{word} {self.name(target)}{width}"
        if kind.kind in (TypeKind.CHAR_S, TypeKind.CHAR_U) and self.vendor:
            return f"{const}unsigned 1"
        # By width, not by spelling: the vendor's 64-bit integer is `unsigned long` on Linux and
        # `unsigned long long` on Windows. A type that has another width on one of the targets is
        # seen on that target.
        if kind.kind in INTEGERS:
            return f"{const}{INTEGERS[kind.kind]} {kind.get_size()}"
        # clang spells a qualified builtin with the qualifier, so that it is taken off here and put
        # back above.
        return const + kind.spelling.removeprefix("const ")

    def signature(self, kind) -> tuple:
        if kind.kind == TypeKind.FUNCTIONPROTO:
            parameters = [self.words(argument) for argument in kind.argument_types()]
            if kind.is_function_variadic():
                parameters.append("...")
        else:
            # The vendor writes `()` for "no parameter" in places.
            parameters = []
        return (self.words(kind.get_result()), *parameters)

    def inline(self, cursor) -> str:
        record = self.record(cursor)
        members = ", ".join(
            f"{path}@{at}:{what}" for path, (at, _, what) in sorted(record.fields.items())
        )
        return f"unnamed {record.kind} {{{members}}}"

    def record(self, cursor) -> Record:
        fields = {}

        def walk(kind, base):
            for member in kind.get_fields():
                at = base + member.get_field_offsetof()
                if self.is_looked_through(member):
                    walk(member.type.get_canonical(), at)
                else:
                    fields[member.spelling] = (at, member.type.get_size(), self.words(member.type))

        walk(cursor.type, 0)
        kind = "union" if cursor.kind == CursorKind.UNION_DECL else "struct"
        return Record(kind, cursor.type.get_size(), cursor.type.get_align(), fields)

    def declaration(self, cursor):
        if cursor.kind == CursorKind.TYPEDEF_DECL:
            target = cursor.underlying_typedef_type.get_canonical()
            if target.kind == TypeKind.POINTER and target.get_pointee().kind in (
                TypeKind.FUNCTIONPROTO,
                TypeKind.FUNCTIONNOPROTO,
            ):
                table = (
                    self.out.functions if cursor.spelling.startswith("PFN_") else self.out.callbacks
                )
                table[cursor.spelling] = self.signature(target.get_pointee())
            elif self.names.get(target.get_declaration().get_usr()) != cursor.spelling:
                self.out.scalars[cursor.spelling] = self.words(target)
        elif cursor.kind == CursorKind.ENUM_DECL and cursor.is_definition():
            values = {
                c.spelling: c.enum_value
                for c in cursor.get_children()
                if c.kind == CursorKind.ENUM_CONSTANT_DECL
            }
            if self.is_unnamed(cursor):
                self.out.constants.update(values)
            else:
                self.out.enums[self.name(cursor)] = values
        elif cursor.kind in RECORDS and cursor.is_definition():
            if not self.is_unnamed(cursor):
                self.out.records[self.name(cursor)] = self.record(cursor)
            for inner in cursor.get_children():
                if inner.kind in (*RECORDS, CursorKind.ENUM_DECL):
                    self.declaration(inner)


def macro_probe(names) -> str:
    """Has clang evaluate macros and constants: as enumerators named like them with a prefix."""
    lines = [f"    proof_{name} = (unsigned long long)({name})," for name in names]
    return "enum {\n" + "\n".join(lines) + "\n};\n" if lines else ""


def read(name, source, target, include, free_constants, wanted=(), vendor=False) -> Declarations:
    unit = parse(name, source + macro_probe(free_constants), target, include)
    declared = Reader(unit, set(wanted), vendor).out
    declared.constants = {
        k.removeprefix("proof_"): v for k, v in declared.constants.items() if k.startswith("proof_")
    }
    return declared


def wrapper_rules(text: str) -> list:
    """The rules of wrapper.h that keep its bindings the same for every target."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    problems = []
    if re.search(r"#\s*include", code):
        problems.append("wrapper.h includes a file")
    if re.search(r"\bchar\b", re.sub(r"\bunsigned\s+char\b", "", code)):
        problems.append(
            "wrapper.h uses plain char, whose sign differs by target: write unsigned char"
        )
    if re.search(r"\blong\b", re.sub(r"\blong\s+long\b", "", code)):
        problems.append("wrapper.h uses long, whose width differs by target")
    # bindgen would call it __bindgen_ty_1, and its member __bindgen_anon_1.
    if re.search(r"(?<!typedef )\b(?:union|struct)\s*{", code):
        problems.append(
            "wrapper.h has a union or struct without a name: make it a typedef, <struct>_u"
        )
    return problems


def read_wrapper(text: str, target=TARGETS[0]) -> Declarations:
    code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    free = re.findall(r"^\s*#\s*define\s+(\w+)\s+\S", code, flags=re.M)
    free += re.findall(r"^\s*static\s+const\s+\w+\s+(\w+)\s*=", code, flags=re.M)
    return read("wrapper.h", text, target, [], free)


def read_vendor(folder: Path, library: Path, target: str, ours: Declarations):
    """The default view of a header, and what it declares only for the vendor's internal use.

    A few superseded typedefs sit behind that switch in the newer headers; the driver still exports
    them.
    """
    wanted = {*ours.records, *ours.enums, *ours.scalars}
    text = (folder / "cuda.h").read_text(errors="replace")
    free = [name for name in ours.constants if re.search(rf"#\s*define\s+{name}\b", text)]
    source = "#include <cuda.h>\n#include <cudaTypedefs.h>\n"
    include = [folder, library]
    plain = read("vendor.h", source, target, include, free, wanted, vendor=True)
    source = "#define __CUDA_API_VERSION_INTERNAL\n" + source
    internal = read("vendor.h", source, target, include, [], wanted, vendor=True)
    return plain, {
        name: sig for name, sig in internal.functions.items() if name not in plain.functions
    }


@dataclass
class Tally:
    functions: int = 0
    internal: int = 0
    records: int = 0
    fields: int = 0
    types: int = 0
    constants: int = 0
    later: int = 0  # declared by wrapper.h, not in this version yet


def number(name: str) -> int:
    """12080 of PFN_cuEventElapsedTime_v12080 and of ..._v12080_ptsz."""
    return int(re.fullmatch(r"PFN_\w+?_v(\d+)(?:_ptsz)?", name).group(1))


class Proof:
    def __init__(self, headers: dict):
        """`headers`: version -> (Declarations, internal functions)."""
        self.headers = headers

    def run(self, ours: Declarations) -> tuple:
        problems, tallies, present = [], {}, {}
        newest = max(self.headers)
        for version, (theirs, internal) in sorted(self.headers.items()):
            tally = tallies[version] = Tally()
            found = set()
            label = f"{version[0]}.{version[1]}"

            def complain(text):
                problems.append(f"{label}: {text}")

            self.functions(ours, theirs, internal, version, tally, found, complain)
            self.types(ours, theirs, version, tally, found, complain)
            self.constants(ours, theirs, version, tally, found, complain, version == newest)
            if not (tally.functions and tally.records and tally.constants):
                complain("nothing was compared")
            present[version] = found

        # A thing without a version in its name may start late, but may not go away or never come.
        everything = set().union(*present.values()) | self.everything(ours)
        for thing in sorted(everything):
            versions = [version for version in sorted(present) if thing in present[version]]
            if not versions:
                problems.append(f"{' '.join(thing)} is in no header at all")
                continue
            missing = [v for v in sorted(present) if v > versions[0] and v not in versions]
            for version in missing:
                if thing[0] != "function":  # judged by its number, above
                    problems.append(f"{version[0]}.{version[1]}: {' '.join(thing)} went away")
        for version, tally in tallies.items():
            tally.later = len(everything - present[version])
        return problems, tallies

    @staticmethod
    def everything(ours):
        things = {("function", name) for name in ours.functions}
        things |= {("callback", name) for name in ours.callbacks}
        things |= {("record", name) for name in ours.records}
        things |= {("type", name) for name in ours.scalars}
        things |= {
            ("field", f"{n}.{f}") for n, record in ours.records.items() for f in record.fields
        }
        things |= {("constant", c) for values in ours.enums.values() for c in values}
        things |= {("constant", c) for c in ours.constants}
        return things

    @staticmethod
    def functions(ours, theirs, internal, version, tally, found, complain):
        for name, signature in ours.functions.items():
            expected = number(name) <= version[0] * 1000 + version[1] * 10
            other = theirs.functions.get(name)
            if other is None and name in internal:
                other = internal[name]
                tally.internal += 1
            versions, _ = PRESENCE_EXCEPTIONS.get(name, ((), ""))
            if version in versions:
                expected = not expected
            if (other is not None) != expected:
                complain(
                    f"{name} is {'missing' if expected else 'there already'}, its number says "
                    f"otherwise"
                )
            if other is None:
                continue
            found.add(("function", name))
            tally.functions += 1
            if signature != other:
                complain(f"{name} differs:\n    here:  {signature}\n    there: {other}")
        for name, signature in ours.callbacks.items():
            other = theirs.callbacks.get(name)
            if other is None:
                continue
            found.add(("callback", name))
            tally.types += 1
            if signature != other:
                complain(f"{name} differs:\n    here:  {signature}\n    there: {other}")

    @staticmethod
    def types(ours, theirs, version, tally, found, complain):
        for name, what in ours.scalars.items():
            other = theirs.scalars.get(name)
            if other is None:
                continue
            found.add(("type", name))
            tally.types += 1
            if what != other:
                complain(f"{name} differs: here {what}, there {other}")
        for name, record in ours.records.items():
            other = theirs.records.get(name)
            if other is None:
                continue
            if version < LAYOUT_SINCE.get(name, ((0, 0), ""))[0]:
                for word in ("size", "align"):
                    here, there = getattr(record, word), getattr(other, word)
                    if there > here:
                        complain(f"{name}: {word} is {here} here, and was {there} there")
                for path, (at, size, what) in other.fields.items():
                    here = record.fields.get(path)
                    if here is None or path == "_oversize":
                        continue
                    # A member may be such a record itself.
                    if (here[0], here[2]) != (at, what) or size > here[1]:
                        complain(
                            f"{name}.{path} was elsewhere:\n    here:  {here}\n"
                            f"    there: {at, size, what}"
                        )
                continue
            found.add(("record", name))
            tally.records += 1
            for word in ("kind", "size", "align"):
                here, there = getattr(record, word), getattr(other, word)
                if here != there:
                    complain(f"{name}: {word} is {here} here, {there} there")
            for path, (at, size, what) in record.fields.items():
                if path not in other.fields:
                    continue
                found.add(("field", f"{name}.{path}"))
                tally.fields += 1
                if (at, size, what) != other.fields[path]:
                    complain(
                        f"{name}.{path} differs:\n    here:  {at, size, what}\n    there: "
                        f"{other.fields[path]}"
                    )
            lacking = sorted(set(other.fields) - set(record.fields))
            if lacking and name not in PARTIAL:
                complain(f"{name} lacks {', '.join(lacking)}")

    @staticmethod
    def constants(ours, theirs, version, tally, found, complain, is_newest):
        enum_of = {c: (enum, v) for enum, values in theirs.enums.items() for c, v in values.items()}
        for enum, values in ours.enums.items():
            for name, value in values.items():
                if name not in enum_of:
                    continue
                found.add(("constant", name))
                tally.constants += 1
                other_enum, other = enum_of[name]
                if (name, version) in VALUE_EXCEPTIONS:
                    value, _ = VALUE_EXCEPTIONS[name, version]
                if (enum, value) != (other_enum, other):
                    complain(f"{name} is {enum} {value} here, {other_enum} {other} there")
            # CUresult in full, whatever PARTIAL says: an unnamed result code is what users see.
            lacking = sorted(set(theirs.enums.get(enum, {})) - set(values))
            if lacking and (enum == "CUresult" or is_newest and enum not in PARTIAL):
                complain(f"{enum} lacks {', '.join(lacking)}")
        for name, value in ours.constants.items():
            if name not in theirs.constants:
                continue
            found.add(("constant", name))
            tally.constants += 1
            if value != theirs.constants[name]:
                complain(f"{name} is {value} here, {theirs.constants[name]} there")


def compare_rust(ours: Declarations, rust: str) -> tuple:
    """That what was proved for wrapper.h is what gets compiled."""
    problems = []
    typedefs = {}
    for name, parameters in re.findall(
        r"pub type (PFN_\w+) = .*?extern \"C\" fn\((.*?)\)\s*-> CUresult", rust, flags=re.S
    ):
        typedefs[name] = len(re.findall(r"\b\w+: ", parameters))
    for name, signature in ours.functions.items():
        if name not in typedefs:
            problems.append(f"bindings.rs lacks {name}")
        elif typedefs[name] != len(signature) - 1:
            problems.append(
                f"bindings.rs: {name} has {typedefs[name]} parameters, "
                f"wrapper.h {len(signature) - 1}"
            )
    problems += [
        f"bindings.rs has {name}, wrapper.h does not"
        for name in typedefs
        if name not in ours.functions
    ]

    values = {n: int(v) for n, v in re.findall(r"pub const (\w+): \w+ = (?:\w+\(\s*)?(\d+)", rust)}
    constants = {
        **{c: v for enum in ours.enums.values() for c, v in enum.items()},
        **ours.constants,
    }
    for name, value in constants.items():
        if values.get(name) != value:
            problems.append(f"bindings.rs has {name} = {values.get(name)}, wrapper.h {value}")

    problems += [
        f"bindings.rs has {name}, wrapper.h does not" for name in values if name not in constants
    ]

    sizes = {n: int(v) for n, v in re.findall(r"size_of::<(\w+)>\(\) - (\d+)usize", rust)}
    for name, record in ours.records.items():
        if sizes.get(name) != record.size:
            problems.append(
                f"bindings.rs asserts {sizes.get(name)} bytes for {name}, wrapper.h has "
                f"{record.size}"
            )
    return problems, (len(typedefs), len(ours.records), len(constants))


def fetch(cache: Path) -> dict:
    """The folder of each version's headers; downloads what the cache lacks."""
    folders = {}
    for version, requirement, digest in HEADERS:
        folder = folders[version] = cache / f"{version[0]}.{version[1]}-{digest[:16]}"
        if (folder / "complete").exists():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            pinned = Path(scratch) / "pinned.txt"
            pinned.write_text(f"{requirement} --hash=sha256:{digest}\n")
            # The headers do not depend on the platform of the wheel, so one platform serves every
            # host.
            platforms = ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64")
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
            ]
            command += ["--only-binary=:all:", "--require-hashes", "-r", str(pinned), "-d", scratch]
            command += [word for platform in platforms for word in ("--platform", platform)]
            if subprocess.run(command).returncode != 0:
                raise Failure(f"pip could not download {requirement} with the pinned hash")
            (wheel,) = Path(scratch).glob("*.whl")
            if hashlib.sha256(wheel.read_bytes()).hexdigest() != digest:
                raise Failure(f"{wheel.name} has another SHA-256 than the pinned one")
            folder.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.namelist():
                    if Path(member).name in ("cuda.h", "cudaTypedefs.h"):
                        (folder / Path(member).name).write_bytes(archive.read(member))
        (folder / "complete").touch()
    return folders


def read_headers(cache: Path, wrapper: str) -> dict:
    """target -> version -> (Declarations, internal functions)"""
    folders = fetch(cache)
    library = cache / "c-library"
    library.mkdir(parents=True, exist_ok=True)
    for name, text in C_LIBRARY.items():
        (library / name).write_text("#pragma once\n" + text)
    for version, folder in folders.items():
        macro = re.search(
            r"^#define CUDA_VERSION (\d+)",
            (folder / "cuda.h").read_text(errors="replace"),
            flags=re.M,
        )
        if not macro or int(macro.group(1)) != version[0] * 1000 + version[1] * 10:
            raise Failure(
                f"the wheel for {version[0]}.{version[1]} holds the header of another version"
            )
    headers = {}
    for target in TARGETS:
        ours = read_wrapper(wrapper, target)
        headers[target] = {
            v: read_vendor(folder, library, target, ours) for v, folder in folders.items()
        }
    return headers


def compare_headers(headers: dict, wrapper: str) -> tuple:
    """The differences on any target, each told once, and the counts, which must be the same on all
    targets."""
    problems, first = wrapper_rules(wrapper), None
    for target, versions in headers.items():
        found, tallies = Proof(versions).run(read_wrapper(wrapper, target))
        problems += [problem for problem in found if problem not in problems]
        first = first or tallies
        if tallies != first:
            problems.append(f"{target}: another number of things was compared than on {TARGETS[0]}")
    return problems, first


def self_test(cache: Path, wrapper: str, rust: str) -> int:
    """Damages copies of wrapper.h and of the bindings, one way each, and sees that each is caught.
    """
    vendor = read_headers(cache, wrapper)
    ours = read_wrapper(wrapper)

    def headers(text):
        return compare_headers(vendor, text)[0]

    def bindings(text):
        return compare_rust(ours, text)[0]

    # What is damaged; the check that must see it and its text; where (a text that occurs once),
    # what is there, what it becomes; what the complaint must name.
    cases = [
        (
            "a parameter's type",
            headers,
            wrapper,
            "PFN_cuStreamWaitEvent_v3020)",
            "unsigned int flags",
            "unsigned long long flags",
            "PFN_cuStreamWaitEvent_v3020",
        ),
        (
            "a parameter's const",
            headers,
            wrapper,
            "PFN_cuMemcpyHtoDAsync_v3020)",
            "const void",
            "void",
            "PFN_cuMemcpyHtoDAsync_v3020",
        ),
        (
            "two handles swapped",
            headers,
            wrapper,
            "PFN_cuEventRecord_v2000)",
            "CUevent event, CUstream stream",
            "CUstream stream, CUevent event",
            "PFN_cuEventRecord_v2000",
        ),
        (
            "a handle by pointer instead of by value",
            headers,
            wrapper,
            "PFN_cuIpcOpenEventHandle_v4010)",
            "CUipcEventHandle handle",
            "CUipcEventHandle *handle",
            "PFN_cuIpcOpenEventHandle_v4010",
        ),
        (
            "a return type",
            headers,
            wrapper,
            "typedef CUresult (*PFN_cuInit_v2000)",
            "CUresult",
            "CUdevice",
            "PFN_cuInit_v2000",
        ),
        (
            "an enumerator's value",
            headers,
            wrapper,
            "CU_EVENT_BLOCKING_SYNC",
            "0x1",
            "0x8",
            "CU_EVENT_BLOCKING_SYNC",
        ),
        (
            "a macro's value",
            headers,
            wrapper,
            "CU_MEMHOSTALLOC_DEVICEMAP",
            "0x02",
            "0x04",
            "CU_MEMHOSTALLOC_DEVICEMAP",
        ),
        (
            "a special handle's value",
            headers,
            wrapper,
            "CU_STREAM_PER_THREAD",
            "0x2",
            "0x3",
            "CU_STREAM_PER_THREAD",
        ),
        (
            "a field's type",
            headers,
            wrapper,
            "unsigned char from_port",
            "char",
            "short",
            "CUgraphEdgeData.from_port",
        ),
        (
            "a field's name",
            headers,
            wrapper,
            "unsigned char to_port",
            "to_port",
            "two_port",
            "CUgraphEdgeData lacks to_port",
        ),
        (
            "a field left out",
            headers,
            wrapper,
            "    unsigned int localityDomainId;",
            "    unsigned int localityDomainId;",
            "",
            "CUdevSmResource",
        ),
        (
            "a field's place in a union",
            headers,
            wrapper,
            "    CUdevResource_u u;",
            "    CUdevResource_u u;",
            "    int first;\n    CUdevResource_u u;",
            "CUdevResource.sm differs",
        ),
        (
            "a field of a union left out",
            headers,
            wrapper,
            "    CUdevWorkqueueResource wq;",
            "    CUdevWorkqueueResource wq;",
            "",
            "CUdevResource lacks wq",
        ),
        (
            "a union without a name",
            headers,
            wrapper,
            "    CUexecAffinityParam_u param;",
            "CUexecAffinityParam_u",
            "union { CUexecAffinitySmCount smCount; }",
            "a union or struct without a name",
        ),
        (
            "an array's length",
            headers,
            wrapper,
            "unsigned char reserved[64];\n} CUipcEventHandle",
            "64",
            "60",
            "CUipcEventHandle",
        ),
        (
            "a result code left out",
            headers,
            wrapper,
            "CUDA_ERROR_FABRIC_NOT_READY",
            "CUDA_ERROR_FABRIC_NOT_READY = 919,",
            "",
            "CUDA_ERROR_FABRIC_NOT_READY",
        ),
        (
            "a function in no header",
            headers,
            wrapper,
            "PFN_cuEventQuery_v2000)",
            "Query",
            "Querry",
            "function PFN_cuEventQuerry_v2000 is in no header at all",
        ),
        (
            "a function under another version",
            headers,
            wrapper,
            "PFN_cuEventElapsedTime_v12080)",
            "v12080",
            "v12070",
            "PFN_cuEventElapsedTime_v12070",
        ),
        (
            "a 32-bit integer on Windows only",
            headers,
            wrapper,
            "typedef unsigned long long cuuint64_t",
            "long long",
            "long",
            "cuuint64_t differs",
        ),
        (
            "plain char",
            headers,
            wrapper,
            "unsigned char *name",
            "unsigned char",
            "char",
            "plain char",
        ),
        (
            "a typedef missing in the bindings",
            bindings,
            rust,
            "pub type PFN_cuEventQuery_v2000 ",
            "PFN_cuEventQuery_v2000",
            "Gone",
            "PFN_cuEventQuery_v2000",
        ),
        (
            "a constant changed in the bindings",
            bindings,
            rust,
            "const CU_EVENT_INTERPROCESS",
            "= 4",
            "= 5",
            "CU_EVENT_INTERPROCESS",
        ),
    ]
    failed = 0
    for check, text, what in (
        (headers, wrapper, "wrapper.h as it is"),
        (bindings, rust, "the bindings as they are"),
    ):
        if problems := check(text):
            failed += 1
            print(f"FAILED  {what} must pass first:\n" + "\n".join(problems))
    for what, check, text, where, old, new, named in cases:
        before, _, after = text.partition(where)
        if text.count(where) != 1 or old not in where + after:
            failed += 1
            print(f"FAILED  {what}: this test no longer fits the text at: {where}")
            continue
        damaged = before + (where + after).replace(old, new, 1)
        caught = [problem for problem in check(damaged) if named in problem]
        failed += not caught
        print(
            f"caught  {what}: {caught[0].splitlines()[0]}"
            if caught
            else f"FAILED  {what}: not caught"
        )

    if nothing := [
        p
        for p in Proof({(13, 5): (Declarations(), {})}).run(ours)[0]
        if "nothing was compared" in p
    ]:
        print(f"caught  an empty header: {nothing[0]}")
    else:
        failed += 1
        print("FAILED  an empty header: not caught")
    print(
        "self-test:",
        "failed" if failed else f"passed, {len(cases) + 1} of {len(cases) + 1} damages caught",
    )
    return 1 if failed else 0


def main() -> int:
    arguments = argparse.ArgumentParser(
        prog="tools/abi-proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    arguments.add_argument(
        "--wrapper",
        type=Path,
        default=ROOT / "wrapper.h",
        help="compare this file instead of wrapper.h",
    )
    arguments.add_argument(
        "--bindings",
        type=Path,
        default=ROOT / "src/sys/bindings.rs",
        help="compare these bindings instead",
    )
    arguments.add_argument("--self-test", action="store_true", help="show that damage is caught")
    arguments.add_argument("--cache", type=Path, required=True, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    try:
        wrapper, rust = options.wrapper.read_text(), options.bindings.read_text()
        if options.self_test:
            return self_test(options.cache, wrapper, rust)

        problems, tallies = compare_headers(read_headers(options.cache, wrapper), wrapper)
        ours = read_wrapper(wrapper)
        rust_problems, counts = compare_rust(ours, rust)
    except (Failure, OSError) as error:
        print(f"tools/abi-proof: {error}", file=sys.stderr)
        return 1

    def of(part, whole):
        return f"{part} of {whole}".rjust(14)

    fields, types = (
        sum(len(r.fields) for r in ours.records.values()),
        len(ours.callbacks) + len(ours.scalars),
    )
    constants = sum(len(values) for values in ours.enums.values()) + len(ours.constants)
    print(
        "Compared, of what wrapper.h declares; the rest is not in that header yet. Same counts on "
        "each of"
    )
    print(", ".join(TARGETS) + ".")
    print("Internal: functions whose typedef that header shows only for the vendor's internal use.")
    print(
        "header     functions       records        fields   other types     constants  not in it "
        "yet  internal"
    )
    for version, t in sorted(tallies.items()):
        print(
            f"{version[0]}.{version[1]}".ljust(6)
            + of(t.functions, len(ours.functions))
            + of(t.records, len(ours.records))
            + of(t.fields, fields)
            + of(t.types, types)
            + of(t.constants, constants)
            + f"{t.later:>15}{t.internal:>10}"
        )
    print(f"bindings.rs: {counts[0]} typedefs, {counts[1]} records, {counts[2]} constants")
    for problem in problems + rust_problems:
        print("DIFFERENT " + problem)
    print(f"{len(problems) + len(rust_problems)} differences")
    return 1 if problems or rust_problems else 0


if __name__ == "__main__":
    sys.exit(main())
