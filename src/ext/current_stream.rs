//! The current stream of a thread: a convenience for programs that want one. Nothing in this crate
//! looks at it.

use core::cell::RefCell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop};
use core::ops::Deref;
use std::sync::Arc;

use crate::ext::needs::form_of;
use crate::{Context, StreamRef};

type Shared = Arc<dyn AsRef<StreamRef> + Send + Sync>;

thread_local! {
    /// The scopes that this thread has entered and not left, in the order of entering. The last one
    /// of a context tells its current stream.
    ///
    /// A scope that was forgotten stays, and its stream is not destroyed: no driver call may come
    /// out of a thread-local's destructor, so there is none. Targets whose thread-locals the
    /// standard library makes itself (`x86_64-pc-windows-gnu`) may free this list before another
    /// thread-local drops its scope: that stream is not destroyed either.
    static ENTERED: RefCell<ManuallyDrop<Vec<Entered>>> = const {
        RefCell::new(ManuallyDrop::new(Vec::new())) };
}

struct Entered {
    scope: u64,
    context: Context,
    stream: Shared,
}

/// A stream made current on this thread; dropping the scope restores what was before.
///
/// Each thread has a current stream of its own in each context, and starts with the [default
/// stream](StreamRef::default_stream). With the primary contexts that CUDA's libraries share, a
/// context means a device. Scopes nest, also of one stream in itself; each takes back what it did
/// and nothing else, in whatever order they are dropped, and when a panic unwinds. A scope keeps
/// its stream alive, and stays on its thread.
///
/// It says only what [`current_stream`] answers, and makes no driver call. Other code that is
/// called within the scope and works in the current context wants [`Context::make_current`] too.
///
/// A stream that shall be current for longer than a block is a scope in a variable: assigning
/// another scope to it exchanges the streams.
///
/// ```
/// use cuda_events::{Context, Device, Stream, StreamOptions};
/// use cuda_events::ext::{StreamScope, current_stream};
/// use std::sync::Arc;
///
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
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
pub struct StreamScope {
    scope: u64,
    _not_send: PhantomData<*mut ()>,
}

impl StreamScope {
    /// Makes the stream the current one of its context on this thread: an `Arc` of a
    /// [`Stream`](crate::Stream), of a [`StreamRef`] or of a
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

impl fmt::Debug for StreamScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamScope").finish_non_exhaustive()
    }
}

/// The calling thread's current stream of the context: that of the last [`StreamScope`] which the
/// thread has entered with a stream of this context and has not left, else the context's [default
/// stream](StreamRef::default_stream).
///
/// It makes no driver call.
///
/// ```
/// use cuda_events::{Context, EventFlags};
/// use cuda_events::ext::current_stream;
/// # use cuda_events::Device;
///
/// /// Does its work where the caller wants it, without being told at each call.
/// fn library_function(context: &Context) -> cuda_events::Result<()> {
///     let stream = current_stream(context);
///     // ... work ...
///     stream.record_event(EventFlags::empty())?.synchronize()
/// }
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let context = Context::primary(Device::new(soft.driver(), 0)?)?;
/// # library_function(&context)?;
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

/// What [`current_stream`] gives: it dereferences to the stream and keeps it alive. It does not
/// follow later scopes.
///
/// ```
/// use cuda_events::ext::{StreamScope, current_stream};
/// # use cuda_events::{Context, Device, Stream, StreamOptions};
/// # use std::sync::Arc;
/// # let soft = cuda_soft_driver::SoftDriver::new();
/// # let driver = soft.driver();
/// # let context = Context::primary(Device::new(driver, 0)?)?;
/// # let stream = Arc::new(Stream::new(&context, StreamOptions::new())?);
///
/// let scope = StreamScope::enter(stream.clone());
/// let current = current_stream(&context);
/// drop(scope);
/// assert_eq!(*current, **stream);
/// current.synchronize()?; // also with the scope left
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

form_of!(StreamRef: CurrentStream);

static_assertions::assert_impl_all!(CurrentStream: Send, Sync);
static_assertions::assert_not_impl_any!(StreamScope: Send, Sync);
