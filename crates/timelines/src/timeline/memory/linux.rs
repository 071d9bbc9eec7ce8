//! Files of memory that can be sealed, and locks as lives.

#![allow(unsafe_code)]

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::{Once, OnceLock};

use super::Line;
use crate::error::{Result, SharedTimelineError as Refusal};
use crate::time::let_others_run;
use cuda_events::foundation::is_forked_child;

unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
    fn fcntl(file: c_int, command: c_int, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn close(file: c_int) -> c_int;
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

const SHARED: c_int = 1;

fn refused(error: &io::Error) -> Refusal {
    Refusal::System { errno: error.raw_os_error().unwrap_or_default() }
}

fn last() -> Refusal {
    refused(&io::Error::last_os_error())
}

/// Maps this many lines, permanently.
pub(super) fn map(
    lines: usize,
    writable: bool,
    flags: c_int,
    file: c_int,
) -> Result<&'static [Line], Refusal> {
    let memory = map_raw(lines, writable, flags, file)?;
    // SAFETY: so many bytes at the start of a memory page; any bytes are a value of `Line`.
    // They are never unmapped, and only changed through atomics, by devices and other processes
    // included. A file's size is the same forever: `File` has seen the seals for that, or
    // has made them.
    Ok(unsafe { core::slice::from_raw_parts(memory.cast(), lines) })
}

fn map_raw(
    lines: usize,
    writable: bool,
    flags: c_int,
    file: c_int,
) -> Result<*mut c_void, Refusal> {
    const READ: c_int = 1;
    const WRITE: c_int = 2;
    let (anywhere, bytes) = (core::ptr::null_mut(), lines * size_of::<Line>());
    let protection = if writable { READ | WRITE } else { READ };
    // SAFETY: the declaration is that of the C library. A new mapping, and no existing memory
    // is named.
    let memory = unsafe { mmap(anywhere, bytes, protection, flags, file, 0) };
    if memory.addr() == usize::MAX { Err(last()) } else { Ok(memory) }
}

const SEAL_SEALS: c_int = 1;
const SEAL_SHRINK: c_int = 2;
const SEAL_GROW: c_int = 4;
const SEAL_WRITE: c_int = 8;
const SEAL_FUTURE_WRITE: c_int = 16;
/// Without these seals the file may become shorter than its mapping, and a load of this process
/// would then end the process. The last seal prevents a later seal against writing, because the
/// file must be poisoned at the end.
const REQUIRED: c_int = SEAL_SHRINK | SEAL_GROW | SEAL_SEALS;

/// A file of memory of a fixed size.
pub(crate) struct File {
    file: std::fs::File,
    /// Whether it can be mapped for writing.
    pub(crate) writable: bool,
}

/// Distinguishes a file from all others that this process has mapped.
pub(crate) type Identity = (u64, u64);

