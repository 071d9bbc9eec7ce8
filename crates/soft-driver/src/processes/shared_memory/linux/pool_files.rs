//! For cuda.core: files of pools that other processes can be given.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, IntoRawFd, RawFd};
use std::os::unix::fs::FileExt as _;

use super::{Arena, Backing, Named, PAGE, PoolFile, is_sealed, map_named};

const POOL_MAGIC: [u8; 8] = *b"softpool";

impl Arena {
    /// For a pool that other processes can be given: its file begins with a page that says so.
    pub(crate) fn of_pool(device: u64) -> Option<Self> {
        let mut arena = Self::new()?;
        let mut name = [0; 16];
        File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut name)).ok()?;
        arena.pool = u128::from_ne_bytes(name);
        arena.file.set_len(PAGE).ok()?;
        arena.next = PAGE;
        let mut header = POOL_MAGIC.to_vec();
        header.extend(arena.pool.to_le_bytes());
        header.extend(device.to_le_bytes());
        arena.file.write_all_at(&header, 0).ok()?;
        Some(arena)
    }

    /// A descriptor of the file, for the program to send to another process and to close.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.file.try_clone().ok().map(IntoRawFd::into_raw_fd)
    }

    /// The name of a piece of a pool's memory.
    pub(crate) fn name(&self, backing: &Backing, bytes: usize) -> Named {
        backing.exported.store(true, core::sync::atomic::Ordering::Relaxed);
        Named { exporter: self.pool, offset: backing.offset, bytes: bytes as u64 }
    }
}

impl PoolFile {
    /// What a descriptor that came from another process is of, if it is of a pool.
    pub(crate) fn open(descriptor: RawFd) -> Option<Self> {
        // SAFETY: it has no preconditions; what is no descriptor is an error.
        let own = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        // SAFETY: just opened, and owned by nothing else.
        let file = (own >= 0).then(|| unsafe { File::from_raw_fd(own) })?;
        let mut header = [0; 32];
        file.read_exact_at(&mut header, 0).ok()?;
        let name = u128::from_le_bytes(header.get(8..24)?.try_into().ok()?);
        let device = u64::from_le_bytes(header.get(24..32)?.try_into().ok()?);
        (header.starts_with(&POOL_MAGIC) && is_sealed(&file)).then_some(Self { file, name, device })
    }

    /// Maps a piece of it.
    pub(crate) fn map(&self, named: &Named) -> Option<usize> {
        let good = named.exporter == self.name && named.offset >= PAGE;
        good.then(|| map_named(&self.file, named))?.ok()
    }
}
