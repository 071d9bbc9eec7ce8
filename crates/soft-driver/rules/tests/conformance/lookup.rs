//! Entry points by name, version and flags.

use std::ffi::CStr;
use std::fmt;
use std::ptr::null_mut;

use cuda_events::sys::*;
use cuda_test_harness::TestDriver;

use crate::raw::{Raw, code_text};
use crate::rules;

const LEGACY: u64 = CU_GET_PROC_ADDRESS_LEGACY_STREAM as u64;
const PER_THREAD: u64 = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM as u64;
/// What the places for the answers hold before.
const BEFORE: usize = 0x5A5A;
const STATUS_BEFORE: CUdriverProcAddressQueryResult = CUdriverProcAddressQueryResult(77);

/// A library of Rust exports all its functions on Windows, whatever version it simulates.
fn chosen_exports() -> Result<(), String> {
    let made_in_rust = cfg!(windows) && TestDriver::chosen() == TestDriver::Shared;
    if made_in_rust { Err("this library exports all that it has".to_owned()) } else { Ok(()) }
}

#[derive(Clone, Copy, PartialEq)]
struct Found {
    code: CUresult,
    function: usize,
    status: CUdriverProcAddressQueryResult,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = match self.function {
            0 => "NULL",
            BEFORE => "function not written",
            _ => "a function",
        };
        write!(f, "{}, {function}", code_text(self.code))?;
        if self.status == STATUS_BEFORE {
            write!(f, ", status not written")
        } else {
            write!(f, ", status {}", self.status.0)
        }
    }
}

fn ask(raw: &Raw, name: &CStr, version: i32, flags: u64) -> Found {
    let mut function = std::ptr::without_provenance_mut(BEFORE);
    let mut status = STATUS_BEFORE;
    let code = raw.cuGetProcAddress_v2(name.as_ptr(), &mut function, version, flags, &mut status);
    Found { code, function: function.addr(), status }
}

/// The same of the four-argument form.
fn ask_v1(raw: &Raw, name: &CStr, version: i32, flags: u64) -> String {
    let mut function = std::ptr::without_provenance_mut(BEFORE);
    let code = raw.cuGetProcAddress(name.as_ptr(), &mut function, version, flags);
    let function = match function.addr() {
        0 => "NULL",
        BEFORE => "function not written",
        _ => "a function",
    };
    format!("{}, {function}", code_text(code))
}

fn version(raw: &Raw) -> i32 {
    raw.version().as_raw().try_into().expect("versions are small")
}

