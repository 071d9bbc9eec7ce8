//! Gives file descriptors to processes that have bytes of ours.

use std::ffi::c_int;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::users;
use pyo3::PyResult;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, socket_with,
};

/// How long a request may take, on either side.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client waits before it looks for signals.
const SLICE: Duration = Duration::from_millis(100);
/// How many clients of the same user are served at once. Others wait.
const CLIENTS: usize = 64;
/// And of other users: a container may have users of its own, but every user of the machine sees
/// the socket. More are refused, so they keep nobody waiting.
const STRANGERS: usize = 8;
/// How soon the server tries again.
const AGAIN: Duration = Duration::from_millis(10);

/// Where a file is to be had: the name of a socket, a secret that only the bytes of events have,
/// and the number of the file. The name alone can be seen in /proc/net/unix.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    name: [u8; 16],
    ask: [u8; Self::ASK],
}

impl Place {
    const ASK: usize = 20;
    pub(crate) const LEN: usize = 16 + Self::ASK;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (name, ask) = bytes.split_at_mut(16);
        name.copy_from_slice(&self.name);
        ask.copy_from_slice(&self.ask);
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let (mut name, mut ask) = ([0; 16], [0; Self::ASK]);
        let (first, second) = bytes.split_at(16);
        name.copy_from_slice(first);
        ask.copy_from_slice(second);
        Self { name, ask }
    }

    fn address(name: [u8; 16]) -> String {
        format!("cuda-timelines-{:032x}", u128::from_le_bytes(name))
    }
}

/// What this process offers.
struct Offers {
    name: [u8; 16],
    secret: [u8; 16],
    files: Vec<OwnedFd>,
}

static OFFERS: Mutex<Option<Offers>> = Mutex::new(None);

/// Offers a file for as long as the process lives. The first one starts a thread.
pub(crate) fn offer(file: OwnedFd) -> Result<Place> {
    let mut offers = OFFERS.lock().unwrap_or_else(PoisonError::into_inner);
    let offers = match &mut *offers {
        Some(offers) => offers,
        none => none.insert(start()?),
    };
    let number = u32::try_from(offers.files.len()).map_err(|_| ErrorKind::OutOfMemory)?;
    offers.files.push(file);
    let mut ask = [0; Place::ASK];
    let (secret, place) = ask.split_at_mut(16);
    secret.copy_from_slice(&offers.secret);
    place.copy_from_slice(&number.to_le_bytes());
    Ok(Place { name: offers.name, ask })
}

fn start() -> Result<Offers> {
    let (mut name, mut secret) = ([0; 16], [0; 16]);
    let mut random = std::fs::File::open("/dev/urandom")?;
    random.read_exact(&mut name)?;
    random.read_exact(&mut secret)?;
    let address = SocketAddr::from_abstract_name(Place::address(name))?;
    let listener = UnixListener::bind_addr(&address)?;
    close_in_children(&listener)?;
    let (clients, strangers) = (Arc::new(()), Arc::new(()));
    let serve = move || {
        for client in listener.incoming() {
            // Without a file descriptor left, the client waits until there is one.
            let Ok(client) = client else {
                std::thread::sleep(AGAIN);
                continue;
            };
            // At once: a thread may begin late, and a child that is forked before would keep it.
            let client = Client::new(client);
            let is_own = user_of(&client.socket).is_ok_and(|(_, is_own)| is_own);
            if !is_own && Arc::strong_count(&strangers) > STRANGERS {
                continue;
            }
            // A client that says nothing keeps no other one waiting, unless there are many. Without
            // a thread for it, it sees the connection end.
            while is_own && Arc::strong_count(&clients) > CLIENTS {
                std::thread::sleep(AGAIN);
            }
            let share = Arc::clone(if is_own { &clients } else { &strangers });
            let _ = std::thread::Builder::new().name("cuda-timelines-client".to_owned()).spawn(
                move || {
                    let _share = share;
                    answer(&client.socket)
                },
            );
        }
    };
    std::thread::Builder::new().name("cuda-timelines-files".to_owned()).spawn(serve)?;
    Ok(Offers { name, secret, files: Vec::new() })
}

/// The user of the process at the other end, and whether it is the same one, or root.
fn user_of(peer: impl AsFd) -> rustix::io::Result<(u32, bool)> {
    let (user, own) = (socket_peercred(peer)?.uid.as_raw(), rustix::process::geteuid().as_raw());
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    Ok((user, users::is_own(own, user, &map)))
}

/// The socket that this process listens on.
static LISTENER: AtomicI32 = AtomicI32::new(-1);
/// Those of the clients, and of one that waits for a thread.
static ACCEPTED: [AtomicI32; CLIENTS + STRANGERS + 1] =
    [const { AtomicI32::new(-1) }; CLIENTS + STRANGERS + 1];

/// The socket of a client, which a forked child closes.
struct Client {
    socket: UnixStream,
    place: Option<&'static AtomicI32>,
}

