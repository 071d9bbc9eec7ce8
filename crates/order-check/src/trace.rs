//! How a program came to a call.

use core::fmt;
use std::backtrace::Backtrace;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// How many of the program's own frames are shown.
const FRAMES: usize = 24;

/// A frame that has no symbol.
const UNKNOWN: &str = "<unknown>";

/// The begin of the frames without a symbol that are the checker's own.
static LEFT_OUT: OnceLock<String> = OnceLock::new();

/// The file at this path has nothing of the program: its frames are left out.
pub fn leave_out(path: std::path::PathBuf) {
    let _ = LEFT_OUT.set(format!("{}+0x", path.display()));
}

/// The name of a function as in its source.
type Demangle = fn(&str) -> Option<String>;

static DEMANGLE: OnceLock<Demangle> = OnceLock::new();

/// Says what the names of C++ are in the source.
pub fn demangle_with(f: Demangle) {
    let _ = DEMANGLE.set(f);
}

/// A frame with the name of its function as in the source.
fn readable(frame: &str) -> Option<String> {
    let name = frame.split(", ").next().filter(|name| name.starts_with("_Z"))?;
    let place = frame.get(name.len()..)?;
    Some(DEMANGLE.get()?(name)? + place)
}

/// A backtrace without this crate's own frames and without what every thread begins with. It is
/// made text when it is printed.
#[derive(Debug)]
pub struct Trace {
    native: Native,
    /// A number for the native frames, if there is one.
    path: Option<u64>,
    /// What the interpreter of Python has printed of this thread.
    python: String,
}

#[derive(Debug)]
enum Native {
    Backtrace(Arc<Backtrace>),
    /// The frames, from the inside. They were taken where nothing may be allocated.
    Addresses(Vec<usize>),
}

impl Trace {
    /// The stack of the calling thread, with that of Python if it runs Python.
    #[must_use]
    pub fn here() -> Self {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        let (native, path) = crate::stack::here();
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        let path = Some(path);
        #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
        let (native, path) = (Arc::new(Backtrace::force_capture()), None);
        let native = Native::Backtrace(native);
        Self { native, path, python: python::stack().unwrap_or_default() }
    }

    /// The stack with these frames, and what Python has printed of it.
    #[must_use]
    pub fn of_frames(addresses: Vec<usize>, python: String) -> Self {
        let mut hasher = DefaultHasher::new();
        addresses.hash(&mut hasher);
        let path = Some(hasher.finish());
        Self { native: Native::Addresses(addresses), path, python }
    }
}

impl crate::op::Backtrace for Trace {
    fn path(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        (self.path?, &self.python).hash(&mut hasher);
        Some(hasher.finish())
    }

    /// The names of native frames take long to find out. Python's lines say more.
    fn outline(&self) -> String {
        let python: String =
            python_frames(&self.python).iter().map(|frame| format!("Python: {frame}\n")).collect();
        if crate::frames::outline(&python).is_some() { python } else { self.to_string() }
    }
}

/// Finds Python's function for [`print_python`]. It may be loaded later than this library.
pub fn look_for_python() {
    python::functions();
}

/// Gets the calling thread's variables ready. To note what a thread does at its end takes the
/// loader's lock, and a library's constructor that makes a call has it: so the caller may have no
/// lock for which a call waits.
pub fn thread_is_ready() {
    python::ready();
    let _ = std::thread::current();
}

/// The first address of the loaded file that an address is in.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[must_use]
pub fn file_of(address: usize) -> Option<usize> {
    crate::object::at(address, false).map(|object| object.base)
}

/// Has Python print the calling thread's stack to a file, if the thread is one of Python's. The
/// handler of a signal may call it. Returns whether anything was printed.
#[must_use]
pub fn print_python(descriptor: core::ffi::c_int) -> bool {
    python::print(descriptor).is_some()
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let python = python_frames(&self.python);
        for frame in &python {
            writeln!(f, "Python: {frame}")?;
        }
        let frames = match &self.native {
            Native::Backtrace(native) => {
                let text = native.to_string();
                // Only the long form has the addresses.
                let addresses = match text.contains(UNKNOWN) {
                    true => addresses(&format!("{native:#}")),
                    false => Vec::new(),
                };
                frames(&text, &addresses, module)
            }
            Native::Addresses(all) => {
                let frame = |at: &usize| symbol(*at).or_else(|| module(*at));
                trimmed(all.iter().map(|at| frame(at).unwrap_or_else(|| UNKNOWN.into())).collect())
            }
        };
        // The lines of Python tell more than those of its interpreter.
        let end = frames.iter().position(|frame| !python.is_empty() && is_interpreter(frame));
        for frame in frames.iter().take(end.unwrap_or(frames.len())) {
            let readable = readable(frame);
            writeln!(f, "{}", readable.as_deref().unwrap_or(frame))?;
        }
        Ok(())
    }
}

