//! The frames of a backtrace, and which of them are the program's own.

use core::fmt;

/// A line of a backtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The function; empty if it is not known.
    pub(crate) function: &'a str,
    /// The file with the source, and the line.
    pub(crate) source: Option<(&'a str, u32)>,
    /// The loaded file with the offset, if that is what is known: `addr2line` may find the line.
    pub(crate) module: Option<&'a str>,
    pub(crate) is_python: bool,
}

/// Whose code a frame is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The program's own.
    Program,
    /// A package that was installed.
    Package,
    /// What makes the calls of CUDA for others: PyTorch, CuPy, the CUDA runtime, an interpreter, the
    /// C library.
    Framework,
}

/// Packages of Python that make calls of CUDA for others.
const FRAMEWORKS: [&str; 12] = [
    "torch/",
    "torch.egg",
    "cupy/",
    "cupy_backends/",
    "cupyx/",
    "numba/",
    "numba_cuda/",
    "cuda/",
    "jax/",
    "jaxlib/",
    "triton/",
    "_distutils_hack/",
];

/// Where packages of Python are.
const PACKAGES: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// Files that come with the system, a language or a toolkit.
const SYSTEM: [&str; 9] = [
    "/lib/python3",
    "/usr/lib/",
    "/usr/lib64/",
    "/lib/x86_64",
    "/lib64/",
    "/usr/include/",
    "/rustc/",
    "/usr/local/cuda",
    ".cargo/registry/",
];

/// The begins of the names of libraries that are not the program's, wherever they are.
const LIBRARIES: [&str; 10] = [
    "libcuda",
    "libpython",
    "libc10",
    "libtorch",
    "libc.so",
    "libstdc++",
    "libffi",
    "_ctypes",
    "libpthread",
    "ld-linux",
];

/// The begins of the names of functions that no program has written itself.
const FUNCTIONS: [&str; 19] = [
    "cuda_order_check_engine::",
    "cuda_order_check_preload::",
    "cuda_soft_driver::",
    "__libc_start",
    "start_thread",
    "__clone",
    "libcudart",
    "cudart::",
    "__cuda",
    "__device_stub",
    "_Py",
    "ffi_",
    "__GI_",
    "std::",
    "core::",
    "<std::",
    "<core::",
    "__static_init",
    "<unknown>",
];

impl<'a> Frame<'a> {
    /// `upload, at game.py:7`, `upload, in /lib/x.so+0x1f`, `/lib/x.so+0x1f` or `upload`. `None` for a
    /// line that is no frame.
    pub(crate) fn new(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (is_python, line) = match line.strip_prefix("Python: ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        if line.is_empty() || line.starts_with("Region: ") {
            return None;
        }
        let frame = Self { function: line, source: None, module: None, is_python };
        if let Some((function, place)) = line.rsplit_once(", at ")
            && let Some(source) = source(place)
        {
            return Some(Self { function, source: Some(source), ..frame });
        }
        let module = |text: &'a str| text.contains("+0x").then_some(text);
        if let Some((function, place)) = line.rsplit_once(", in ") {
            return Some(Self { function, module: module(place), ..frame });
        }
        match module(line).filter(|path| path.contains('/')) {
            Some(path) => Some(Self { function: "", module: Some(path), ..frame }),
            None => Some(frame),
        }
    }

    pub(crate) fn owner(&self) -> Owner {
        let file = self.source.map(|(file, _)| file).or(self.module).unwrap_or_default();
        if let Some(package) = package(file) {
            let is_framework = FRAMEWORKS.iter().any(|name| package.starts_with(name));
            return if is_framework { Owner::Framework } else { Owner::Package };
        }
        let name = file.rsplit('/').next().unwrap_or(file);
        // A command that a package has installed only begins what is in the package.
        let is_command = self.is_python && file.contains("/bin/") && !name.contains('.');
        let of_system = SYSTEM.iter().any(|part| file.contains(part));
        if file.starts_with("<frozen ") || of_system || is_command {
            return Owner::Framework;
        }
        if self.is_python {
            return Owner::Program;
        }
        let is_library = LIBRARIES.iter().any(|begin| name.starts_with(begin));
        let function = self.function;
        let begins = |begin: &str| function.starts_with(begin);
        let is_api = |begin: &str| {
            let rest = function.strip_prefix(begin);
            rest.is_some_and(|rest| rest.starts_with(|sign: char| sign.is_ascii_uppercase()))
        };
        let is_start = ["_start", "clone", "clone3"].contains(&function);
        let of_runtime = self.source.is_none() && (is_api("cuda") || is_api("cu") || is_api("Py"));
        match is_library || is_start || of_runtime || FUNCTIONS.iter().any(|it| begins(it)) {
            true => Owner::Framework,
            false => Owner::Program,
        }
    }
}

