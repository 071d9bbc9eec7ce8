//! The stack of the calling thread in Python.
//!
//! A call through `ctypes` or `cffi` holds no lock of the interpreter, and to wait for one here
//! could last for ever: its owner may wait for this driver. So only a function that needs no
//! lock can be asked: the one that prints the stack after a crash.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::string::FromUtf8Error;
use std::sync::OnceLock;

use super::layout::{Layout, Line};
use crate::files::written_text;

type ThreadState = unsafe extern "C" fn() -> *mut c_void;
type Dump = unsafe extern "C" fn(c_int, *mut c_void);

/// How the interpreter gives the stack of a thread.
#[derive(Clone, Copy)]
pub(super) struct Python {
    state: ThreadState,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    Dump(Dump),
    /// CPython 3.13 and 3.14 have no such function for others, but describe their frames.
    Frames(Line, Layout),
}

static PYTHON: OnceLock<Python> = OnceLock::new();

/// Python writes a stack in many small parts, some versions each letter by itself. Where the
/// checker is in front of `write`, that takes the parts written to this number.
const NOWHERE: c_int = -7301;
static WRITES_ARE_HOOKED: AtomicBool = AtomicBool::new(false);
thread_local! {
    /// Where the parts go while this thread is asked for its stack: they are many, so nothing is
    /// looked at but this.
    static WRITTEN: Cell<*mut Vec<u8>> = const { Cell::new(core::ptr::null_mut()) };
}

/// The bytes that most stacks have room in.
const ROOM: usize = 8192;

/// From now on [`takes_write`] sees all that is written.
pub fn hook_writes() {
    WRITES_ARE_HOOKED.store(true, Ordering::Relaxed);
}

/// Whether this thread is asked for its stack, and this is a part of it.
///
/// # Safety
///
/// For that number, so many bytes.
#[must_use]
pub unsafe fn takes_write(file: c_int, from: *const c_void, bytes: usize) -> bool {
    if file != NOWHERE {
        return false;
    }
    let place = WRITTEN.try_with(Cell::get).unwrap_or(core::ptr::null_mut());
    // SAFETY: NULL, or the text that `written` has on this thread's stack, and that nothing else
    // uses until Python returns.
    let Some(text) = (unsafe { place.as_mut() }) else { return false };
    // SAFETY: Python prints the stack that it was asked for, and as the caller says.
    text.extend_from_slice(unsafe { core::slice::from_raw_parts(from.cast(), bytes) });
    true
}

/// What `print` writes to that number.
fn written(print: impl FnOnce()) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(ROOM);
    let set = |place| WRITTEN.try_with(|written| written.set(place)).is_ok();
    if !set(&raw mut text) {
        return None;
    }
    print();
    set(core::ptr::null_mut());
    Some(text)
}

