//! The form of a report: the lines that a person reads.
//!
//! The two places come first, then the bytes, the two accesses, and what mends it. It has at most
//! [`LINES`] lines of at most [`COLUMNS`] letters, except if whole backtraces are asked for.

mod mend;
mod places;
mod words;

use std::fmt::{self, Write as _};

use crate::agent::{Agent, Part, Who};
use crate::frames::is_of;
use crate::op::{AccessKind, Call};
use crate::report::{Finding, Problem, Report, Side};

pub(crate) use places::{Place, Way, way};
use words::{action, cut, cut_end};

/// The most lines of a report, and the most letters of a line.
const LINES: usize = 25;
const COLUMNS: usize = 160;
/// The most letters of the first line, without its certainty and `cuda-order-check: error: `.
const HEAD: usize = 124;
/// The most letters of a place in it, if it is too long.
const SHORT: usize = 40;
/// The most letters of a stream's name.
const NAME: usize = 72;
/// The end of the first line about two accesses.
pub(crate) const TAIL: &str = ", and nothing makes it wait";
/// Where the text of a line begins.
const INDENT: &str = "           ";

/// How much of the backtraces a text has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stacks {
    /// The lines of the program.
    #[default]
    Short,
    /// All lines.
    Full,
}

/// How sure a finding about a [launch](crate::Launch) is.
#[derive(Clone, Copy, Debug)]
pub struct Certainty<'a> {
    /// One word, such as `certain`.
    pub word: &'a str,
    /// What it means.
    pub text: &'a str,
}

/// What a text says of a report that the report itself does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct With<'a> {
    pub(crate) class: &'a str,
    pub(crate) certainty: Option<Certainty<'a>>,
    pub(crate) stacks: Stacks,
}

impl With<'_> {
    /// How sure the report is. What calls say needs no word.
    pub(crate) fn word(&self) -> &str {
        self.certainty.map_or("certain", |certainty| certainty.word)
    }
}

impl Report {
    /// What mends it, in the words of the API by which the program makes its calls.
    #[must_use]
    pub fn to_mend(&self) -> String {
        Form::new(self).to_mend()
    }

    /// The first line of the text: the two places, and what is wrong about them.
    #[must_use]
    pub fn head(&self) -> String {
        Form::new(self).head()
    }

    pub(crate) fn text(&self, with: With<'_>) -> String {
        Form::new(self).text(with)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(With::default()))
    }
}

impl Finding {
    pub(crate) fn text(&self, with: With<'_>) -> String {
        match self {
            Self::Report(report) => format!("error: {}", report.text(with)),
            Self::Warning(warning) if with.class.is_empty() => format!("warning: {warning}"),
            Self::Warning(warning) => format!("warning: {warning}\n  class    {}", with.class),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(With::default()))
    }
}

/// The parts of the form.
pub(crate) struct Form<'a> {
    report: &'a Report,
    pub(crate) ways: [Way; 2],
    /// The names of the two streams in the program.
    names: [Option<String>; 2],
}

impl<'a> Form<'a> {
    pub(crate) fn new(report: &'a Report) -> Self {
        let ways = places::ways(&report.first.call, &report.second.call);
        let mut names = [&report.first, &report.second].map(|side| name(&side.agent));
        let [one, two] = &names;
        let ids = [&report.first, &report.second].map(|side| side.agent.stream_id());
        let [first, second] = ids;
        // A list of streams has one line for all of them.
        if one == two && first != second {
            names = [None, None];
        }
        Self { report, ways, names }
    }

    fn sides(&self) -> [(&Side, &Way, Option<&str>); 2] {
        let Self { report, ways: [one, two], names: [first, second] } = self;
        [(&report.first, one, first.as_deref()), (&report.second, two, second.as_deref())]
    }

    fn names(&self) -> [Option<&str>; 2] {
        let [one, two] = &self.names;
        [one.as_deref(), two.as_deref()]
    }

    /// The first line, without its certainty.
    pub(crate) fn head(&self) -> String {
        let fits = |text: &&str| text.chars().count() <= HEAD;
        for with_function in [true, false] {
            let whole = self.head_of(|way, call| match with_function {
                true => way.or_call(call),
                false => way.line_or_call(call),
            });
            let bare = whole.strip_suffix(TAIL).unwrap_or(&whole);
            if let Some(text) = [&*whole, bare].into_iter().find(fits) {
                return text.to_owned();
            }
        }
        let short = self.head_of(|way, call| cut(&way.line_or_call(call), SHORT));
        cut_end(short.strip_suffix(TAIL).unwrap_or(&short), HEAD)
    }

