//! Files of memory.

use std::ffi::c_void;
use std::os::fd::AsRawFd;
pub use std::os::fd::{AsFd as AsShared, OwnedFd as Shared};
use std::ptr::null_mut;

use rustix::fs::MemfdFlags;
pub use rustix::fs::SealFlags;
use rustix::mm::{MapFlags, ProtFlags};

use super::PAGE;

/// The seals without which no file of timelines is looked at.
pub const ALL_SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A file of memory of so many bytes, for whatever processes want to share.
pub fn plain(bytes: usize) -> Shared {
    file(bytes as u64, SealFlags::empty())
}

/// One that is as safe to look at as a file of timelines, and begins with these words.
pub fn safe(words: &[u64]) -> Shared {
    file_with(PAGE as u64, words, ALL_SEALS)
}

/// A file of memory of so many bytes, with these seals.
pub fn file(bytes: u64, seals: SealFlags) -> Shared {
    file_with(bytes, &[], seals)
}

/// A file of memory of so many bytes, of which these words are the first, with these seals.
fn file_with(bytes: u64, words: &[u64], seals: SealFlags) -> Shared {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("test", flags).expect("memory");
    rustix::fs::ftruncate(&file, bytes).expect("memory");
    let words: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert_eq!(rustix::io::pwrite(&file, &words, 0), Ok(words.len()));
    rustix::fs::fcntl_add_seals(&file, seals).expect("it is ours");
    file
}

/// A file of timelines as one is whose maker has ended: it begins as this one, and nobody has a
/// lock on it. If it is `sealed`, nobody can write it.
pub fn orphan(shared: &impl AsShared, sealed: bool) -> Shared {
    let mut bytes = [0; 16];
    assert_eq!(rustix::io::pread(shared, &mut bytes, 0), Ok(bytes.len()));
    let (words, _) = bytes.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let more = if sealed { SealFlags::FUTURE_WRITE } else { SealFlags::empty() };
    file_with(PAGE as u64, &words, ALL_SEALS | more)
}

/// The path by which every process of the user can open the file again.
pub fn path(file: &Shared) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// The file of another process, or one's own again, by its [path].
pub fn at(path: &str) -> Shared {
    let file = std::fs::File::options().read(true).write(true).open(path);
    file.unwrap_or_else(|error| panic!("{path}: {error}")).into()
}

/// The same file, to be given away.
pub fn copy(file: impl AsShared) -> Shared {
    file.as_fd().try_clone_to_owned().expect("a file")
}

/// The same file, for reading alone.
pub fn reading(file: &impl AsShared) -> Shared {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    std::fs::File::open(path).expect("it can be opened again").into()
}

pub(super) fn map(
    file: impl AsShared,
    bytes: usize,
    writable: bool,
) -> std::io::Result<*mut c_void> {
    let write = if writable { ProtFlags::WRITE } else { ProtFlags::empty() };
    let protection = ProtFlags::READ | write;
    // SAFETY: a new mapping; no existing memory is named.
    Ok(unsafe { rustix::mm::mmap(null_mut(), bytes, protection, MapFlags::SHARED, file, 0) }?)
}

/// # Safety
///
/// It was mapped, and nobody uses it any more.
pub(super) unsafe fn unmap(memory: *mut c_void, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { rustix::mm::munmap(memory, bytes) }.expect("it is mapped");
}
