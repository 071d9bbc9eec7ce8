//! The same programs with the stand-in for the driver's library in front of the driver: it finds
//! what the driver's own checker finds.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_events::sys::CUstream;
use cuda_events_test_support::aside;
use cuda_events_test_support::cases;
use cuda_events_test_support::planted::{Desk, GEQ, NON_BLOCKING, builder, table};
use cuda_events_test_support::raw::{
    Front, INVALID_HANDLE, INVALID_VALUE, OK, Raw, call, legacy, per_thread,
};
use cuda_order_check_engine::{AccessKind, Finding, Problem, Report};
use cuda_order_check_preload as preload;
use cuda_soft_driver::SoftDriver;
/// Without stacks, as the driver's own checker: with them each place is reported. The kernels of
/// these tests have no code, so findings about them are possible only.
pub(super) fn settings() -> preload::Settings {
    // A kernel without code reads what its parameters point to.
    let text = "stacks=off,possible=on,class=-reads,class=-kernels";
    preload::Settings::from_text(text).unwrap()
}

fn install(soft: &SoftDriver) {
    preload::install(&|name| soft.resolve(name), &settings());
}

fn resolve(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    preload::target(name, &|name| soft.resolve(name))
}

fn declare(stream: Option<CUstream>, address: u64, bytes: usize, write: bool) {
    let name = match (stream.is_some(), write) {
        (true, false) => "reads",
        (true, true) => "writes",
        (false, false) => "host_reads",
        (false, true) => "host_writes",
    };
    preload::declare(name, stream.map(|stream| stream.addr()), address, bytes as u64, write);
}

/// The stand-in in front of the driver.
pub(super) const FRONT: Front = Front { install, resolve, declare };

/// What two reports of one error have in common: calls, kinds and bytes.
pub(super) type Seen = (Problem, Vec<(String, AccessKind)>, Vec<(u64, u64)>);

pub(super) fn seen(report: &Report) -> Seen {
    let side = |side: &cuda_order_check_engine::Side| (side.call.name.to_string(), side.kind);
    let mut sides = vec![side(&report.first), side(&report.second)];
    sides.sort_by(|one, two| one.0.cmp(&two.0));
    let shared = report.shared.iter().map(|range| (range.start, range.end)).collect();
    (report.problem, sides, shared)
}

pub(super) fn found() -> Vec<Seen> {
    let all = preload::take_findings();
    let reports = all.iter().filter_map(|finding| match finding {
        Finding::Report(report) => Some(seen(report)),
        _ => None,
    });
    reports.collect()
}