/// `game.py:7` or `./game.cpp:7:12`.
fn source(text: &str) -> Option<(&str, u32)> {
    let (file, last) = text.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    match file.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) => Some((file, line)),
        _ => Some((file, last)),
    }
}

/// Whether a stack has a frame of one of these packages. Other folders may have their names, as that of
/// an environment.
pub(crate) fn is_of(stack: &str, packages: &[&str]) -> bool {
    let begins = |rest: &str| packages.iter().any(|package| rest.starts_with(package));
    PACKAGES.iter().any(|folder| stack.split(folder).skip(1).any(begins))
}

/// The path within the folder of packages.
fn package(file: &str) -> Option<&str> {
    PACKAGES.iter().find_map(|folder| file.rsplit_once(folder)).map(|(_, path)| path)
}

/// `serve.py:8 (fill)`.
impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function.split('(').next().unwrap_or_default();
        match (self.source, self.module) {
            (Some((file, line)), _) => write!(f, "{}:{line} ({function})", short(file)),
            (None, Some(module)) if function.is_empty() => write!(f, "{}", short(module)),
            (None, Some(module)) => write!(f, "{function} in {}", short(module)),
            (None, None) => f.write_str(function),
        }
    }
}

/// A path as a reader needs it: within its package or the current folder, otherwise its end.
pub(crate) fn short(file: &str) -> String {
    /// A longer one loses its first folders.
    const LONGEST: usize = 48;
    if let Some(package) = package(file) {
        return package.to_owned();
    }
    let folder = std::env::current_dir().ok();
    let inside = folder.as_ref().and_then(|folder| {
        file.strip_prefix(folder.to_str()?)?.strip_prefix('/').filter(|rest| !rest.is_empty())
    });
    let file = inside.unwrap_or(file);
    let file = file.strip_prefix("./").unwrap_or(file);
    if file.len() <= LONGEST {
        return file.to_owned();
    }
    let ends = file.char_indices().filter(|(at, sign)| *sign == '/' && file.len() - at < LONGEST);
    let end = ends.map(|(at, _)| at).next().or_else(|| file.rfind('/'));
    format!("...{}", end.and_then(|at| file.get(at..)).unwrap_or(file))
}

/// The frames of a backtrace's text, from the inside. The lines of Python come first.
pub(crate) fn frames(text: &str) -> impl Iterator<Item = Frame<'_>> {
    text.lines().filter_map(Frame::new)
}

