//! Streams and devices of other libraries, as Python passes them.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyTuple};

use cuda_events::foundation::{WeakContext, call};
use cuda_events::sys::CUstream;
use cuda_events::{Context, Device, Driver, ForeignStream, StreamOptions, StreamRef};
use cuda_timelines::Error;

use crate::error::{detached, exception, plain};

/// A stream of another library, which holds its Python object.
pub(crate) type Stream = ForeignStream<Option<Py<PyAny>>>;

/// Streams of no context of their own: NULL, the legacy and the per-thread default stream.
const LAST_DEFAULT: usize = 2;

pub(crate) fn driver(py: Python<'_>) -> PyResult<Driver> {
    // It caches success only, and is one load then.
    detached(py, Driver::load)
}

/// The handle that the object stands for now.
pub(crate) fn handle(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = stream.py();
    if let Some(method) = stream.getattr_opt(intern!(py, "__cuda_stream__"))? {
        // cuda.core raises a RuntimeError for a stream that was closed.
        let pair = method.call0()?;
        let (version, handle) = pair
            .cast::<PyTuple>()
            .ok()
            .and_then(|pair| pair.extract::<(u64, usize)>().ok())
            .ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "__cuda_stream__ of a {} returned {pair}, and not (0, handle)",
                    class(stream)
                ))
            })?;
        if version != 0 {
            return Err(PyTypeError::new_err(format!(
                "__cuda_stream__ of a {} has version {version}, and this cuda-timelines knows \
                 version 0; update cuda-timelines",
                class(stream)
            )));
        }
        return Ok(handle);
    }
    if !stream.is_instance_of::<PyInt>() || stream.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(format!(
            "a stream is an object with __cuda_stream__ (PyTorch, cuda.core, numba-cuda) or the \
             handle as an int (CuPy's stream.ptr), and not a {}",
            class(stream)
        )));
    }
    stream.extract().map_err(|_| {
        PyValueError::new_err(format!("{stream} is not the handle of a stream: it is out of range"))
    })
}

fn class(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}

fn raw(handle: usize) -> CUstream {
    core::ptr::with_exposed_provenance_mut(handle)
}

/// The stream and the object that keeps it alive. If the object is an integer, its owner must keep
/// the stream for as long.
#[allow(unsafe_code)]
pub(crate) fn stream(object: &Bound<'_, PyAny>) -> PyResult<Stream> {
    let py = object.py();
    let (driver, handle) = (driver(py)?, handle(object)?);
    let owner = (!object.is_instance_of::<PyInt>()).then(|| object.clone().unbind());
    let kept = owner.as_ref().map(|owner| owner.clone_ref(py));
    let device = device_of_default(object, handle)?;
    detached(py, move || {
        let context = context_of(driver, handle, device, kept)?;
        // SAFETY: it is a live stream by the contract of `__cuda_stream__`, or of the integer that
        // the program passed; the object keeps it alive.
        unsafe { ForeignStream::new(&context, raw(handle), owner) }
    })
}

/// A default stream has no context of its own. PyTorch's objects name their device, and then the
/// thread needs no current context.
fn device_of_default(object: &Bound<'_, PyAny>, handle: usize) -> PyResult<Option<u32>> {
    if handle > LAST_DEFAULT {
        return Ok(None);
    }
    let index = object.getattr_opt(intern!(object.py(), "device_index"))?;
    Ok(index.and_then(|index| index.extract().ok()))
}

/// The primary contexts in use. Retaining one again and again would cost driver calls.
static PRIMARY: Mutex<Vec<(Device, WeakContext)>> = Mutex::new(Vec::new());

pub(crate) fn primary(device: Device) -> Result<Context, cuda_events::Error> {
    let found = || {
        let mut all = PRIMARY.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, context)| context.is_alive());
        all.iter().find(|it| it.0 == device).and_then(|(_, context)| context.upgrade())
    };
    if let Some(context) = found() {
        return Ok(context);
    }
    let context = Context::primary(device)?;
    PRIMARY.lock().unwrap_or_else(PoisonError::into_inner).push((device, context.downgrade()));
    Ok(context)
}

