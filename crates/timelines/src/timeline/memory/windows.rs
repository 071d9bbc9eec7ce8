//! Sections of the page file, and processes as lives.
//!
//! The size of a section is fixed, and its pages stay. So no process can cut off memory that
//! another one reads, and one check is enough. A section of a file on a disk is refused: an
//! unreadable page would end the process that reads it.

#![allow(unsafe_code)]

use crate::error::{Result, SharedTimelineError as Refusal};
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::io;
use std::os::windows::io::{
    AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle,
};

use super::Line;

#[link(name = "kernel32", kind = "raw-dylib")]
unsafe extern "system" {
    fn GetProcessTimes(
        process: RawHandle,
        created: *mut FileTime,
        ended: *mut FileTime,
        kernel: *mut FileTime,
        user: *mut FileTime,
    ) -> i32;
    fn OpenProcess(access: u32, inherited: i32, process: u32) -> RawHandle;
    fn WaitForSingleObject(handle: RawHandle, milliseconds: u32) -> u32;
    fn CreateFileMappingW(
        file: RawHandle,
        attributes: *const Attributes,
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
    fn VirtualQuery(memory: *const c_void, region: *mut Region, bytes: usize) -> usize;
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
    fn K32GetMappedFileNameW(
        process: RawHandle,
        memory: *const c_void,
        name: *mut u16,
        length: u32,
    ) -> u32;
}

#[link(name = "kernelbase", kind = "raw-dylib")]
unsafe extern "system" {
    fn CompareObjectHandles(one: RawHandle, other: RawHandle) -> i32;
}

/// `SECURITY_ATTRIBUTES`.
#[repr(C)]
struct Attributes {
    length: u32,
    security: *const Security,
    inherited: i32,
}

/// `SECURITY_DESCRIPTOR` with absolute addresses.
#[repr(C)]
struct Security {
    revision: u8,
    rest: u8,
    control: u16,
    owner: *const c_void,
    group: *const c_void,
    audited: *const c_void,
    allowed: *const List,
}

/// `ACL`, without an entry.
#[repr(C, align(4))]
struct List {
    revision: u8,
    rest: u8,
    bytes: u16,
    entries: u16,
    more: u16,
}

/// `MEMORY_BASIC_INFORMATION`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Region {
    at: *mut c_void,
    allocation: *mut c_void,
    first_protection: u32,
    partition: u16,
    bytes: usize,
    state: u32,
    protection: u32,
    kind: u32,
}

/// `FILETIME`: ticks of 100 ns, the lower half first.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FileTime([u32; 2]);

/// The start time of a process, in ticks of 100 ns since 1601, which distinguishes it from others
/// with the same process id.
fn start_of(process: BorrowedHandle<'_>) -> io::Result<u64> {
    let mut times = [FileTime::default(); 4];
    let [created, ended, kernel, user] = &mut times;
    let process = process.as_raw_handle();
    // SAFETY: a handle that is open for the call, and places for the times.
    let done = unsafe { GetProcessTimes(process, created, ended, kernel, user) } != 0;
    let FileTime([low, high]) = *created;
    let time = u64::from(high) << 32 | u64::from(low);
    if done { Ok(time) } else { Err(io::Error::last_os_error()) }
}

/// The start time of this process, or 0 if the system does not return it.
fn own_start() -> u64 {
    // SAFETY: it has no preconditions, and its handle, a constant, is never closed.
    let process = unsafe { BorrowedHandle::borrow_raw(GetCurrentProcess()) };
    start_of(process).unwrap_or_default()
}

/// A handle of a process. While it is open, no other process gets its id.
struct Process(OwnedHandle);