/// The addresses of the frames of a backtrace that was printed in the long form.
fn addresses(text: &str) -> Vec<usize> {
    let address = |line: &str| {
        let (number, frame) = line.trim().split_once(": ")?;
        number.parse::<usize>().ok()?;
        let (address, _) = frame.trim().strip_prefix("0x")?.split_once(" - ")?;
        usize::from_str_radix(address, 16).ok().filter(|address| *address != 0)
    };
    text.lines().filter_map(address).collect()
}

/// The function that exports have at an address, and its file.
fn symbol(address: usize) -> Option<String> {
    let (symbol, place) = found(address)?;
    Some(format!("{}, in {place}", symbol?))
}

/// The file with the code at an address, and the offset in it.
fn module(address: usize) -> Option<String> {
    found(address).map(|(_, place)| place)
}

/// The exported function at an address, and the file with the offset.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
fn found(address: usize) -> Option<(Option<String>, String)> {
    let object = crate::object::at(address, true)?;
    let path = match object.path.is_empty() {
        true => std::env::current_exe().ok()?.to_string_lossy().into_owned(),
        false => object.path,
    };
    Some((object.symbol, format!("{path}+{:#x}", address.wrapping_sub(object.base))))
}

#[cfg(all(
    unix,
    not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))
))]
fn found(address: usize) -> Option<(Option<String>, String)> {
    let mut found = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let code = core::ptr::without_provenance(address);
    // SAFETY: the address is only compared with those of the loaded files, and there is room for
    // the answer: zeroes are a value of that type, and a success has filled it.
    let found =
        unsafe { (libc::dladdr(code, found.as_mut_ptr()) != 0).then(|| found.assume_init()) }?;
    // SAFETY: NULL, or the loader's own strings, which last as long as the file is loaded. A file
    // that has made calls of the driver and was unloaded is not found.
    let [path, symbol] = [found.dli_fname, found.dli_sname].map(|name| unsafe {
        (!name.is_null()).then(|| core::ffi::CStr::from_ptr(name).to_string_lossy().into_owned())
    });
    Some((symbol, format!("{}+{:#x}", path?, address.wrapping_sub(found.dli_fbase.addr()))))
}

#[cfg(not(unix))]
fn found(_address: usize) -> Option<(Option<String>, String)> {
    None
}

/// The frames of a printed backtrace: a line of a number and a name each, and where it is in a line
/// of its own if that is known. `addresses` are those of its last frames, or of more.
fn frames(
    text: &str,
    addresses: &[usize],
    module: impl Fn(usize) -> Option<String>,
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        match (line.strip_prefix("at "), line.split_once(": ")) {
            (Some(place), _) => {
                if let Some(frame) = all.last_mut() {
                    frame.push_str(", at ");
                    frame.push_str(place);
                }
            }
            (None, Some((number, name))) if number.parse::<usize>().is_ok() => {
                all.push(name.to_owned());
            }
            _ => {}
        }
    }
    // The long form begins with more frames of the backtrace's own.
    let more = addresses.len().saturating_sub(all.len());
    for (frame, address) in all.iter_mut().zip(addresses.get(more..).unwrap_or_default()) {
        if let Some(place) = Some(&frame).filter(|it| **it == UNKNOWN).and(module(*address)) {
            *frame = place;
        }
    }
    trimmed(all)
}

/// The frames of the program itself, without those of the checker.
fn trimmed(mut all: Vec<String>) -> Vec<String> {
    let library = LEFT_OUT.get();
    let own = |frame: &String| {
        let path = frame.trim_start_matches('<');
        ["cuda_soft_driver", "cuda_order_check", "std::", "core::", "alloc::", "__rust_try"]
            .iter()
            .any(|own| path.starts_with(own))
            // Some builds leave out the path of a generic function.
            || ["do_call<", "catch_unwind<", "{closure"].iter().any(|name| path.starts_with(name))
                && (path.contains("cuda_order_check") || path.contains("cuda_soft_driver"))
            || library.is_some_and(|library| path.starts_with(&**library))
    };
    let end = all.iter().position(|frame| frame.contains("__rust_begin_short_backtrace"));
    all.truncate(end.unwrap_or(all.len()));
    let first = all.iter().position(|frame| !own(frame)).unwrap_or(0);
    let mut frames = all.split_off(first);
    frames.truncate(FRAMES);
    frames
}

/// Whether the frame is of Python's interpreter, or of the library by which it calls C.
fn is_interpreter(frame: &str) -> bool {
    frame.starts_with("_PyEval_") || frame.starts_with("ffi_call") || frame.contains("libffi")
}

/// The frames of a stack that Python has printed: `  File "game.py", line 7 in upload`.
fn python_frames(text: &str) -> Vec<String> {
    let frame = |line: &str| {
        let (file, rest) = line.trim().strip_prefix("File \"")?.rsplit_once("\", line ")?;
        let (number, name) = rest.split_once(" in ")?;
        Some(format!("{name}, at {file}:{number}"))
    };
    text.lines().filter_map(frame).take(FRAMES).collect()
}

