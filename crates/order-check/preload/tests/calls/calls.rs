//! Calls of which the planted table has none, with the stand-in in front of the driver.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use cuda_events::sys::{
    CUcontext, CUdevResource, CUdevResourceType, CUevent, CUgraph, CUgraphExec, CUgraphNode,
    CUgreenCtx, CUstream,
};
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, NON_BLOCKING, builder};
use cuda_events_test_support::raw::{OK, Raw, call};

use super::front::{FRONT, Program, found, judged_alike};

/// A stream of a green context.
fn green(p: &Desk<'_>) -> (CUgreenCtx, CUstream) {
    let (mut all, mut description) = (CUdevResource::default(), null_mut());
    let (mut context, mut stream) = (null_mut(), null_mut());
    let sm = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    unsafe {
        p.number(p.raw.cuDeviceGetDevResource.unwrap()(0, &mut all, sm));
        p.number(p.raw.cuDevResourceGenerateDesc.unwrap()(&mut description, &mut all, 1));
        p.number(p.raw.cuGreenCtxCreate.unwrap()(&mut context, description, 0, 1));
        let create = p.raw.cuGreenCtxStreamCreate.unwrap();
        p.number(create(&mut stream, context, NON_BLOCKING, 0));
    }
    (context, stream)
}

fn end_green(p: &Desk<'_>, (context, stream): (CUgreenCtx, CUstream)) {
    unsafe {
        p.number((p.raw.cuCtxSynchronize)());
        p.number((p.raw.cuStreamDestroy_v2)(stream));
        p.number(p.raw.cuGreenCtxDestroy.unwrap()(context));
    }
}

const PLANTED: [(&str, Program); 6] = [
    ("a wait for the context of a green one", |p| {
        let green = green(p);
        p.set(green.1, p.buffer, 64);
        if p.mended {
            p.number(unsafe { (p.raw.cuCtxSynchronize)() });
        }
        p.reads(p.b);
        end_green(p, green);
    }),
    ("a wait for the context that a green one is a part of", |p| {
        let (green, own) = (green(p), p.context());
        let mut within = null_mut();
        p.number(unsafe { p.raw.cuCtxFromGreenCtx.unwrap()(&mut within, green.0) });
        p.raw.set_current(within);
        let stream = p.raw.stream(NON_BLOCKING);
        p.set(stream, p.buffer, 64);
        p.raw.set_current(own);
        if p.mended {
            p.number(unsafe { (p.raw.cuCtxSynchronize)() });
        }
        p.reads(p.b);
        p.number(unsafe { (p.raw.cuCtxSynchronize)() });
        p.number(unsafe { (p.raw.cuStreamDestroy_v2)(stream) });
        end_green(p, green);
    }),
    ("a record of a green context", |p| {
        let green = green(p);
        p.set(green.1, p.buffer, 64);
        p.set(p.c, p.other, 64);
        p.number(unsafe { p.raw.cuGreenCtxRecordEvent.unwrap()(green.0, p.e[0]) });
        p.wait(p.b, 0);
        // The record is of the green context's streams alone.
        p.get(p.b, if p.mended { p.buffer } else { p.other }, 64);
        end_green(p, green);
    }),
    ("a record of a green context, and a stream of its context", |p| {
        let (green, own) = (green(p), p.context());
        let mut within = null_mut();
        p.number(unsafe { p.raw.cuCtxFromGreenCtx.unwrap()(&mut within, green.0) });
        p.raw.set_current(within);
        let stream = p.raw.stream(NON_BLOCKING);
        p.raw.set_current(own);
        p.set(stream, p.buffer, 64);
        p.set(p.c, p.other, 64);
        p.number(unsafe { p.raw.cuGreenCtxRecordEvent.unwrap()(green.0, p.e[0]) });
        p.wait(p.b, 0);
        p.get(p.b, if p.mended { p.buffer } else { p.other }, 64);
        p.number(unsafe { (p.raw.cuCtxSynchronize)() });
        p.number(unsafe { (p.raw.cuStreamDestroy_v2)(stream) });
        end_green(p, green);
    }),
    ("a capture whose nodes come after others, and other streams", |p| {
        p.writes(p.a);
        p.capture(p.c);
        let update = p.raw.cuStreamUpdateCaptureDependencies.unwrap();
        p.number(unsafe { update(p.c, null_mut(), 0, 0) });
        p.end_capture(p.c);
        if p.mended {
            p.joined(p.a, p.b);
        }
        p.reads(p.b);
    }),
    ("a capture into a graph that has a node", |p| {
        let (mut graph, mut node, raw) = (null_mut(), null_mut(), p.raw);
        p.number(unsafe { (raw.cuGraphCreate)(&mut graph, 0) });
        let params = cuda_soft_driver::abi::CUDA_MEMSET_NODE_PARAMS {
            dst: p.buffer,
            pitch: 0,
            value: 1,
            elementSize: 1,
            width: 32,
            height: 1,
        };
        let context = p.context();
        let code = call!(raw, cuGraphAddMemsetNode(&mut node => *mut CUgraphNode,
            graph => CUgraph, null() => *const CUgraphNode, 0 => usize,
            &params => *const cuda_soft_driver::abi::CUDA_MEMSET_NODE_PARAMS, context => CUcontext));
        assert_eq!(code, OK);
        let count = usize::from(p.mended);
        let code = call!(raw, cuStreamBeginCaptureToGraph(p.c => CUstream, graph => CUgraph,
            &node => *const CUgraphNode, null() => *const c_void, count => usize, 2 => u32));
        assert_eq!(code, OK);
        p.set(p.c, p.buffer + 16, 32);
        let (mut same, mut exec) = (null_mut(), null_mut());
        unsafe {
            p.number((raw.cuStreamEndCapture)(p.c, &mut same));
            p.number(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0));
        }
        p.launch(exec, p.a);
        p.number(unsafe { (raw.cuGraphDestroy)(graph) });
    }),
];