#[test]
fn the_stand_in_finds_what_the_driver_finds() {
    aside!();
    let mut wrong = Vec::new();
    for seed in 0..cases(1, 3) {
        let raw = Raw::behind(builder(seed), FRONT);
        for (kind, _, program) in table() {
            for mended in [true, false] {
                let before = raw.soft.order_findings().len();
                let desk = Desk::new(&raw, mended);
                program(&desk);
                desk.end();
                let own = raw.soft.order_findings().split_off(before);
                let own: Vec<Seen> = own.iter().map(seen).collect();
                let found = found();
                if own != found || own.is_empty() != mended {
                    wrong.push(format!("{kind} ({mended}, {seed}):\n  {own:x?}\n  {found:x?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

pub(super) fn launch_of(raw: &Raw, kernel: usize, stream: CUstream, address: u64, within: u64) {
    let (number, structure) = (7_u32, [within, 1]);
    let parameters: [*const c_void; 3] =
        [(&raw const number).cast(), (&raw const address).cast(), (&raw const structure).cast()];
    let code = call!(raw, cuLaunchKernel(
        kernel => usize, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
        stream => CUstream, parameters.as_ptr() => *const *const c_void,
        std::ptr::null() => *const c_void));
    assert_eq!(code, OK);
}

/// Whether kernels have the first parameter alone.
static SHORT: AtomicBool = AtomicBool::new(false);

/// Whether kernels have other names.
static RENAMED: AtomicBool = AtomicBool::new(false);

/// The kernels of these tests take a word that is no address, an address, and a structure of two
/// words.
unsafe extern "C" fn parameter(_: usize, at: usize, offset: &mut usize, size: &mut usize) -> u32 {
    let count = if SHORT.load(Ordering::Relaxed) { 1 } else { 3 };
    let Some(known) = [(0, 4), (8, 8), (16, 16)][..count].get(at) else { return INVALID_VALUE };
    (*offset, *size) = *known;
    OK
}

unsafe extern "C" fn no_kernel(_: usize, _: usize, _: &mut usize, _: &mut usize) -> u32 {
    INVALID_HANDLE
}

unsafe extern "C" fn kernel_name(name: &mut *const std::ffi::c_char, kernel: usize) -> u32 {
    let names = [c"fill", c"few", c"stale", c"many", c"_Z4fillPfi"];
    let Some(known) = names.get(kernel - 1) else { return INVALID_HANDLE };
    *name = if RENAMED.load(Ordering::Relaxed) { c"other".as_ptr() } else { known.as_ptr() };
    OK
}

/// A driver with kernels would do something now.
unsafe extern "C" fn kernel(
    _: usize,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: CUstream,
    _: *const *const c_void,
    _: *const c_void,
) -> u32 {
    OK
}

unsafe extern "C" fn cooperative(_: usize) -> u32 {
    OK
}

unsafe extern "C" fn load(_: *mut usize, _: *const c_void) -> u32 {
    OK
}

unsafe extern "C" fn unload(_: usize) -> u32 {
    OK
}

pub(super) fn with_kernels(soft: &SoftDriver, name: &CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuLaunchKernel" => kernel as *mut c_void,
        b"cuLaunchCooperativeKernel" => cooperative as *mut c_void,
        b"cuModuleLoadData" => load as *mut c_void,
        b"cuModuleUnload" => unload as *mut c_void,
        b"cuFuncGetParamInfo" => parameter as *mut c_void,
        b"cuFuncGetName" => kernel_name as *mut c_void,
        b"cuKernelGetParamInfo" => no_kernel as *mut c_void,
        _ => soft.resolve(name),
    }
}

/// A captured kernel has the addresses that it was captured with: a parameter, or a word in a
/// structure.
#[test]
fn a_captured_kernel_has_its_addresses() {
    aside!();
    for within in [false, true] {
        let raw = Raw::behind(builder(0), WITH_KERNELS);
        let desk = Desk::new(&raw, false);
        let launch = |stream, within| match within {
            true => launch_of(&raw, 4, stream, 0, desk.buffer),
            false => launch_of(&raw, 4, stream, desk.buffer, 0),
        };
        let graph = desk.captured(|| launch(desk.c, within));
        desk.launch(graph, desk.a);
        desk.joined(desk.c, desk.b);
        desk.writes(desk.b);
        desk.end();
        let found = found();
        let launched =
            found.iter().filter(|report| report.1.iter().any(|it| it.0 == "cuGraphLaunch"));
        assert_eq!(launched.count(), 1, "{within}: {found:?}");
    }
}

/// After an unload another kernel may have the handle, and fewer parameters.
#[test]
fn a_kernel_ends_with_its_module() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_KERNELS);
    let desk = Desk::new(&raw, false);
    launch_of(&raw, 1, desk.a, desk.buffer, 0);
    assert_eq!(call!(raw, cuModuleUnload(1 => usize)), OK);
    SHORT.store(true, Ordering::Relaxed);
    let number = 7_u32;
    let nowhere = std::ptr::without_provenance(8);
    let parameters: [*const c_void; 3] = [(&raw const number).cast(), nowhere, nowhere];
    let code = call!(raw, cuLaunchKernel(
        1 => usize, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
        desk.a => CUstream, parameters.as_ptr() => *const *const c_void,
        std::ptr::null() => *const c_void));
    assert_eq!(code, OK);
    desk.end();
}

/// It may have the same parameters.
#[test]
fn a_kernel_with_the_handle_of_another_has_its_own_name() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_KERNELS);
    let desk = Desk::new(&raw, false);
    launch_of(&raw, 1, desk.a, desk.buffer, 0);
    for (renamed, name) in [(false, "cuLaunchKernel of fill"), (true, "cuLaunchKernel of other")] {
        RENAMED.store(renamed, Ordering::Relaxed);
        assert_eq!(call!(raw, cuModuleUnload(1 => usize)), OK);
        launch_of(&raw, 1, desk.a, desk.buffer, 0);
        desk.set(desk.b, desk.buffer, 64);
        let found = found();
        assert!(found[0].1.iter().any(|side| side.0 == name), "{name}: {found:?}");
    }
    desk.end();
}

/// Whichever of the two calls comes first, and by whichever word of its parameters the kernel has
/// the address.
#[test]
fn a_kernel_and_a_copy_are_reported_once() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_KERNELS);
    let desk = Desk::new(&raw, false);
    let within = desk.other + 512;
    desk.set(desk.c, within, 64);
    launch_of(&raw, 4, desk.a, 0, within);
    raw.sync(desk.c);
    raw.sync(desk.a);
    launch_of(&raw, 4, desk.a, desk.buffer, within);
    desk.set(desk.c, desk.buffer, 64);
    desk.end();
    let found = found();
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Which class a report is in depends on what a call launches, by whatever function.
#[test]
fn cooperative_kernels_are_kernels() {
    aside!();
    for (classes, count) in [("class=-reads", 1), ("", 2)] {
        let raw = Raw::behind(builder(0), WITH_KERNELS);
        let settings = preload::Settings::from_text(&format!("stacks=off,possible=on,{classes}"));
        preload::install(&|name| with_kernels(&raw.soft, name), &settings.unwrap());
        let desk = Desk::new(&raw, false);
        let (number, structure) = (7_u32, [0_u64, 1]);
        let parameters: [*const c_void; 3] = [
            (&raw const number).cast(),
            (&raw const desk.buffer).cast(),
            (&raw const structure).cast(),
        ];
        for stream in [desk.a, desk.b] {
            let code = call!(raw, cuLaunchCooperativeKernel(
                1 => usize, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32,
                0 => u32, stream => CUstream, parameters.as_ptr() => *const *const c_void));
            assert_eq!(code, OK);
        }
        raw.sync(desk.b);
        // A copy that only reads, and one of the two kernels.
        desk.reads(desk.c);
        desk.end();
        let found = found();
        assert_eq!(found.len(), count, "{classes}: {found:?}");
    }
}

#[test]
fn a_kernel_uses_what_its_parameters_point_to() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_KERNELS);
    let desk = Desk::new(&raw, false);
    let launch_of = |kernel, stream, address, within| {
        launch_of(&raw, kernel, stream, address, within);
    };
    let launch = |stream, address, within| launch_of(1, stream, address, within);
    let calls = |found: Vec<Seen>| -> Vec<Vec<String>> {
        let names = |seen: Seen| seen.1.into_iter().map(|side| side.0).collect();
        found.into_iter().map(names).collect()
    };
    // Two kernels may read the same.
    launch(desk.a, desk.buffer, 0);
    launch(desk.b, desk.buffer, 0);
    assert_eq!(calls(found()), [[""; 0]; 0]);
    // A memset in another stream writes what one points to.
    desk.writes(desk.c);
    assert_eq!(calls(found()), [["cuLaunchKernel of fill", "cuMemsetD8Async"]; 2]);
    // One that ends before it, and that begins behind it.
    desk.set(desk.c, desk.other, 64);
    launch(desk.a, desk.other - 1, 0);
    launch(desk.a, desk.other + 64, 0);
    assert_eq!(calls(found()), [[""; 0]; 0]);
    // The load of a module counts as if it waited.
    desk.set(desk.c, desk.other + 256, 64);
    let code = call!(raw, cuModuleLoadData(
        std::ptr::null_mut() => *mut usize, std::ptr::null() => *const c_void));
    assert_eq!(code, OK);
    launch(raw.stream(NON_BLOCKING), desk.other + 256, 0);
    assert_eq!(calls(found()), [[""; 0]; 0]);
    // A word in a structure, too. (An error is reported once for each function and stream.)
    desk.set(desk.c, desk.other + 512, 64);
    let within = desk.other + 512;
    (0..5).for_each(|at| launch_of(3, desk.a, 0, if at == 3 { within + 64 } else { 0 }));
    (0..5).for_each(|at| launch_of(4, desk.a, 0, if at >= 3 { within } else { 0 }));
    assert_eq!(calls(found()), [["cuLaunchKernel of many", "cuMemsetD8Async"]]);
    desk.end();
}

