//! The code of kernels, decoded when a candidate asks for it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::execute::Touch;
use cuda_kernel_access::load::{Limits, Loaded};
use cuda_kernel_access::touch::{Span, Summary, may_touch, summary, surely_touched};

use crate::code::Reason;
use crate::code::image::{Image, LONGEST};
use crate::code::launch::Values;
use crate::code::threads::{Threads, Time};
use crate::lock::{Lock, Rank};

/// The most bytes of a kernel's code, and of the images of its architecture in a fat binary: more would
/// take long.
const CODE: usize = 16 * 16384;
const DECOMPRESSED: u64 = 128 << 20;

/// The processor time for what a kernel does in any launch, and once more for what it does in one. A
/// build for tests is some ten times as slow.
const EVALUATION: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(60),
    false => Duration::from_millis(250),
};

/// The processor time of the calling thread: what it has done does not depend on what else the machine
/// does.
pub(crate) fn thread_time() -> Duration {
    // SAFETY: zero bytes are a time.
    let mut time: libc::timespec = unsafe { core::mem::zeroed() };
    // SAFETY: a place for the time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor time that all of this may take: so much, and a twentieth of the program's time.
const ALLOWANCE: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(3600),
    false => Duration::from_secs(10),
};

/// The decoded kernels that are kept, by the bytes of their code.
const DECODED: usize = 1 << 20;

/// How many words and accesses are kept of the launches that were evaluated.
const EVALUATED: usize = 1 << 17;

/// The code of a kernel that was launched.
#[derive(Debug)]
pub(crate) struct KernelCode {
    /// No other one has it, so that of two that have a handle one after the other each is itself.
    pub(crate) number: u64,
    /// Its name in the image.
    name: String,
    /// As in `sm_90`: 90. Of the device of its first launch.
    architecture: u32,
    image: Option<Arc<Image>>,
    summary: OnceLock<Result<Arc<Summary>, Reason>>,
}

/// What a launch does.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// Accesses that some threads make.
    pub(crate) sure: Vec<Touch>,
    /// All that it may do, if that is known.
    pub(crate) bounds: Result<Bounds, Reason>,
    /// Whether it may wait for other work through memory.
    pub(crate) waits: bool,
    /// What was asked of its threads.
    pub(crate) threads: Threads,
}

#[derive(Debug)]
pub(crate) struct Bounds {
    pub(crate) summary: Arc<Summary>,
    /// Where each access may be.
    pub(crate) spans: Vec<Span>,
}

/// The codes that were decoded last.
static CODES: Lock<VecDeque<(u64, usize, Arc<Code>)>> = Lock::new(Rank::Code, VecDeque::new());

/// Of launches, by their numbers.
type Launches = (HashMap<u64, Result<Arc<Evaluated>, Reason>>, usize);
static LAUNCHES: Lock<Option<Launches>> = Lock::new(Rank::Code, None);

/// The microseconds that were spent.
static SPENT: AtomicU64 = AtomicU64::new(0);

fn spend(time: Duration) {
    SPENT.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
}

/// The time of candidates.
pub(crate) const TIME: Time = Time { is_left: has_time, spend };

fn has_time() -> bool {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    Duration::from_micros(SPENT.load(Ordering::Relaxed)) < ALLOWANCE + begin.elapsed() / 20
}

/// So much more is kept of launches.
pub(crate) fn keeps_more(count: usize) {
    if let Ok(mut all) = LAUNCHES.lock()
        && let Some((_, size)) = all.as_mut()
    {
        *size += count;
    }
}

impl KernelCode {
    pub(crate) fn new(name: String, architecture: u32, image: Option<Arc<Image>>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self { number, name, architecture, image, summary: OnceLock::new() }
    }

    /// Whether it is code of this image, of the name and architecture that it would have now.
    pub(crate) fn is(&self, name: &str, architecture: u32, image: Option<&Arc<Image>>) -> bool {
        let same_image = match (&self.image, image) {
            (Some(own), Some(image)) => Arc::ptr_eq(own, image),
            (None, None) => true,
            _ => false,
        };
        same_image && self.name == name && self.architecture == architecture
    }

    /// What a launch does, if it was evaluated before.
    pub(crate) fn known(launch: &Values) -> Option<Result<Arc<Evaluated>, Reason>> {
        LAUNCHES.lock().ok()?.as_ref()?.0.get(&launch.number).cloned()
    }

