"""Compares wrapper.h and wrapper-more.h with the vendor's headers, and their bindings with them.

Every function-pointer typedef, record layout and constant of the two is looked up in cuda.h and
cudaTypedefs.h of several CUDA versions from 11.8 on. Those headers come out of the vendor's
PyPI wheels, are kept under the target folder and never enter the repository. vendor-docs/abi.md
lists what is compared, and the rules.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from clang.cindex import CursorKind, Index, TypeKind

ROOT = Path(__file__).resolve().parent.parent

# CUDA version: wheel, with its SHA-256. Ascending; the last one decides what must be complete.
OLD, NEW = "nvidia-cuda-runtime-cu", "nvidia-cuda-runtime=="
HEADERS = {
    (11, 8): f"{OLD}11==11.8.89 92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1",
    (12, 0): f"{OLD}12==12.0.146 18c038592af387684812fa712642aa9a26c12da80acb488b6709f7cced147f71",
    (12, 4): f"{OLD}12==12.4.127 64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5",
    (12, 8): f"{OLD}12==12.8.90 adade8dcbd0edf427b7204d480d6066d33902cab2a4707dcfc48a2d0fd44ab90",
    (12, 9): f"{OLD}12==12.9.79 25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",
    (13, 0): f"{NEW}13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    (13, 5): f"{NEW}13.5.37 df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d",
}
NEWEST = max(HEADERS)

# Each is compared under these; `long` and enums differ between them.
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc"]

# A name that stood for another number in an old header: the number there. In 12.0 these names went
# to the second ABI.
VALUE_EXCEPTIONS = {
    ("CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS", (11, 8)): 93,
    ("CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR", (11, 8)): 94,
}

# Functions that the headers of their own version forgot: the first headers that have them.
DECLARED_SINCE = {"PFN_cuGreenCtxGetId_v12090": (13, 0)}

# Records that grew inside the padding that the vendor keeps around them: the first version with the
# layout of wrapper.h. Compared whole from there on. Before, they must be no larger than in
# wrapper.h, and each field that is there must be at its place: then an older driver writes within
# the record of wrapper.h, and means what that says.
LAYOUT_SINCE = {
    "CUdevResource": (13, 1),  # the link to the next resource took the place of padding
    "CUdevSmResource": (13, 4),  # a field at the end; a member of CUdevResource's padded union
    "CUcheckpointCheckpointArgs": (13, 4),  # a pointer in place of reserved bytes
    "CUcheckpointRestoreArgs": (13, 4),  # likewise, the second time
    "CUmemPoolProps": (13, 5),  # fields in place of reserved bytes, the third time
}

# Unions and enums of which wrapper.h declares a part on purpose. The part is compared all the same.
PARTIAL = {
    "CUdevice_attribute",  # the attributes that matter to events and streams
    "CUlaunchAttributeID",  # the attributes that a stream can carry, and those that record events
    "CUlaunchAttributeValue",  # the members for those, and the padding that gives the full size
    "CUarray_format",  # the formats whose elements the checker knows
    "CUexecAffinityType",  # not the count of its values, which changes
    "CUatomicOperation",  # likewise
    "CUcoredumpSettings",  # likewise
    "CUlimit",  # likewise
    "CUfunction_attribute",  # likewise
    "CUjit_option",  # likewise
    "CUCoredumpGenerationFlags",  # not a mask that grew, nor the flag that is the sign of an int
    "CUmemLocation",  # the id, and not what else has its place
    "CUctx_flags",  # not the mask of all flags, which changes, nor a second name of one flag
}

# What the vendor's headers include from the C library, reduced to what they use. It makes the proof
# independent of the machine's own headers; the libclang wheel brings none.
C_LIBRARY = {
    "stddef.h": "typedef __SIZE_TYPE__ size_t;\n",
    "stdlib.h": "#include <stddef.h>\n",
    "stdint.h": "".join(
        f"typedef __{name.upper()}_TYPE__ {name}_t;\n"
        for name in "uint8 uint16 uint32 uint64 int32 int64 uintptr".split()
    ),
}

CLANG_ARGS = ["-x", "c", "-std=c11", "-nostdinc", "-ferror-limit=0"]
INTEGERS = {
    getattr(TypeKind, name): "unsigned" if name.startswith("U") else "signed"
    for name in "UCHAR USHORT UINT ULONG ULONGLONG SCHAR SHORT INT LONG LONGLONG".split()
}

# How wrapper.h names a union that the vendor leaves without a name: <struct>_u, and its member `u`
# where that has no name either. The proof takes both for unnamed.
UNNAMED = "_u"
RECORDS = (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL)


@dataclass
class Record:
    kind: str  # "struct" or "union"
    size: int
    align: int
    # Path (anonymous members are looked through) -> (offset in bits, size in bytes, type in words).
    fields: dict


@dataclass
class Declarations:
    """What one header declares; types in words that are comparable between headers."""

    functions: dict = field(default_factory=dict)  # PFN_... -> (result, parameter, parameter, ...)
    callbacks: dict = field(default_factory=dict)  # other function-pointer typedefs, the same
    records: dict = field(default_factory=dict)  # name -> Record
    scalars: dict = field(default_factory=dict)  # name -> the type that a typedef stands for
    enums: dict = field(default_factory=dict)  # name -> {constant: value}
    constants: dict = field(default_factory=dict)  # free constants and macros -> value


class Reader:
    """Collects the declarations of one translation unit.

    `vendor`: plain `char` in a structure reads as `unsigned char`. wrapper.h has the bytes of
    handles and UUIDs as `unsigned char`, because they are no text, and the sign of `char` is another
    on other targets. The difference is by design and the only one that is let through.
    """

    def __init__(self, unit, wanted, vendor: bool):
        self.vendor = vendor
        self.in_record = False
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
        # A typedef's name where wrapper.h uses it too; a nested tag has none. The vendor's tags
        # carry an ending.
        tag = re.sub(r"_(st|union|enum)$", "", cursor.spelling)
        return self.names.get(cursor.get_usr()) or tag

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
                record = self.record(target)
                members = (f"{path}@{at}:{what}" for path, (at, _, what) in record.fields.items())
                return f"{const}unnamed {record.kind} {{{', '.join(sorted(members))}}}"
            if kind.kind == TypeKind.ENUM:
                return f"{const}enum {self.name(target)} of {kind.get_size()} bytes"
            word = "union" if target.kind == CursorKind.UNION_DECL else "struct"
            return f"{const}{word} {self.name(target)}"
        if kind.kind in (TypeKind.CHAR_S, TypeKind.CHAR_U):
            return const + ("unsigned 1" if self.vendor and self.in_record else "char")
        # By width, not by spelling: the vendor's 64-bit integer is `unsigned long` on Linux and
        # `unsigned long long` on Windows. A type that has another width on one of the targets is
        # seen on that target.
        if kind.kind in INTEGERS:
            return f"{const}{INTEGERS[kind.kind]} {kind.get_size()}"
        # clang spells a qualified builtin with the qualifier, which is put back.
        return const + kind.spelling.removeprefix("const ")

    def signature(self, kind) -> tuple:
        # The vendor writes `()` for "no parameter" in places.
        parameters = []
        if kind.kind == TypeKind.FUNCTIONPROTO:
            parameters = [self.words(argument) for argument in kind.argument_types()]
            parameters += ["..."] * kind.is_function_variadic()
        return (self.words(kind.get_result()), *parameters)

    def record(self, cursor) -> Record:
        fields = {}

        def walk(kind, base):
            for member in kind.get_fields():
                at = base + member.get_field_offsetof()
                if self.is_looked_through(member):
                    walk(member.type.get_canonical(), at)
                else:
                    fields[member.spelling] = (at, member.type.get_size(), self.words(member.type))

        outer, self.in_record = self.in_record, True
        walk(cursor.type, 0)
        self.in_record = outer
        kind = "union" if cursor.kind == CursorKind.UNION_DECL else "struct"
        return Record(kind, cursor.type.get_size(), cursor.type.get_align(), fields)

    def declaration(self, cursor):
        out, name = self.out, cursor.spelling
        if cursor.kind == CursorKind.TYPEDEF_DECL:
            target = cursor.underlying_typedef_type.get_canonical()
            functions = (TypeKind.FUNCTIONPROTO, TypeKind.FUNCTIONNOPROTO)
            if target.kind == TypeKind.POINTER and target.get_pointee().kind in functions:
                table = out.functions if name.startswith("PFN_") else out.callbacks
                table[name] = self.signature(target.get_pointee())
            elif self.names.get(target.get_declaration().get_usr()) != name:
                out.scalars[name] = self.words(target)
        elif cursor.kind == CursorKind.ENUM_DECL and cursor.is_definition():
            values = {
                constant.spelling: constant.enum_value
                for constant in cursor.get_children()
                if constant.kind == CursorKind.ENUM_CONSTANT_DECL
            }
            if self.is_unnamed(cursor):
                out.constants.update(values)
            else:
                out.enums[self.name(cursor)] = values
        elif cursor.kind in RECORDS and cursor.is_definition():
            if not self.is_unnamed(cursor):
                out.records[self.name(cursor)] = self.record(cursor)
            for inner in cursor.get_children():
                if inner.kind in (*RECORDS, CursorKind.ENUM_DECL):
                    self.declaration(inner)


def read(source, target, include, constants, wanted=(), vendor=False) -> Declarations:
    """`constants`: macros and constants, which clang evaluates as enumerators."""
    probe = "".join(f"proof_{name} = (unsigned long long)({name}),\n" for name in constants)
    source += f"enum {{\n{probe}}};\n" if probe else ""
    args = [*CLANG_ARGS, f"--target={target}", *(f"-I{path}" for path in include)]
    unit = Index.create().parse("read.h", args=args, unsaved_files=[("read.h", source)])
    if errors := [str(d) for d in unit.diagnostics if d.severity >= d.Error]:
        sys.exit("\n".join(["tools/abi-proof:", *errors[:10]]))
    declared = Reader(unit, set(wanted), vendor).out
    probed = (name for name in declared.constants if name.startswith("proof_"))
    declared.constants = {n.removeprefix("proof_"): declared.constants[n] for n in probed}
    return declared


def wrapper_rules(text: str):
    """The rules of wrapper.h that keep its bindings the same for every target."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    if re.search(r"#\s*include", code):
        yield "wrapper.h includes a file"
    if re.search(r"\bchar\b(?! \*)", re.sub(r"\bunsigned\s+char\b", "", code)):
        yield "wrapper.h uses plain char for something else than text: write unsigned char"
    if re.search(r"\blong\b", re.sub(r"\blong\s+long\b", "", code)):
        yield "wrapper.h uses long, whose width differs by target"
    names = re.findall(r"\(\*(PFN_\w+)\)|typedef PFN_\w+\s+(PFN_\w+);", code)
    for name, count in Counter(one or other for one, other in names).items():
        if count > 1:
            yield f"{name} is declared twice: leave it in one header"
    # bindgen would call it __bindgen_ty_1, and its member __bindgen_anon_1.
    if re.search(r"(?<!typedef )\b(?:union|struct)\s*{", code):
        yield "wrapper.h has a union or struct without a name: make it a typedef, <struct>_u"


