//! Where an object that other processes use comes from: its process and its device.

use crate::context::Context;
use crate::device::Uuid;
use crate::driver::process::{Identity, Numbering};
use crate::error::Result;

/// The process and the device that an object belongs to, for other processes.
///
/// Another process parses its bytes, finds the device by its UUID, and checks with
/// [`ExporterProcess::of_origin`](crate::ipc::ExporterProcess::of_origin) whether the process still
/// runs.
///
/// ```
/// use cuda_events::foundation::Origin;
/// use cuda_events::ipc::{ExporterProcess, ExporterState};
/// use cuda_events::{Context, Device};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let bytes: [u8; Origin::LEN] = Origin::of(&context)?.to_bytes();
///
/// // In another process:
/// let origin = Origin::from_bytes(&bytes);
/// assert_eq!(origin.device(), context.device().uuid()?);
/// assert_eq!(origin.pid(), std::process::id());
/// assert_ne!(ExporterProcess::of_origin(&origin).state(), ExporterState::Ended);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    pub(crate) pid: u32,
    pub(crate) device: Uuid,
    pub(crate) process: Identity,
}

impl Origin {
    /// The length of [`to_bytes`](Self::to_bytes) in bytes.
    pub const LEN: usize = 52;

    /// Returns the origin of this process's objects in a context.
    ///
    /// The first call for a context makes the driver call of [`Device::uuid`](crate::Device::uuid)
    /// and some system calls; later calls make none.
    ///
    /// # Errors
    ///
    /// The errors of [`Device::uuid`](crate::Device::uuid), and
    /// [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn of(context: &Context) -> Result<Self> {
        let &(device, pid, process) = context.device_and_process()?;
        Ok(Self { pid, device, process })
    }

    /// Returns the process id, in the process's own pid namespace.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the UUID of the device.
    pub fn device(&self) -> Uuid {
        self.device
    }

    /// Returns the bytes to send. The numbers are little-endian.
    ///
    /// | bytes | field |
    /// | --- | --- |
    /// | 0–3 | the process id |
    /// | 4–19 | the UUID of the device |
    /// | 20–27 | the start time of the process, in ticks since the boot; on Windows since 1601 |
    /// | 28–35 | the numbers of the pid namespace and the time namespace |
    /// | 36–51 | the boot id of the system |
    ///
    /// A field that the process cannot find out is zero; this concerns the last three.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let Self { pid, device, process: Identity { started, numbering } } = self;
        let fields: [&[u8]; 6] = [
            &pid.to_le_bytes(),
            device.as_bytes(),
            &started.to_le_bytes(),
            &numbering.pid_namespace.to_le_bytes(),
            &numbering.time_namespace.to_le_bytes(),
            &numbering.boot,
        ];
        let mut bytes = [0; Self::LEN];
        let all = fields.into_iter().flatten();
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        bytes
    }

    /// Parses the bytes of [`to_bytes`](Self::to_bytes). Any bytes are an origin:
    /// [`Envelope`](crate::foundation::Envelope) detects damage.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let mut rest = &bytes[..];
        Self {
            pid: u32::from_le_bytes(take(&mut rest)),
            device: Uuid::from_bytes(take(&mut rest)),
            process: Identity {
                started: u64::from_le_bytes(take(&mut rest)),
                numbering: Numbering {
                    pid_namespace: u32::from_le_bytes(take(&mut rest)),
                    time_namespace: u32::from_le_bytes(take(&mut rest)),
                    boot: take(&mut rest),
                },
            },
        }
    }
}

/// Takes the first bytes. The array is as long as all fields together.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let Some((field, after)) = rest.split_first_chunk() else { return [0; N] };
    *rest = after;
    *field
}

static_assertions::const_assert_eq!(Origin::LEN, 4 + 16 + 8 + 4 + 4 + 16);