/// A function that nothing is known of, with arguments in all places.
pub(super) const WITH_KERNELS: Front = Front {
    install: |soft| preload::install(&|name| with_kernels(soft, name), &settings()),
    resolve: |soft, name| preload::target(name, &|name| with_kernels(soft, name)),
    declare,
};

/// A finding about a launch waits for the next one of the two, which has its stack, and the program
/// has one finding.
#[test]
fn a_finding_waits_for_the_stack_of_the_launch() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_KERNELS);
    let settings = preload::Settings::from_text("possible=on").unwrap();
    preload::install(&|name| with_kernels(&raw.soft, name), &settings);
    let desk = Desk::new(&raw, false);
    for _ in 0..20 {
        launch_of(&raw, 5, desk.a, desk.buffer, 0);
        desk.set(desk.c, desk.buffer, 64);
        raw.sync(desk.a);
        raw.sync(desk.c);
    }
    let all = preload::take_findings();
    let [Finding::Report(found)] = &all[..] else { panic!("{all:?}") };
    assert!(found.first.call.backtrace.is_some(), "{found}");
    assert!(found.second.call.backtrace.is_some(), "{found}");
    desk.end();
}

/// A launch has no stack, as that would be slow. After a finding that waits it has one.
#[test]
fn a_pair_is_reported_again_with_the_stack_of_the_launch() {
    aside!();
    let raw = Raw::behind(builder(0), WITH_KERNELS);
    let settings = preload::Settings::from_text("possible=on").unwrap();
    preload::install(&|name| with_kernels(&raw.soft, name), &settings);
    let desk = Desk::new(&raw, false);
    for round in 0..4 {
        launch_of(&raw, 5, desk.a, desk.buffer, 0);
        desk.set(desk.c, desk.buffer, 64);
        raw.sync(desk.a);
        raw.sync(desk.c);
        let all = preload::take_findings();
        let traced: Vec<[bool; 2]> = all
            .iter()
            .filter_map(Finding::report)
            .map(|report| [&report.first, &report.second].map(|side| side.call.backtrace.is_some()))
            .collect();
        let wanted: &[[bool; 2]] = match round {
            0 => &[[false, true]],
            1 => &[[true, true]],
            _ => &[],
        };
        assert_eq!(traced, wanted, "{round}: {all:?}");
        if round == 1 {
            let text = all[0].to_string();
            // The name as in its source, and where the program launched it.
            assert!(text.contains("  reads    kernel fill in stream "), "{text}");
            let launch = "           at calls::front::launch_of, called by ";
            assert_eq!(text.matches(launch).count(), 1, "{text}");
        }
    }
    desk.end();
}

