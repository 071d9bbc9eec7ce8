//! The process that exported an event, so that an importer can see whether it still runs.

use core::fmt;
use core::time::Duration;

use crate::clock::HostClock;
use crate::error::{Error, Result};
use crate::event::EventRef;
use crate::ipc::IpcEventDescriptor;
use crate::ipc::origin::Origin;
use crate::progress::Progress;
use crate::timeout;

#[cfg(doc)]
use crate::sys::calls::*;

/// The state of the process that exported an event, as far as it is known.
///
/// `Running` may be outdated at once, because the process may end at any time. `Ended` is final.
///
/// ```
/// use cuda_events::ipc::{ExporterProcess, ExporterState};
/// use cuda_events::{Context, Device, Event, EventFlags};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let event = Event::new(&context, EventFlags::INTERPROCESS)?;
/// // The importer gets this from another process.
/// let descriptor = event.ipc_descriptor()?;
/// let exporter = ExporterProcess::of(&descriptor);
/// assert_eq!(exporter.pid(), Some(std::process::id())); // here the two are one process
/// match exporter.state() {
///     ExporterState::Running => println!("wait, but not forever"),
///     ExporterState::Ended => println!("do not wait"),
///     ExporterState::Unknown => println!("wait with a timeout"),
/// }
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "the exporter may have ended"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExporterState {
    /// The process runs, as far as this process can see.
    Running,
    /// The process has ended, or has replaced itself by another program (`exec`). Its pending
    /// records never complete.
    Ended,
    /// This process cannot see the exporter. Wait with a limit.
    Unknown,
}

/// The process that exported an event, for an importer that must not wait forever.
///
/// If a process ends before its record completes, the record stays pending forever. A stream that
/// waits for the record never continues, and the [last
/// drop](crate::Context#dropping-the-last-share) of the context blocks. So wait on the host first,
/// with [`wait_for`](Self::wait_for). Let a stream wait only for a record that the host has seen
/// done:
///
/// ```
/// use std::time::Duration;
///
/// use cuda_events::ipc::ExporterProcess;
/// use cuda_events::{Context, Error, Event, IpcEventDescriptor, Progress, Stream};
///
/// /// Makes later work in `stream` run after the exporter's work; false if that is impossible.
/// fn follow(
///     context: &Context,
///     stream: &Stream,
///     descriptor: &IpcEventDescriptor,
/// ) -> cuda_events::Result<bool> {
///     // At once: later the exporter may no longer be found.
///     let exporter = ExporterProcess::of(descriptor);
///     // SAFETY: the descriptor comes from our own exporter, which keeps the event until this
///     // process reports that it is done.
///     let event = unsafe { Event::from_ipc_descriptor(context, descriptor) }?;
///     match exporter.wait_for(&event, Duration::from_secs(60)) {
///         Ok(Progress::Done) => {}
///         // A minute is over, or the exporter has ended.
///         Ok(Progress::Pending) | Err(Error::ExporterGone) => return Ok(false),
///         Err(error) => return Err(error),
///     }
///     // The work is done, so this cannot block. It makes the exporter's writes visible to the
///     // stream.
///     stream.wait_event(&event)?;
///     Ok(true)
/// }
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// # let context = Context::primary(cuda_events::Device::new(driver, 0)?)?;
/// # let stream = Stream::new(&context, cuda_events::StreamOptions::new())?;
/// # let event = Event::new(&context, cuda_events::EventFlags::INTERPROCESS)?;
/// # let descriptor = event.ipc_descriptor()?;
/// # assert!(follow(&context, &stream, &descriptor).is_err(), "here the two are one process");
/// # assert!(ExporterProcess::of(&descriptor).wait_for(&event, Duration::MAX)?.is_done());
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// A stream may wait for a pending event only if the exporter cannot end before this process, or if
/// both end together.
///
/// # Limits of detection
///
/// On Linux, [`of`](Self::of) opens a file of the exporter in `/proc`, and the value keeps the file
/// open. Later calls open no other file.
///
/// * If the exporter has ended and another process has got its process id, the state is `Ended`:
///   the descriptor contains the exporter's start time.
/// * The end of the process is always detected, even before its parent has waited for it. A process
///   whose first thread has ended while others run counts as running.
/// * If the exporter replaces itself by another program (`exec`) after [`of`](Self::of), the state
///   is `Ended` only if this process may read the exporter's `/proc/PID/pagemap`. Otherwise the
///   state is `Running`.
/// * While the process runs, the failure or the end of its CUDA context is not detected.
/// * Process ids and start times are valid only in one pid namespace and one time namespace, on one
///   system since its last boot. The descriptor names the namespaces and the boot. If this process
///   has others, because it is in another container, the state is
///   [`Unknown`](ExporterState::Unknown): wait with a limit.
///
/// On Windows, [`of`](Self::of) opens a handle of the process, and the value keeps it. The end of
/// the process is always detected, even if another process has got its process id. If the process
/// cannot be opened, because it belongs to another user or container, the state is
/// [`Unknown`](ExporterState::Unknown).
///
/// On other platforms the state is [`Unknown`](ExporterState::Unknown).
pub struct ExporterProcess {
    pid: Option<u32>,
    /// None if there is no process to watch.
    watch: Option<watch::Watch>,
}