def read_wrapper(text: str, target=TARGETS[0]) -> Declarations:
    code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    free = re.findall(r"^\s*#\s*define\s+(\w+)\s+\S", code, flags=re.M)
    free += re.findall(r"^\s*static\s+const\s+\w+\s+(\w+)\s*=", code, flags=re.M)
    return read(text, target, [], free)


def read_vendor(folder: Path, library: Path, target: str, ours: Declarations) -> Declarations:
    """A header's declarations, with the superseded typedefs that the newer headers show only for
    the vendor's internal use; the driver still exports them."""
    wanted = {*ours.records, *ours.enums, *ours.scalars}
    text = (folder / "cuda.h").read_text(errors="replace")
    free = [name for name in ours.constants if re.search(rf"#\s*define\s+{name}\b", text)]
    source, include = "#include <cuda.h>\n#include <cudaTypedefs.h>\n", [folder, library]
    plain = read(source, target, include, free, wanted, vendor=True)
    source = "#define __CUDA_API_VERSION_INTERNAL\n" + source
    internal = read(source, target, include, [], wanted, vendor=True)
    plain.functions = internal.functions | plain.functions
    return plain


class Comparison:
    """Of wrapper.h with one header: what differs, and what was found there."""

    def __init__(self, ours: Declarations, theirs: Declarations, version: tuple):
        self.ours, self.theirs, self.version = ours, theirs, version
        self.problems, self.found = [], set()
        for name in ours.functions:
            # 12080 of PFN_cuEventElapsedTime_v12080 and of ..._v12080_ptsz.
            number = int(re.fullmatch(r"PFN_\w+?_v(\d+)(?:_pt[sd][sz])?", name)[1])
            expected = number <= version[0] * 1000 + version[1] * 10
            expected &= version >= DECLARED_SINCE.get(name, (0, 0))
            if (name in theirs.functions) != expected:
                word = "missing" if expected else "there already"
                self.complain(f"{name} is {word}, its number says otherwise")
        self.equal("function", ours.functions, theirs.functions)
        self.equal("callback", ours.callbacks, theirs.callbacks)
        self.equal("type", ours.scalars, theirs.scalars)
        self.equal("constant", ours.constants, theirs.constants)
        for name in ours.records.keys() & theirs.records.keys():
            self.record(name, ours.records[name], theirs.records[name])
        self.enums()
        kinds = {kind for kind, _ in self.found}
        if not {"function", "record", "constant"} <= kinds:
            self.complain("nothing was compared")

    def complain(self, text):
        self.problems.append(f"{self.version[0]}.{self.version[1]}: {text}")

    def equal(self, kind, ours, theirs):
        for name in ours.keys() & theirs.keys():
            self.found.add((kind, name))
            if ours[name] != theirs[name]:
                self.complain(
                    f"{name} differs:\n    here:  {ours[name]}\n    there: {theirs[name]}"
                )

    def record(self, name, ours, theirs):
        if self.version < LAYOUT_SINCE.get(name, (0, 0)):
            if theirs.size > ours.size or theirs.align > ours.align:
                self.complain(f"{name} was larger there")
            for path, (at, size, what) in theirs.fields.items():
                here = ours.fields.get(path)
                # A member may be such a record itself. Reserved bytes are zero.
                if here is None or path in ("_oversize", "reserved"):
                    continue
                if (here[0], here[2]) != (at, what) or size > here[1]:
                    self.complain(f"{name}.{path} was elsewhere: {here}, {at, size, what}")
            return
        self.found.add(("record", name))
        for word in ("kind", "size", "align"):
            here, there = getattr(ours, word), getattr(theirs, word)
            if here != there:
                self.complain(f"{name}: {word} is {here} here, {there} there")
        paths = lambda record: {f"{name}.{path}": what for path, what in record.fields.items()}
        self.equal("field", paths(ours), paths(theirs))
        lacking = sorted(theirs.fields.keys() - ours.fields.keys())
        if lacking and name not in PARTIAL:
            self.complain(f"{name} lacks {', '.join(lacking)}")

    def enums(self):
        there = {}
        for enum, values in self.theirs.enums.items():
            there |= {name: (enum, value) for name, value in values.items()}
        for enum, values in self.ours.enums.items():
            for name in values.keys() & there.keys():
                self.found.add(("constant", name))
                value = VALUE_EXCEPTIONS.get((name, self.version), values[name])
                if (enum, value) != there[name]:
                    self.complain(f"{name} is {enum} {value} here, {there[name]} there")
            # CUresult in full, whatever PARTIAL has: an unnamed result code is what users see.
            lacking = sorted(self.theirs.enums.get(enum, {}).keys() - values.keys())
            complete = enum == "CUresult" or self.version == NEWEST and enum not in PARTIAL
            if lacking and complete:
                self.complain(f"{enum} lacks {', '.join(lacking)}")