/// Whether it is a share of its device's primary context, which outlives the streams of others.
fn is_primary(context: &Context) -> bool {
    let all = PRIMARY.lock().unwrap_or_else(PoisonError::into_inner);
    let found = all.iter().find(|it| it.0 == context.device());
    found.and_then(|(_, it)| it.upgrade()).is_some_and(|it| it == *context)
}

/// A stream of ours, for what has to be done after the program has closed its own. It fails if its
/// context may have ended with that.
pub(crate) fn substitute(context: &Context) -> Result<cuda_events::Stream, String> {
    if !is_primary(context) {
        return Err("the stream of the timeline was closed, and it is not of a primary context; \
                    end a timeline before its stream"
            .to_owned());
    }
    cuda_events::Stream::new(context, StreamOptions::new()).map_err(|error| error.to_string())
}

/// The context of a stream: a share of the device's primary context if it is that, which is what
/// PyTorch and most libraries use, and otherwise one that keeps the stream's object.
#[allow(unsafe_code)]
fn context_of(
    driver: Driver,
    handle: usize,
    device: Option<u32>,
    owner: Option<Py<PyAny>>,
) -> Result<Context, cuda_events::Error> {
    if let Some(ordinal) = device {
        return primary(Device::new(driver, ordinal)?);
    }
    // SAFETY: the stream is alive, as above, and so is its context.
    let stream = unsafe { StreamRef::from_foreign(driver, raw(handle)) }?;
    let device = stream.device();
    let (mut flags, mut active) = (0, 0);
    // SAFETY: two places for the answers, and a device of this driver.
    unsafe { call!(driver, cuDevicePrimaryCtxGetState(device.as_raw(), &mut flags, &mut active)) }?;
    // Retaining it would create it.
    if active != 0 {
        let context = primary(device)?;
        if context == *stream.context() {
            return Ok(context);
        }
    }
    // SAFETY: the context lives while its stream does, and the owner keeps that.
    unsafe { Context::from_raw_with_owner(driver, stream.context().as_raw(), owner) }
}

/// The context of a device: its ordinal, an object with `device_id` (`cuda.core.Device`) or `index`
/// (`torch.device`), or a stream, whose context it is then.
pub(crate) fn context(object: &Bound<'_, PyAny>) -> PyResult<Context> {
    let py = object.py();
    if object.getattr_opt(intern!(py, "__cuda_stream__"))?.is_some() {
        return Ok(stream(object)?.context().clone());
    }
    let ordinal = ordinal(object)?;
    let driver = driver(py)?;
    detached(py, move || primary(Device::new(driver, ordinal)?))
}

fn ordinal(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    let py = object.py();
    let ordinal = if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        Some(object.clone())
    } else {
        let named = object.getattr_opt(intern!(py, "device_id"))?;
        match named {
            Some(named) => Some(named),
            // `str` and `tuple` have a method of this name.
            None => object.getattr_opt(intern!(py, "index"))?.filter(|it| !it.is_callable()),
        }
    };
    match ordinal {
        Some(ordinal) if ordinal.is_instance_of::<PyInt>() => ordinal
            .extract()
            .map_err(|_| PyValueError::new_err(format!("there is no device {ordinal}"))),
        _ => Err(PyTypeError::new_err(format!(
            "a device is its number, a cuda.core.Device, a torch.device with an index, or a \
             stream of it, and not {}",
            object.repr()?
        ))),
    }
}

/// Raises if the object stands for another stream than it did, or for none: it was closed.
pub(crate) fn check_open(py: Python<'_>, stream: &Stream) -> PyResult<()> {
    let Some(owner) = stream.owner() else { return Ok(()) };
    let now = handle(owner.bind(py))?;
    if now == stream.as_raw().addr() {
        return Ok(());
    }
    Err(plain(py, "the stream of the timeline is another one now; close the timeline first"))
}

/// Has a stream of another library do something, for the time of the call.
pub(crate) fn in_stream<T: Send>(
    object: &Bound<'_, PyAny>,
    run: impl FnOnce(&StreamRef) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let py = object.py();
    let stream = stream(object)?;
    py.detach(|| run(&stream)).map_err(|error| exception(py, &error))
}
