//! The form of a report: what a person reads first, how long it is, and what it leaves out.

use std::sync::Arc;

use cuda_order_check_engine::findings::{Certainty, Findings, Sink, Stacks};
use cuda_order_check_engine::{
    Access, Call, Checker, ContextId, EventId, Finding, Op, StreamId, StreamKind, ThreadId,
};

/// A program whose calls have backtraces.
struct Program {
    checker: Checker,
    number: u64,
}

const TORCH: &str = "/opt/lib/python3.11/site-packages/torch";

impl Program {
    fn new() -> Self {
        Self { checker: Checker::default(), number: 0 }
    }

    /// A call from a function at a line of a program in Python, by functions of PyTorch.
    fn call(&mut self, name: &str, function: &str, line: u32, op: Op<'_>) {
        let text = format!(
            "Python: wrapped, at {TORCH}/_tensor.py:12\nPython: {function}, at /home/me/serve.py:{line}\n\
             Python: <module>, at /home/me/serve.py:90\nat::native::{function}(at::Tensor&)\n\
             libcudart_static_8f1ab\n__libc_start_main\n_start"
        );
        self.from(name, &text, op);
    }

    fn from(&mut self, name: &str, text: &str, op: Op<'_>) {
        self.number += 1;
        let mut call = Call::new(name.to_owned(), self.number, ThreadId(1));
        if !text.is_empty() {
            call.backtrace = Some(Arc::new(text.to_owned()));
        }
        self.checker.apply(call, op);
    }

    fn stream(&mut self, stream: u64, name: &str, text: &str) {
        let (stream, context) = (StreamId(stream), ContextId(0));
        let kind = StreamKind::NonBlocking;
        self.from("cuStreamCreate", text, Op::StreamCreate { stream, context, kind, name: None });
        if !name.is_empty() {
            self.from("name", "", Op::StreamName { stream, name });
        }
    }

    /// The one that was found since the last time.
    fn found(&mut self) -> Finding {
        let mut all = self.checker.take_findings();
        let found = all.pop().expect("there is a finding");
        assert!(all.is_empty(), "{all:?}");
        found
    }

    fn text(&mut self) -> String {
        self.found().to_string()
    }
}

fn set(stream: u64, at: u64, bytes: u64) -> Op<'static> {
    let accesses = Box::leak(Box::new([Access::write(at, bytes)]));
    Op::Work { stream: StreamId(stream), accesses }
}

fn get(stream: u64, at: u64, bytes: u64) -> Op<'static> {
    let accesses = Box::leak(Box::new([Access::read(at, bytes)]));
    Op::Work { stream: StreamId(stream), accesses }
}

/// Two streams of a program in Python.
fn serve() -> Program {
    let mut program = Program::new();
    program.stream(0xa, "uploads", "Python: <module>, at /home/me/serve.py:4");
    program.stream(0xb, "compute", "Python: <module>, at /home/me/serve.py:5");
    let memory = "Python: <module>, at /home/me/serve.py:3";
    program.from("cuMemAlloc_v2", memory, Op::Allocate { address: 0x8000, bytes: 0x2000 });
    program
}

const KERNEL: &str = "cuLaunchKernel of void softmax<float>(float*, int)";

/// The two places, the bytes, the two accesses and what mends it, in this order and no more.
#[test]
fn a_report_is_short() {
    let mut program = serve();
    program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 0x2000));
    program.call(KERNEL, "use", 12, get(0xb, 0x8000, 0x2000));
    let expected = "\
error: missing order: /home/me/serve.py:12 (use) reads what /home/me/serve.py:8 (fill) writes, and nothing makes it wait [certain]
  bytes    0x8000 to 0x9fff, the whole of 8 KiB that /home/me/serve.py:3 allocated
  writes   cuMemsetD8Async in stream `uploads` (/home/me/serve.py:4), call #6
           at /home/me/serve.py:8 (fill), called by /home/me/serve.py:90
  reads    kernel softmax<float> in stream `compute` (/home/me/serve.py:5), call #7
           at /home/me/serve.py:12 (use), called by /home/me/serve.py:90
  to mend  after /home/me/serve.py:8: event = uploads.record_event(); before /home/me/serve.py:12: compute.wait_event(event)";
    assert_eq!(program.text(), expected);
}

