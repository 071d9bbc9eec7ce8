//! The result codes by name.
//!
//! The driver has names for its codes too, but returns none while it is shutting down, and none for
//! codes newer than itself.

use core::fmt;

use super::bindings::{CUresult, RESULT_CODES};
use super::padded::padded;

impl CUresult {
    /// Returns the code's name in `cuda.h`, such as `CUDA_ERROR_INVALID_HANDLE`; `None` for a code
    /// that CUDA 13.5 does not have.
    pub const fn name(self) -> Option<&'static str> {
        let mut rest = RESULT_CODES;
        while let [(code, name), others @ ..] = rest {
            if code.0 == self.0 {
                return match name.to_str() {
                    Ok(name) => Some(name),
                    // The names are those of C constants.
                    Err(_) => None,
                };
            }
            rest = others;
        }
        None
    }
}

/// Prints the name and the number, `CUDA_ERROR_INVALID_HANDLE (400)`; for an unknown code `an
/// unknown CUDA error (4242)`.
impl fmt::Display for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().unwrap_or("an unknown CUDA error");
        padded(f, format_args!("{name} ({})", self.0))
    }
}

/// Prints the same as `Display`, because most users see a code in the output of `unwrap` or
/// `assert_eq`.
impl fmt::Debug for CUresult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
