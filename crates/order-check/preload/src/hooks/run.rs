//! A hooked call runs, and its line goes to the trace.

use core::cell::Cell as Local;
use core::fmt::Write as _;

use cuda_events::sys::more::{CUlaunchConfig, CUmemLocation};

use crate::call::{Bytes, Code, OK, read, thread};
use crate::guard;
use crate::hooks::destroyed;
use crate::pinned::faults::Inside;
use crate::report::trace::{NOTE, NUMBER, TRACE};

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
        let config = core::any::TypeId::of::<T>() == core::any::TypeId::of::<CUlaunchConfig>();
        // SAFETY: NULL, or what the program has given to a launch.
        config.then(|| unsafe { read(self.cast::<CUlaunchConfig>()) }.hStream.addr())
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

impl Argument for CUmemLocation {
    fn show(self, _: bool) -> String {
        format!("{:#x}:{:#x}", self.type_.0, self.id)
    }
}

impl Argument for Bytes {
    fn show(self, _: bool) -> String {
        "...".into()
    }
}

/// Takes the name of an argument, its object, and its text.
pub(crate) type Show<'a> = dyn FnMut(&str, Option<usize>, &dyn Fn() -> String) + 'a;

/// Parts of the names of calls that make an order.
pub(crate) const ORDERS: [&str; 6] =
    ["EventRecord", "RecordEvent", "WaitEvent", "Synchronize", "WriteValue", "WaitValue"];

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
        // The driver may crash in the call.
        arguments(false, &mut |argument, handle, _| {
            if let ("stream" | "event" | "start" | "end" | "config", Some(handle)) =
                (argument, handle)
            {
                destroyed::uses(name, handle);
            }
        });
        let code = hook();
        if code != OK && ORDERS.iter().any(|part| name.contains(part)) {
            let mut stream = None;
            arguments(false, &mut |argument, handle, _| {
                stream = stream.or(handle.filter(|_| argument == "stream"));
            });
            destroyed::failed(name, stream, code);
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
    use cuda_events::sys::more::CUlaunchConfig;

    use super::Argument;

    /// What a call has written is shown once it has, and not before; of a launch that is described
    /// the stream is a handle.
    #[test]
    fn places_are_shown_with_what_the_call_has_written() {
        let mut value = 0x1234_usize;
        let place = &raw mut value;
        assert_eq!(place.show(true), "->0x1234");
        assert_eq!(place.show(false), format!("{:#x}", place.addr()));
        assert_eq!(core::ptr::null_mut::<usize>().show(true), "0x0");
        assert_eq!(place.cast::<u32>().show(true), format!("{:#x}", place.addr()));
        assert_eq!(place.cast_const().show(true), format!("{:#x}", place.addr()));
        let stream = core::ptr::without_provenance_mut(0x77);
        let config = CUlaunchConfig { hStream: stream, ..CUlaunchConfig::default() };
        assert_eq!((&raw const config).handle(), Some(0x77));
        assert_eq!((place.cast_const().handle(), 0x78_usize.handle()), (None, Some(0x78)));
    }
}
