//! Copies and memsets.

use super::later::Work;
use super::*;

/// A copy or a memset that is about to be made.
struct Before {
    stream: StreamId,
    places: [Place; 2],
    /// Of what the host may see.
    place: Option<u64>,
    /// Whether it writes a word that counts as seen at once.
    is_seen: bool,
    /// The value that it writes to a word.
    content: Option<u64>,
    awaited: Awaited,
}

impl Before {
    fn seen(&self) -> Visible {
        let places = self.place.into_iter().collect();
        Visible { stream: self.stream, places, at_once: self.is_seen }
    }
}

/// What the function's name says about a side of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Device,
    Host,
    Any,
    /// An array, which is no memory that has an address.
    Array,
}

/// Where a copy reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Device,
    Pinned,
    /// Memory of the host from a pool or a map. The host may have no access yet, so it is never
    /// looked at.
    Mapped,
    Managed,
    /// Ordinary memory of the program.
    Pageable,
}

impl Place {
    fn is_on_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Mapped | Self::Pageable)
    }
}

/// One side of a copy.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    side: Side,
    address: Address,
    pitch: usize,
    slice: usize,
}

impl Block {
    fn at(side: Side, address: Address) -> Self {
        Self { side, address, pitch: 0, slice: 0 }
    }

    pub(crate) fn device(address: Address) -> Self {
        Self::at(Side::Device, address)
    }

    pub(crate) fn host(address: Address) -> Self {
        Self::at(Side::Host, address)
    }

    pub(crate) fn array() -> Self {
        Self::at(Side::Array, 0)
    }

    /// The function's name does not say where it is.
    pub(crate) fn any(address: Address) -> Self {
        Self::at(Side::Any, address)
    }

    pub(crate) fn rows(address: Address, pitch: usize) -> Self {
        Self { pitch, ..Self::device(address) }
    }
}

/// The bytes of a row, the rows of a layer, and the layers.
type Extent = [usize; 3];

/// The accesses of a block.
fn accesses(block: Block, extent: Extent, access: fn(u64, u64) -> Access) -> Vec<Access> {
    if block.side == Side::Array {
        return Vec::new();
    }
    let [width, height, depth] = extent.map(|it| it as u64);
    let (pitch, slice) = (block.pitch as u64, block.slice as u64);
    let layer = |layer: u64| {
        let address = block.address.wrapping_add(layer.wrapping_mul(slice));
        access(address, width).rows(height, Stride { width, pitch: pitch.max(width) })
    };
    (0..depth).map(layer).collect()
}

/// What a copy accesses, in the order of the driver's own checker, as reports name the nearest
/// access.
fn both([to, from]: [Block; 2], extent: Extent, rows: bool) -> Vec<Access> {
    let (writes, reads) =
        (accesses(to, extent, Access::write), accesses(from, extent, Access::read));
    match rows {
        false => reads.into_iter().chain(writes).collect(),
        true => writes.into_iter().chain(reads).collect(),
    }
}

/// What a copy node accesses.
pub(super) fn copied_rows(copy: &Copy3D) -> Vec<Access> {
    both([copy.to.block(), copy.from.block()], copy.extent, true)
}

/// What a memset writes.
pub(super) fn set_rows(to: Block, extent: Extent, (value, element): (u32, usize)) -> Vec<Access> {
    let content = repeated(value, element);
    accesses(to, extent, Access::write).into_iter().map(|write| write.filled(content)).collect()
}

impl Watch {
    fn side(&self, side: Side, address: Address) -> Place {
        match (self.feed.memory(address), side) {
            (Some(Memory::Host), _) => Place::Pinned,
            (Some(Memory::Managed), _) => Place::Managed,
            (Some(Memory::Exported), _) => self.asked(address).unwrap_or(Place::Device),
            (Some(_), _) | (None, Side::Device | Side::Array) => Place::Device,
            (None, Side::Host) => Place::Pageable,
            (None, Side::Any) => self.asked(address).unwrap_or(Place::Pageable),
        }
    }

