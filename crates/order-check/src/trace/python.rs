//! The stack of the calling thread in Python.
//!
//! A call through `ctypes` or `cffi` holds no lock of the interpreter, and to wait for one here
//! could last for ever: its owner may wait for this driver. So only a function that needs no
//! lock can be asked: the one that prints the stack after a crash.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::cell::RefCell;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
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
thread_local!(static WRITTEN: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) });

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
    let take = |written: &RefCell<Option<Vec<u8>>>| {
        written.try_borrow_mut().is_ok_and(|mut written| {
            let Some(text) = written.as_mut() else { return false };
            // SAFETY: Python prints the stack that it was asked for, and as the caller says.
            text.extend_from_slice(unsafe { core::slice::from_raw_parts(from.cast(), bytes) });
            true
        })
    };
    file == NOWHERE && WRITTEN.try_with(take).unwrap_or(false)
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
        let set = |to: Option<Vec<u8>>| WRITTEN.try_with(|written| written.replace(to));
        set(Some(Vec::new())).ok()?;
        // No file has the number, so at worst nothing is written.
        let printed = print(NOWHERE);
        let text = set(None).ok()??;
        printed?;
        if !text.is_empty() {
            return Some(String::from_utf8_lossy(&text).into_owned());
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

    use super::{NOWHERE, WRITTEN, takes_write};

    /// What the program writes is written, also while Python is asked for a stack, and what it
    /// writes to a file that does not exist fails at any other time.
    #[test]
    fn only_what_python_is_asked_for_is_taken() {
        let takes = |file: c_int, text: &str| {
            // SAFETY: a text with its length.
            unsafe { takes_write(file, text.as_ptr().cast(), text.len()) }
        };
        assert!(!takes(NOWHERE, "before"));
        WRITTEN.set(Some(Vec::new()));
        assert_eq!(
            [NOWHERE, 1, -1, NOWHERE].map(|file| takes(file, "ab")),
            [true, false, false, true]
        );
        assert_eq!(WRITTEN.take().as_deref(), Some(&b"abab"[..]));
        assert!(!takes(NOWHERE, "after"));
        WRITTEN.with_borrow_mut(|_| assert!(!takes(NOWHERE, "meanwhile")));
    }
}
