//! Virtual memory: reserved addresses, memory without an address, and maps.

use std::ffi::c_void;
use std::ptr::null;

use cuda_events::sys::*;
use cuda_soft_driver::abi::{
    CUmemAccessDesc, CUmemAllocationProp, CUmemAllocationType, CUmemLocationType,
};

use crate::memory::on_device;
use crate::raw::{NON_BLOCKING, Rig, code_text, must};
use crate::rules;

/// The granularity of the card that was measured.
const PIECE: usize = 2 << 20;
const NONE: u32 = 0;
const READ: u32 = 1;
const READ_WRITE: u32 = 3;

fn available() -> Result<(), String> {
    if cfg!(target_os = "linux") {
        Ok(())
    } else {
        Err("the software driver has it on Linux".into())
    }
}

fn props(rig: &Rig) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: on_device(rig.device),
        ..CUmemAllocationProp::default()
    }
}

fn reserve(rig: &Rig, pieces: usize) -> CUdeviceptr {
    let mut address = 0;
    let code = rig.cuMemAddressReserve(&mut address, pieces * PIECE, 0, 0, 0);
    must("cuMemAddressReserve", code);
    address
}

fn create(rig: &Rig) -> u64 {
    let mut handle = 0;
    must!(rig.cuMemCreate(&mut handle, PIECE, &props(rig), 0));
    handle
}

fn map(rig: &Rig, address: CUdeviceptr, handle: u64) {
    must!(rig.cuMemMap(address, PIECE, 0, handle, 0));
}

fn set_access(rig: &Rig, address: CUdeviceptr, pieces: usize, flags: u32) -> CUresult {
    let access = CUmemAccessDesc { location: props(rig).location, flags };
    rig.cuMemSetAccess(address, pieces * PIECE, &access, 1)
}

/// One piece of memory at new addresses, for all accesses.
fn mapped(rig: &Rig) -> (CUdeviceptr, u64) {
    let (address, handle) = (reserve(rig, 1), create(rig));
    map(rig, address, handle);
    must("cuMemSetAccess", set_access(rig, address, 1, READ_WRITE));
    (address, handle)
}

fn load(rig: &Rig, address: CUdeviceptr) -> String {
    let mut byte = 0_u8;
    match rig.cuMemcpyDtoH_v2((&raw mut byte).cast(), address, 1) {
        CUresult::CUDA_SUCCESS => byte.to_string(),
        code => code_text(code),
    }
}