impl File {
    /// Creates a file of fresh lines, which are mapped for writing. If it is `protected`, no other
    /// process can ever do that. Processes that have the file can check its life.
    pub(crate) fn create(
        lines: usize,
        protected: bool,
    ) -> Result<(Self, &'static [Line], Life), Refusal> {
        const ADD_SEALS: c_int = 1033;
        const CLOSE_ON_EXEC: c_uint = 1;
        const ALLOW_SEALING: c_uint = 2;
        #[cfg(target_arch = "x86_64")]
        const MEMFD_CREATE: c_long = 319;
        #[cfg(target_arch = "x86")]
        const MEMFD_CREATE: c_long = 356;
        #[cfg(target_arch = "arm")]
        const MEMFD_CREATE: c_long = 385;
        #[cfg(any(target_arch = "powerpc", target_arch = "powerpc64"))]
        const MEMFD_CREATE: c_long = 360;
        #[cfg(target_arch = "s390x")]
        const MEMFD_CREATE: c_long = 350;
        #[cfg(any(target_arch = "sparc", target_arch = "sparc64"))]
        const MEMFD_CREATE: c_long = 348;
        #[cfg(any(
            target_arch = "aarch64",
            target_arch = "riscv32",
            target_arch = "riscv64",
            target_arch = "loongarch64"
        ))]
        const MEMFD_CREATE: c_long = 279;
        // No call has this number: the system returns that it has none.
        #[cfg(not(any(
            target_arch = "x86_64",
            target_arch = "x86",
            target_arch = "arm",
            target_arch = "powerpc",
            target_arch = "powerpc64",
            target_arch = "s390x",
            target_arch = "sparc",
            target_arch = "sparc64",
            target_arch = "aarch64",
            target_arch = "riscv32",
            target_arch = "riscv64",
            target_arch = "loongarch64"
        )))]
        const MEMFD_CREATE: c_long = -1;
        let (name, flags) = (c"cuda-events".as_ptr(), CLOSE_ON_EXEC | ALLOW_SEALING);
        // Not by its name in the C library, which older ones do not have.
        // SAFETY: the number is the call's, whose arguments are a C string and flags.
        let file = unsafe { syscall(MEMFD_CREATE, name as *const c_char, flags) };
        let file = c_int::try_from(file).ok().filter(|file| *file >= 0).ok_or_else(last)?;
        // SAFETY: it is new, and nobody else's.
        let file = unsafe { std::fs::File::from_raw_fd(file) };
        let bytes = (lines * size_of::<Line>()) as u64;
        file.set_len(bytes).map_err(|error| refused(&error))?;
        let mapped = map(lines, true, SHARED, file.as_raw_fd())?;
        let more = if protected { SEAL_FUTURE_WRITE } else { 0 };
        // SAFETY: the command takes a number.
        if unsafe { fcntl(file.as_raw_fd(), ADD_SEALS, REQUIRED | more) } < 0 {
            return Err(last());
        }
        let life = Life::begin(&file)?;
        // So that a process of another user that is given the file for reading cannot open it
        // for writing.
        file.set_permissions(Permissions::from_mode(0o400)).map_err(|error| refused(&error))?;
        // What is lent is for reading, so that nobody who is given it can take a lock on the file:
        // it would pass for the exporter's.
        let file = if protected { open_again(&file, false)? } else { file };
        Ok((Self { file, writable: !protected }, mapped, life))
    }

    /// One that another process has made, if it is safe to look at.
    pub(crate) fn open(file: OwnedFd, lines: usize) -> Result<Self, Refusal> {
        const GET_SEALS: c_int = 1034;
        const GET_FLAGS: c_int = 3;
        const ACCESS: c_int = 3;
        const READ_AND_WRITE: c_int = 2;
        let file = std::fs::File::from(file);
        // SAFETY: the command takes nothing.
        let seals = unsafe { fcntl(file.as_raw_fd(), GET_SEALS) };
        if seals < 0 {
            return Err(Refusal::NotMemory);
        }
        if seals & REQUIRED != REQUIRED {
            return Err(Refusal::Unsealed);
        }
        // Only now, as it cannot change any more.
        let data = file.metadata().map_err(|error| refused(&error))?;
        let expected = lines * size_of::<Line>();
        if data.len() != expected as u64 {
            let (found, expected) = (data.len(), expected as u32);
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            return Err(Refusal::FileSize { found, expected });
        }
        // SAFETY: the command takes nothing.
        let flags = unsafe { fcntl(file.as_raw_fd(), GET_FLAGS) };
        let writable = flags >= 0
            && flags & ACCESS == READ_AND_WRITE
            && seals & (SEAL_WRITE | SEAL_FUTURE_WRITE) == 0;
        Ok(Self { file, writable })
    }

    pub(crate) fn identity(&self) -> Result<Identity, Refusal> {
        let data = self.file.metadata().map_err(|error| refused(&error))?;
        Ok((data.dev(), data.ino()))
    }

    /// Maps the file read-only: permanently if `check` accepts it, and otherwise not at all.
    pub(crate) fn map(
        &self,
        lines: usize,
        check: impl FnOnce(&[Line]) -> Result<(), Refusal>,
    ) -> Result<&'static [Line], Refusal> {
        let mapped = map(lines, false, SHARED, self.file.as_raw_fd())?;
        if let Err(refusal) = check(mapped) {
            let memory = mapped.as_ptr().cast_mut().cast();
            // SAFETY: mapped above. `check` had it for its call only, as its type requires for any
            // lifetime, and nothing else refers to it.
            unsafe { munmap(memory, lines * size_of::<Line>()) };
            return Err(refusal);
        }
        Ok(mapped)
    }

    /// Nothing that must be looked for: the exporter has a lock on the file itself.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "on Windows it is a process")]
    pub(crate) fn find_maker(&mut self, _header: &'static Line) -> Result<(), Refusal> {
        Ok(())
    }

    /// Maps it for writing, for as long as `write` takes.
    pub(crate) fn write(&self, lines: usize, write: impl FnOnce(&[Line])) -> Result<(), Refusal> {
        let memory = map_raw(lines, true, SHARED, self.file.as_raw_fd())?;
        // SAFETY: as for `map`, until it is unmapped below.
        write(unsafe { core::slice::from_raw_parts(memory.cast::<Line>(), lines) });
        // SAFETY: mapped above, and nothing refers to it any more.
        unsafe { munmap(memory, lines * size_of::<Line>()) };
        Ok(())
    }

    /// Whether the [`Life`] of the file has ended. If the system gives no answer, it has not.
    pub(crate) fn is_orphaned(&self) -> bool {
        // A lock for reading, so that only locks for writing count: those take a description that
        // is open for writing, also where a seal forbids to write.
        let mut lock = Lock::of(READ_LOCK);
        // SAFETY: the command takes a place for a lock of this layout.
        let result = unsafe { fcntl(self.file.as_raw_fd(), GET_LOCK, &raw mut lock) };
        result >= 0 && lock.kind == NO_LOCK
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Another description of the same file.
fn open_again(file: &std::fs::File, writable: bool) -> Result<std::fs::File, Refusal> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut options = std::fs::File::options();
    let opened = std::fs::OpenOptions::open(options.read(true).write(writable), path);
    opened.map_err(|error| refused(&error))
}

