//! A pool of events, for programs that need many events for a short time each.

use core::cell::Cell;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::null_mut;
use core::sync::atomic::AtomicUsize;

use crate::driver::capture_count;
use crate::driver::fork::forked;
use crate::handle_traits::impl_handle_traits;
use crate::sync::{Arc, AtomicPtr, Mutex, MutexGuard, Ordering, lock, shipped_or_checked};
use crate::sys::Function;
use crate::{Context, Error, Event, EventFlags, EventRef, Result, StreamRef};

#[cfg(doc)]
use crate::sys::calls::*;

/// The number of shelves of a pool. Threads spread over them, so they seldom share one.
const SHELVES: usize = shipped_or_checked(16, 1);
/// The number of free events on a shelf: one cache line of slots.
const SLOTS: usize = shipped_or_checked(8, 1);

/// A pool of events that share one context and one set of flags.
///
/// Dropping a [`PooledEvent`] gives it back to the pool. Taking an event and giving it back makes
/// no driver call. Creating and destroying an event makes at least two, under a lock of the driver.
/// An event that outlives its pool is destroyed when it is dropped.
///
/// [`record_event`](Self::record_event) returns a recorded event. An event from
/// [`take`](Self::take) still has its previous user's record.
///
/// ```
/// use cuda_events::ext::EventPool;
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Stream::new(&context, StreamOptions::new())?;
///
/// let pool = EventPool::new(&context, EventFlags::empty())?;
/// let event = pool.record_event(&stream)?;
/// event.synchronize()?;
/// drop(event);
/// assert_eq!(pool.available(), 1);
/// assert_eq!((pool.context(), pool.flags()), (&context, EventFlags::empty()));
/// pool.clear();
/// assert_eq!(pool.available(), 0);
/// # Ok::<(), cuda_events::Error>(())
/// ```
///
/// Some events are destroyed instead of given back:
///
/// * an event for which the driver returned an error: see [`PooledEvent`];
/// * an event that is dropped while a [`Capture`](crate::capture::Capture) is in progress anywhere
///   in the process: it may be part of the capture.
///
/// The pool does not see captures that other code begins. If an event was recorded in such a
/// capture, [discard](PooledEvent::discard) it.
///
/// Clones share one pool. Any thread may use it.
#[derive(Clone)]
pub struct EventPool(Arc<Handle>);

/// The state that the clones of a pool share. The drop of the last clone destroys the free events.
struct Handle(Arc<Store>);

/// The free events: first in slots, which are taken and filled by one atomic exchange each and
/// touch no reference count; what does not fit there is in a list.
///
/// A slot holds NULL, the address of a box that it owns, or [`closed`]. Why each entry has one
/// owner at each time, and the owner sees all of it:
///
/// 1. `put` owns the entry alone. What was done with it happens before the next step, in program
///    order.
/// 2. It exchanges NULL for the entry's address, with release. If that fails, `put` owns the entry
///    still. If it succeeds, the slot owns it, and `put` touches neither the entry nor the store
///    again: the next owner may free both.
/// 3. `take` exchanges whatever is in the slot for NULL, with acquire. Exchanges of one slot have
///    one order, so one thread gets the address. It reads what step 2 wrote: all of step 1 happens
///    before, and the entry is whole.
/// 4. Step 2 compares with NULL alone. So nothing is lost by being overwritten, and it does not
///    matter what was in the slot in between: no address is compared that may have been freed and
///    used again.
/// 5. The relaxed loads before both exchanges only say where to try. A wrong answer costs a try.
///
/// Why nothing stays in a pool that is closed:
///
/// 6. [`Handle`] is dropped with the last clone of the pool, and only a clone takes. So no `take`
///    runs at that time or later, and none ever meets `closed`.
/// 7. The drop exchanges the content of each slot for `closed`, as in step 3, and drops the entry
///    that it gets. A `put` in a slot comes before this exchange, and its entry is dropped here; or
///    after it, and fails, as the slot is not NULL.
/// 8. Then, under the list's lock, it sets `Rest::closed` and takes what is in the list. A `put` in
///    the list has the lock before, and its entry is taken here; or after, and sees `closed`. Then
///    it drops the entry itself.
/// 9. Entries own a share of the store, and the store owns entries. Steps 7 and 8 cut that circle;
///    the last owner of an entry outside, or this drop itself, frees the store.
struct Store {
    context: Context,
    flags: EventFlags,
    shelves: [Shelf; SHELVES],
    rest: Mutex<Rest>,
}

