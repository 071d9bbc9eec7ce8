//! Events between processes.

use std::ffi::{c_uint, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use cuda_events::ipc::{ExporterProcess, IpcEventDescriptor};
use cuda_events::{Event, EventFlags, EventRef};
use cuda_timelines::CudaEventExt;

use crate::adopt::{self, CUctx_st};
use crate::bytes;
use crate::callback::{self, cutl_callback};
use crate::handle::{self, Handle};
use crate::point::limit;
use crate::result::cutl_result::{self, *};
use crate::result::{Fail, guard, place, result_of};

/// The driver's event: CUevent is a pointer to it.
pub struct CUevent_st;

/// An event that other code owns, or one that another process exported.
pub struct cutl_event;

pub(crate) enum Any {
    Adopted(Arc<EventRef>),
    Imported(Event, ExporterProcess),
}

use Any::{Adopted, Imported};

impl Any {
    fn event(&self) -> &EventRef {
        match self {
            Adopted(event) => event,
            Imported(event, _) => event,
        }
    }
}

impl Handle for cutl_event {
    type Object = Any;
    const NAME: &'static str = "cutl_event";
}

/// The length of the descriptor of an event.
pub const CUTL_EVENT_BYTES: usize = 128;
const _: () = assert!(CUTL_EVENT_BYTES == IpcEventDescriptor::LEN);

/// Adopts an event that other code owns and destroys, to export it or to wait for it. `flags` are
/// those of its cuEventCreate. A NULL context is the current one.
///
/// Errors: CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// `event` must be a live event of `context`, created with `flags`. Both must live until the handle
/// is destroyed, all callbacks for it were called, and all importers are done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_event_adopt(
    context: *mut CUctx_st,
    event: *mut CUevent_st,
    flags: c_uint,
    out: Option<&mut MaybeUninit<*mut cutl_event>>,
) -> cutl_result {
    const BLOCKING_SYNC: c_uint = 1;
    const DISABLE_TIMING: c_uint = 2;
    const INTERPROCESS: c_uint = 4;
    guard(|| {
        let out = place(out, "out")?;
        if event.is_null() {
            return Err(Fail::null("the event"));
        }
        if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0 {
            return Err(Fail::argument(format!("{flags:#x} are no flags of cuEventCreate")));
        }
        let mut own = EventFlags::empty();
        own.set(EventFlags::BLOCKING_SYNC, flags & BLOCKING_SYNC != 0);
        own.set(EventFlags::TIMING, flags & DISABLE_TIMING == 0);
        own.set(EventFlags::INTERPROCESS, flags & INTERPROCESS != 0);
        // SAFETY: the duties are those of the caller.
        let event = unsafe { EventRef::from_raw(&adopt::context(context)?, event.cast(), own) };
        handle::put(out, Adopted(Arc::new(event)))
    })
}

/// Opens an event that another process exported, in a context of its device; NULL is the current
/// one.
///
/// Errors: CUTL_ERROR_DESCRIPTOR; CUTL_ERROR_CONTEXT; CUTL_ERROR_NO_DRIVER; CUTL_ERROR_DRIVER;
/// CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// `context` and `bytes` as for cutl_timeline_open. The bytes must come from a process that you
/// trust, and that keeps the event until this one is destroyed: the driver does not detect a forged
/// descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_event_import(
    context: *mut CUctx_st,
    bytes: *const u8,
    length: usize,
    out: Option<&mut MaybeUninit<*mut cutl_event>>,
) -> cutl_result {
    guard(|| {
        let out = place(out, "out")?;
        // SAFETY: the duties are those of the caller.
        unsafe {
            let descriptor = IpcEventDescriptor::from_bytes(&bytes::read(bytes, length)?);
            let descriptor = descriptor.map_err(cuda_events::Error::from)?;
            let event = Event::from_ipc_descriptor(&adopt::context(context)?, &descriptor)?;
            handle::put(out, Imported(event, ExporterProcess::of(&descriptor)))
        }
    })
}

/// Copies the descriptor of an adopted event, CUTL_EVENT_BYTES bytes, to `buffer`, and its length to
/// `length`. Each export gives the same bytes.
///
/// Errors: CUTL_ERROR_ARGUMENT if the event was created without CU_EVENT_INTERPROCESS, was
/// imported, or `capacity` is too small (`length` is written); CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE.
///
/// # Safety
///
/// As for cutl_timeline_descriptor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_event_export(
    event: *const cutl_event,
    buffer: *mut u8,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> cutl_result {
    guard(|| {
        let descriptor = handle::get(event)?.event().ipc_descriptor()?;
        // SAFETY: the duties are those of the caller.
        unsafe { bytes::write(&descriptor.to_bytes(), buffer, capacity, length) }
    })
}

/// Writes the driver's handle to `out`, for cuEventRecord and cuStreamWaitEvent. An imported event
/// stays the library's: do not destroy it, and do not use it after this handle is destroyed.
///
/// Errors: CUTL_ERROR_HANDLE; CUTL_ERROR_ARGUMENT.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_event_raw(
    event: *const cutl_event,
    out: Option<&mut MaybeUninit<*mut CUevent_st>>,
) -> cutl_result {
    guard(|| {
        let (event, out) = (handle::get(event)?, place(out, "out")?);
        out.write(event.event().as_raw().cast());
        Ok(CUTL_OK)
    })
}

/// Waits until the last record is done, for at most `nanoseconds`; 0 queries, CUTL_FOREVER has no
/// limit. CUTL_PENDING if the time is up. For an imported event it also looks for the exporter's
/// end, first at once and then ten times a second.
///
/// Errors: CUTL_ERROR_EXPORTER_GONE; CUTL_ERROR_DRIVER; CUTL_ERROR_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_event_wait(event: *const cutl_event, nanoseconds: u64) -> cutl_result {
    guard(|| {
        let timeout = limit(nanoseconds);
        result_of(match &*handle::get(event)? {
            Adopted(event) => event.synchronize_timeout(timeout)?,
            Imported(event, exporter) => exporter.wait_for(event, timeout)?,
        })
    })
}

/// Has `callback` called once, when the last record of an adopted event is done or has failed. See
/// cutl_callback.
///
/// Errors, after which the callback is not called: CUTL_ERROR_NO_THREAD; CUTL_ERROR_HANDLE, also for
/// an imported event, whose exporter may end; CUTL_ERROR_ARGUMENT.
///
/// # Safety
///
/// As for cutl_callback. The event must live until the callback was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cutl_event_on_done(
    event: *const cutl_event,
    callback: cutl_callback,
    user: *mut c_void,
) -> cutl_result {
    guard(|| match &*handle::get(event)? {
        Adopted(event) => callback::start(callback, user, || Ok(Arc::clone(event).completion())),
        Imported(..) => Err(Fail::new(
            CUTL_ERROR_HANDLE,
            "a callback would never be called if the exporter ended; use cutl_event_wait, or a \
             timeline",
        )),
    })
}

/// Destroys the handle, and an imported event with it. An adopted event stays.
///
/// Errors: CUTL_ERROR_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn cutl_event_destroy(event: *mut cutl_event) -> cutl_result {
    handle::destroy(event)
}
