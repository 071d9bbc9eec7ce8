//! Sections.

use std::ffi::c_void;
use std::io::Error;
use std::os::windows::io::{
    AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, IntoRawHandle, RawHandle,
};
pub use std::os::windows::io::{AsHandle as AsShared, OwnedHandle as Shared};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;

use super::{Mapping, PAGE};

#[link(name = "kernel32", kind = "raw-dylib")]
unsafe extern "system" {
    fn CreateFileMappingW(
        file: RawHandle,
        attributes: *const c_void,
        protection: u32,
        high: u32,
        low: u32,
        name: *const u16,
    ) -> RawHandle;
    fn MapViewOfFile(
        section: RawHandle,
        access: u32,
        high: u32,
        low: u32,
        bytes: usize,
    ) -> *mut c_void;
    fn UnmapViewOfFile(memory: *const c_void) -> i32;
    fn GetCurrentProcess() -> RawHandle;
    fn DuplicateHandle(
        from: RawHandle,
        handle: RawHandle,
        to: RawHandle,
        made: *mut RawHandle,
        access: u32,
        inherited: i32,
        options: u32,
    ) -> i32;
}

const WRITE: u32 = 2;
const READ: u32 = 4;
const READ_WRITE: u32 = 4;
/// Pages that are there only once somebody asks for them.
pub const RESERVED: u32 = 0x400_0000;

/// What a section is of: the page file, unless it is a file.
fn section(file: Option<BorrowedHandle<'_>>, bytes: u64, kind: u32) -> Shared {
    let file = file.map_or(null_mut::<c_void>().with_addr(usize::MAX), |file| file.as_raw_handle());
    let (high, low) = ((bytes >> 32) as u32, bytes as u32);
    // SAFETY: a file that is open, or the constant for the page file; NULL where nothing is meant.
    let made = unsafe { CreateFileMappingW(file, null(), READ_WRITE | kind, high, low, null()) };
    assert!(!made.is_null(), "{}", Error::last_os_error());
    // SAFETY: it is new, and nobody else's.
    unsafe { Shared::from_raw_handle(made) }
}

/// A section of so many bytes, for whatever processes want to share.
pub fn plain(bytes: usize) -> Shared {
    section(None, bytes as u64, 0)
}

/// One of the page file of this kind.
pub fn of_kind(bytes: u64, kind: u32) -> Shared {
    section(None, bytes, kind)
}

/// One of a file on a disk.
pub fn of_file(file: &std::fs::File, bytes: u64) -> Shared {
    section(Some(file.as_handle()), bytes, 0)
}

/// One that is as safe to look at as a file of timelines, and begins with these words.
pub fn safe(words: &[u64]) -> Shared {
    let file = plain(PAGE);
    let mapping = Mapping::new(&file, PAGE).expect("it can be mapped");
    for (word, value) in mapping.words().iter().zip(words) {
        word.store(*value, Ordering::SeqCst);
    }
    file
}

/// A file of timelines as one is whose maker has ended: it begins as this one, and its maker has
/// another start time than the process of that number. If it is `sealed`, nobody can write it.
pub fn orphan(shared: &impl AsShared, sealed: bool) -> Shared {
    let begins = Mapping::for_reading(shared, PAGE).expect("it can be mapped");
    let mut words: Vec<u64> =
        begins.words().iter().take(8).map(|word| word.load(Ordering::SeqCst)).collect();
    words[4] ^= 1;
    let file = safe(&words);
    if sealed { reading(&file) } else { file }
}

const SAME_ACCESS: u32 = 2;
const CLOSE_SOURCE: u32 = 1;

