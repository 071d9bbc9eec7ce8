//! What the driver logged for a call that failed.
//!
//! Since CUDA 12.9 a driver keeps its last messages, up to 25 KiB for the whole process. A line is
//! `[time][thread][CUDA][E] message`, and the last line of a failed call is `Returning 1
//! (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2`. Some drivers of 12.9 name the call in brackets
//! instead, `[time][thread][CUDA][E][cuMemAlloc_v2] message`.
//!
//! Nothing is asked before a call. After a failure the lines since this thread's last failure are
//! read, and those that end with this call and this code are taken. So there are lines of another
//! call only if this one logged none, and another one of the same name returned the same code
//! before: in another thread, or in another library's code.

use core::ffi::c_char;
use core::ptr::null_mut;
use std::cell::{Cell, RefCell};

use crate::error::Error;
use crate::sys::{CUlogIterator, CUresult, Function, Symbols};

/// The size that the driver is given for its messages: more than it keeps.
const BYTES: usize = 26 << 10;

/// The bytes behind them. A driver whose messages do not fit puts a line about that in front of
/// them, which it does not count: 580.159.04 was seen to write up to 97 bytes too many.
const BEHIND: usize = 2 << 10;

/// How many lines an error has.
const LINES: usize = 8;

/// The last failed call of a thread for which the driver logged something.
struct Logged {
    function: Function,
    code: CUresult,
    lines: String,
}

thread_local! {
    static LAST: RefCell<Option<Logged>> = const { RefCell::new(None) };
    /// Where this thread has read to, in the log of the driver that has this function.
    static READ: Cell<Option<(usize, CUlogIterator)>> = const { Cell::new(None) };
}

/// The plain error of a call, whose lines are kept for [`lines_of`].
#[cold]
#[inline(never)]
pub(crate) fn failed(symbols: &Symbols, function: Function, code: CUresult) -> Error {
    note(symbols, function, code);
    Error::driver(function, code)
}

/// Keeps the lines of a call that has failed in this thread.
#[cold]
pub(crate) fn note(symbols: &Symbols, function: Function, code: CUresult) {
    // A program expects the first; of the others, two come where no call may be made.
    if matches!(
        code,
        CUresult::CUDA_ERROR_NOT_READY
            | CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_NOT_PERMITTED
            | CUresult::CUDA_ERROR_STUB_LIBRARY
    ) {
        return;
    }
    let lines = newest(symbols).and_then(|text| select(&text, function, code));
    let logged = lines.map(|lines| Logged { function, code, lines });
    // Without its thread-local storage a thread that ends has no log.
    let _ = LAST.try_with(|last| last.replace(logged));
}

/// The lines of this thread's last failed call, if it is this one.
pub(crate) fn lines_of(function: Function, code: CUresult) -> Option<String> {
    let lines = |last: &RefCell<Option<Logged>>| {
        let last = last.borrow();
        let last = last.as_ref().filter(|last| last.function == function && last.code == code);
        last.map(|last| last.lines.clone())
    };
    LAST.try_with(lines).ok().flatten()
}

type Dump = unsafe extern "C" fn(*mut CUlogIterator, *mut c_char, *mut usize, u32) -> CUresult;

/// The messages from the iterator on, which moves to the end. Without one it is all of them.
#[allow(unsafe_code)]
fn messages(dump: Dump, iterator: Option<&mut CUlogIterator>) -> Option<String> {
    let mut buffer = vec![0; BYTES + BEHIND];
    let (mut size, place) = (BYTES, iterator.map_or(null_mut(), core::ptr::from_mut));
    // SAFETY: an iterator of this driver, or NULL, which stands for all messages; the buffer has
    // more than `size` bytes; the flags must be 0.
    let code = unsafe { dump(place, buffer.as_mut_ptr().cast(), &mut size, 0) };
    if code != CUresult::CUDA_SUCCESS {
        return None;
    }
    buffer.truncate(size);
    Some(String::from_utf8_lossy(&buffer).into_owned())
}

/// The newest messages in the driver's log, of those since this thread's last failure.
#[allow(unsafe_code)]
fn newest(symbols: &Symbols) -> Option<String> {
    let dump = symbols.cuLogsDumpToMemory?;
    let own = dump as usize;
    let read = READ.try_with(Cell::get).ok().flatten().filter(|(driver, _)| *driver == own);
    let mut iterator = read.map(|(_, iterator)| iterator);
    let messages = messages(dump, iterator.as_mut());
    let iterator = match (iterator, symbols.cuLogsCurrent) {
        (None, Some(current)) => {
            let mut iterator = 0;
            // SAFETY: a place for the iterator; the flags must be 0.
            let code = unsafe { current(&mut iterator, 0) };
            (code == CUresult::CUDA_SUCCESS).then_some(iterator)
        }
        (iterator, _) => iterator,
    };
    let _ = READ.try_with(|read| read.set(iterator.map(|iterator| (own, iterator))));
    messages
}

