//! Device memory that another process can open: where it lies, and how it comes there.
//!
//! All device memory of a machine lies in one file of memory without a name. The exporter of
//! a piece listens on a Unix socket in the abstract namespace, whose name is in the handle, and
//! sends the file to each process of the same user that asks. So it needs no folder that both see;
//! it does need one network namespace, which is where such names are.

use crate::abi::*;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Arena, Backing, PoolFile, import};
#[cfg(not(target_os = "linux"))]
pub(crate) use self::nowhere::{Arena, Backing, PoolFile, import};

/// Whether device memory can be given to another process on this platform.
pub(crate) const AVAILABLE: bool = cfg!(target_os = "linux");

/// What the 64 bytes of a handle say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Named {
    /// Whose it is: the name of the exporter's socket.
    pub(crate) exporter: u128,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

const MAGIC: [u8; 8] = *b"cudasoft";

impl Named {
    pub(crate) fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(&self.exporter.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.offset.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8; 64]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let exporter = u128::from_le_bytes(bytes.get(8..24)?.try_into().ok()?);
        let named = Self { exporter, offset: word(24)?, bytes: word(32)? };
        (bytes.starts_with(&MAGIC)).then_some(named)
    }
}

/// What cannot be reached is no handle that can be opened.
const UNREACHABLE: CUresult = INVALID_VALUE;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::Read as _;
    use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::sync::Arc;
    use std::thread::JoinHandle;
    use std::time::Duration;

    use super::*;

    mod pool_files;

    /// Where a piece of device memory lies.
    #[derive(Debug)]
    pub(crate) struct Backing {
        file: Arc<File>,
        offset: u64,
        bytes: u64,
        /// Whether another process may have it.
        exported: core::sync::atomic::AtomicBool,
    }

    impl Drop for Backing {
        fn drop(&mut self) {
            if !self.is_exported() {
                self.clear(0, self.bytes);
            }
        }
    }

    impl Backing {
        /// Makes bytes zero by giving their pages back, which takes a fraction of the time of
        /// writing them; whether it did.
        pub(crate) fn clear(&self, from: u64, bytes: u64) -> bool {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            let at = |number| libc::off_t::try_from(number).ok();
            let offset = self.offset.checked_add(from).and_then(at);
            let Some((offset, bytes)) = offset.zip(at(bytes)) else { return false };
            // SAFETY: an open file. The bytes are this memory's, which is dropped, or which the
            // caller may write to.
            unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, bytes) == 0 }
        }

        pub(crate) fn is_exported(&self) -> bool {
            self.exported.load(core::sync::atomic::Ordering::Relaxed)
        }
    }

    /// The file that the device memory of a machine lies in, and the thread that gives it to
    /// others.
    pub(crate) struct Arena {
        file: Arc<File>,
        next: u64,
        exporter: Option<Exporter>,
        /// What the file of a pool calls itself; 0 for no pool's.
        pool: u128,
    }

    impl Arena {
        pub(crate) fn new() -> Option<Self> {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            // SAFETY: a C string that lives for the call.
            let descriptor =
                unsafe { libc::memfd_create(c"cuda-soft-driver.memory".as_ptr(), flags) };
            if descriptor < 0 {
                return None;
            }
            // SAFETY: just opened, and owned by nothing else.
            let file = unsafe { File::from_raw_fd(descriptor) };
            // Nobody can have it cut short under those who map it.
            // SAFETY: an open file.
            unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
            Some(Self { file: Arc::new(file), next: 0, exporter: None, pool: 0 })
        }

        /// Maps new memory: its address, and where it lies. Pages are only there once they are
        /// touched.
        pub(crate) fn map(&mut self, bytes: usize) -> Option<(usize, Backing)> {
            let (offset, length) = (self.next, (bytes as u64).checked_next_multiple_of(PAGE)?);
            // A system call takes it, whose offsets have 32 bits on some platforms.
            let in_range = |end: &u64| libc::off_t::try_from(*end).is_ok();
            let end = offset.checked_add(length).filter(in_range)?;
            self.file.set_len(end).ok()?;
            let base = map(&self.file, offset, bytes)?;
            self.next = end;
            let exported = core::sync::atomic::AtomicBool::new(false);
            Some((base, Backing { file: self.file.clone(), offset, bytes: length, exported }))
        }

        /// The name of a piece of memory in handles. The first one starts the thread that others
        /// ask.
        pub(crate) fn export(
            &mut self,
            backing: &Backing,
            bytes: usize,
        ) -> Result<Named, CUresult> {
            let exporter = match &self.exporter {
                Some(exporter) => exporter,
                None => {
                    self.exporter.insert(Exporter::start(&self.file).map_err(|_| OPERATING_SYSTEM)?)
                }
            };
            backing.exported.store(true, core::sync::atomic::Ordering::Relaxed);
            Ok(Named { exporter: exporter.name, offset: backing.offset, bytes: bytes as u64 })
        }

        /// Whether a handle names memory that lies here.
        pub(crate) fn is_of(&self, named: &Named) -> bool {
            self.exporter.as_ref().is_some_and(|exporter| exporter.name == named.exporter)
        }
    }

    /// The file of another process's pool.
    pub(crate) struct PoolFile {
        file: File,
        name: u128,
        /// Which device of the machine it is of.
        pub(crate) device: u64,
    }

    /// Offsets in the file are multiples of this, which is one of any page's size.
    const PAGE: u64 = 1 << 16;

    fn map(file: &File, offset: u64, bytes: usize) -> Option<usize> {
        // SAFETY: a new mapping; no existing memory is named.
        let address = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                libc::off_t::try_from(offset).ok()?,
            )
        };
        (address != libc::MAP_FAILED).then(|| address.expose_provenance())
    }

    fn address(name: u128) -> std::io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(format!("cuda-soft-driver.memory.{name:032x}"))
    }

    /// Whether the other side is of the same user.
    fn same_user(stream: &UnixStream) -> bool {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: a place for the credentials and their length.
        let code = unsafe {
            let place = (&raw mut peer).cast();
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                place,
                &raw mut length,
            )
        };
        // SAFETY: it has no preconditions.
        code == 0 && peer.uid == unsafe { libc::geteuid() }
    }

    /// The thread that sends the file to those who ask.
    struct Exporter {
        name: u128,
        listener: Arc<UnixListener>,
        thread: Option<JoinHandle<()>>,
    }

    impl Exporter {
        fn start(file: &Arc<File>) -> std::io::Result<Self> {
            let mut name = [0; 16];
            File::open("/dev/urandom")?.read_exact(&mut name)?;
            let name = u128::from_ne_bytes(name);
            let listener = Arc::new(UnixListener::bind_addr(&address(name)?)?);
            let (ours, file) = (listener.clone(), file.clone());
            let serve = move || {
                while let Ok((stream, _)) = ours.accept() {
                    if same_user(&stream) {
                        // Who does not take it gets none.
                        let _ = send(&stream, file.as_raw_fd());
                    }
                }
            };
            let thread =
                std::thread::Builder::new().name("cuda-soft-memory".to_owned()).spawn(serve)?;
            Ok(Self { name, listener, thread: Some(thread) })
        }
    }

    impl Drop for Exporter {
        fn drop(&mut self) {
            // Wakes the thread, which accepts nobody any more.
            // SAFETY: an open socket.
            unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
        }
    }

    /// Room for a control message with one descriptor, as aligned as its header.
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        descriptor: RawFd,
        _padding: RawFd,
    }

    /// A message of one byte, with `control` beside it.
    fn message(byte: &mut u8, part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
        *part = libc::iovec { iov_base: core::ptr::from_mut(byte).cast(), iov_len: 1 };
        // SAFETY: a struct of numbers and pointers, for which zeros are good.
        let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = core::ptr::from_mut(control).cast();
        message.msg_controllen = size_of::<Control>() as _;
        message
    }

    const EMPTY: libc::iovec = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };

    fn control(descriptor: RawFd) -> Control {
        // SAFETY: a struct of numbers, for which zeros are good.
        let mut header: libc::cmsghdr = unsafe { core::mem::zeroed() };
        header.cmsg_len = (size_of::<libc::cmsghdr>() + size_of::<RawFd>()) as _;
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        Control { header, descriptor, _padding: 0 }
    }

    fn send(stream: &UnixStream, descriptor: RawFd) -> std::io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut byte, mut part, mut control) = (1, EMPTY, control(descriptor));
        let message = message(&mut byte, &mut part, &mut control);
        // SAFETY: a message whose parts live for the call.
        let sent =
            unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent == 1 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }

    /// How long one side waits for the other.
    const PATIENCE: Duration = Duration::from_secs(5);

    fn receive(stream: &UnixStream) -> Option<File> {
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let (mut byte, mut part, mut control) = (0, EMPTY, control(-1));
        control.header.cmsg_type = -1;
        let mut message = message(&mut byte, &mut part, &mut control);
        // SAFETY: a message whose parts are places that live for the call.
        let got =
            unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
        let whole = (size_of::<libc::cmsghdr>() + size_of::<RawFd>()) as _;
        let header = control.header;
        let has = got == 1 && header.cmsg_type == libc::SCM_RIGHTS && header.cmsg_len == whole;
        // SAFETY: a descriptor that the kernel has just opened for this process, owned by nothing
        // else.
        (has && control.descriptor >= 0).then(|| unsafe { File::from_raw_fd(control.descriptor) })
    }

    /// Maps what another process exported.
    pub(crate) fn import(named: &Named) -> Result<usize, CUresult> {
        let stream = address(named.exporter).and_then(|address| UnixStream::connect_addr(&address));
        let stream = stream.ok().filter(same_user).ok_or(UNREACHABLE)?;
        let file = receive(&stream).ok_or(UNREACHABLE)?;
        map_named(&file, named)
    }

    /// Whether nobody can cut a file short.
    fn is_sealed(file: &File) -> bool {
        // SAFETY: an open file.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
    }

    /// Maps a piece of a file. What is mapped is there, and stays: whatever was made up, or who
    /// cuts files short.
    fn map_named(file: &File, named: &Named) -> Result<usize, CUresult> {
        let length = file.metadata().map_err(|_| UNREACHABLE)?.len();
        let end = named.offset.checked_add(named.bytes).filter(|end| *end <= length);
        let sound = is_sealed(file) && named.offset.is_multiple_of(PAGE);
        if !sound || end.is_none() || named.bytes == 0 {
            return Err(UNREACHABLE);
        }
        let bytes = usize::try_from(named.bytes).map_err(|_| UNREACHABLE)?;
        map(file, named.offset, bytes).ok_or(MAP_FAILED)
    }
}

