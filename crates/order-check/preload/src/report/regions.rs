//! The regions that a program says it is in, as parts of the places of its calls.

use std::cell::RefCell;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use cuda_order_check_engine::Backtrace;

thread_local! {
    /// The region that this thread is in.
    static REGION: RefCell<Option<Arc<Region>>> = const { RefCell::new(None) };
}

/// A region, with the one around it. A program may enter regions without an end.
struct Region {
    name: Box<str>,
    around: Option<Arc<Self>>,
    depth: usize,
}

impl Drop for Region {
    /// One by one, as a stack has no place for as many as there may be.
    fn drop(&mut self) {
        let mut next = self.around.take();
        while let Some(mut region) = next.and_then(Arc::into_inner) {
            next = region.around.take();
        }
    }
}

/// How many names of regions a report has, at most.
const NAMES: usize = 16;

/// `step / forward`, from the outermost one on.
impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = core::iter::successors(Some(self), |region| region.around.as_deref());
        let names: Vec<&str> = all.take(NAMES).map(|region| &*region.name).collect();
        if self.depth > NAMES {
            f.write_str("... / ")?;
        }
        for (at, name) in names.iter().rev().enumerate() {
            write!(f, "{}{name}", if at == 0 { "" } else { " / " })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Gets the thread's variables ready.
pub(crate) fn thread_is_ready() {
    let _ = REGION.try_with(|_| ());
}

/// The calling thread enters a region. Returns how many it is in.
pub fn push_region(name: &str) -> usize {
    let push = |current: &RefCell<Option<Arc<Region>>>| {
        let mut current = current.borrow_mut();
        let around = current.take();
        let depth = around.as_ref().map_or(0, |around| around.depth) + 1;
        *current = Some(Arc::new(Region { name: name.into(), around, depth }));
        depth
    };
    REGION.try_with(push).unwrap_or(0)
}

/// It leaves the last one. Returns how many it is in.
pub fn pop_region() -> usize {
    let pop = |current: &RefCell<Option<Arc<Region>>>| {
        let mut current = current.borrow_mut();
        let last = current.take();
        *current = last.as_ref().and_then(|region| region.around.clone());
        current.as_ref().map_or(0, |region| region.depth)
    };
    REGION.try_with(pop).unwrap_or(0)
}

/// A call in a region, with its stack if it has one.
#[derive(Debug)]
struct InRegion {
    region: Arc<Region>,
    stack: Option<Arc<dyn Backtrace>>,
}

impl Backtrace for InRegion {
    fn path(&self) -> Option<u64> {
        let stack = match &self.stack {
            Some(stack) => Some(stack.path()?),
            None => None,
        };
        let mut hasher = DefaultHasher::new();
        (stack, self.region.to_string()).hash(&mut hasher);
        Some(hasher.finish())
    }

    fn outline(&self) -> String {
        let stack = self.stack.as_ref().map(|stack| stack.outline()).unwrap_or_default();
        format!("Region: {}\n{stack}", self.region)
    }
}

impl fmt::Display for InRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Region: {}", self.region)?;
        self.stack.as_ref().map_or(Ok(()), |stack| stack.fmt(f))
    }
}

/// The place of a call with this stack, if it has one.
pub(super) fn place(stack: Option<Arc<dyn Backtrace>>) -> Option<Arc<dyn Backtrace>> {
    match REGION.try_with(|region| region.borrow().clone()) {
        Ok(Some(region)) => Some(Arc::new(InRegion { region, stack })),
        _ => stack,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuda_order_check_engine::Backtrace;

    use super::{InRegion, NAMES, REGION, Region, pop_region, push_region};

    /// The same stack in two regions is two places of the program.
    #[test]
    fn calls_in_two_regions_are_at_two_places() {
        let call = |region: &str, stack: Option<&'static str>| {
            push_region(region);
            let region = REGION.with(|region| region.borrow().clone()).expect("it is in one");
            pop_region();
            let stack = stack.map(|text| Arc::new(text) as Arc<dyn Backtrace>);
            InRegion { region, stack }
        };
        let outline = |region, stack| call(region, Some(stack)).outline();
        assert_eq!(outline("step", "upload"), outline("step", "upload"));
        assert_ne!(outline("step", "upload"), outline("epoch", "upload"));
        assert_ne!(outline("step", "upload"), outline("step", "download"));
        assert_eq!(call("step", Some("upload")).path(), None);
        // Without a stack the region is all that there is.
        assert_eq!(call("step", None).path(), call("step", None).path());
        assert_ne!(call("step", None).path(), call("epoch", None).path());
    }

    /// All names are there, unless there are more than fit.
    #[test]
    fn a_region_names_those_around_it() {
        for depth in 1..=NAMES + 1 {
            (1..=depth).for_each(|at| assert_eq!(push_region(&format!("r{at}")), at));
            let region = REGION.with(|region| region.borrow().clone()).expect("it is in one");
            let first = depth.saturating_sub(NAMES) + 1;
            let names: Vec<String> = (first..=depth).map(|at| format!("r{at}")).collect();
            let more = if first > 1 { "... / " } else { "" };
            assert_eq!(region.to_string(), format!("{more}{}", names.join(" / ")));
            (0..depth).rev().for_each(|left| assert_eq!(pop_region(), left));
        }
    }

    /// A program that enters a region in each step, and leaves none.
    #[test]
    fn a_region_has_its_own_name_only() {
        const COUNT: usize = 1_000_000;
        (1..=COUNT).for_each(|depth| assert_eq!(push_region("step"), depth));
        let current = || REGION.with(|region| region.borrow().clone()).expect("it is in one");
        let mut bytes = 0;
        let mut region = Some(current());
        while let Some(own) = region {
            bytes += size_of::<Region>() + own.name.len();
            region = own.around.clone();
        }
        assert!(bytes <= 64 * COUNT, "{bytes}");
        let last = ["step"; NAMES].join(" / ");
        assert_eq!(current().to_string(), format!("... / {last}"));
        for depth in (2..COUNT).rev() {
            assert_eq!(pop_region(), depth);
        }
        assert_eq!(push_region("forward"), 3);
        assert_eq!(current().to_string(), "step / step / forward");
        // What is left is dropped with the thread, however deep.
        std::thread::spawn(|| (0..COUNT).for_each(|_| _ = push_region("")))
            .join()
            .expect("it ends");
        assert_eq!([pop_region(), pop_region(), pop_region(), pop_region()], [2, 1, 0, 0]);
    }
}
