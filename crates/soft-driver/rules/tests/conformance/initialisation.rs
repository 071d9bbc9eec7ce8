//! Before and around `cuInit`.

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

use cuda_events::sys::more::*;

use cuda_soft_driver::attributes::H200;
use cuda_test_harness::TestDriver;

use crate::raw::{NULL_STREAM, Raw, Rig, code_text};
use crate::rules;

/// A text of the driver: the code, and the text or what the place holds.
fn text(call: impl FnOnce(*mut *const c_char) -> CUresult) -> String {
    let before = c"not written".as_ptr();
    let mut text: *const c_char = before;
    let code = call(&mut text);
    let text = if text.is_null() {
        "NULL".into()
    } else {
        // SAFETY: either the text of above or the driver's, which is a C string that is never
        // freed.
        unsafe { CStr::from_ptr(text) }.to_string_lossy()
    };
    format!("{}, {text}", code_text(code))
}

fn calls(raw: &Raw) -> Vec<(&'static str, CUresult)> {
    let (mut count, mut device, mut active, mut flags) = (0, 0, 0, 0);
    let (mut context, mut event, mut stream, mut graph) =
        (null_mut(), null_mut(), null_mut(), null_mut());
    vec![
        ("cuDeviceGetCount", raw.cuDeviceGetCount(&mut count)),
        ("cuDeviceGet", raw.cuDeviceGet(&mut device, 0)),
        ("cuDevicePrimaryCtxRetain", raw.cuDevicePrimaryCtxRetain(&mut context, 0)),
        ("cuDevicePrimaryCtxGetState", raw.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active)),
        ("cuCtxGetCurrent", raw.cuCtxGetCurrent(&mut context)),
        ("cuCtxSetCurrent(NULL)", raw.cuCtxSetCurrent(null_mut())),
        ("cuCtxPopCurrent", raw.cuCtxPopCurrent_v2(&mut context)),
        ("cuCtxSynchronize", raw.cuCtxSynchronize()),
        ("cuEventCreate", raw.cuEventCreate(&mut event, 0)),
        ("cuStreamCreate", raw.cuStreamCreate(&mut stream, 0)),
        ("cuStreamQuery(NULL)", raw.cuStreamQuery(NULL_STREAM)),
        ("cuStreamSynchronize(NULL)", raw.cuStreamSynchronize(NULL_STREAM)),
        ("cuGraphCreate", raw.cuGraphCreate(&mut graph, 0)),
    ]
}

/// Attributes that another H200 may answer otherwise: places on the bus and among the memory of the
/// host, ids of the board, error correction, compute mode, sharing, clocks. And those of abilities
/// that the software driver does not have: virtual memory, pools of the host, multicast, and other
/// devices that read its memory.
const CHOSEN: &[u32] = &[
    13, 17, 20, 32, 33, 34, 36, 50, 131, 133, 134, 139, 140, // of the machine
    102, 110, 116, 117, 124, 128, 132, 141, 142, 144, 145, // of the driver
];

fn an_h200() -> Result<(), String> {
    if TestDriver::chosen() != TestDriver::Native {
        return Ok(());
    }
    let rig = Rig::new("");
    let mut name = [0_u8; 128];
    must!(rig.cuDeviceGetName(name.as_mut_ptr().cast(), 128, rig.device));
    let name = String::from_utf8_lossy(&name);
    if name.contains("H200") { Ok(()) } else { Err("no H200".to_owned()) }
}

