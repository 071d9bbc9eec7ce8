//! External semaphores on Linux: a sealed file of memory for each.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::File;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

pub(crate) type Descriptor = OwnedFd;

const BYTES: usize = 4096;
const MAGIC: u64 = u64::from_le_bytes(*b"softsema");
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// The shared memory: nothing but atomics, so that any bytes at all are a valid value.
#[repr(C)]
struct Layout {
    magic: AtomicU64,
    kind: AtomicU64,
    word: AtomicU64,
}

/// The page of a semaphore, mapped while this lives.
#[derive(Debug)]
pub(super) struct Page(*mut c_void);

// SAFETY: an address of memory that belongs to the process, and is unmapped by the last owner.
unsafe impl Send for Page {}
// SAFETY: as for `Send`; what is read and written there are atomics.
unsafe impl Sync for Page {}

impl Page {
    fn map(file: &File) -> Option<Self> {
        // SAFETY: a new shared mapping; no existing memory is named.
        let address = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        (address != libc::MAP_FAILED).then_some(Self(address))
    }

    fn layout(&self) -> &Layout {
        // SAFETY: mapped while `self` lives, page-aligned, longer than a `Layout`, sealed against
        // shrinking, and all of it atomics.
        unsafe { &*self.0.cast() }
    }

    pub(super) fn word(&self) -> &AtomicU64 {
        &self.layout().word
    }

    pub(super) fn create(kind: u64) -> Option<(Self, Descriptor)> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: a C string that lives for the call.
        let descriptor =
            unsafe { libc::memfd_create(c"cuda-soft-driver.semaphore".as_ptr(), flags) };
        // SAFETY: just opened, and owned by nothing else.
        let file = (descriptor >= 0).then(|| unsafe { File::from_raw_fd(descriptor) })?;
        file.set_len(BYTES as u64).ok()?;
        // Nobody can have it cut short under those who map it.
        // SAFETY: an open file.
        unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, SEALS) };
        let page = Self::map(&file)?;
        page.layout().kind.store(kind, Ordering::SeqCst);
        page.layout().magic.store(MAGIC, Ordering::SeqCst);
        Some((page, file.into()))
    }

    /// The page that a number names, if it is the descriptor of one, and the numbers of its file.
    pub(super) fn open(descriptor: i32) -> Option<(Self, [u64; 2])> {
        // SAFETY: it has no preconditions; what is no descriptor is an error.
        let own = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        // SAFETY: just opened, and owned by nothing else.
        let file = (own >= 0).then(|| unsafe { File::from_raw_fd(own) })?;
        // SAFETY: an open file; one that has no seals is an error.
        let seals = unsafe { libc::fcntl(own, libc::F_GET_SEALS) };
        let metadata = file.metadata().ok()?;
        if seals < 0 || seals & SEALS != SEALS || metadata.len() != BYTES as u64 {
            return None;
        }
        let page = Self::map(&file)?;
        let is_one = page.layout().magic.load(Ordering::SeqCst) == MAGIC;
        is_one.then(|| (page, [metadata.dev(), metadata.ino()]))
    }

    pub(super) fn kind(&self) -> u64 {
        self.layout().kind.load(Ordering::SeqCst)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, unmapped once.
        unsafe { libc::munmap(self.0, BYTES) };
    }
}
