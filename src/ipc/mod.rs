//! Interprocess events: descriptors to export, send and import.
//!
//! * The exporter creates an event with [`EventFlags::INTERPROCESS`], and sends its
//!   [`IpcEventDescriptor`] to the other process.
//! * The importer opens the event with [`Event::from_ipc_descriptor`]. Both processes can then
//!   record the event and wait for it.
//! * [`ExporterProcess`] shows whether the exporter still runs. The records of a killed exporter
//!   stay pending forever.
//! * [`ext::IpcLease`](crate::ext::IpcLease) keeps an exported event until the importers are done.
//!
//! ```
//! use cuda_events::ipc::{ExporterProcess, ExporterState, IpcEventDescriptor};
//! use cuda_events::{Context, Device, Event, EventFlags};
//!
//! # use cuda_soft_driver::examples::Driver;
//! let driver = Driver::load()?;
//! let context = Context::primary(Device::new(driver, 0)?)?;
//! // In the exporter:
//! let event = Event::new(&context, EventFlags::INTERPROCESS)?;
//! let bytes = event.ipc_descriptor()?.to_bytes();
//! // ... send the bytes ...
//!
//! // In the importer:
//! let descriptor = IpcEventDescriptor::from_bytes(&bytes)?;
//! let exporter = ExporterProcess::of(&descriptor);
//! assert_ne!(exporter.state(), ExporterState::Ended);
//! // `Event::from_ipc_descriptor` opens the event in another process.
//! # Ok::<(), cuda_events::Error>(())
//! ```

pub(crate) mod envelope;
mod exporter;
pub(crate) mod origin;

use core::fmt;
use core::ptr::null_mut;
use core::str::FromStr;

use crate::context::Context;
use crate::device::{Device, Uuid};
use crate::driver::call::{Answer, call};
use crate::error::{Error, Result};
use crate::event::{Event, EventFlags, EventRef};
use crate::sys::{CUipcEventHandle, CUresult};

use envelope::{Damage, Envelope};
use origin::Origin;

pub use crate::error::DescriptorError;
pub use exporter::{ExporterProcess, ExporterState};

#[cfg(doc)]
use crate::sys::calls::*;

const ENVELOPE: Envelope = Envelope { magic: *b"CUEV", version: 2 };

const FLAG_BLOCKING_SYNC: u16 = 1;
const FLAG_ORIGIN: u16 = 2;

/// A descriptor by which another process can open an interprocess event.
///
/// Besides the driver's 64 opaque bytes it contains:
///
/// * whether the event was created with [`EventFlags::BLOCKING_SYNC`],
/// * the UUID of the event's device, which is the same in every process,
/// * the exporter's process id and start time, and the boot id of its system.
///
/// Send the descriptor as bytes ([`to_bytes`](Self::to_bytes)), as
/// [text](#impl-Display-for-IpcEventDescriptor), or through serde (feature `serde`).
///
/// ```
/// use cuda_events::{Context, Device, Event, EventFlags, IpcEventDescriptor};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// // In the exporter:
/// let event = Event::new(&context, EventFlags::INTERPROCESS)?;
/// let line = event.ipc_descriptor()?.to_string();
///
/// // In the importer, which got the line, for example as an argument:
/// let descriptor: IpcEventDescriptor = line.parse()?;
/// assert_eq!(descriptor.exporter_pid(), Some(std::process::id())); // here they are one process
/// assert_eq!(descriptor.device_uuid(), Some(context.device().uuid()?));
/// assert!(!descriptor.is_blocking_sync());
/// // The same as bytes:
/// assert_eq!(IpcEventDescriptor::from_bytes(&descriptor.to_bytes())?, descriptor);
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// [`ExporterProcess`] has an example of an importer that opens the event and waits for it.
///
/// A descriptor has a checksum, which detects damage. The checksum does not detect forgery: a
/// forged descriptor can name any interprocess event of the same user. Accept descriptors only from
/// processes that you trust, over a channel to which only they can write.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpcEventDescriptor {
    handle: [u8; 64],
    blocking_sync: bool,
    origin: Option<Origin>,
}