def everything(ours: Declarations) -> set:
    things = {("function", name) for name in ours.functions}
    things |= {("callback", name) for name in ours.callbacks}
    things |= {("type", name) for name in ours.scalars}
    things |= {("record", name) for name in ours.records}
    for name, record in ours.records.items():
        things |= {("field", f"{name}.{path}") for path in record.fields}
    names = [name for values in ours.enums.values() for name in values]
    return things | {("constant", name) for name in [*names, *ours.constants]}


def compare_headers(headers: dict, wrapper: str) -> tuple:
    """The differences on any target, each once, and for each version the number of things of each
    kind, which must be the same on all targets."""
    problems, first = list(wrapper_rules(wrapper)), None
    for target, versions in headers.items():
        ours, found, new = read_wrapper(wrapper, target), {}, []
        for version, theirs in sorted(versions.items()):
            comparison = Comparison(ours, theirs, version)
            found[version] = comparison.found
            new += comparison.problems
        # A thing without a version in its name may start late, but may not go away or never come.
        for kind, name in sorted(everything(ours)):
            there = [version for version in found if (kind, name) in found[version]]
            if not there:
                new.append(f"{kind} {name} is in no header at all")
            # That of functions is judged by the number.
            elif kind != "function":
                gone = [v for v in found if v > there[0] and v not in there]
                new += [f"{v[0]}.{v[1]}: {kind} {name} went away" for v in gone]
        problems += [problem for problem in new if problem not in problems]
        counts = {version: Counter(kind for kind, _ in things) for version, things in found.items()}
        first = first or counts
        if counts != first:
            problems.append(f"{target}: other things were compared than on {TARGETS[0]}")
    return problems, first