    /// What a launch of this kernel does.
    pub(crate) fn evaluate(&self, launch: &Values, time: Time) -> Result<Arc<Evaluated>, Reason> {
        if let Some(known) = Self::known(launch) {
            return known;
        }
        if !(time.is_left)() {
            return Err("it would take too much time".into());
        }
        let begin = thread_time();
        let found = self.evaluated(launch).map(Arc::new);
        (time.spend)(thread_time().saturating_sub(begin));
        if let Ok(mut all) = LAUNCHES.lock() {
            let (all, size) = all.get_or_insert_with(Launches::default);
            *size += match &found {
                Ok(of) => 1 + of.sure.len() + of.bounds.as_ref().map_or(0, |of| of.spans.len()),
                Err(_) => 1,
            };
            if *size > EVALUATED {
                (*all, *size) = (HashMap::new(), 0);
            }
            all.insert(launch.number, found.clone());
        }
        found
    }

    fn evaluated(&self, values: &Values) -> Result<Evaluated, Reason> {
        let launch = values.launch().ok_or("there was no room for its parameters")?;
        let code = self.code()?;
        let sure = surely_touched(&code, &launch);
        let bounds = self.bounds(&code, &launch);
        let waits = match &bounds {
            Ok(of) => code.may_wait_in(&of.spans),
            Err(_) => code.may_wait(),
        };
        Ok(Evaluated { sure, bounds, waits, threads: Threads::default() })
    }

    fn bounds(&self, code: &Code, launch: &Launch) -> Result<Bounds, Reason> {
        let of_kernel = || summary(code).map(Arc::new).map_err(|why| why.to_string().into());
        let summary = self.summary.get_or_init(of_kernel).clone()?;
        let spans = may_touch(code, launch).map_err(|why| why.to_string())?;
        Ok(Bounds { summary, spans })
    }

    /// What it does in any launch, if that was asked before.
    pub(crate) fn known_summary(&self) -> Option<&Summary> {
        Some(self.summary.get()?.as_ref().ok()?)
    }

    /// What is asked of the code with the launch's values.
    pub(crate) fn ask<T>(
        &self,
        values: &Values,
        ask: impl FnOnce(&Code, &Launch) -> T,
    ) -> Option<T> {
        Some(ask(&*self.code().ok()?, &values.launch()?))
    }

    fn code(&self) -> Result<Arc<Code>, Reason> {
        let own = |of: &&(u64, usize, Arc<Code>)| of.0 == self.number;
        if let Ok(all) = CODES.lock()
            && let Some((.., code)) = all.iter().find(own)
        {
            return Ok(code.clone());
        }
        let image = self.image.as_ref().ok_or("its image was not seen")?;
        let (bytes, code) = decode(&image.bytes()?, self.architecture, &self.name)?;
        let code = Arc::new(code);
        if let Ok(mut all) = CODES.lock() {
            all.push_back((self.number, bytes, code.clone()));
            while all.len() > 1 && all.iter().map(|of| of.1).sum::<usize>() > DECODED {
                all.pop_front();
            }
        }
        Ok(code)
    }
}

/// The kernel's code as the driver chooses it, and how many bytes it has.
fn decode(image: &[u8], architecture: u32, name: &str) -> Result<(usize, Code), Reason> {
    let limits = Limits { decompressed: DECOMPRESSED, text: LONGEST, code: CODE };
    let found = Loaded::new(image, architecture, limits).and_then(|of| of.code(name));
    let (bytes, code) = found.map_err(|why| why.to_string())?;
    Ok((bytes, code.within(thread_time, EVALUATION)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::thread_time;

    /// Other threads' work does not count, and neither does a wait.
    #[test]
    fn the_time_is_that_of_the_thread() {
        let begin = (thread_time(), Instant::now());
        let busy = std::thread::spawn(|| while thread_time() < Duration::from_millis(20) {});
        busy.join().expect("no panic");
        std::thread::sleep(Duration::from_millis(20));
        let waited = begin.1.elapsed();
        assert!(waited >= Duration::from_millis(40));
        assert!(thread_time().saturating_sub(begin.0) < waited / 2);
        while thread_time().saturating_sub(begin.0) < Duration::from_millis(5) {}
    }
}
