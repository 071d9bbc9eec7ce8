//! The whole safe layer on drivers of every version that the software driver can be of: what a
//! driver lacks is told as that, what has an older form is asked for in the older form, and all
//! else works.
//!
//! It runs on the software driver in this process whatever the other tests run on: no other one is
//! of several versions.

use std::collections::HashSet;

use crate::harness::attempt;
use crate::scenarios::SCENARIOS;
use cuda_events::sys::{ENTRY_POINTS, Function};
use cuda_events::{Driver, Error, LoadOptions, Version};
use cuda_soft_driver::exports::NEWEST;
use cuda_soft_driver::{OnMisuse, SoftDriver};

const VERSIONS: &[(u32, u32)] =
    &[(11, 0), (11, 4), (11, 8), (12, 0), (12, 4), (12, 8), (13, 0), NEWEST];

/// Entry points of one purpose, the newest first: of those that a driver has the first is called,
/// and no other.
const FAMILIES: &[&[Function]] = &[
    &[Function::cuDeviceGetUuid_v2, Function::cuDeviceGetUuid],
    &[Function::cuCtxGetDevice_v2, Function::cuCtxGetDevice],
    &[Function::cuEventElapsedTime_v2, Function::cuEventElapsedTime],
    &[
        Function::cuStreamGetCaptureInfo_v3,
        Function::cuStreamGetCaptureInfo_v2,
        Function::cuStreamGetCaptureInfo,
    ],
    &[Function::cuStreamUpdateCaptureDependencies_v2, Function::cuStreamUpdateCaptureDependencies],
    &[Function::cuGraphInstantiateWithFlags, Function::cuGraphInstantiate_v2],
    &[Function::cuStreamWaitValue32_v2, Function::cuStreamWaitValue32],
    &[Function::cuStreamWaitValue64_v2, Function::cuStreamWaitValue64],
    &[Function::cuStreamWriteValue32_v2, Function::cuStreamWriteValue32],
    &[Function::cuStreamWriteValue64_v2, Function::cuStreamWriteValue64],
    &[Function::cuStreamBatchMemOp_v2, Function::cuStreamBatchMemOp],
];

fn soft_driver((major, minor): (u32, u32)) -> SoftDriver {
    SoftDriver::builder()
        .version(major, minor)
        .devices(2)
        .on_misuse(OnMisuse::Error)
        .log(4096)
        .log_lookups(true)
        .build()
}

fn load(soft: &SoftDriver, per_thread: bool) -> Driver {
    let options = LoadOptions::new().per_thread_default_stream(per_thread);
    soft.try_driver(&options).expect("a driver of CUDA 11.0 or later is enough")
}

#[test]
fn the_table_has_what_the_version_has() {
    for &(major, minor) in VERSIONS {
        for per_thread in [false, true] {
            let soft = soft_driver((major, minor));
            let driver = load(&soft, per_thread);
            let version = Version::new(major, minor);
            assert_eq!(driver.version(), version);
            let lookups: HashSet<_> = soft.log().iter().map(|record| record.function).collect();
            // Its version, and then by the newest lookup that it has; without any, by exported
            // names.
            let mut expected = HashSet::from(["cuDriverGetVersion"]);
            expected.extend(match version {
                _ if version >= Version::new(12, 0) => Some("cuGetProcAddress_v2"),
                _ if version >= Version::new(11, 3) => Some("cuGetProcAddress"),
                _ => None,
            });
            assert_eq!(lookups, expected, "{version}: what loading calls");
            for entry in ENTRY_POINTS {
                let since =
                    entry.per_thread_version.filter(|_| per_thread).unwrap_or(entry.version);
                let address = driver.symbols().address(entry.function);
                assert_eq!(
                    !address.is_null(),
                    since <= version,
                    "{} of {since} on {version}",
                    entry.function
                );
                assert!(
                    !entry.required || since <= Version::new(11, 0),
                    "{} cannot be required",
                    entry.function
                );
                // It is the function of that very name, whose types the table has, and not another
                // version of it.
                let twin =
                    if per_thread && entry.per_thread_version.is_some() { "_ptsz" } else { "" };
                let name =
                    std::ffi::CString::new(format!("{}{twin}", entry.function)).expect("a name");
                if !address.is_null() {
                    assert_eq!(address, soft.resolve(&name), "{name:?} on {version}");
                }
            }
        }
    }
}

#[test]
fn the_safe_layer_works_on_every_version() {
    let (child, import) = crate::exporter::start();
    let (mut newest_calls, mut older_forms) = (HashSet::new(), HashSet::new());
    for &version in VERSIONS {
        for per_thread in [false, true] {
            let (mut called, mut refused) = (HashSet::new(), HashSet::new());
            for scenario in SCENARIOS {
                let soft = soft_driver(version);
                let seen =
                    attempt(&soft, load(&soft, per_thread), scenario, per_thread, import, None);
                let seen =
                    seen.unwrap_or_else(|what| panic!("{} on {version:?}: {what}", scenario.name));
                called.extend(seen.called);
                refused
                    .extend(seen.unsupported.into_iter().map(|error| unsupported(error, version)));
            }
            let version = Version::new(version.0, version.1);
            for function in &called {
                let since = function.entry_point().version;
                assert!(since <= version, "{function} of {since} was called on {version}");
            }
            for family in FAMILIES {
                let newest =
                    family.iter().find(|function| function.entry_point().version <= version);
                let used: Vec<_> =
                    family.iter().filter(|function| called.contains(function)).collect();
                assert_eq!(used, Vec::from_iter(newest), "on {version}");
            }
            println!(
                "CUDA {version}: {} entry points called, {} refused: {refused:?}",
                called.len(),
                refused.len()
            );
            if version == Version::new(NEWEST.0, NEWEST.1) {
                newest_calls.extend(called);
            } else {
                older_forms.extend(called);
            }
        }
    }
    drop(child);
    let listed = |function: &Function| FAMILIES.iter().any(|family| family.contains(function));
    older_forms.retain(|function| !newest_calls.contains(function) && !listed(function));
    assert!(
        older_forms.is_empty(),
        "{older_forms:?}: only older drivers are called so: add a family to FAMILIES in \
         tests/faults/versions.rs, with the newer entry point first"
    );
}

/// The entry point that the error names, after a look at the error.
fn unsupported(error: Error, (major, minor): (u32, u32)) -> Function {
    let version = Version::new(major, minor);
    let text = error.to_string();
    let Error::Unsupported { function, since, driver } = error else { panic!("{error:?}") };
    // The call is older than the handles of timelines that it takes.
    let of_the_call = match function {
        Function::cuImportExternalSemaphore => Version::new(11, 2),
        _ => function.entry_point().version,
    };
    assert_eq!((since, driver), (of_the_call, version), "{function}");
    assert!(since > version, "{function} of {since} is refused on {version}");
    for part in
        [function.name(), &format!("needs CUDA {since}"), &format!("supports CUDA {version}")]
    {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert_eq!(error.code(), None, "the driver was not asked");
    function
}