/// What there was already: a record without the wait, a wait of another stream, a record that was too
/// early.
#[test]
fn a_report_says_what_was_there_already() {
    let event = EventId(7);
    let record = |stream| Op::Record { event, stream: StreamId(stream), external: false };
    let wait = |stream| Op::Wait { event, stream: StreamId(stream), external: false };
    let note = |program: &mut Program| {
        program.call(KERNEL, "use", 12, get(0xb, 0x8000, 0x2000));
        let text = program.text();
        let at = text.find("compute.wait_event(event)").expect("what mends it comes first");
        let rest: Vec<&str> = text.split_at(at).1.lines().skip(1).map(str::trim).collect();
        rest.join(" ")
    };
    let mut program = serve();
    program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 0x2000));
    program.call("cuEventRecord", "fill", 9, record(0xa));
    let recorded = "an event was recorded in `uploads` at /home/me/serve.py:9";
    assert_eq!(note(&mut program), format!("{recorded}: only the wait is missing"));

    let mut program = serve();
    program.stream(0xc, "third", "");
    program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 0x2000));
    program.call("cuEventRecord", "fill", 9, record(0xa));
    program.call("cuStreamWaitEvent", "fill", 10, wait(0xc));
    let other = "and stream 0xc \"third\" waits for it at /home/me/serve.py:10: `compute` does not";
    assert_eq!(note(&mut program), format!("{recorded}, {other}"));

    // One of another stream is none, and so is one before the work.
    let mut program = serve();
    program.call("cuEventRecord", "fill", 7, record(0xa));
    program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 0x2000));
    program.call("cuEventRecord", "fill", 9, record(0xb));
    assert_eq!(note(&mut program), "");

    let mut program = serve();
    program.call("cuMemsetD8Async", "other", 6, set(0xa, 0x100, 8));
    program.call("cuEventRecord", "fill", 7, record(0xa));
    program.call("cuStreamWaitEvent", "fill", 7, wait(0xb));
    program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 0x2000));
    assert_eq!(
        note(&mut program),
        "`compute` waits for `uploads` up to /home/me/serve.py:6, which is before \
         /home/me/serve.py:8: a later event is needed"
    );
}

/// Nothing of the frameworks, the runtime and the start of the process, unless all is asked for.
#[test]
fn frames_that_are_not_the_programs_are_folded() {
    let mut program = serve();
    program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 0x2000));
    program.call(KERNEL, "use", 12, get(0xb, 0x8000, 0x2000));
    let found = program.found();
    let parts = ["site-packages", "at::native", "libcudart_static", "__libc_start", "_start"];
    let text = found.to_string();
    assert!(parts.iter().all(|part| !text.contains(part)), "{text}");
    let path = std::env::temp_dir().join(format!("order-check-form-{}", std::process::id()));
    let name = path.to_str().expect("it is text");
    let sink = Sink::file(name).expect("a new file");
    let mut findings = Findings::new(vec![sink], Vec::new()).stacks(Stacks::Full);
    findings.add(found, "copy");
    let full = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it is there");
    assert!(parts.iter().all(|part| full.contains(part)), "{full}");
    assert!(full.contains("\n  memory   is of call #5 (cuMemAlloc_v2)\n"), "{full}");
}

/// However long the names, the paths and the notes are.
#[test]
fn a_report_has_25_lines_of_160_columns() {
    let mut program = Program::new();
    let long = "a_long_name_".repeat(20);
    let frames: String = (1..60)
        .map(|at| format!("Python: {long}{at}, at /home/{long}/{long}/{long}.py:{at}\n"))
        .collect();
    let kernel = format!("cuLaunchKernel of void {long}<{}>(int)", "A<B>, ".repeat(300));
    program.stream(0xa, &long, &frames);
    program.stream(0xb, "compute", &frames);
    program.from("cuMemAlloc_v2", &frames, Op::Allocate { address: 0x1000, bytes: 0x200 });
    let accesses: Vec<_> = (0..14).map(|at| Access::write(0x1000 + at, 1)).collect();
    let work = |stream| Op::Work { stream: StreamId(stream), accesses: &accesses };
    program.from(&kernel, &format!("Python: {long}, at {long}.py:1\n{frames}"), work(0xa));
    program.from(&kernel, &format!("Python: {long}, at {long}.py:2\n{frames}"), work(0xb));
    let text = program.text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() <= 25, "{} lines\n{text}", lines.len());
    let widest = lines.iter().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 160), "{widest:?}\n{text}");
    // The bytes are one range.
    assert!(
        lines[1].starts_with(
            "  bytes    0x1000 to 0x100d, 14 bytes, bytes 0 to 13 of the 512 bytes that "
        ),
        "{text}"
    );
}