/// A shelf has its own cache lines.
#[repr(align(128))]
struct Shelf([AtomicPtr<Entry>; SLOTS]);

#[derive(Default)]
struct Rest {
    closed: bool,
    #[allow(clippy::vec_box, reason = "an entry goes back into a slot in its box")]
    free: Vec<Box<Entry>>,
}

/// An event and the pool that it belongs to, allocated with the event.
struct Entry {
    event: Event,
    store: Arc<Store>,
}

/// The content of every slot of a closed pool.
static CLOSED: u8 = 0;

fn closed() -> *mut Entry {
    (&raw const CLOSED).cast_mut().cast()
}

impl EventPool {
    /// Creates an empty pool. It makes no driver call: events are created when they are needed.
    ///
    /// # Errors
    ///
    /// * [`Error::InterprocessPool`] for [`EventFlags::INTERPROCESS`]: the pool would reuse an
    ///   event that another process still has open.
    /// * [`Error::TimingWithInterprocess`] for [`EventFlags::TIMING`] together with
    ///   [`EventFlags::INTERPROCESS`].
    pub fn new(context: &Context, flags: EventFlags) -> Result<Self> {
        if flags.contains(EventFlags::TIMING | EventFlags::INTERPROCESS) {
            return Err(Error::TimingWithInterprocess);
        }
        if flags.contains(EventFlags::INTERPROCESS) {
            return Err(Error::InterprocessPool);
        }
        let shelves = core::array::from_fn(|_| Shelf(Default::default()));
        let store = Store { context: context.clone(), flags, shelves, rest: Mutex::default() };
        Ok(Self(Arc::new(Handle(Arc::new(store)))))
    }

    /// Takes an event from the pool, or creates one if none is free.
    ///
    /// The event still has its previous user's record, because resetting it would cost a driver
    /// call. Until you record it, [`query`](EventRef::query) and waits refer to that record.
    /// [`record_event`](Self::record_event) takes and records in one step.
    ///
    /// No driver call, or those of [`Event::new`] if it creates an event.
    ///
    /// ```
    /// use cuda_events::ext::EventPool;
    /// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
    ///
    /// # use cuda_soft_driver::examples::Driver;
    /// let driver = Driver::load()?;
    /// let context = Context::primary(Device::new(driver, 0)?)?;
    /// let stream = Stream::new(&context, StreamOptions::new())?;
    /// let pool = EventPool::new(&context, EventFlags::empty())?;
    /// pool.reserve(8)?;
    /// // No driver call: the pool has free events.
    /// let event = pool.take()?;
    /// event.record(&stream)?;
    /// # Ok::<(), cuda_events::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Event::new`], if it creates an event; [`Error::ForkedChild`].
    pub fn take(&self) -> Result<PooledEvent> {
        let store = &self.0.0;
        // A free one would be taken without a driver call, and so without this.
        if forked() {
            return Err(Error::ForkedChild { function: Function::cuEventCreate });
        }
        match store.take(own_shelf()) {
            Some(entry) => Ok(PooledEvent::new(entry)),
            None => self.create().map(PooledEvent::new),
        }
    }

    /// Takes an event and records it in the stream. The stream must belong to the pool's context.
    ///
    /// It works as [`StreamRef::record_event`], but reuses an event. Driver calls: those of
    /// [`take`](Self::take), and [`cuEventRecord`].
    ///
    /// # Errors
    ///
    /// The errors of [`take`](Self::take) and [`EventRef::record`]. If the record fails, the event is
    /// destroyed.
    pub fn record_event(&self, stream: &StreamRef) -> Result<PooledEvent> {
        let event = self.take()?;
        event.record(stream)?;
        Ok(event)
    }

    /// Creates `count` more events, so taking them later makes no driver call.
    ///
    /// For each event it makes the driver calls of [`Event::new`]. [`take`](Self::take) has an
    /// example.
    ///
    /// # Errors
    ///
    /// The errors of [`Event::new`]. Events that were created before the error stay in the pool.
    pub fn reserve(&self, count: usize) -> Result<()> {
        for _ in 0..count {
            put(self.create()?);
        }
        Ok(())
    }

