//! What a launch had, as long as one of its accesses is kept.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use cuda_kernel_access::code::Launch as Shape;
use cuda_order_check::{Launch, Other};

use crate::code::kernel::KernelCode;
use crate::code::verdict;

/// The parameters of all launches that are kept may have so many bytes.
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
    /// The bytes of the parameters at their offsets, unless too many are kept.
    words: Option<Box<[u64]>>,
}

impl Values {
    pub(crate) fn new(code: Arc<KernelCode>, sizes: Sizes, words: &[u64]) -> Self {
        let number = number(code.number, sizes, words);
        let bytes = size_of_val(words);
        let room = |kept: usize| kept.checked_add(bytes).filter(|all| *all <= MOST);
        let kept = KEPT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        Self { number, code, sizes, words: kept.then(|| words.into()) }
    }

    /// The words of the parameters.
    pub(crate) fn words(&self) -> &[u64] {
        self.words.as_deref().unwrap_or_default()
    }

    pub(crate) fn launch(&self) -> Option<Shape> {
        let parameters: Vec<u8> =
            self.words.as_ref()?.iter().flat_map(|word| word.to_le_bytes()).collect();
        let [x, y, z, wide, high, deep] = self.sizes;
        Some(Shape::new([x, y, z], [wide, high, deep], parameters))
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        KEPT.fetch_sub(size_of_val(self.words()), Ordering::Relaxed);
    }
}

impl Launch for Values {
    fn number(&self) -> u64 {
        self.number
    }

    fn is_apart(&self, shared: &[Range<u64>], other: &Other<'_>) -> bool {
        verdict::is_known_to_be_apart(self, shared, other)
    }
}

/// A number that two launches share only if they are alike.
fn number(code: u64, sizes: Sizes, words: &[u64]) -> u64 {
    let mix = |one: u64, two: u64| {
        let product =
            u128::from(one ^ 0x9e37_79b9_7f4a_7c15) * u128::from(two ^ 0xd1b5_4a32_d192_ed03);
        (product as u64) ^ (product >> 64) as u64
    };
    let [x, y, z, wide, high, deep] = sizes.map(u64::from);
    let first = [x << 32 | y, z << 32 | wide, high << 32 | deep, words.len() as u64];
    first.iter().chain(words).fold(code, |number, word| mix(number.rotate_left(23), *word))
}