/// Elsewhere device memory stays in its process.
#[cfg(not(target_os = "linux"))]
mod nowhere {
    use super::*;

    #[derive(Debug)]
    pub(crate) enum Backing {}

    impl Backing {
        pub(crate) fn clear(&self, _from: u64, _bytes: u64) -> bool {
            match *self {}
        }

        pub(crate) fn is_exported(&self) -> bool {
            match *self {}
        }
    }

    pub(crate) enum Arena {}

    impl Arena {
        pub(crate) fn new() -> Option<Self> {
            None
        }

        pub(crate) fn map(&mut self, _bytes: usize) -> Option<(usize, Backing)> {
            match *self {}
        }

        pub(crate) fn of_pool(_device: u64) -> Option<Self> {
            None
        }

        pub(crate) fn descriptor(&self) -> Option<i32> {
            match *self {}
        }

        pub(crate) fn name(&self, _backing: &Backing, _bytes: usize) -> Named {
            match *self {}
        }

        pub(crate) fn export(
            &mut self,
            _backing: &Backing,
            _bytes: usize,
        ) -> Result<Named, CUresult> {
            match *self {}
        }

        pub(crate) fn is_of(&self, _named: &Named) -> bool {
            match *self {}
        }
    }

    pub(crate) fn import(_named: &Named) -> Result<usize, CUresult> {
        Err(UNREACHABLE)
    }

    pub(crate) struct PoolFile {
        pub(crate) device: u64,
        never: core::convert::Infallible,
    }

    impl PoolFile {
        pub(crate) fn open(_descriptor: i32) -> Option<Self> {
            None
        }

        pub(crate) fn map(&self, _named: &Named) -> Option<usize> {
            match self.never {}
        }
    }
}