impl IpcEventDescriptor {
    /// The length of [`to_bytes`](Self::to_bytes) in bytes.
    pub const LEN: usize = 128;

    /// Makes a descriptor from the driver's 64 bytes, as PyTorch (`torch.cuda.Event.ipc_handle`)
    /// and cuda.core send them.
    ///
    /// `blocking_sync` states whether the event was created with [`EventFlags::BLOCKING_SYNC`].
    /// cuda.core sends it beside the bytes. PyTorch does not send it: pass `false`.
    ///
    /// Opening such a descriptor does not check the device and the exporter.
    ///
    /// ```
    /// use cuda_events::{Context, Device, Event, EventFlags, IpcEventDescriptor};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    ///
    /// let event = Event::new(&context, EventFlags::INTERPROCESS)?;
    /// // For `torch.cuda.Event.from_ipc_handle(device, handle)` in another process:
    /// let handle: [u8; 64] = event.ipc_descriptor()?.to_raw();
    /// // In the other direction, the bytes come from `torch.cuda.Event.ipc_handle()`:
    /// let descriptor = IpcEventDescriptor::from_raw(handle, false);
    /// assert_eq!(descriptor.exporter_pid(), None);
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    pub const fn from_raw(handle: [u8; 64], blocking_sync: bool) -> Self {
        Self { handle, blocking_sync, origin: None }
    }

    /// Returns only the driver's 64 bytes, for PyTorch (`torch.cuda.Event.from_ipc_handle`) and
    /// cuda.core.
    ///
    /// [`from_raw`](Self::from_raw) has an example.
    pub const fn to_raw(&self) -> [u8; 64] {
        self.handle
    }

    /// Returns whether the event was created with [`EventFlags::BLOCKING_SYNC`].
    pub const fn is_blocking_sync(&self) -> bool {
        self.blocking_sync
    }

    /// Returns the id of the process that exported the event; `None` for a descriptor from
    /// [`from_raw`](Self::from_raw).
    pub fn exporter_pid(&self) -> Option<u32> {
        self.origin.map(|origin| origin.pid)
    }

    /// Returns the UUID of the event's device; `None` for a descriptor from
    /// [`from_raw`](Self::from_raw).
    pub fn device_uuid(&self) -> Option<Uuid> {
        self.origin.map(|origin| origin.device)
    }

