//! For cuda.core (its graph definitions): how user objects are made and kept. The core only takes
//! back the references of graphs.

use super::{UserObject, UserObjects};
use crate::engine::work::Destroy;
use crate::machine::handles::Bad;

impl UserObjects {
    /// A new object with so many references of the program; its handle.
    pub(crate) fn insert(&mut self, born: u64, references: u32, destroy: Destroy) -> Option<u64> {
        let new = UserObject { references: u64::from(references), destroy };
        self.table.insert(born, new).map(|(_, handle)| handle)
    }

    pub(crate) fn find(&self, handle: u64) -> Result<u32, Bad> {
        self.table.find(handle)
    }

    /// All references to an object.
    pub(crate) fn references(&self, object: u32) -> u64 {
        self.table[object].references
    }

    pub(crate) fn retain(&mut self, object: u32, count: u32) {
        self.table[object].references += u64::from(count);
    }
}