/// The messages of the last call of this name that returned this code.
fn select(text: &str, function: Function, code: CUresult) -> Option<String> {
    let base = function.entry_point().base;
    let is_name = |name: &str| {
        let name = name.trim_end();
        let name = name.strip_suffix("_ptsz").unwrap_or(name);
        name == function.name() || name == base
    };
    let result = format!("Returning {} (", code.0);
    let is_end = |line: &Line<'_>| match line.message.rsplit_once(" from ") {
        Some((before, name)) => before.starts_with(&result) && is_name(name),
        None => false,
    };
    let lines: Vec<Line<'_>> = text.lines().filter_map(Line::new).collect();
    let mut of_call: Vec<&str> = if let Some(end) = lines.iter().rposition(is_end) {
        let (before, end) = (lines.get(..end)?, lines.get(end)?);
        let of_thread = before.iter().rev().filter(|line| line.thread == end.thread);
        let of_call = of_thread.take_while(|line| !line.message.starts_with("Returning "));
        of_call.take(LINES).map(|line| line.message).collect()
    } else {
        let is_of_call = |line: &&Line<'_>| line.call.is_some_and(is_name);
        let last = lines.iter().rev().find(is_of_call)?;
        let of_thread = lines.iter().rev().filter(|line| line.thread == last.thread);
        of_thread.take_while(is_of_call).take(LINES).map(|line| line.message).collect()
    };
    of_call.reverse();
    (!of_call.is_empty()).then(|| of_call.join("\n"))
}

/// A line of the log.
struct Line<'a> {
    thread: &'a str,
    /// The call, where the line has it in brackets.
    call: Option<&'a str>,
    message: &'a str,
}

impl<'a> Line<'a> {
    fn new(line: &'a str) -> Option<Self> {
        let mut rest = line;
        let mut bracket = || {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            rest = after;
            Some(inside)
        };
        let (_time, thread, _source, _level) = (bracket()?, bracket()?, bracket()?, bracket()?);
        let call = bracket();
        Some(Self { thread, call, message: rest.trim() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

    /// Writes more than it is allowed to, as a real driver does.
    #[allow(unsafe_code)]
    unsafe extern "C" fn too_much(
        _: *mut CUlogIterator,
        buffer: *mut c_char,
        size: *mut usize,
        _: u32,
    ) -> CUresult {
        // SAFETY: that the buffer has these bytes is what the test asks.
        unsafe {
            *size += 97;
            buffer.write_bytes(b'x', *size);
        }
        CUresult::CUDA_SUCCESS
    }

    #[test]
    fn a_driver_may_write_behind_the_buffer() {
        assert_eq!(messages(too_much, None).map(|text| text.len()), Some(BYTES + 97));
    }

    fn messages_in(text: &str) -> Option<String> {
        select(text, Function::cuMemAlloc_v2, INVALID)
    }

    #[test]
    fn the_lines_of_the_last_such_call_of_one_thread() {
        let text = "[1][7][CUDA][E] of the call before\n\
            [1][7][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2\n\
            [2][7][CUDA][E] first\n\
            [2][8][CUDA][E] of another thread\n\
            [2][7][CUDA][W] second\n\
            [2][7][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc\n\
            [3][7][CUDA][E] later\n\
            [3][7][CUDA][E] Returning 2 (CUDA_ERROR_OUT_OF_MEMORY) from cuMemAlloc_v2\n";
        assert_eq!(messages_in(text).as_deref(), Some("first\nsecond"));
    }

    #[test]
    fn lines_with_the_call_in_brackets() {
        let text = "[1][7][CUDA][E][cuMemAlloc_v2] too old\n\
            [1][7][CUDA][E][cuInit] other\n\
            [2][7][CUDA][E][cuMemAlloc_v2] a size of zero\n";
        assert_eq!(messages_in(text).as_deref(), Some("a size of zero"));
    }

    #[test]
    fn nothing_where_the_log_has_nothing_of_this_call() {
        for text in [
            "",
            "no bracket",
            "[1][7][CUDA",
            "[1][7][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2",
            "[1][7][CUDA][E] why\n[1][7][CUDA][E] Returning 1 (X) from cuMemAllocHost_v2",
            "[1][7][CUDA][E] why\n[1][7][CUDA][E] Returning 11 (X) from cuMemAlloc_v2",
        ] {
            assert_eq!(messages_in(text), None, "{text}");
        }
    }

    #[test]
    fn an_error_has_few_lines() {
        let text = "[1][7][CUDA][E] line\n".repeat(50)
            + "[1][7][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2";
        assert_eq!(messages_in(&text).map(|lines| lines.lines().count()), Some(LINES));
    }
}