/// Not by `dlsym`, which waits for a thread in a library's constructor, whose call may wait for
/// a lock of the caller.
#[cfg(all(target_pointer_width = "64", target_endian = "little"))]
fn symbol(name: &CStr) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(crate::object::named(name).unwrap_or_default())
}

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
fn symbol(name: &CStr) -> *mut c_void {
    // SAFETY: a look-up by name.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

fn find() -> Option<Python> {
    // It may be loaded later, but a look at all libraries takes long.
    static LOOKED: AtomicU32 = AtomicU32::new(0);
    if !LOOKED.fetch_add(1, Ordering::Relaxed).wrapping_add(1).is_power_of_two() {
        return None;
    }
    let state = symbol(c"PyGILState_GetThisThreadState");
    if state.is_null() {
        return None;
    }
    // SAFETY: CPython declares the function so.
    let state = unsafe { core::mem::transmute::<*mut c_void, ThreadState>(state) };
    let dump = [c"_Py_DumpTraceback", c"PyUnstable_DumpTraceback"];
    if let Some(dump) = dump.into_iter().map(symbol).find(|it| !it.is_null()) {
        // SAFETY: CPython declares the two functions so, in all versions that have them. (What
        // the second one returns is left where it is.)
        let how = How::Dump(unsafe { core::mem::transmute::<*mut c_void, Dump>(dump) });
        return Some(Python { state, how });
    }
    let [line, runtime] = [c"PyUnstable_InterpreterFrame_GetLine", c"_PyRuntime"].map(symbol);
    // 3.11 and older have no function of the first name, and another begin of the second.
    if line.is_null() || runtime.is_null() {
        return None;
    }
    // SAFETY: as above; the interpreter's own variable.
    unsafe {
        let layout = Layout::read(runtime.cast_const().cast())?;
        let line = core::mem::transmute::<*mut c_void, Line>(line);
        Some(Python { state, how: How::Frames(line, layout) })
    }
}

pub(super) fn functions() -> Option<Python> {
    match PYTHON.get() {
        Some(python) => Some(*python),
        // It may be loaded later.
        None => {
            let found = find()?;
            Some(*PYTHON.get_or_init(|| found))
        }
    }
}

pub(super) fn ready() {
    let _ = WRITTEN.try_with(|_| ());
}

/// Prints this thread's stack to a file, if it is a thread of Python's.
pub(super) fn print(descriptor: c_int) -> Option<()> {
    let Python { state, how: How::Dump(dump) } = *PYTHON.get()? else { return None };
    // SAFETY: it reads this thread's own variable, and needs no lock.
    let state = unsafe { state() };
    if state.is_null() {
        return None;
    }
    // SAFETY: the state is that of this thread, which is in a call of the driver, or in the
    // handler of a signal: its frames stay as they are until that returns, and the function
    // reads nothing else. It is made for handlers of signals, so it takes no lock.
    unsafe { dump(descriptor, state) };
    Some(())
}

/// What Python prints of this thread's stack, if it is a thread of Python's.
pub(super) fn stack() -> Option<String> {
    if let Python { state, how: How::Frames(line, layout) } = functions()? {
        // SAFETY: it reads this thread's own variable, and needs no lock.
        let state = unsafe { state() };
        if state.is_null() {
            return None;
        }
        // SAFETY: this thread is in a call of the driver: its frames, and what they hold, stay
        // as they are until that returns. The function that gives the line reads only these.
        return Some(unsafe { layout.stack(state.expose_provenance(), line) });
    }
    if WRITES_ARE_HOOKED.load(Ordering::Relaxed) {
        // No file has the number, so at worst nothing is written.
        let mut printed = None;
        let text = written(|| printed = print(NOWHERE))?;
        printed?;
        if !text.is_empty() {
            let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into();
            let mut text = String::from_utf8(text).unwrap_or_else(lossy);
            text.shrink_to_fit();
            return Some(text);
        }
    }
    // SAFETY: a name, and flags of the call.
    let descriptor = unsafe { libc::memfd_create(c"stack".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it was created here, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(descriptor) };
    print(file.as_raw_fd())?;
    written_text(file)
}

#[cfg(test)]
mod tests {
    use core::ffi::c_int;

    use super::{NOWHERE, takes_write, written};

    /// What the program writes is written, also while Python is asked for a stack, and what it
    /// writes to a file that does not exist fails at any other time.
    #[test]
    fn only_what_python_is_asked_for_is_taken() {
        let takes = |file: c_int, text: &str| {
            // SAFETY: a text with its length.
            unsafe { takes_write(file, text.as_ptr().cast(), text.len()) }
        };
        assert!(!takes(NOWHERE, "before"));
        let text = written(|| {
            assert_eq!(
                [NOWHERE, 1, -1, NOWHERE].map(|file| takes(file, "ab")),
                [true, false, false, true]
            );
        });
        assert_eq!(text.as_deref(), Some(&b"abab"[..]));
        assert!(!takes(NOWHERE, "after"));
        assert_eq!(written(|| ()).as_deref(), Some(&b""[..]));
    }
}
