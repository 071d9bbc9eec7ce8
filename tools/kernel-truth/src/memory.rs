//! The program's memory on the device: which allocations there are, copies of them, and what differs.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::Mutex;

use crate::driver::{Code, Driver, Handle};

/// Sizes by addresses, as the program asked for them.
static ALLOCATIONS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

pub fn allocated(address: u64, size: u64) {
    if let Ok(mut all) = ALLOCATIONS.lock() {
        all.insert(address, size);
    }
}

pub fn freed(address: u64) {
    if let Ok(mut all) = ALLOCATIONS.lock() {
        all.remove(&address);
    }
}

/// More than this is not copied.
const MOST: u64 = 12 << 30;
/// Of more bytes that differ only the blocks are named.
const MOST_EXACT: u64 = 256 << 20;
const BLOCK: u64 = 256;

/// Two kernels of our own. `fill` writes a number that is made from each byte's address, as `mark`
/// does; `differ` flags each block of 256 bytes in which a byte differs from `other`, except, if
/// `first` is not 0, bytes that are as `fill` left them where `first` and `other` are the same.
const PTX: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry truth_fill(.param .u64 at, .param .u64 size)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d0, %r0, %r1;
    cvt.u64.u32 %d1, %r2;
    add.u64 %d0, %d0, %d1;
    ld.param.u64 %d2, [size];
    setp.ge.u64 %p0, %d0, %d2;
    @%p0 bra END;
    ld.param.u64 %d3, [at];
    add.u64 %d3, %d3, %d0;
    cvt.u32.u64 %r3, %d3;
    mul.lo.u32 %r3, %r3, 0x9e3779b1;
    shr.u32 %r3, %r3, 23;
    st.global.u8 [%d3], %r3;
END:
    ret;
}
.visible .entry truth_differ(.param .u64 now, .param .u64 other, .param .u64 first, .param .u64 size, .param .u64 flags)
{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .b64 %d<12>;
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d0, %r0, %r1;
    cvt.u64.u32 %d1, %r2;
    add.u64 %d0, %d0, %d1;
    ld.param.u64 %d2, [size];
    setp.ge.u64 %p0, %d0, %d2;
    @%p0 bra END;
    ld.param.u64 %d3, [now];
    add.u64 %d3, %d3, %d0;
    ld.param.u64 %d4, [other];
    add.u64 %d4, %d4, %d0;
    ld.global.u8 %r3, [%d3];
    ld.global.u8 %r4, [%d4];
    setp.eq.u32 %p0, %r3, %r4;
    @%p0 bra END;
    ld.param.u64 %d5, [first];
    setp.eq.u64 %p1, %d5, 0;
    @%p1 bra FLAG;
    add.u64 %d5, %d5, %d0;
    ld.global.u8 %r5, [%d5];
    setp.ne.u32 %p1, %r5, %r4;
    @%p1 bra FLAG;
    cvt.u32.u64 %r6, %d3;
    mul.lo.u32 %r6, %r6, 0x9e3779b1;
    shr.u32 %r6, %r6, 23;
    and.b32 %r6, %r6, 255;
    setp.eq.u32 %p1, %r6, %r3;
    @%p1 bra END;
FLAG:
    ld.param.u64 %d6, [flags];
    shr.u64 %d7, %d0, 8;
    add.u64 %d6, %d6, %d7;
    mov.u32 %r7, 1;
    st.global.u8 [%d6], %r7;
END:
    ret;
}
\0";

/// What `truth_fill` writes at an address.
pub fn mark(address: u64) -> u8 {
    ((address as u32).wrapping_mul(0x9e37_79b1) >> 23) as u8
}

pub struct Tools {
    driver: &'static Driver,
    fill: Handle,
    differ: Handle,
    /// Address and size of buffers of our own: two copies of everything, and flags.
    buffers: [(u64, u64); 3],
}

// SAFETY: the handles are used by one thread at a time, with the context of that thread.
unsafe impl Send for Tools {}

pub type Try<T> = Result<T, String>;

pub fn check(step: &str, code: Code) -> Try<()> {
    if code == 0 { Ok(()) } else { Err(format!("{step}: error {code}")) }
}