#[test]
fn other_calls_have_their_order() {
    aside!();
    judged_alike(&PLANTED);
}

/// Two devices, with memory and a stream of each, and work in the second one's. How much the
/// stand-in finds, and the driver.
fn two_devices(
    flags: u32,
    then: impl Fn(&Raw, [CUcontext; 2], [CUstream; 2], [u64; 2]),
) -> [usize; 2] {
    let raw = Raw::behind(builder(0).devices(2), FRONT);
    let contexts = [raw.retain(0), raw.retain(1)];
    let mut memory = [0; 2];
    let streams = [0, 1].map(|device: usize| {
        raw.set_current(contexts[device]);
        assert_eq!(unsafe { (raw.cuMemAlloc_v2)(&mut memory[device], 64) }.0, OK);
        raw.stream(flags)
    });
    assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory[1], 1, 64, streams[1]) }.0, OK);
    then(&raw, contexts, streams, memory);
    streams.into_iter().for_each(|stream| raw.sync(stream));
    [found().len(), raw.soft.order_findings().len()]
}

#[test]
fn a_copy_between_devices_in_the_legacy_stream_waits_for_both() {
    aside!();
    let copy = |raw: &Raw, [to, from]: [u64; 2]| {
        assert_eq!(call!(raw, cuMemcpyDtoD_v2(to => u64, from => u64, 64 => usize)), OK);
    };
    let peer = |raw: &Raw, contexts: [CUcontext; 2], [to, from]: [u64; 2], stream| {
        let copied = call!(raw, cuMemcpyPeerAsync(to => u64, contexts[0] => CUcontext,
            from => u64, contexts[1] => CUcontext, 64 => usize, stream => CUstream));
        assert_eq!(copied, OK);
    };
    let here = |raw: &Raw, contexts: [CUcontext; 2]| raw.set_current(contexts[0]);
    let by_copy = two_devices(0, |raw, contexts, _, memory| {
        here(raw, contexts);
        copy(raw, memory);
    });
    let by_peer = two_devices(0, |raw, contexts, streams, memory| {
        here(raw, contexts);
        peer(raw, contexts, memory, null_mut());
        // What comes later in the other device's stream is after it.
        assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory[0], 1, 64, streams[1]) }.0, OK);
    });
    let in_a_stream = two_devices(0, |raw, contexts, streams, memory| {
        here(raw, contexts);
        peer(raw, contexts, memory, streams[0]);
    });
    let beside = two_devices(NON_BLOCKING, |raw, contexts, _, memory| {
        here(raw, contexts);
        copy(raw, memory);
    });
    // No call that the stand-in knows has been made in it.
    let in_a_new_context = two_devices(0, |raw, _, _, memory| {
        let mut context = null_mut();
        assert_eq!(unsafe { (raw.cuCtxCreate_v2)(&mut context, 0, 0) }.0, OK);
        copy(raw, memory);
    });
    let all = [by_copy, by_peer, in_a_stream, beside, in_a_new_context];
    assert_eq!(all, [0, 0, 1, 1, 0].map(|found| [found; 2]));
}

