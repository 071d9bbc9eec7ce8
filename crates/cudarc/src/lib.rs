#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod capture;
mod lent;
mod order;

use core::ffi::{CStr, c_void};
use core::ops::Deref;
use core::ptr::null_mut;
use std::sync::{Arc, OnceLock};

use cuda_events::sys::{CUresult, Function};
use cuda_events::{
    Context, Device, Driver, Error, EventFlags, EventRef, ForeignStream, LoadOptions, Result,
};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, sys};

pub use capture::{AdoptedCapture, AdoptedGraph, adopt_capture};
pub use lent::{LentStream, lend_context, lend_stream};
pub use order::{declare_reads, declare_writes};

/// cudarc's driver library, with this workspace's table of its functions.
fn driver() -> Result<Driver> {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    if let Some(driver) = DRIVER.get() {
        return Ok(*driver);
    }
    // SAFETY: the functions are those that cudarc itself calls as the driver's, and cudarc never
    // closes the library.
    let driver = unsafe { Driver::from_resolver(&mut exported, &LoadOptions::new()) }?;
    Ok(*DRIVER.get_or_init(|| driver))
}

/// The address of what cudarc's driver library exports under the name, or NULL.
fn exported(name: &CStr) -> *mut c_void {
    // SAFETY: only callers have an object of cudarc, so the library is open. An address of any type
    // is read as an address.
    unsafe { sys::culib().get::<*mut c_void>(name.to_bytes_with_nul()) }
        .map_or(null_mut(), |address| *address)
}

/// Adopts a context of cudarc.
///
/// A primary context (`CudaContext::new`) is retained once more. A clone of the `Arc` keeps any
/// other context alive. So the result, and all objects that are made in it, stay valid when
/// cudarc's objects are gone. To get cudarc's form back, use the `Arc`, or [`lend_context`].
///
/// Driver calls: [those of `Context::primary`](Context::primary), or [those of
/// `Context::from_raw_with_owner`](Context::from_raw_with_owner).
///
/// # Errors
///
/// The errors of the same functions.
pub fn adopt_context(theirs: &Arc<CudaContext>) -> Result<Context> {
    let driver = driver()?;
    let raw = theirs.cu_ctx().cast();
    if theirs.is_primary() {
        let ordinal = u32::try_from(theirs.ordinal()).unwrap_or(u32::MAX);
        let context = Context::primary(Device::new(driver, ordinal)?)?;
        if context.as_raw() == raw {
            return Ok(context);
        }
    }
    // SAFETY: the `Arc` keeps the context alive. What remains is the open hole of the crate's
    // page: captures that cudarc began.
    unsafe { Context::from_raw_with_owner(driver, raw, theirs.clone()) }
}

/// A stream of cudarc. Its methods are those of [`StreamRef`](cuda_events::StreamRef);
/// [`into_owner`](ForeignStream::into_owner) gives cudarc's stream back.
pub type AdoptedStream = ForeignStream<Arc<CudaStream>>;

/// Adopts a stream of cudarc, which a clone of the `Arc` keeps alive.
///
/// Driver calls: those of [`adopt_context`] and of [`ForeignStream::new`].
///
/// # Errors
///
/// The errors of the same functions.
pub fn adopt_stream(theirs: &Arc<CudaStream>) -> Result<AdoptedStream> {
    let context = adopt_context(theirs.context())?;
    // SAFETY: the `Arc` keeps the stream alive, or the caller of cudarc's `wrap_borrowed_stream`
    // does. What remains is the open hole of the crate's page.
    unsafe { ForeignStream::new(&context, theirs.cu_stream().cast(), theirs.clone()) }
}

/// An event of cudarc, from [`adopt_event`]. Its methods are those of [`EventRef`].
#[derive(Debug)]
pub struct AdoptedEvent {
    // Before the owner, and so dropped first.
    event: EventRef,
    owner: Arc<CudaEvent>,
}

/// Adopts an event of cudarc, or an `Arc` of one, which is kept alive.
///
/// Pass the `flags` that the event was created with: empty for `None` and
/// `CU_EVENT_DISABLE_TIMING`, [`TIMING`](EventFlags::TIMING) for `CU_EVENT_DEFAULT`. The driver
/// cannot return them. With wrong flags, the error of a failed [`elapsed_ms`](EventRef::elapsed_ms)
/// names the wrong cause.
///
/// Driver calls: those of [`adopt_context`].
///
/// # Errors
///
/// The errors of [`adopt_context`].
pub fn adopt_event(theirs: impl Into<Arc<CudaEvent>>, flags: EventFlags) -> Result<AdoptedEvent> {
    let owner = theirs.into();
    let context = adopt_context(owner.context())?;
    // SAFETY: the `Arc` keeps the event alive. It is not interprocess, because cudarc cannot create
    // such events; no other flag matters for safety. What remains is the open hole of the page.
    let event = unsafe { EventRef::from_raw(&context, owner.cu_event().cast(), flags) };
    Ok(AdoptedEvent { event, owner })
}

impl AdoptedEvent {
    /// Returns cudarc's event.
    pub fn owner(&self) -> &Arc<CudaEvent> {
        &self.owner
    }

    /// Gives cudarc's event back.
    pub fn into_owner(self) -> Arc<CudaEvent> {
        self.owner
    }
}

impl Deref for AdoptedEvent {
    type Target = EventRef;

    fn deref(&self) -> &EventRef {
        &self.event
    }
}

impl AsRef<EventRef> for AdoptedEvent {
    fn as_ref(&self) -> &EventRef {
        &self.event
    }
}

/// Turns errors of cudarc, which have only a code, into errors of cuda-events.
pub trait OfCall<T> {
    /// Returns the result with an error that names the driver call.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`] with the function and cudarc's code.
    fn of_call(self, function: Function) -> Result<T>;
}

impl<T> OfCall<T> for Result<T, DriverError> {
    fn of_call(self, function: Function) -> Result<T> {
        self.map_err(|DriverError(code)| Error::Driver { function, code: CUresult(code as u32) })
    }
}