    /// Where the driver says that an address is; `None` if it does not know the address.
    fn asked(&self, address: Address) -> Option<Place> {
        /// `CU_MEMORYTYPE_HOST`.
        const HOST: u32 = 1;
        let ask = self.questions.attribute?;
        let (mut kind, mut managed): (u32, u32) = (0, 0);
        // SAFETY: places for CU_POINTER_ATTRIBUTE_IS_MANAGED and CU_POINTER_ATTRIBUTE_MEMORY_TYPE.
        let code = unsafe {
            ask((&raw mut managed).cast(), 8, address);
            ask((&raw mut kind).cast(), 2, address)
        };
        (code == OK).then_some(match kind {
            _ if managed != 0 => Place::Managed,
            HOST => Place::Mapped,
            _ => Place::Device,
        })
    }

    /// Who can read memory that a pool or a map has given. What is not plainly of a device counts
    /// as memory that others see at any time, and each copy asks anew where it is.
    pub(super) fn given(&self, address: Address) -> Memory {
        match self.asked(address) {
            None if self.questions.attribute.is_none() => Memory::Device,
            Some(Place::Device) => Memory::Device,
            _ => Memory::Exported,
        }
    }

    fn before_copy(
        &mut self,
        call: &Call,
        [to, from]: [Block; 2],
        extent: Extent,
        stream: Handle,
    ) -> Before {
        let stream = self.stream(call, stream);
        let places = [to, from].map(|block| self.side(block.side, block.address));
        let bytes = extent.iter().product::<usize>() as u64;
        let one = extent[1..] == [1, 1];
        if one {
            self.find_stored(to.address, bytes);
        }
        let flag = self.before_write(to.address, bytes).filter(|_| one);
        let place = self.place_of(stream, flag);
        let word = bytes <= 8 && one;
        let is_seen = word
            && place.is_none()
            && matches!(places[0], Place::Managed | Place::Mapped | Place::Pinned)
            && self.feed.capture_of(stream).is_none();
        let content = match places[1] {
            Place::Pinned if word && self.pinned.may_be_read(from.address) => {
                Some(load(Cell { address: from.address, bytes: bytes as u8 }))
            }
            // The driver has not looked whether it can be read.
            Place::Pageable if word => table::read(from.address as usize, bytes as usize),
            _ => None,
        };
        let awaited = self.feed.await_stream(stream);
        Before { stream, places, place, is_seen, content, awaited }
    }

    /// The contexts of the other device, if the legacy stream copies from one to the other.
    fn other_device(&mut self, blocks: [Block; 2]) -> Option<Vec<Handle>> {
        /// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
        const DEVICE: c_uint = 9;
        let mut all = self.contexts.values();
        let first = all.next()?;
        if all.all(|of| of == first) {
            return None;
        }
        let ask = self.questions.attribute?;
        let device = |of: Block| {
            let mut device = 0_i32;
            // SAFETY: a place for the attribute.
            let code = unsafe { ask((&raw mut device).cast(), DEVICE, of.address) };
            (code == OK && self.side(of.side, of.address) == Place::Device).then_some(device)
        };
        let [to, from] = blocks.map(device);
        let two = [to?, from?];
        let (_, own) = self.current();
        let is_other = |device: i32| two.contains(&device) && device != own;
        let others = self.contexts.iter().filter(|(of, device)| **of != 0 && is_other(**device));
        (two[0] != two[1]).then(|| others.map(|(context, _)| *context).collect())
    }

    fn copied(&mut self, before: &Before, [to, from]: [Block; 2], extent: Extent, rows: bool) {
        let Before { stream, places, place, content, .. } = before;
        let mut all = both([to, from], extent, rows);
        if self.feed.capture_of(*stream).is_none() {
            if places[1] == Place::Pageable {
                self.feed.pageable(&accesses(from, extent, Access::read));
                all.retain(|access| access.kind == AccessKind::Write);
            }
            if places[0] == Place::Pageable {
                self.feed.pageable(&accesses(to, extent, Access::write));
            }
            if let Some(content) = content {
                let writes = all.iter_mut().filter(|access| access.kind == AccessKind::Write);
                writes.for_each(|write| *write = write.clone().filled(*content));
            }
        }
        self.wrote(*stream, *place, &all);
    }

    /// A copy or a memset is submitted.
    pub(super) fn wrote(&mut self, stream: StreamId, place: Option<u64>, all: &[Access]) {
        self.seen.copies += 1;
        if let Some(write) = all.iter().find(|access| access.kind == AccessKind::Write) {
            let range = &write.range;
            self.feed.forget_words(range.start, range.end - range.start);
            self.node(stream, Node::Write(write.clone()));
        }
        self.feed.write(stream, place, all);
        self.submitted(stream, all);
    }