/// Prints the process id and the current state.
impl fmt::Debug for ExporterProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExporterProcess")
            .field("pid", &self.pid)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// The time within which the end of the exporter is noticed.
const LOOK: Duration = Duration::from_millis(100);

impl ExporterProcess {
    /// Finds the process that exported the descriptor's event.
    ///
    /// Call it as soon as you have the descriptor, before you open it. It makes no driver call. The
    /// state is [`Unknown`](ExporterState::Unknown) forever if
    ///
    /// * this process may not see the exporter's process,
    /// * the descriptor does not contain the exporter ([`IpcEventDescriptor::from_raw`]) or comes
    ///   from another namespace,
    /// * `/proc` cannot be read, or this process can open no more files.
    pub fn of(descriptor: &IpcEventDescriptor) -> Self {
        descriptor.origin.map_or(Self { pid: None, watch: None }, |origin| Self::of_origin(&origin))
    }

    /// Finds the process of an [`Origin`], which has an example.
    ///
    /// The rules are those of [`of`](Self::of). It makes no driver call.
    pub fn of_origin(origin: &Origin) -> Self {
        let started = origin.process.comparable_start();
        let watch = started.and_then(|started| watch::Watch::of(origin.pid, started));
        Self { pid: Some(origin.pid), watch }
    }

    /// Returns the exporter's process id, if the descriptor contains it.
    ///
    /// [`ExporterState`] has an example.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Returns the current state; [`Ended`](ExporterState::Ended) only if that is certain.
    ///
    /// It makes at most one system call, which opens no file. It makes no driver call.
    /// [`ExporterState`] has an example.
    pub fn state(&self) -> ExporterState {
        self.watch.as_ref().map_or(ExporterState::Unknown, watch::Watch::state)
    }

    /// Waits on the host until the event's last record is done, the exporter has ended, or the time
    /// is up.
    ///
    /// [`Progress::Pending`] means that the time is up. The exporter is checked ten times a second.
    /// If the exporter completed the record before it ended, the result is [`Progress::Done`].
    ///
    /// Driver calls: [`cuEventQuery`], as often as in
    /// [`synchronize_timeout`](EventRef::synchronize_timeout).
    ///
    /// # Errors
    ///
    /// * [`Error::ExporterGone`] if the exporter has ended without completing the record.
    /// * The errors of [`EventRef::query`].
    pub fn wait_for(&self, event: &EventRef, timeout: Duration) -> Result<Progress> {
        wait(event.driver().clock(), timeout, || self.state(), || event.query())
    }
}