#[test]
fn classes_are_added_and_left_out() {
    aside!();
    for (classes, count) in [
        ("", 3),
        ("class=-reads", 2),
        ("class=-kernels", 2),
        ("class=-reads,class=-kernels", 1),
        ("class=-copy,class=-reads,class=-kernels", 0),
        ("class=+pools", 4),
    ] {
        let raw = Raw::behind(builder(0), WITH_KERNELS);
        let text = format!("stacks=off,possible=on,{classes}");
        let settings = preload::Settings::from_text(&text).unwrap();
        preload::install(&|name| with_kernels(&raw.soft, name), &settings);
        let desk = Desk::new(&raw, false);
        // The copy reads what the kernel may write, the memset writes what another one reads.
        launch_of(&raw, 1, desk.a, desk.buffer, 0);
        desk.copy(desk.b, desk.other, desk.buffer, 64);
        launch_of(&raw, 2, desk.a, desk.other + 512, 0);
        desk.set(desk.c, desk.other + 512, 64);
        // Two kernels get the same.
        launch_of(&raw, 1, desk.a, desk.buffer + 1024, 0);
        launch_of(&raw, 2, desk.b, desk.buffer + 1024, 0);
        // A kernel gets the address of a pool, and a copy fills a block of it.
        let mut pool = 0_u64;
        let code = call!(raw, cuMemAlloc_v2(&mut pool => *mut u64, 32 << 20 => usize));
        assert_eq!(code, OK);
        launch_of(&raw, 1, desk.a, pool, 0);
        desk.set(desk.c, pool + (1 << 20), 64);
        let found = found();
        assert_eq!(found.len(), count, "{classes}: {found:x?}");
        desk.end();
    }
}

unsafe extern "C" fn unknown(
    one: u64,
    two: u64,
    three: u64,
    four: u64,
    five: u64,
    six: u64,
    seven: u64,
    eight: u64,
    half: f64,
) -> u32 {
    let whole = [one, two, three, four, five, six, seven, eight] == [1, 2, 3, 4, 5, 6, 7, 8];
    if whole && half == 0.5 { OK } else { INVALID_VALUE }
}

