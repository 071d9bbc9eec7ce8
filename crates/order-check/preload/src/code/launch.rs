//! What a launch had, as long as one of its accesses is kept.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use cuda_kernel_access::code::Launch as Shape;
use cuda_order_check_engine::{Launch, Other};

use crate::code::kernel::KernelCode;
use crate::code::{keep, nearby, verdict};

/// Those of all launches that are kept may have so many bytes, beside few ones.
const MOST: usize = 24 << 20;

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// The blocks along each axis, and the threads of a block.
pub(crate) type Sizes = [u32; 6];

/// The values of a launch.
#[derive(Debug)]
pub(crate) struct Values {
    pub(crate) number: u64,
    pub(crate) code: Arc<KernelCode>,
    sizes: Sizes,
    words: Words,
}

/// The bytes of the parameters at their offsets.
#[derive(Debug)]
enum Words {
    /// Few, so that most launches are one piece of memory.
    Few([u64; FEW], usize),
    Many(Box<[u64]>),
    /// Too many are kept.
    Missing,
}

const FEW: usize = 8;

impl Values {
    pub(crate) fn new(code: Arc<KernelCode>, sizes: Sizes, words: &[u64]) -> Self {
        let number = number(code.number, sizes, words);
        Self { number, code, sizes, words: Words::new(words) }
    }

    /// The words of the parameters.
    pub(crate) fn words(&self) -> &[u64] {
        match &self.words {
            Words::Few(words, count) => words.get(..*count).unwrap_or_default(),
            Words::Many(words) => words,
            Words::Missing => &[],
        }
    }

    pub(crate) fn launch(&self) -> Option<Shape> {
        if matches!(self.words, Words::Missing) {
            return None;
        }
        let parameters: Vec<u8> = self.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let [x, y, z, wide, high, deep] = self.sizes;
        Some(Shape::new([x, y, z], [wide, high, deep], parameters))
    }
}

impl Words {
    fn new(words: &[u64]) -> Self {
        let mut few = [0; FEW];
        if let Some(place) = few.get_mut(..words.len()) {
            place.copy_from_slice(words);
            return Self::Few(few, words.len());
        }
        if keep(&KEPT, size_of_val(words), MOST) { Self::Many(words.into()) } else { Self::Missing }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Self::Many(words) = self {
            KEPT.fetch_sub(size_of_val(&**words), Ordering::Relaxed);
        }
    }
}

impl Launch for Values {
    fn number(&self) -> u64 {
        self.number
    }

    fn is_apart(&self, shared: &[Range<u64>], other: &Other<'_>) -> bool {
        verdict::is_known_to_be_apart(self, shared, other)
    }

    fn is_near(&self, allocations: &[Range<u64>], other: &Other<'_>) -> bool {
        nearby::is_near(self, allocations, other)
    }
}

/// A number of two.
pub(crate) fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one ^ 0x9e37_79b9_7f4a_7c15) * u128::from(two ^ 0xd1b5_4a32_d192_ed03);
    (product as u64) ^ (product >> 64) as u64
}

/// A number that two launches share only if they are alike.
fn number(code: u64, sizes: Sizes, words: &[u64]) -> u64 {
    let [x, y, z, wide, high, deep] = sizes.map(u64::from);
    let first = [x << 32 | y, z << 32 | wide, high << 32 | deep, words.len() as u64];
    first.iter().chain(words).fold(code, |number, word| mix(number.rotate_left(23), *word))
}
