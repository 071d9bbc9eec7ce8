//! The allocations by their addresses, and the objects that memory ends with.

use std::collections::{BTreeMap, HashMap};

use crate::call::{Address, Handle};

/// Memory of an allocation, a registration, or an object.
pub(crate) struct Allocation {
    pub(crate) bytes: usize,
    /// With which it ends, or 0.
    pub(crate) context: Handle,
}

#[derive(Default)]
pub(crate) struct Allocations {
    /// Memory that is not allocated in stream order.
    pub(crate) at: BTreeMap<Address, Allocation>,
    /// The objects of memory that ends with them: the module, library or graphics resource that the
    /// program has asked, and the library that it is a module of, or the same.
    pub(crate) owned: BTreeMap<Address, [Handle; 2]>,
    /// A primary context may have ended, and the driver has not said yet what is left.
    pub(crate) context_may_have_ended: bool,
    /// The modules of libraries, each with its library and its context.
    pub(crate) modules: HashMap<Handle, (Handle, Handle)>,
}

impl Allocations {
    /// The context of the allocation that an address is in; none if it is of a pool, mapped, or no
    /// address of the checker's.
    pub(crate) fn context_at(&self, address: Address) -> Option<Handle> {
        let (start, allocation) = self.at.range(..=address).next_back()?;
        (address - start < allocation.bytes as u64 && allocation.context != 0)
            .then_some(allocation.context)
    }

    /// The memory that ends with an object.
    pub(crate) fn owned_by(&self, owner: Handle) -> Vec<Address> {
        let all = self.owned.iter().filter(|(_, objects)| objects.contains(&owner));
        all.map(|(address, _)| *address).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Allocation, Allocations};

    #[test]
    fn an_address_is_of_the_context_of_its_allocation() {
        let mut all = Allocations::default();
        for (address, bytes, context) in [(0x1000, 0x100, 7), (0x1100, 1, 8), (0x2000, 0x100, 0)] {
            all.at.insert(address, Allocation { bytes, context });
        }
        for (address, expected) in [
            (0xfff, None),
            (0x1000, Some(7)),
            (0x10ff, Some(7)),
            (0x1100, Some(8)),
            (0x1101, None),
            (0x2000, None),
        ] {
            assert_eq!(all.context_at(address), expected, "{address:#x}");
        }
    }
}