    /// Returns the descriptor as 128 bytes, to send to another process.
    ///
    /// The numbers are little-endian. The last four bytes are a CRC-32 of the others.
    ///
    /// | bytes | field |
    /// | --- | --- |
    /// | 0–3 | `CUEV` |
    /// | 4–5 | version, 2 |
    /// | 6–7 | flags: 1 is blocking-sync; 2 means that bytes 8–59 name the exporter and the device |
    /// | 8–11 | the exporter's process id |
    /// | 12–27 | the device's UUID |
    /// | 28–35 | the start time of the exporter, in clock ticks since the boot (on Windows in units of 100 ns since 1601) |
    /// | 36–39 | the inode number of the exporter's pid namespace |
    /// | 40–43 | the inode number of its time namespace |
    /// | 44–59 | the boot id of its system, a UUID |
    /// | 60–123 | the driver's bytes |
    /// | 124–127 | CRC-32 (ISO-HDLC) |
    ///
    /// Of bytes 28–59, the exporter sets those to 0 that it does not know.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut flags = 0;
        if self.blocking_sync {
            flags |= FLAG_BLOCKING_SYNC;
        }
        if self.origin.is_some() {
            flags |= FLAG_ORIGIN;
        }
        let origin = self.origin.map_or([0; Origin::LEN], |origin| origin.to_bytes());
        let sealed = ENVELOPE.seal(&[&u16::to_le_bytes(flags), &origin, &self.handle]);
        // The fields have this length. Zeros are no message of any kind.
        sealed.unwrap_or([0; Self::LEN])
    }

    /// Reads the bytes of [`to_bytes`](Self::to_bytes). It makes no driver call.
    ///
    /// # Errors
    ///
    /// [`Magic`](DescriptorError::Magic), [`Version`](DescriptorError::Version),
    /// [`Length`](DescriptorError::Length), [`Checksum`](DescriptorError::Checksum) or
    /// [`Flags`](DescriptorError::Flags). `?` turns each into an [`Error::Descriptor`].
    pub fn from_bytes(bytes: &[u8]) -> core::result::Result<Self, DescriptorError> {
        let mut fields = ENVELOPE.unseal(bytes, Self::LEN)?;
        let flags = u16::from_le_bytes(fields.take()?);
        let unknown = flags & !(FLAG_BLOCKING_SYNC | FLAG_ORIGIN);
        if unknown != 0 {
            // In a later release these flags may change the meaning of the rest.
            return Err(DescriptorError::Flags { unknown });
        }
        let origin: [u8; Origin::LEN] = fields.take()?;
        if flags & FLAG_ORIGIN == 0 && origin != [0; Origin::LEN] {
            // It was made with an exporter, and the flag was lost on the way.
            return Err(DescriptorError::Checksum);
        }
        Ok(Self {
            handle: fields.take()?,
            blocking_sync: flags & FLAG_BLOCKING_SYNC != 0,
            origin: (flags & FLAG_ORIGIN != 0).then(|| Origin::from_bytes(&origin)),
        })
    }
}

impl From<Damage> for DescriptorError {
    fn from(damage: Damage) -> Self {
        match damage {
            Damage::Length { found, expected } => Self::Length { found, expected },
            Damage::Magic => Self::Magic,
            Damage::Version { found, expected } => Self::Version { found, expected },
            Damage::Checksum => Self::Checksum,
        }
    }
}

impl fmt::Debug for IpcEventDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits: String = self.handle.iter().map(|byte| format!("{byte:02x}")).collect();
        f.debug_struct("IpcEventDescriptor")
            .field("exporter_pid", &self.exporter_pid())
            .field("device_uuid", &self.device_uuid())
            .field("blocking_sync", &self.blocking_sync)
            .field("raw", &format_args!("{digits}"))
            .finish_non_exhaustive()
    }
}

/// The beginning of a descriptor's text.
const TEXT_PREFIX: &str = "cuev:";

/// Prints one line of 261 characters: `cuev:` and the hexadecimal digits of
/// [`to_bytes`](IpcEventDescriptor::to_bytes). The line suits a command line, an environment
/// variable or a log; [`FromStr`] reads it.
impl fmt::Display for IpcEventDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TEXT_PREFIX)?;
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads the text of `Display`, ignoring white space around it.
///
/// # Errors
///
/// [`Magic`](DescriptorError::Magic) or [`Text`](DescriptorError::Text) if it is not the text of a
/// descriptor; otherwise as [`from_bytes`](IpcEventDescriptor::from_bytes).
impl FromStr for IpcEventDescriptor {
    type Err = DescriptorError;

    fn from_str(text: &str) -> core::result::Result<Self, DescriptorError> {
        let digits = text.trim().strip_prefix(TEXT_PREFIX).ok_or(DescriptorError::Magic)?;
        let pairs = digits.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> = pairs
            .map(|pair| {
                let pair = str::from_utf8(pair)
                    .ok()
                    .filter(|pair| pair.len() == 2 && !pair.starts_with('+'))?;
                u8::from_str_radix(pair, 16).ok()
            })
            .collect();
        match bytes {
            Some(bytes) => Self::from_bytes(&bytes),
            None => Err(DescriptorError::Text),
        }
    }
}

/// Serializes as text in human-readable formats, as bytes in others. Feature `serde`.
#[cfg(feature = "serde")]
impl serde::Serialize for IpcEventDescriptor {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> core::result::Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }
}

