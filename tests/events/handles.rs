//! Events and streams by handle: every form of one handle compares, hashes, prints and looks up as
//! the others.

use crate::common;

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use common::Gpu;
use cuda_events::ext::{StreamScope, current_stream};
use cuda_events::{Event, EventFlags, EventRef, ForeignStream, Stream, StreamRef};

/// Two forms of one handle, and a form of another handle.
fn are_forms<H, F>(handle: &H, form: F, other: F)
where
    H: Hash + Eq + Debug + PartialEq<F>,
    F: Hash + Eq + Debug + PartialEq<H> + Borrow<H>,
{
    assert_eq!(form, *handle);
    assert_eq!(*handle, form);
    assert_eq!(form.borrow(), handle);
    assert_ne!(other, *handle);
    assert_ne!(*handle, other);
    assert_ne!(form, other);
    let hasher = RandomState::new();
    assert_eq!(hasher.hash_one(&form), hasher.hash_one(handle));
    assert_ne!(hasher.hash_one(&other), hasher.hash_one(handle));
    // Each names its own type, and then says the same.
    let fields = |shown: &dyn Debug| {
        let text = format!("{shown:?}");
        text.split_once(' ').expect("a name and fields").1.to_owned()
    };
    assert_eq!(fields(&form), fields(handle));
    let mut map = HashMap::from([(form, 1), (other, 2)]);
    assert_eq!(map.get(handle), Some(&1));
    assert_eq!(map.remove(handle), Some(1));
    assert_eq!(map.get(handle), None);
}

#[test]
#[allow(clippy::mutable_key_type, reason = "what changes in a context is not compared or hashed")]
fn events_and_references_are_equal_keys() {
    let gpu = Gpu::new();
    let event = || Event::new(&gpu.context, EventFlags::TIMING).expect("an event");
    let (one, other) = (event(), event());
    // SAFETY: it is looked at only as long as the event lives.
    let named = unsafe { EventRef::from_raw(&gpu.context, one.as_raw(), EventFlags::TIMING) };
    let mut known = HashSet::from([named]);
    assert!(known.contains(&*one));
    assert!(!known.contains(&*other));
    let named = known.take(&*one).expect("it is there");
    assert!(format!("{named:?}").starts_with("EventRef { raw: "), "{named:?}");
    assert!(format!("{one:?}").starts_with("Event { raw: "), "{one:?}");
    are_forms(&named, one, other);
}

#[test]
fn streams_and_references_are_equal_keys() {
    let gpu = Gpu::new();
    let (one, other) = (gpu.stream(), gpu.stream());
    assert!(format!("{one:?}").starts_with("Stream { raw: "), "{one:?}");
    // SAFETY: it is looked at only as long as the stream lives.
    let named = unsafe { StreamRef::from_raw(&gpu.context, one.as_raw()) };
    assert!(format!("{named:?}").starts_with("StreamRef { raw: "), "{named:?}");
    let foreign = |stream: &Stream| {
        // SAFETY: as above.
        unsafe { ForeignStream::new(&gpu.context, stream.as_raw(), ()) }.expect("a stream")
    };
    are_forms(&named, foreign(&one), foreign(&other));
    let current = |stream: &Stream| {
        // SAFETY: as above.
        let stream = unsafe { StreamRef::from_raw(&gpu.context, stream.as_raw()) };
        let _scope = StreamScope::enter(Arc::new(stream));
        current_stream(&gpu.context)
    };
    are_forms(&named, current(&one), current(&other));
    are_forms(&named, one, other);
}