    fn head_of(&self, place: impl Fn(&Way, &Call) -> String) -> String {
        let [(first, one, _), (second, two, _)] = self.sides();
        let (a, b) = (place(one, &first.call), place(two, &second.call));
        let does = first.kind.verb();
        match self.report.problem {
            Problem::Race => {
                let then = match second.kind {
                    AccessKind::Write | AccessKind::AtomicWrite => "overwrites",
                    other => other.verb(),
                };
                format!("missing order: {b} {then} what {a} {does}{TAIL}")
            }
            Problem::UseAfterFree => {
                format!("use after free: {b} {} what {a} freed", second.kind.verb())
            }
            Problem::DestroyedWhileUsed => format!(
                "missing order: an object is destroyed while another thread uses it: {a} and {b}"
            ),
            Problem::UseAfterDestroy => format!(
                "use after destroy: a call uses an event or a stream that is no more: {b} after {a}"
            ),
            Problem::RecordedWhileAwaited => format!(
                "missing order: a thread records an event while another thread waits for it: {a} and \
                 {b}"
            ),
        }
    }

    /// What mends it, and what order there was.
    pub(crate) fn to_mend(&self) -> String {
        mend::remedy(self.report, &self.ways, self.names())
    }

    pub(crate) fn already(&self) -> Vec<String> {
        mend::already(self.report, self.names())
    }

    /// What the first or the second call does.
    pub(crate) fn verb_of(&self, index: usize) -> &'static str {
        self.verb(index, if index == 0 { &self.report.first } else { &self.report.second })
    }

    /// The bytes, and of which memory they are.
    fn bytes(&self) -> Option<String> {
        let ranges = words::merged(&self.report.shared);
        let (first, last) = (ranges.first()?, ranges.last()?);
        let count: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let mut text = match ranges.len() {
            1 => words::range(first),
            2 | 3 => {
                let all: Vec<String> = ranges.iter().map(words::range).collect();
                format!("{} in {}", words::size(count), all.join(", "))
            }
            more => format!(
                "{} in {more} ranges within {}",
                words::size(count),
                words::range(&(first.start..last.end))
            ),
        };
        let Some(memory) = &self.report.allocation else {
            if ranges.len() == 1 {
                let _ = write!(text, ", {}", words::size(count));
            }
            return Some(text);
        };
        let (start, end) = (memory.range.start, memory.range.end);
        let whole = words::size(end - start);
        let way = places::way(&memory.call);
        if let Some(allocator) = caching_allocator(&way.text)
            && first.start != start
        {
            let _ = write!(text, ", {} in a segment of {whole} of {allocator}", words::size(count));
            return Some(text);
        }
        let part = match ranges.len() {
            1 if (first.start, first.end) == (start, end) => format!("the whole of {whole}"),
            1 if first.end <= end => {
                let (from, to) = (first.start - start, first.end - start);
                match count {
                    1 => format!("byte {from} of the {whole}"),
                    _ => {
                        let count = words::size(count);
                        format!("{count}, bytes {from} to {} of the {whole}", to - 1)
                    }
                }
            }
            _ => format!("of the {whole}"),
        };
        let _ = write!(text, ", {part} that {} allocated", way.or_call(&memory.call));
        Some(text)
    }

    /// `cuMemsetD8Async in stream `uploads` (serve.py:4), call 12`.
    fn access(&self, side: &Side, name: Option<&str>) -> String {
        let mut text = action(&side.call);
        match &side.agent.0 {
            Who::Thread(name) => {
                let _ = write!(text, " on thread {name}");
            }
            Who::Stream(stream, part) => {
                match part {
                    Part::Work => {}
                    Part::Node(index) => {
                        let _ = write!(text, " in node {index} of a graph");
                        if let Some(name) = side.kernel() {
                            let _ = write!(text, " (kernel {})", words::kernel(&name));
                        }
                    }
                    Part::Function => text += " in a host function",
                }
                match name {
                    Some(name) => {
                        let _ = write!(text, " in stream `{}`", cut(name, NAME).escape_debug());
                    }
                    None => {
                        let _ = write!(text, " in stream {}", cut(&stream.to_string(), NAME));
                    }
                }
                if let Some(made) = side.agent.stream_created() {
                    let way = places::way(made);
                    if is_pool(&way.text) {
                        text += " of PyTorch's pool";
                    } else if let Some(place) = way.place {
                        let _ = write!(text, " ({})", place.line());
                    }
                }
            }
        }
        let _ = write!(text, ", call #{}", side.call.number);
        if matches!(side.agent.0, Who::Stream(..))
            && self.report.first.thread != self.report.second.thread
        {
            let _ = write!(text, ", by {}", side.thread);
        }
        text
    }

    pub(crate) fn text(&self, with: With<'_>) -> String {
        let mut lines = Vec::new();
        let mut add = |name: &str, text: &str| {
            let line = format!("  {name:<8} {text}");
            lines.push(cut_end(&line, COLUMNS));
        };
        let is_object = self.report.problem.is_of_an_object();
        if let Some(bytes) = self.bytes().filter(|_| !is_object) {
            add("bytes", &bytes);
        }
        for (index, (side, way, name)) in self.sides().into_iter().enumerate() {
            add(self.verb(index, side), &self.access(side, name));
            if let Some(place) = &way.place {
                let callers: Vec<String> = way.callers.iter().map(ToString::to_string).collect();
                let by = if callers.is_empty() { "" } else { ", called by " };
                add("", &format!("at {place}{by}{}", callers.join(", ")));
            }
            if let Some(region) = &way.region {
                add("", &format!("in region {region}"));
            }
            if with.stacks == Stacks::Full {
                way.text.lines().for_each(|line| add("", line));
            }
        }
        let mut name = "to mend";
        let (mut first, mut steps) = (self.to_mend(), Vec::new());
        if first.chars().count() + INDENT.len() > COLUMNS
            && let Some((after, before)) = first.split_once("; before ")
        {
            (first, steps) = (format!("{after};"), vec![format!("before {before}")]);
        }
        for text in [first].into_iter().chain(steps).chain(self.already()) {
            for line in wrapped(&text, COLUMNS - INDENT.len()) {
                add(std::mem::take(&mut name), &line);
            }
        }
        if with.stacks == Stacks::Full {
            self.other_stacks(&mut add);
        }
        if let Some(Certainty { word, text }) =
            with.certainty.filter(|certainty| certainty.word != "certain")
        {
            for (at, line) in wrapped(text, COLUMNS - INDENT.len()).iter().enumerate() {
                add(if at == 0 { word } else { "" }, line);
            }
        }
        if !with.class.is_empty() {
            add("class", with.class);
        }
        if with.stacks == Stacks::Short && lines.len() > LINES - 1 {
            lines.truncate(LINES - 1);
        }
        let mut text = self.head();
        let _ = write!(text, " [{}]", with.word());
        lines.iter().for_each(|line| {
            let _ = write!(text, "\n{}", line.trim_end());
        });
        text
    }

    /// The backtraces of the calls that made what the two use.
    fn other_stacks(&self, add: &mut impl FnMut(&str, &str)) {
        let memory = self.report.allocation.iter().map(|memory| ("memory", &memory.call));
        let streams = [&self.report.first, &self.report.second].into_iter();
        let streams = streams.filter_map(|side| side.agent.stream_created());
        for (what, call) in memory.chain(streams.map(|call| ("stream", call))) {
            add(what, &format!("is of call #{} ({})", call.number, call.name));
            if let Some(trace) = &call.backtrace {
                trace.to_string().lines().for_each(|line| add("", line));
            }
        }
    }

    fn verb(&self, index: usize, side: &Side) -> &'static str {
        match self.report.problem {
            Problem::Race | Problem::UseAfterFree => side.kind.verb(),
            Problem::UseAfterDestroy if index == 0 => "destroys",
            Problem::DestroyedWhileUsed if index == 1 && self.report.between.under_way => {
                "destroys"
            }
            _ => "uses",
        }
    }
}

