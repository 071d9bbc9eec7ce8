//! The code of a kernel, decoded when a candidate asks for it.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cuda_kernel_access::code::Code;
use cuda_kernel_access::load::{Limits, Loaded};
use cuda_kernel_access::touch::{Summary, summary};

use crate::code::Reason;
use crate::code::image::{Image, LONGEST, Variable};
use crate::code::launches::Launches;
use crate::code::time::{Time, thread_time};
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

/// How many bytes of code the decoded kernels have that stay decoded.
const DECODED: usize = 1 << 20;

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
    has_flags: OnceLock<Flags>,
    pub(crate) launches: Launches,
}

/// What a kernel may do with flags in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    /// Others may learn from memory how far it is.
    pub(crate) signals: bool,
    /// It may wait for what others store.
    pub(crate) waits: bool,
    /// It may write at all.
    pub(crate) writes: bool,
}

/// A decoded kernel: its number, the bytes of its code, and the code.
type Decoded = (u64, usize, Arc<Code>);

/// The codes that were decoded last.
static CODES: Lock<VecDeque<Decoded>> = Lock::new(Rank::Code, VecDeque::new());

impl KernelCode {
    pub(crate) fn new(name: String, architecture: u32, image: Option<Arc<Image>>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let (summary, has_flags) = (OnceLock::new(), OnceLock::new());
        let launches = Launches::new();
        Self { number, name, architecture, image, summary, has_flags, launches }
    }

    /// Its name for reports, if the driver gave one.
    pub(crate) fn shown_name(&self) -> Option<String> {
        let name = (!self.name.is_empty()).then_some(&self.name)?;
        Some(demangled(name).unwrap_or_else(|| name.clone()))
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

    /// What it does in any launch.
    pub(crate) fn summarize(&self, code: &Code) -> Result<Arc<Summary>, Reason> {
        let summarize = || summary(code).map(Arc::new).map_err(|why| why.to_string().into());
        self.summary.get_or_init(summarize).clone()
    }

    /// What it does in any launch, if that was asked before.
    pub(crate) fn earlier_summary(&self) -> Option<&Summary> {
        Some(self.summary.get()?.as_ref().ok()?)
    }

    /// What it may do with flags: if that is not known, all of it.
    pub(crate) fn has_flags(&self, time: Time) -> Flags {
        const ALL: Flags = Flags { signals: true, waits: true, writes: true };
        if let Some(known) = self.has_flags.get() {
            return *known;
        }
        if !(time.is_left)() {
            return ALL;
        }
        let begin = thread_time();
        let of = |code: Arc<Code>| Flags {
            signals: code.may_signal(),
            waits: code.may_wait(),
            writes: code.may_write(),
        };
        let found = self.code().map_or(ALL, of);
        (time.spend)(thread_time().saturating_sub(begin));
        *self.has_flags.get_or_init(|| found)
    }

    /// The variables of its module that the program has asked for: it may use them.
    pub(crate) fn variables(&self) -> Option<Arc<[Variable]>> {
        self.image.as_ref()?.variables()
    }

    pub(crate) fn code(&self) -> Result<Arc<Code>, Reason> {
        if let Ok(all) = CODES.lock()
            && let Some((.., code)) = all.iter().find(|(number, ..)| *number == self.number)
        {
            return Ok(code.clone());
        }
        let image = self.image.as_ref().ok_or("its image was not seen")?;
        let (bytes, code) = decode(&image.bytes()?, self.architecture, &self.name)?;
        let code = Arc::new(code);
        if let Ok(mut all) = CODES.lock() {
            all.push_back((self.number, bytes, code.clone()));
            while all.len() > 1 && all.iter().map(|(_, bytes, _)| bytes).sum::<usize>() > DECODED {
                all.pop_front();
            }
        }
        Ok(code)
    }
}

/// A function's name as in its source, unless that is very long: templates of templates can be.
pub(crate) fn demangled(name: &str) -> Option<String> {
    const LONG: usize = 1000;
    let name = cpp_demangle::Symbol::new(name).ok()?.demangle().ok()?;
    (name.len() <= LONG).then_some(name)
}

/// The kernel's code as the driver chooses it, and how many bytes it has.
fn decode(image: &[u8], architecture: u32, name: &str) -> Result<(usize, Code), Reason> {
    let limits = Limits { decompressed: DECOMPRESSED, text: LONGEST, code: CODE };
    let found = Loaded::new(image, architecture, limits).and_then(|image| image.code(name));
    let (bytes, code) = found.map_err(|why| why.to_string())?;
    Ok((bytes, code.within(thread_time, EVALUATION)))
}