#[test]
fn a_call_that_is_not_modelled_orders_everything() {
    aside!();
    fn with_unknown(soft: &SoftDriver, name: &CStr) -> *mut c_void {
        match name.to_bytes() {
            b"cuStreamFrobnicate" | b"cuStreamGetFrobnication" => unknown as *mut c_void,
            _ => soft.resolve(name),
        }
    }
    let front = Front {
        install: |soft| preload::install(&|name| with_unknown(soft, name), &settings()),
        resolve: |soft, name| preload::target(name, &|name| with_unknown(soft, name)),
        declare,
    };
    for (name, reports) in [(c"cuStreamFrobnicate", 0), (c"cuStreamGetFrobnication", 1)] {
        let raw = Raw::behind(builder(0), front);
        let desk = Desk::new(&raw, false);
        type Unknown = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, f64) -> u32;
        let call: Unknown = unsafe { std::mem::transmute((front.resolve)(&raw.soft, name)) };
        desk.writes(desk.a);
        assert_eq!(unsafe { call(1, 2, 3, 4, 5, 6, 7, 8, 0.5) }, OK, "{name:?}");
        desk.reads(desk.b);
        desk.end();
        assert_eq!(found().len(), reports, "{name:?}");
    }
}

/// Each form of the look-up gives what is in front of the real function.
#[test]
fn looked_up_functions_are_hooked() {
    type LookUp =
        unsafe extern "C" fn(*const std::ffi::c_char, *mut *mut c_void, i32, u64, *mut u32) -> u32;
    aside!();
    let raw = Raw::behind(builder(0), FRONT);
    let name = c"cuMemsetD8Async";
    for (form, found) in [
        (c"cuGetProcAddress", name),
        (c"cuGetProcAddress_v2", name),
        (c"cuGetProcAddress_v2_ptsz", c"cuMemsetD8Async_ptsz"),
    ] {
        let hook = resolve(&raw.soft, found);
        assert_ne!(hook, raw.soft.resolve(found));
        // The first form has no fifth parameter, and ignores one.
        let look_up: LookUp = unsafe { std::mem::transmute(resolve(&raw.soft, form)) };
        let (mut function, mut status) = (std::ptr::null_mut(), 0);
        let code = unsafe { look_up(name.as_ptr(), &mut function, 12_040, 0, &mut status) };
        assert_eq!((code, function), (OK, hook), "{form:?}");
    }
}

/// A newer driver has another version of a function, and a program asks for that.
#[test]
fn a_function_in_no_list_orders_everything() {
    type LookUp =
        unsafe extern "C" fn(*const std::ffi::c_char, *mut *mut c_void, i32, u64, *mut u32) -> u32;
    static REAL: std::sync::OnceLock<LookUp> = std::sync::OnceLock::new();
    unsafe extern "C" fn look_up(
        name: *const std::ffi::c_char,
        function: *mut *mut c_void,
        version: i32,
        flags: u64,
        status: *mut u32,
    ) -> u32 {
        if version < 99_000 {
            let real = REAL.get().expect("it was found before");
            return unsafe { real(name, function, version, flags, status) };
        }
        unsafe { *function = unknown as *mut c_void };
        OK
    }
    fn newer(soft: &SoftDriver, name: &CStr) -> *mut c_void {
        if name != c"cuGetProcAddress_v2" {
            return soft.resolve(name);
        }
        REAL.get_or_init(|| unsafe { std::mem::transmute(soft.resolve(name)) });
        look_up as *mut c_void
    }
    fn log() -> std::path::PathBuf {
        std::env::temp_dir().join(format!("order-check-lists-{}", std::process::id()))
    }
    aside!();
    let front = Front {
        install: |soft| {
            let settings = format!("log={}", log().display());
            let settings = preload::Settings::from_text(&settings).expect("it is valid");
            preload::install(&|name| newer(soft, name), &settings);
            // The library exports something, so what it does not export is in no list.
            preload::exported(std::ptr::without_provenance(1), std::ptr::without_provenance(2));
        },
        resolve: |soft, name| preload::target(name, &|name| newer(soft, name)),
        declare,
    };
    let raw = Raw::behind(builder(0), front);
    let desk = Desk::new(&raw, false);
    let look_up: LookUp =
        unsafe { std::mem::transmute((front.resolve)(&raw.soft, c"cuGetProcAddress_v2")) };
    let (mut function, name) = (std::ptr::null_mut(), c"cuMemcpyHtoDAsync".as_ptr());
    let code = unsafe { look_up(name, &mut function, 99_000, 0, std::ptr::null_mut()) };
    assert_eq!(code, OK);
    type Unknown = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, f64) -> u32;
    let call: Unknown = unsafe { std::mem::transmute(function) };
    desk.writes(desk.a);
    assert_eq!(unsafe { call(1, 2, 3, 4, 5, 6, 7, 8, 0.5) }, OK);
    desk.reads(desk.b);
    desk.end();
    assert_eq!(found().len(), 0);
    preload::summary();
    let text = std::fs::read_to_string(log()).expect("it is written");
    for line in [
        "not in the list of functions: cuMemcpyHtoDAsync, though others of its name are",
        "counts as ordering everything: cuMemcpyHtoDAsync 1 time",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    std::fs::remove_file(log()).expect("it was made here");
}