rules! {
    /// Sizes of reservations are multiples of the granularity, and alignments powers of two. An
    /// address that is asked for need not be given. A reservation is given back as a whole.
    [needs(available)]
    fn reservations(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from less, more, nothing, an alignment of 3, a flag, an \
         odd address; success from of 4 KiB, of 1 GiB, an address that is taken, a tebibyte; \
         CUDA_ERROR_OUT_OF_MEMORY (2) from 128 of them; CUDA_ERROR_INVALID_VALUE (1) from the \
         first half, the second half, again; success from the whole"
    {
        let reserve_with = |bytes, alignment, wanted, flags| {
            rig.cuMemAddressReserve(&mut 0, bytes, alignment, wanted, flags)
        };
        let taken = reserve(rig, 2);
        saw.codes(&[
            ("less", reserve_with(PIECE / 2, 0, 0, 0)),
            ("more", reserve_with(3 * PIECE / 2, 0, 0, 0)),
            ("nothing", reserve_with(0, 0, 0, 0)),
            ("an alignment of 3", reserve_with(PIECE, 3, 0, 0)),
            ("of 4 KiB", reserve_with(PIECE, 4096, 0, 0)),
            ("of 1 GiB", reserve_with(PIECE, 1 << 30, 0, 0)),
            ("a flag", reserve_with(PIECE, 0, 0, 1)),
            ("an address that is taken", reserve_with(PIECE, 0, taken, 0)),
            ("an odd address", reserve_with(PIECE, 0, taken + 12345, 0)),
            ("a tebibyte", reserve_with(1 << 40, 0, 0, 0)),
            ("128 of them", reserve_with(1 << 47, 0, 0, 0)),
        ]);
        saw.codes(&[
            ("the first half", rig.cuMemAddressFree(taken, PIECE)),
            ("the second half", rig.cuMemAddressFree(taken + PIECE as u64, PIECE)),
            ("the whole", rig.cuMemAddressFree(taken, 2 * PIECE)),
            ("again", rig.cuMemAddressFree(taken, 2 * PIECE)),
        ]);
    }

    /// Memory without an address has a size that is a multiple of the granularity.
    [needs(available)]
    fn memory(rig, saw) =
        "granularity 2097152; CUDA_ERROR_INVALID_VALUE (1) from less, nothing, a flag, no \
         properties, no kind, no place, a second one; CUDA_ERROR_OUT_OF_MEMORY (2) from a \
         tebibyte; CUDA_ERROR_INVALID_DEVICE (101) from no such device; success from the \
         properties, the release"
    {
        let mut granularity = 0;
        must!(rig.cuMemGetAllocationGranularity(&mut granularity, &props(rig), 0));
        saw.text(format_args!("granularity {granularity}"));
        let with = |bytes, change: fn(&mut CUmemAllocationProp), flags| {
            let mut props = props(rig);
            change(&mut props);
            rig.cuMemCreate(&mut 0, bytes, &props, flags)
        };
        let handle = create(rig);
        saw.codes(&[
            ("less", with(PIECE / 2, |_| {}, 0)),
            ("nothing", with(0, |_| {}, 0)),
            ("a flag", with(PIECE, |_| {}, 1)),
            ("no properties", rig.cuMemCreate(&mut 0, PIECE, null(), 0)),
            ("a tebibyte", with(1 << 40, |_| {}, 0)),
            (
                "no kind",
                with(
                    PIECE,
                    |props| props.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_INVALID,
                    0,
                ),
            ),
            (
                "no place",
                with(
                    PIECE,
                    |props| {
                        props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID;
                    },
                    0,
                ),
            ),
            ("no such device", with(PIECE, |props| props.location.id = 99, 0)),
            ("the properties", rig.cuMemGetAllocationPropertiesFromHandle(&mut props(rig), handle)),
            ("the release", rig.cuMemRelease(handle)),
            ("a second one", rig.cuMemRelease(handle)),
        ]);
    }

    /// Mapped memory can be used once the device has access to it, and then as that says.
    [needs(available)]
    fn access(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from memset, copy to it, copy from it; \
         CUDA_ERROR_INVALID_VALUE (1) from memset, copy to it, copy from it; access 1; \
         CUDA_ERROR_INVALID_VALUE (1) from memset, copy to it; success from copy from it; \
         access 3; success from memset, copy to it, copy from it; access 0; \
         CUDA_ERROR_INVALID_VALUE (1) from memset, copy to it, copy from it"
    {
        let address = reserve(rig, 1);
        let calls = |saw: &crate::rules::Saw| {
            let mut byte = 1_u8;
            let place: *mut c_void = (&raw mut byte).cast();
            saw.codes(&[
                ("memset", rig.cuMemsetD8_v2(address, 1, 1)),
                ("copy to it", rig.cuMemcpyHtoD_v2(address, place, 1)),
                ("copy from it", rig.cuMemcpyDtoH_v2(place, address, 1)),
            ]);
        };
        calls(saw);
        map(rig, address, create(rig));
        calls(saw);
        for flags in [READ, READ_WRITE, NONE] {
            must("cuMemSetAccess", set_access(rig, address, 1, flags));
            let (mut now, location) = (77, props(rig).location);
            must!(rig.cuMemGetAccess(&mut now, &location, address));
            saw.text(format_args!("access {now}"));
            calls(saw);
        }
    }

    /// `cuMemUnmap` does not wait for work that uses the memory. That work then fails.
    // The missing order is what it asks about.
    [needs(available), settings("order=off"), alone]
    fn unmapping_under_use(rig, saw) =
        "success; the stream CUDA_ERROR_LAUNCH_FAILED (719)"
    {
        let (address, _) = mapped(rig);
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        must!(rig.cuMemsetD8Async(address, 1, 64, stream));
        saw.text(code_text(rig.cuMemUnmap(address, PIECE)));
        latch.release();
        saw.text(format_args!("the stream {}", code_text(rig.cuStreamSynchronize(stream))));
    }

    /// Work uses what is mapped when its stream gets there.
    [needs(available)]
    fn mapping_anew_under_use(rig, saw) =
        "the stream success; the other memory has 1"
    {
        let (address, _) = mapped(rig);
        let other = create(rig);
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        must!(rig.cuMemsetD8Async(address, 1, 64, stream));
        must!(rig.cuMemUnmap(address, PIECE));
        map(rig, address, other);
        must("cuMemSetAccess", set_access(rig, address, 1, READ_WRITE));
        latch.release();
        saw.text(format_args!("the stream {}", code_text(rig.cuStreamSynchronize(stream))));
        saw.text(format_args!("the other memory has {}", load(rig, address)));
    }

    /// Work may be about several maps, one after the other, and one memory may be mapped twice. A
    /// call for a range takes whole maps, and the memory lasts as long as it is mapped.
    [needs(available), since(11, 0)]
    fn several_maps(rig, saw) =
        "CUDA_ERROR_INVALID_VALUE (1) from over another map, and to what is not mapped, past \
         the end; success from access to two maps, to the second map, a memset of both; \
         success from retain; the same handle; the second map has 7; CUDA_ERROR_INVALID_VALUE \
         (1) from a part, cuMemFree; success from with a hole, giving back"
    {
        let (one, other) = (reserve(rig, 3), reserve(rig, 1));
        let handles = [create(rig), create(rig)];
        let at = |piece: usize| one + (piece * PIECE) as u64;
        map(rig, at(0), handles[0]);
        map(rig, at(1), handles[1]);
        map(rig, other, handles[1]);
        saw.codes(&[
            ("over another map", rig.cuMemMap(at(1), PIECE, 0, handles[0], 0)),
            ("access to two maps", set_access(rig, at(0), 2, READ_WRITE)),
            ("and to what is not mapped", set_access(rig, at(0), 3, READ_WRITE)),
            ("to the second map", set_access(rig, other, 1, READ_WRITE)),
            ("a memset of both", rig.cuMemsetD8_v2(at(1) - 32, 7, 64)),
            ("past the end", rig.cuMemsetD8_v2(at(2) - 32, 7, 64)),
        ]);
        let mut handle = 0;
        let pointer = std::ptr::with_exposed_provenance_mut::<c_void>(at(1) as usize + 5);
        saw.codes(&[("retain", rig.cuMemRetainAllocationHandle(&mut handle, pointer))]);
        saw.text(if handle == handles[1] { "the same handle" } else { "another handle" });
        for handle in [handles[0], handles[1], handle] {
            must!(rig.cuMemRelease(handle));
        }
        saw.text(format_args!("the second map has {}", load(rig, other)));
        saw.codes(&[
            ("a part", rig.cuMemUnmap(at(0), PIECE / 2)),
            ("with a hole", rig.cuMemUnmap(at(0), 3 * PIECE)),
            ("giving back", rig.cuMemAddressFree(one, 3 * PIECE)),
            ("cuMemFree", rig.cuMemFree_v2(at(0))),
        ]);
    }
}
