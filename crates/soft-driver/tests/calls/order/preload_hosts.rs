//! Host functions, with the stand-in in front of a driver some of whose functions are replaced.

use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use cuda_order_check_preload as preload;
use cuda_soft_driver::abi::CUDA_HOST_NODE_PARAMS;

use super::preload::{FRONT, settings};
use super::*;

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// Calls of the driver that waited for another thread, and those that waited in vain.
static WAITED: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// The driver's function waits for a call of another thread.
unsafe extern "C" fn waits() -> u32 {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        (FRONT.declare)(None, 8, 1, false);
        let _ = sender.send(());
    });
    let came = receiver.recv_timeout(Duration::from_secs(5)).is_ok();
    WAITED[usize::from(!came)].fetch_add(1, Ordering::Relaxed);
    INVALID_VALUE
}

fn that_waits(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuStreamGetCaptureInfo_v3" | b"cuGraphNodeGetContainingGraph" => waits as *mut c_void,
        _ => soft.resolve(name),
    }
}

/// The question is asked without a lock that the other thread's call needs.
#[test]
fn the_driver_may_wait_while_it_is_asked() {
    aside("the_driver_may_wait_while_it_is_asked", || {
        let front = Front {
            install: |soft| preload::install(&|name| that_waits(soft, name), &settings()),
            resolve: |soft, name| preload::target(name, &|name| that_waits(soft, name)),
            ..FRONT
        };
        let raw = Raw::behind(builder(0).version(13, 1), front);
        let p = Desk::new(&raw, false);
        let code = call!(raw, cuLaunchHostFunc(p.a => CUstream,
            Some(nothing) => Option<unsafe extern "C" fn(*mut c_void)>,
            null_mut() => *mut c_void));
        assert_eq!(code, OK);
        raw.sync(p.a);
        let (mut graph, mut node) = (null_mut(), null_mut());
        p.number(unsafe { (raw.cuGraphCreate)(&mut graph, 0) });
        let of = CUDA_HOST_NODE_PARAMS { fn_: Some(nothing), userData: null_mut() };
        let code = call!(raw, cuGraphAddHostNode(&mut node => *mut CUgraphNode,
            graph => CUgraph, null() => *const CUgraphNode, 0 => usize,
            &of => *const CUDA_HOST_NODE_PARAMS));
        assert_eq!(code, OK);
        let code = call!(raw, cuGraphHostNodeSetParams(node => CUgraphNode,
            &of => *const CUDA_HOST_NODE_PARAMS));
        assert_eq!(code, OK);
        assert_eq!(call!(raw, cuGraphDestroyNode(node => CUgraphNode)), OK);
        p.end();
        assert_eq!(WAITED.each_ref().map(|of| of.load(Ordering::Relaxed)), [3, 0]);
    });
}