const READ_LOCK: i16 = 0;
const WRITE_LOCK: i16 = 1;
const NO_LOCK: i16 = 2;
const GET_LOCK: c_int = 36;
const SET_LOCK: c_int = 37;

/// A lock of an open file description, `struct flock` with 64-bit offsets. All zero: of the
/// whole file.
#[repr(C)]
#[derive(Default)]
struct Lock {
    kind: i16,
    whence: i16,
    start: i64,
    length: i64,
    process: i32,
}

impl Lock {
    fn of(kind: i16) -> Self {
        Self { kind, ..Self::default() }
    }
}

/// Shows that the exporter of a file lives. It is a lock on the file, with a file description of
/// its own.
///
/// The system releases the lock when the process ends in any way, or replaces itself by another
/// program. A process that has the file can check the lock, in all namespaces and containers, where
/// a process id would be meaningless.
///
/// A forked child would share the description and with it the lock. So a handler closes it
/// there.
pub(crate) struct Life(&'static Place);

/// A file descriptor that forked children close. The places are a list that only grows, at its end.
/// It has no lock, because another thread may hold a lock when the process forks.
struct Place {
    file: AtomicI32,
    next: OnceLock<&'static Self>,
}

static LIVES: Place = Place::new(-1);

impl Place {
    const fn new(file: c_int) -> Self {
        Self { file: AtomicI32::new(file), next: OnceLock::new() }
    }

    /// All places. It waits for nothing: `get` is one load.
    fn all() -> impl Iterator<Item = &'static Self> {
        core::iter::successors(Some(&LIVES), |place| place.next.get().copied())
    }

    /// Gives the descriptor to an unused place, or to a new one.
    fn take(file: c_int) -> &'static Self {
        let order = Ordering::AcqRel;
        let take = |place: &&'static Self| {
            place.file.compare_exchange(-1, file, order, Ordering::Relaxed).is_ok()
        };
        if let Some(place) = Self::all().find(take) {
            return place;
        }
        let new = &*Box::leak(Box::new(Self::new(file)));
        // Another thread may have set the last one's next in between: then that one is the last.
        while Self::all().last().is_some_and(|last| last.next.set(new).is_err()) {}
        new
    }
}