/// The frames that the place of a call consists of, one a line: those of the program and of packages.
/// `None` if its first one has no line of the source: then the place is all that is known.
pub(crate) fn outline(text: &str) -> Option<String> {
    let all: Vec<_> = frames(text).collect();
    let is_python = all.iter().any(|frame| frame.is_python);
    let mut place = String::new();
    for frame in all.iter().filter(|frame| frame.is_python == is_python) {
        if frame.owner() == Owner::Framework {
            continue;
        }
        let (file, line) = frame.source.or_else(|| (!place.is_empty()).then_some(("", 0)))?;
        let line = format!("{} {file}:{line}\n", frame.function);
        // However deep a function calls itself.
        if !place.ends_with(&line) {
            place += &line;
        }
    }
    (!place.is_empty()).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::{Frame, Owner, outline, short};

    #[test]
    fn frames_are_parsed() {
        let plain = Frame { function: "f(int)", source: None, module: None, is_python: false };
        let at = |file, line| Some((file, line));
        for (text, expected) in [
            (
                "Python: fill, at a b.py:7",
                Frame { function: "fill", source: at("a b.py", 7), is_python: true, ..plain },
            ),
            ("f(int), at ./a.cpp:10:73", Frame { source: at("./a.cpp", 10), ..plain }),
            ("f(int), in /l/x.so+0x1f", Frame { module: Some("/l/x.so+0x1f"), ..plain }),
            ("/l/x.so+0x1f", Frame { function: "", module: Some("/l/x.so+0x1f"), ..plain }),
            ("f(int)", plain),
            ("f, at odd", Frame { function: "f, at odd", ..plain }),
        ] {
            assert_eq!(Frame::new(text), Some(expected), "{text}");
        }
        assert_eq!([Frame::new(""), Frame::new("Region: step")], [None, None]);
    }

    #[test]
    fn each_frame_has_an_owner() {
        use Owner::{Framework, Package, Program};
        let packages = "/opt/venv/lib/python3.11/site-packages";
        for (text, expected) in [
            ("Python: fill, at /home/me/serve.py:8", Program),
            ("Python: <module>, at <string>:3", Program),
            (&format!("Python: prefetch, at {packages}/transformers/cache_utils.py:84"), Package),
            (&format!("Python: wait, at {packages}/torch/cuda/streams.py:5"), Framework),
            (&format!("Python: copy, at {packages}/cupy/_core/core.py:5"), Framework),
            ("Python: run, at /usr/lib/python3.11/threading.py:9", Framework),
            ("Python: _call, at <frozen importlib._bootstrap>:9", Framework),
            ("Python: <module>, at /opt/venv/bin/vllm:8", Framework),
            ("Python: <module>, at /opt/venv/bin/own.py:8", Program),
            ("upload(float*), at ./a.cpp:10:3", Program),
            ("main", Program),
            ("cudaMemcpyAsync, at ./wrap.cpp:3:1", Program),
            ("cudaMemcpyAsync", Framework),
            ("cuMemcpy", Framework),
            ("customer", Program),
            ("libcudart_static_8f1", Framework),
            ("__libc_start_main", Framework),
            ("_start", Framework),
            ("clone3", Framework),
            ("<unknown>", Framework),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6+0x2a1", Framework),
            ("/home/me/libcudart.so.12+0x2a1", Framework),
            ("/home/me/game+0x2a1", Program),
            ("f, in /home/me/libgame.so+0x2a1", Program),
            ("f, in /home/me/libtorch_cuda.so+0x2a1", Framework),
            ("core::ops::call, at /rustc/1/core/src/ops.rs:3:1", Framework),
            ("x::f, at /home/me/.cargo/registry/src/x/lib.rs:3:1", Framework),
        ] {
            assert_eq!(Frame::new(text).map(|it| it.owner()), Some(expected), "{text}");
        }
    }

    /// Calls from one line of the program are one place, whatever the frameworks do in between.
    #[test]
    fn the_outline_is_of_the_program_and_its_packages() {
        let packages = "/opt/lib/python3.11/site-packages";
        let text = |inner: &str| {
            format!(
                "Python: {inner}, at {packages}/torch/x.py:1\nPython: step, at {packages}/trl/t.py:2\n\
                 Python: main, at a.py:3\nat::native::{inner}\n"
            )
        };
        let one = outline(&text("copy"));
        assert_eq!(one.as_deref(), Some(&*format!("step {packages}/trl/t.py:2\nmain a.py:3\n")));
        assert_eq!(one, outline(&text("fill")));
        let deep = ["Python: f, at a.py:3\n"; 3];
        assert_eq!(outline(&deep.concat()), outline(deep[0]));
        assert_eq!(
            outline("cudaMemcpyAsync\nf(), at a.cpp:3:1\nmain\n_start").as_deref(),
            Some("f() a.cpp:3\nmain :0\n")
        );
        // Without a line one function may have many calls.
        assert_eq!([outline("cudaMemcpyAsync\nmain\n_start"), outline("")], [None, None]);
    }

    #[test]
    fn paths_are_short() {
        let here = std::env::current_dir().expect("it is there");
        let own = format!("{}/src/a.rs", here.display());
        for (file, expected) in [
            (&*own, "src/a.rs"),
            ("./b.cpp", "b.cpp"),
            ("/x/site-packages/trl/t.py", "trl/t.py"),
            ("/a/b.py", "/a/b.py"),
            (
                "/0123456789/0123456789/0123456789/0123456789/folder/name.py",
                ".../0123456789/0123456789/folder/name.py",
            ),
        ] {
            assert_eq!(short(file), expected);
        }
        assert_eq!(short(&"x".repeat(90)).len(), 93);
    }
}