impl Process {
    /// The process with this id that started then; none if another process has the id now.
    fn find(pid: u32, started: u64) -> io::Result<Option<Self>> {
        const QUERY_LIMITED_INFORMATION: u32 = 0x1000;
        const SYNCHRONIZE: u32 = 0x10_0000;
        // SAFETY: it takes numbers.
        let handle = unsafe { OpenProcess(QUERY_LIMITED_INFORMATION | SYNCHRONIZE, 0, pid) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and owned by nothing else.
        let process = unsafe { OwnedHandle::from_raw_handle(handle) };
        let is_it = start_of(process.as_handle())? == started;
        Ok(is_it.then_some(Self(process)))
    }

    /// Whether it has ended. If the system returns an error, it has not.
    fn has_ended(&self) -> bool {
        // SAFETY: an open handle, which may be waited for. It does not wait.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), 0) == 0 }
    }
}

const SECTION_QUERY: u32 = 1;
const FILE_MAP_WRITE: u32 = 2;
const FILE_MAP_READ: u32 = 4;

fn refused(error: &io::Error) -> Refusal {
    Refusal::System { errno: error.raw_os_error().unwrap_or_default() }
}

fn last() -> Refusal {
    refused(&io::Error::last_os_error())
}

/// Maps so many bytes of a section, or all where they are none.
fn map_raw(
    section: BorrowedHandle<'_>,
    access: u32,
    bytes: usize,
) -> Result<*mut c_void, io::Error> {
    // SAFETY: an open handle. A new view, and no existing memory is named.
    let memory = unsafe { MapViewOfFile(section.as_raw_handle(), access, 0, 0, bytes) };
    if memory.is_null() { Err(io::Error::last_os_error()) } else { Ok(memory) }
}

/// Maps this many lines, permanently.
fn map(section: BorrowedHandle<'_>, access: u32, lines: usize) -> Result<&'static [Line], Refusal> {
    let memory = map_raw(section, access, lines * size_of::<Line>());
    let memory = memory.map_err(|error| refused(&error))?;
    // SAFETY: so many bytes at the start of a memory page; any bytes are a value of `Line`. They
    // are never unmapped, and only changed through atomics, by devices and other processes
    // included. They are there forever: `File` has made the section, or has looked at what it is.
    Ok(unsafe { core::slice::from_raw_parts(memory.cast(), lines) })
}

/// A view until the drop.
struct View(*mut c_void);

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: it was mapped, and the owner of this value, which is dropped, reads it no more.
        unsafe { UnmapViewOfFile(self.0) };
    }
}

/// Whether a mapped section is one of a file on a disk.
fn has_file(view: &View) -> Result<bool, Refusal> {
    /// The error for a section of the page file: there is no name. Any other error, such as the one
    /// for a name that is too long, does not show what the section is.
    const ERROR_FILE_INVALID: i32 = 1006;
    let mut name = [0; 8];
    // SAFETY: the constant that stands for this process, and a place for the start of a name.
    let length = unsafe {
        let (name, length) = (name.as_mut_ptr(), name.len() as u32);
        K32GetMappedFileNameW(GetCurrentProcess(), view.0, name, length)
    };
    if length != 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(ERROR_FILE_INVALID) { Ok(false) } else { Err(refused(&error)) }
}

/// A handle of the same object. None of `access` is one with the same rights.
fn duplicate(handle: BorrowedHandle<'_>, access: Option<u32>) -> Result<OwnedHandle, Refusal> {
    const SAME_ACCESS: u32 = 2;
    let (mut made, options) = (null_mut(), if access.is_some() { 0 } else { SAME_ACCESS });
    let (from, access) = (handle.as_raw_handle(), access.unwrap_or_default());
    // SAFETY: an open handle, the constant that stands for this process, and a place.
    let done = unsafe {
        let here = GetCurrentProcess();
        DuplicateHandle(here, from, here, &raw mut made, access, 0, options)
    };
    if done == 0 {
        return Err(last());
    }
    // SAFETY: it is new, and nobody else's.
    Ok(unsafe { OwnedHandle::from_raw_handle(made) })
}

/// A section of the page file.
pub(crate) struct File {
    section: OwnedHandle,
    /// Whether it can be mapped for writing.
    pub(crate) writable: bool,
    maker: Option<Maker>,
}

/// Who made a section, as another process sees it.
enum Maker {
    Process(Process, &'static Line),
    /// There is no such process any more.
    Gone,
}

/// Distinguishes one section from all others that this process has mapped: by a handle, which the
/// system compares. What is written in a section, its exporter or another process could have made
/// up.
pub(crate) struct Identity(OwnedHandle);

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        // SAFETY: two open handles.
        unsafe { CompareObjectHandles(self.0.as_raw_handle(), other.0.as_raw_handle()) != 0 }
    }
}