fn wait(
    clock: Option<&dyn HostClock>,
    timeout: Duration,
    mut state: impl FnMut() -> ExporterState,
    query: impl FnMut() -> Result<Progress>,
) -> Result<Progress> {
    let (mut looked, mut ended) = (None, false);
    // The state is read before the event is queried: an exporter may complete the record and end
    // between the two, and then the query must be the later one.
    let has_ended = || {
        let now = timeout::now();
        if looked.is_some_and(|looked| now - looked < LOOK) {
            return false;
        }
        looked = Some(now);
        ended = state() == ExporterState::Ended;
        ended
    };
    match timeout::poll_until(clock, timeout, has_ended, query)? {
        Progress::Pending if ended => Err(Error::ExporterGone),
        progress => Ok(progress),
    }
}

#[cfg(target_os = "linux")]
mod watch {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;

    use super::ExporterState;
    use crate::driver::process::Status;

    /// An open file of `/proc`. It stays that of one process, even if another process gets its id
    /// later.
    pub(super) enum Watch {
        /// The page map of the process's memory. The file is bound to that memory: it is empty as
        /// soon as the process has given the memory up, at its end or by an exec, and the CUDA
        /// context with it.
        Memory(File),
        /// The status line. A process that is gone has none.
        Status(File),
        /// No file: another process has the id.
        Gone,
    }

    impl Watch {
        /// None if this process sees no process with this id.
        pub(super) fn of(pid: u32, started: u64) -> Option<Self> {
            let Some((status, at)) = File::open(format!("/proc/{pid}/stat"))
                .ok()
                .and_then(|status| started_at(&status).map(|at| (status, at)))
            else {
                // Either it has ended and its parent has waited for it, or it cannot be seen.
                return is_unused(pid).then_some(Self::Gone);
            };
            if at != started {
                return Some(Self::Gone);
            }
            let memory = File::open(format!("/proc/{pid}/pagemap")).ok().map(Self::Memory);
            // A process whose first thread has ended has a page map that is empty from the start.
            let memory = memory.filter(|memory| memory.state() == ExporterState::Running);
            // The page map belongs to the same process if the id was not reused before it was
            // opened. While the status can be read, it is not.
            let memory = memory.filter(|_| started_at(&status).is_some());
            Some(memory.unwrap_or(Self::Status(status)))
        }

        pub(super) fn state(&self) -> ExporterState {
            match self {
                Self::Memory(file) => of_memory(file.read_at(&mut [0; 8], 0)),
                Self::Status(file) => {
                    let mut line = [0; LINE];
                    of_status(read(file, &mut line))
                }
                Self::Gone => ExporterState::Ended,
            }
        }
    }