/// How many forks have begun, and how many of those are over, in this process.
static FORKS: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

extern "C" fn before_fork() {
    FORKS[0].fetch_add(1, Ordering::SeqCst);
}

extern "C" fn after_fork() {
    FORKS[1].fetch_add(1, Ordering::SeqCst);
}

/// Makes something at a time when no child is made that has it half made.
///
/// If all forks that have begun until the end of `make` were over at its start, then none has
/// copied the process in between.
fn undisturbed<T>(make: impl Fn() -> Result<T, Refusal>) -> Result<T, Refusal> {
    loop {
        let over = FORKS[1].load(Ordering::SeqCst);
        let made = make()?;
        if FORKS[0].load(Ordering::SeqCst) == over {
            return Ok(made);
        }
        drop(made);
        let_others_run();
    }
}

extern "C" fn close_in_child() {
    // Forks of other threads do not go on here.
    FORKS[1].store(FORKS[0].load(Ordering::SeqCst), Ordering::SeqCst);
    for place in Place::all() {
        let file = place.file.load(Ordering::Acquire);
        if file >= 0 {
            // SAFETY: it is the child's own number for the description, which nobody uses any
            // more there. `close` is allowed in a forked child.
            unsafe { close(file) };
        }
    }
}

fn begin_handlers() {
    static HANDLER: Once = Once::new();
    // SAFETY: the handlers count, read a list without locks and close files, which a forked child
    // may do.
    HANDLER.call_once(|| unsafe {
        pthread_atfork(Some(before_fork), Some(after_fork), Some(close_in_child));
    });
}

impl Life {
    fn begin(file: &std::fs::File) -> Result<Self, Refusal> {
        begin_handlers();
        // Another description of the same file: a lock on the one that is sent would live in
        // every process that has it.
        // In the list before it is locked, so that no child keeps the lock. A child that came
        // between the two steps would not close it.
        let life = undisturbed(|| Ok(Self(Place::take(open_again(file, true)?.into_raw_fd()))))?;
        let own = life.0.file.load(Ordering::Acquire);
        let mut lock = Lock::of(WRITE_LOCK);
        // SAFETY: the command takes a lock of this layout.
        if unsafe { fcntl(own, SET_LOCK, &raw mut lock) } < 0 {
            return Err(last());
        }
        Ok(life)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if is_forked_child() {
            // The fork handler has closed it in this process.
            return;
        }
        let file = self.0.file.swap(-1, Ordering::AcqRel);
        if file >= 0 {
            // SAFETY: it was this life's own.
            unsafe { close(file) };
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::{begin_handlers, undisturbed};

    /// A fork while something is being made has it made anew.
    #[test]
    fn a_fork_is_noticed() {
        unsafe extern "C" {
            fn fork() -> i32;
            fn _exit(status: i32) -> !;
            fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
        }
        begin_handlers();
        let made = Cell::new(0);
        let result = undisturbed(|| {
            made.set(made.get() + 1);
            if made.get() == 1 {
                // SAFETY: the child ends at once.
                unsafe {
                    let child = fork();
                    if child == 0 {
                        _exit(0);
                    }
                    waitpid(child, core::ptr::null_mut(), 0);
                }
            }
            Ok(made.get())
        });
        // Other tests may fork, too.
        assert!(matches!(result, Ok(2..)), "{result:?}");
    }
}
