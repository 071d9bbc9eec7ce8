//! What mends a finding, in the words of the API that the program uses.

use super::places::{Way, named, way};
use crate::agent::{Agent, Part, Who};
use crate::frames::is_of;
use crate::op::{Call, StreamKind};
use crate::report::{Problem, Report, Side};

/// By which a program makes the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    PyTorch,
    CuPy,
    CudaCore,
    Numba,
    Runtime,
    Driver,
}

impl Api {
    /// By the backtraces of the two calls.
    pub(super) fn of_ways(ways: &[Way; 2]) -> Self {
        let has = |parts: &[&str]| {
            ways.iter().any(|way| parts.iter().any(|part| way.text.contains(part)))
        };
        let uses = |packages: &[&str]| ways.iter().any(|way| is_of(&way.text, packages));
        if uses(&["cupy/", "cupy_backends/"]) {
            Self::CuPy
        // It makes its calls by cuda.core.
        } else if uses(&["numba/cuda/", "numba_cuda/"]) {
            Self::Numba
        } else if uses(&["cuda/core/"]) {
            Self::CudaCore
        } else if uses(&["torch/"]) || has(&["/libtorch", "/libc10", "at::native::", "c10::"]) {
            Self::PyTorch
        } else if has(&["libcudart", "cudart::", "cudaMem", "cudaLaunch", "__device_stub"]) {
            Self::Runtime
        } else {
            Self::Driver
        }
    }

    /// The stream as the program may write it.
    fn stream(self, agent: &Agent, name: Option<&str>) -> String {
        let legacy = agent.stream().is_some_and(|stream| stream.kind == StreamKind::Legacy);
        match (name, self) {
            (Some(name), _) if !name.contains(|sign: char| sign.is_whitespace()) => name.to_owned(),
            (_, Self::PyTorch) if legacy => "torch.cuda.default_stream()".to_owned(),
            (_, Self::CuPy) if legacy => "cupy.cuda.Stream.null".to_owned(),
            (_, Self::CudaCore) if legacy => "device.default_stream".to_owned(),
            (_, Self::Numba) if legacy => "cuda.default_stream()".to_owned(),
            (_, Self::Runtime) if legacy => "cudaStreamLegacy".to_owned(),
            (_, Self::Driver) if legacy => "CU_STREAM_LEGACY".to_owned(),
            // These two have a current stream, in which the call was made.
            (_, Self::PyTorch) => "torch.cuda.current_stream()".to_owned(),
            (_, Self::CuPy) => "cupy.cuda.get_current_stream()".to_owned(),
            _ => {
                let text = agent.stream().map(|stream| stream.to_string()).unwrap_or_default();
                format!("<stream {}>", text.split(' ').next().unwrap_or_default())
            }
        }
    }

    fn record(self, stream: &str) -> String {
        match self {
            Self::PyTorch => format!("event = {stream}.record_event()"),
            Self::CuPy | Self::CudaCore => format!("event = {stream}.record()"),
            Self::Numba => format!("event = cuda.event(); event.record({stream})"),
            Self::Runtime => format!("cudaEventRecord(event, {stream})"),
            Self::Driver => format!("cuEventRecord(event, {stream})"),
        }
    }

    fn wait(self, stream: &str) -> String {
        match self {
            Self::PyTorch | Self::CuPy => format!("{stream}.wait_event(event)"),
            Self::CudaCore => format!("{stream}.wait(event)"),
            Self::Numba => format!("event.wait({stream})"),
            Self::Runtime => format!("cudaStreamWaitEvent({stream}, event)"),
            Self::Driver => format!("cuStreamWaitEvent({stream}, event, 0)"),
        }
    }

    fn synchronize(self, stream: &str) -> String {
        match self {
            Self::PyTorch | Self::CuPy | Self::Numba => format!("{stream}.synchronize()"),
            Self::CudaCore => format!("{stream}.sync()"),
            Self::Runtime => format!("cudaStreamSynchronize({stream})"),
            Self::Driver => format!("cuStreamSynchronize({stream})"),
        }
    }
}

/// A call between the two, with its place if it is known.
fn at(call: &Call) -> String {
    match way(call).place {
        Some(place) => place.line(),
        None => named(call),
    }
}

fn who(agent: &Agent, name: Option<&str>) -> String {
    match (&agent.0, name) {
        (Who::Stream(..), Some(name)) => format!("`{name}`"),
        (Who::Stream(stream, _), None) => {
            let text = stream.to_string();
            format!("stream {}", text.split(' ').next().unwrap_or(&text))
        }
        (Who::Thread(name), _) => format!("thread {name}"),
    }
}