    fn reached_stream(&mut self, stream: StreamId) {
        let awaited = self.feed.await_stream(stream);
        self.feed.reached(&awaited);
    }
}

pub(crate) fn copy(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    extent: Extent,
    stream: Option<Handle>,
) -> Code {
    submit(call, real, blocks, (extent, false), stream)
}

/// Whether the host has no part in it.
fn only_on_device<const N: usize>(blocks: [Block; N]) -> bool {
    let device = |watch: &mut Watch| {
        let is = |of: &Block| watch.side(of.side, of.address) == Place::Device;
        watch.only_submits() && blocks.iter().all(is)
    };
    enter(device).unwrap_or(false)
}

fn later(
    call: &Call,
    real: impl FnOnce() -> Code,
    stream: Handle,
    accesses: impl FnOnce() -> Vec<Access>,
) -> Code {
    let code = real();
    if code == OK {
        enter(|watch| watch.later(call, call.name, stream, true, |_| Work::Write(accesses())));
    }
    code
}

fn submit(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    (extent, rows): (Extent, bool),
    stream: Option<Handle>,
) -> Code {
    if extent.contains(&0) {
        return real();
    }
    let handle = stream.unwrap_or(0);
    let is_legacy = handle <= 1 && call.thread_of_default(handle) == 0;
    let others = match is_legacy {
        true => enter(|watch| watch.other_device(blocks)).flatten(),
        false => None,
    };
    if others.is_none() && stream.is_some() && only_on_device(blocks) {
        return later(call, real, handle, || both(blocks, extent, rows));
    }
    let before = |watch: &mut Watch| watch.before_copy(call, blocks, extent, handle);
    around_seen(call, before, real, Before::seen, move |watch, before| {
        // It is in the legacy streams of both devices, as two H200s have shown.
        let others: Vec<StreamId> =
            others.into_iter().flatten().map(|context| watch.legacy_stream(context)).collect();
        for legacy in &others {
            watch.feed.stream_waits_for_stream(before.stream, *legacy);
        }
        watch.copied(&before, blocks, extent, rows);
        for legacy in &others {
            watch.feed.stream_waits_for_stream(*legacy, before.stream);
        }
        if watch.feed.capture_of(before.stream).is_some() {
            return;
        }
        let on_host = before.places.into_iter().all(Place::is_on_host);
        let waits = before.places[0] == Place::Pageable || on_host;
        match before.places {
            _ if waits => watch.reached_stream(before.stream),
            _ if stream.is_some() => {}
            [Place::Device, Place::Device] => {}
            [Place::Device, Place::Pageable] => watch.feed.reached(&before.awaited),
            _ => watch.reached_stream(before.stream),
        }
    })
}

/// A side of `CUDA_MEMCPY2D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side2D {
    x: usize,
    y: usize,
    kind: u32,
    host: Handle,
    device: Address,
    array: Handle,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy2D {
    from: Side2D,
    to: Side2D,
    width: usize,
    height: usize,
}

/// A side of `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Side3D {
    x: usize,
    y: usize,
    z: usize,
    lod: usize,
    kind: u32,
    host: Handle,
    device: Address,
    array: Handle,
    /// Only copies between contexts have it.
    context: Handle,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Copy3D {
    from: Side3D,
    to: Side3D,
    extent: Extent,
}

const _: () = assert!(size_of::<Copy2D>() == 128 && size_of::<Copy3D>() == 200);

impl From<Copy2D> for Copy3D {
    fn from(copy: Copy2D) -> Self {
        let side = |Side2D { x, y, kind, host, device, array, pitch }: Side2D| Side3D {
            x,
            y,
            kind,
            host,
            device,
            array,
            pitch,
            ..Side3D::default()
        };
        Self { from: side(copy.from), to: side(copy.to), extent: [copy.width, copy.height, 1] }
    }
}

impl Side3D {
    /// Where it is; nowhere for an array.
    fn block(&self) -> Block {
        let (side, address) = match self.kind {
            1 => (Side::Host, self.host as u64),
            2 => (Side::Device, self.device),
            4 => (Side::Any, self.device),
            _ => return Block::array(),
        };
        let slice = self.pitch * self.height;
        let address = address + (self.x + self.y * self.pitch + self.z * slice) as u64;
        Block { side, address, pitch: self.pitch, slice }
    }
}