/// Deserializes from text in human-readable formats, from bytes in others, with the checks of
/// [`from_bytes`](IpcEventDescriptor::from_bytes). Feature `serde`.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for IpcEventDescriptor {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> core::result::Result<Self, D::Error> {
        use serde::de::{Error, SeqAccess, Visitor};

        struct Descriptor;

        impl<'de> Visitor<'de> for Descriptor {
            type Value = IpcEventDescriptor;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an IPC event descriptor")
            }

            fn visit_str<E: Error>(self, text: &str) -> core::result::Result<Self::Value, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> core::result::Result<Self::Value, E> {
                IpcEventDescriptor::from_bytes(bytes).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut sequence: A,
            ) -> core::result::Result<Self::Value, A::Error> {
                let mut bytes = Vec::with_capacity(IpcEventDescriptor::LEN);
                // One byte too many is enough to refuse the length.
                while bytes.len() <= IpcEventDescriptor::LEN
                    && let Some(byte) = sequence.next_element()?
                {
                    bytes.push(byte);
                }
                self.visit_bytes(&bytes)
            }
        }

        if deserializer.is_human_readable() {
            deserializer.deserialize_str(Descriptor)
        } else {
            deserializer.deserialize_bytes(Descriptor)
        }
    }
}

/// # Other processes
#[allow(unsafe_code)]
impl EventRef {
    /// Exports the event. Another process of the same user can open the event with the returned
    /// descriptor.
    ///
    /// Each export of one event returns the same descriptor. The descriptor does not keep the event
    /// alive: keep the event until every importer has opened it and finished with it. Using a
    /// destroyed event is undefined behaviour for an importer: the driver gives the event's place
    /// to the next interprocess event of the context. [`IpcEventDescriptor`] has an example.
    ///
    /// Driver calls: [`cuIpcGetEventHandle`] with the event's context current. The first export in
    /// a context also makes the call of [`Device::uuid`], and on Linux reads some files of `/proc`.
    ///
    /// # Errors
    ///
    /// * [`Error::NotInterprocess`]: the event was created without
    ///   [`INTERPROCESS`](EventFlags::INTERPROCESS).
    /// * [`Error::ExportOfImport`]: the event was imported.
    /// * `CUDA_ERROR_OUT_OF_MEMORY`: the memory for the export is used up.
    /// * [`Error::ForkedChild`].
    #[doc(alias = "cuIpcGetEventHandle")]
    #[doc(alias = "ipc_handle")]
    pub fn ipc_descriptor(&self) -> Result<IpcEventDescriptor> {
        if self.is_imported() {
            return Err(Error::ExportOfImport);
        }
        if !self.flags().contains(EventFlags::INTERPROCESS) {
            return Err(Error::NotInterprocess);
        }
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        self.context().with_current(|| {
            // SAFETY: a place for the 64 bytes; the event is alive, and its context current.
            unsafe { call!(self.driver(), cuIpcGetEventHandle(&mut handle, self.as_raw())) }?
                .check()
        })?;
        let origin = Origin::of(self.context())?;
        Ok(IpcEventDescriptor {
            handle: handle.reserved,
            blocking_sync: self.flags().contains(EventFlags::BLOCKING_SYNC),
            origin: Some(origin),
        })
    }
}

