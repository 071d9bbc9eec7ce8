//! Which pinned memory the stand-in protects: of calls that the software driver lacks, which do
//! nothing here.

use std::ffi::{CStr, c_void};

use cuda_events::sys::CUstream;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::{Desk, builder};
use cuda_events_test_support::raw::{Front, OK, Raw, call};
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;

use super::front::{FRONT, found, launch_of, with_kernels};
/// Each has an address of its own.
unsafe extern "C" fn done<const N: u32>() -> u32 {
    std::hint::black_box(N) - N
}

fn with_more(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuMemcpyBatchAsync_v2" => done::<1> as *mut c_void,
        b"cuMemcpyWithAttributesAsync" => done::<2> as *mut c_void,
        _ => with_kernels(soft, name),
    }
}

/// A copy whose source is read in an order of `CUmemcpySrcAccessOrder`.
fn batch<const ORDER: u32>(p: &Desk<'_>, from: u64) {
    let (to, from, bytes) = ([p.buffer], [from], [64]);
    let attributes = [ORDER, 0, 0, 0, 0, 0];
    let code = call!(p.raw, cuMemcpyBatchAsync_v2(to.as_ptr() => *const u64,
        from.as_ptr() => *const u64, bytes.as_ptr() => *const usize, 1 => usize,
        &attributes => *const [u32; 6], &0 => *const usize, 1 => usize, p.a => CUstream));
    assert_eq!(code, OK);
}

fn one<const ORDER: u32>(p: &Desk<'_>, from: u64) {
    let attributes = [ORDER, 0, 0, 0, 0, 0];
    let code = call!(p.raw, cuMemcpyWithAttributesAsync(p.buffer => u64, from => u64,
        64 => usize, &attributes => *const [u32; 6], p.a => CUstream));
    assert_eq!(code, OK);
}

/// A kernel without code may write what its parameters point to.
fn all() -> preload::Settings {
    preload::Settings::from_text("stacks=off,possible=on").expect("they are valid")
}

/// A store to pinned memory behind a call that reads it: the number of findings.
fn findings(call: fn(&Desk<'_>, u64)) -> usize {
    let front = Front {
        install: |soft| {
            preload::install(&|name| with_more(soft, name), &all());
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

#[test]
fn sources_that_are_read_within_the_call_are_not_protected() {
    aside!();
    assert_eq!([batch::<2>, one::<2>].map(findings), [0, 0]);
    assert_eq!(findings(|p, _| _ = p.upload(p.a)), 1, "a plain copy");
}

/// The program may store there once the call has returned.
#[test]
fn pageable_memory_is_read_within_the_call() {
    aside!();
    let raw = Raw::behind(builder(0), FRONT);
    let p = Desk::new(&raw, false);
    let source = [0_u8; 64];
    let from = source.as_ptr();
    for (from, stores) in [(from as u64, 0), (p.pinned.addr() as u64, 1)] {
        let code = unsafe { (raw.cuMemcpyHtoDAsync_v2)(p.buffer, from as *const c_void, 64, p.a) };
        assert_eq!(code.0, OK);
        (FRONT.declare)(None, from, 64, true);
        raw.sync(p.a);
        assert_eq!(found().len(), stores);
    }
    p.end();
}

/// A process has its handler of faults once.
macro_rules! protected {
    ($($test:ident $copy:expr;)*) => {$(
        #[test]
        fn $test() {
            aside!();
            assert_eq!(findings($copy), 1);
        }
    )*};
}

protected! {
    sources_of_a_batch_in_the_streams_order_are_protected batch::<1>;
    sources_of_a_batch_that_are_read_at_any_time_are_protected batch::<3>;
    a_source_in_the_streams_order_is_protected one::<1>;
    a_source_that_is_read_at_any_time_is_protected one::<3>;
}

/// A kernel with the address of the memory may access it, or may not.
#[test]
fn memory_of_kernels_in_graphs_is_not_protected() {
    aside!();
    let copied = |p: &Desk<'_>, _| _ = p.launch(p.captured(|| _ = p.upload(p.c)), p.a);
    assert_eq!(findings(copied), 1, "a copy");
    let kernel = |p: &Desk<'_>, pinned| {
        let graph = p.captured(|| launch_of(p.raw, 1, p.c, pinned, 0));
        p.launch(graph, p.a);
    };
    assert_eq!(findings(kernel), 0);
}
