//! What a stream is created with and what it keeps beside its work: priority, synchronization
//! policy, memory domains.

use crate::common::{self};

use std::sync::{Arc, Mutex};

use common::{Gpu, Other, not_run};
use cuda_events::attributes::{MemorySyncDomain, MemorySyncDomainMap, SynchronizationPolicy};
use cuda_events::sys::{CU_STREAM_LEGACY, CUdevice_attribute, CUresult, CUstreamAttrID, Function};
use cuda_events::{Context, Device, Error, Stream, StreamOptions, StreamRef, Version};

/// Attributes beyond the synchronization policy came with CUDA 12.0.
fn has_newer_attributes(gpu: &Gpu) -> bool {
    gpu.driver.version() >= Version::new(12, 0)
}

/// `CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT`, which every driver with domains tells.
fn domains(gpu: &Gpu) -> i32 {
    gpu.device.attribute(CUdevice_attribute(126)).expect("the number of domains")
}

#[test]
fn a_clamped_priority_is_the_nearest_one() {
    let gpu = Gpu::new();
    let range = gpu.context.stream_priority_range().expect("a range");
    let effective = |priority| {
        let options = StreamOptions::new().priority_clamped(priority);
        Stream::new(&gpu.context, options).and_then(|stream| stream.priority())
    };
    for inside in range.greatest..=range.least {
        assert_eq!(effective(inside), Ok(inside));
    }
    for above in [range.least + 1, i32::MAX] {
        assert_eq!(effective(above), Ok(range.least));
    }
    for below in [range.greatest - 1, i32::MIN] {
        assert_eq!(effective(below), Ok(range.greatest));
    }
}

#[test]
fn the_last_word_on_the_priority_counts() {
    let gpu = Gpu::new();
    let range = gpu.context.stream_priority_range().expect("a range");
    let outside = range.greatest - 1;
    let strict = StreamOptions::new().priority_clamped(outside).priority(outside);
    assert!(matches!(Stream::new(&gpu.context, strict), Err(Error::PriorityOutOfRange { .. })));
    let clamped = StreamOptions::new().priority(outside).priority_clamped(outside);
    assert_eq!(
        Stream::new(&gpu.context, clamped).and_then(|stream| stream.priority()),
        Ok(range.greatest)
    );
}

#[test]
fn each_synchronization_policy_is_read_back() {
    let gpu = Gpu::new();
    let (stream, other) = (gpu.stream(), gpu.stream());
    let before = other.synchronization_policy().expect("a policy");
    let policies = [
        SynchronizationPolicy::SPIN,
        SynchronizationPolicy::YIELD,
        SynchronizationPolicy::BLOCKING_SYNC,
        SynchronizationPolicy::AUTO,
    ];
    for policy in policies {
        stream.set_synchronization_policy(policy).expect("a policy that the driver knows");
        assert_eq!(stream.synchronization_policy(), Ok(policy));
        assert_eq!(stream.synchronize(), Ok(()));
    }
    assert_eq!(other.synchronization_policy(), Ok(before), "it is a stream's own");
}

#[test]
fn a_stream_can_be_given_another_priority() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    let range = gpu.context.stream_priority_range().expect("a range");
    if !has_newer_attributes(&gpu) {
        let error = stream.set_priority(range.least).expect_err("an error");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        return;
    }
    for priority in range.greatest..=range.least {
        assert_eq!(stream.set_priority(priority), Ok(()));
        let value =
            stream.attribute(CUstreamAttrID::CU_LAUNCH_ATTRIBUTE_PRIORITY).expect("the attribute");
        // SAFETY: this attribute's value is a priority.
        assert_eq!(unsafe { value.priority }, priority);
        assert_eq!(stream.priority(), Ok(priority));
    }
    for priority in [range.least + 1, range.greatest - 1] {
        let expected =
            Error::PriorityOutOfRange { priority, least: range.least, greatest: range.greatest };
        assert_eq!(stream.set_priority(priority), Err(expected));
    }
    assert_eq!(stream.priority(), Ok(range.least), "what was refused has changed nothing");
}

#[test]
fn a_stream_can_be_moved_to_another_memory_domain() {
    let gpu = Gpu::new();
    let stream = gpu.stream();
    if !has_newer_attributes(&gpu) {
        let error = stream.memory_sync_domain().expect_err("an error");
        assert_eq!(error.code(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
        return;
    }
    if domains(&gpu) < 2 {
        return not_run("this device has one memory domain");
    }
    assert_eq!(stream.memory_sync_domain(), Ok(MemorySyncDomain::DEFAULT));
    assert_eq!(stream.set_memory_sync_domain(MemorySyncDomain::REMOTE), Ok(()));
    assert_eq!(stream.memory_sync_domain(), Ok(MemorySyncDomain::REMOTE));
    let map = MemorySyncDomainMap { default: 1, remote: 0 };
    assert_eq!(stream.set_memory_sync_domain_map(map), Ok(()));
    assert_eq!(stream.memory_sync_domain_map(), Ok(map));
    assert_eq!(
        stream.memory_sync_domain(),
        Ok(MemorySyncDomain::REMOTE),
        "the map is an attribute of its own"
    );
}

/// Each table of a library has its own meaning of NULL: a stream is named by what it means in the
/// table that is called.
#[test]
fn a_default_stream_is_copied_from_by_its_meaning() {
    let gpu = Gpu::new();
    let sources = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&sources);
    let driver = gpu.driver.observe(move |call| {
        if call.function == Function::cuStreamCopyAttributes {
            note.lock().expect("no panic").push(call.arguments[1]);
        }
    });
    let context = Device::new(driver.expect("there is room"), 0)
        .and_then(Context::primary)
        .expect("the context");
    let stream = Stream::new(&context, StreamOptions::new()).expect("a stream");
    let argument = |source: &StreamRef| {
        // A driver may refuse a default stream here; what it was asked is what matters.
        let _ = stream.copy_attributes_from(source);
        sources.lock().expect("no panic").pop().expect("the call")
    };
    let legacy = CU_STREAM_LEGACY.addr() as u64;
    assert_eq!(
        argument(&StreamRef::default_stream(&context)),
        0,
        "of the same table it is named as it is"
    );
    assert_eq!(
        argument(&StreamRef::default_stream(&gpu.context)),
        legacy,
        "of another table by its meaning"
    );
}

#[test]
fn attributes_are_not_copied_between_contexts() {
    let gpu = Gpu::new();
    let other = Other::new(&gpu);
    {
        let theirs = Stream::new(&other, StreamOptions::new()).expect("a stream");
        let streams =
            [&*theirs, &StreamRef::legacy_default(&other), &StreamRef::default_stream(&other)];
        let stream = gpu.stream();
        let defaults =
            [StreamRef::legacy_default(&gpu.context), StreamRef::default_stream(&gpu.context)];
        // Both sides of two default streams would mean one stream of whichever context is current.
        for ours in [&*stream, &defaults[0], &defaults[1]] {
            for theirs in streams {
                for copied in [ours.copy_attributes_from(theirs), theirs.copy_attributes_from(ours)]
                {
                    let function = Function::cuStreamCopyAttributes;
                    assert_eq!(
                        copied,
                        Err(Error::ContextMismatch {
                            function,
                            code: None,
                            device: 0,
                            other_device: 0
                        })
                    );
                }
            }
        }
    }
}
