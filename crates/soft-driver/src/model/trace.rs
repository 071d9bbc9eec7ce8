//! How a program came to a call, for the order checker's reports.

use core::fmt;
use std::backtrace::Backtrace;

/// How many of the program's own frames are shown.
const FRAMES: usize = 24;

/// A backtrace without this crate's own frames and without what every thread begins with. It is
/// made text when it is printed.
#[derive(Debug)]
pub(crate) struct Trace(Backtrace);

impl Trace {
    pub(crate) fn here() -> Self {
        Self(Backtrace::force_capture())
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for frame in frames(&self.0.to_string()) {
            writeln!(f, "{frame}")?;
        }
        Ok(())
    }
}

/// The frames of a printed backtrace: a line of a number and a name each, and where it is in a line
/// of its own if that is known.
fn frames(text: &str) -> Vec<String> {
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
    let own = |frame: &String| {
        let path = frame.trim_start_matches('<');
        ["cuda_soft_driver", "std::", "core::", "alloc::"].iter().any(|own| path.starts_with(own))
    };
    let end = all.iter().position(|frame| frame.contains("__rust_begin_short_backtrace"));
    all.truncate(end.unwrap_or(all.len()));
    let first = all.iter().position(|frame| !own(frame)).unwrap_or(0);
    let mut frames = all.split_off(first);
    frames.truncate(FRAMES);
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_frames_are_kept() {
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
    }
}