/// A copy in a stream of the second device.
fn copy_there(
    how: &str,
    raw: &Raw,
    contexts: [CUcontext; 2],
    [to, from]: [u64; 2],
    stream: CUstream,
) {
    if how == "other context current" {
        raw.set_current(contexts[0]);
    }
    let code = match how {
        "peer" => call!(raw, cuMemcpyPeerAsync(to => u64, contexts[0] => CUcontext,
            from => u64, contexts[1] => CUcontext, 64 => usize, stream => CUstream)),
        "any" => call!(raw, cuMemcpyAsync(to => u64, from => u64, 64 => usize,
            stream => CUstream)),
        "default stream" => call!(raw, cuMemcpyDtoDAsync_v2(to => u64, from => u64, 64 => usize,
            2 as CUstream => CUstream)),
        "graph" => {
            let (mut graph, mut exec) = (null_mut(), null_mut());
            let code = call!(raw, cuStreamBeginCapture_v2(stream => CUstream, 0 => u32));
            assert_eq!(code, OK);
            let code = unsafe { (raw.cuMemcpyDtoDAsync_v2)(to, from, 64, stream) };
            assert_eq!(code.0, OK);
            assert_eq!(unsafe { (raw.cuStreamEndCapture)(stream, &mut graph) }.0, OK);
            let code = call!(raw, cuGraphInstantiateWithFlags(&raw mut exec => *mut CUgraphExec,
                graph => CUgraph, 0 => u64));
            assert_eq!(code, OK);
            call!(raw, cuGraphLaunch(exec => CUgraphExec, stream => CUstream))
        }
        _ => unsafe { (raw.cuMemcpyDtoDAsync_v2)(to, from, 64, stream) }.0,
    };
    assert_eq!(code, OK, "{how}");
}

/// Frees memory of the first device, or uses it after a wait for all work of this device.
fn use_here(way: &str, raw: &Raw, context: CUcontext, stream: CUstream, memory: u64) {
    match way {
        "free" => return assert_eq!(unsafe { (raw.cuMemFree_v2)(memory) }.0, OK),
        "free of host memory" => {
            let mut host = null_mut();
            assert_eq!(unsafe { (raw.cuMemHostAlloc)(&mut host, 64, 0) }.0, OK);
            assert_eq!(unsafe { (raw.cuMemFreeHost)(host) }.0, OK);
        }
        "synchronize" => assert_eq!(call!(raw, cuCtxSynchronize()), OK),
        _ => {
            let event = raw.event(0);
            let code = call!(raw, cuCtxRecordEvent(context => CUcontext, event => CUevent));
            assert_eq!(code, OK);
            raw.wait(stream, event);
        }
    }
    assert_eq!(unsafe { (raw.cuMemsetD8Async)(memory, 1, 64, stream) }.0, OK);
}

#[test]
fn a_copy_between_devices_may_be_work_of_the_other_one() {
    aside!();
    const ALL: [&str; 4] = ["free", "free of host memory", "synchronize", "event"];
    for (access, is_source, is_shared) in [
        ([false, false], true, true),
        ([false, false], false, true),
        // Of the second one to the first.
        ([false, true], true, false),
        ([false, true], false, false),
        ([true, true], true, true),
        ([true, true], false, false),
        ([true, false], true, true),
        ([true, false], false, true),
    ] {
        for how in ["", "peer", "any", "default stream", "other context current", "graph"] {
            for way in ALL {
                let found = two_devices(NON_BLOCKING, |raw, contexts, streams, memory| {
                    for (device, enabled) in access.into_iter().enumerate() {
                        raw.set_current(contexts[device]);
                        let enable = || {
                            call!(raw, cuCtxEnablePeerAccess(
                            contexts[1 - device] => CUcontext, 0 => u32))
                        };
                        assert_eq!(enable(), OK);
                        if !enabled {
                            let code = call!(raw, cuCtxDisablePeerAccess(
                                contexts[1 - device] => CUcontext));
                            assert_eq!(code, OK);
                        }
                    }
                    raw.set_current(contexts[1]);
                    raw.sync(streams[1]);
                    let [here, there] = memory;
                    let copied = if is_source { [there, here] } else { [here, there] };
                    copy_there(how, raw, contexts, copied, streams[1]);
                    raw.set_current(contexts[0]);
                    use_here(way, raw, contexts[0], streams[0], here);
                    raw.set_current(contexts[1]);
                    raw.sync(2 as CUstream);
                });
                // What a graph copies is not looked at: a launch is work of all devices.
                let missing = usize::from(!is_shared);
                let of_stand_in = if how == "graph" { 0 } else { missing };
                let case = format!("{access:?}, from here {is_source}: {how} {way}");
                assert_eq!(found, [of_stand_in, missing], "{case}");
            }
        }
    }
}

