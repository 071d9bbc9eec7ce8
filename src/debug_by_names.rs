//! Debug output of all flag types.

/// Prints flags by name as in code, `EventFlags(TIMING | BLOCKING_SYNC)`, and an empty set as
/// `EventFlags(empty)`.
macro_rules! debug_by_names {
    ($($flags:ident),*) => {
        $(impl core::fmt::Debug for $flags {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($flags), "("))?;
                if self.is_empty() {
                    f.write_str("empty")?;
                }
                bitflags::parser::to_writer(self, &mut *f)?;
                f.write_str(")")
            }
        })*
    };
}

pub(crate) use debug_by_names;
