//! Parts of a device's multiprocessors, and green contexts of them.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;
use cuda_soft_driver::SoftDriver;

const SM: CUdevResourceType = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
const ALL: u32 = 132;
/// `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION`.
const CONFIGURATION: u32 = 915;
const CONTEXT_IS_DESTROYED: u32 = 709;

fn whole(raw: &Raw, device: i32) -> CUdevResource {
    let mut all = CUdevResource::default();
    assert_eq!(unsafe { raw.cuDeviceGetDevResource.unwrap()(device, &mut all, SM) }.0, OK);
    all
}

/// How many multiprocessors a resource has, in units of how many, by both words that say so.
fn words(resource: &CUdevResource) -> (CUdevResourceType, [u32; 3]) {
    let sm = unsafe { resource.u.sm };
    (resource.type_, [sm.smCount, sm.minSmPartitionSize, sm.smCoscheduledAlignment])
}

fn split(
    raw: &Raw,
    resource: &CUdevResource,
    groups: u32,
    flags: u32,
    least: u32,
) -> Result<(Vec<CUdevResource>, CUdevResource), u32> {
    let (mut made, mut rest) = (groups, CUdevResource::default());
    rest.u.sm.smCount = 77;
    let mut parts = vec![CUdevResource::default(); groups as usize];
    let split = raw.cuDevSmResourceSplitByCount.unwrap();
    let code = unsafe { split(parts.as_mut_ptr(), &mut made, resource, &mut rest, flags, least) }.0;
    parts.truncate(made as usize);
    if code == OK { Ok((parts, rest)) } else { Err(code) }
}

fn describe(raw: &Raw, resources: &[CUdevResource]) -> (u32, CUdevResourceDesc) {
    let (mut description, mut resources) = (null_mut(), resources.to_vec());
    let describe = raw.cuDevResourceGenerateDesc.unwrap();
    let code =
        unsafe { describe(&mut description, resources.as_mut_ptr(), resources.len() as u32) }.0;
    (code, description)
}

/// A green context of these parts, and what it has.
fn green(raw: &Raw, resources: &[CUdevResource]) -> (CUgreenCtx, CUdevResource) {
    let (code, description) = describe(raw, resources);
    assert_eq!(code, OK);
    let (mut green, mut has) = (null_mut(), CUdevResource::default());
    unsafe {
        assert_eq!(raw.cuGreenCtxCreate.unwrap()(&mut green, description, 0, 1).0, OK);
        assert_eq!(raw.cuGreenCtxGetDevResource.unwrap()(green, &mut has, SM).0, OK);
    }
    (green, has)
}

/// Memory outlives the green context that it was allocated in.
#[test]
fn memory_of_a_green_context_that_is_gone_is_freed() {
    let raw = Raw::with(SoftDriver::builder().version(13, 0));
    let own = raw.retain(0);
    let (parts, _) = split(&raw, &whole(&raw, 0), 1, 0, 40).unwrap();
    let (green, _) = green(&raw, &parts);
    let (mut context, mut memory, mut host) = (null_mut(), 0, null_mut());
    unsafe {
        assert_eq!(raw.cuCtxFromGreenCtx.unwrap()(&mut context, green).0, OK);
        raw.set_current(context);
        assert_eq!((raw.cuMemAlloc_v2)(&mut memory, 64).0, OK);
        assert_eq!((raw.cuMemHostAlloc)(&mut host, 64, 0).0, OK);
        raw.set_current(own);
        assert_eq!(raw.cuGreenCtxDestroy.unwrap()(green).0, OK);
        assert_eq!((raw.cuMemFree_v2)(memory).0, OK);
        assert_eq!((raw.cuMemFreeHost)(host).0, OK);
    }
}

/// The context of a green one ends with that, and not by itself.
#[test]
fn a_green_contexts_context_is_not_destroyed() {
    const INVALID_CONTEXT: u32 = 201;
    let raw = Raw::with(SoftDriver::builder().version(13, 0));
    let (parts, _) = split(&raw, &whole(&raw, 0), 1, 0, 40).unwrap();
    let (green, _) = green(&raw, &parts);
    let mut context = null_mut();
    unsafe {
        assert_eq!(raw.cuCtxFromGreenCtx.unwrap()(&mut context, green).0, OK);
        assert_eq!((raw.cuCtxDestroy_v2)(context).0, INVALID_CONTEXT);
        assert!(raw.soft.misuses()[0].contains("belongs to a green context"));
        assert_eq!(raw.cuGreenCtxDestroy.unwrap()(green).0, OK);
    }
}

