//! The pool of events over a queue of a well-kept crate, to be measured beside ours.
//!
//! It does what `EventPool` does when an event is taken and given back: the same box, the same
//! three looks at flags. Where ours has shelves, this has one queue. The rest of a pool is left
//! out, so that it can only be the faster for it.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::mem::ManuallyDrop;
use std::sync::Arc;

use crossbeam_queue::{ArrayQueue, SegQueue};
use cuda_events::{Context, Event, EventFlags};

/// As many as ours has slots.
const CAPACITY: usize = 128;

/// Stand for the library's own flags. Other crates could write them, so that they are loaded each
/// time.
#[unsafe(no_mangle)]
pub static BENCH_FORKED: AtomicBool = AtomicBool::new(false);
#[unsafe(no_mangle)]
pub static BENCH_CAPTURES: AtomicUsize = AtomicUsize::new(0);

/// A kind of queue.
pub trait Kind: 'static {
    type Queue<T>;
    fn new<T>() -> Self::Queue<T>;
    fn pop<T>(queue: &Self::Queue<T>) -> Option<T>;
    /// What it has no room for comes back.
    fn push<T>(queue: &Self::Queue<T>, value: T) -> Result<(), T>;
}

/// Of a fixed size.
pub enum Array {}

impl Kind for Array {
    type Queue<T> = ArrayQueue<T>;

    fn new<T>() -> ArrayQueue<T> {
        ArrayQueue::new(CAPACITY)
    }

    #[inline(always)]
    fn pop<T>(queue: &ArrayQueue<T>) -> Option<T> {
        queue.pop()
    }

    #[inline(always)]
    fn push<T>(queue: &ArrayQueue<T>, value: T) -> Result<(), T> {
        queue.push(value)
    }
}

/// Of segments, which it allocates as it needs them.
pub enum Segments {}

impl Kind for Segments {
    type Queue<T> = SegQueue<T>;

    fn new<T>() -> SegQueue<T> {
        SegQueue::new()
    }

    #[inline(always)]
    fn pop<T>(queue: &SegQueue<T>) -> Option<T> {
        queue.pop()
    }

    #[inline(always)]
    fn push<T>(queue: &SegQueue<T>, value: T) -> Result<(), T> {
        queue.push(value);
        Ok(())
    }
}

/// A pool over such a queue. Its events keep it: it is released with the process.
pub struct QueuePool<K: Kind>(Arc<Store<K>>);

struct Store<K: Kind> {
    context: Context,
    free: K::Queue<Box<Entry<K>>>,
}

struct Entry<K: Kind> {
    event: Event,
    failed: AtomicBool,
    store: Arc<Store<K>>,
}

/// An event of the pool; dropping it gives it back.
pub struct Pooled<K: Kind>(ManuallyDrop<Box<Entry<K>>>);

impl<K: Kind> Clone for QueuePool<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Kind> QueuePool<K> {
    pub fn new(context: &Context) -> Self {
        Self(Arc::new(Store { context: context.clone(), free: K::new() }))
    }

    #[inline]
    pub fn take(&self) -> cuda_events::Result<Pooled<K>> {
        assert!(!BENCH_FORKED.load(Ordering::Relaxed), "nobody sets it");
        match K::pop(&self.0.free) {
            Some(entry) => Ok(Pooled(ManuallyDrop::new(entry))),
            None => self.create(),
        }
    }

    #[cold]
    fn create(&self) -> cuda_events::Result<Pooled<K>> {
        let event = Event::new(&self.0.context, EventFlags::empty())?;
        let entry = Entry { event, failed: AtomicBool::new(false), store: Arc::clone(&self.0) };
        Ok(Pooled(ManuallyDrop::new(Box::new(entry))))
    }
}

impl<K: Kind> Drop for Pooled<K> {
    fn drop(&mut self) {
        // SAFETY: taken once, as this is the destructor.
        let entry = unsafe { ManuallyDrop::take(&mut self.0) };
        if entry.failed.load(Ordering::Relaxed) || BENCH_CAPTURES.load(Ordering::Relaxed) != 0 {
            destroy(entry);
            return;
        }
        let store = Arc::as_ptr(&entry.store);
        // SAFETY: the pool is never released, as `QueuePool` says.
        if let Err(entry) = K::push(unsafe { &(*store).free }, entry) {
            destroy(entry);
        }
    }
}

#[cold]
#[inline(never)]
fn destroy<K: Kind>(entry: Box<Entry<K>>) {
    drop((entry.event.as_raw(), entry));
}
