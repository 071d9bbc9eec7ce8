//! A file with a line for each hooked call.

use core::fmt::Write as _;
use std::cell::{Cell as Local, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::sync::{OnceLock, PoisonError};
use std::time::Instant;

use cuda_order_check_engine::pipe::without_signal;

use crate::lock::Lock;
use crate::report::counts::COUNTED;

thread_local! {
    /// The number of the call under way, for the trace.
    pub(crate) static NUMBER: Local<u64> = const { Local::new(0) };
    /// The text that a hook adds to its line.
    pub(crate) static NOTE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A line for each hooked call. Reports give the same numbers of calls.
pub(crate) static TRACE: OnceLock<Trace> = OnceLock::new();

pub(crate) struct Trace {
    pub(crate) file: File,
    pub(crate) begin: Instant,
    /// How often each function that is not hooked had been called at the last line.
    pub(crate) counts: Lock<HashMap<&'static str, u64>>,
}

impl Trace {
    pub(crate) fn write(&self, line: &str) {
        let mut text = String::new();
        if let Some(each) = COUNTED.get() {
            let mut before = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            each(&mut |name, count| {
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
pub(crate) fn note(text: impl FnOnce() -> String) {
    if TRACE.get().is_some() {
        let _ = NOTE.try_with(|note| note.borrow_mut().push_str(&text()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::time::Instant;

    use super::Trace;
    use crate::lock::{Lock, Rank};

    /// Each function that is not hooked has the calls since the line before, and none without any.
    #[test]
    fn a_line_has_the_calls_before_it_that_are_not_hooked() {
        use crate::report::counts::count_by;
        use crate::report::counts::tests::{TABLES, counts};
        use core::sync::atomic::Ordering;
        let _turn = crate::lock::TURN.lock();
        count_by(counts);
        let path = std::env::temp_dir().join(format!("order-check-trace-{}", std::process::id()));
        let file = File::create(&path).expect("a new file");
        let counts = Lock::new(Rank::Counts, HashMap::new());
        let trace = Trace { file, begin: Instant::now(), counts };
        for (at, tables) in [2, 2, 5].into_iter().enumerate() {
            TABLES.store(tables, Ordering::Relaxed);
            trace.write(&format!("line {at}\n"));
        }
        TABLES.store(0, Ordering::Relaxed);
        let text = std::fs::read_to_string(&path).expect("it was written");
        let lines: Vec<&str> =
            text.lines().map(|line| line.split(" us ").last().unwrap_or(line)).collect();
        let first = "not hooked: cuDriverGetVersion 5 cuGetExportTable 2";
        let last = "not hooked: cuGetExportTable 3";
        assert_eq!(lines, [first, "line 0", "line 1", last, "line 2"]);
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn a_pipe_that_nobody_reads_does_not_end_the_process() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        // SAFETY: no handler, but what a program begins with that is not one in Rust.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (file, begin) = (File::from(OwnedFd::from(writer)), Instant::now());
        let trace = Trace { file, begin, counts: Lock::new(Rank::Counts, HashMap::new()) };
        trace.write("a line\n");
    }
}