/// A line of the source is shown where there is debug information, without the arguments.
#[test]
fn a_program_in_cpp_has_its_lines() {
    let mut program = Program::new();
    program.stream(0xa, "", "");
    program.stream(0xb, "", "");
    let frames = |function: &str, line: u32| {
        format!(
            "cudaMemsetAsync\n{function}(float*, unsigned long), at ./src/game.cpp:{line}:5\n\
             main, at ./src/game.cpp:90:3\n__libc_start_call_main\n__libc_start_main\n_start"
        )
    };
    program.from("cuMemsetD8Async", &frames("upload", 8), set(0xa, 0x8000, 64));
    program.from(
        "cuMemsetD8Async",
        &frames("(anonymous namespace)::clear", 12),
        set(0xb, 0x8000, 64),
    );
    let text = program.text();
    for part in [
        "missing order: src/game.cpp:12 (clear) overwrites what src/game.cpp:8 (upload) writes,",
        "\n           at src/game.cpp:8 (upload), called by src/game.cpp:90 (main)\n",
        "after src/game.cpp:8: cudaEventRecord(event, <stream 0xa>); before src/game.cpp:12:",
        "cudaStreamWaitEvent(<stream 0xb>, event)",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// A caching allocator gives parts of an old allocation to others: its call says nothing of these.
#[test]
fn a_segment_is_not_named_after_its_first_user() {
    let shown = |at: u64, text: &str| {
        let mut program = Program::new();
        program.from("cuMemAlloc_v2", text, Op::Allocate { address: 0x8000, bytes: 20 << 20 });
        program.call("cuMemsetD8Async", "fill", 8, set(0xa, at, 64));
        program.call("cuMemsetD8Async", "use", 9, set(0xb, at, 64));
        let text = program.text();
        text.lines().nth(1).expect("a line").trim().to_owned()
    };
    let torch = "Python: model, at a.py:3\nc10::cuda::CUDACachingAllocator::alloc";
    assert_eq!(
        shown(0x9000, torch),
        "bytes    0x9000 to 0x903f, 64 bytes in a segment of 20 MiB of PyTorch's allocator"
    );
    assert!(
        shown(0x8000, torch)
            .ends_with("64 bytes, bytes 0 to 63 of the 20 MiB that a.py:3 (model) allocated")
    );
    for frame in ["Python: f, at /x/site-packages/cupy/a.py:1", "cupy.cuda.memory.alloc"] {
        assert!(
            shown(0x9000, &format!("{frame}\nPython: model, at a.py:3"))
                .ends_with("in a segment of 20 MiB of CuPy's pool")
        );
    }
    let own = "Python: model, at a.py:3\nf";
    assert!(
        shown(0x9000, own)
            .ends_with("bytes 4096 to 4159 of the 20 MiB that a.py:3 (model) allocated")
    );
}

/// A default stream is what each library calls it.
#[test]
fn a_default_stream_has_its_name() {
    let python = |path: &str| format!("Python: f, at /x/site-packages/{path}/a.py:1");
    for (frame, name) in [
        (python("torch"), "torch.cuda.default_stream()"),
        (python("cupy"), "cupy.cuda.Stream.null"),
        (python("cuda/core"), "device.default_stream"),
        (python("numba/cuda"), "cuda.default_stream()"),
        ("libcudart.so.12".to_owned(), "cudaStreamLegacy"),
        ("main".to_owned(), "CU_STREAM_LEGACY"),
    ] {
        let mut program = Program::new();
        let (context, kind, name_of) =
            (ContextId(0), StreamKind::Legacy, Some("0x1 (the default)"));
        let (stream, other) = (StreamId(1), StreamId(0xb));
        program.from("", "", Op::StreamCreate { stream, context, kind, name: name_of });
        let kind = StreamKind::NonBlocking;
        program.from("", "", Op::StreamCreate { stream: other, context, kind, name: Some("b") });
        for stream in [1, 0xb] {
            let text = format!("{frame}\nPython: fill, at /home/me/a.py:{stream}");
            program.from("cuMemsetD8Async", &text, set(stream, 0x8000, 64));
        }
        let text = program.text();
        assert!(text.contains(name), "{name}: {text}");
    }
}

/// A stream has the name of its variable, if the program has the source.
#[test]
fn streams_have_the_names_of_their_variables() {
    let path = std::env::temp_dir().join(format!("order-check-names-{}.py", std::process::id()));
    std::fs::write(
        &path,
        "uploads = cp.cuda.Stream()\nall = [Stream() for _ in range(2)]\nx = Stream()\n",
    )
    .expect("a new file");
    let at = |line: u32| format!("Python: <module>, at {}:{line}", path.display());
    let shown = |one: &str, two: &str| {
        let mut program = Program::new();
        program.stream(0xa, "", one);
        program.stream(0xb, "", two);
        program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 64));
        program.call("cuMemsetD8Async", "use", 9, set(0xb, 0x8000, 64));
        let text = program.text();
        let streams = text.lines().filter_map(|line| line.split_once(" in stream ")).map(|it| it.1);
        streams.map(|it| it.split(' ').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&at(1), &at(3)), ["`uploads`", "`x`"]);
    assert_eq!(shown(&at(1), &at(2)), ["`uploads`", "0xb"]);
    // Of one line, so of one list; or of PyTorch's pool, which its first stream makes.
    assert_eq!(shown(&at(1), &at(1)), ["0xa", "0xb"]);
    let pool = format!("Python: __new__, at {TORCH}/cuda/streams.py:3\n{}", at(1));
    assert_eq!(shown(&pool, &at(3)), ["0xa", "`x`"]);
    let other =
        format!("Python: stream, at /torch/lib/site-packages/numba/cuda/api.py:3\n{}", at(1));
    assert_eq!(shown(&other, &at(3)), ["`uploads`", "`x`"]);
    std::fs::remove_file(&path).expect("it is there");
}

