//! How a test gives files of memory to its child, and gets some: over a Unix socket, or by handles
//! that are duplicated into the other process. Beside it the two speak in lines.

use std::process::Command;

use crate::child::{Child, full_name};
use crate::memory::{AsShared, Shared};

/// The one side or the other.
pub struct Handover(Side);

impl Handover {
    /// Starts the child that runs the ignored test of this name in the caller's file.
    #[track_caller]
    pub fn start(test: &str, configure: impl FnOnce(&mut Command)) -> (Child, Self) {
        let (child, side) = Side::start(&full_name(test), configure);
        (child, Self(side))
    }

    /// In the child, of its role.
    pub fn of_role(role: &str) -> Self {
        Self(Side::of_role(role))
    }

    /// In the test: the child takes it with [`take`](Self::take).
    pub fn give_to(&self, child: &mut Child, file: impl AsShared) {
        self.0.give_to(child, file);
    }

    /// In the test: what the child gave, which has said nothing else meanwhile.
    #[track_caller]
    pub fn take_from(&self, child: &mut Child) -> Shared {
        self.0.take_from(child)
    }

    /// In the child.
    pub fn give(&self, file: impl AsShared) {
        self.0.give(file);
    }

    /// In the child.
    pub fn take(&self) -> Shared {
        self.0.take()
    }
}

#[cfg(target_os = "linux")]
use linux::Side;
#[cfg(windows)]
use windows::Side;

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{IoSlice, IoSliceMut};
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;

    use rustix::net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    };

    use super::{AsShared, Child, Command, Shared};

    /// A socket, whose number is the child's role.
    pub struct Side(UnixStream);

    impl Side {
        pub fn start(test: &str, configure: impl FnOnce(&mut Command)) -> (Child, Self) {
            let (socket, theirs) = UnixStream::pair().expect("a socket");
            let number = theirs.as_raw_fd();
            let child = Child::start_named(test, &number.to_string(), |command| {
                let inherit = move || {
                    // SAFETY: the parent has it open until the child has started.
                    let theirs = unsafe { BorrowedFd::borrow_raw(number) };
                    let none = rustix::io::FdFlags::empty();
                    rustix::io::fcntl_setfd(theirs, none).map_err(Into::into)
                };
                // SAFETY: it makes a system call only.
                unsafe { command.pre_exec(inherit) };
                configure(command);
            });
            (child, Self(socket))
        }

        pub fn of_role(role: &str) -> Self {
            let number = role.parse().expect("the number of the socket");
            // SAFETY: the parent has left it to this process.
            Self(unsafe { UnixStream::from_raw_fd(number) })
        }

        pub fn give_to(&self, _: &mut Child, file: impl AsShared) {
            self.give(file);
        }

        pub fn take_from(&self, _: &mut Child) -> Shared {
            self.take()
        }

        pub fn give(&self, file: impl AsShared) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut rights = SendAncillaryBuffer::new(&mut space);
            let files = [file.as_fd()];
            assert!(rights.push(SendAncillaryMessage::ScmRights(&files)));
            let (parts, flags) = ([IoSlice::new(b"f")], SendFlags::empty());
            rustix::net::sendmsg(&self.0, &parts, &mut rights, flags).expect("the peer is there");
        }

        pub fn take(&self) -> Shared {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut rights = RecvAncillaryBuffer::new(&mut space);
            let mut byte = [0];
            let mut parts = [IoSliceMut::new(&mut byte)];
            rustix::net::recvmsg(&self.0, &mut parts, &mut rights, RecvFlags::CMSG_CLOEXEC)
                .expect("the peer is there");
            let received = rights.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut files) => files.next(),
                _ => None,
            });
            received.expect("a file came")
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::io::AsHandle;

    use super::{AsShared, Child, Command, Shared};
    use crate::child::{read_line, say};
    use crate::memory::{give, given, leave, take};

    /// Numbers of handles, which are lines: the test, whose child the other is, may put handles
    /// into it and take them out.
    pub struct Side;

    impl Side {
        pub fn start(test: &str, configure: impl FnOnce(&mut Command)) -> (Child, Self) {
            (Child::start_named(test, "by-handles", configure), Self)
        }

        pub fn of_role(role: &str) -> Self {
            assert_eq!(role, "by-handles");
            Self
        }

        pub fn give_to(&self, child: &mut Child, file: impl AsShared) {
            let number = give(file, child.as_handle());
            child.send(&number.to_string());
        }

        pub fn take_from(&self, child: &mut Child) -> Shared {
            let number = child.receive().parse().expect("the number of a handle");
            take(number, child.as_handle())
        }

        pub fn give(&self, file: impl AsShared) {
            say(&leave(file).to_string());
        }

        pub fn take(&self) -> Shared {
            given(read_line().parse().expect("the number of a handle"))
        }
    }
}
