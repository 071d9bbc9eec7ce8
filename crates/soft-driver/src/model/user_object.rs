//! User objects: something of the program's that graphs keep.

use crate::host_function::Destroy;

/// A user object.
pub(crate) struct UserObject {
    /// All references: the program's own, and those of graphs and executable graphs.
    pub(crate) references: u64,
    pub(crate) destroy: Destroy,
}

/// References that a graph holds: which object, and how many.
pub(crate) type References = Vec<(u32, u32)>;
