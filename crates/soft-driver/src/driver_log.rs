//! The driver's log: why it refused a call. Here it has the reports of misuse, for a driver that
//! goes on after them.

use core::ffi::{c_uchar, c_uint};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::abi::*;
use crate::arg::Ptr;
use crate::errors;
use crate::machine::call_frame::CallFrame;
use crate::machine::thread;
use crate::sync::lock;

/// Documented: so many bytes are kept.
const KEPT: usize = 25_600;

/// The newest lines.
pub(crate) struct DriverLog(Mutex<Lines>);

struct Lines {
    lines: VecDeque<String>,
    bytes: usize,
    /// The number of the line after the last, which an iterator is.
    next: CUlogIterator,
}

impl DriverLog {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Lines { lines: VecDeque::new(), bytes: 0, next: 0 }))
    }

    /// A call is refused. The lines are as a real driver writes them.
    pub(crate) fn add(&self, call: &CallFrame, what: &str, code: CUresult) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (second, thread) = (since.as_secs() % 86_400, thread::number());
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let (second, milli) = (second % 60, since.subsec_millis());
        let begin = format!("[{hour:02}:{minute:02}:{second:02}.{milli:03}][{thread}][CUDA][E]");
        let name = errors::find(code).map_or("unknown", |of| of.0.to_str().unwrap_or_default());
        let mut log = lock(&self.0);
        log.push(format!("{begin} {}\n", what.replace('\n', " ")));
        log.push(format!("{begin} Returning {} ({name}) from {}\n", code.0, call.name()));
    }
}

impl Lines {
    fn push(&mut self, line: String) {
        self.bytes += line.len();
        self.next = self.next.wrapping_add(1);
        self.lines.push_back(line);
        while self.bytes > KEPT {
            let Some(line) = self.lines.pop_front() else { return };
            self.bytes -= line.len();
        }
    }

    /// The lines from an iterator on, the newest of them that fit.
    fn from(&self, iterator: Option<CUlogIterator>, room: usize) -> String {
        let count = match iterator {
            Some(iterator) => self.next.wrapping_sub(iterator) as usize,
            None => self.lines.len(),
        };
        let mut fits: Vec<&str> = Vec::new();
        let mut bytes = 0;
        for line in self.lines.iter().rev().take(count) {
            bytes += line.len();
            if bytes > room {
                break;
            }
            fits.push(line);
        }
        fits.into_iter().rev().collect()
    }
}

pub(crate) fn logs_current(
    call: &CallFrame,
    iterator: Ptr<CUlogIterator>,
    flags: c_uint,
) -> Answer {
    let state = call.lock()?;
    if flags != 0 {
        return Err(INVALID_VALUE);
    }
    iterator.put(lock(&state.misuses.log.0).next)
}

/// Documented: an iterator moves to the end, the text ends with a zero that its size does not
/// count, and no room for any line is an invalid value.
pub(crate) fn logs_dump_to_memory(
    call: &CallFrame,
    iterator: Ptr<CUlogIterator>,
    buffer: Ptr<c_uchar>,
    size: Ptr<usize>,
    flags: c_uint,
) -> Answer {
    let state = call.lock()?;
    buffer.required()?;
    let room = size.get()?;
    if flags != 0 || room == 0 {
        return Err(INVALID_VALUE);
    }
    let log = lock(&state.misuses.log.0);
    let from = if iterator.is_null() { None } else { Some(iterator.get()?) };
    let text = log.from(from, room - 1);
    let nothing = text.is_empty() && !log.from(from, usize::MAX).is_empty();
    // SAFETY: the C call says that the buffer has `room` bytes, and the text has fewer.
    unsafe {
        buffer.raw().copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.raw().add(text.len()).write(0);
    }
    size.put(text.len())?;
    if nothing {
        return Err(INVALID_VALUE);
    }
    iterator.put_if(log.next);
    Ok(())
}
