//! The current stream of a thread: a convenience for programs that want one. Nothing else in this
//! crate uses it.

use core::cell::RefCell;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::Deref;
use std::sync::Arc;

use crate::handle_traits::impl_handle_traits;
use crate::{Context, StreamRef};

type Shared = Arc<dyn AsRef<StreamRef> + Send + Sync>;

thread_local! {
    /// The scopes that this thread has entered and not left, in the order of entering. The last
    /// scope of a context has its current stream.
    ///
    /// A leaked scope stays, and its stream is not destroyed. A thread-local's destructor must not
    /// make driver calls, so this list has no destructor. On targets whose thread-locals the
    /// standard library implements itself (`x86_64-pc-windows-gnu`), this list may be freed before
    /// another thread-local drops its scope: that stream is not destroyed either.
    static ENTERED: RefCell<ManuallyDrop<Vec<Entered>>> = const {
        RefCell::new(ManuallyDrop::new(Vec::new())) };
}

struct Entered {
    scope: u64,
    context: Context,
    stream: Shared,
}

/// Makes a stream current on this thread until the scope is dropped.
///
/// Each thread has its own current stream in each context. At first this is the [default
/// stream](StreamRef::default_stream). CUDA's libraries share the primary context of each device,
/// so with primary contexts there is one current stream for each device.
///
/// Scopes nest, and a stream may be nested in itself. Dropping a scope undoes only that scope, in
/// any order of drops and when a panic unwinds. A scope keeps its stream alive. A scope cannot be
/// sent to another thread.
///
/// A scope changes only the result of [`current_stream`], and makes no driver call. If code inside
/// the scope uses CUDA's current context, call [`Context::make_current`] as well.
///
/// To keep a stream current for longer than a block, store the scope in a variable. Assign another
/// scope to the variable to change the stream.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_events::ext::{StreamScope, current_stream};
/// use std::sync::Arc;
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Arc::new(Stream::new(&context, StreamOptions::new())?);
/// {
///     let _scope = StreamScope::enter(stream.clone());
///     assert_eq!(*current_stream(&context), **stream);
///     // For other code that works in the current context:
///     let _current = context.make_current()?;
/// }
/// assert_ne!(*current_stream(&context), **stream);
/// # Ok::<(), cuda_events::Error>(())
/// ```
#[must_use = "the stream is current only as long as the scope lives"]
#[derive(Debug)]
pub struct StreamScope {
    scope: u64,
    _not_send: PhantomData<*mut ()>,
}

impl StreamScope {
    /// Makes the stream the current stream of its context on this thread.
    ///
    /// Pass an `Arc` of a [`Stream`](crate::Stream), of a [`StreamRef`] or of a
    /// [`ForeignStream`](crate::ForeignStream).
    #[doc(alias = "torch.cuda.stream")]
    #[doc(alias = "set_stream")]
    #[doc(alias = "StreamContext")]
    pub fn enter<S: AsRef<StreamRef> + Send + Sync + 'static>(stream: Arc<S>) -> Self {
        let context = (*stream).as_ref().context().clone();
        ENTERED.with_borrow_mut(|entered| {
            // Scopes are numbered by their place, and leave in any order; so the last one has the
            // greatest number.
            let scope = entered.last().map_or(0, |last| last.scope + 1);
            entered.push(Entered { scope, context, stream });
            Self { scope, _not_send: PhantomData }
        })
    }
}

impl Drop for StreamScope {
    fn drop(&mut self) {
        let (left, _freed) = ENTERED.with_borrow_mut(|entered| {
            let left = entered
                .iter()
                .rposition(|entered| entered.scope == self.scope)
                .map(|at| entered.remove(at));
            // A thread that is in no scope has nothing to free when it ends.
            let freed = if entered.is_empty() { mem::take(&mut **entered) } else { Vec::new() };
            (left, freed)
        });
        // Not under the borrow: the last owner of a stream destroys it, and an owner of a foreign
        // one may do anything.
        drop(left);
    }
}

/// Returns the calling thread's current stream of the context.
///
/// This is the stream of the last [`StreamScope`] that the thread entered for this context and has
/// not left. Without such a scope it is the context's [default stream](StreamRef::default_stream).
/// `current_stream` makes no driver call.
///
/// ```
/// use cuda_events::ext::current_stream;
/// use cuda_events::{Context, Device, EventFlags};
///
/// /// Works in the caller's current stream, without a parameter for it.
/// fn library_function(context: &Context) -> cuda_events::Result<()> {
///     let stream = current_stream(context);
///     // ... work ...
///     stream.record_event(EventFlags::empty())?.synchronize()
/// }
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// library_function(&context)?;
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub fn current_stream(context: &Context) -> CurrentStream {
    let entered = ENTERED.with_borrow(|entered| {
        entered
            .iter()
            .rev()
            .find(|entered| entered.context == *context)
            .map(|entered| entered.stream.clone())
    });
    CurrentStream(match entered {
        Some(stream) => Current::Entered(stream),
        None => Current::Default(StreamRef::default_stream(context)),
    })
}

/// The stream that [`current_stream`] returned.
///
/// It dereferences to the stream and keeps it alive. Later scopes do not change it.
///
/// ```
/// use std::sync::Arc;
///
/// use cuda_events::ext::{StreamScope, current_stream};
/// use cuda_events::{Context, Device, Stream, StreamOptions};
///
/// # use cuda_soft_driver::examples::Driver;
/// let driver = Driver::load()?;
/// let context = Context::primary(Device::new(driver, 0)?)?;
/// let stream = Arc::new(Stream::new(&context, StreamOptions::new())?);
///
/// let scope = StreamScope::enter(stream.clone());
/// let current = current_stream(&context);
/// drop(scope);
/// assert_eq!(*current, **stream);
/// current.synchronize()?; // still valid after the scope was left
/// # Ok::<(), cuda_events::Error>(())
/// ```
pub struct CurrentStream(Current);

enum Current {
    Entered(Shared),
    Default(StreamRef),
}

impl Deref for CurrentStream {
    type Target = StreamRef;

    fn deref(&self) -> &StreamRef {
        match &self.0 {
            Current::Entered(stream) => (**stream).as_ref(),
            Current::Default(stream) => stream,
        }
    }
}

impl_handle_traits!(StreamRef: CurrentStream);

static_assertions::assert_impl_all!(CurrentStream: Send, Sync);
static_assertions::assert_not_impl_any!(StreamScope: Send, Sync);
