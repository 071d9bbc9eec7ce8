//! What both types of semaphores share: the import, the handle and its end.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::mem;
use core::ptr::null_mut;
#[cfg(unix)]
use std::os::fd::{AsRawFd as _, IntoRawFd as _, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::{AsRawHandle as _, BorrowedHandle};
use std::sync::Arc;

use crate::Version;
use crate::context::{Context, Owned};
use crate::device::{Device, Uuid};
use crate::driver::call::{Answer, call, entry};
use crate::error::{Error, Result};
use crate::event::{Event, EventFlags};
#[cfg(unix)]
use crate::external::error::ImportError;
use crate::sync::AtomicBool;
#[cfg(windows)]
use crate::sys::CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u;
use crate::sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u,
    CUexternalSemaphore, CUexternalSemaphoreHandleType, CUresult,
};

/// The contents of both types, which graphs share.
pub(crate) struct Imported {
    pub(super) raw: CUexternalSemaphore,
    pub(super) context: Context,
    /// Whether the last share destroys the handle. Once false, it stays so. Relaxed accesses are
    /// enough, because the share that writes it is dropped afterwards, and the drop of the last
    /// share happens after the drops of all others.
    pub(super) owned: AtomicBool,
}

// SAFETY: CUDA's driver API may be called from any thread; the handle is an address that this crate
// never dereferences, and only the flag changes.
#[allow(unsafe_code)]
unsafe impl Send for Imported {}
// SAFETY: as for Send.
#[allow(unsafe_code)]
unsafe impl Sync for Imported {}

pub(super) type HandleType = CUexternalSemaphoreHandleType;

/// The first release with handles of this type. An older driver would return a misleading error.
fn since(kind: HandleType) -> Version {
    match kind {
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 => {
            Version::new(11, 2)
        }
        _ => Version::new(10, 0),
    }
}

/// The methods that both types share. `$kind` and `$has` describe the type in `from_raw`.
macro_rules! shared_methods {
    ($kind:literal, $has:literal) => {
        /// Returns the context that the semaphore was imported in.
        pub fn context(&self) -> &Context {
            &self.0.context
        }

        /// Returns the driver's handle, for other bindings. It is valid as long as the semaphore
        /// is.
        pub fn as_raw(&self) -> CUexternalSemaphore {
            self.0.raw
        }

        #[doc = concat!(
            "Takes ownership of ", $kind, " that other code imported in `context`.\n\n",
            "# Safety\n\n",
            "`raw` must be a live external semaphore of `context` ", $has, " value, and no ",
            "other code may destroy it. If a green context was current at its import, `context` ",
            "is the primary context of the device. [The rules of the type](Self#rules) hold."
        )]
        #[allow(unsafe_code)]
        pub unsafe fn from_raw(context: &Context, raw: CUexternalSemaphore) -> Self {
            Self(Imported::new(context, raw))
        }

        /// Gives up ownership of the handle.
        ///
        /// The caller must destroy the handle with [`cuDestroyExternalSemaphore`], and must keep
        /// its context alive until then. If a graph has [captured](crate::external#captures) the
        /// semaphore, the handle must outlive the graph and the executable graphs made of it.
        pub fn into_raw(self) -> CUexternalSemaphore {
            self.0.owned.store(false, Ordering::Relaxed);
            self.0.raw
        }

        /// Destroys CUDA's import of the semaphore, and returns the driver's result.
        ///
        /// If a graph has [captured](crate::external#captures) the semaphore, this call only gives
        /// up the program's share, and succeeds.
        ///
        /// Driver calls: [`cuDestroyExternalSemaphore`] with the calls of [`Context::make_current`]
        /// around it.
        ///
        /// # Errors
        ///
        /// Errors of work that was launched earlier; [`Error::ForkedChild`]. After an error, do not
        /// use a copy of the raw handle.
        #[doc(alias = "cuDestroyExternalSemaphore")]
        pub fn close(self) -> Result<()> {
            Arc::into_inner(self.0).map_or(Ok(()), Imported::close)
        }
    };
}

pub(super) use shared_methods;

/// Whether a device is the one that the semaphore belongs to.
pub(super) fn has_uuid(uuid: Uuid) -> impl Fn(Device) -> Result<bool> {
    move |device| Ok(device.uuid()? == uuid)
}

/// Translates the driver's several refusals of a handle that is not such a semaphore.
#[cold]
fn import_error(context: &Context, answer: Answer) -> Error {
    let Answer { function, code, .. } = answer;
    // Also the error of a context that failed with this code. In such a context nothing can be
    // created, so another creation distinguishes the two. It does not wait, and disturbs no
    // capture.
    if code == CUresult::CUDA_ERROR_UNKNOWN
        && let Err(error) = Event::new(context, EventFlags::empty())
    {
        return error;
    }
    match code {
        CUresult::CUDA_ERROR_INVALID_VALUE
        | CUresult::CUDA_ERROR_INVALID_HANDLE
        | CUresult::CUDA_ERROR_OPERATING_SYSTEM
        | CUresult::CUDA_ERROR_UNKNOWN => {
            answer.probably(Error::NotASemaphore { function, code: Some(code) })
        }
        _ => answer.error(),
    }
}

