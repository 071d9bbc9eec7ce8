//! Green contexts: splitting multiprocessors, the relation of a green context to its primary
//! context, and the end of a green context.
//!
//! The results of a real driver depend on the number of its multiprocessors. The rules have the
//! numbers of an H100 or H200 with 132.

use std::io::Write as _;
use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_test_harness::TestDriver;

use crate::raw::{
    BLOCKING, INTERPROCESS, LEGACY, NO_TIMING, NON_BLOCKING, NULL_STREAM, PER_THREAD, Raw, Rig,
    Sent, TIMING, code_text, must,
};
use crate::rules;

const SM: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
const SUCCESS: CUresult = CUresult::CUDA_SUCCESS;

/// A green context and the context that represents it.
#[derive(Clone, Copy)]
pub struct Green {
    green: CUgreenCtx,
    pub context: CUcontext,
}

fn sm(resource: &CUdevResource) -> CUdevSmResource {
    // SAFETY: the bytes are initialised for any output of the driver, and every number is a count.
    unsafe { resource.u.sm }
}

fn all(rig: &Rig) -> CUdevResource {
    let mut resource = CUdevResource::default();
    must!(rig.cuDeviceGetDevResource(rig.device, &mut resource, SM));
    resource
}

/// Splits a resource, and returns the code, the parts and the remainder.
fn split(
    rig: &Rig,
    input: &CUdevResource,
    groups: u32,
    min: u32,
) -> (CUresult, Vec<CUdevResource>, CUdevResource) {
    let (mut made, mut rest) = (groups, CUdevResource::default());
    let mut parts = vec![CUdevResource::default(); groups.max(1) as usize];
    let code =
        rig.cuDevSmResourceSplitByCount(parts.as_mut_ptr(), &mut made, input, &mut rest, 0, min);
    parts.truncate(if code == SUCCESS { made as usize } else { 0 });
    (code, parts, rest)
}

/// So many parts of 16 multiprocessors, of one split.
pub fn parts(rig: &Rig, count: u32) -> Vec<CUdevResource> {
    let (code, parts, _) = split(rig, &all(rig), count, 16);
    must("cuDevSmResourceSplitByCount", code);
    assert_eq!(parts.len(), count as usize, "the device has as many parts");
    parts
}

pub fn describe(rig: &Rig, resources: &mut [CUdevResource]) -> (CUresult, CUdevResourceDesc) {
    let mut description = null_mut();
    let code = rig.cuDevResourceGenerateDesc(
        &mut description,
        resources.as_mut_ptr(),
        resources.len() as u32,
    );
    (code, description)
}

/// Prints the next step, because it may end the process.
fn step(what: &str) {
    if TestDriver::chosen() == TestDriver::Native {
        // This bypasses the harness, which would show nothing if the process ends.
        writeln!(std::io::stderr(), "describing {what}").expect("stderr is open");
    }
}

/// Describes resources, and prints the step before.
fn describing(rig: &Rig, what: &str, resources: &[CUdevResource]) -> CUresult {
    step(what);
    describe(rig, &mut resources.to_vec()).0
}

fn create(rig: &Rig, resources: &mut [CUdevResource]) -> Green {
    let (code, description) = describe(rig, resources);
    must("cuDevResourceGenerateDesc", code);
    let (mut green, mut context) = (null_mut(), null_mut());
    must!(rig.cuGreenCtxCreate(&mut green, description, rig.device, CU_GREEN_CTX_DEFAULT_STREAM));
    must!(rig.cuCtxFromGreenCtx(&mut context, green));
    Green { green, context }
}

/// A green context with 16 multiprocessors.
pub fn one(rig: &Rig) -> Green {
    create(rig, &mut parts(rig, 1))
}

pub fn destroy(rig: &Rig, green: Green) {
    must!(rig.cuGreenCtxDestroy(green.green));
}

pub fn stream_in(rig: &Rig, green: Green) -> CUstream {
    rig.within(green.context, || rig.stream(NON_BLOCKING))
}

fn event_in(rig: &Rig, green: Green, flags: u32) -> CUevent {
    rig.within(green.context, || rig.event(flags))
}

/// Destroys streams and events; this comes before their green context is destroyed.
fn clear(rig: &Rig, streams: &[CUstream], events: &[CUevent]) {
    for event in events {
        must!(rig.cuEventDestroy_v2(*event));
    }
    for stream in streams {
        must!(rig.cuStreamDestroy_v2(*stream));
    }
}

/// The name of a context's handle.
fn name(rig: &Rig, green: Green, context: CUcontext) -> &'static str {
    match context {
        context if context.is_null() => "NULL",
        context if context == rig.context => "the primary",
        context if context == green.context => "the green",
        _ => "another",
    }
}