/// How sure a report is stands in its first line, and why it is not certain in its own.
#[test]
fn a_report_says_how_sure_it_is() {
    let mut program = serve();
    program.call("cuMemsetD8Async", "fill", 8, set(0xa, 0x8000, 0x2000));
    program.call(KERNEL, "use", 12, get(0xb, 0x8000, 0x2000));
    let found = program.found();
    let path = std::env::temp_dir().join(format!("order-check-sure-{}", std::process::id()));
    let name = path.to_str().expect("it is text");
    let mut findings = Findings::new(vec![Sink::file(name).expect("a new file")], Vec::new());
    for word in ["likely", "certain"] {
        findings.add_with(found.clone(), "copy", Some(Certainty { word, text: "as it is" }));
    }
    let long = "so it is ".repeat(800);
    findings.add_with(found, "copy", Some(Certainty { word: "likely", text: &long }));
    findings.again(&[1, 12, 1]);
    findings.summary(&[]);
    let text = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it is there");
    let lines = text.lines().filter(|line| line.starts_with("  ") && line.contains("so it is"));
    // After the first line and the six of any report.
    assert_eq!(lines.count(), 25 - 7, "{text}");
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("error: ")).collect();
    assert!(
        heads[0].ends_with(" wait [likely]") && heads[1].ends_with(" wait [certain]"),
        "{text}"
    );
    assert_eq!(text.matches("\n  likely   as it is\n  class    copy\n").count(), 1, "{text}");
    assert_eq!(text.matches("as it is").count(), 1, "{text}");
    assert_eq!(text.matches("order check: 12 times: /home/me/serve.py:12 (use) reads what /home/me/serve.py:8 (fill) writes\n").count(), 1, "{text}");
}

/// Nobody believes that a copy is not over whose call has returned.
#[test]
fn a_report_says_why_an_upload_is_not_over() {
    let note = |name: &str, bytes: u64| {
        let mut program = serve();
        program.call(name, "fill", 8, set(0xa, 0x8000, bytes));
        program.call(KERNEL, "use", 12, get(0xb, 0x8000, 64));
        let text = program.text();
        let lines = text.lines().skip_while(|line| !line.starts_with("  to mend"));
        lines.skip(1).map(str::trim).collect::<Vec<_>>().join(" ")
    };
    let why = "cuMemcpyHtoD_v2 from ordinary memory returns before its last bytes have arrived";
    assert_eq!(note("cuMemcpyHtoD_v2", 1 << 20), why);
    let small = format!("{why}: documented, not observed at this size");
    assert_eq!(note("cuMemcpyHtoD_v2", 128 << 10), small);
    assert_eq!(note("cuMemcpyHtoDAsync_v2", 1 << 20), "");
}