    /// Whether no process has this id, which the system also reports for processes that this one
    /// may not see.
    #[allow(unsafe_code)]
    fn is_unused(pid: u32) -> bool {
        const ESRCH: i32 = 3;
        unsafe extern "C" {
            fn kill(pid: i32, signal: i32) -> i32;
        }
        // Zero and below would name groups of processes.
        let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) else { return false };
        // SAFETY: the declaration is that of the C library, and signal 0 is sent to nobody.
        let refused = unsafe { kill(pid, 0) } != 0;
        refused && io::Error::last_os_error().raw_os_error() == Some(ESRCH)
    }

    /// More than the longest possible line.
    const LINE: usize = 2048;

    fn read<'a>(file: &File, line: &'a mut [u8; LINE]) -> io::Result<&'a [u8]> {
        let length = file.read_at(line, 0)?;
        Ok(line.get(..length).unwrap_or_default())
    }

    /// None if the process is gone, or the file cannot be read.
    fn started_at(status: &File) -> Option<u64> {
        let mut line = [0; LINE];
        Some(Status::of(read(status, &mut line).ok()?)?.started)
    }

    /// The state, from the number of bytes read of the first entry of the page map.
    fn of_memory(read: io::Result<usize>) -> ExporterState {
        match read {
            Ok(0) => ExporterState::Ended,
            Ok(_) => ExporterState::Running,
            Err(_) => ExporterState::Unknown,
        }
    }

    /// The state, from the line of `/proc/PID/stat`.
    fn of_status(line: io::Result<&[u8]>) -> ExporterState {
        /// No such process: its parent has waited for it, and another process may have the id by
        /// now.
        const ESRCH: i32 = 3;
        let line = match line {
            Ok(line) => line,
            Err(error) if error.raw_os_error() == Some(ESRCH) => return ExporterState::Ended,
            Err(_) => return ExporterState::Unknown,
        };
        match Status::of(line) {
            // The first thread has ended, and the parent has not waited for it yet. If other
            // threads run, the count of threads is more than one.
            Some(Status { state: 'Z' | 'X', threads, .. }) if threads < 2 => ExporterState::Ended,
            Some(_) => ExporterState::Running,
            None => ExporterState::Unknown,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn line(state: &str, threads: u32) -> String {
            // As the kernel writes it, up to the field after the start time.
            format!(
                "4711 (exporter) {state} 1 4711 4711 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 {threads} 0 \
                    88 99\n"
            )
        }

        #[test]
        fn a_status_line_shows_whether_it_runs() {
            let state = |state, threads| of_status(Ok(line(state, threads).as_bytes()));
            for running in ["R", "S", "D", "T", "t", "I"] {
                for threads in [1, 2, 77] {
                    assert_eq!(state(running, threads), ExporterState::Running);
                }
            }
            for ended in ["Z", "X"] {
                assert_eq!(state(ended, 1), ExporterState::Ended);
                assert_eq!(state(ended, 0), ExporterState::Ended);
                assert_eq!(state(ended, 2), ExporterState::Running, "its first thread has ended");
            }
        }

        /// Its parent has waited for it, so that nothing in `/proc` shows it any more.
        #[test]
        fn a_process_that_is_gone_has_ended() {
            let mut child =
                std::process::Command::new("/bin/sh").arg("-c").arg(":").spawn().unwrap();
            child.wait().unwrap();
            let watch = Watch::of(child.id(), 1).expect("it is certain");
            assert_eq!(watch.state(), ExporterState::Ended);
            assert!(!is_unused(std::process::id()) && !is_unused(1) && !is_unused(0));
            assert!(!is_unused(u32::MAX));
        }

        #[test]
        fn the_unreadable_is_no_end() {
            let whole = line("Z", 1);
            for length in 0..whole.find(" 99").unwrap() {
                assert_eq!(
                    of_status(Ok(&whole.as_bytes()[..length])),
                    ExporterState::Unknown,
                    "{length} bytes"
                );
            }
            for code in [1, 4, 5, 9, 12, 13, 23, 24] {
                let error = || io::Error::from_raw_os_error(code);
                assert_eq!(of_status(Err(error())), ExporterState::Unknown);
                assert_eq!(of_memory(Err(error())), ExporterState::Unknown);
            }
            assert_eq!(of_status(Err(io::Error::from_raw_os_error(3))), ExporterState::Ended);
            assert_eq!(
                (of_memory(Ok(0)), of_memory(Ok(8))),
                (ExporterState::Ended, ExporterState::Running)
            );
        }
    }
}

#[cfg(windows)]
mod watch {
    use super::ExporterState;
    use crate::driver::process::Watched;

    pub(super) enum Watch {
        Process(Watched),
        /// Another process has the id.
        Gone,
    }

    impl Watch {
        /// None if this process sees no process with this id.
        pub(super) fn of(pid: u32, started: u64) -> Option<Self> {
            Some(Watched::find(pid, started).ok()?.map_or(Self::Gone, Self::Process))
        }