/// A base name, the versions that brought a new function under it, and those of its per-thread
/// twin.
type Row = (&'static CStr, &'static [i32], &'static [i32]);

const EVENTS: &[Row] = &[
    (c"cuEventCreate", &[2000], &[]),
    (c"cuEventQuery", &[2000], &[]),
    (c"cuEventSynchronize", &[2000], &[]),
    (c"cuEventRecord", &[2000], &[7000]),
    (c"cuEventRecordWithFlags", &[11010], &[11010]),
    (c"cuEventDestroy", &[2000, 4000], &[]),
    (c"cuEventElapsedTime", &[2000, 12080], &[]),
    (c"cuIpcGetEventHandle", &[4010], &[]),
    (c"cuIpcOpenEventHandle", &[4010], &[]),
    (c"cuCtxRecordEvent", &[12050], &[]),
    (c"cuCtxWaitEvent", &[12050], &[]),
];

const STREAMS: &[Row] = &[
    (c"cuStreamCreate", &[2000], &[]),
    (c"cuStreamCreateWithPriority", &[5050], &[]),
    (c"cuStreamDestroy", &[2000, 4000], &[]),
    (c"cuStreamQuery", &[2000], &[7000]),
    (c"cuStreamSynchronize", &[2000], &[7000]),
    (c"cuStreamWaitEvent", &[3020], &[7000]),
    (c"cuStreamGetPriority", &[5050], &[7000]),
    (c"cuStreamGetFlags", &[5050], &[7000]),
    (c"cuStreamGetId", &[12000], &[12000]),
    (c"cuStreamGetDevice", &[12080], &[12080]),
    (c"cuStreamGetCtx", &[9020, 12050], &[9020, 12050]),
    (c"cuLaunchHostFunc", &[10000, 13010], &[10000, 13010]),
    (c"cuStreamAddCallback", &[5000], &[7000]),
];

const CAPTURE: &[Row] = &[
    (c"cuStreamBeginCapture", &[10000, 10010], &[10000, 10010]),
    (c"cuStreamEndCapture", &[10000], &[10000]),
    (c"cuStreamIsCapturing", &[10000], &[10000]),
    (c"cuStreamGetCaptureInfo", &[10010, 11030, 12030], &[10010, 11030, 12030]),
    (c"cuThreadExchangeStreamCaptureMode", &[10010], &[]),
];

const CONTEXTS: &[Row] = &[
    (c"cuCtxCreate", &[2000, 3020, 11040, 12050], &[]),
    (c"cuCtxDestroy", &[2000, 4000], &[]),
    (c"cuCtxPushCurrent", &[2000, 4000], &[]),
    (c"cuCtxPopCurrent", &[2000, 4000], &[]),
    (c"cuCtxSetCurrent", &[4000], &[]),
    (c"cuCtxGetCurrent", &[4000], &[]),
    (c"cuCtxSynchronize", &[2000, 13000], &[]),
    (c"cuCtxGetDevice", &[2000, 13000], &[]),
    (c"cuCtxGetId", &[12000], &[]),
    (c"cuDevicePrimaryCtxRetain", &[7000], &[]),
    (c"cuDevicePrimaryCtxRelease", &[7000, 11000], &[]),
    (c"cuDevicePrimaryCtxReset", &[7000, 11000], &[]),
    (c"cuDevicePrimaryCtxSetFlags", &[7000, 11000], &[]),
    (c"cuDevicePrimaryCtxGetState", &[7000], &[]),
];

const OTHERS: &[Row] = &[
    (c"cuInit", &[2000], &[]),
    (c"cuDeviceGet", &[2000], &[]),
    (c"cuDeviceGetCount", &[2000], &[]),
    (c"cuDeviceGetName", &[2000], &[]),
    (c"cuDeviceGetAttribute", &[2000], &[]),
    (c"cuDriverGetVersion", &[2020], &[]),
    (c"cuGetErrorName", &[6000], &[]),
    (c"cuGetErrorString", &[6000], &[]),
    (c"cuGetProcAddress", &[11030, 12000], &[]),
];

/// Where the driver departs from a table: at each listed version there is another function than
/// just below it.
fn departures(raw: &Raw, rows: &[Row]) -> Vec<String> {
    let mut departures = Vec::new();
    for (name, versions, twins) in rows {
        for (flags, versions) in [(LEGACY, versions), (PER_THREAD, twins)] {
            let mut below = 0;
            for version in versions.iter().copied().filter(|listed| *listed <= version(raw)) {
                let (at, before) =
                    (ask(raw, name, version, flags), ask(raw, name, version - 1, flags));
                let there =
                    at.code == CUresult::CUDA_SUCCESS && at.function != 0 && at.function != BEFORE;
                let not_before = before.function == below
                    && before.code == CUresult::CUDA_SUCCESS
                    && (below != 0)
                        == (before.status
                            == CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS);
                if !there || !not_before || at.function == below {
                    let twin = if flags == PER_THREAD { " (per thread)" } else { "" };
                    departures.push(format!(
                        "{}{twin} at {version}: {at}, below it {before}",
                        name.to_string_lossy()
                    ));
                }
                below = at.function;
            }
        }
    }
    departures
}

fn as_listed(raw: &Raw, rows: &[Row]) -> String {
    let departures = departures(raw, rows);
    if departures.is_empty() { "each as listed".to_owned() } else { departures.join(", ") }
}

rules! {
    /// The lookup works before `cuInit`.
    [bare, since(12, 0)]
    fn works_before_init(rig, saw) = "success, a function, status 0" {
        saw.text(ask(rig, c"cuEventRecord", 2000, 0));
    }

    /// The lookup takes base names. For a name with a version suffix or a per-thread suffix it
    /// returns success with NULL and status 1, as for every unknown name.
    [since(12, 0)]
    fn a_suffixed_name_is_unknown(rig, saw) =
        "cuEventDestroy_v2: success, NULL, status 1; cuEventRecord_ptsz: success, NULL, status 1"
    {
        saw.text(format_args!(
            "cuEventDestroy_v2: {}",
            ask(rig, c"cuEventDestroy_v2", version(rig), 0)
        ));
        saw.text(format_args!(
            "cuEventRecord_ptsz: {}",
            ask(rig, c"cuEventRecord_ptsz", version(rig), 0)
        ));
    }

    /// For an unknown or empty name the lookup returns success with NULL and status 1.
    [since(12, 0)]
    fn an_unknown_name(rig, saw) = "unknown: success, NULL, status 1; empty: success, NULL, status \
        1" {
        saw.text(format_args!("unknown: {}", ask(rig, c"cuNoSuchThing", version(rig), 0)));
        saw.text(format_args!("empty: {}", ask(rig, c"", version(rig), 0)));
    }

    /// Names are case-sensitive.
    [since(12, 0)]
    fn case_counts(rig, saw) = "success, NULL, status 1" {
        saw.text(ask(rig, c"cueventrecord", version(rig), 0));
    }

    /// For a version below the one that introduced the function, the lookup returns success with
    /// NULL and status 2.
    [since(12, 0)]
    fn a_version_below_the_introduction(rig, saw) = "success, NULL, status 2" {
        saw.text(ask(rig, c"cuStreamGetId", 11080, 0));
    }

    /// For a version above the driver's own the lookup returns an error, and writes no result.
    [since(12, 0)]
    fn a_version_above_the_drivers(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1), function not written, status not written"
    {
        saw.text(ask(rig, c"cuEventRecord", version(rig) + 10, 0));
    }

    /// The lookup accepts the flags 0 to 3. For all other flags it returns an error, and writes no
    /// result.
    [since(12, 0)]
    fn flags(rig, saw) =
        "0 to 3: success, a function, status 0; 4: CUDA_ERROR_INVALID_VALUE (1), function not \
         written, status not written; all bits: CUDA_ERROR_INVALID_VALUE (1), function not \
         written, status not written"
    {
        let answers: Vec<String> = (0..4)
            .map(|flags| ask(rig, c"cuEventRecord", version(rig), flags).to_string())
            .collect();
        let same = answers.iter().all(|answer| *answer == answers[0]);
        saw.text(format_args!(
            "0 to 3: {}",
            if same { answers[0].clone() } else { answers.join(", ") }
        ));
        saw.text(format_args!("4: {}", ask(rig, c"cuEventRecord", version(rig), 4)));
        saw.text(format_args!("all bits: {}", ask(rig, c"cuEventRecord", version(rig), u64::MAX)));
    }

    /// With the per-thread flag the lookup returns the function's per-thread twin (the same
    /// function for the per-thread default stream), at another address.
    [since(12, 0)]
    fn the_per_thread_flag_gives_the_twin(rig, saw) = "success, a function, status 0; it is \
        another one" {
        let twin = ask(rig, c"cuEventRecord", 7000, PER_THREAD);
        saw.text(twin);
        saw.holds(
            "it is another one",
            twin.function != ask(rig, c"cuEventRecord", 7000, LEGACY).function,
        );
    }

    /// With the per-thread flag and a version below the twin's, the lookup returns NULL and status
    /// 2, not the legacy function.
    [since(12, 0)]
    fn the_per_thread_flag_below_the_twin(rig, saw) = "success, NULL, status 2" {
        saw.text(ask(rig, c"cuEventRecord", 2000, PER_THREAD));
    }

    /// The per-thread flag changes nothing for a function that has no per-thread twin.
    [since(12, 0)]
    fn the_per_thread_flag_without_a_twin(rig, saw) = "success, a function, status 0; it is the \
        same one" {
        let found = ask(rig, c"cuEventQuery", 2000, PER_THREAD);
        saw.text(found);
        saw.holds(
            "it is the same one",
            found.function == ask(rig, c"cuEventQuery", 2000, LEGACY).function,
        );
    }

    /// The lookup accepts a negative version.
    [since(12, 0)]
    fn a_negative_version(rig, saw) = "success, a function, status 0" {
        saw.text(ask(rig, c"cuEventQuery", -5, 0));
    }

    /// For version 0 the lookup finds no function: each was introduced later.
    [since(12, 0)]
    fn version_zero(rig, saw) = "success, NULL, status 2" {
        saw.text(ask(rig, c"cuEventQuery", 0, 0));
    }

    /// The place for the status may be NULL.
    [since(12, 0)]
    fn no_place_for_the_status(rig, saw) = "unknown name success, NULL; known name success, a \
        function" {
        for (label, name) in [("unknown name", c"cuNoSuchThing"), ("known name", c"cuEventQuery")] {
            let mut function = std::ptr::without_provenance_mut(BEFORE);
            let code = rig.cuGetProcAddress_v2(
                name.as_ptr(),
                &mut function,
                version(rig),
                0,
                null_mut(),
            );
            let function = if function.is_null() { "NULL" } else { "a function" };
            saw.text(format_args!("{label} {}, {function}", code_text(code)));
        }
    }

    /// The four-argument form of CUDA 11.3 finds a function by name and version.
    [since(11, 3)]
    fn four_arguments(rig, saw) = "success, a function" {
        saw.text(ask_v1(rig, c"cuEventRecord", 2000, 0));
    }

    /// The four-argument form returns an error for an unknown or empty name, and writes no result.
    [since(11, 3)]
    fn four_arguments_and_an_unknown_name(rig, saw) =
        "unknown: CUDA_ERROR_NOT_FOUND (500), function not written; empty: CUDA_ERROR_NOT_FOUND \
         (500), function not written; suffixed: CUDA_ERROR_NOT_FOUND (500), function not written"
    {
        saw.text(format_args!("unknown: {}", ask_v1(rig, c"cuNoSuchThing", 11030, 0)));
        saw.text(format_args!("empty: {}", ask_v1(rig, c"", 11030, 0)));
        saw.text(format_args!("suffixed: {}", ask_v1(rig, c"cuEventDestroy_v2", 11030, 0)));
    }

    /// The four-argument form returns an error for a version below the one that introduced the
    /// function, and writes no result.
    [since(11, 3)]
    fn four_arguments_and_a_version_below(rig, saw) = "CUDA_ERROR_NOT_FOUND (500), function not \
        written" {
        saw.text(ask_v1(rig, c"cuEventRecordWithFlags", 11000, 0));
    }

    /// The four-argument form returns an error for a version above the driver's own and for unknown
    /// flags, and writes no result.
    [since(11, 3)]
    fn four_arguments_refused(rig, saw) =
        "version: CUDA_ERROR_INVALID_VALUE (1), function not written; flags: \
         CUDA_ERROR_INVALID_VALUE (1), function not written"
    {
        saw.text(format_args!("version: {}", ask_v1(rig, c"cuEventRecord", version(rig) + 10, 0)));
        saw.text(format_args!("flags: {}", ask_v1(rig, c"cuEventRecord", 2000, 4)));
    }

    /// The lookup has the event functions at the versions that NVIDIA's function-pointer types
    /// list.
    [since(12, 0)]
    fn versions_of_event_functions(rig, saw) = "each as listed" {
        saw.text(as_listed(rig, EVENTS));
    }

    /// The lookup has the stream functions and their per-thread twins at the listed versions.
    [since(12, 0)]
    fn versions_of_stream_functions(rig, saw) = "each as listed" {
        saw.text(as_listed(rig, STREAMS));
    }

    /// The lookup has the capture functions and their per-thread twins at the listed versions.
    [since(12, 0)]
    fn versions_of_capture_functions(rig, saw) = "each as listed" {
        saw.text(as_listed(rig, CAPTURE));
    }

    /// The lookup has the context functions at the listed versions.
    [since(12, 0)]
    fn versions_of_context_functions(rig, saw) = "each as listed" {
        saw.text(as_listed(rig, CONTEXTS));
    }

    /// The lookup has the functions of initialisation, devices and error texts, and itself, at the
    /// listed versions.
    [since(12, 0)]
    fn versions_of_other_functions(rig, saw) = "each as listed" {
        saw.text(as_listed(rig, OTHERS));
    }

    /// The lookup of an entry point at its version returns the same address as the export under its
    /// full name.
    [since(12, 0)]
    fn the_lookup_agrees_with_the_exports(rig, saw) = "the same address for every entry point" {
        let mut other = Vec::new();
        for entry in ENTRY_POINTS.iter().filter(|entry| entry.version <= rig.version()) {
            let base = std::ffi::CString::new(entry.base).expect("a name without NUL");
            let asked = entry.version.as_raw().try_into().expect("versions are small");
            if ask(rig, &base, asked, 0).function != rig.export(entry.name).addr() {
                other.push(entry.name.to_string_lossy());
            }
        }
        let (all, some) = ("the same address for every entry point", "another address for");
        if other.is_empty() {
            saw.text(all)
        } else {
            saw.text(format_args!("{some} {}", other.join(", ")))
        }
    }

    /// The driver exports every entry point of its version and of older versions under its full
    /// name, and the per-thread twins, too.
    fn exports(rig, saw) = "all there" {
        let mut missing = Vec::new();
        for entry in ENTRY_POINTS.iter().filter(|entry| entry.version <= rig.version()) {
            let twin = entry.per_thread_version.map(|_| [entry.name.to_bytes(), b"_ptsz"].concat());
            let twin = twin.map(|name| std::ffi::CString::new(name).expect("a name without NUL"));
            for name in [Some(entry.name.to_owned()), twin].into_iter().flatten() {
                if rig.export(&name).is_null() {
                    missing.push(name.to_string_lossy().into_owned());
                }
            }
        }
        if missing.is_empty() {
            saw.text("all there")
        } else {
            saw.text(format_args!("missing: {}", missing.join(", ")))
        }
    }

    /// A function that a newer one replaced is still exported, under the plain name.
    fn exports_of_replaced_functions(rig, saw) = "all there" {
        let names = [
            c"cuEventDestroy",
            c"cuStreamDestroy",
            c"cuEventElapsedTime",
            c"cuCtxCreate",
            c"cuCtxDestroy",
            c"cuCtxPushCurrent",
            c"cuCtxPopCurrent",
            c"cuStreamBeginCapture",
            c"cuStreamGetCaptureInfo",
            c"cuDevicePrimaryCtxRelease",
            c"cuDevicePrimaryCtxReset",
            c"cuDevicePrimaryCtxSetFlags",
        ];
        let missing: Vec<_> = names
            .iter()
            .filter(|name| rig.export(name).is_null())
            .map(|name| name.to_string_lossy())
            .collect();
        if missing.is_empty() {
            saw.text("all there")
        } else {
            saw.text(format_args!("missing: {}", missing.join(", ")))
        }
    }

    /// A function that is newer than the driver is not exported.
    [needs(chosen_exports)]
    fn exports_of_newer_functions(rig, saw) = "none there" {
        let newer = ENTRY_POINTS.iter().filter(|entry| entry.version > rig.version());
        let there: Vec<_> = newer
            .filter(|entry| !rig.export(entry.name).is_null())
            .map(|entry| entry.name.to_string_lossy())
            .collect();
        if there.is_empty() {
            saw.text("none there")
        } else {
            saw.text(format_args!("there: {}", there.join(", ")))
        }
    }
}