impl Tools {
    pub fn new(driver: &'static Driver) -> Try<Self> {
        let mut module = std::ptr::null_mut();
        // SAFETY: the text ends with a zero.
        check("load", unsafe { (driver.load)(&mut module, PTX.as_ptr().cast()) })?;
        let function = |name: &std::ffi::CStr| {
            let mut function = std::ptr::null_mut();
            // SAFETY: the module was loaded just now, and is never unloaded.
            check("function", unsafe { (driver.function)(&mut function, module, name.as_ptr()) })
                .map(|()| function)
        };
        let (fill, differ) = (function(c"truth_fill")?, function(c"truth_differ")?);
        Ok(Self { driver, fill, differ, buffers: [(0, 0); 3] })
    }

    /// A buffer of our own with at least that many bytes.
    fn buffer(&mut self, which: usize, bytes: u64) -> Try<u64> {
        let Some(buffer) = self.buffers.get_mut(which) else { return Err("buffer".into()) };
        if buffer.1 < bytes {
            // SAFETY: it is ours, and nothing uses it any more: each step waits for its end.
            unsafe {
                if buffer.1 != 0 {
                    check("free", (self.driver.free)(buffer.0))?;
                }
                *buffer = (0, 0);
                let wanted = bytes.next_power_of_two().max(1 << 20);
                check("allocate", (self.driver.allocate)(&mut buffer.0, wanted as usize))?;
                buffer.1 = wanted;
            }
        }
        Ok(buffer.0)
    }

    pub fn synchronize(&self) -> Try<()> {
        // SAFETY: a context is current, as the program launches in it.
        check("synchronize", unsafe { (self.driver.synchronize)() })
    }

