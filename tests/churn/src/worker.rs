//! A thread that uses the crate at random.

use std::ffi::c_void;
use std::pin::pin;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use cuda_events::capture::{Capture, CaptureMode};
use cuda_events::ext::{LazyEvent, StreamScope, Timer, current_stream};
use cuda_events::ipc::DescriptorError;
use cuda_events::sys::{CUdeviceptr, CUresult, Function};
use cuda_events::{
    Context, Error, Event, EventFlags, IpcEventDescriptor, Progress, Result, Stream, StreamOptions,
    StreamRef,
};
use cuda_timelines::{CudaEventExt, CudaStreamExt, HostTimeline, Timeline, TimelineFile};

use crate::cost::Clock;
use crate::{Generation, Random, Totals};

/// Until when a wait has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

const WORDS: usize = 64;
/// How many results lie side by side.
const ROWS: usize = 8;

/// Waits for a future.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A result of the raw table as the crate has them.
fn raw(function: Function, code: CUresult) -> Result<()> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Error::Driver { function, code }),
    }
}

/// Memory of the device and of the host for the data that is looked at.
struct Memory {
    context: Context,
    device: CUdeviceptr,
    host: *mut c_void,
}

impl Memory {
    fn new(context: &Context) -> Result<Self> {
        let _current = context.make_current()?;
        let symbols = context.driver().symbols();
        let mut memory = Self { context: context.clone(), device: 0, host: null_mut() };
        // SAFETY: a place for the address; a context is current.
        let code = unsafe { (symbols.cuMemAlloc_v2)(&mut memory.device, 4 * WORDS) };
        raw(Function::cuMemAlloc_v2, code)?;
        // SAFETY: as above.
        let code = unsafe { (symbols.cuMemHostAlloc)(&mut memory.host, 4 * WORDS * ROWS, 0) };
        raw(Function::cuMemHostAlloc, code)?;
        Ok(memory)
    }

    fn set(&self, stream: &StreamRef, value: u32) -> Result<()> {
        let set = self.context.driver().symbols().cuMemsetD32Async;
        // SAFETY: so many words of the device; the stream is of the context.
        let code = unsafe { set(self.device, value, WORDS, stream.as_raw()) };
        raw(Function::cuMemsetD32Async, code)
    }

    /// Has the stream copy the words to a row of the host's.
    fn read(&self, stream: &StreamRef, row: usize) -> Result<()> {
        let copy = self.context.driver().symbols().cuMemcpyDtoHAsync_v2;
        let row = self.host.cast::<u32>().wrapping_add(row % ROWS * WORDS);
        // SAFETY: both have so many words, and live until the context is done: see `work`.
        let code = unsafe { copy(row.cast(), self.device, 4 * WORDS, stream.as_raw()) };
        raw(Function::cuMemcpyDtoHAsync_v2, code)
    }

