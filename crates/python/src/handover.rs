//! Gives file descriptors to processes that have bytes of ours.

use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Read, Result, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many clients are served at once. Others wait.
const CLIENTS: usize = 64;
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

    fn address(name: [u8; 16]) -> Result<SocketAddr> {
        let hex = u128::from_le_bytes(name);
        SocketAddr::from_abstract_name(format!("cuda-timelines-{hex:032x}"))
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
    let listener = UnixListener::bind_addr(&Place::address(name)?)?;
    let clients = Arc::new(());
    let serve = move || {
        for client in listener.incoming() {
            // Without a file descriptor left, the client waits until there is one.
            let Ok(client) = client else {
                std::thread::sleep(AGAIN);
                continue;
            };
            // A client that says nothing keeps no other one waiting, unless there are many. Without
            // a thread for it, it sees the connection end.
            while Arc::strong_count(&clients) > CLIENTS {
                std::thread::sleep(AGAIN);
            }
            let share = Arc::clone(&clients);
            let _ = std::thread::Builder::new().name("cuda-timelines-client".to_owned()).spawn(
                move || {
                    let _share = share;
                    answer(&client)
                },
            );
        }
    };
    std::thread::Builder::new().name("cuda-timelines-files".to_owned()).spawn(serve)?;
    Ok(Offers { name, secret, files: Vec::new() })
}

fn answer(mut client: &UnixStream) -> Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut asked = [0; Place::ASK];
    client.read_exact(&mut asked)?;
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

/// Gets the file from its process, which may be this one.
pub(crate) fn fetch(place: &Place) -> Result<OwnedFd> {
    let address = Place::address(place.name)?;
    let mut server = loop {
        match UnixStream::connect_addr(&address) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            connected => break connected?,
        }
    };
    server.set_read_timeout(Some(PATIENCE))?;
    server.set_write_timeout(Some(PATIENCE))?;
    server.write_all(&place.ask)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    // A signal of the system may interrupt it.
    rustix::io::retry_on_intr(|| {
        let mut data = [IoSliceMut::new(&mut byte)];
        rustix::net::recvmsg(&server, &mut data, &mut rights, RecvFlags::CMSG_CLOEXEC)
    })?;
    let file = rights.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    file.ok_or_else(|| Error::new(ErrorKind::PermissionDenied, "it refused to send its file"))
}
