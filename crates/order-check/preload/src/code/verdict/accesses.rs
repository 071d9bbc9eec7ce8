//! Which accesses of kernels need an order, and which bytes they may be of.

use core::ops::Range;

use cuda_kernel_access::decode::AccessKind as KernelAccess;
use cuda_kernel_access::execute::Touch;
use cuda_kernel_access::touch::{Rows, Span, Uses};
use cuda_order_check_engine::{Access, AccessKind};

use crate::code::evaluated::Bounds;
use crate::code::launch::Values;

/// How many accesses are compared one by one.
pub(super) const COMPARED: usize = 1 << 12;

/// The kinds of accesses that a word is used for.
pub(super) fn kinds(uses: Uses) -> impl Iterator<Item = KernelAccess> {
    let all = [
        (uses.read, KernelAccess::Read),
        (uses.written, KernelAccess::Write),
        (uses.atomic, KernelAccess::Atomic),
        (uses.other, KernelAccess::Unknown),
    ];
    all.into_iter().filter(|(is, _)| *is).map(|(_, kind)| kind)
}

/// Whether a launch may write to bytes that its words are addresses of, as far as that was asked for
/// an earlier launch of the kernel.
pub(crate) fn may_write(launch: &Values, bytes: &Range<u64>) -> bool {
    let Some(summary) = launch.code.earlier_summary() else { return true };
    let words = launch.words().iter().zip(&summary.words);
    let mut within = words.filter(|(value, _)| bytes.contains(value)).map(|(_, word)| word.uses);
    let mut variables = launch.addresses().skip(launch.words().len());
    within.any(|uses| uses.written || uses.atomic || uses.other)
        || variables.any(|address| bytes.contains(&address))
}

/// What is done with the words that are addresses of these bytes; `None` if there is none, as the
/// address of a pool stands for all of it, and a variable of the module has none.
pub(super) fn uses_of(launch: &Values, bounds: &Bounds, shared: &[Range<u64>]) -> Option<Uses> {
    let words = launch.words().iter().zip(&bounds.summary.words);
    let within = words.filter(|(value, _)| shared.iter().any(|bytes| bytes.contains(value)));
    within.map(|(_, word)| word.uses).reduce(|one, two| {
        let mut both = one;
        both.read |= two.read;
        both.written |= two.written;
        both.atomic |= two.atomic;
        both.other |= two.other;
        both
    })
}

pub(crate) fn reads(kind: KernelAccess) -> bool {
    matches!(kind, KernelAccess::Read | KernelAccess::CopyToShared)
}

/// Whether an access of a kernel needs an order with another operation's.
pub(super) fn matters(kind: KernelAccess, other: AccessKind) -> bool {
    let read = matches!(other, AccessKind::Read | AccessKind::AtomicRead | AccessKind::Wait);
    !(read && reads(kind))
}

/// The same for two kernels, of accesses that may be strong. Atomic operations need none among each other, and
/// neither do strong accesses, as those of a flag: each gets what was there before or what was written.
pub(super) fn conflict(one: (KernelAccess, bool), two: (KernelAccess, bool)) -> bool {
    let atomic = |kind| matches!(kind, KernelAccess::Atomic | KernelAccess::Reduce);
    let alike = reads(one.0) && reads(two.0) || atomic(one.0) && atomic(two.0);
    !(alike || one.1 && two.1)
}

/// Whether bounds say anything: these bytes are within the memory that the finding is about. An index
/// from memory has the bounds of its type.
pub(super) fn is_bounded(bytes: &Range<u64>, memory: Option<&Range<u64>>) -> bool {
    match memory {
        Some(memory) => memory.start <= bytes.start && bytes.end <= memory.end,
        None => bytes.end - bytes.start < 1 << 32,
    }
}

/// Whether an access that the code and the launch alone decide is of one of these allocations: bounds begin
/// where an access is, and may go too far.
pub(super) fn is_within(span: &Span, allocations: &[Range<u64>]) -> bool {
    let begins = |own: &Range<u64>| allocations.iter().any(|all| all.contains(&own.start));
    !span.from_memory
        && span.bytes.as_ref().is_some_and(begins)
        && span.bytes.as_ref().is_some_and(|bytes| is_bounded(bytes, None))
}

/// Whether an access may be one by a word that is used in this way.
pub(super) fn may_be_of(span: &Span, uses: Option<Uses>) -> bool {
    let class = |kind| match kind {
        KernelAccess::CopyToShared => KernelAccess::Read,
        KernelAccess::Reduce => KernelAccess::Atomic,
        kind => kind,
    };
    uses.is_none_or(|uses| {
        uses.other
            || span.kind == KernelAccess::Unknown
            || kinds(uses).any(|kind| kind == class(span.kind))
    })
}

/// Whether some access of a kernel may be of these bytes.
pub(super) fn may_hit(span: &Span, accesses: &[Access]) -> bool {
    let hits = |access: &Access| {
        let mut rows = access.each_row();
        match (rows.next(), rows.next(), rows.nth(COMPARED)) {
            // Too many to compare one by one.
            (Some(first), Some(second), Some(_)) => {
                let width = first.end - first.start;
                let rows = Rows::new(first.start, width, second.start - first.start);
                span.may_touch_rows(&access.range, &rows)
            }
            _ => access.each_row().any(|row| span.may_touch(&row)),
        }
    };
    accesses.iter().any(hits)
}

/// Whether an access is of these bytes wherever it is, or not by what memory contains: an index from
/// there that is in bounds may be any.
pub(super) fn is_of_either(span: &Span, all: &[Range<u64>]) -> bool {
    let covers = |bytes: &Range<u64>| {
        let within = |own: &Range<u64>| bytes.start <= own.start && own.end <= bytes.end;
        span.bytes.as_ref().is_some_and(within)
    };
    !span.from_memory || all.iter().any(covers)
}

/// Some of these bytes that an access may be of: the first, the last, and one between.
pub(super) fn some_of(span: &Span, all: &[Range<u64>]) -> Vec<Range<u64>> {
    let common = |bytes: &Range<u64>| {
        let own = span.bytes.as_ref().filter(|_| span.may_touch(bytes))?;
        Some(own.start.max(bytes.start)..own.end.min(bytes.end))
    };
    let found: Vec<_> = all.iter().filter_map(common).collect();
    let mut places = vec![0, found.len() / 2, found.len().saturating_sub(1)];
    places.dedup();
    places.into_iter().filter_map(|at| found.get(at).cloned()).collect()
}

pub(super) fn bytes_of(touch: &Touch) -> Range<u64> {
    touch.address..touch.address.saturating_add(touch.bytes.into())
}