#[cfg(target_os = "linux")]
pub use python::{hook_writes, takes_write};

#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod python;

#[cfg(not(target_os = "linux"))]
mod python {
    pub(super) fn functions() {}

    pub(super) fn ready() {}

    pub(super) fn print(_descriptor: core::ffi::c_int) -> Option<()> {
        None
    }

    pub(super) fn stack() -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{addresses, demangle_with, frames, is_interpreter, python_frames, readable};

    #[test]
    fn names_of_cpp_are_as_in_the_source() {
        demangle_with(|name| (name == "_Z1fv").then(|| "f()".into()));
        let shown = ["_Z1fv", "_Z1fv, at ./a.cpp:10:73", "_Z1fv, in /x.so+0x1"].map(readable);
        let expected = ["f()", "f(), at ./a.cpp:10:73", "f(), in /x.so+0x1"];
        assert_eq!(shown, expected.map(|text| Some(text.into())));
        assert_eq!(["main", "_Z1gv", "f, at ./_Z1fv.c"].map(readable), [const { None }; 3]);
    }

    #[test]
    fn the_programs_frames_stay_in_the_trace() {
        let frames = |text| frames(text, &[], |_| None);
        let text = "   0: cuda_soft_driver::model::order::Order::begin
             at ./src/model/order.rs:10:5
   1: <cuda_soft_driver::Frame as Other>::ready
   2: cuda_soft_driver::front::functions::copy
   3: game::upload
             at ./src/upload.rs:7:9
   4: game::main
   5: std::sys::backtrace::__rust_begin_short_backtrace
   6: main
";
        assert_eq!(frames(text), ["game::upload, at ./src/upload.rs:7:9", "game::main"]);
        assert_eq!(frames("disabled backtrace"), [""; 0]);
        // A program in C has no such begin, and one of the driver's own is shown as it is.
        assert_eq!(frames("0: copy\n1: main\n2: __libc_start_main").len(), 3);
        assert_eq!(frames("0: cuda_soft_driver::a\n1: cuda_soft_driver::b").len(), 2);
        let own = "0: cuda_order_check_engine::a\n1: do_call<cuda_order_check_preload::b, ()>\n\
            2: __rust_try\n3: {closure#0}<cuda_order_check_preload::c>\n4: {closure#0}<game::d>";
        assert_eq!(frames(own), ["{closure#0}<game::d>"]);
    }

    #[test]
    fn a_frame_without_a_symbol_has_its_module() {
        let long = "   0:     0x7f00000000a0 - std::backtrace::capture
                               at /rustc/trace.rs:1
                               - std::backtrace::inlined
   1:     0x7f00000000b0 - cuda_soft_driver::a
   2:     0x7f00000000c0 - <unknown>
   3:                0x0 - <unknown>
   4:     0x7f00000000d0 - main";
        let addresses = addresses(long);
        assert_eq!(addresses, [0xa0, 0xb0, 0xc0, 0xd0].map(|at| 0x7f00_0000_0000 + at));
        let module = |address: usize| Some(format!("lib+{:#x}", address & 0xff));
        let short = "0: cuda_soft_driver::a\n1: <unknown>\n2: main";
        assert_eq!(frames(short, &addresses, module), ["lib+0xc0", "main"]);
        // Code that is in no file stays as it is.
        assert_eq!(frames(short, &addresses, |_| None), ["<unknown>", "main"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_stack_of_addresses_has_names_and_modules() {
        use super::Trace;

        let code = libc::getpid as *const () as usize;
        let python = "File \"game.py\", line 7 in upload\n".to_owned();
        let text = Trace::of_frames(vec![code + 1, 16], python).to_string();
        let lines: Vec<&str> = text.lines().collect();
        let ["Python: upload, at game.py:7", name, "<unknown>"] = lines[..] else {
            panic!("{text}");
        };
        assert!(name.contains("getpid, in ") && name.contains("+0x"), "{name}");
    }

    /// What is behind a call of Python's is its interpreter, and what only has such a name in the
    /// midst is not.
    #[test]
    fn frames_of_the_interpreter() {
        let own = ["_PyEval_EvalFrameDefault", "ffi_call_unix64", "<unknown>, in /libffi.so.8+0x7"];
        let others = ["PyObject_Call", "my_ffi_call", "run_PyEval_", "upload, in /game.so+0x1"];
        assert_eq!(own.map(is_interpreter), [true; 3]);
        assert_eq!(others.map(is_interpreter), [false; 4]);
    }

    #[test]
    fn frames_of_python() {
        let text = "Stack (most recent call first):
  File \"/a/ga\", line 1 in me.py\", line 7 in upload
  File \"game.py\", line 12 in <module>
";
        let frames = python_frames(text);
        assert_eq!(frames[1], "<module>, at game.py:12");
        assert!(frames[0].starts_with("upload, at /a/ga"), "{frames:?}");
    }
}
