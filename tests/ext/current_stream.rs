//! The current stream of a thread: scopes nest, are a thread's own, end with panics, and drive
//! nothing by themselves.

use crate::common;

use std::sync::Arc;

use common::allocations::{Counted, bytes};
use common::counting::{calls, counted_context};
use common::{Gpu, Other, current};
use cuda_events::ext::{StreamScope, current_stream};
use cuda_events::sys::Function;
use cuda_events::{Context, EventFlags, ForeignStream, Progress, Stream, StreamOptions, StreamRef};

fn shared(gpu: &Gpu) -> Arc<Stream> {
    Arc::new(gpu.stream())
}

#[track_caller]
fn is_default(context: &Context) {
    assert_eq!(*current_stream(context), StreamRef::default_stream(context));
}

#[track_caller]
fn is(stream: &StreamRef) {
    assert_eq!(*current_stream(stream.context()), *stream);
}

#[test]
fn scopes_nest_also_of_one_stream_in_itself() {
    let gpu = Gpu::new();
    let (first, second) = (shared(&gpu), shared(&gpu));
    let outer = StreamScope::enter(first.clone());
    {
        let _inner = StreamScope::enter(second.clone());
        is(&second);
        {
            let _again = StreamScope::enter(first.clone());
            is(&first);
            let _and_again = StreamScope::enter(first.clone());
            is(&first);
        }
        is(&second);
    }
    is(&first);
    drop(outer);
    is_default(&gpu.context);
}

#[test]
fn scopes_end_in_any_order() {
    let gpu = Gpu::new();
    let [first, second, third] = [0, 1, 2].map(|_| shared(&gpu));
    let outer = StreamScope::enter(first.clone());
    let middle = StreamScope::enter(second.clone());
    drop(outer);
    is(&second);
    let inner = StreamScope::enter(third.clone());
    drop(middle);
    is(&third);
    drop(inner);
    is_default(&gpu.context);
    assert_eq!([first, second, third].map(|stream| Arc::strong_count(&stream)), [1; 3]);
}

#[test]
fn a_new_thread_starts_at_the_default() {
    let gpu = Gpu::new();
    let (here, there) = (shared(&gpu), shared(&gpu));
    let _scope = StreamScope::enter(here.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            is_default(&gpu.context);
            let _scope = StreamScope::enter(there.clone());
            is(&there);
        });
    });
    is(&here);
    // One stream in two threads' scopes.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _scope = StreamScope::enter(here.clone());
            is(&here);
        });
    });
    is(&here);
}

#[test]
fn each_context_and_so_each_device_has_its_own() {
    let gpu = Gpu::new();
    let other = Other::new(&gpu);
    {
        let ours = shared(&gpu);
        let theirs = Arc::new(Stream::new(&other, StreamOptions::new()).expect("a stream"));
        let _ours = StreamScope::enter(ours.clone());
        is_default(&other);
        {
            let _theirs = StreamScope::enter(theirs.clone());
            is(&theirs);
            is(&ours);
            for context in [&gpu.context, &*other] {
                // An event can be recorded in a stream of its own context only.
                let event =
                    current_stream(context).record_event(EventFlags::empty()).expect("an event");
                assert_eq!(event.synchronize(), Ok(()));
            }
        }
        is_default(&other);
        is(&ours);
    }
}

#[test]
fn a_scope_keeps_its_stream() {
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let stream = || Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));

    let scope = StreamScope::enter(stream());
    assert_eq!(current_stream(&context).query(), Ok(Progress::Done));
    let ((), made) = calls(|| drop(scope));
    assert_eq!(made, [Function::cuStreamDestroy_v2], "the scope was the last owner");

    let scope = StreamScope::enter(stream());
    let kept = current_stream(&context);
    let ((), made) = calls(|| drop(scope));
    assert_eq!(made, []);
    assert_eq!(kept.query(), Ok(Progress::Done));
    is_default(&context);
    let ((), made) = calls(|| drop(kept));
    assert_eq!(made, [Function::cuStreamDestroy_v2]);
}

#[test]
fn it_makes_no_call_and_no_context_current() {
    let gpu = Gpu::new();
    let context = counted_context(gpu.driver);
    let stream = Arc::new(Stream::new(&context, StreamOptions::new()).expect("a stream"));
    let ((), made) = calls(|| {
        is_default(&context);
        let _scope = StreamScope::enter(stream.clone());
        is(&stream);
    });
    assert_eq!(made, []);
    let _scope = StreamScope::enter(stream);
    assert!(current(gpu.driver).is_null());
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

#[test]
fn scopes_that_were_left_take_no_memory() {
    let gpu = Gpu::new();
    let stream = shared(&gpu);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let before = bytes();
            let scopes = [(); 20].map(|()| StreamScope::enter(stream.clone()));
            assert!(bytes() > before, "it is counted");
            is(&stream);
            drop(scopes);
            assert_eq!(bytes(), before);
        });
    });
    assert_eq!(Arc::strong_count(&stream), 1);
}

#[test]
fn scopes_around_a_forgotten_one_end_as_ever() {
    let gpu = Gpu::new();
    let [outer, forgotten, inner] = [0, 1, 2].map(|_| shared(&gpu));
    let outer_scope = StreamScope::enter(outer.clone());
    std::mem::forget(StreamScope::enter(forgotten.clone()));
    let inner_scope = StreamScope::enter(inner.clone());
    is(&inner);
    drop(outer_scope);
    is(&inner);
    drop(inner_scope);
    is(&forgotten);
    let again = StreamScope::enter(inner.clone());
    is(&inner);
    drop(again);
    is(&forgotten);
    assert_eq!([&outer, &forgotten, &inner].map(Arc::strong_count), [1, 2, 1]);
    // SAFETY: this is the reference of the forgotten scope, which this thread does not look at any
    // more.
    unsafe { Arc::decrement_strong_count(Arc::as_ptr(&forgotten)) };
}

#[test]
fn an_owner_may_enter_scopes_in_its_drop() {
    struct Owner(Arc<Stream>);
    impl Drop for Owner {
        fn drop(&mut self) {
            let _scope = StreamScope::enter(self.0.clone());
            is(&self.0);
        }
    }
    let gpu = Gpu::new();
    let stream = shared(&gpu);
    // SAFETY: the owner keeps the stream.
    let foreign =
        unsafe { ForeignStream::new(&gpu.context, stream.as_raw(), Owner(stream.clone())) };
    drop(StreamScope::enter(Arc::new(foreign.expect("a stream"))));
    is_default(&gpu.context);
    assert_eq!(Arc::strong_count(&stream), 1);
}
