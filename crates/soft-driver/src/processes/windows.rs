//! Shared memory with names on Windows: sections of the page file, in the session's own namespace.

use core::ffi::c_void;
use core::ptr::null;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::hash::{BuildHasher as _, RandomState};
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::time::Instant;

use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, GetLastError, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile,
    OpenFileMappingW, PAGE_READWRITE, UnmapViewOfFile,
};

/// How often a sleeper looks. Windows lets nobody sleep on a word that processes share.
const LOOK: Duration = Duration::from_millis(1);

/// How the names of a context's memory begin.
pub(super) fn stem(process: u32, context: u64) -> String {
    format!("Local\\cuda-soft-driver.{process}.{context}.")
}

/// It needs no nonce: the name goes with the last handle, and nobody can list the names.
pub(super) fn name(process: u32, context: u64, _nonce: u128) -> String {
    stem(process, context)
}

/// None but the one that is known already.
pub(super) fn names(_stem: &str) -> impl Iterator<Item = String> {
    core::iter::empty()
}

#[expect(clippy::unnecessary_wraps, reason = "elsewhere the system may have none")]
pub(super) fn nonce() -> Option<u128> {
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    Some(half() << 64 | half())
}

/// The system does it, with the last handle.
pub(super) fn remove(_name: &str) {}

/// Windows removes a section with its last handle, so there is nothing to sweep.
pub(super) fn sweep() {}

/// A handle of a section.
#[derive(Debug)]
pub(super) struct File(OwnedHandle);

fn wide(name: &str) -> Vec<u16> {
    name.encode_utf16().chain([0]).collect()
}

impl File {
    /// Makes a section, which only this user and the system can open, and never one that is there
    /// already.
    pub(super) fn create(name: &str, bytes: usize) -> Option<Self> {
        let (name, high, low) = (wide(name), (bytes as u64 >> 32) as u32, bytes as u32);
        // SAFETY: a string that ends in zero and lives for the call; the page file stands for no
        // file.
        let (handle, error) = unsafe {
            let none = INVALID_HANDLE_VALUE;
            let made = CreateFileMappingW(none, null(), PAGE_READWRITE, high, low, name.as_ptr());
            (made, GetLastError())
        };
        // SAFETY: just opened, and owned by nothing else.
        let handle =
            (!handle.is_null()).then(|| unsafe { OwnedHandle::from_raw_handle(handle) })?;
        (error != ERROR_ALREADY_EXISTS).then_some(Self(handle))
    }

    /// Opens a section. One that is shorter than asked for cannot be mapped.
    pub(super) fn open(name: &str, _bytes: usize) -> Option<Self> {
        let name = wide(name);
        // SAFETY: a string that ends in zero and lives for the call.
        let handle = unsafe { OpenFileMappingW(FILE_MAP_READ | FILE_MAP_WRITE, 0, name.as_ptr()) };
        // SAFETY: just opened, and owned by nothing else.
        (!handle.is_null()).then(|| Self(unsafe { OwnedHandle::from_raw_handle(handle) }))
    }

    /// The system frees a section with its last handle, so none is left behind.
    #[expect(clippy::unused_self, reason = "elsewhere the file is asked")]
    pub(super) fn is_orphan(&self) -> bool {
        true
    }

    /// Maps so many bytes, if it has them.
    pub(super) fn map(&self, bytes: usize) -> Option<View> {
        let (handle, access) = (self.0.as_raw_handle(), FILE_MAP_READ | FILE_MAP_WRITE);
        // SAFETY: an open handle, and a new mapping; no existing memory is named.
        let address = unsafe { MapViewOfFile(handle, access, 0, 0, bytes) }.Value;
        (!address.is_null()).then_some(View(address))
    }
}

/// Memory that is mapped while this lives.
#[derive(Debug)]
pub(super) struct View(*mut c_void);

// SAFETY: an address of memory that belongs to the process, and is unmapped by the last owner.
unsafe impl Send for View {}
// SAFETY: as for `Send`; nothing here reads the memory.
unsafe impl Sync for View {}

impl View {
    pub(super) fn address(&self) -> *const c_void {
        self.0
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: mapped, and unmapped once.
        unsafe { UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: self.0 }) };
    }
}

/// Those who sleep look by themselves.
pub(super) fn wake(_word: &AtomicU32) {}

/// Sleeps while the word in shared memory has this value, at most `limit`.
pub(super) fn sleep(word: &AtomicU32, value: u32, limit: Duration) {
    let started = Instant::now();
    while word.load(Ordering::SeqCst) == value && started.elapsed() < limit {
        std::thread::sleep(LOOK);
    }
}