/// The stream's name: that which the program gave it, otherwise its variable where it was created.
fn name(agent: &Agent) -> Option<String> {
    if let Some(given) = agent.stream_name() {
        return Some(given.to_string());
    }
    let own = agent.stream()?.to_string();
    if !own.starts_with("0x") {
        return Some(own);
    }
    let way = places::way(agent.stream_created()?);
    if is_pool(&way.text) {
        return None;
    }
    let (file, line) = way.place?.source?;
    // A longer file is not a program's source.
    let text = crate::files::text(file).ok()?;
    words::variable(text.lines().nth((line as usize).checked_sub(1)?)?)
}

/// Whether PyTorch made a stream: it makes all of its pool when the program asks for the first one.
fn is_pool(text: &str) -> bool {
    is_of(text, &["torch/"]) || ["/libtorch", "/libc10"].iter().any(|part| text.contains(part))
}

/// The allocator that an allocation is a segment of. What it was first used for says nothing.
fn caching_allocator(text: &str) -> Option<&'static str> {
    let has = |part: &str| text.contains(part);
    if has("CUDACachingAllocator") || has("libc10_cuda") {
        return Some("PyTorch's allocator");
    }
    (is_of(text, &["cupy/"]) || has("cupy.cuda.memory")).then_some("CuPy's pool")
}

/// Lines of at most so many letters, broken at spaces.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { return lines };
        if line.is_empty() {
            *line = word.to_owned();
        } else if line.chars().count() + 1 + word.chars().count() <= most {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