#[allow(unsafe_code)]
impl Imported {
    pub(super) fn new(context: &Context, raw: CUexternalSemaphore) -> Arc<Self> {
        Arc::new(Self { raw, context: context.clone(), owned: AtomicBool::new(true) })
    }

    /// # Safety
    ///
    /// The handle must be of that type, on the context's device.
    unsafe fn import(
        context: &Context,
        kind: HandleType,
        handle: Option<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u>,
        is_its_device: impl Fn(Device) -> Result<bool>,
    ) -> Result<Arc<Self>> {
        let driver = context.driver();
        let import = entry!(driver, cuImportExternalSemaphore?)?;
        let function = import.function;
        driver.check(driver, function)?;
        let (since, driver) = (since(kind), driver.version());
        if driver < since {
            return Err(Error::Unsupported { function, since, driver });
        }
        let Some(handle) = handle else {
            return Err(Error::NotASemaphore { function, code: None });
        };
        let device = context.device();
        if !is_its_device(device)? {
            let semaphore = Device::find(device.driver(), is_its_device);
            let context = device.short_ordinal();
            return Err(Error::SemaphoreOfOtherDevice { function, semaphore, context });
        }
        // The driver would import it into the primary context.
        if matches!(context.owned(), Owned::Green(_)) {
            return Err(context.mismatch(context, function, None));
        }
        // The reserved words are zero.
        let description =
            CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { type_: kind, handle, ..Default::default() };
        // By the guard, whose end can return no error: once the driver has taken the descriptor
        // over, no error may give that back.
        let _current = context.make_current()?;
        let mut raw = null_mut();
        // SAFETY: a place for the handle, and a description that lives for the call; the context is
        // current, and the caller vouches for the handle.
        let answer =
            import.call(context.driver(), |import| unsafe { import(&mut raw, &description) })?;
        if answer.is_success() {
            Ok(Self::new(context, raw))
        } else {
            Err(import_error(context, answer))
        }
    }

    /// # Safety
    ///
    /// The descriptor must be of that type, on the context's device.
    #[cfg(unix)]
    pub(super) unsafe fn import_fd(
        context: &Context,
        fd: OwnedFd,
        device_uuid: Uuid,
        kind: HandleType,
    ) -> Result<Arc<Self>, ImportError<OwnedFd>> {
        let handle = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { fd: fd.as_raw_fd() };
        // SAFETY: as the caller says.
        match unsafe { Self::import(context, kind, Some(handle), has_uuid(device_uuid)) } {
            Ok(imported) => {
                // It is the driver's now.
                let _ = fd.into_raw_fd();
                Ok(imported)
            }
            Err(error) => Err(ImportError { error, handle: fd }),
        }
    }

    /// # Safety
    ///
    /// The handle must be of that type, on the context's device.
    #[cfg(windows)]
    pub(super) unsafe fn import_win32(
        context: &Context,
        handle: BorrowedHandle<'_>,
        is_its_device: impl Fn(Device) -> Result<bool>,
        kind: HandleType,
    ) -> Result<Arc<Self>> {
        let handle = handle.as_raw_handle();
        // NULL stands for no handle, and the other one for this process.
        let is_one = !handle.is_null() && handle.addr() != usize::MAX;
        let win32 = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_win32_u { handle, name: null_mut() };
        let handle = is_one.then_some(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { win32 });
        // SAFETY: as the caller says.
        unsafe { Self::import(context, kind, handle, is_its_device) }
    }

    fn destroy(&self) -> Result<()> {
        // Where the context cannot be made current, the driver may know it by the handle.
        let current = self.context.make_current();
        let driver = self.context.driver();
        // SAFETY: the semaphore is owned, and not used afterwards; the caller of the import
        // has promised that nothing refers to it any more.
        let destroyed = unsafe { call!(driver, cuDestroyExternalSemaphore?(self.raw)) };
        current.map(drop).and(destroyed.and_then(Answer::check))
    }

    pub(super) fn close(mut self) -> Result<()> {
        self.destroy_owned()
    }

    fn destroy_owned(&mut self) -> Result<()> {
        // The first call destroys it, so that a drop after `close` does not.
        if mem::replace(self.owned.get_mut(), false) { self.destroy() } else { Ok(()) }
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // An error cannot be handled here: the driver may be shutting down with the process, or
        // failed work may have broken the context.
        let _ = self.destroy_owned();
    }
}

/// By handle and driver library. The driver may use a handle again after its semaphore is
/// destroyed.
impl PartialEq for Imported {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && self.context.driver().is_same_library(other.context.driver())
    }
}

impl Eq for Imported {}

impl Hash for Imported {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl Imported {
    pub(super) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name).field("raw", &self.raw).field("context", &self.context).finish()
    }
}