/// Memory of a pool has access of its own, which nothing looks at.
#[test]
fn a_copy_of_a_pools_memory_is_work_of_the_other_device() {
    aside!();
    let found = two_devices(NON_BLOCKING, |raw, contexts, streams, memory| {
        raw.set_current(contexts[0]);
        let mut pooled = 0;
        let code = call!(raw, cuMemAllocAsync(&raw mut pooled => *mut u64, 64 => usize,
            streams[0] => CUstream));
        assert_eq!(code, OK);
        raw.sync(streams[0]);
        raw.set_current(contexts[1]);
        let code = call!(raw, cuCtxEnablePeerAccess(contexts[0] => CUcontext, 0 => u32));
        assert_eq!(code, OK);
        copy_there("", raw, contexts, [pooled, memory[1]], streams[1]);
        raw.set_current(contexts[0]);
        use_here("synchronize", raw, contexts[0], streams[0], pooled);
    });
    assert_eq!(found, [0, 0]);
}

/// A kernel of one device that uses the memory of the other is work of its own device alone.
#[test]
fn a_memset_of_a_peers_memory_is_work_of_its_stream() {
    aside!();
    let found = two_devices(NON_BLOCKING, |raw, contexts, streams, [here, _]| {
        let code = unsafe { (raw.cuMemsetD8Async)(here, 1, 64, streams[1]) };
        assert_eq!(code.0, OK);
        raw.set_current(contexts[0]);
        assert_eq!(unsafe { (raw.cuMemFree_v2)(here) }.0, OK);
    });
    assert_eq!(found, [1, 1]);
}

#[test]
fn what_gives_back_host_memory_waits_for_its_device_alone() {
    aside!();
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    for registered in [false, true] {
        let found = [0, 1].map(|device: usize| {
            two_devices(0, |raw, contexts, streams, memory| {
                raw.set_current(contexts[0]);
                let page = Box::leak(Box::new(Page([0; 4096])));
                let mut host: *mut c_void = page.0.as_mut_ptr().cast();
                let code = match registered {
                    true => call!(raw, cuMemHostRegister_v2(host => *mut c_void,
                        4096 => usize, 1 => u32)),
                    false => unsafe { (raw.cuMemHostAlloc)(&mut host, 64, 1) }.0,
                };
                assert_eq!(code, OK);
                raw.set_current(contexts[device]);
                let copy = raw.cuMemcpyHtoDAsync_v2;
                assert_eq!(unsafe { copy(memory[device], host, 64, streams[device]) }.0, OK);
                // The stand-in does not see that it is done, as the driver does.
                let synchronize = raw.soft.driver().symbols().cuStreamSynchronize;
                assert_eq!(unsafe { synchronize(streams[device]) }.0, OK);
                raw.set_current(contexts[0]);
                let code = match registered {
                    true => call!(raw, cuMemHostUnregister(host => *mut c_void)),
                    false => unsafe { (raw.cuMemFreeHost)(host) }.0,
                };
                assert_eq!(code, OK);
            })
        });
        assert_eq!(found, [[0, 0], [1, 0]], "registered: {registered}");
    }
    // The host may wait for so few bytes, but has not seen them.
    let found = two_devices(NON_BLOCKING, |raw, contexts, streams, memory| {
        raw.set_current(contexts[0]);
        let mut host = null_mut();
        assert_eq!(unsafe { (raw.cuMemHostAlloc)(&mut host, 64, 1) }.0, OK);
        raw.set_current(contexts[1]);
        raw.soft.hold_host_functions(true);
        raw.host(streams[1], || {});
        let copy = raw.cuMemcpyDtoHAsync_v2;
        assert_eq!(unsafe { copy(host, memory[1], 8, streams[1]) }.0, OK);
        raw.set_current(contexts[0]);
        assert_eq!(unsafe { (raw.cuMemFreeHost)(host) }.0, OK);
        raw.soft.hold_host_functions(false);
    });
    assert_eq!(found, [1; 2]);
}
