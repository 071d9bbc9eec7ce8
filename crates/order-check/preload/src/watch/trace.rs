//! A file with a line for each hooked call.

use core::ffi::c_uint;
use std::cell::{Cell as Local, RefCell};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use cuda_order_check::pipe::without_signal;

use super::objects::failed;
use super::{Bytes, COUNTED, Inside, LaunchConfig, NOT_READY, OK, guard, read, thread};

type Code = c_uint;

thread_local! {
    /// The number of the call under way, for the trace.
    pub(super) static NUMBER: Local<u64> = const { Local::new(0) };
    /// What a hook adds to its line.
    static NOTE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A line for each hooked call. Reports give the same numbers of calls.
pub(super) static TRACE: OnceLock<Trace> = OnceLock::new();

pub(super) struct Trace {
    pub(super) file: File,
    pub(super) begin: Instant,
    /// How often each function that is not hooked had been called at the last line.
    pub(super) counts: Mutex<HashMap<&'static str, u64>>,
}

impl Trace {
    fn write(&self, line: &str) {
        let mut text = String::new();
        if let Some(of) = COUNTED.get() {
            let mut before = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            of(&mut |name, count| {
                let last = before.entry(name).or_default();
                if count != *last {
                    let _ = write!(text, " {name} {}", count - *last);
                    *last = count;
                }
            });
        }
        if !text.is_empty() {
            text = format!("not hooked:{text}\n");
        }
        let micros = self.begin.elapsed().as_micros();
        let text = format!("{text}{micros} us {line}");
        let _ = without_signal(|| (&self.file).write_all(text.as_bytes()));
    }
}

/// A hook adds this to the line of its call.
pub(super) fn note(text: impl FnOnce() -> String) {
    if TRACE.get().is_some() {
        let _ = NOTE.try_with(|note| note.borrow_mut().push_str(&text()));
    }
}

/// An argument in the trace.
pub(crate) trait Argument: Copy {
    /// Its value; `done`: the call has written what it points to.
    fn show(self, done: bool) -> String;

    /// The object that it is, if it may be one.
    fn handle(self) -> Option<usize> {
        None
    }
}

macro_rules! arguments {
    ($($ty:ty)*) => {$(
        impl Argument for $ty {
            fn show(self, _: bool) -> String {
                format!("{self:#x}")
            }
        }
    )*};
}

arguments! { u8 u16 u32 u64 i32 }

impl Argument for usize {
    fn show(self, _: bool) -> String {
        format!("{self:#x}")
    }

    fn handle(self) -> Option<usize> {
        Some(self)
    }
}

impl<T: 'static> Argument for *const T {
    fn show(self, _: bool) -> String {
        format!("{:#x}", self.addr())
    }

    fn handle(self) -> Option<usize> {
        let config = core::any::TypeId::of::<T>() == core::any::TypeId::of::<LaunchConfig>();
        // SAFETY: NULL, or what the program has given to a launch.
        config.then(|| unsafe { read(self.cast::<LaunchConfig>()) }.stream())
    }
}

impl<T: 'static> Argument for *mut T {
    fn show(self, done: bool) -> String {
        let ty = core::any::TypeId::of::<T>();
        let word = [core::any::TypeId::of::<usize>(), core::any::TypeId::of::<u64>()].contains(&ty);
        if word && done && !self.is_null() {
            // SAFETY: the place for a handle or an address, which the call has written.
            return format!("->{:#x}", unsafe { self.cast::<u64>().read_unaligned() });
        }
        format!("{:#x}", self.addr())
    }
}

impl Argument for Bytes {
    fn show(self, _: bool) -> String {
        "...".into()
    }
}

/// Takes the name of an argument, its object, and its text.
pub(crate) type Show<'a> = dyn FnMut(&str, Option<usize>, &dyn Fn() -> String) + 'a;

/// A hook runs, and its line goes to the trace, if there is one. `made` is the code of the real
/// call once that was made. Where the hook does not get so far, `forward` makes it.
pub(crate) fn run(
    name: &'static str,
    made: &Local<Option<Code>>,
    hook: impl FnOnce() -> Code,
    forward: impl FnOnce() -> Code,
    arguments: impl Fn(bool, &mut Show<'_>),
) -> Code {
    let _inside = Inside::new();
    let looked = || {
        let code = hook();
        if code != OK && code != NOT_READY {
            arguments(false, &mut |argument, handle, _| {
                if let ("stream" | "event" | "start" | "end" | "config", Some(handle)) =
                    (argument, handle)
                {
                    failed(name, handle);
                }
            });
        }
        code
    };
    let traced = || {
        let Some(trace) = TRACE.get() else { return looked() };
        let clear = || {
            let _ = NUMBER.try_with(|number| number.set(0));
            NOTE.try_with(|note| std::mem::take(&mut *note.borrow_mut())).unwrap_or_default()
        };
        clear();
        let code = looked();
        let number = NUMBER.try_with(Local::get).unwrap_or_default();
        let mut line = format!("#{number} thread {} {name}", thread());
        arguments(code == OK, &mut |argument, _, value| {
            let _ = write!(line, " {argument}={}", value());
        });
        let _ = writeln!(line, " = {code}{}", clear());
        trace.write(&line);
        code
    };
    let seen = if guard::off() { None } else { guard::caught(traced) };
    seen.or_else(|| made.get()).unwrap_or_else(forward)
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_does_not_end_the_process() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        // SAFETY: no handler, but what a program begins with that is not one in Rust.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (file, begin) = (File::from(OwnedFd::from(writer)), Instant::now());
        let trace = Trace { file, begin, counts: Mutex::default() };
        trace.write("a line\n");
    }
}
