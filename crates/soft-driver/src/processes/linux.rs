//! Shared memory with names on Linux: files under `/dev/shm`, and futexes in them.

use core::ffi::c_void;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use std::ffi::CString;
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::fs::MetadataExt as _;

const FOLDER: &str = "/dev/shm";
const PREFIX: &str = "cuda-soft-driver.";

/// How the names of a context's files begin.
pub(super) fn stem(process: u32, context: u64) -> String {
    format!("{FOLDER}/{PREFIX}{process}.{context}.")
}

/// A name that nobody can guess.
pub(super) fn name(process: u32, context: u64, nonce: u128) -> String {
    format!("{}{nonce:032x}", stem(process, context))
}

/// The names that are there and begin so.
pub(super) fn names(stem: &str) -> impl Iterator<Item = String> {
    let files = std::fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.path().into_os_string().into_string().ok());
    names.filter(move |name| name.starts_with(stem))
}

pub(super) fn nonce() -> Option<u128> {
    let mut nonce = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut nonce))
        .ok()?;
    Some(u128::from_be_bytes(nonce))
}

pub(super) fn remove(name: &str) {
    // Where it is gone already, all is well.
    let _ = std::fs::remove_file(name);
}

/// Removes what exporters of this user left behind that were killed, a minute after the file was
/// made or more: as on the real driver a descriptor of a dead exporter can be opened for a while.
/// Everybody does who makes a file, opens one, or finds none.
pub(super) fn sweep() {
    const AGE: Duration = Duration::from_secs(60);
    let Ok(files) = std::fs::read_dir(FOLDER) else { return };
    for file in files
        .flatten()
        .filter(|file| file.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    {
        let age = file
            .metadata()
            .and_then(|metadata| metadata.modified())
            .map(|modified| modified.elapsed());
        if age.is_ok_and(|age| age.is_ok_and(|age| age > AGE))
            && let Some(open) = file.path().to_str().and_then(|path| open(path, 0))
            && lock(&open)
        {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Takes the lock that tells that an exporter lives. Whether nobody had it.
fn lock(file: &std::fs::File) -> bool {
    // SAFETY: an open file.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Opens a regular file of this user. Every user can put something else under a name here: a link,
/// or a FIFO or device whose opening would wait.
fn open(name: &str, flags: i32) -> Option<std::fs::File> {
    let path = CString::new(name).ok()?;
    let flags = flags | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    // SAFETY: a C string that lives for the call.
    let opened = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    // SAFETY: just opened, and owned by nothing else.
    let file = (opened >= 0).then(|| unsafe { std::fs::File::from_raw_fd(opened) })?;
    let metadata = file.metadata().ok()?;
    // SAFETY: it has no preconditions.
    let user = unsafe { libc::geteuid() };
    (metadata.is_file() && metadata.uid() == user).then_some(file)
}

#[derive(Debug)]
pub(super) struct File(std::fs::File);

impl File {
    /// Makes a file, for this user only, and never one that is there already. It is locked for as
    /// long as it is open.
    pub(super) fn create(name: &str, bytes: usize) -> Option<Self> {
        let file = open(name, libc::O_CREAT | libc::O_EXCL)?;
        if file.set_len(bytes as u64).is_err() {
            remove(name);
            return None;
        }
        lock(&file);
        Some(Self(file))
    }

    /// Opens a file if it is of this user, for this user only, and so long.
    pub(super) fn open(name: &str, bytes: usize) -> Option<Self> {
        let file = open(name, 0)?;
        let metadata = file.metadata().ok()?;
        let trusted = metadata.mode() & 0o077 == 0 && metadata.len() == bytes as u64;
        trusted.then_some(Self(file))
    }

    /// Whether the exporter that made it has ended: nobody has it locked.
    pub(super) fn is_orphan(&self) -> bool {
        let orphan = lock(&self.0);
        if orphan {
            // SAFETY: an open file.
            unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
        }
        orphan
    }

    /// Maps so many bytes, which it has.
    pub(super) fn map(&self, bytes: usize) -> Option<View> {
        // SAFETY: a new shared mapping; no existing memory is named.
        let address = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                self.0.as_raw_fd(),
                0,
            )
        };
        (address != libc::MAP_FAILED).then_some(View { address, bytes })
    }
}

/// Memory that is mapped while this lives.
#[derive(Debug)]
pub(super) struct View {
    address: *mut c_void,
    bytes: usize,
}

// SAFETY: an address of memory that belongs to the process, and is unmapped by the last owner.
unsafe impl Send for View {}
// SAFETY: as for `Send`; nothing here reads the memory.
unsafe impl Sync for View {}

impl View {
    pub(super) fn address(&self) -> *const c_void {
        self.address
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, unmapped once.
        unsafe { libc::munmap(self.address, self.bytes) };
    }
}

/// Wakes all who sleep at a word in shared memory.
pub(super) fn wake(word: &AtomicU32) {
    // SAFETY: a wake on a word that is borrowed.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Sleeps while the word in shared memory has this value, at most `limit`.
pub(super) fn sleep(word: &AtomicU32, value: u32, limit: Duration) {
    let limit = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
    let wait = libc::FUTEX_WAIT;
    // SAFETY: a wait on a word that is borrowed, with a time limit that lives for the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, value, &raw const limit) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc;
    use std::time::SystemTime;

    use super::*;

    /// What somebody put under a name that a sweep looks at, an hour ago.
    struct Planted(PathBuf);

    impl Planted {
        fn new(what: &str, make: impl FnOnce(&Path)) -> Self {
            let path = PathBuf::from(format!("{FOLDER}/{PREFIX}{}.{what}", std::process::id()));
            make(&path);
            let hour = Duration::from_secs(3600);
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() - hour;
            let time = libc::timespec { tv_sec: since.as_secs() as libc::time_t, tv_nsec: 0 };
            let name = CString::new(path.to_str().unwrap()).unwrap();
            // SAFETY: a C string, and two times.
            let code = unsafe {
                libc::utimensat(
                    libc::AT_FDCWD,
                    name.as_ptr(),
                    [time, time].as_ptr(),
                    libc::AT_SYMLINK_NOFOLLOW,
                )
            };
            assert_eq!(code, 0, "{what}");
            Self(path)
        }

        fn is_there(&self) -> bool {
            self.0.symlink_metadata().is_ok()
        }
    }

    impl Drop for Planted {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn fifo(path: &Path) {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o666) }, 0);
    }

    /// However often it is asked, and by how many: who looks does not keep the lock.
    #[test]
    fn all_see_that_an_exporter_has_ended() {
        // Under a name that no sweep looks at.
        let name = format!("{FOLDER}/orphan.{PREFIX}{}", std::process::id());
        std::fs::write(&name, "").unwrap();
        let opened = [(); 2].map(|()| File(open(&name, 0).unwrap()));
        remove(&name);
        for file in [0, 1, 0, 1] {
            assert!(opened[file].is_orphan(), "{file}");
        }
    }

    /// Others can write to the folder, so a name may be anything.
    #[test]
    fn a_sweep_opens_files_of_its_user_alone() {
        let left = Planted::new("left", |path| std::fs::write(path, "left").unwrap());
        let others = [
            Planted::new("fifo", fifo),
            Planted::new("link", |path| symlink("/dev/zero", path).unwrap()),
            Planted::new("folder", |path| std::fs::create_dir(path).unwrap()),
        ];
        let (done, ends) = mpsc::channel();
        std::thread::spawn(move || {
            sweep();
            // None of them is opened as a file of an exporter either.
            let opened =
                others.iter().filter(|other| File::open(other.0.to_str().unwrap(), 0).is_some());
            let opened: Vec<_> = opened.map(|other| other.0.clone()).collect();
            let there = others.iter().filter(|other| other.is_there()).count();
            let _ = std::fs::remove_dir(&others[2].0);
            done.send((opened, there)).unwrap();
        });
        let (opened, there) = ends.recv_timeout(Duration::from_secs(120)).expect("a sweep waits");
        assert_eq!((opened, there, left.is_there()), (Vec::new(), 3, false));
    }
}
