//! External semaphores: one word in a page of shared memory, which a descriptor names.
//!
//! Of a timeline the word is the value. Of a binary semaphore it is 1 once it was signalled, and 0
//! again once a wait has taken that. Nothing rings: who waits looks now and then, as for values in
//! memory, so that a process that is killed leaves nothing behind.

use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

use cuda_order_check_engine::feed;

pub(crate) use self::platform::Descriptor;
use self::platform::Page;
use crate::sync::lock;

#[cfg(target_os = "linux")]
#[path = "semaphore_linux.rs"]
mod platform;

#[cfg(not(target_os = "linux"))]
#[path = "semaphore_nowhere.rs"]
mod platform;

/// Whether this platform has external semaphores in software.
pub(crate) const AVAILABLE: bool = cfg!(target_os = "linux");

/// The kind of an [external semaphore](crate::ExternalSemaphore).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum SemaphoreKind {
    /// A semaphore without a value: it is signalled or not, and a wait consumes the signal. It is a
    /// binary semaphore of Vulkan, with an opaque handle.
    Binary,
    /// A semaphore with a value that only rises: a timeline semaphore of Vulkan.
    Timeline,
}

impl fmt::Display for SemaphoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary semaphore",
            Self::Timeline => "timeline semaphore",
        })
    }
}

impl SemaphoreKind {
    fn number(self) -> u64 {
        match self {
            Self::Binary => 1,
            Self::Timeline => 2,
        }
    }

    fn of(number: u64) -> Option<Self> {
        [Self::Binary, Self::Timeline].into_iter().find(|kind| kind.number() == number)
    }
}

/// A semaphore that this process has mapped.
#[derive(Debug)]
pub(crate) struct Semaphore {
    page: Page,
    pub(crate) kind: SemaphoreKind,
    /// It for the order checkers of this process.
    pub(crate) order: feed::Semaphore,
}

/// What this process has open, by the numbers of its file.
static OPEN: Mutex<Vec<([u64; 2], Weak<Semaphore>)>> = Mutex::new(Vec::new());

/// Holds the list, for a fork.
#[cfg(all(unix, not(miri)))]
pub(crate) fn hold() -> impl Sized + 'static {
    lock(&OPEN)
}

impl Semaphore {
    fn new(page: Page, kind: SemaphoreKind) -> Self {
        Self { page, kind, order: feed::Semaphore::new(kind == SemaphoreKind::Binary) }
    }

    /// A new one, and its descriptor.
    pub(crate) fn create(kind: SemaphoreKind) -> Option<(Arc<Self>, Descriptor)> {
        let (page, descriptor) = Page::create(kind.number())?;
        Some((Arc::new(Self::new(page, kind)), descriptor))
    }

    /// The one that a number names, if it is the descriptor of one. It is the same object for all
    /// who have it here, so that the order checker knows it again.
    pub(crate) fn open(descriptor: i32) -> Option<Arc<Self>> {
        let (page, file) = Page::open(descriptor)?;
        let kind = SemaphoreKind::of(page.kind())?;
        let mut open = lock(&OPEN);
        open.retain(|(_, semaphore)| semaphore.strong_count() > 0);
        let known = open.iter().find(|(number, _)| *number == file);
        if let Some(semaphore) = known.and_then(|(_, semaphore)| semaphore.upgrade()) {
            return Some(semaphore);
        }
        let semaphore = Arc::new(Self::new(page, kind));
        open.push((file, Arc::downgrade(&semaphore)));
        Some(semaphore)
    }

    pub(crate) fn value(&self) -> u64 {
        self.page.word().load(Ordering::Acquire)
    }

    /// Signals it, or says why that is forbidden and leaves the word as it is. Another process may
    /// have the same word, which is all that is known of what it did.
    pub(crate) fn signal(&self, value: u64) -> Result<(), String> {
        let word = self.page.word();
        match self.kind {
            // Vulkan's rule for the moment at which the signal runs.
            SemaphoreKind::Timeline => match word.fetch_max(value, Ordering::AcqRel) {
                before if before < value => Ok(()),
                before => Err(format!("a signal of {value}, where the value is {before} already")),
            },
            SemaphoreKind::Binary => match word.swap(1, Ordering::AcqRel) {
                0 => Ok(()),
                _ => Err("a second signal, where no wait has consumed the first".to_owned()),
            },
        }
    }
}

/// A signal or a wait; of a binary semaphore the value says nothing.
#[derive(Clone, Debug)]
pub(crate) struct SemaphorePoint {
    pub(crate) semaphore: Arc<Semaphore>,
    /// The import that it was made with. One semaphore may be imported more than once.
    pub(crate) handle: u64,
    pub(crate) value: u64,
}

impl SemaphorePoint {
    /// As [`Semaphore::signal`].
    pub(crate) fn signal(&self) -> Result<(), String> {
        self.semaphore.signal(self.value)
    }

    /// Whether a wait would end now.
    pub(crate) fn is_reached(&self) -> bool {
        let value = self.semaphore.value();
        match self.semaphore.kind {
            SemaphoreKind::Timeline => value >= self.value,
            SemaphoreKind::Binary => value == 1,
        }
    }

    /// Ends a wait, if it can end: the one signal of a binary semaphore is for one wait.
    pub(crate) fn take(&self) -> bool {
        let word = self.semaphore.page.word();
        match self.semaphore.kind {
            SemaphoreKind::Timeline => self.is_reached(),
            SemaphoreKind::Binary => {
                word.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            }
        }
    }
}

/// What one call gives a stream: signals, or waits.
#[derive(Clone, Debug)]
pub(crate) struct Semaphores {
    pub(crate) signals: bool,
    pub(crate) points: Vec<SemaphorePoint>,
}

/// A semaphore that a context has imported. It keeps the descriptor, which is the driver's now.
pub(crate) struct Imported {
    pub(crate) context: u32,
    pub(crate) semaphore: Arc<Semaphore>,
    #[expect(dead_code, reason = "kept for its destructor")]
    pub(crate) descriptor: Descriptor,
}
