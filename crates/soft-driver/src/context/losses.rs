//! Objects that ended with their context, which the program had not destroyed.

use std::collections::BTreeSet;

/// Something that is lost: its kind, its handle or address, and the call that made it.
pub(crate) type Lost = (&'static str, u64, u64);

/// The lost objects. One that the program tried to destroy by a call that failed is not lost.
pub(crate) struct Losses {
    lost: Vec<Lost>,
    given_up: BTreeSet<u64>,
}

impl Losses {
    pub(crate) const fn new() -> Self {
        Self { lost: Vec::new(), given_up: BTreeSet::new() }
    }

    /// The program has done what it can about a handle or an address.
    pub(crate) fn give_up(&mut self, handle: u64) {
        self.given_up.insert(handle);
    }

    /// A handle names nothing any more, and may come back.
    pub(crate) fn forget(&mut self, handle: u64) {
        self.given_up.remove(&handle);
    }

    pub(crate) fn is_given_up(&self, handle: u64) -> bool {
        self.given_up.contains(&handle)
    }

    /// A context ends with these.
    pub(crate) fn lose(&mut self, things: impl IntoIterator<Item = Lost>) {
        let given_up = &self.given_up;
        self.lost.extend(things.into_iter().filter(|(_, handle, _)| !given_up.contains(handle)));
    }

    pub(crate) fn count(&self) -> usize {
        self.lost.len()
    }

    /// The handles or addresses of a kind, with the calls that made them.
    pub(crate) fn of_kind(&self, kind: &str) -> Vec<(u64, u64)> {
        let of_kind = self.lost.iter().filter(|lost| lost.0 == kind);
        of_kind.map(|lost| (lost.1, lost.2)).collect()
    }
}