/// Every split of a device, and of what a green context has: sizes are whole units, the parts are
/// equal, and with the remainder they are all that there was.
#[test]
fn a_split_is_all_that_there_was() {
    for (version, has_units) in [((13, 0), true), ((12, 9), false)] {
        let raw = Raw::with(SoftDriver::builder().version(version.0, version.1));
        let device = whole(&raw, 0);
        let (parts, _) = split(&raw, &device, 1, 0, 40).unwrap();
        let (context, part) = green(&raw, &parts);
        for (resource, total) in [(device, ALL), (part, 40)] {
            for (least, flags) in (0..=total + 1).flat_map(|least| [(least, 0), (least, 1)]) {
                let unit = if flags == 1 { 2 } else { 8 };
                let size = least.max(1).div_ceil(unit) * unit;
                let size = size.min(total);
                // Measured: one part of eight fewer than fit.
                let most = if size == 8 { (total / size).min(15) } else { total / size };
                for groups in [1, 2, most, ALL + 1] {
                    let what = format!("{total}: {groups} of {least}, {flags}, {version:?}");
                    let made = split(&raw, &resource, groups, flags, least);
                    if least > total {
                        assert_eq!(made.err(), Some(CONFIGURATION), "{what}");
                        continue;
                    }
                    let (parts, rest) = made.expect(&what);
                    let own = if has_units { unit } else { 0 };
                    assert_eq!(parts.len() as u32, groups.min(most), "{what}");
                    assert!(
                        parts.iter().all(|part| words(part) == (SM, [size, own, own])),
                        "{what}"
                    );
                    let left = total - size * parts.len() as u32;
                    let none = CUdevResourceType::CU_DEV_RESOURCE_TYPE_INVALID;
                    let expected = if left == 0 { (none, [0; 3]) } else { (SM, [left, own, own]) };
                    assert_eq!(words(&rest), expected, "{what}");
                    let mut count = 77;
                    let ask = raw.cuDevSmResourceSplitByCount.unwrap();
                    let code =
                        unsafe { ask(null_mut(), &mut count, &resource, null_mut(), flags, least) }
                            .0;
                    assert_eq!((code, count), (OK, most), "{what}");
                }
            }
        }
        assert_eq!(split(&raw, &device, 0, 0, 8).err(), Some(INVALID_VALUE));
        assert_eq!(split(&raw, &parts[0], 1, 0, 8).err(), Some(CONFIGURATION), "a part");
        unsafe { assert_eq!(raw.cuGreenCtxDestroy.unwrap()(context).0, OK) };
    }
}

/// A green context has what its parts have together, in whichever order they are described, and it
/// can be split again.
#[test]
fn a_green_context_has_its_parts() {
    let raw = Raw::with(SoftDriver::builder().version(13, 0));
    let (parts, rest) = split(&raw, &whole(&raw, 0), 3, 0, 16).unwrap();
    for (parts, count) in [
        (vec![parts[0]], 16),
        (vec![parts[2], parts[0]], 32),
        (vec![rest, parts[1], parts[0], parts[2]], ALL),
        (vec![rest], ALL - 48),
        (vec![whole(&raw, 0), parts[0]], ALL),
    ] {
        let (context, has) = green(&raw, &parts);
        assert_eq!(words(&has), (SM, [count, 8, 8]));
        let (again, left) = split(&raw, &has, 1, 0, 8).expect("it can be split");
        assert_eq!(words(&again[0]).1[0] + words(&left).1[0], count);
        let mut stands = null_mut();
        let mut same = CUdevResource::default();
        unsafe {
            assert_eq!(raw.cuCtxFromGreenCtx.unwrap()(&mut stands, context).0, OK);
            assert_eq!(raw.cuCtxGetDevResource.unwrap()(stands, &mut same, SM).0, OK);
            assert_eq!(words(&same), words(&has));
            assert_eq!(raw.cuGreenCtxDestroy.unwrap()(context).0, OK);
        }
    }
}

/// Each call of a green context, with one that is gone and one that never was.
#[test]
fn a_green_context_that_is_gone_is_none() {
    let raw = Raw::with(SoftDriver::builder().version(13, 0));
    let (parts, _) = split(&raw, &whole(&raw, 0), 1, 0, 16).unwrap();
    let (gone, _) = green(&raw, &parts);
    unsafe { assert_eq!(raw.cuGreenCtxDestroy.unwrap()(gone).0, OK) };
    let event = raw.event(0);
    for (bad, expected) in [
        (null_mut(), INVALID_CONTEXT),
        (gone, INVALID_CONTEXT),
        (8 as CUgreenCtx, INVALID_CONTEXT),
        // The handle of something else.
        (event.cast(), CONTEXT_IS_DESTROYED),
    ] {
        let (mut has, mut context, mut stream) = (CUdevResource::default(), null_mut(), null_mut());
        let codes = unsafe {
            [
                raw.cuGreenCtxGetDevResource.unwrap()(bad, &mut has, SM),
                raw.cuCtxFromGreenCtx.unwrap()(&mut context, bad),
                raw.cuGreenCtxRecordEvent.unwrap()(bad, event),
                raw.cuGreenCtxWaitEvent.unwrap()(bad, event),
                raw.cuGreenCtxStreamCreate.unwrap()(&mut stream, bad, 1, 0),
                raw.cuGreenCtxDestroy.unwrap()(bad),
            ]
        };
        assert_eq!(codes.map(|code| code.0), [expected; 6], "{bad:?}");
    }
}