        pub(super) fn state(&self) -> ExporterState {
            let Self::Process(process) = self else { return ExporterState::Ended };
            match process.has_ended() {
                Some(true) => ExporterState::Ended,
                Some(false) => ExporterState::Running,
                None => ExporterState::Unknown,
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
mod watch {
    use super::ExporterState;

    /// No process can be watched on this platform.
    pub(super) enum Watch {}

    impl Watch {
        pub(super) fn of(_pid: u32, _started: u64) -> Option<Self> {
            None
        }

        pub(super) fn state(&self) -> ExporterState {
            match *self {}
        }
    }
}

static_assertions::assert_impl_all!(ExporterProcess: Send, Sync);

#[cfg(test)]
mod tests {
    use core::cell::RefCell;

    use super::*;
    use ExporterState::{Ended, Running, Unknown};
    use Progress::{Done, Pending};

    /// The checks of a wait: of the exporter's state or of the event, and the time of each.
    type Looks = Vec<(&'static str, Duration)>;

    /// The checks of a wait with this limit that finds these states and progresses, one after the
    /// other. The last of each stays.
    fn looks(
        timeout: u64,
        states: &[ExporterState],
        progress: &[Progress],
    ) -> (Result<Progress>, Looks) {
        fn next<T: Copy>(found: &mut &[T]) -> T {
            let first = found[0];
            if found.len() > 1 {
                *found = &found[1..];
            }
            first
        }
        let (started, looks) = (timeout::now(), RefCell::new(Vec::new()));
        let (mut states, mut progress) = (states, progress);
        let result = wait(
            None,
            Duration::from_millis(timeout),
            || {
                looks.borrow_mut().push(("state", timeout::now() - started));
                next(&mut states)
            },
            || {
                looks.borrow_mut().push(("event", timeout::now() - started));
                Ok(next(&mut progress))
            },
        );
        (result, looks.into_inner())
    }

    /// The times at which a wait checked the exporter, in milliseconds.
    fn at_the_exporter(looks: &Looks) -> Vec<u128> {
        looks.iter().filter(|look| look.0 == "state").map(|look| look.1.as_millis()).collect()
    }

    #[test]
    fn a_wait_looks_ten_times_a_second() {
        for (timeout, expected) in [(250, &[0, 100, 200][..]), (99, &[0]), (0, &[0])] {
            let (progress, looks) = looks(timeout, &[Running], &[Pending]);
            assert_eq!(progress, Ok(Pending));
            let found = at_the_exporter(&looks);
            // A look is up to a pause late, and so are those after it.
            let close =
                |(found, expected): (&u128, &u128)| (*expected..expected + 4).contains(found);
            assert!(
                found.len() == expected.len() && found.iter().zip(expected).all(close),
                "{found:?}"
            );
            assert_eq!(looks.last(), Some(&("event", Duration::from_millis(timeout))));
        }
    }

    #[test]
    fn a_wait_ends_when_the_exporter_has() {
        let gone = Err(Error::ExporterGone);
        let (progress, found) = looks(999, &[Ended], &[Pending]);
        assert_eq!(
            (progress, found),
            (gone.clone(), vec![("state", Duration::ZERO), ("event", Duration::ZERO)])
        );
        let (progress, found) = looks(999, &[Running, Ended], &[Pending]);
        assert_eq!((progress, at_the_exporter(&found).len()), (gone, 2));
        // The event is looked at once more.
        let [.., exporter, event] = &found[..] else { panic!("{found:?}") };
        assert_eq!((exporter.0, event.0, exporter.1), ("state", "event", event.1));
    }

    #[test]
    fn what_came_before_its_end_is_done() {
        assert_eq!(looks(999, &[Ended], &[Done]).0, Ok(Done));
        let questions = looks(999, &[Running, Ended], &[Pending]).1.len() - 2;
        let found: Vec<_> = (1..questions).map(|_| Pending).chain([Done]).collect();
        assert_eq!(looks(999, &[Running, Ended], &found).0, Ok(Done), "in the last look");
    }

    #[test]
    fn an_unseen_exporter_has_its_time() {
        let (progress, found) = looks(150, &[Unknown], &[Pending]);
        assert_eq!(
            (progress, found.last()),
            (Ok(Pending), Some(&("event", Duration::from_millis(150))))
        );
        assert_eq!(looks(150, &[Running, Unknown], &[Pending, Done]).0, Ok(Done));
    }

    #[test]
    fn an_error_ends_a_wait() {
        let failed = || Err(crate::Error::EndBeforeStart);
        assert_eq!(wait(None, Duration::MAX, || Running, failed), failed());
    }
}
