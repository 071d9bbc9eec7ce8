//! Files of memory, as processes share them, and mappings of files.

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;

use rustix::fs::MemfdFlags;
pub use rustix::fs::SealFlags;
use rustix::mm::{MapFlags, ProtFlags};

/// What a file of timelines has, in bytes.
pub const PAGE: usize = 4096;

/// The seals without which no file of timelines is looked at.
pub const ALL_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A file of memory of so many bytes, with these seals.
pub fn file(bytes: u64, seals: SealFlags) -> OwnedFd {
    file_with(bytes, &[], seals)
}

/// A file of memory of so many bytes, of which these words are the first, with these seals.
pub fn file_with(bytes: u64, words: &[u64], seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("test", flags).expect("memory");
    rustix::fs::ftruncate(&file, bytes).expect("memory");
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(rustix::io::pwrite(&file, &words, 0), Ok(words.len()));
    rustix::fs::fcntl_add_seals(&file, seals).expect("it is ours");
    file
}

/// A file of timelines as one is whose maker has ended: it begins as this one, and nobody has a
/// lock on it. If it is `protected`, nobody can write it.
pub fn orphan(of: &impl AsFd, protected: bool) -> OwnedFd {
    let mut bytes = [0; 16];
    assert_eq!(rustix::io::pread(of, &mut bytes, 0), Ok(bytes.len()));
    let (words, _) = bytes.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let more = if protected { SealFlags::FUTURE_WRITE } else { SealFlags::empty() };
    file_with(PAGE as u64, &words, ALL_SEALS | more)
}

/// The path by which every process of the user can open the file again.
pub fn path(file: &OwnedFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// The same file, for reading alone.
pub fn reading(file: &impl AsFd) -> OwnedFd {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    std::fs::File::open(path).expect("it can be opened again").into()
}

/// The start of a file, mapped until the process ends: the driver may have it.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    memory: *mut c_void,
    bytes: usize,
}

impl Mapping {
    /// For reading and writing.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn new(file: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<Self> {
        Self::with(file, bytes, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// For reading alone.
    ///
    /// # Errors
    ///
    /// The system refuses it.
    pub fn for_reading(file: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<Self> {
        Self::with(file, bytes, ProtFlags::READ)
    }

    fn with(file: BorrowedFd<'_>, bytes: usize, protection: ProtFlags) -> rustix::io::Result<Self> {
        // SAFETY: a new mapping; no existing memory is named.
        let memory =
            unsafe { rustix::mm::mmap(null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?;
        Ok(Self { memory, bytes })
    }

    pub fn as_ptr(&self) -> *mut c_void {
        self.memory
    }

    /// The address of the memory for devices too, where the driver has it.
    pub fn address(&self) -> u64 {
        self.memory.expose_provenance() as u64
    }

    pub fn words(&self) -> &'static [AtomicU64] {
        // SAFETY: so many bytes, changed by atomics or the driver; who unmaps them does not look.
        unsafe { std::slice::from_raw_parts(self.memory.cast(), self.bytes / 8) }
    }

    /// # Safety
    ///
    /// Nobody uses it any more, a driver included.
    pub unsafe fn unmap(self) {
        // SAFETY: it was mapped, and the caller says that nobody uses it.
        unsafe { rustix::mm::munmap(self.memory, self.bytes) }.expect("it is mapped");
    }
}