pub(crate) fn rows<T: Copy + Default + Into<Copy3D>>(
    call: &Call,
    real: impl FnOnce() -> Code,
    of: *const T,
    stream: Option<Handle>,
) -> Code {
    // SAFETY: NULL or the program's description.
    let of: Copy3D = unsafe { read(of) }.into();
    submit(call, real, [of.to.block(), of.from.block()], (of.extent, true), stream)
}

/// Copies of a batch.
type Copies = Vec<([Block; 2], Extent)>;

pub(crate) fn batch(
    call: &Call,
    real: impl FnOnce() -> Code,
    [to, from]: [*const Address; 2],
    bytes: *const usize,
    count: usize,
    stream: Handle,
) -> Code {
    let count = if to.is_null() || from.is_null() || bytes.is_null() { 0 } else { count };
    let copy = |at: usize| {
        // SAFETY: the program's lists, of so many.
        let [to, from, bytes] =
            unsafe { [to.add(at).read(), from.add(at).read(), bytes.add(at).read() as u64] };
        ([Block::any(to), Block::any(from)], [bytes as usize, 1, 1])
    };
    submit_all(call, real, (0..count).map(copy).collect(), false, stream)
}

/// Copies that are submitted together. They count as one after the other, so a conflict between two
/// of them is not seen.
fn submit_all(
    call: &Call,
    real: impl FnOnce() -> Code,
    mut all: Copies,
    rows: bool,
    stream: Handle,
) -> Code {
    all.retain(|(_, extent)| !extent.contains(&0));
    let before = |watch: &mut Watch| -> Vec<(Before, [Block; 2], Extent)> {
        let before = |(blocks, extent): &([Block; 2], Extent)| {
            (watch.before_copy(call, *blocks, *extent, stream), *blocks, *extent)
        };
        let mut all: Vec<_> = all.iter().map(before).collect();
        for (before, ..) in &mut all {
            let had = before.place.is_some();
            watch.keep_pending(&mut before.place);
            before.is_seen |= had && before.place.is_none();
        }
        all
    };
    let seen = |all: &Vec<(Before, [Block; 2], Extent)>| Visible {
        stream: all.first().map_or(StreamId(0), |(before, ..)| before.stream),
        places: all.iter().filter_map(|(before, ..)| before.place).collect(),
        at_once: all.iter().any(|(before, ..)| before.is_seen),
    };
    around_seen(call, before, real, seen, move |watch, all| {
        for (before, blocks, extent) in &all {
            watch.copied(before, *blocks, *extent, rows);
        }
        let waits = all.iter().find(|(of, ..)| of.places[0] == Place::Pageable);
        if let Some((Before { stream, .. }, ..)) = waits
            && watch.feed.capture_of(*stream).is_none()
        {
            watch.reached_stream(*stream);
        }
    })
}

/// `CUmemcpy3DOperand`: an address, the elements of a row and the rows of a layer, or an array.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Operand {
    kind: c_uint,
    of: [usize; 4],
}

/// `CUDA_MEMCPY3D_BATCH_OP`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct BatchCopy {
    from: Operand,
    to: Operand,
    /// In elements.
    extent: Extent,
    settings: [c_uint; 2],
}

const _: () = assert!(size_of::<Operand>() == 40 && size_of::<BatchCopy>() == 112);

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Array {
    sizes: [usize; 3],
    format: c_uint,
    channels: c_uint,
    flags: c_uint,
}

impl Array {
    /// The bytes of an element, of the formats that do not compress.
    fn element(&self) -> Option<usize> {
        let channel = match self.format {
            1 | 8 => 1,
            2 | 9 | 0x10 => 2,
            3 | 0xa | 0x20 => 4,
            _ => return None,
        };
        Some(channel * self.channels as usize)
    }
}

impl Operand {
    fn array(&self) -> Option<Handle> {
        (self.kind == 2).then_some(self.of[0])
    }

