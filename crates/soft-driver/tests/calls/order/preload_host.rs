//! Which pinned memory the stand-in protects: of calls that the software driver lacks, which do
//! nothing here.

use std::ffi::CStr;
use std::ptr::null;

use cuda_order_check_preload as preload;

use super::preload::{FRONT, found, launch_of, settings, with_kernels};
use super::*;

unsafe extern "C" fn done() -> u32 {
    OK
}

fn with_more(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuMemcpyBatchAsync_v2" | b"cuMemcpyWithAttributesAsync" => done as *mut c_void,
        _ => with_kernels(soft, name),
    }
}

fn batch(p: &Desk<'_>, to: u64, from: u64) {
    let (to, from, bytes) = ([to], [from], [64]);
    let code = call!(p.raw, cuMemcpyBatchAsync_v2(to.as_ptr() => *const u64,
        from.as_ptr() => *const u64, bytes.as_ptr() => *const usize, 1 => usize,
        null() => *const c_void, null() => *const usize, 0 => usize, p.a => CUstream));
    assert_eq!(code, OK);
}

/// A store to pinned memory behind a call that reads it: the number of findings.
fn findings(call: fn(&Desk<'_>, u64)) -> usize {
    let front = Front {
        install: |soft| {
            preload::install(&|name| with_more(soft, name), &settings());
            preload::watch_host(None, &|_| std::ptr::null_mut());
        },
        resolve: |soft, name| preload::target(name, &|name| with_more(soft, name)),
        declare: FRONT.declare,
    };
    let raw = Raw::behind(builder(0), front);
    let p = Desk::new(&raw, false);
    call(&p, p.pinned.addr() as u64);
    unsafe { p.pinned.cast::<u8>().write_volatile(1) };
    p.end();
    found().len()
}

/// The attributes of these copies may say that the source is read within the call.
#[test]
fn sources_that_may_be_read_within_the_call_are_not_protected() {
    aside("sources_that_may_be_read_within_the_call_are_not_protected", || {
        assert_eq!(findings(|p, _| _ = p.upload(p.a)), 1, "a plain copy");
        assert_eq!(findings(|p, pinned| batch(p, p.buffer, pinned)), 0);
        let with_attributes = |p: &Desk<'_>, pinned| {
            let code = call!(p.raw, cuMemcpyWithAttributesAsync(p.buffer => u64, pinned => u64,
                64 => usize, null() => *const c_void, p.a => CUstream));
            assert_eq!(code, OK);
        };
        assert_eq!(findings(with_attributes), 0);
    });
}

/// A kernel with the address of the memory may access it, or may not.
#[test]
fn memory_of_kernels_in_graphs_is_not_protected() {
    aside("memory_of_kernels_in_graphs_is_not_protected", || {
        let copied = |p: &Desk<'_>, _| _ = p.launch(p.captured(|| _ = p.upload(p.c)), p.a);
        assert_eq!(findings(copied), 1, "a copy");
        let kernel = |p: &Desk<'_>, pinned| {
            let graph = p.captured(|| launch_of(p.raw, 1, p.c, pinned, 0));
            p.launch(graph, p.a);
        };
        assert_eq!(findings(kernel), 0);
    });
}