rules! {
    /// Before `cuInit`, calls return `CUDA_ERROR_NOT_INITIALIZED`.
    [bare]
    fn before_init(rig, saw) =
        "CUDA_ERROR_NOT_INITIALIZED (3) from cuDeviceGetCount, cuDeviceGet, \
         cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxGetState, cuCtxGetCurrent, \
         cuCtxSetCurrent(NULL), cuCtxPopCurrent, cuCtxSynchronize, cuEventCreate, cuStreamCreate, \
         cuStreamQuery(NULL), cuStreamSynchronize(NULL), cuGraphCreate"
    {
        saw.codes(&calls(rig));
    }

    /// Even before `cuInit`, a call with a NULL event returns `CUDA_ERROR_INVALID_HANDLE`: the
    /// driver checks the handle first.
    [bare]
    fn a_null_event_before_init(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400) from cuEventQuery" {
        saw.codes(&[("cuEventQuery", rig.cuEventQuery(null_mut()))]);
    }

    /// The capture mode of a thread cannot be exchanged before `cuInit`.
    [bare]
    fn the_capture_mode_before_init(rig, saw) =
        "CUDA_ERROR_NOT_INITIALIZED (3) from cuThreadExchangeStreamCaptureMode"
    {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        saw.codes(&[(
            "cuThreadExchangeStreamCaptureMode",
            rig.cuThreadExchangeStreamCaptureMode(&mut mode),
        )]);
    }

    /// The calls for the driver's version and for error texts work before `cuInit`.
    [bare]
    fn what_works_before_init(rig, saw) = "success from cuDriverGetVersion, cuGetErrorName, \
        cuGetErrorString" {
        let (mut version, mut text) = (0, null());
        saw.codes(&[
            ("cuDriverGetVersion", rig.cuDriverGetVersion(&mut version)),
            ("cuGetErrorName", rig.cuGetErrorName(CUresult::CUDA_ERROR_NOT_READY, &mut text)),
            ("cuGetErrorString", rig.cuGetErrorString(CUresult::CUDA_ERROR_NOT_READY, &mut text)),
        ]);
    }

    /// `cuInit` returns an error for all flags except 0, before and after a successful `cuInit`.
    /// Such a call does not initialise the driver.
    [bare]
    fn the_flags_of_init(rig, saw) =
        "cuInit(1) CUDA_ERROR_INVALID_VALUE (1); then cuDeviceGetCount CUDA_ERROR_NOT_INITIALIZED \
         (3); cuInit(0) success; cuInit(1) CUDA_ERROR_INVALID_VALUE (1); then cuDeviceGetCount \
         success"
    {
        let mut count = 0;
        saw.code("cuInit(1)", rig.cuInit(1));
        saw.code("then cuDeviceGetCount", rig.cuDeviceGetCount(&mut count));
        saw.code("cuInit(0)", rig.cuInit(0));
        saw.code("cuInit(1)", rig.cuInit(1));
        saw.code("then cuDeviceGetCount", rig.cuDeviceGetCount(&mut count));
    }

    /// `cuInit` can be repeated.
    [bare]
    fn init_again(rig, saw) = "success, success, success" {
        let codes: Vec<String> = (0..3).map(|_| code_text(rig.cuInit(0))).collect();
        saw.text(codes.join(", "));
    }

    /// For an unknown code, the calls for its name and its text return an error, and write NULL.
    fn the_name_of_an_unknown_code(rig, saw) =
        "name CUDA_ERROR_INVALID_VALUE (1), NULL; text CUDA_ERROR_INVALID_VALUE (1), NULL"
    {
        saw.text(format_args!("name {}", text(|place| rig.cuGetErrorName(CUresult(4242), place))));
        saw.text(format_args!(
            "text {}",
            text(|place| rig.cuGetErrorString(CUresult(4242), place))
        ));
    }

    /// The driver's names for its result codes are the names in NVIDIA's header.
    fn the_names_of_codes(rig, saw) = "the same for each known to both" {
        let mut other = Vec::new();
        for code in (0..1000).map(CUresult) {
            let mut text = null();
            let (Some(own), CUresult::CUDA_SUCCESS) =
                (code.name(), rig.cuGetErrorName(code, &mut text))
            else {
                continue;
            };
            // SAFETY: with success it is a C string that is never freed.
            let name = unsafe { CStr::from_ptr(text) }.to_string_lossy();
            if name != own {
                other.push(format!("{} is {name}", code.0));
            }
        }
        let same = "the same for each known to both";
        if other.is_empty() { saw.text(same) } else { saw.text(other.join(", ")) }
    }

    /// `cuDeviceGet` checks the ordinal: for a negative ordinal, and for one above the last, it
    /// returns `CUDA_ERROR_INVALID_DEVICE`.
    fn ordinals(rig, saw) =
        "-1 CUDA_ERROR_INVALID_DEVICE (101); the last success; past it CUDA_ERROR_INVALID_DEVICE \
            (101)"
    {
        let (count, mut device) = (rig.device_count(), 0);
        saw.code("-1", rig.cuDeviceGet(&mut device, -1));
        saw.code("the last", rig.cuDeviceGet(&mut device, count - 1));
        saw.code("past it", rig.cuDeviceGet(&mut device, count));
    }

    /// Calls that take a device return an error for a device that does not exist.
    fn a_device_that_is_not_there(rig, saw) =
        "CUDA_ERROR_INVALID_DEVICE (101) from cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRelease, \
         cuDevicePrimaryCtxGetState, cuCtxCreate, cuDeviceGetAttribute"
    {
        let (past, mut context, mut flags, mut active, mut value) =
            (rig.device_count(), null_mut(), 0, 0, 0);
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        saw.codes(&[
            ("cuDevicePrimaryCtxRetain", rig.cuDevicePrimaryCtxRetain(&mut context, past)),
            ("cuDevicePrimaryCtxRelease", rig.cuDevicePrimaryCtxRelease_v2(past)),
            (
                "cuDevicePrimaryCtxGetState",
                rig.cuDevicePrimaryCtxGetState(past, &mut flags, &mut active),
            ),
            ("cuCtxCreate", rig.cuCtxCreate_v2(&mut context, 0, past)),
            ("cuDeviceGetAttribute", rig.cuDeviceGetAttribute(&mut value, attribute, past)),
        ]);
    }

    /// Without a device, each call of `cuInit` returns `CUDA_ERROR_NO_DEVICE`, and the driver is
    /// not initialised.
    [bare, settings("devices=0"), environment("CUDA_VISIBLE_DEVICES", "")]
    fn no_device(rig, saw) =
        "cuInit CUDA_ERROR_NO_DEVICE (100); again CUDA_ERROR_NO_DEVICE (100); cuDeviceGetCount \
         CUDA_ERROR_NOT_INITIALIZED (3)"
    {
        let mut count = 77;
        saw.code("cuInit", rig.cuInit(0));
        saw.code("again", rig.cuInit(0));
        saw.code("cuDeviceGetCount", rig.cuDeviceGetCount(&mut count));
    }

    /// A driver has no names for the result codes of later CUDA versions.
    [since(13, 0), before(13, 1)]
    fn the_names_of_later_codes(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1), NULL from 47, 227, 917, 918, 919"
    {
        let mut unknown = Vec::new();
        for code in [47, 227, 917, 918, 919] {
            match text(|place| rig.cuGetErrorName(CUresult(code), place)).as_str() {
                "CUDA_ERROR_INVALID_VALUE (1), NULL" => unknown.push(code.to_string()),
                other => saw.text(format_args!("{code} {other}")),
            }
        }
        saw.text(format_args!("CUDA_ERROR_INVALID_VALUE (1), NULL from {}", unknown.join(", ")));
    }

    /// `cuGetExportTable` returns `CUDA_ERROR_INVALID_VALUE` for an unknown table, also before
    /// `cuInit`.
    [bare]
    fn an_unknown_export_table(rig, saw) =
        "before cuInit CUDA_ERROR_INVALID_VALUE (1); after CUDA_ERROR_INVALID_VALUE (1)"
    {
        let (mut table, id) = (null(), CUuuid { bytes: *b"nobody's table.." });
        saw.code("before cuInit", rig.cuGetExportTable(&mut table, &id));
        must!(rig.cuInit(0));
        saw.code("after", rig.cuGetExportTable(&mut table, &id));
    }

    /// Before `cuInit`, the calls for the loading mode of modules and for the profiler return an
    /// error.
    [bare, since(11, 7)]
    fn modules_and_profiler_before_init(rig, saw) =
        "CUDA_ERROR_NOT_INITIALIZED (3) from cuModuleGetLoadingMode, cuProfilerStart; mode not \
         written"
    {
        let mut mode = CUmoduleLoadingMode(77);
        saw.codes(&[
            ("cuModuleGetLoadingMode", rig.cuModuleGetLoadingMode(&mut mode)),
            ("cuProfilerStart", rig.cuProfilerStart()),
        ]);
        saw.holds("mode not written", mode.0 == 77);
    }

    /// By default, modules are loaded lazily.
    [since(12, 0), environment("CUDA_MODULE_LOADING", "")]
    fn loading_lazily(rig, saw) = "success, 2" {
        let mut mode = CUmoduleLoadingMode(77);
        let code = rig.cuModuleGetLoadingMode(&mut mode);
        saw.text(format_args!("{}, {}", code_text(code), mode.0));
    }

    /// Modules are loaded eagerly if `CUDA_MODULE_LOADING` is `EAGER`.
    [since(12, 0), environment("CUDA_MODULE_LOADING", "EAGER")]
    fn loading_eagerly(rig, saw) = "success, 1" {
        let mut mode = CUmoduleLoadingMode(77);
        let code = rig.cuModuleGetLoadingMode(&mut mode);
        saw.text(format_args!("{}, {}", code_text(code), mode.0));
    }

    /// `cuProfilerStart` and `cuProfilerStop` need a current context. They succeed even if no
    /// profiler runs.
    fn the_profiler(rig, saw) =
        "success from start, stop; CUDA_ERROR_INVALID_CONTEXT (201) from start without a context, \
         stop without a context"
    {
        let within = [("start", rig.cuProfilerStart()), ("stop", rig.cuProfilerStop())];
        must!(rig.cuCtxSetCurrent(null_mut()));
        let without = [
            ("start without a context", rig.cuProfilerStart()),
            ("stop without a context", rig.cuProfilerStop()),
        ];
        must!(rig.cuCtxSetCurrent(rig.context));
        saw.codes(&[within, without].concat());
    }

    /// For NULL as the kernel or the function, the calls for its name return
    /// `CUDA_ERROR_INVALID_VALUE`.
    [since(12, 3)]
    fn the_name_of_no_function(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from cuKernelGetName, cuFuncGetName"
    {
        let mut name = null();
        saw.codes(&[
            ("cuKernelGetName", rig.cuKernelGetName(&mut name, null_mut())),
            ("cuFuncGetName", rig.cuFuncGetName(&mut name, null_mut())),
        ]);
    }

    /// A driver of CUDA 13.0 has the device attributes 1 to 147.
    [since(13, 0), before(13, 1)]
    fn known_attributes(rig, saw) =
        "0 CUDA_ERROR_INVALID_VALUE (1); 1 to 147 success; 148 to 199 CUDA_ERROR_INVALID_VALUE (1)"
    {
        let mut ranges: Vec<(CUresult, u32, u32)> = Vec::new();
        for attribute in 0..200 {
            let mut value = 0;
            let code =
                rig.cuDeviceGetAttribute(&mut value, CUdevice_attribute(attribute), rig.device);
            match ranges.last_mut() {
                Some((last, _, to)) if *last == code => *to = attribute,
                _ => ranges.push((code, attribute, attribute)),
            }
        }
        for (code, from, to) in ranges {
            let range = if from == to { from.to_string() } else { format!("{from} to {to}") };
            saw.code(&range, code);
        }
    }

    /// The device attributes have the values of an H200. The rule omits attributes that depend on
    /// the GPU's place in the machine or on its settings, and attributes of features that the
    /// software driver does not have.
    [since(13, 0), before(13, 1), needs(an_h200)]
    fn the_attributes_of_an_h200(rig, saw) = "as listed" {
        let mut others = Vec::new();
        for (attribute, listed) in (1..).zip(H200).filter(|(at, _)| !CHOSEN.contains(at)) {
            let mut value = 0;
            let which = CUdevice_attribute(attribute);
            must!(rig.cuDeviceGetAttribute(&mut value, which, rig.device));
            if value != listed {
                others.push(format!("{attribute} is {value}, listed {listed}"));
            }
        }
        saw.text(if others.is_empty() { "as listed".to_owned() } else { others.join(", ") });
    }

    /// `cuDriverGetVersion` returns the version as 1000 * major + 10 * minor.
    [bare]
    fn the_version(rig, saw) = "the version that the loader knows" {
        let mut version = 0;
        must!(rig.cuDriverGetVersion(&mut version));
        saw.holds(
            "the version that the loader knows",
            u32::try_from(version) == Ok(rig.version().as_raw()),
        );
    }
}