    /// A row that no stream writes any more.
    fn row(&self, row: usize) -> [u32; WORDS] {
        let row = self.host.cast::<u32>().wrapping_add(row % ROWS * WORDS);
        // SAFETY: memory of that length, of which the caller has waited for what wrote it.
        std::array::from_fn(|word| unsafe { row.add(word).read_volatile() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Ok(_current) = self.context.make_current() else { return };
        let symbols = self.context.driver().symbols();
        // SAFETY: allocated above, freed once; all work has ended, or the context has failed.
        unsafe {
            if self.device != 0 {
                let _ = (symbols.cuMemFree_v2)(self.device);
            }
            if !self.host.is_null() {
                let _ = (symbols.cuMemFreeHost)(self.host);
            }
        }
    }
}

struct Worker<'a> {
    generation: &'a Generation,
    clock: &'a Clock,
    totals: &'a Totals,
    random: Random,
    context: Context,
    events: Vec<Arc<Event>>,
    streams: Vec<Arc<Stream>>,
    timelines: Vec<Timeline>,
    host: Option<HostTimeline>,
    value: u32,
    // Last: its drop waits for the streams' work.
    memory: Memory,
}

/// Works until the generation ends.
pub fn work(generation: &Generation, number: usize, clock: &Clock, totals: &Totals) {
    let mut random = Random::new(generation.seed ^ (number as u64) << 32);
    let context = generation.context.clone();
    let memory = match clock.time("allocations", || Memory::new(&context)) {
        Ok(memory) => memory,
        Err(error) if generation.expects(error.code()) => return,
        Err(error) => panic!("no memory: {error}"),
    };
    random.number();
    let mut worker = Worker {
        generation,
        clock,
        totals,
        random,
        context,
        events: Vec::new(),
        streams: Vec::new(),
        timelines: Vec::new(),
        host: None,
        value: number as u32,
        memory,
    };
    let operations = operations();
    while !generation.ends() {
        let (name, run) = operations[worker.random.below(operations.len())];
        totals.operations.fetch_add(1, Ordering::Relaxed);
        match run(&mut worker) {
            Ok(()) => {}
            Err(error) if generation.expects(error.code()) => {
                totals.refused.fetch_add(1, Ordering::Relaxed);
                // What was put into streams before is not to meet what comes.
                worker.drain();
            }
            // It has failed meanwhile.
            Err(error) => panic!("{name}: {error}"),
        }
    }
    // Whatever comes of it, nothing is written to the memory any more after this.
    worker.drain();
    let Worker { events, streams, timelines, host, memory, .. } = worker;
    clock.time("drops at the end", || drop((events, timelines, host, streams)));
    clock.time("the drop of memory", || drop(memory));
}

type Operation<'a> = (&'static str, fn(&mut Worker<'a>) -> cuda_timelines::Result<()>);

const fn operations<'a>() -> [Operation<'a>; 25] {
    [
        ("an event is made", |worker| Ok(worker.make_event()?)),
        ("an event is dropped", |worker| Ok(worker.drop_event()?)),
        ("a stream is made", |worker| Ok(worker.make_stream()?)),
        ("a stream is dropped", |worker| Ok(worker.drop_stream()?)),
        ("a record", |worker| Ok(worker.record()?)),
        ("a record", |worker| Ok(worker.record()?)),
        ("a wait", |worker| Ok(worker.wait()?)),
        ("a wait", |worker| Ok(worker.wait()?)),
        ("a query", |worker| Ok(worker.query()?)),
        ("a synchronization", |worker| Ok(worker.synchronize()?)),
        ("an elapsed time", |worker| Ok(worker.elapsed()?)),
        ("a pooled event", |worker| Ok(worker.pooled()?)),
        ("a future", |worker| Ok(worker.awaits()?)),
        ("data by events", |worker| Ok(worker.data_by_events()?)),
        ("data by a stream's wait", |worker| Ok(worker.data_by_streams()?)),
        ("data by a timeline", Worker::data_by_timeline),
        ("data by a graph", |worker| Ok(worker.data_by_graph()?)),
        ("host functions", |worker| Ok(worker.host_functions()?)),
        ("events of others", |worker| Ok(worker.share()?)),
        ("a lazy event", |worker| Ok(worker.lazy()?)),
        ("a timer", |worker| Ok(worker.timer()?)),
        ("an export", |worker| Ok(worker.export()?)),
        ("the current stream", |worker| Ok(worker.current_stream()?)),
        ("a timeline of the host", Worker::host_timeline),
        ("a timeline in a file", Worker::timeline_in_file),
    ]
}

impl Worker<'_> {
    fn stream(&mut self) -> Result<Arc<Stream>> {
        if self.streams.len() < 2 {
            self.make_stream()?;
        }
        if self.streams.is_empty() {
            self.make_stream()?;
        }
        Ok(Arc::clone(&self.streams[self.random.below(self.streams.len())]))
    }

    /// Two streams that are not the same, for data.
    fn two(&mut self) -> Result<[Arc<Stream>; 2]> {
        while self.streams.len() < 2 {
            self.make_stream()?;
        }
        let first = self.random.below(self.streams.len());
        let second = (first + 1 + self.random.below(self.streams.len() - 1)) % self.streams.len();
        Ok([first, second].map(|at| Arc::clone(&self.streams[at])))
    }