    fn create(&self) -> Result<Box<Entry>> {
        let store = &self.0.0;
        let event = Event::new(&store.context, store.flags)?;
        Ok(Box::new(Entry { event, store: Arc::clone(store) }))
    }

    /// Destroys the events that are now free. One driver call for each event: [`cuEventDestroy`].
    pub fn clear(&self) {
        self.0.0.empty(null_mut());
    }

    /// Returns the number of free events, which can be taken without a driver call.
    pub fn available(&self) -> usize {
        let store = &self.0.0;
        let slots = store.shelves.iter().flat_map(|shelf| &shelf.0);
        slots.filter(|slot| !slot.load(Ordering::Relaxed).is_null()).count()
            + store.rest().map_or(0, |rest| rest.free.len())
    }

    /// Returns the context of the pool's events.
    pub fn context(&self) -> &Context {
        &self.0.0.context
    }

    /// Returns the flags of the pool's events.
    pub fn flags(&self) -> EventFlags {
        self.0.0.flags
    }
}

#[allow(unsafe_code)]
impl Store {
    /// A free event: from the thread's own shelf, otherwise from any shelf.
    #[inline]
    fn take(&self, own: usize) -> Option<Box<Entry>> {
        let slots = self
            .shelves
            .get(own % SHELVES)
            .into_iter()
            .chain(&self.shelves)
            .flat_map(|shelf| &shelf.0);
        for slot in slots {
            if !slot.load(Ordering::Relaxed).is_null() {
                let entry = slot.swap(null_mut(), Ordering::Acquire);
                if !entry.is_null() {
                    // SAFETY: a box that `put` leaked into the slot, and that the exchange gave to
                    // this thread alone (steps 3 and 6 of `Store`).
                    return Some(unsafe { Box::from_raw(entry) });
                }
            }
        }
        self.rest()?.free.pop()
    }

    /// Empties the pool, and leaves `leave` in every slot.
    fn empty(&self, leave: *mut Entry) {
        for slot in self.shelves.iter().flat_map(|shelf| &shelf.0) {
            let entry = slot.swap(leave, Ordering::Acquire);
            if !entry.is_null() {
                // SAFETY: as in `take` (steps 3 and 7).
                drop(unsafe { Box::from_raw(entry) });
            }
        }
        let Some(mut rest) = self.rest() else { return };
        rest.closed = !leave.is_null();
        let free = core::mem::take(&mut rest.free);
        drop(rest);
        // Destroyed with the list unlocked.
        drop(free);
    }

    /// None if the lock cannot be had: in a forked child, a thread of the parent may hold it for
    /// ever.
    fn rest(&self) -> Option<MutexGuard<'_, Rest>> {
        if forked() {
            return self.rest.try_lock().ok();
        }
        // Nothing that can panic runs under the lock.
        Some(lock(&self.rest))
    }
}

/// Gives an event back to its pool, or destroys it when the pool is closed.
#[allow(unsafe_code)]
fn put(entry: Box<Entry>) {
    let own = own_shelf();
    let entry = Box::into_raw(entry);
    // SAFETY: this thread owns the entry, which keeps its store alive, until a slot takes it.
    let store: *const Store = unsafe { Arc::as_ptr(&(*entry).store) };
    for slot in 0..SLOTS {
        // SAFETY: as above; the store is not touched after the exchange that gives the entry away
        // (step 2).
        let slot =
            unsafe { (*store).shelves.get(own % SHELVES).and_then(|shelf| shelf.0.get(slot)) };
        let Some(slot) = slot else { continue };
        if slot.load(Ordering::Relaxed).is_null()
            && slot
                .compare_exchange(null_mut(), entry, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        {
            return;
        }
    }
    // SAFETY: no slot took it, so that it is still this thread's.
    let entry = unsafe { Box::from_raw(entry) };
    let store = Arc::clone(&entry.store);
    // Never waits for a lock: if somebody else is at the list, the event is destroyed.
    if let Ok(mut rest) = store.rest.try_lock()
        && !rest.closed
    {
        rest.free.push(entry);
    }
}

/// Out of line, so that giving back saves no registers for it.
#[cold]
#[inline(never)]
fn destroy(entry: Box<Entry>) {
    drop(entry);
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.empty(closed());
    }
}