    fn block(&self, element: usize, [width, height, _]: Extent) -> Block {
        let [address, row, layer, _] = self.of;
        if self.array().is_some() {
            return Block::array();
        }
        let pitch = element.saturating_mul(if row == 0 { width } else { row });
        let slice = pitch.saturating_mul(if layer == 0 { height } else { layer });
        Block { pitch, slice, ..Block::any(address as Address) }
    }
}

impl Watch {
    /// A copy of a batch in bytes, if it is known how many an element has.
    fn in_bytes(&self, of: &BatchCopy) -> Option<([Block; 2], Extent)> {
        let element = match of.to.array().or(of.from.array()) {
            None => 1,
            Some(array) => {
                let mut answer = Array::default();
                // SAFETY: an array of the program's, and a place for the answer.
                let code = unsafe { self.questions.array?(&mut answer, array) };
                answer.element().filter(|_| code == OK)?
            }
        };
        let [width, height, depth] = of.extent;
        let blocks = [of.to, of.from].map(|side| side.block(element, of.extent));
        Some((blocks, [width.saturating_mul(element), height, depth]))
    }
}

pub(crate) fn batch_rows(
    call: &Call,
    real: impl FnOnce() -> Code,
    first: *const BatchCopy,
    count: usize,
    stream: Handle,
) -> Code {
    let count = if first.is_null() { 0 } else { count };
    let copies = |watch: &mut Watch| -> Option<Copies> {
        // SAFETY: the program's list, of so many.
        (0..count).map(|at| watch.in_bytes(&unsafe { first.add(at).read() })).collect()
    };
    if let Some(all) = enter(copies).flatten() {
        return submit_all(call, real, all, true, stream);
    }
    begin(call, |watch| {
        watch.seen.formats += 1;
        watch.order_everything();
        watch.note_captures();
    });
    real()
}

/// It comes after all work of the contexts, and before all their later work.
pub(crate) fn peer(
    call: &Call,
    real: impl FnOnce() -> Code,
    blocks: [Block; 2],
    extent: Extent,
    [to, from]: [Handle; 2],
) -> Code {
    let before =
        |watch: &mut Watch| (watch.before_copy(call, blocks, extent, 0), watch.current().0);
    let seen = |(before, _): &(Before, Handle)| before.seen();
    around_seen(call, before, real, seen, move |watch, (before, current)| {
        let mut contexts = vec![to, from, current];
        // One side may be memory of the host.
        contexts.retain(|context| *context != 0);
        contexts.sort_unstable();
        contexts.dedup();
        let contexts: Vec<_> = contexts.iter().map(|of| ContextId(*of as u64)).collect();
        watch.feed.stream_waits_for_contexts(before.stream, &contexts);
        watch.copied(&before, blocks, extent, true);
        watch.feed.contexts_wait_for_stream(&contexts, before.stream);
        if before.places.into_iter().any(Place::is_on_host) {
            watch.reached_stream(before.stream);
        }
    })
}

pub(crate) fn peer_rows(call: &Call, real: impl FnOnce() -> Code, of: *const Copy3D) -> Code {
    // SAFETY: NULL or the program's description.
    let Copy3D { from, to, extent } = unsafe { read(of) };
    peer(call, real, [to.block(), from.block()], extent, [to.context, from.context])
}

/// A value of so many bytes, until it has eight.
fn repeated(value: u32, width: usize) -> u64 {
    let bytes = value.to_le_bytes();
    u64::from_le_bytes(core::array::from_fn(|at| {
        bytes.get(at % width.clamp(1, 4)).copied().unwrap_or_default()
    }))
}

pub(crate) fn set(
    call: &Call,
    real: impl FnOnce() -> Code,
    to: Block,
    (value, element): (u32, usize),
    [count, height]: [usize; 2],
    stream: Option<Handle>,
) -> Code {
    let extent = [element.saturating_mul(count), height, 1];
    if extent.contains(&0) {
        return real();
    }
    if let Some(stream) = stream
        && only_on_device([to])
    {
        return later(call, real, stream, || set_rows(to, extent, (value, element)));
    }
    let before = |watch: &mut Watch| watch.before_copy(call, [to, to], extent, stream.unwrap_or(0));
    around_seen(call, before, real, Before::seen, move |watch, before| {
        watch.wrote(before.stream, before.place, &set_rows(to, extent, (value, element)));
        if stream.is_none() && before.places[0] != Place::Device {
            watch.reached_stream(before.stream);
        }
    })
}