impl File {
    /// Creates a section of fresh lines, which are mapped for writing. If it is `protected`, a
    /// process that gets the handle can never do that. Processes that have the section can check
    /// its life.
    pub(crate) fn create(
        lines: usize,
        protected: bool,
    ) -> Result<(Self, &'static [Line], Life), Refusal> {
        const PAGE_READWRITE: u32 = 4;
        const DACL_PRESENT: u16 = 4;
        // The list is empty, so a process gets no more rights than its handle has. Without a
        // list the system would give more to a process that asks for a copy of a handle.
        let allowed =
            List { revision: 2, rest: 0, bytes: size_of::<List>() as u16, entries: 0, more: 0 };
        let security = Security {
            revision: 1,
            rest: 0,
            control: DACL_PRESENT,
            owner: null(),
            group: null(),
            audited: null(),
            allowed: &raw const allowed,
        };
        let attributes = Attributes {
            length: size_of::<Attributes>() as u32,
            security: &raw const security,
            inherited: 0,
        };
        let (none, bytes) = (null_mut::<c_void>().with_addr(usize::MAX), lines * size_of::<Line>());
        // SAFETY: no file but the constant for the page file; structures that live for the call.
        let section = unsafe {
            CreateFileMappingW(none, &raw const attributes, PAGE_READWRITE, 0, bytes as u32, null())
        };
        if section.is_null() {
            return Err(last());
        }
        // SAFETY: it is new, and nobody else's.
        let section = unsafe { OwnedHandle::from_raw_handle(section) };
        let mapped = map(section.as_handle(), FILE_MAP_READ | FILE_MAP_WRITE, lines)?;
        let header = mapped.first().ok_or(Refusal::Platform)?;
        header.put_maker([std::process::id().into(), own_start()]);
        let write = if protected { 0 } else { FILE_MAP_WRITE };
        let rights = SECTION_QUERY | FILE_MAP_READ | write;
        let section = duplicate(section.as_handle(), Some(rights))?;
        Ok((Self { section, writable: !protected, maker: None }, mapped, Life(header)))
    }

    /// One that another process has made, if it is safe to look at.
    pub(crate) fn open(section: OwnedHandle, lines: usize) -> Result<Self, Refusal> {
        const INVALID_HANDLE: i32 = 6;
        const COMMITTED: u32 = 0x1000;
        const MAPPED: u32 = 0x4_0000;
        const READ_ONLY: u32 = 2;
        let all = map_raw(section.as_handle(), FILE_MAP_READ, 0);
        let view = View(all.map_err(|error| match error.raw_os_error() {
            Some(INVALID_HANDLE) => Refusal::NotMemory,
            _ => refused(&error),
        })?);
        let mut region = Region {
            at: null_mut(),
            allocation: null_mut(),
            first_protection: 0,
            partition: 0,
            bytes: 0,
            state: 0,
            protection: 0,
            kind: 0,
        };
        // SAFETY: a place for the description of an address.
        if unsafe { VirtualQuery(view.0, &raw mut region, size_of::<Region>()) } == 0 {
            return Err(last());
        }
        if region.kind != MAPPED || has_file(&view)? {
            return Err(Refusal::NotMemory);
        }
        // The lower byte: the rest is about caches.
        if region.state != COMMITTED || region.protection & 0xff != READ_ONLY {
            return Err(Refusal::Unsealed);
        }
        let expected = lines * size_of::<Line>();
        if region.bytes != expected {
            let found = u32::try_from(region.bytes).unwrap_or(u32::MAX);
            return Err(Refusal::FileSize { found, expected: expected as u32 });
        }
        drop(view);
        let writable = map_raw(section.as_handle(), FILE_MAP_WRITE, expected).map(View).is_ok();
        Ok(Self { section, writable, maker: None })
    }

    pub(crate) fn identity(&self) -> Result<Identity, Refusal> {
        Ok(Identity(duplicate(self.section.as_handle(), None)?))
    }