def compare_rust(ours: Declarations, rust: str) -> list:
    """That what was proved for wrapper.h is what gets compiled."""
    pointer = r"pub type (PFN_\w+) = [^;]*?extern \"C\" fn\((.*?)\)\s*-> CUresult"
    parameters = {
        name: len(re.findall(r"\b\w+: ", parameters))
        for name, parameters in re.findall(pointer, rust, flags=re.S)
    }
    twins = re.findall(r"pub type (PFN_\w+) = (PFN_\w+);", rust)
    there = {
        "parameters": parameters | {name: parameters.get(of) for name, of in twins},
        "value": re.findall(r"pub const (\w+): \w+ = (?:[\w:]+\(\s*)?(\d+)", rust),
        "bytes": re.findall(r"size_of::<(\w+)>\(\) - (\d+)usize", rust),
    }
    constants = {c: v for values in ours.enums.values() for c, v in values.items()}
    here = {
        "parameters": {name: len(types) - 1 for name, types in ours.functions.items()},
        "value": constants | ours.constants,
        "bytes": {name: record.size for name, record in ours.records.items()},
    }
    problems = []
    for kind, expected in here.items():
        found = {name: number and int(number) for name, number in dict(there[kind]).items()}
        if kind == "bytes":
            found = {name: size for name, size in found.items() if name in expected}
        for name in sorted(expected.keys() | found.keys()):
            if (ours_is := expected.get(name)) != (rust_is := found.get(name)):
                problems.append(f"{kind} of {name}: {rust_is} in the bindings, {ours_is} here")
    return problems