/// Calls chosen by a number, of which many are in no order.
fn random_program(p: &Desk<'_>, mut number: u64) {
    let mut next = |below: u64| {
        number =
            number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % below
    };
    let streams = [p.a, p.b, p.c, legacy(), per_thread(), p.raw.stream(0)];
    let graph = {
        p.capture(p.a);
        p.set(p.a, p.buffer, 32);
        p.record(2, p.a);
        p.wait(p.b, 2);
        p.copy(p.b, p.other, p.buffer + 16, 32);
        p.set(p.a, p.buffer + 64, 32);
        p.record(2, p.b);
        p.wait(p.a, 2);
        p.end_capture(p.a)
    };
    let mut signalled = 0;
    for _ in 0..40 {
        let stream = streams[next(6) as usize];
        let (event, at) = (next(2) as usize, 16 * next(8));
        match next(18) {
            0..3 => _ = p.set(stream, p.buffer + at, 32),
            3 => _ = p.copy(stream, p.other, p.buffer + at, 32),
            4 => _ = p.copy(stream, p.buffer + at, p.other, 32),
            5 => _ = p.upload(stream),
            6 => _ = p.download(stream),
            7 | 8 => _ = p.record(event, stream),
            9 | 10 => _ = p.wait(stream, event),
            11 => p.raw.sync(stream),
            12 => p.event_sync(event),
            13 => _ = p.raw.query(p.e[event]),
            14 => _ = p.launch(graph, stream),
            15 => {
                signalled += 1;
                p.signal(stream, signalled);
            }
            // Any signal ends the wait, whichever comes last.
            16 if signalled > 0 => _ = p.await_value(stream, 1, GEQ),
            17 if next(2) == 0 => _ = p.host_reads(),
            17 => _ = p.host_writes(),
            _ => p.context_record(p.context(), event),
        }
    }
}

#[test]
fn the_stand_in_finds_what_the_driver_finds_in_random_programs() {
    aside!();
    judged_alike_at_random(random_program);
}

/// The stand-in and the driver find the same in random programs.
pub(super) fn judged_alike_at_random(program: impl Fn(&Desk<'_>, u64)) {
    let (mut wrong, mut all, programs) = (Vec::new(), 0, cases(30, 600));
    for seed in 0..programs {
        let raw = Raw::behind(builder(seed), FRONT);
        let desk = Desk::new(&raw, false);
        program(&desk, seed);
        desk.end();
        let own: Vec<Seen> = raw.soft.order_findings().iter().map(seen).collect();
        let found = found();
        all += own.len();
        if own != found {
            wrong.push(format!("{seed}:\n  {own:x?}\n  {found:x?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all > programs as usize, "{all} reports are too few to compare");
}

/// A program with one error, or without.
pub(super) type Program = fn(&Desk<'_>);

/// The stand-in and the driver find the one error of each program, and nothing in its twin.
pub(super) fn judged_alike(programs: &[(&str, Program)]) {
    for (what, program) in programs {
        for mended in [true, false] {
            let raw = Raw::behind(builder(0), FRONT);
            let desk = Desk::new(&raw, mended);
            program(&desk);
            desk.end();
            let own: Vec<Seen> = raw.soft.order_findings().iter().map(seen).collect();
            let found = found();
            assert_eq!(own, found, "{what}, mended: {mended}");
            assert_eq!(found.len(), usize::from(!mended), "{what}, mended: {mended}");
        }
    }
}