    /// Maps the section read-only: permanently if `check` accepts it and its exporter's process can
    /// be opened, and otherwise not at all.
    pub(crate) fn map(
        &mut self,
        lines: usize,
        check: impl FnOnce(&[Line]) -> Result<(), Refusal>,
    ) -> Result<&'static [Line], Refusal> {
        let mapped = map(self.section.as_handle(), FILE_MAP_READ, lines)?;
        let accepted = check(mapped)
            .and_then(|()| mapped.first().map_or(Ok(()), |header| self.find_maker(header)));
        if let Err(refusal) = accepted {
            // `check` had it for its call only, as its type requires for any lifetime. `find_maker`
            // stores the header only where it succeeds. Nothing else refers to it.
            drop(View(mapped.as_ptr().cast_mut().cast()));
            return Err(refusal);
        }
        Ok(mapped)
    }

    /// Opens the process that made the file, of which this is the first line. [`map`](Self::map)
    /// does it for a new mapping.
    pub(crate) fn find_maker(&mut self, header: &'static Line) -> Result<(), Refusal> {
        const NO_SUCH_PROCESS: i32 = 87;
        let [number, started] = header.maker();
        let found = match u32::try_from(number) {
            Ok(number) => Process::find(number, started),
            Err(_) => Ok(None),
        };
        self.maker = Some(match found {
            Ok(Some(process)) => Maker::Process(process, header),
            Ok(None) => Maker::Gone,
            Err(error) if error.raw_os_error() == Some(NO_SUCH_PROCESS) => Maker::Gone,
            // One that cannot be seen to end.
            Err(error) => return Err(refused(&error)),
        });
        Ok(())
    }

    /// Maps it for writing, for as long as `write` takes.
    pub(crate) fn write(&self, lines: usize, write: impl FnOnce(&[Line])) -> Result<(), Refusal> {
        let (access, bytes) = (FILE_MAP_READ | FILE_MAP_WRITE, lines * size_of::<Line>());
        let view = map_raw(self.section.as_handle(), access, bytes);
        let view = View(view.map_err(|error| refused(&error))?);
        // SAFETY: as for `map`, until it is unmapped below.
        write(unsafe { core::slice::from_raw_parts(view.0.cast::<Line>(), lines) });
        drop(view);
        Ok(())
    }

    /// Whether the [`Life`] of the file has ended. If the system gives no answer, it has not.
    pub(crate) fn is_orphaned(&self) -> bool {
        match &self.maker {
            Some(Maker::Process(process, header)) => header.is_given_up() || process.has_ended(),
            Some(Maker::Gone) => true,
            None => false,
        }
    }
}

impl AsHandle for File {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.section.as_handle()
    }
}

/// That the exporter of a file lives: its number and when it started, which are in the first line,
/// and a word there that it writes when it goes on living without the file.
pub(crate) struct Life(&'static Line);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[link(name = "advapi32", kind = "raw-dylib")]
    unsafe extern "system" {
        fn SetKernelObjectSecurity(
            object: RawHandle,
            information: u32,
            security: *const Security,
        ) -> i32;
    }

    /// Lets nobody open this process with this list, which is empty, and everybody without one.
    fn allow(allowed: *const List) {
        const DACL: u32 = 4;
        const DACL_PRESENT: u16 = 4;
        let security = Security {
            revision: 1,
            rest: 0,
            control: DACL_PRESENT,
            owner: null(),
            group: null(),
            audited: null(),
            allowed,
        };
        // SAFETY: the constant for this process, and structures that live for the call.
        let done =
            unsafe { SetKernelObjectSecurity(GetCurrentProcess(), DACL, &raw const security) };
        assert_ne!(done, 0, "{}", io::Error::last_os_error());
    }

    /// A section whose exporter cannot be opened does not stay mapped.
    #[test]
    fn a_section_of_a_maker_that_cannot_be_opened_is_not_left_mapped() {
        const ACCESS_DENIED: i32 = 5;
        const MAPPED: u32 = 0x4_0000;
        const READ_ONLY: u32 = 2;
        let (made, lines, _life) = File::create(64, true).unwrap();
        let copy = || duplicate(made.section.as_handle(), None).unwrap();
        let nobody =
            List { revision: 2, rest: 0, bytes: size_of::<List>() as u16, entries: 0, more: 0 };
        let mut file = File::open(copy(), lines.len()).unwrap();
        let mut at = null();
        allow(&raw const nobody);
        let refused = file.map(lines.len(), |mapped| {
            at = mapped.as_ptr();
            Ok(())
        });
        allow(null());
        assert_eq!(refused.map(drop), Err(Refusal::System { errno: ACCESS_DENIED }));
        // SAFETY: plain numbers and addresses, for which zeros are values.
        let mut region: Region = unsafe { core::mem::zeroed() };
        // SAFETY: a place for what is reported of an address.
        let found = unsafe { VirtualQuery(at.cast(), &raw mut region, size_of::<Region>()) };
        assert_ne!(found, 0, "{}", io::Error::last_os_error());
        // Another thread may have got the addresses since, but for no section to read.
        assert_ne!((region.kind, region.protection), (MAPPED, READ_ONLY));
        // The exporter can be opened again.
        assert!(file.map(lines.len(), |_| Ok(())).is_ok() && !file.is_orphaned());
    }
}
