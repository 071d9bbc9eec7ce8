//! Values in memory that streams write and wait for.

use crate::op::access::Access;

/// A value in memory that streams write and wait for: 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Its address. All operations on one value must use the same address.
    pub address: u64,
    /// 4 or 8.
    pub bytes: u8,
}

impl Cell {
    /// Its bytes. The kind is given apart.
    pub(crate) fn access(self) -> Access {
        Access::read(self.address, u64::from(self.bytes))
    }
}

/// The condition that ends a wait for a value, as in `CUstreamWaitValue_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `(signed)(seen - value) >= 0`, which also holds when a counter wraps.
    GreaterOrEqual,
    /// `seen == value`.
    Equal,
    /// `(seen & value) != 0`.
    And,
    /// `!(seen | value) != 0`.
    Nor,
}

impl Compare {
    pub(crate) fn holds(self, bytes: u8, seen: u64, value: u64) -> bool {
        // The low half, as a number with a sign, for those of 32 bits.
        let narrow = |number: u64| if bytes == 4 { number & 0xFFFF_FFFF } else { number };
        let (seen, value) = (narrow(seen), narrow(value));
        match self {
            Self::GreaterOrEqual => {
                narrow(seen.wrapping_sub(value)) & if bytes == 4 { 1 << 31 } else { 1 << 63 } == 0
            }
            Self::Equal => seen == value,
            Self::And => seen & value != 0,
            Self::Nor => narrow(!(seen | value)) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Compare::{And, Equal, GreaterOrEqual, Nor};

    #[test]
    fn values_compare_as_the_driver_compares_them() {
        // A counter that wraps is still greater, of either width.
        assert!(
            GreaterOrEqual.holds(4, 1, 0xFFFF_FFFE) && !GreaterOrEqual.holds(4, 0xFFFF_FFFE, 1)
        );
        assert!(
            GreaterOrEqual.holds(8, 1, u64::MAX)
                && !GreaterOrEqual.holds(8, 0xFFFF_FFFE, 0xFFFF_FFFF)
        );
        assert!(GreaterOrEqual.holds(4, 5, 5) && !GreaterOrEqual.holds(4, 4, 5));
        // The sign is that of the word: a difference of half its range is negative.
        let at_zero = |bytes, seen| GreaterOrEqual.holds(bytes, seen, 0);
        assert_eq!(
            [1 << 31, (1 << 31) - 1, 1 << 40].map(|seen| at_zero(4, seen)),
            [false, true, true]
        );
        assert_eq!(
            [1 << 31, 1 << 40, 1 << 63, (1 << 63) - 1].map(|seen| at_zero(8, seen)),
            [true, true, false, true]
        );
        // Only the low half counts in 32 bits.
        assert!(Equal.holds(4, 0x1_0000_0007, 7) && !Equal.holds(8, 0x1_0000_0007, 7));
        assert!(And.holds(4, 6, 2) && !And.holds(4, 6, 9) && !And.holds(4, 1 << 32, 1 << 32));
        assert!(
            Nor.holds(4, 6, 9) && !Nor.holds(4, 0xFFFF_FFF0, 0xF) && Nor.holds(8, 0xFFFF_FFF0, 0xF)
        );
    }
}