/// What to do. `names` are those of the two streams in the program, if they are known.
pub(super) fn remedy(report: &Report, ways: &[Way; 2], names: [Option<&str>; 2]) -> String {
    let (first, second) = (&report.first, &report.second);
    let [before, after] = [(0, first), (1, second)].map(|(index, side): (usize, _)| {
        ways.get(index).map_or_else(|| named(&side.call), |way| way.line_or_call(&side.call))
    });
    // Two calls of one line.
    let [before, after] = match before == after {
        true => [&first.call, &second.call].map(|call| named(call)),
        false => [before, after],
    };
    if let Some((call, code)) = &report.between.failed {
        let failed = match at(call) {
            place if place == named(call) => place,
            place => format!("{} at {place}", call.name),
        };
        return format!(
            "{failed} failed with error {code}, so it ordered nothing: it must succeed, or {after} \
             must not follow"
        );
    }
    let api = Api::of_ways(ways);
    let [one_name, two_name] = names;
    let one = || api.stream(&first.agent, one_name);
    let two = || api.stream(&second.agent, two_name);
    match (report.problem, &first.agent.0, &second.agent.0) {
        (Problem::UseAfterFree, ..) => {
            format!("free the memory after {after}, or stop using it after the free")
        }
        (Problem::UseAfterDestroy, ..) => {
            format!("destroy it after {after}, or stop using it after {before}")
        }
        (Problem::DestroyedWhileUsed, ..) if report.between.under_way => {
            format!("have {before} return before {after}")
        }
        (Problem::DestroyedWhileUsed | Problem::RecordedWhileAwaited, ..)
        | (_, Who::Thread(_), Who::Thread(_)) => format!(
            "synchronize {} with {} (with a lock, a channel or a join) after {before} and before \
             {after}",
            who(&first.agent, one_name),
            who(&second.agent, two_name)
        ),
        (_, Who::Stream(_, Part::Node(one)), Who::Stream(_, Part::Node(two)))
            if report.between.siblings =>
        {
            format!("add an edge from node {one} to node {two} to the graph of {after}")
        }
        (_, Who::Stream(..), Who::Stream(..)) => {
            format!("after {before}: {}; before {after}: {}", api.record(&one()), api.wait(&two()))
        }
        (_, Who::Stream(..), Who::Thread(_)) => {
            format!("after {before} and before {after}: {}", api.synchronize(&one()))
        }
        (_, Who::Thread(_), Who::Stream(..)) => format!(
            "synchronize {} with {}, which makes {after}, after {before} and before that call",
            first.thread, second.thread
        ),
    }
}

/// What order there was, and why it was not enough.
pub(super) fn already(report: &Report, names: [Option<&str>; 2]) -> Vec<String> {
    let (first, second, between) = (&report.first, &report.second, &report.between);
    let [one, two] = [(&first.agent, 0), (&second.agent, 1)]
        .map(|(agent, side): (_, usize)| who(agent, names.get(side).copied().flatten()));
    let mut notes = Vec::new();
    if report.problem != Problem::Race || between.siblings || between.failed.is_some() {
        return notes;
    }
    notes.extend(upload(first));
    if let Some(record) = &between.recorded {
        let recorded = format!("an event was recorded in {one} at {}", at(record));
        notes.push(match &between.awaited {
            Some((stream, wait)) => format!(
                "{recorded}, and stream {stream} waits for it at {}: {two} does not",
                at(wait)
            ),
            None => format!("{recorded}: only the wait is missing"),
        });
    } else if let Some(call) = &between.last_before {
        notes.push(format!(
            "{two} waits for {one} up to {}, which is before {}: a later event is needed",
            at(call),
            way(&first.call).line_or_call(&first.call)
        ));
    }
    if let Some(blocking) = &between.apart {
        notes.push(blocking.clone());
    }
    notes.extend(between.unseen.iter().cloned());
    notes
}

/// Why a copy is not over although its call has returned.
fn upload(first: &Side) -> Option<String> {
    /// Larger copies were seen to be late.
    const NOT_OBSERVED: u64 = 128 << 10;
    if !first.is_upload() {
        return None;
    }
    let bytes: u64 = first.accesses().iter().map(|it| it.range.end - it.range.start).sum();
    let seen = if bytes <= NOT_OBSERVED { ": documented, not observed at this size" } else { "" };
    Some(format!(
        "{} from ordinary memory returns before its last bytes have arrived{seen}",
        first.call.name
    ))
}

#[cfg(test)]
mod tests {
    use super::Api;
    use crate::form::places::Way;

    #[test]
    fn each_api_has_its_own_words() {
        use Api::{CuPy, CudaCore, Driver, Numba, PyTorch, Runtime};
        for (text, api, words) in [
            (
                "Python: f, at /x/site-packages/torch/a.py:1",
                PyTorch,
                "event = s.record_event() s.wait_event(event) s.synchronize()",
            ),
            (
                "at::native::fill(at::Tensor), in /x/libtorch_cuda.so+0x1",
                PyTorch,
                "event = s.record_event() s.wait_event(event) s.synchronize()",
            ),
            (
                "Python: f, at /x/site-packages/cupy/a.py:1",
                CuPy,
                "event = s.record() s.wait_event(event) s.synchronize()",
            ),
            (
                "Python: f, at /x/site-packages/cuda/core/a.py:1",
                CudaCore,
                "event = s.record() s.wait(event) s.sync()",
            ),
            (
                "Python: f, at /x/site-packages/numba_cuda/numba/cuda/a.py:1",
                Numba,
                "event = cuda.event(); event.record(s) event.wait(s) s.synchronize()",
            ),
            (
                "Python: f, at /x/site-packages/cuda/core/a.py:1\n\
                 Python: g, at /x/dist-packages/numba_cuda/numba/cuda/a.py:1",
                Numba,
                "event = cuda.event(); event.record(s) event.wait(s) s.synchronize()",
            ),
            // An environment of that name.
            (
                "Python: f, at /x/torch/lib/site-packages/cuda/core/torch/a.py:1",
                CudaCore,
                "event = s.record() s.wait(event) s.sync()",
            ),
            (
                "libcudart_static_1\nmain",
                Runtime,
                "cudaEventRecord(event, s) cudaStreamWaitEvent(s, event) cudaStreamSynchronize(s)",
            ),
            (
                "main",
                Driver,
                "cuEventRecord(event, s) cuStreamWaitEvent(s, event, 0) cuStreamSynchronize(s)",
            ),
        ] {
            let way = Way { text: text.to_owned(), ..Way::default() };
            let found = Api::of_ways(&[Way::default(), way]);
            let lines = [found.record("s"), found.wait("s"), found.synchronize("s")].join(" ");
            assert_eq!((found, &*lines), (api, words), "{text}");
        }
    }
}