    fn run(&self, function: Handle, bytes: u64, values: &mut [u64]) -> Try<()> {
        let mut parameters: Vec<*mut c_void> =
            values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        let blocks = u32::try_from(bytes.div_ceil(256)).map_err(|_| "too large".to_owned())?;
        // SAFETY: our kernels have so many parameters of eight bytes, and touch only the memory
        // that they name, which the caller knows to be allocated.
        check("launch", unsafe {
            (self.driver.launch)(
                function,
                blocks,
                1,
                1,
                256,
                1,
                1,
                0,
                std::ptr::null_mut(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })?;
        self.synchronize()
    }

    /// Fills it with bytes that depend on their addresses.
    pub fn fill(&self, range: &Range<u64>) -> Try<()> {
        let size = range.end - range.start;
        if size == 0 { Ok(()) } else { self.run(self.fill, size, &mut [range.start, size]) }
    }

    pub fn set(&self, range: &Range<u64>, value: u8) -> Try<()> {
        // SAFETY: the caller knows that it is allocated.
        check("set", unsafe {
            (self.driver.set)(range.start, value, (range.end - range.start) as usize)
        })
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Try<()> {
        // SAFETY: both are allocated with that many bytes.
        check("copy", unsafe { (self.driver.copy)(to, from, bytes as usize) })
    }

    pub fn read(&self, range: &Range<u64>) -> Try<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        // SAFETY: the vector has that many bytes, and the caller knows that the memory is allocated.
        check("read", unsafe {
            (self.driver.to_host)(bytes.as_mut_ptr().cast(), range.start, bytes.len())
        })?;
        Ok(bytes)
    }

    fn own(&self, address: u64) -> bool {
        self.buffers.iter().any(|one| one.0 == address)
    }
}

/// All allocations whose contents are compared.
pub struct Allocations {
    /// Each with the place of its copy.
    all: Vec<(Range<u64>, u64)>,
    bytes: u64,
}

impl Allocations {
    /// Those that the program made, and those that `words` lie in. `Err` if they are too large.
    pub fn now(tools: &Tools, words: &[u64]) -> Try<Self> {
        let mut all: BTreeMap<u64, u64> =
            ALLOCATIONS.lock().map(|all| all.clone()).unwrap_or_default();
        all.retain(|&address, size| {
            let (mut base, mut real) = (0, 0);
            // SAFETY: the driver only looks the address up.
            let code = unsafe { (tools.driver.range)(&mut base, &mut real, address) };
            code == 0 && base == address && *size <= real as u64 && !tools.own(address)
        });
        for &word in words {
            let inside = all.range(..=word).next_back();
            if word < 1 << 20 || inside.is_some_and(|(&base, &size)| word < base + size.max(1)) {
                continue;
            }
            let (mut base, mut size) = (0, 0);
            // SAFETY: the driver only looks the address up.
            let code = unsafe { (tools.driver.range)(&mut base, &mut size, word) };
            const MEMORY_TYPE: i32 = 2;
            const DEVICE: u32 = 2;
            let mut kind = 0_u32;
            let at = std::ptr::from_mut(&mut kind).cast();
            // SAFETY: this attribute has four bytes.
            let known = unsafe { (tools.driver.pointer)(at, MEMORY_TYPE, word) };
            if code == 0 && size > 0 && known == 0 && kind == DEVICE && !tools.own(base) {
                all.insert(base, size as u64);
            }
        }
        let mut place = 0;
        let mut ranges = Vec::new();
        for (base, size) in all.into_iter().filter(|one| one.1 > 0) {
            ranges.push((base..base + size, place));
            place += size.next_multiple_of(BLOCK);
        }
        if place > MOST {
            return Err(format!("{place} bytes are allocated"));
        }
        Ok(Self { all: ranges, bytes: place })
    }

    pub fn ranges(&self) -> impl Iterator<Item = &Range<u64>> {
        self.all.iter().map(|one| &one.0)
    }

    pub fn save(&self, tools: &mut Tools, which: usize) -> Try<()> {
        let copy = tools.buffer(which, self.bytes)?;
        for (range, place) in &self.all {
            tools.copy(copy + place, range.start, range.end - range.start)?;
        }
        tools.synchronize()
    }

    pub fn restore(&self, tools: &mut Tools, which: usize) -> Try<()> {
        let copy = tools.buffer(which, self.bytes)?;
        for (range, place) in &self.all {
            tools.copy(range.start, copy + place, range.end - range.start)?;
        }
        tools.synchronize()
    }

    /// The bytes that differ from a copy, with `filled` except those that are as `fill` left them
    /// where both copies are the same. The second is how many bytes may differ that were not looked
    /// at one by one.
    pub fn differences(
        &self,
        tools: &mut Tools,
        which: usize,
        filled: Option<usize>,
    ) -> Try<(Vec<Range<u64>>, u64)> {
        let copy = tools.buffer(which, self.bytes)?;
        let first = match filled {
            Some(first) => Some(tools.buffer(first, self.bytes)?),
            None => None,
        };
        let flags = tools.buffer(2, self.bytes / BLOCK + 1)?;
        let mut found: Vec<Range<u64>> = Vec::new();
        let (mut exact, mut inexact) = (0, 0);
        tools.set(&(flags..flags + self.bytes / BLOCK + 1), 0)?;
        for (range, place) in &self.all {
            let size = range.end - range.start;
            let first = first.map_or(0, |first| first + place);
            let flags = flags + place / BLOCK;
            tools.run(tools.differ, size, &mut [range.start, copy + place, first, size, flags])?;
        }
        for (range, place) in &self.all {
            let start = flags + place / BLOCK;
            let count = (range.end - range.start).div_ceil(BLOCK);
            let flagged = tools.read(&(start..start + count))?;
            let mut block = 0;
            while let Some(next) =
                flagged.get(block..).and_then(|rest| rest.iter().position(|&flag| flag != 0))
            {
                let from = block + next;
                let rest = flagged.get(from..).unwrap_or_default();
                let count = rest.iter().position(|&flag| flag == 0).unwrap_or(rest.len());
                block = from + count;
                let (from, to) = (from as u64 * BLOCK, block as u64 * BLOCK);
                let part = range.start + from..range.end.min(range.start + to);
                let size = part.end - part.start;
                if exact + size > MOST_EXACT {
                    inexact += size;
                    continue;
                }
                exact += size;
                let now = tools.read(&part)?;
                let at = copy + place + from;
                let other = tools.read(&(at..at + size))?;
                let before = match first {
                    Some(first) => {
                        let at = first + place + from;
                        Some(tools.read(&(at..at + size))?)
                    }
                    None => None,
                };
                for (index, (byte, &was)) in now.iter().zip(&other).enumerate() {
                    let address = part.start + index as u64;
                    let same = before.as_ref().is_some_and(|before| {
                        before.get(index) == Some(&was) && *byte == mark(address)
                    });
                    if *byte == was || same {
                        continue;
                    }
                    match found.last_mut() {
                        Some(last) if last.end == address => last.end += 1,
                        _ => found.push(address..address + 1),
                    }
                }
            }
        }
        Ok((found, inexact))
    }
}