/// The calling thread's shelf.
#[inline]
fn own_shelf() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    thread_local! {
        // 0 is none yet. It has no destructor, as events are dropped in those of other
        // thread-locals too.
        static OWN: Cell<usize> = const { Cell::new(0) };
    }
    OWN.with(|own| {
        if own.get() == 0 {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed).max(1));
        }
        own.get()
    })
}

/// An event taken from an [`EventPool`].
///
/// Dropping it gives it back.
///
/// Use it like any event. If the driver returns an error for [`record`](EventRef::record),
/// [`query`](EventRef::query), [`synchronize`](EventRef::synchronize) or
/// [`synchronize_timeout`](EventRef::synchronize_timeout), the drop destroys the event instead of
/// giving it back. Calls through an `&EventRef` count too, and so do errors of a future that waits
/// for the event (`Completion::new` of the crate `cuda-timelines`).
///
/// Errors of other calls do not count, such as those of [`wait_event`](StreamRef::wait_event). If
/// such an error concerns the event, [`discard`](Self::discard) the event.
///
/// ```
/// use cuda_events::ext::EventPool;
/// use cuda_events::{Context, Device, EventFlags, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let one = Stream::new(&context, StreamOptions::new())?;
/// let two = Stream::new(&context, StreamOptions::new())?;
///
/// let pool = EventPool::new(&context, EventFlags::empty())?;
/// let event = pool.record_event(&one)?;
/// two.wait_event(&event)?;
/// drop(event); // Given back at once: the wait already refers to this record.
/// let event = pool.take()?;
/// event.discard();
/// assert_eq!(pool.available(), 0);
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct PooledEvent {
    /// Taken once, by the destructor.
    entry: ManuallyDrop<Box<Entry>>,
}

impl PooledEvent {
    fn new(entry: Box<Entry>) -> Self {
        Self { entry: ManuallyDrop::new(entry) }
    }

    /// Destroys the event instead of giving it back. One driver call: [`cuEventDestroy`].
    pub fn discard(self) {
        self.mark_failed();
    }
}

impl Drop for PooledEvent {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: taken once, as this is the destructor.
        let entry = unsafe { ManuallyDrop::take(&mut self.entry) };
        if entry.event.has_failed() || capture_count::under_way() {
            destroy(entry);
        } else {
            put(entry);
        }
    }
}

impl Deref for PooledEvent {
    type Target = EventRef;

    #[inline(always)]
    fn deref(&self) -> &EventRef {
        &self.entry.event
    }
}

impl_handle_traits!(EventRef: PooledEvent);

/// Lets generic code take an `Arc<PooledEvent>`.
impl AsRef<EventRef> for std::sync::Arc<PooledEvent> {
    fn as_ref(&self) -> &EventRef {
        self
    }
}

impl fmt::Debug for EventPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventPool")
            .field("context", self.context())
            .field("flags", &self.flags())
            .finish_non_exhaustive()
    }
}

static_assertions::assert_impl_all!(EventPool: Send, Sync, Clone);
static_assertions::assert_impl_all!(PooledEvent: Send, Sync);

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> (cuda_soft_driver::SoftDriver, EventPool) {
        let (soft, driver) = crate::driver::software();
        let device = crate::Device::new(driver, 0).unwrap();
        let pool = EventPool::new(&Context::primary(device).unwrap(), EventFlags::TIMING).unwrap();
        (soft, pool)
    }

    /// How many events are in the first slots of each shelf, and in the list.
    fn shelved(pool: &EventPool) -> ([usize; SHELVES], usize) {
        let store = &pool.0.0;
        let full = |shelf: &Shelf| {
            shelf.0.iter().filter(|slot| !slot.load(Ordering::Relaxed).is_null()).count()
        };
        (core::array::from_fn(|at| full(&store.shelves[at])), store.rest().unwrap().free.len())
    }

    #[test]
    fn shelves_come_before_the_list() {
        let (_soft, pool) = pool();
        let own = own_shelf() % SHELVES;
        pool.reserve(SLOTS).unwrap();
        let mut expected = [0; SHELVES];
        expected[own] = SLOTS;
        assert_eq!(shelved(&pool), (expected, 0));
        pool.reserve(2).unwrap();
        assert_eq!(shelved(&pool), (expected, 2));
    }
}