def fetch(cache: Path) -> dict:
    """The folder of each version's headers; downloads what the cache lacks."""
    folders = {}
    for version, pin in HEADERS.items():
        requirement, digest = pin.split()
        folder = folders[version] = cache / f"{version[0]}.{version[1]}-{digest[:16]}"
        if (folder / "complete").exists():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            pinned = Path(scratch) / "pinned.txt"
            pinned.write_text(f"{requirement} --hash=sha256:{digest}\n")
            # The headers do not depend on the platform of the wheel, so one serves every host.
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--disable-pip-version-check", "--only-binary=:all:", "--require-hashes"]
            for platform in ("manylinux_2_17", "manylinux2014", "manylinux1"):
                command += ["--platform", f"{platform}_x86_64"]
            subprocess.run([*command, "-r", pinned, "-d", scratch], check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            folder.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(wheel) as archive:
                for member in archive.namelist():
                    if Path(member).name in ("cuda.h", "cudaTypedefs.h"):
                        (folder / Path(member).name).write_bytes(archive.read(member))
        number = version[0] * 1000 + version[1] * 10
        if f"\n#define CUDA_VERSION {number}\n" not in (folder / "cuda.h").read_text():
            sys.exit(f"tools/abi-proof: {requirement} has the header of another version")
        (folder / "complete").touch()
    return folders


def read_headers(cache: Path, wrapper: str) -> dict:
    """target -> version -> Declarations"""
    folders, library = fetch(cache), cache / "c-library"
    library.mkdir(parents=True, exist_ok=True)
    for name, text in C_LIBRARY.items():
        (library / name).write_text("#pragma once\n" + text)
    headers = {}
    for target in TARGETS:
        ours = read_wrapper(wrapper, target)
        headers[target] = {
            version: read_vendor(folder, library, target, ours)
            for version, folder in folders.items()
        }
    return headers


# Damages of wrapper.h: where (a text that occurs once), what is there or after it, what it becomes,
# and what the complaint must name.
DAMAGES = [
    ("PFN_cuStreamWaitEvent_v3020)", "int flags", "long long flags", "PFN_cuStreamWaitEvent_v3020"),
    ("PFN_cuMemcpyHtoDAsync_v3020)", "const void", "void", "PFN_cuMemcpyHtoDAsync_v3020 differs"),
    ("PFN_cuIpcOpenEventHandle_v4010)", "handle)", "*handle)", "PFN_cuIpcOpenEventHandle_v4010"),
    ("typedef CUresult (*PFN_cuInit_v2000)", "CUresult", "CUdevice", "PFN_cuInit_v2000 differs"),
    ("CU_EVENT_BLOCKING_SYNC", "0x1", "0x8", "CU_EVENT_BLOCKING_SYNC is"),
    ("CU_MEMHOSTALLOC_DEVICEMAP", "0x02", "0x04", "CU_MEMHOSTALLOC_DEVICEMAP differs"),
    ("unsigned char from_port", "char", "short", "CUgraphEdgeData.from_port differs"),
    ("unsigned char to_port", "to_port", "two_port", "CUgraphEdgeData lacks to_port"),
    ("    CUdevResource_u u;", "    CUdev", "    int first; CUdev", "CUdevResource.sm differs"),
    ("reserved[64];\n} CUipcEventHandle", "64", "60", "CUipcEventHandle: size is 60"),
    ("CUDA_ERROR_FABRIC_NOT_READY", "CUDA_ERROR_FABRIC_NOT_READY = 919,", "", "CUresult lacks"),
    ("PFN_cuEventQuery_v2000)", "Query", "Querry", "PFN_cuEventQuerry_v2000 is in no header"),
    ("PFN_cuEventElapsedTime_v12080)", "v12080", "v12070", "its number says otherwise"),
    ("typedef unsigned long long cuuint64_t", "long long", "long", "cuuint64_t differs"),
    ("PFN_cuDeviceGetName_v2000)", "char *name", "unsigned char *name", "GetName_v2000 differs"),
    ("unsigned char default_", "unsigned char", "char", "plain char"),
    ("PFN_cuMemcpyHtoD_v3020)", "size_t bytes", "unsigned int bytes", "cuMemcpyHtoD_v3020 differs"),
    ("PFN_cuMemAllocManaged_v6000)", "unsigned int", "unsigned long long", "Managed_v6000 differs"),
    ("typedef PFN_cuMemcpy_v4000 ", "PFN_cuMemcpy_v4000", "PFN_cuMemUnmap_v10020", "_ptds differs"),
    ("hStream;\n    CUlaunchAttribute *attrs", "    CUlaunchAttribute *attrs;\n", "", "lacks attrs"),
    ("    size_t dstLOD;\n    CUmemorytype dstMemoryType;\n    void *dstHost;\n    CUdeviceptr "
        "dstDevice;\n    CUarray dstArray;\n    void", "size_t dstLOD", "int dstLOD", "dstLOD differs"),
    ("typedef PFN_cuMemcpyPeer_v4000 ", "PFN", "CUresult (*PFN_cuInit_v2000)(unsigned int flags);\n"
        "typedef PFN", "PFN_cuInit_v2000 is declared twice"),
    ("CU_POINTER_ATTRIBUTE_MAPPED", "= 13", "= 31", "CU_POINTER_ATTRIBUTE_MAPPED is"),
]


def self_test(headers: dict, wrapper: str, rust: str):
    """Damages copies of wrapper.h and of the bindings, and sees that each damage is caught."""
    for where, old, new, named in DAMAGES:
        before, _, after = wrapper.partition(where)
        assert wrapper.count(where) == 1 and old in where + after, where
        problems, _ = compare_headers(headers, before + (where + after).replace(old, new, 1))
        caught = next((problem for problem in problems if named in problem), None)
        assert caught, f"not caught: {where}: {old} -> {new}: {problems}"
        print(f"caught  {caught.splitlines()[0]}")
    ours = read_wrapper(wrapper)
    changed = "const CU_EVENT_INTERPROCESS: CUevent_flags ="
    damages = {"type PFN_cuEventQuery_v2000 ": "type Gone ", f"{changed} 4": f"{changed} 5"}
    for old, new in damages.items():
        assert old in rust and compare_rust(ours, rust.replace(old, new)), old
    assert Comparison(ours, Declarations(), NEWEST).problems[-1].endswith("nothing was compared")
    print(f"the self-test passed: {len(DAMAGES) + 3} damages were caught")


def main():
    cache, *options = sys.argv[1:]
    if options not in ([], ["--self-test"]):
        sys.exit(__doc__)
    # wrapper-more.h is read after wrapper.h.
    texts = lambda *names: "".join((ROOT / name).read_text() for name in names)
    wrapper = texts("wrapper.h", "wrapper-more.h")
    rust = texts("src/sys/bindings.rs", "src/sys/more_bindings.rs")
    headers = read_headers(Path(cache), wrapper)
    problems, counts = compare_headers(headers, wrapper)
    ours = read_wrapper(wrapper)
    problems += compare_rust(ours, rust)
    all_things = Counter(kind for kind, _ in everything(ours))
    print(f"Compared, of what wrapper.h and wrapper-more.h declare, on each of {', '.join(TARGETS)}:")
    for version, count in counts.items():
        parts = (f"{count[kind]} of {of} {kind}s" for kind, of in all_things.items())
        print(f"{version[0]}.{version[1]}: {', '.join(parts)}")
    for problem in problems:
        print("DIFFERENT " + problem)
    if problems:
        sys.exit(f"tools/abi-proof: {len(problems)} differences")
    if options:
        self_test(headers, wrapper, rust)


main()