rules! {
    /// The resource of a device has the number of multiprocessors, the smallest size of a part, and
    /// the number of multiprocessors that belong together. Its pointer to a next resource is NULL.
    [since(13, 0)]
    fn a_device(rig, saw) = "132 of 8 and 8; next NULL" {
        let all = all(rig);
        let sizes = sm(&all);
        let (count, least, together) =
            (sizes.smCount, sizes.minSmPartitionSize, sizes.smCoscheduledAlignment);
        saw.text(format_args!("{count} of {least} and {together}"));
        saw.holds("next NULL", all.nextResource.is_null());
    }

    /// The primary context has the multiprocessors of the device. For an unknown type of resource,
    /// the calls return `CUDA_ERROR_INVALID_RESOURCE_TYPE`.
    [since(12, 4)]
    fn a_primary_context(rig, saw) =
        "the same; CUDA_ERROR_INVALID_RESOURCE_TYPE (914) from type 0 of a device, type 77 of a \
         device, type 77 of a context"
    {
        let mut resource = CUdevResource::default();
        must!(rig.cuCtxGetDevResource(rig.context, &mut resource, SM));
        saw.holds("the same", sm(&resource).smCount == sm(&all(rig)).smCount);
        let (none, odd) = (CUdevResourceType(0), CUdevResourceType(77));
        saw.codes(&[
            ("type 0 of a device", rig.cuDeviceGetDevResource(rig.device, &mut resource, none)),
            ("type 77 of a device", rig.cuDeviceGetDevResource(rig.device, &mut resource, odd)),
            ("type 77 of a context", rig.cuCtxGetDevResource(rig.context, &mut resource, odd)),
        ]);
    }

    /// A split by count rounds the size up to whole groups of eight multiprocessors, but not above
    /// the total. It makes as many parts as there is room for, and one fewer with parts of eight.
    /// The results read: groups x requested minimum: parts x size + remainder.
    [since(12, 4)]
    fn splits(rig, saw) =
        "1x0: 1x8+124; 1x1: 1x8+124; 1x10: 1x16+116; 2x16: 2x16+100; 3x48: 2x48+36; 1x128: \
         1x128+4; 132x1: 15x8+12; 132x16: 8x16+4; 132x20: 5x24+12; 1x132: 1x132+0"
    {
        let cases = [
            (1, 0),
            (1, 1),
            (1, 10),
            (2, 16),
            (3, 48),
            (1, 128),
            (132, 1),
            (132, 16),
            (132, 20),
            (1, 132),
        ];
        for (groups, min) in cases {
            match split(rig, &all(rig), groups, min) {
                (SUCCESS, parts, rest) => {
                    let sizes: Vec<u32> = parts.iter().map(|part| sm(part).smCount).collect();
                    assert!(sizes.windows(2).all(|pair| pair[0] == pair[1]), "{sizes:?}");
                    let size = sizes.first().copied().unwrap_or_default();
                    let rest = if rest.type_ == SM { sm(&rest).smCount } else { 0 };
                    saw.text(format_args!("{groups}x{min}: {}x{size}+{rest}", sizes.len()));
                }
                (code, ..) => saw.code(&format!("{groups}x{min}:"), code),
            }
        }
    }

    /// A split returns an error for 0 groups, for NULL as the number of groups, for more
    /// multiprocessors than the resource has, for a part of another split, and for a resource of
    /// zeros. It ignores an unknown flag.
    [since(12, 4)]
    fn splits_that_are_refused(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from no groups, no place for the number; \
         CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION (915) from more than there is, a part; success \
         from flag 4; CUDA_ERROR_INVALID_RESOURCE_TYPE (914) from a resource of zeros"
    {
        let all = all(rig);
        let (mut made, mut part) = (1, CUdevResource::default());
        let flag = rig.cuDevSmResourceSplitByCount(&mut part, &mut made, &all, null_mut(), 4, 8);
        let nowhere =
            rig.cuDevSmResourceSplitByCount(&mut part, null_mut(), &all, null_mut(), 0, 8);
        saw.codes(&[
            ("no groups", split(rig, &all, 0, 8).0),
            ("more than there is", split(rig, &all, 1, 133).0),
            ("flag 4", flag),
            ("no place for the number", nowhere),
            ("a resource of zeros", split(rig, &CUdevResource::default(), 1, 8).0),
            ("a part", split(rig, &parts(rig, 1)[0], 1, 8).0),
        ]);
    }

    /// If the place for the parts is NULL, a split returns the number of parts that it would make.
    /// The place for the remainder may be NULL.
    [since(12, 4)]
    fn a_split_without_places(rig, saw) = "success, 15; without the remainder success, 1" {
        let (all, mut made, mut part) = (all(rig), 0, CUdevResource::default());
        let code = rig.cuDevSmResourceSplitByCount(null_mut(), &mut made, &all, null_mut(), 0, 8);
        saw.text(format_args!("{}, {made}", code_text(code)));
        made = 1;
        let code = rig.cuDevSmResourceSplitByCount(&mut part, &mut made, &all, null_mut(), 0, 8);
        saw.text(format_args!("without the remainder {}, {made}", code_text(code)));
    }

    /// The whole resource of a device, one part, and several parts of one split can be described.
    [since(12, 4)]
    fn descriptions(rig, saw) = "success from the device, a part, two parts" {
        let two = parts(rig, 2);
        saw.codes(&[
            ("the device", describing(rig, "the device", &[all(rig)])),
            ("a part", describing(rig, "a part", &two[..1])),
            ("two parts", describing(rig, "two parts", &two)),
        ]);
    }

    /// A part and the remainder of the same split can be described together, as NVIDIA documents
    /// it.
    [alone, since(12, 4)]
    fn describing_a_part_and_the_remainder(rig, saw) = "success" {
        let (code, parts, rest) = split(rig, &all(rig), 1, 16);
        must("cuDevSmResourceSplitByCount", code);
        saw.text(code_text(describing(rig, "a part and the remainder", &[parts[0], rest])));
    }

    /// The description of a resource of zeros returns `CUDA_ERROR_INVALID_RESOURCE_TYPE`.
    [alone, since(12, 4)]
    fn describing_zeros(rig, saw) = "CUDA_ERROR_INVALID_RESOURCE_TYPE (914)" {
        saw.text(code_text(describing(rig, "zeros", &[CUdevResource::default()])));
    }

    /// The description of no resource returns `CUDA_ERROR_INVALID_VALUE` if the address of the
    /// resources is NULL. With another address, the driver ends the process.
    [alone, settings("misuse=error"), since(12, 4)]
    fn describing_nothing_at_null(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        let mut description = null_mut();
        step("no resource, with NULL");
        saw.text(code_text(rig.cuDevResourceGenerateDesc(&mut description, null_mut(), 0)));
    }

    /// Parts of two splits can be described together, although NVIDIA documents an error.
    [alone, since(12, 4)]
    fn describing_parts_of_two_splits(rig, saw) = "success" {
        let (one, other) = (parts(rig, 2), parts(rig, 2));
        saw.text(code_text(describing(rig, "parts of two splits", &[one[0], other[1]])));
    }

    /// A description can have the same part twice.
    [alone, since(12, 4)]
    fn describing_a_part_twice(rig, saw) = "success" {
        let part = parts(rig, 1)[0];
        saw.text(code_text(describing(rig, "a part twice", &[part, part])));
    }

    /// Before CUDA 13.3, creating a green context needs the flag for a default stream. It does not
    /// need a description.
    [since(12, 4), before(13, 3)]
    fn flags_of_creation(rig, saw) =
        "success from flag 1, no description; CUDA_ERROR_INVALID_VALUE (1) from no flag, flag 2"
    {
        let (_, description) = describe(rig, &mut parts(rig, 1));
        let mut green = null_mut();
        let mut create = |description, flags| {
            let code = rig.cuGreenCtxCreate(&mut green, description, rig.device, flags);
            if code == SUCCESS {
                must!(rig.cuGreenCtxDestroy(green));
            }
            code
        };
        saw.codes(&[
            ("flag 1", create(description, 1)),
            ("no flag", create(description, 0)),
            ("flag 2", create(description, 2)),
            ("no description", create(null_mut(), 1)),
        ]);
    }

    /// A resource of one device cannot make a green context of another device, and resources of two
    /// devices cannot be described together. A real driver may end the process when it describes
    /// both.
    [alone, two_devices, settings("devices=2,misuse=error"), since(12, 4)]
    fn resources_of_two_devices(rig, saw) =
        "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION (915) from a description of both; \
         CUDA_ERROR_INVALID_DEVICE (101) from creating it on the other"
    {
        let (mut second, mut green) = (CUdevResource::default(), null_mut());
        must!(rig.cuDeviceGetDevResource(1, &mut second, SM));
        let (code, description) = describe(rig, &mut [second]);
        must("cuDevResourceGenerateDesc", code);
        saw.codes(&[
            ("a description of both", describe(rig, &mut [all(rig), second]).0),
            (
                "creating it on the other",
                rig.cuGreenCtxCreate(&mut green, description, rig.device, 1),
            ),
        ]);
    }

    /// `cuCtxFromGreenCtx` returns the context that represents a green context. It is the same
    /// context each time, it is not the primary context, and the call does not make it current.
    [since(12, 4)]
    fn what_stands_for_it(rig, saw) = "the green; the same again; current: the primary; device \
        success, the same" {
        let green = one(rig);
        let mut again = null_mut();
        must!(rig.cuCtxFromGreenCtx(&mut again, green.green));
        saw.text(name(rig, green, green.context));
        saw.holds("the same again", again == green.context);
        saw.text(format_args!("current: {}", name(rig, green, rig.current())));
        let mut device = 77;
        let code = rig.within(green.context, || rig.cuCtxGetDevice(&mut device));
        saw.text(format_args!(
            "device {}, {}",
            code_text(code),
            if device == rig.device { "the same" } else { "another" }
        ));
        destroy(rig, green);
    }

    /// The resource of a green context can be queried with the handle of the green context and with
    /// that of its context. It can be split again.
    [since(12, 4)]
    fn its_resource(rig, saw) = "16 by its context; 16 by itself; split: 1x8+8" {
        let green = one(rig);
        let (mut one, mut other) = (CUdevResource::default(), CUdevResource::default());
        must!(rig.cuCtxGetDevResource(green.context, &mut one, SM));
        must!(rig.cuGreenCtxGetDevResource(green.green, &mut other, SM));
        saw.text(format_args!("{} by its context", sm(&one).smCount));
        saw.text(format_args!("{} by itself", sm(&other).smCount));
        match split(rig, &one, 1, 8) {
            (SUCCESS, parts, rest) => {
                let size = parts.first().map_or(0, |part| sm(part).smCount);
                saw.text(format_args!("split: {}x{size}+{}", parts.len(), sm(&rest).smCount));
            }
            (code, ..) => saw.code("split:", code),
        }
        destroy(rig, green);
    }

    /// A green context keeps the primary context active, without a retain by the program.
    [bare, since(12, 4)]
    fn it_keeps_the_primary_context(rig, saw) = "before: not active; with it: active; after: not \
        active" {
        must!(rig.cuInit(0));
        let state = |when: &str| {
            let (mut flags, mut active) = (0, 0);
            must!(rig.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
            saw.text(format_args!("{when}: {}", if active != 0 { "active" } else { "not active" }));
        };
        state("before");
        let green = one(rig);
        state("with it");
        destroy(rig, green);
        state("after");
    }

    /// For a stream of a green context, `cuStreamGetCtx` returns the context that represents the
    /// green context. `cuStreamGetCtx_v2` returns the primary context and the green context, and
    /// `cuStreamGetGreenCtx` returns the green context.
    [since(12, 5)]
    fn contexts_of_its_streams(rig, saw) =
        "cuStreamCreate: the green, the primary + the green one, the green one; \
         cuGreenCtxStreamCreate: the green, the primary + the green one, the green one; \
         of the primary: the primary, the primary + NULL, NULL"
    {
        let green = one(rig);
        let mut direct = null_mut();
        must!(rig.cuGreenCtxStreamCreate(&mut direct, green.green, NON_BLOCKING, 0));
        let streams = [stream_in(rig, green), direct, rig.stream(NON_BLOCKING)];
        let which = |handle: CUgreenCtx| match handle {
            handle if handle.is_null() => "NULL",
            handle if handle == green.green => "the green one",
            _ => "another",
        };
        for (how, stream) in
            ["cuStreamCreate", "cuGreenCtxStreamCreate", "of the primary"].into_iter().zip(streams)
        {
            let (mut first, mut second, mut third, mut fourth) =
                (null_mut(), null_mut(), null_mut(), null_mut());
            must!(rig.cuStreamGetCtx(stream, &mut first));
            must!(rig.cuStreamGetCtx_v2(stream, &mut second, &mut third));
            must!(rig.cuStreamGetGreenCtx(stream, &mut fourth));
            let (first, second) = (name(rig, green, first), name(rig, green, second));
            saw.text(format_args!(
                "{how}: {first}, {second} + {}, {}",
                which(third),
                which(fourth)
            ));
        }
        clear(rig, &streams, &[]);
        destroy(rig, green);
    }

    /// While a green context is current, NULL and `CU_STREAM_LEGACY` name its default stream. Calls
    /// with `CU_STREAM_PER_THREAD` return `CUDA_ERROR_INVALID_HANDLE`.
    [since(12, 5)]
    fn its_default_streams(rig, saw) =
        "NULL: success, green success true, v2 success true; 1: success, green success true, v2 \
         success true; 2: CUDA_ERROR_INVALID_HANDLE (400), green CUDA_ERROR_INVALID_HANDLE (400) \
         false, v2 CUDA_ERROR_INVALID_HANDLE (400) false"
    {
        let green = one(rig);
        rig.within(green.context, || {
            for (which, stream) in [("NULL", NULL_STREAM), ("1", LEGACY), ("2", PER_THREAD)] {
                let query = rig.cuStreamQuery(stream);
                let (mut by_green, mut context, mut by_v2) = (null_mut(), null_mut(), null_mut());
                let first = rig.cuStreamGetGreenCtx(stream, &mut by_green);
                let second = rig.cuStreamGetCtx_v2(stream, &mut context, &mut by_v2);
                saw.text(format_args!(
                    "{which}: {}, green {} {}, v2 {} {}",
                    code_text(query),
                    code_text(first),
                    by_green == green.green,
                    code_text(second),
                    by_v2 == green.green,
                ));
            }
        });
        destroy(rig, green);
    }

    /// While the primary context is current, its default stream belongs to no green context.
    [since(12, 4)]
    fn the_primary_contexts_default_stream(rig, saw) = "success, NULL" {
        let green = one(rig);
        let mut which = green.green;
        let code = rig.cuStreamGetGreenCtx(LEGACY, &mut which);
        saw.text(format_args!(
            "{}, {}",
            code_text(code),
            if which.is_null() { "NULL" } else { "a green context" }
        ));
        destroy(rig, green);
    }

    /// While a green context is current, `cuStreamCreate` creates blocking and non-blocking streams
    /// in it. `cuGreenCtxStreamCreate` creates only non-blocking streams.
    [since(12, 5)]
    fn flags_of_its_streams(rig, saw) =
        "success from cuStreamCreate non-blocking, cuStreamCreate blocking, its own call \
         non-blocking; CUDA_ERROR_INVALID_VALUE (1) from its own call blocking"
    {
        let green = one(rig);
        let make = |own: bool, flags: u32| {
            let mut stream = null_mut();
            let code = if own {
                rig.cuGreenCtxStreamCreate(&mut stream, green.green, flags, 0)
            } else {
                rig.within(green.context, || rig.cuStreamCreate(&mut stream, flags))
            };
            if code == SUCCESS {
                clear(rig, &[stream], &[]);
            }
            code
        };
        saw.codes(&[
            ("cuStreamCreate non-blocking", make(false, NON_BLOCKING)),
            ("cuStreamCreate blocking", make(false, BLOCKING)),
            ("its own call non-blocking", make(true, NON_BLOCKING)),
            ("its own call blocking", make(true, BLOCKING)),
        ]);
        destroy(rig, green);
    }

    /// An event of the primary context or of one of its green contexts can be recorded in the
    /// streams of all of them.
    [since(12, 4)]
    fn records_across(rig, saw) =
        "success from its own in its own, the primary's in the primary's, the primary's in its \
         own, its own in the primary's, another green one's in its own"
    {
        let two = parts(rig, 2);
        let (green, other) =
            (create(rig, &mut two[..1].to_vec()), create(rig, &mut two[1..].to_vec()));
        let (own, primary) = (stream_in(rig, green), rig.stream(NON_BLOCKING));
        let events = [
            event_in(rig, green, NO_TIMING),
            rig.event(NO_TIMING),
            event_in(rig, other, NO_TIMING),
        ];
        saw.codes(&[
            ("its own in its own", rig.cuEventRecord(events[0], own)),
            ("the primary's in the primary's", rig.cuEventRecord(events[1], primary)),
            ("the primary's in its own", rig.cuEventRecord(events[1], own)),
            ("its own in the primary's", rig.cuEventRecord(events[0], primary)),
            ("another green one's in its own", rig.cuEventRecord(events[2], own)),
        ]);
        clear(rig, &[own, primary], &events);
        destroy(rig, green);
        destroy(rig, other);
    }

    /// A stream of the primary context or of one of its green contexts can wait for the events of
    /// all of them.
    [since(12, 4)]
    fn waits_across(rig, saw) =
        "success from its own for the primary's, the primary's for its own; CUDA_ERROR_NOT_READY \
         (600) from its own after the wait, the primary's after the wait; then success, success"
    {
        let green = one(rig);
        let (own, primary) = (stream_in(rig, green), rig.stream(NON_BLOCKING));
        let (inside, outside) = (event_in(rig, green, NO_TIMING), rig.event(NO_TIMING));
        let (a, b) = (stream_in(rig, green), rig.stream(NON_BLOCKING));
        let latches = [rig.hold(own), rig.hold(primary)];
        rig.record(inside, own);
        rig.record(outside, primary);
        saw.codes(&[
            ("its own for the primary's", rig.cuStreamWaitEvent(a, outside, 0)),
            ("the primary's for its own", rig.cuStreamWaitEvent(b, inside, 0)),
            ("its own after the wait", rig.cuStreamQuery(a)),
            ("the primary's after the wait", rig.cuStreamQuery(b)),
        ]);
        latches.into_iter().for_each(crate::raw::Latch::release);
        saw.text(format_args!(
            "then {}, {}",
            code_text(rig.cuStreamSynchronize(a)),
            code_text(rig.cuStreamSynchronize(b))
        ));
        clear(rig, &[own, primary, a, b], &[inside, outside]);
        destroy(rig, green);
    }

    /// Two events of one green context have an elapsed time, and so have an event of a green
    /// context and an event of its primary context.
    [since(12, 4)]
    fn elapsed_across(rig, saw) =
        "success from within, its own to the primary's, the primary's to its own"
    {
        let green = one(rig);
        let (own, primary) = (stream_in(rig, green), rig.stream(NON_BLOCKING));
        let events =
            [event_in(rig, green, TIMING), event_in(rig, green, TIMING), rig.event(TIMING)];
        rig.record(events[0], own);
        rig.record(events[1], own);
        rig.record(events[2], primary);
        for stream in [own, primary] {
            rig.synchronize(stream);
        }
        saw.codes(&[
            ("within", rig.elapsed_code(events[0], events[1])),
            ("its own to the primary's", rig.elapsed_code(events[0], events[2])),
            ("the primary's to its own", rig.elapsed_code(events[2], events[0])),
        ]);
        clear(rig, &[own, primary], &events);
        destroy(rig, green);
    }

    /// Whole-context records accept events of the primary context and of its green contexts. This
    /// applies to records of the green context, of the context that represents it, and of the
    /// primary context. It also applies to whole-context waits.
    [since(12, 5)]
    fn records_of_contexts(rig, saw) =
        "success from the context with its own, the context with the primary's, the green one with \
         its own, the green one with the primary's, the primary with the primary's, the primary \
         with its own, the green one's wait, the context's wait"
    {
        let green = one(rig);
        let (own, primary) = (event_in(rig, green, NO_TIMING), rig.event(NO_TIMING));
        saw.codes(&[
            ("the context with its own", rig.cuCtxRecordEvent(green.context, own)),
            ("the context with the primary's", rig.cuCtxRecordEvent(green.context, primary)),
            ("the green one with its own", rig.cuGreenCtxRecordEvent(green.green, own)),
            ("the green one with the primary's", rig.cuGreenCtxRecordEvent(green.green, primary)),
            ("the primary with the primary's", rig.cuCtxRecordEvent(rig.context, primary)),
            ("the primary with its own", rig.cuCtxRecordEvent(rig.context, own)),
            ("the green one's wait", rig.cuGreenCtxWaitEvent(green.green, primary)),
            ("the context's wait", rig.cuCtxWaitEvent(green.context, primary)),
        ]);
        must!(rig.cuEventSynchronize(own));
        must!(rig.cuEventSynchronize(primary));
        clear(rig, &[], &[own, primary]);
        destroy(rig, green);
    }

    /// A whole-context record or wait of the primary context also covers its green contexts. A
    /// record or wait of a green context covers no other context.
    [since(12, 5)]
    fn whole_contexts(rig, saw) =
        "while it works: the primary's record pending, its own pending, another's done; while the \
         primary works: its own done; a wait of the primary holds its stream; a wait of its own \
         leaves the primary's stream"
    {
        let two = parts(rig, 2);
        let (green, other) =
            (create(rig, &mut two[..1].to_vec()), create(rig, &mut two[1..].to_vec()));
        let (own, primary) = (stream_in(rig, green), rig.stream(NON_BLOCKING));
        let events = [
            rig.event(NO_TIMING),
            event_in(rig, green, NO_TIMING),
            event_in(rig, other, NO_TIMING),
        ];
        let is = |code: CUresult| match code {
            SUCCESS => "done".to_owned(),
            CUresult::CUDA_ERROR_NOT_READY => "pending".to_owned(),
            code => code.to_string(),
        };
        let latch = rig.hold(own);
        for (context, event) in [rig.context, green.context, other.context].into_iter().zip(events)
        {
            must!(rig.cuCtxRecordEvent(context, event));
        }
        // A record without work to wait for may take the device a moment.
        let another = is(rig.settled(events[2]));
        let (whole, its) = (is(rig.cuEventQuery(events[0])), is(rig.cuEventQuery(events[1])));
        saw.text(format_args!(
            "while it works: the primary's record {whole}, its own {its}, \
            another's {another}"
        ));
        latch.release();
        rig.synchronize(own);

        let latch = rig.hold(primary);
        must!(rig.cuCtxRecordEvent(green.context, events[1]));
        saw.text(format_args!("while the primary works: its own {}", is(rig.settled(events[1]))));
        let held = rig.recorded(primary);
        let (a, b) = (event_in(rig, green, NO_TIMING), rig.event(NO_TIMING));
        must!(rig.cuCtxWaitEvent(rig.context, held));
        rig.record(a, own);
        saw.holds(
            "a wait of the primary holds its stream",
            rig.cuEventQuery(a) == CUresult::CUDA_ERROR_NOT_READY,
        );
        latch.release();
        rig.synchronize(primary);
        rig.synchronize(own);

        let latch = rig.hold(own);
        rig.record(a, own);
        must!(rig.cuCtxWaitEvent(green.context, a));
        rig.record(b, primary);
        saw.holds("a wait of its own leaves the primary's stream", rig.settled(b) == SUCCESS);
        latch.release();
        rig.synchronize(own);
        clear(rig, &[own, primary], &[events[0], events[1], events[2], held, a, b]);
        destroy(rig, green);
        destroy(rig, other);
    }

    /// The streams of a green context can capture, including its default stream. A stream of the
    /// primary context can join such a capture by a wait.
    [since(12, 4)]
    fn captures(rig, saw) =
        "its stream: success, success; NULL: success, success; joined by the primary's: success, \
            success"
    {
        let green = one(rig);
        let (own, primary) = (stream_in(rig, green), rig.stream(NON_BLOCKING));
        let (inside, outside) = (event_in(rig, green, NO_TIMING), rig.event(NO_TIMING));
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let capture = |stream: CUstream| {
            let mut graph = null_mut();
            let begun = rig.cuStreamBeginCapture_v2(stream, mode);
            let ended = rig.cuStreamEndCapture(stream, &mut graph);
            if !graph.is_null() {
                must!(rig.cuGraphDestroy(graph));
            }
            format!("{}, {}", code_text(begun), code_text(ended))
        };
        saw.text(format_args!("its stream: {}", capture(own)));
        saw.text(format_args!("NULL: {}", rig.within(green.context, || capture(NULL_STREAM))));
        must!(rig.cuStreamBeginCapture_v2(own, mode));
        must!(rig.cuEventRecord(inside, own));
        let joined = rig.cuStreamWaitEvent(primary, inside, 0);
        if joined == SUCCESS {
            must!(rig.cuEventRecord(outside, primary));
            must!(rig.cuStreamWaitEvent(own, outside, 0));
        }
        let mut graph = null_mut();
        let ended = rig.cuStreamEndCapture(own, &mut graph);
        saw.text(format_args!("joined by the primary's: {}, {}", code_text(joined), code_text(ended)));
        if !graph.is_null() {
            must!(rig.cuGraphDestroy(graph));
        }
        clear(rig, &[own, primary], &[inside, outside]);
        destroy(rig, green);
    }

    /// Interprocess events can be created, exported and recorded in a green context.
    [alone, since(12, 4)]
    fn interprocess_events(rig, saw) =
        "success from cuEventCreate, cuIpcGetEventHandle, cuEventRecord, cuStreamWaitEvent in it, \
            cuEventDestroy"
    {
        let green = one(rig);
        let (stream, mut event) = (stream_in(rig, green), null_mut());
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        let created = rig.within(green.context, || rig.cuEventCreate(&mut event, INTERPROCESS));
        saw.codes(&[
            ("cuEventCreate", created),
            (
                "cuIpcGetEventHandle",
                rig.within(green.context, || rig.cuIpcGetEventHandle(&mut handle, event)),
            ),
            ("cuEventRecord", rig.cuEventRecord(event, stream)),
            ("cuStreamWaitEvent in it", rig.cuStreamWaitEvent(stream, event, 0)),
            ("cuEventDestroy", rig.cuEventDestroy_v2(event)),
        ]);
        rig.synchronize(stream);
        clear(rig, &[stream], &[]);
        destroy(rig, green);
    }

    /// Destroying a green context while one of its streams has work succeeds, and ends its streams.
    /// In some runs the call waited for that work, and in others it did not.
    [alone, since(12, 4), before(13, 1)]
    fn destroying_with_work(rig, saw) = "success; the stream is destroyed with \
        CUDA_ERROR_CONTEXT_IS_DESTROYED (709)" {
        let green = one(rig);
        let stream = stream_in(rig, green);
        let latch = rig.hold(stream);
        let code = std::thread::scope(|scope| {
            // A driver that waits for the work needs it.
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                latch.release();
            });
            rig.cuGreenCtxDestroy(green.green)
        });
        saw.text(code_text(code));
        saw.text(format_args!(
            "the stream is destroyed with {}",
            code_text(rig.cuStreamDestroy_v2(stream))
        ));
    }

    /// Before CUDA 13.1, the streams of a green context end with it. Calls on them then return
    /// `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
    [alone, since(13, 0), before(13, 1)]
    fn streams_without_it(rig, saw) =
        "CUDA_ERROR_CONTEXT_IS_DESTROYED (709) from cuStreamQuery, cuStreamSynchronize, \
         cuStreamGetFlags, cuLaunchHostFunc, cuStreamWaitEvent, cuStreamDestroy"
    {
        let green = one(rig);
        let (stream, event) = (stream_in(rig, green), rig.event(NO_TIMING));
        destroy(rig, green);
        let mut flags = 0;
        saw.codes(&[
            ("cuStreamQuery", rig.cuStreamQuery(stream)),
            ("cuStreamSynchronize", rig.cuStreamSynchronize(stream)),
            ("cuStreamGetFlags", rig.cuStreamGetFlags(stream, &mut flags)),
            ("cuLaunchHostFunc", rig.host(stream, || {})),
            ("cuStreamWaitEvent", rig.cuStreamWaitEvent(stream, event, 0)),
            ("cuStreamDestroy", rig.cuStreamDestroy_v2(stream)),
        ]);
        clear(rig, &[], &[event]);
    }

    /// From CUDA 13.1 on, the streams of a destroyed green context are detached. They can only be
    /// destroyed.
    [alone, since(13, 1), settings("version=13.5")]
    fn detached_streams(rig, saw) =
        "CUDA_ERROR_STREAM_DETACHED (917) from cuStreamQuery, cuStreamSynchronize, \
         cuStreamWaitEvent; success from cuStreamDestroy"
    {
        let green = one(rig);
        let (stream, event) = (stream_in(rig, green), rig.event(NO_TIMING));
        destroy(rig, green);
        saw.codes(&[
            ("cuStreamQuery", rig.cuStreamQuery(stream)),
            ("cuStreamSynchronize", rig.cuStreamSynchronize(stream)),
            ("cuStreamWaitEvent", rig.cuStreamWaitEvent(stream, event, 0)),
            ("cuStreamDestroy", rig.cuStreamDestroy_v2(stream)),
        ]);
        clear(rig, &[], &[event]);
    }

    /// The events of a green context outlive it, and still work like events of the primary context.
    [alone, since(12, 4)]
    fn events_without_it(rig, saw) =
        "success from cuEventQuery, cuEventSynchronize, cuStreamWaitEvent, cuEventRecord, \
            cuEventDestroy"
    {
        let green = one(rig);
        let (stream, event, other) =
            (stream_in(rig, green), event_in(rig, green, NO_TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, stream);
        rig.synchronize(stream);
        clear(rig, &[stream], &[]);
        destroy(rig, green);
        saw.codes(&[
            ("cuEventQuery", rig.cuEventQuery(event)),
            ("cuEventSynchronize", rig.cuEventSynchronize(event)),
            ("cuStreamWaitEvent", rig.cuStreamWaitEvent(other, event, 0)),
            ("cuEventRecord", rig.cuEventRecord(event, other)),
            ("cuEventDestroy", rig.cuEventDestroy_v2(event)),
        ]);
        clear(rig, &[other], &[]);
    }

    /// A green context still works after the last release of the primary context.
    [alone, since(12, 4)]
    fn the_primary_contexts_release(rig, saw) = "success; then success from cuStreamCreate, \
        cuEventCreate, record, query" {
        let green = one(rig);
        must!(rig.cuCtxSetCurrent(green.context));
        saw.text(code_text(rig.cuDevicePrimaryCtxRelease_v2(rig.device)));
        let (mut stream, mut event) = (null_mut(), null_mut());
        let created = [
            rig.cuStreamCreate(&mut stream, NON_BLOCKING),
            rig.cuEventCreate(&mut event, NO_TIMING),
        ];
        let record = rig.cuEventRecord(event, stream);
        let all = [created[0], created[1], record, rig.settled(event)];
        let worst = all.into_iter().find(|code| *code != SUCCESS).unwrap_or(SUCCESS);
        saw.text(format_args!(
            "then {} from cuStreamCreate, cuEventCreate, record, query",
            code_text(worst)
        ));
        clear(rig, &[stream], &[event]);
        destroy(rig, green);
        // The rule has released the context that the rig retained.
        std::process::exit(0);
    }

    /// Several threads that have the same green context current can create events and streams in
    /// it, record and wait. NVIDIA forbids this up to CUDA 13.4, and the result is then undefined.
    [alone, since(12, 4)]
    fn many_threads(rig, saw) = "8 threads of 500 rounds: success" {
        let green = one(rig);
        let (raw, context): (&Raw, _) = (rig, Sent::new(green.context));
        let worst = std::thread::scope(|scope| {
            let work = move || {
                let mut worst = raw.cuCtxSetCurrent(context.get());
                for _ in 0..500 {
                    let (mut stream, mut event) = (null_mut(), null_mut());
                    let codes = [
                        raw.cuStreamCreate(&mut stream, NON_BLOCKING),
                        raw.cuEventCreate(&mut event, NO_TIMING),
                        raw.cuEventRecord(event, stream),
                        raw.cuStreamWaitEvent(stream, event, 0),
                        raw.cuEventSynchronize(event),
                        raw.cuEventDestroy_v2(event),
                        raw.cuStreamDestroy_v2(stream),
                    ];
                    worst = codes.into_iter().find(|code| *code != SUCCESS).unwrap_or(worst);
                }
                let left = raw.cuCtxSetCurrent(null_mut());
                if worst == SUCCESS { left } else { worst }
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
            let ended = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            ended.fold(SUCCESS, |worst, code| if worst == SUCCESS { code } else { worst })
        });
        saw.text(format_args!("8 threads of 500 rounds: {}", code_text(worst)));
        destroy(rig, green);
    }
}
