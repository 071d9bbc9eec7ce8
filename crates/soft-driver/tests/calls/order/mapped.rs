//! Memory that is mapped at reserved addresses.

use cuda_events::sys::*;
use cuda_events_test_support::aside;
use cuda_events_test_support::planted::*;

use super::each;
use crate::common::*;

const BYTES: usize = 2 << 20;

/// The properties of a device's memory, and the access of a device: `CUmemAllocationProp` and
/// `CUmemAccessDesc`.
const PROPS: [u64; 4] = [1, 1, 0, 0];
const ACCESS: [u32; 3] = [1, 0, 3];

/// Addresses for two pieces of memory, with both mapped one after the other.
struct Mapped {
    address: CUdeviceptr,
    memory: [u64; 2],
}

impl Mapped {
    fn new(p: &Desk<'_>) -> Self {
        let raw = p.raw;
        let (mut address, mut memory) = (0, [0; 2]);
        assert_eq!(
            call!(raw, cuMemAddressReserve(&mut address => *mut CUdeviceptr,
            2 * BYTES => usize, 0 => usize, 0 => CUdeviceptr, 0 => u64)),
            OK
        );
        for one in &mut memory {
            assert_eq!(
                call!(raw, cuMemCreate(one => *mut u64, BYTES => usize,
                PROPS.as_ptr() => *const u64, 0 => u64)),
                OK
            );
        }
        let new = Self { address, memory };
        new.map(p, 0, new.memory[0]);
        new.map(p, 1, new.memory[1]);
        new
    }

    fn at(&self, half: usize) -> CUdeviceptr {
        self.address + (half * BYTES) as CUdeviceptr
    }

    fn map(&self, p: &Desk<'_>, half: usize, memory: u64) {
        let raw = p.raw;
        assert_eq!(
            call!(raw, cuMemMap(self.at(half) => CUdeviceptr, BYTES => usize, 0 => usize,
            memory => u64, 0 => u64)),
            OK
        );
        assert_eq!(
            call!(raw, cuMemSetAccess(self.at(half) => CUdeviceptr, BYTES => usize,
            ACCESS.as_ptr() => *const u32, 1 => usize)),
            OK
        );
    }

    fn unmap(&self, p: &Desk<'_>, half: usize) -> u64 {
        let raw = p.raw;
        let code = call!(raw, cuMemUnmap(self.at(half) => CUdeviceptr, BYTES => usize));
        p.number(CUresult(code))
    }

    fn end(self, p: &Desk<'_>) {
        let raw = p.raw;
        raw.sync(p.a);
        raw.sync(p.b);
        assert_eq!(call!(raw, cuMemUnmap(self.address => CUdeviceptr, 2 * BYTES => usize)), OK);
        for one in self.memory {
            assert_eq!(call!(raw, cuMemRelease(one => u64)), OK);
        }
        let freed = call!(raw, cuMemAddressFree(self.address => CUdeviceptr, 2 * BYTES => usize));
        assert_eq!(freed, OK);
    }
}

const ROWS: &[Row] = &[
    ("memory is mapped anew while a stream uses it", RACE, |p| {
        let mapped = Mapped::new(p);
        let one = p.set(p.a, mapped.at(0), 64);
        if p.mended {
            p.raw.sync(p.a);
        }
        let two = mapped.unmap(p, 0);
        mapped.map(p, 0, mapped.memory[0]);
        mapped.end(p);
        (one, two)
    }),
    ("two streams set bytes of two mappings", RACE, |p| {
        let mapped = Mapped::new(p);
        let one = p.set(p.a, mapped.at(1) - 32, 64);
        if p.mended {
            p.joined(p.a, p.b);
        }
        let two = p.set(p.b, mapped.at(1), 64);
        mapped.end(p);
        (one, two)
    }),
];

#[test]
fn mapped_memory_is_checked() {
    aside!();
    for (kind, begins, program) in ROWS {
        each(&Raw::planting(builder(0)), 0, kind, begins, program);
    }
}
