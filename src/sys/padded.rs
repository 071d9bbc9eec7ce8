//! Texts that heed the width they are printed with.

use core::fmt;

/// Writes a text, with the width and the alignment that the format asks for, as for a column.
pub(crate) fn padded(f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>) -> fmt::Result {
    match f.width() {
        None => f.write_fmt(text),
        Some(_) => f.pad(&text.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use crate::Version;
    use crate::sys::{CUresult, Function};

    #[test]
    fn columns_are_aligned() {
        assert_eq!(format!("{:>12}|", Function::cuInit), "      cuInit|");
        assert_eq!(format!("{:6}|", Version::new(12, 8)), "12.8  |");
        assert_eq!(format!("{:^6?}|", Version::new(12, 8)), " 12.8 |");
        let code = CUresult::CUDA_ERROR_NOT_READY;
        assert_eq!(format!("{code:>28}|"), "  CUDA_ERROR_NOT_READY (600)|");
        assert_eq!(format!("{code:28?}|"), "CUDA_ERROR_NOT_READY (600)  |");
    }
}