    fn event(&mut self) -> Result<Arc<Event>> {
        if self.events.is_empty() {
            self.make_event()?;
        }
        Ok(Arc::clone(&self.events[self.random.below(self.events.len())]))
    }

    fn make_event(&mut self) -> Result<()> {
        let flags = [
            EventFlags::empty(),
            EventFlags::TIMING,
            EventFlags::BLOCKING_SYNC,
            EventFlags::INTERPROCESS,
        ][self.random.below(4)];
        let event = self.clock.time("Event::new", || Event::new(&self.context, flags))?;
        if self.events.len() < 24 {
            self.events.push(Arc::new(event));
        } else {
            let at = self.random.below(self.events.len());
            let old = std::mem::replace(&mut self.events[at], Arc::new(event));
            self.clock.time("the drop of an event", || drop(old));
        }
        Ok(())
    }

    fn drop_event(&mut self) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let event = self.events.swap_remove(self.random.below(self.events.len()));
        match Arc::try_unwrap(event) {
            Ok(event) if self.random.one_in(2) => self.clock.time("Event::close", || event.close()),
            event => {
                self.clock.time("the drop of an event", || drop(event));
                Ok(())
            }
        }
    }

    fn make_stream(&mut self) -> Result<()> {
        let options = StreamOptions::new().priority_clamped(self.random.below(4) as i32 - 2);
        let stream = self.clock.time("Stream::new", || Stream::new(&self.context, options))?;
        if self.streams.len() < 4 {
            self.streams.push(Arc::new(stream));
        }
        Ok(())
    }

    fn drop_stream(&mut self) -> Result<()> {
        if self.streams.len() > 2 {
            let stream = self.streams.swap_remove(self.random.below(self.streams.len()));
            self.clock.time("the drop of a stream", || drop(stream));
        }
        Ok(())
    }

    fn record(&mut self) -> Result<()> {
        let (event, stream) = (self.event()?, self.stream()?);
        self.clock.time("record", || event.record(&stream))
    }

    fn wait(&mut self) -> Result<()> {
        let (event, stream) = (self.event()?, self.stream()?);
        self.clock.time("wait_event", || stream.wait_event(&event))?;
        if self.random.one_in(4) {
            let other = self.stream()?;
            self.clock.time("wait_stream", || stream.wait_stream(&other))?;
        }
        Ok(())
    }

    fn query(&mut self) -> Result<()> {
        let (event, stream) = (self.event()?, self.stream()?);
        let _ = self.clock.time("query", || event.query())?;
        self.clock.time("query of a stream", || stream.query()).map(drop)
    }

    fn synchronize(&mut self) -> Result<()> {
        let event = self.event()?;
        match self.random.below(4) {
            0 => self.clock.time("synchronize", || event.synchronize()),
            1 => {
                let limit = Duration::from_micros(self.random.number() % 300);
                let call = || event.synchronize_timeout(limit);
                self.clock.time("synchronize_timeout", call).map(drop)
            }
            2 => {
                let stream = self.stream()?;
                self.clock.time("synchronize of a stream", || stream.synchronize())?;
                assert!(self.failed() || !event_of_idle(&stream)?, "an idle stream is done");
                Ok(())
            }
            _ if self.random.one_in(8) => {
                let Ok(_alone) = self.generation.captures.try_write() else { return Ok(()) };
                self.clock.time("synchronize of the context", || self.context.synchronize())
            }
            _ => Ok(()),
        }
    }

    /// Waits for all work of the context; if that has failed, there is none any more.
    fn drain(&self) {
        let _alone = self.generation.captures.write().expect("no panic");
        let _ = self.clock.time("synchronize of the context", || self.context.synchronize());
    }

    fn failed(&self) -> bool {
        self.generation.failed.load(Ordering::Acquire)
    }

    fn elapsed(&mut self) -> Result<()> {
        let stream = self.stream()?;
        let [start, middle, end] = [(); 3].map(|()| Event::new(&self.context, EventFlags::TIMING));
        let (start, middle, end) = (start?, middle?, end?);
        for event in [&start, &middle, &end] {
            event.record(&stream)?;
        }
        self.clock.time("synchronize", || end.synchronize())?;
        let elapsed =
            |from: &Event, to: &Event| self.clock.time("elapsed_ms", || from.elapsed_ms(to));
        let (whole, first, second) =
            (elapsed(&start, &end)?, elapsed(&start, &middle)?, elapsed(&middle, &end)?);
        assert!(first >= 0.0 && second >= 0.0, "{first} ms, {second} ms");
        assert!((whole - first - second).abs() < 0.01, "{whole} ms, {first} ms, {second} ms");
        self.looked();
        Ok(())
    }

    fn pooled(&mut self) -> Result<()> {
        let stream = self.stream()?;
        let event =
            self.clock.time("take from the pool", || self.generation.pool.record_event(&stream))?;
        match self.random.below(3) {
            0 => self.clock.time("a wait for a pooled event", || event.synchronize()),
            1 => self.clock.time("a future of a pooled event", || block_on(event.completion())),
            _ => {
                let other = self.stream()?;
                self.clock.time("wait_event", || other.wait_event(&event))
            }
        }
    }

    fn awaits(&mut self) -> Result<()> {
        let stream = self.stream()?;
        if self.random.one_in(2) {
            let future = stream.completion()?;
            return self.clock.time("a completion", || block_on(future));
        }
        let event =
            Arc::new(self.clock.time("record_event", || stream.record_event(EventFlags::empty()))?);
        let future = cuda_timelines::Completion::new(Arc::clone(&event));
        if self.random.one_in(3) {
            drop(future);
            return Ok(());
        }
        self.clock.time("a future", || block_on(future))?;
        assert_eq!(self.clock.time("query", || event.query())?, Progress::Done);
        self.looked();
        Ok(())
    }

    fn next_value(&mut self) -> u32 {
        self.value = self.value.wrapping_add(0x10001);
        self.value
    }

    fn looked(&self) {
        self.totals.checked.fetch_add(1, Ordering::Relaxed);
    }

    #[track_caller]
    fn is(&self, row: usize, value: u32) {
        let found = self.memory.row(row);
        assert!(found.iter().all(|word| *word == value), "{value:#x} is expected: {found:x?}");
        self.looked();
    }

    /// One stream writes, another reads, and writes of the next round wait for the read.
    fn data_by_events(&mut self) -> Result<()> {
        let [writer, reader] = self.two()?;
        let (full, empty) = (self.event_of(&[])?, self.event_of(&[])?);
        let first = self.value.wrapping_add(0x10001);
        for row in 0..ROWS {
            let value = self.next_value();
            self.clock.time("memset", || self.memory.set(&writer, value))?;
            self.clock.time("record", || full.record(&writer))?;
            self.clock.time("wait_event", || reader.wait_event(&full))?;
            self.clock.time("copy", || self.memory.read(&reader, row))?;
            self.clock.time("record", || empty.record(&reader))?;
            self.clock.time("wait_event", || writer.wait_event(&empty))?;
        }
        self.clock.time("synchronize", || empty.synchronize())?;
        for row in 0..ROWS {
            self.is(row, first.wrapping_add(0x10001 * row as u32));
        }
        Ok(())
    }

    fn event_of(&self, _: &[()]) -> Result<Event> {
        self.clock.time("Event::new", || Event::new(&self.context, EventFlags::empty()))
    }

    fn data_by_streams(&mut self) -> Result<()> {
        let [writer, reader] = self.two()?;
        let value = self.next_value();
        self.memory.set(&writer, value)?;
        self.clock.time("wait_stream", || reader.wait_stream(&writer))?;
        self.memory.read(&reader, 0)?;
        self.clock.time("wait_stream", || writer.wait_stream(&reader))?;
        self.memory.set(&writer, 0)?;
        self.clock.time("synchronize of a stream", || writer.synchronize())?;
        self.is(0, value);
        Ok(())
    }

    fn timeline(&mut self) -> cuda_timelines::Result<Timeline> {
        if self.timelines.len() < 2 || self.random.one_in(16) {
            let stream = self.stream()?;
            return self.clock.time("Timeline::new", || Timeline::new(stream));
        }
        Ok(self.timelines.swap_remove(self.random.below(self.timelines.len())))
    }

    fn data_by_timeline(&mut self) -> cuda_timelines::Result<()> {
        let timeline = self.timeline()?;
        let value = self.next_value();
        let other = self.stream()?;
        // Nothing of an earlier round is under way: it was waited for.
        self.memory.set(timeline.stream(), value)?;
        let point = self.clock.time("signal", || timeline.signal())?;
        assert!(timeline.submitted()? >= point.value());
        self.clock.time("wait_point", || other.wait_point(point))?;
        self.memory.read(&other, 1)?;
        let event = self.event_of(&[])?;
        event.record(&other)?;
        match self.random.below(3) {
            0 => self.clock.time("Point::wait", || point.wait())?,
            1 => self.clock.time("a future of a point", || block_on(point.into_future()))?,
            _ => {
                let spun =
                    self.clock.time("Point::spin_timeout", || point.spin_timeout(PATIENCE))?;
                assert_eq!(spun, Progress::Done);
            }
        }
        assert!(point.is_done() && timeline.completed() >= point.value());
        self.clock.time("synchronize", || event.synchronize())?;
        self.is(1, value);
        if self.timelines.len() < 4 && !self.random.one_in(8) {
            self.timelines.push(timeline);
        } else if self.random.one_in(4) {
            self.clock.time("poison", || timeline.poison())?;
        } else {
            self.clock.time("the drop of a timeline", || drop(timeline));
        }
        Ok(())
    }

    /// A capture that forks and joins, and launches of what comes of it.
    fn data_by_graph(&mut self) -> Result<()> {
        let [first, second] = self.two()?;
        let value = self.next_value();
        let under_way = self.generation.captures.read().expect("no panic");
        let (fork, join) = (self.event_of(&[])?, self.event_of(&[])?);
        // SAFETY: no other thread has these streams.
        let capture = self.clock.time("Capture::begin", || unsafe {
            Capture::begin(&first, CaptureMode::ThreadLocal)
        })?;
        self.memory.set(&first, value)?;
        fork.record(&first)?;
        second.wait_event(&fork)?;
        self.memory.read(&second, 2)?;
        join.record(&second)?;
        first.wait_event(&join)?;
        self.memory.set(&first, 0)?;
        let graph = self.clock.time("Capture::end", || capture.end())?;
        drop(under_way);
        let exec = self.clock.time("instantiate", || graph.instantiate())?;
        for _ in 0..=self.random.below(3) {
            self.clock.time("launch", || exec.launch(&second))?;
        }
        self.clock.time("synchronize of a stream", || second.synchronize())?;
        self.is(2, value);
        self.clock.time("the drop of a graph", || drop((graph, exec)));
        Ok(())
    }

    /// Functions of one stream run in order.
    fn host_functions(&mut self) -> Result<()> {
        let stream = self.stream()?;
        let (last, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let many = 1 + self.random.below(6) as u64;
        for number in 1..=many {
            let (last, wrong) = (Arc::clone(&last), Arc::clone(&wrong));
            let function = move || {
                let before = last.swap(number, Ordering::Relaxed);
                wrong.fetch_add(u64::from(before + 1 != number), Ordering::Relaxed);
            };
            self.clock.time("launch_host_function", || stream.launch_host_function(function))?;
        }
        self.clock.time("synchronize of a stream", || stream.synchronize())?;
        if !self.failed() {
            assert_eq!(
                (last.load(Ordering::Relaxed), wrong.load(Ordering::Relaxed)),
                (many, 0),
                "host functions run in order"
            );
        }
        self.looked();
        Ok(())
    }

    /// Gives an event to the others, and takes one of theirs.
    fn share(&mut self) -> Result<()> {
        let mine = self.event()?;
        let at = self.random.below(32);
        let theirs = {
            let mut table = self.generation.table.lock().expect("no panic");
            match table.get_mut(at) {
                Some(place) => Some(std::mem::replace(place, mine)),
                None => {
                    table.push(mine);
                    None
                }
            }
        };
        let Some(theirs) = theirs else { return Ok(()) };
        let stream = self.stream()?;
        self.clock.time("wait_event", || stream.wait_event(&theirs))?;
        let _ = self.clock.time("query", || theirs.query())?;
        self.clock.time("record", || theirs.record(&stream))?;
        self.events.push(theirs);
        if self.events.len() > 32 {
            self.events.truncate(24);
        }
        Ok(())
    }

    fn lazy(&mut self) -> Result<()> {
        let (stream, other) = (self.stream()?, self.stream()?);
        let event = LazyEvent::new(EventFlags::TIMING)?;
        self.clock.time("wait for a lazy event", || event.wait(&stream))?;
        self.clock.time("record of a lazy event", || event.record(&stream))?;
        self.clock.time("wait for a lazy event", || event.wait_recorded(&other))?;
        self.clock.time("a lazy event", || event.synchronize())
    }

    fn timer(&mut self) -> Result<()> {
        let stream = self.stream()?;
        let timer = self.clock.time("Timer::start", || Timer::start(&stream))?;
        let timing = self.clock.time("Timer::stop", || timer.stop())?;
        self.clock.time("Timing::synchronize", || timing.synchronize()).map(drop)
    }

    /// A descriptor goes and comes, and is refused here.
    fn export(&mut self) -> Result<()> {
        let event = Event::new(&self.context, EventFlags::INTERPROCESS)?;
        let descriptor = self.clock.time("ipc_descriptor", || event.ipc_descriptor())?;
        let same = IpcEventDescriptor::from_bytes(&descriptor.to_bytes())?;
        assert_eq!(same, descriptor.to_string().parse()?);
        assert_eq!(same, descriptor);
        // SAFETY: it is this process's, which is refused.
        let own = unsafe { Event::from_ipc_descriptor(&self.context, &same) };
        match own.expect_err("it is this process's own") {
            Error::Descriptor(DescriptorError::SameProcess { .. }) => Ok(()),
            error => Err(error),
        }
    }

    fn current_stream(&mut self) -> Result<()> {
        let stream = self.stream()?;
        let _scope = StreamScope::enter(Arc::clone(&stream));
        let current = current_stream(&self.context);
        assert!(current == **stream);
        self.clock.time("query of a stream", || current.query()).map(drop)
    }

    fn host_timeline(&mut self) -> cuda_timelines::Result<()> {
        let stream = self.stream()?;
        if self.host.is_none() {
            self.host =
                Some(self.clock.time("HostTimeline::new", || HostTimeline::new(&self.context))?);
        }
        let Some(host) = &self.host else { return Ok(()) };
        let point = self.clock.time("a signal of the host", || host.signal())?;
        self.clock.time("wait_point", || stream.wait_point(point))?;
        self.clock.time("synchronize of a stream", || stream.synchronize())?;
        assert!(point.is_done());
        if self.random.one_in(8) {
            self.host = None;
        }
        self.looked();
        Ok(())
    }

    fn timeline_in_file(&mut self) -> cuda_timelines::Result<()> {
        if !self.random.one_in(5000) {
            return Ok(());
        }
        self.totals.kept.fetch_add(1, Ordering::Relaxed);
        let file = self.clock.time("TimelineFile::writable", || {
            if self.value.is_multiple_of(2) {
                TimelineFile::writable(&self.context)
            } else {
                TimelineFile::new(&self.context)
            }
        })?;
        let stream = self.stream()?;
        let timeline = self.clock.time("Timeline::shared", || Timeline::shared(stream, &file))?;
        for _ in 0..self.random.below(4) {
            let point = self.clock.time("signal", || timeline.signal())?;
            self.clock.time("Point::wait", || point.wait())?;
        }
        self.clock.time("the drop of a file", || drop((timeline, file)));
        Ok(())
    }
}

/// Whether an event that is recorded in an idle stream is not done.
fn event_of_idle(stream: &Stream) -> Result<bool> {
    Ok(stream.query()? == Progress::Pending)
}