/// # Events of other processes
#[allow(unsafe_code)]
impl Event {
    /// Opens an event that another process exported. The context must be of the event's device.
    ///
    /// The result can be recorded, queried and waited for. Each process sees the records of the
    /// other. The result cannot be timed, and cannot be exported again. Opening one descriptor
    /// twice returns two events. Dropping the result closes this process's handle; the exporter's
    /// event stays. [`ExporterProcess`] has an example.
    ///
    /// **Wait on the host before a stream waits.** The record of a process that is killed stays
    /// pending forever, and so does a stream that waits for it. The [last
    /// drop](Context#dropping-the-last-share) of the context then blocks forever, unless the
    /// context is [abandoned](Context::abandon). So let a stream wait only after
    /// [`ExporterProcess::wait_for`](crate::ipc::ExporterProcess::wait_for) has returned `Done`.
    /// The stream's wait then ends at once. It is still needed: it makes the exporter's writes
    /// visible to the stream.
    ///
    /// Driver calls: [`cuIpcOpenEventHandle`] with the context current. The first open in a context
    /// also makes the call of [`Device::uuid`].
    ///
    /// # Errors
    ///
    /// * [`Error::Descriptor`] with [`DeviceMismatch`](DescriptorError::DeviceMismatch): the
    ///   context belongs to another device than the event.
    /// * [`Error::Descriptor`] with [`SameProcess`](DescriptorError::SameProcess): this process
    ///   exported the event.
    /// * `CUDA_ERROR_MAP_FAILED`: the event no longer exists, it belongs to another user, or the
    ///   processes do not share `/dev/shm`.
    /// * `CUDA_ERROR_NOT_SUPPORTED`: the device or platform has no interprocess events.
    /// * [`Error::ForkedChild`].
    ///
    /// Success does not mean that the exporter still runs: the driver can open an event of a
    /// process that was killed.
    ///
    /// # Safety
    ///
    /// The descriptor must come from a trusted process. That process must keep the exported event
    /// alive as long as this process uses the result. The driver does not always detect a stale or
    /// forged descriptor, and may open another event instead.
    #[doc(alias = "cuIpcOpenEventHandle")]
    #[doc(alias = "from_ipc_handle")]
    pub unsafe fn from_ipc_descriptor(
        context: &Context,
        descriptor: &IpcEventDescriptor,
    ) -> Result<Self> {
        if let Some(origin) = descriptor.origin
            && Origin::of(context)?.device != origin.device
        {
            let found = Device::find(context.driver(), |it| Ok(it.uuid()? == origin.device));
            let context = context.device().short_ordinal();
            return Err(DescriptorError::DeviceMismatch { exported: found, context }.into());
        }
        let mut flags = EventFlags::INTERPROCESS;
        flags.set(EventFlags::BLOCKING_SYNC, descriptor.blocking_sync);
        let handle = CUipcEventHandle { reserved: descriptor.handle };
        context.with_current(|| {
            let mut raw = null_mut();
            // SAFETY: a place for the handle, and the 64 bytes by value, which the caller vouches
            // for; the context is current.
            let answer =
                unsafe { call!(context.driver(), cuIpcOpenEventHandle(&mut raw, handle)) }?;
            if answer.is_success() {
                Ok(Self::imported(context, raw, flags))
            } else {
                Err(open_error(descriptor, answer))
            }
        })
    }
}

#[cold]
fn open_error(descriptor: &IpcEventDescriptor, answer: Answer) -> Error {
    let refused = answer.code == CUresult::CUDA_ERROR_INVALID_CONTEXT;
    match descriptor.origin {
        Some(Origin { pid, .. }) if refused && pid == std::process::id() => {
            answer.probably(DescriptorError::SameProcess { pid }.into())
        }
        _ => answer.error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exporter_without_its_flag_is_damage() {
        let sealed = |flags: u16, origin: [u8; 52]| -> [u8; IpcEventDescriptor::LEN] {
            ENVELOPE.seal(&[&flags.to_le_bytes(), &origin, &[7; 64]]).unwrap()
        };
        let read = |flags, origin| IpcEventDescriptor::from_bytes(&sealed(flags, origin));
        assert_eq!(read(0, [0; 52]).map(|read| read.exporter_pid()), Ok(None));
        assert!(read(FLAG_ORIGIN, [1; 52]).is_ok());
        for at in [0, 20, 51] {
            let mut origin = [0; 52];
            origin[at] = 1;
            assert_eq!(read(0, origin), Err(DescriptorError::Checksum));
        }
    }
}
