//! Where the two calls of a finding are in the program.

use std::fmt;

use super::words::{action, function};
use crate::frames::{Frame, Owner, frames, short};
use crate::op::Call;

/// A line of the program, or a function of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The function; empty if it is not known.
    pub(crate) function: String,
    /// The file with the source, and the line.
    pub(crate) source: Option<(String, u32)>,
    /// The loaded file with the offset, if that is what is known.
    module: Option<String>,
}

impl Place {
    fn at(frame: &Frame<'_>) -> Self {
        let source = frame.source.map(|(file, line)| (file.to_owned(), line));
        Self { function: function(frame), source, module: frame.module.map(str::to_owned) }
    }

    /// The file and the line, without the function: `serve.py:8`.
    pub(crate) fn line(&self) -> String {
        match (&self.source, &self.module) {
            (Some((file, line)), _) => format!("{}:{line}", short(file)),
            (None, Some(module)) if self.function.is_empty() => short(module),
            _ => self.function.clone(),
        }
    }
}

/// `serve.py:8 (fill)`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())?;
        let named = !self.function.is_empty() && self.function != "<module>";
        if self.source.is_some() && named { write!(f, " ({})", self.function) } else { Ok(()) }
    }
}

/// How the program came to a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    /// The line of the program that makes the call.
    pub(crate) place: Option<Place>,
    /// From where it was called, from the inside.
    pub(crate) callers: Vec<Place>,
    /// The region of the program.
    pub(crate) region: Option<String>,
    /// The text of the backtrace.
    pub(crate) text: String,
}

/// The frames of these owners. Where there are lines of Python, those.
fn owned<'a>(text: &'a str, owners: &[Owner]) -> Vec<Frame<'a>> {
    let all: Vec<_> = frames(text).filter(|frame| owners.contains(&frame.owner())).collect();
    let is_python = all.iter().any(|frame| frame.is_python);
    let mut all: Vec<_> = all.into_iter().filter(|frame| frame.is_python == is_python).collect();
    all.dedup();
    all
}

/// Whose code a place is looked for in, one after the other.
const OWNERS: [&[Owner]; 3] = [
    &[Owner::Program],
    &[Owner::Program, Owner::Package],
    &[Owner::Program, Owner::Package, Owner::Framework],
];

fn text(call: &Call) -> String {
    call.backtrace.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// The way to one call.
pub(crate) fn way(call: &Call) -> Way {
    let text = text(call);
    let found = OWNERS.iter().map(|owners| owned(&text, owners)).find(|found| !found.is_empty());
    let places = found.unwrap_or_default().iter().map(Place::at).collect();
    new(call, places, text)
}

/// The ways to the two calls of a finding. The place of each is the innermost line in which they
/// differ: of the program's own code, otherwise of packages, otherwise of any code.
pub(crate) fn ways(one: &Call, two: &Call) -> [Way; 2] {
    let texts = [text(one), text(two)];
    let [first, second] = &texts;
    let mut found: Option<[Vec<Frame<'_>>; 2]> = None;
    for owners in OWNERS {
        let both = [owned(first, owners), owned(second, owners)];
        let [a, b] = &both;
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let differ = same < a.len().max(b.len());
        if differ {
            // One of them may be made by a function that the other calls.
            found = Some(both.map(|mut own| own.split_off(same.min(own.len().saturating_sub(1)))));
            break;
        }
        if !a.is_empty() && found.is_none() {
            found = Some(both);
        }
    }
    let [a, b] = found.unwrap_or_default().map(|own| own.iter().map(Place::at).collect());
    let [first, second] = texts;
    [new(one, a, first), new(two, b, second)]
}

fn new(call: &Call, mut places: Vec<Place>, text: String) -> Way {
    if let Some(location) = &call.location {
        let source = Some((location.file.clone().into_owned(), location.line));
        places.insert(0, Place { function: String::new(), source, module: None });
    }
    let region = text.lines().find_map(|line| line.strip_prefix("Region: ")).map(str::to_owned);
    let mut places = places.into_iter();
    Way { place: places.next(), callers: places.collect(), region, text }
}

impl Way {
    /// The place, otherwise the call.
    pub(crate) fn or_call(&self, call: &Call) -> String {
        match &self.place {
            Some(place) => place.to_string(),
            None => named(call),
        }
    }

    /// The same without the name of the function.
    pub(crate) fn line_or_call(&self, call: &Call) -> String {
        match &self.place {
            Some(place) => place.line(),
            None => named(call),
        }
    }
}

/// A call of which no place is known.
pub(crate) fn named(call: &Call) -> String {
    format!("call #{} ({})", call.number, action(call))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::ways;
    use crate::op::{Call, ThreadId};

    fn shown(texts: [&str; 2]) -> [String; 2] {
        let [one, two] = texts.map(|text| {
            let mut call = Call::new("cuMemsetD8Async", 7, ThreadId(1));
            call.backtrace = Some(Arc::new(text.to_owned()));
            call
        });
        ways(&one, &two).map(|way| {
            let callers: Vec<String> = way.callers.iter().map(ToString::to_string).collect();
            format!("{} < {}", way.or_call(&one), callers.join(", "))
        })
    }

    #[test]
    fn a_place_is_a_line_of_the_program() {
        const ZERO: &str = "Python: zero_, at /x/site-packages/torch/a.py:1\n";
        let fill = format!("{ZERO}Python: fill, at a.py:3\nPython: <module>, at a.py:9\nzero\n");
        let used = "Python: use, at a.py:5\nPython: <module>, at a.py:9\n".to_owned();
        assert_eq!(shown([&fill, &used]), ["a.py:3 (fill) < a.py:9", "a.py:5 (use) < a.py:9"]);
        // A function that both go through says nothing.
        let [fill, used] = [fill, used].map(|text| format!("Python: call, at a.py:1\n{text}"));
        assert_eq!(shown([&fill, &used]), ["a.py:3 (fill) < a.py:9", "a.py:5 (use) < a.py:9"]);
        // Of a kernel there may be no backtrace.
        assert_eq!(
            shown([&fill, ""]),
            ["a.py:1 (call) < a.py:3 (fill), a.py:9", "call #7 (cuMemsetD8Async) < "]
        );
        // Two calls of one line of the program are in a package.
        const RUN: &str = "Python: run, at a.py:2";
        let [one, two] = ["save", "load"]
            .map(|name| format!("{ZERO}Python: {name}, at /x/site-packages/trl/t.py:4\n{RUN}"));
        assert_eq!(
            shown([&one, &two]),
            ["trl/t.py:4 (save) < a.py:2 (run)", "trl/t.py:4 (load) < a.py:2 (run)"]
        );
        assert_eq!(shown([RUN, RUN]), ["a.py:2 (run) < "; 2]);
        // Nothing of the runtime, and of the start of the process.
        let native = "cudaMemsetAsync\nlibcudart_static_81f\nupload(int*), at ./a.cpp:3:1\nmain, at ./a.cpp:9:1\n\
                      __libc_start_main\n_start";
        assert_eq!(shown([native, ""])[0], "a.cpp:3 (upload) < a.cpp:9 (main)");
        assert_eq!(shown(["main\n_start", ""])[0], "main < ");
        // Without symbols, what `addr2line` needs.
        assert_eq!(
            shown(["/a/game+0x1f\n/a/game+0x2f", "/a/game+0x3f"])[0],
            "/a/game+0x1f < /a/game+0x2f"
        );
    }
}