/// A handle of the same object, from one process in another.
pub fn duplicate(
    (from, handle): (BorrowedHandle<'_>, RawHandle),
    to: BorrowedHandle<'_>,
    access: Option<u32>,
    inherited: bool,
    options: u32,
) -> std::io::Result<RawHandle> {
    let mut made = null_mut();
    let options = options | if access.is_some() { 0 } else { SAME_ACCESS };
    let (from, to) = (from.as_raw_handle(), to.as_raw_handle());
    let access = access.unwrap_or_default();
    // SAFETY: open handles of processes and a place; what is no handle in the one is an error.
    let done = unsafe {
        DuplicateHandle(from, handle, to, &raw mut made, access, inherited.into(), options)
    };
    if done == 0 { Err(Error::last_os_error()) } else { Ok(made) }
}

fn here() -> BorrowedHandle<'static> {
    // SAFETY: a constant, which is never closed.
    unsafe { BorrowedHandle::borrow_raw(GetCurrentProcess()) }
}

fn copy_with(file: impl AsShared, access: Option<u32>, inherited: bool) -> std::io::Result<Shared> {
    let from = (here(), file.as_handle().as_raw_handle());
    let made = duplicate(from, here(), access, inherited, 0)?;
    // SAFETY: it is new, and nobody else's.
    Ok(unsafe { Shared::from_raw_handle(made) })
}

/// The same section, to be given away.
pub fn copy(file: impl AsShared) -> Shared {
    copy_with(file, None, false).expect("a handle")
}

/// The same section, which children inherit.
pub fn inherited(file: impl AsShared) -> Shared {
    copy_with(file, None, true).expect("a handle")
}

/// The same section, for reading alone.
pub fn reading(file: &impl AsShared) -> Shared {
    copy_with(file, Some(READ), false).expect("a handle")
}

/// The same section with a right that its handle need not have.
///
/// # Errors
///
/// The system refuses it.
pub fn with_access(file: &impl AsShared, access: u32) -> std::io::Result<Shared> {
    copy_with(file, Some(access), false)
}

/// Rights that let a section be written. (One of the same user may change who may; so may it write
/// the memory of the other process itself.)
pub const STRONGER: [(&str, u32); 2] = [("to map it for writing", WRITE), ("all", 0xF001F)];

/// The number of a handle that another process is given.
pub fn give(file: impl AsShared, to: BorrowedHandle<'_>) -> usize {
    let from = (here(), file.as_handle().as_raw_handle());
    duplicate(from, to, None, false, 0).expect("the peer is there").addr()
}

/// The handle that another process [leaves](leave) here.
pub fn take(number: usize, from: BorrowedHandle<'_>) -> Shared {
    let from = (from, null_mut::<c_void>().with_addr(number));
    let made = duplicate(from, here(), None, false, CLOSE_SOURCE).expect("the peer is there");
    // SAFETY: it is new, and nobody else's.
    unsafe { Shared::from_raw_handle(made) }
}

/// The number of a handle that another process takes from this one, and closes here.
pub fn leave(file: impl AsShared) -> usize {
    copy(file).into_raw_handle().addr()
}

/// The handle of this number, which this process was [given](give).
pub fn given(number: usize) -> Shared {
    // SAFETY: the caller of this has made the handle for this process, once.
    unsafe { Shared::from_raw_handle(null_mut::<c_void>().with_addr(number)) }
}

pub(super) fn map(
    file: impl AsShared,
    bytes: usize,
    writable: bool,
) -> std::io::Result<*mut c_void> {
    let access = READ | if writable { WRITE } else { 0 };
    // SAFETY: an open handle. A new view; no existing memory is named.
    let memory = unsafe { MapViewOfFile(file.as_handle().as_raw_handle(), access, 0, 0, bytes) };
    if memory.is_null() { Err(Error::last_os_error()) } else { Ok(memory) }
}

/// # Safety
///
/// It was mapped, and nobody uses it any more.
pub(super) unsafe fn unmap(memory: *mut c_void, _bytes: usize) {
    // SAFETY: the caller's.
    assert_ne!(unsafe { UnmapViewOfFile(memory) }, 0);
}
