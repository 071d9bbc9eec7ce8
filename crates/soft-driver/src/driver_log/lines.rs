//! The lines of the log.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::abi::{CUlogIterator, CUresult};
use crate::errors;
use crate::sync::lock;
use crate::threads;

/// Documented: so many bytes are kept.
const KEPT: usize = 25_600;

/// The newest lines of the driver's log.
pub(crate) struct DriverLog(pub(super) Mutex<Lines>);

pub(super) struct Lines {
    lines: VecDeque<String>,
    bytes: usize,
    /// The number of the line after the last, which an iterator is.
    pub(super) next: CUlogIterator,
}

impl DriverLog {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Lines { lines: VecDeque::new(), bytes: 0, next: 0 }))
    }

    /// A call is refused. The lines are as a real driver writes them.
    pub(crate) fn add(&self, call: &str, what: &str, code: CUresult) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (second, thread) = (since.as_secs() % 86_400, threads::number());
        let (hour, minute) = (second / 3600, second / 60 % 60);
        let (second, milli) = (second % 60, since.subsec_millis());
        let begin = format!("[{hour:02}:{minute:02}:{second:02}.{milli:03}][{thread}][CUDA][E]");
        let name =
            errors::find(code).map_or("unknown", |entry| entry.0.to_str().unwrap_or_default());
        let mut log = lock(&self.0);
        log.push(format!("{begin} {}\n", what.replace('\n', " ")));
        log.push(format!("{begin} Returning {} ({name}) from {}\n", code.0, call));
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
    pub(super) fn from(&self, iterator: Option<CUlogIterator>, room: usize) -> String {
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