impl Client {
    fn new(socket: UnixStream) -> Self {
        let file = socket.as_raw_fd();
        let free = |place: &&AtomicI32| {
            place.compare_exchange(-1, file, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        let place = ACCEPTED.iter().find(free);
        Self { socket, place }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Before the socket is closed: the number may be another file's then.
        if let Some(place) = self.place {
            place.store(-1, Ordering::Relaxed);
        }
    }
}

/// A forked child has no thread that answers, so it must not keep the sockets open: who connects or
/// has asked would wait after the parent's end.
fn close_in_children(listener: &UnixListener) -> Result<()> {
    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
        fn close(file: c_int) -> c_int;
    }
    extern "C" fn in_child() {
        for place in ACCEPTED.iter().chain([&LISTENER]) {
            let socket = place.swap(-1, Ordering::Relaxed);
            if socket >= 0 {
                // SAFETY: the thread that owns it does not exist in the child, so nothing else
                // there uses or closes this descriptor; the call may be made in a handler of a
                // fork.
                unsafe { close(socket) };
            }
        }
    }
    LISTENER.store(listener.as_raw_fd(), Ordering::Relaxed);
    // SAFETY: the handler takes no arguments and is in a module that Python never unloads.
    match unsafe { pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        code => Err(Error::from_raw_os_error(code)),
    }
}

fn answer(mut client: &UnixStream) -> Result<()> {
    // One deadline, and not one for each byte.
    let deadline = Instant::now() + PATIENCE;
    client.set_write_timeout(Some(PATIENCE))?;
    let (mut asked, mut have) = ([0; Place::ASK], 0);
    while have < asked.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(asked.get_mut(have..).unwrap_or_default()) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => have += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let file = {
        let offers = OFFERS.lock().unwrap_or_else(PoisonError::into_inner);
        let (secret, number) = asked.split_at(16);
        let number: [u8; 4] = number.try_into().unwrap_or_default();
        let found = offers
            .as_ref()
            .filter(|offers| offers.secret == secret)
            .and_then(|offers| offers.files.get(usize::try_from(u32::from_le_bytes(number)).ok()?));
        found.ok_or(ErrorKind::PermissionDenied)?.try_clone()?
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    rights.push(SendAncillaryMessage::ScmRights(&files));
    rustix::net::sendmsg(client, &[IoSlice::new(&[1])], &mut rights, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn stranger(user: u32) -> Error {
    let text = format!("its socket is user {user}'s, who is neither this process's nor root");
    Error::new(ErrorKind::PermissionDenied, text)
}

/// Gets the file from its process, which may be this one. While it waits, it calls `signals` several
/// times a second, and ends with that one's error.
pub(crate) fn fetch(
    place: &Place,
    signals: &dyn Fn() -> PyResult<()>,
) -> PyResult<Result<OwnedFd>> {
    let deadline = Instant::now() + PATIENCE;
    // `None` once more: the call was interrupted, or has waited for a slice of time.
    let again = |result: rustix::io::Result<usize>| -> PyResult<Option<Result<usize>>> {
        match result {
            Err(Errno::INTR | Errno::AGAIN) => {
                signals()?;
                let is_late = Instant::now() >= deadline;
                Ok(is_late.then(|| Err(Error::from(ErrorKind::TimedOut))))
            }
            other => Ok(Some(other.map_err(Error::from))),
        }
    };
    let connected = || -> rustix::io::Result<(OwnedFd, SocketAddrUnix)> {
        let server =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        for timeout in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&server, timeout, Some(SLICE))?;
        }
        let address = SocketAddrUnix::new_abstract_name(Place::address(place.name).as_bytes())?;
        Ok((server, address))
    };
    let (server, address) = match connected() {
        Ok(both) => both,
        Err(error) => return Ok(Err(error.into())),
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut steps: [&mut dyn FnMut() -> rustix::io::Result<usize>; 3] = [
        // It waits while the queue of the server is full.
        &mut || rustix::net::connect(&server, &address).map(|()| 0),
        &mut || rustix::net::send(&server, &place.ask, SendFlags::NOSIGNAL),
        &mut || {
            let mut data = [IoSliceMut::new(&mut byte)];
            rustix::net::recvmsg(&server, &mut data, &mut rights, RecvFlags::CMSG_CLOEXEC)
                .map(|message| message.bytes)
        },
    ];
    for (at, step) in steps.iter_mut().enumerate() {
        loop {
            match again(step())? {
                None => {}
                Some(Ok(_)) => break,
                Some(Err(error)) => return Ok(Err(error)),
            }
        }
        // It is connected. After the exporter's end anybody may have taken the name, to learn the
        // secret, or to send a file of its own.
        if at == 0 {
            match user_of(&server) {
                Ok((_, true)) => {}
                Ok((user, false)) => return Ok(Err(stranger(user))),
                Err(error) => return Ok(Err(error.into())),
            }
        }
    }
    let file = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    let refused = || Error::new(ErrorKind::PermissionDenied, "it refused to send its file");
    Ok(file.ok_or_else(refused))
}
