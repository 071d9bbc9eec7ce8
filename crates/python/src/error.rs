//! Errors as Python's exceptions.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use cuda_timelines::Error;

/// A class of `cuda_timelines._errors`, with the arguments of an instance.
fn raise(py: Python<'_>, class: &'static str, text: String, code: Option<(i64, String)>) -> PyErr {
    static MODULE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = || {
        let module = MODULE
            .get_or_try_init(py, || {
                py.import("cuda_timelines._errors").map(|it| it.into_any().unbind())
            })?
            .bind(py);
        let class = module.getattr(class)?.cast_into::<PyType>()?;
        match code {
            Some((code, name)) => class.call1((text, code, name)),
            None => class.call1((text,)),
        }
    };
    // If even that fails, that is the exception.
    made().map_or_else(|error: PyErr| error, PyErr::from_value)
}

/// The exception for an error of Rust, with its advice.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let (text, class) = (error.to_string(), class_of(error));
    match error.code() {
        Some(code) => {
            let name = code.name().map_or_else(|| code.0.to_string(), str::to_owned);
            raise(py, "DriverError", text, Some((i64::from(code.0), name)))
        }
        None => raise(py, class, text, None),
    }
}

fn class_of(error: &Error) -> &'static str {
    match error {
        Error::ExporterGone => "ExporterGone",
        Error::Poisoned => "Poisoned",
        _ => "Error",
    }
}

/// An exception of the class `Error`.
pub(crate) fn plain(py: Python<'_>, text: impl Into<String>) -> PyErr {
    raise(py, "Error", text.into(), None)
}

/// Runs the closure with the GIL released, and makes an exception of its error.
pub(crate) fn detached<T: Send, E: Into<Error> + Send>(
    py: Python<'_>,
    run: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    py.detach(run).map_err(|error| exception(py, &error.into()))
}
