//! The rows.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_events::sys::{CUdevResource, CUdevResourceType, CUresult, CUstream};
use cuda_events_test_support::raw::{OK, legacy};
use cuda_order_check_preload as preload;

use super::Area::{From, From1, Got, Host, To, To1};
use super::row::{Row, row};
use super::run::{Mode, Run, TESTED};
use super::{Area, Touch, reads, rows, writes};

/// Work in a stream, as far as what it touches is ordered.
const WORK: &str = "S>C C>S S>S";
/// And the call waits for it.
const WAITS: &str = "S>C C>S S>S S>H C>H";
/// Everything is ordered before everything.
const ALL: &str = "*>*";
/// The host waits for all streams.
const DEVICES: &str = "ABLPDET>H";

const HOST_KIND: u64 = 1;
const DEVICE_KIND: u64 = 2;

/// `CUDA_MEMCPY2D`: two sides of kind, x, y, address and pitch.
fn copy_2d(r: &Run, sides: [[u64; 5]; 2], extent: [u64; 2]) -> u64 {
    let side = |[kind, x, y, at, pitch]: [u64; 5]| {
        let (host, device) = if kind == HOST_KIND { (at, 0) } else { (0, at) };
        [x, y, kind, host, device, 0, pitch]
    };
    r.keep(sides.into_iter().flat_map(side).chain(extent).collect())
}

/// `CUDA_MEMCPY3D`: two sides of kind, x, y, z, address, pitch, height and context.
fn copy_3d(r: &Run, sides: [[u64; 8]; 2], extent: [u64; 3]) -> u64 {
    let side = |[kind, x, y, z, at, pitch, height, context]: [u64; 8]| {
        let (host, device) = if kind == HOST_KIND { (at, 0) } else { (0, at) };
        [x, y, z, 0, kind, host, device, 0, context, pitch, height]
    };
    r.keep(sides.into_iter().flat_map(side).chain(extent).collect())
}

/// Two layers of two rows of five bytes, which are not at the begin of anything.
fn layers(r: &Run, [to, from]: [(u64, Area, usize); 2]) -> u64 {
    let [to_context, from_context] = [to.2, from.2].map(|at| r.contexts[at].addr() as u64);
    let from = [from.0, 2, 1, 2, r.at(from.1), 8, 4, from_context];
    let to = [to.0, 1, 0, 1, r.at(to.1), 16, 3, to_context];
    copy_3d(r, [from, to], [5, 2, 2])
}

/// What such a copy touches.
fn layered(to: Area, from: Area) -> Vec<Vec<Touch>> {
    vec![
        rows(true, to, 49, [16, 2]),
        rows(true, to, 97, [16, 2]),
        rows(false, from, 74, [8, 2]),
        rows(false, from, 106, [8, 2]),
    ]
}

/// The same as a part of a batch.
fn part(r: &Run, to: Area, from: Area) -> [u64; 14] {
    let side = |at, pitch, height| [1, at, pitch, height, 0];
    let [from, to] = [side(r.at(from) + 74, 8, 4), side(r.at(to) + 49, 16, 3)];
    let mut all = [0; 14];
    all[..5].copy_from_slice(&from);
    all[5..10].copy_from_slice(&to);
    all[10..13].copy_from_slice(&[5, 2, 2]);
    all
}

/// Four rows of five bytes.
fn flat(r: &Run, [to, from]: [(u64, Area); 2]) -> u64 {
    let [from, to] = [[from.0, 1, 2, r.at(from.1), 16], [to.0, 3, 1, r.at(to.1), 32]];
    copy_2d(r, [from, to], [5, 4])
}

fn flattened(to: Area, from: Area) -> Vec<Vec<Touch>> {
    vec![rows(true, to, 35, [32, 4]), rows(false, from, 33, [16, 4])]
}

/// The parameters of a kernel: 16 addresses, each `step` after the one before it.
fn addresses(r: &Run, first: u64, step: u64) -> u64 {
    r.keep((0..16).map(|at| r.keep(vec![first + step * at])).collect())
}

/// What such a kernel touches, as far as its parameters say.
fn read_by_kernel(area: Area) -> Vec<Touch> {
    (0..16).map(|at| (false, area, 3 * at..3 * at + 1)).collect()
}

fn function(r: &Run) -> u64 {
    r.out[15].get()
}

/// A kernel whose parameters are one address.
fn kernel(r: &Run, at: u64) {
    let stream = r.a.addr() as u64;
    let parameters = addresses(r, at, 0);
    r.call("cuLaunchKernel", &[function(r), 1, 1, 1, 1, 1, 1, 0, stream, parameters, 0]);
}

/// Kernels get the last address of what the call has given out, and the one after it. A copy in
/// the legacy stream reads it.
fn uses(r: &Run) {
    if r.done.get() {
        kernel(r, r.end.get() - 1);
        kernel(r, r.end.get());
        r.call("cuMemcpy", &[r.at(To), r.end.get() - 16, 16]);
    }
}

/// What the work of `uses` touches.
fn used() -> [Vec<Touch>; 2] {
    [reads(Got, -16..0), writes(To, 0..16)]
}

/// The call has given out so many bytes here.
fn ends(r: &Run, at: u64, bytes: u64) -> u64 {
    r.end.set(at + bytes);
    at
}

fn has_kernel(r: &Run) {
    r.raw.soft.kernel("fill", |_| ()).parameters(&[8; 16]).accesses(|launch, all| {
        for at in 0..16 {
            all.reads(launch.parameter(at), 1);
        }
    });
    r.good("cuModuleLoadData", &[r.out(14), r.keep(c"code".to_bytes_with_nul().to_vec())]);
    let name = r.keep(c"fill".to_bytes_with_nul().to_vec());
    r.good("cuModuleGetFunction", &[r.out(15), r.got(14), name]);
}

/// A graph of a memset of 32 bytes.
fn graph(r: &Run, area: Area) -> u64 {
    let x = r.x.addr() as u64;
    r.good("cuStreamBeginCapture_v2", &[x, 2]);
    r.set(r.x, area);
    r.good("cuStreamEndCapture", &[x, r.out(14)]);
    r.got(14)
}

/// An executable graph of the graph.
fn exec(r: &Run, graph: u64) -> u64 {
    r.good("cuGraphInstantiateWithFlags", &[r.out(13), graph, 0]);
    r.got(13)
}

/// Launches what the call has made.
fn launches(r: &Run) {
    if r.done.get() {
        r.good("cuGraphLaunch", &[r.got(0), r.a.addr() as u64]);
    }
}

/// Launches what was there before.
fn launches_former(r: &Run) {
    r.call("cuGraphLaunch", &[r.got(13), r.a.addr() as u64]);
}

pub(super) fn table() -> Vec<Row> {
    [copies(), rows_and_sets(), memory(), streams(), objects(), values(), graphs()]
        .into_iter()
        .flatten()
        .collect()
}

fn copies() -> Vec<Row> {
    let two = |to, from| [writes(to, 3..25), reads(from, 5..27)];
    vec![
        row("cuMemcpyHtoDAsync", |r| vec![r.at(To) + 3, r.at(Host) + 5, 22, r.s])
            .like("cuMemcpyHtoDAsync_v2").touches(two(To, Host)).in_stream().orders(WORK),
        row("cuMemcpyDtoHAsync", |r| vec![r.at(Host) + 3, r.at(From) + 5, 22, r.s])
            .like("cuMemcpyDtoHAsync_v2").touches(two(Host, From)).in_stream().orders(WORK),
        row("cuMemcpyDtoDAsync cuMemcpyAsync", |r| vec![r.at(To) + 3, r.at(From) + 5, 22, r.s])
            .like("cuMemcpyDtoDAsync_v2").touches(two(To, From)).in_stream().orders(WORK),
        row("cuMemcpyHtoD", |r| vec![r.at(To) + 3, r.at(Host) + 5, 22])
            .like("cuMemcpyHtoD_v2").touches(two(To, Host)).in_default().orders(WAITS),
        row("cuMemcpyDtoH", |r| vec![r.at(Host) + 3, r.at(From) + 5, 22])
            .like("cuMemcpyDtoH_v2").touches(two(Host, From)).in_default().orders(WAITS),
        row("cuMemcpyDtoD cuMemcpy", |r| vec![r.at(To) + 3, r.at(From) + 5, 22])
            .like("cuMemcpyDtoD_v2").touches(two(To, From)).in_default().orders(WORK),
        row("cuMemcpyHtoA", |r| vec![8, 0, r.at(Host) + 5, 22])
            .touches([reads(Host, 5..27)]).in_default().orders(WAITS).without_driver(),
        row("cuMemcpyHtoAAsync", |r| vec![8, 0, r.at(Host) + 5, 22, r.s])
            .touches([reads(Host, 5..27)]).in_stream().orders(WORK).without_driver(),
        row("cuMemcpyAtoH", |r| vec![r.at(Host) + 3, 8, 0, 22])
            .touches([writes(Host, 3..25)]).in_default().orders(WAITS).without_driver(),
        row("cuMemcpyAtoHAsync", |r| vec![r.at(Host) + 3, 8, 0, 22, r.s])
            .touches([writes(Host, 3..25)]).in_stream().orders(WORK).without_driver(),
        row("cuMemcpyDtoA", |r| vec![8, 0, r.at(From) + 5, 22])
            .touches([reads(From, 5..27)]).in_default().orders(WORK).without_driver(),
        row("cuMemcpyAtoD", |r| vec![r.at(To) + 3, 8, 0, 22])
            .touches([writes(To, 3..25)]).in_default().orders(WORK).without_driver(),
        row("cuMemcpyAtoA", |_| vec![8, 0, 16, 0, 22])
            .in_default().orders("S>S").without_driver(),
        row("cuMemcpyWithAttributesAsync", |r| {
            vec![r.at(To) + 3, r.at(From) + 5, 22, r.keep(vec![0_u64; 8]), r.s]
        })
        .touches(two(To, From)).in_stream().orders(WORK).without_driver(),
        row("cuMemcpyPeer", |r| {
            let [first, second, ..] = r.contexts.map(|context| context.addr() as u64);
            vec![r.at(To1) + 3, second, r.at(From) + 5, first, 22]
        })
        .touches(two(To1, From)).current(2)
        .orders("ABLPDET>C C>ABLPDET ABLPDET>ABLPDET"),
        row("cuMemcpyPeerAsync", |r| {
            let [first, second, ..] = r.contexts.map(|context| context.addr() as u64);
            vec![r.at(To1) + 3, second, r.at(From) + 5, first, 22, r.a.addr() as u64]
        })
        .touches(two(To1, From)).orders("A>C C>A"),
        row("cuMemcpy3DPeer", |r| {
            vec![layers(r, [(DEVICE_KIND, To1, 1), (DEVICE_KIND, From, 0)])]
        })
        .touches(layered(To1, From)).current(2)
        .orders("ABLPDET>C C>ABLPDET ABLPDET>ABLPDET"),
        row("cuMemcpy3DPeerAsync", |r| {
            vec![layers(r, [(DEVICE_KIND, To1, 1), (DEVICE_KIND, From, 0)]), r.a.addr() as u64]
        })
        .touches(layered(To1, From)).orders("A>C C>A"),
        row("cuMemcpyBatchAsync", |r| {
            let [to, from] =
                [[To, To1], [From, From1]].map(|all| r.keep(all.map(|area| r.at(area)).to_vec()));
            let settings = r.keep(vec![1_u64, 0, 0, 0, 0, 0, 0, 0]);
            let bytes = r.keep(vec![17_u64, 5]);
            vec![to, from, bytes, 2, settings, r.keep(vec![0_u64]), 1, r.out(0), r.s]
        })
        .touches([writes(To, 0..17), reads(From, 0..17), writes(To1, 0..5), reads(From1, 0..5)])
        .in_stream().orders(WORK).without_driver(),
        row("cuMemcpyBatchAsync_v2", |r| {
            let [to, from] =
                [[To, To1], [From, From1]].map(|all| r.keep(all.map(|area| r.at(area)).to_vec()));
            let settings = r.keep(vec![1_u64, 0, 0, 0, 0, 0, 0, 0]);
            let bytes = r.keep(vec![17_u64, 5]);
            vec![to, from, bytes, 2, settings, r.keep(vec![0_u64]), 1, r.s]
        })
        .touches([writes(To, 0..17), reads(From, 0..17), writes(To1, 0..5), reads(From1, 0..5)])
        .in_stream().orders(WORK).without_driver(),
        row("cuMemcpy3DBatchAsync", |r| {
            let all = [part(r, To, From), part(r, To1, From1)].concat();
            vec![2, r.keep(all), r.out(0), 0, r.s]
        })
        .touches([layered(To, From), layered(To1, From1)].concat())
        .in_stream().orders(WORK).without_driver(),
        row("cuMemcpy3DBatchAsync_v2", |r| {
            let all = [part(r, To, From), part(r, To1, From1)].concat();
            vec![2, r.keep(all), 0, r.s]
        })
        .touches([layered(To, From), layered(To1, From1)].concat())
        .in_stream().orders(WORK).without_driver(),
        row("cuMemcpy3DWithAttributesAsync", |r| vec![r.keep(part(r, To, From).to_vec()), 0, r.s])
            .touches(layered(To, From)).in_stream().orders(WORK).without_driver(),
        row("cuMemPrefetchAsync", |r| vec![r.at(To), 16, 0, r.s])
            .in_stream().orders("S>S").without_driver(),
        row("cuMemPrefetchAsync_v2", |r| vec![r.at(To), 16, 1, 0, r.s])
            .in_stream().orders("S>S").without_driver(),
        row("cuMemPrefetchBatchAsync", |r| {
            vec![r.keep(vec![r.at(To)]), r.keep(vec![16_u64]), 1, 0, 0, 0, 0, r.s]
        })
        .in_stream().orders("S>S").without_driver(),
        row("cuMemDiscardBatchAsync", |r| {
            let [all, sizes] = [vec![r.at(To), r.at(To1), r.at(From)], vec![17_u64, 5, 0]];
            vec![r.keep(all), r.keep(sizes), 3, 0, r.s]
        })
        .touches([writes(To, 0..17), writes(To1, 0..5)]).in_stream().orders(WORK).without_driver(),
        row("cuMemDiscardAndPrefetchBatchAsync", |r| {
            let [all, sizes] = [vec![r.at(To), r.at(To1)], vec![17_u64, 5]];
            vec![r.keep(all), r.keep(sizes), 2, 0, 0, 0, 0, r.s]
        })
        .touches([writes(To, 0..17), writes(To1, 0..5)]).in_stream().orders(WORK).without_driver(),
        // Memory of two devices: the legacy stream of the other one takes part.
        row("cuMemcpyDtoD cuMemcpy", |r| vec![r.at(To) + 3, r.at(From1) + 5, 22])
            .like("cuMemcpyDtoD_v2").touches(two(To, From1)).in_default().orders("M>C C>M M>M"),
        row("cuMemcpyDtoDAsync cuMemcpyAsync", |r| vec![r.at(To1) + 3, r.at(From) + 5, 22, 1])
            .like("cuMemcpyDtoDAsync_v2").touches(two(To1, From)).orders("LPE>C C>LPE LPE>LPE"),
        row("cuMemcpyPeerAsync", |r| {
            let [first, second, ..] = r.contexts.map(|context| context.addr() as u64);
            vec![r.at(To1) + 3, second, r.at(From) + 5, first, 22, 1]
        })
        .touches(two(To1, From)).orders("LPE>C C>LPE LPE>LPE"),
        // Ordinary memory: the call reads it itself, after the work before it, or waits for it.
        row("cuMemcpyHtoD", |r| vec![r.at(To) + 3, r.page, 22])
            .like("cuMemcpyHtoD_v2").touches([writes(To, 3..25)]).in_default()
            .orders("S>C C>S S>S S>H"),
        row("cuMemcpyDtoH", |r| vec![r.page, r.at(From) + 5, 22])
            .like("cuMemcpyDtoH_v2").touches([reads(From, 5..27)]).in_default().orders(WAITS),
        row("cuMemcpyDtoHAsync", |r| vec![r.page, r.at(From) + 5, 22, r.s])
            .like("cuMemcpyDtoHAsync_v2").touches([reads(From, 5..27)]).in_stream().orders(WAITS),
        // A copy of no bytes touches nothing.
        row("cuMemcpyDtoDAsync", |r| vec![r.at(To), r.at(From), 0, r.s])
            .like("cuMemcpyDtoDAsync_v2"),
    ]
}

fn rows_and_sets() -> Vec<Row> {
    vec![
        row("cuMemcpy2D cuMemcpy2DUnaligned", |r| vec![flat(r, [(DEVICE_KIND, To), (4, From)])])
            .like("cuMemcpy2D_v2").touches(flattened(To, From)).in_default().orders(WORK),
        row("cuMemcpy2D cuMemcpy2DUnaligned", |r| {
            vec![flat(r, [(HOST_KIND, Host), (DEVICE_KIND, From)])]
        })
        .like("cuMemcpy2D_v2").touches(flattened(Host, From)).in_default().orders(WAITS),
        row("cuMemcpy2DAsync", |r| vec![flat(r, [(DEVICE_KIND, To), (HOST_KIND, Host)]), r.s])
            .like("cuMemcpy2DAsync_v2").touches(flattened(To, Host)).in_stream().orders(WORK),
        row("cuMemcpy3D", |r| vec![layers(r, [(DEVICE_KIND, To, 0), (HOST_KIND, Host, 0)])])
            .like("cuMemcpy3D_v2").touches(layered(To, Host)).in_default().orders(WAITS),
        row("cuMemcpy3DAsync", |r| {
            vec![layers(r, [(DEVICE_KIND, To, 0), (DEVICE_KIND, From, 0)]), r.s]
        })
        .like("cuMemcpy3DAsync_v2").touches(layered(To, From)).in_stream().orders(WORK),
        row("cuMemsetD8", |r| vec![r.at(To) + 3, 7, 21])
            .like("cuMemsetD8_v2").touches([writes(To, 3..24)]).in_default().orders(WORK),
        row("cuMemsetD16", |r| vec![r.at(To) + 2, 7, 21])
            .like("cuMemsetD16_v2").touches([writes(To, 2..44)]).in_default().orders(WORK),
        row("cuMemsetD32", |r| vec![r.at(To) + 4, 7, 21])
            .like("cuMemsetD32_v2").touches([writes(To, 4..88)]).in_default().orders(WORK),
        row("cuMemsetD32", |r| vec![r.at(Host) + 4, 7, 21])
            .like("cuMemsetD32_v2").touches([writes(Host, 4..88)]).in_default().orders(WAITS),
        row("cuMemsetD8Async", |r| vec![r.at(To) + 3, 7, 21, r.s])
            .touches([writes(To, 3..24)]).in_stream().orders(WORK),
        row("cuMemsetD16Async", |r| vec![r.at(To) + 2, 7, 21, r.s])
            .touches([writes(To, 2..44)]).in_stream().orders(WORK),
        row("cuMemsetD32Async", |r| vec![r.at(To) + 4, 7, 21, r.s])
            .touches([writes(To, 4..88)]).in_stream().orders(WORK),
        row("cuMemsetD2D8", |r| vec![r.at(To), 16, 7, 5, 4])
            .like("cuMemsetD2D8_v2").touches([wide(5, [16, 4])]).in_default().orders(WORK),
        row("cuMemsetD2D16", |r| vec![r.at(To), 16, 7, 5, 4])
            .like("cuMemsetD2D16_v2").touches([wide(10, [16, 4])]).in_default().orders(WORK),
        row("cuMemsetD2D32", |r| vec![r.at(To), 32, 7, 5, 4])
            .like("cuMemsetD2D32_v2").touches([wide(20, [32, 4])]).in_default().orders(WORK),
        row("cuMemsetD2D8Async", |r| vec![r.at(To), 16, 7, 5, 4, r.s])
            .touches([rows(true, To, 0, [16, 4])]).in_stream().orders(WORK),
        row("cuMemsetD2D16Async", |r| vec![r.at(To), 16, 7, 5, 4, r.s])
            .touches([wide(10, [16, 4])]).in_stream().orders(WORK),
        row("cuMemsetD2D32Async", |r| vec![r.at(To), 32, 7, 5, 4, r.s])
            .touches([wide(20, [32, 4])]).in_stream().orders(WORK),
    ]
}

/// Rows of so many bytes.
fn wide(width: i64, [pitch, height]: [i64; 2]) -> Vec<Touch> {
    (0..height).map(|row| (true, To, row * pitch..row * pitch + width)).collect()
}

/// A copy of something in host memory or managed memory waits, one of device memory does not.
fn given(names: &'static str, args: fn(&Run) -> Vec<u64>, on_host: bool) -> Row {
    let orders = if on_host { "LP>LP LPC>H" } else { "LPC>LP" };
    row(names, args).setup(has_kernel).then(uses).touches(used()).orders(orders).without_driver()
}

/// It gives out the memory that the stand-in has not seen.
fn hidden(r: &Run) -> Vec<(usize, u64)> {
    vec![(0, ends(r, r.hidden, 64))]
}

fn hidden_bytes(r: &Run) -> Vec<(usize, u64)> {
    vec![(0, ends(r, r.hidden, 64)), (1, 64)]
}

/// Memory of the program's, with work of A in it, in `out[12]`.
fn block(r: &Run) -> u64 {
    r.good("cuMemAlloc_v2", &[r.out(12), 64]);
    worked(r, r.got(12))
}

fn worked(r: &Run, at: u64) -> u64 {
    r.out[12].set(at);
    preload::declare("work", Some(r.a.addr()), at, 64, true);
    at
}

/// A stream uses it later.
fn later(r: &Run) {
    preload::declare("use", Some(r.b.addr()), r.got(12) + 63, 1, true);
}

fn memory() -> Vec<Row> {
    vec![
        given("cuMemAlloc", |r| vec![r.out(0), 64], false).gives(hidden),
        given("cuMemAllocManaged", |r| vec![r.out(0), 64, 1], true).gives(hidden),
        given("cuMemAllocHost", |r| vec![r.out(0), 64], true).gives(hidden),
        given("cuMemHostAlloc", |r| vec![r.out(0), 64, 0], true).gives(hidden),
        given("cuMemHostRegister", |r| vec![ends(r, r.page, 64), 64, 0], true),
        given("cuMemAllocPitch", |r| vec![r.out(0), r.out(1), 20, 2, 4], false)
            .gives(|r| vec![(0, ends(r, r.hidden, 64)), (1, 32)]),
        given("cuMemMap", |r| vec![ends(r, r.hidden, 64), 64, 0, 8, 0], false),
        given("cuExternalMemoryGetMappedBuffer", |r| {
            vec![r.out(0), 8, r.keep(vec![0_u64, 64])]
        }, false).gives(|r| vec![(0, ends(r, r.hidden, 64))]),
        given("cuGraphicsResourceGetMappedPointer_v2", |r| vec![r.out(0), r.out(1), 8], false)
            .gives(hidden_bytes),
        given("cuModuleGetGlobal_v2 cuLibraryGetGlobal cuLibraryGetManaged", |r| {
            vec![r.out(0), r.out(1), 8, 0]
        }, false).gives(hidden_bytes),
        row("cuMemAllocAsync", |r| vec![r.out(0), 64, r.s])
            .gives(|r| vec![(0, r.hidden)])
            .touches([writes(Got, -64..0)]).in_stream().orders("C>S S>S"),
        row("cuMemAllocFromPoolAsync", |r| vec![r.out(0), 64, 8, r.s])
            .gives(|r| vec![(0, r.hidden)]).without_driver()
            .touches([writes(Got, -64..0)]).in_stream().orders("C>S S>S"),
        row("cuMemFree", |r| vec![block(r)])
            .like("cuMemFree_v2").then(later).orders("ABLPT>H").finds(1).counts_before().differs(),
        row("cuMemFreeHost", |r| {
            r.good("cuMemAllocHost_v2", &[r.out(12), 64]);
            vec![worked(r, r.got(12))]
        })
        .then(later).orders("ABLPT>H").finds(1).counts_before().differs(),
        row("cuMemHostUnregister", |r| {
            r.good("cuMemHostRegister_v2", &[r.page, 64, 0]);
            vec![worked(r, r.page)]
        })
        .setup(has_kernel).then(|r| {
            kernel(r, r.page + 63);
            later(r);
        })
        .orders("ABLPT>H").counts_before().differs(),
        row("cuMemFreeAsync", |r| {
            r.good("cuMemAlloc_v2", &[r.out(12), 64]);
            vec![ends(r, r.got(12), 64), r.s]
        })
        .touches([writes(Got, -64..0)]).in_stream().orders("S>S").counts_before(),
        row("cuMemUnmap", |r| {
            library(r);
            vec![r.hidden, 64]
        })
        // The call waits for no stream.
        .then(later).finds(2).counts_before().without_driver(),
    ]
}

fn streams() -> Vec<Row> {
    vec![
        row("cuStreamQuery cuStreamSynchronize", |r| vec![r.s]).in_stream().orders("S>H").both(),
        row("cuStreamWaitEvent", |r| vec![r.s, r.event(0), 0])
            .before(|r| r.record(0, r.b)).in_stream().orders("B>S S>S").both(),
        // A stream that blocks is after the legacy stream's work.
        row("cuStreamCreate cuStreamCreateWithPriority", |r| vec![r.out(0), 0, 0])
            .gives(|r| vec![(0, unseen_stream(r, 1))]).then(uses_stream)
            .orders("LP>B LP>LP").refused("LP>LP", vec![], 0).both(),
        row("cuStreamCreate cuStreamCreateWithPriority", |r| vec![r.out(0), 1, 0])
            .gives(|r| vec![(0, unseen_stream(r, 0))]).then(uses_stream)
            .orders("LP>LP").refused("LP>LP", vec![], 0).both(),
        // What comes with the handle later is not after what the stream was after.
        row("cuStreamDestroy", |r| vec![r.x.addr() as u64])
            .before(|r| r.joined(r.a, r.x))
            .then(|r| {
                r.record(0, r.x);
                r.wait(r.b, 0);
            })
            .finds(1).refused("", vec![], 0).both().differs(),
        row("cuCtxEnablePeerAccess", |r| vec![r.contexts[1].addr() as u64, 0]).both(),
        row("cuCtxDisablePeerAccess", |r| vec![r.contexts[1].addr() as u64]).setup(|r| {
            r.good("cuCtxEnablePeerAccess", &[r.contexts[1].addr() as u64, 0]);
        }),
        row("cuCtxSynchronize", |_| vec![]).orders("ABLP>H").both(),
        row("cuCtxSynchronize_v2", |r| vec![r.contexts[1].addr() as u64]).orders("DE>H").both(),
        row("cuCtxRecordEvent", |r| vec![r.contexts[0].addr() as u64, r.event(0)])
            .then(|r| {
                r.wait(r.actors[4], 0);
            })
            .orders("ABLP>D").both(),
        row("cuCtxWaitEvent", |r| vec![r.contexts[1].addr() as u64, r.event(0)])
            .before(|r| r.record(0, r.a)).orders("A>DE").both(),
        row("cuCtxDestroy", |r| {
            r.good("cuCtxCreate_v2", &[r.out(10), 0, 0]);
            r.good("cuStreamCreate", &[r.out(11), 1]);
            block(r);
            r.raw.set_current(r.contexts[0]);
            vec![r.got(10)]
        })
            .before(|r| joined_to(r, r.got(11)))
            .then(later).orders("A>H").finds(1).counts_before().differs(),
        row("cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset", |_| vec![0])
            .orders(ALL).refused(ALL, vec![], 0).without_driver(),
        row("cuStreamBeginCapture", |r| vec![r.x.addr() as u64, 2])
            .like("cuStreamBeginCapture_v2")
            .then(|r| {
                r.set(r.x, To);
                r.call("cuStreamEndCapture", &[r.x.addr() as u64, r.out(0)]);
            })
            .refused("", writes(To, 0..32), 0),
        row("cuStreamBeginCaptureToGraph", |r| {
            r.good("cuGraphCreate", &[r.out(10), 0]);
            vec![r.x.addr() as u64, r.got(10), 0, 0, 0, 2]
        })
        .then(|r| {
            r.set(r.x, To);
            r.call("cuStreamEndCapture", &[r.x.addr() as u64, r.out(0)]);
        })
        .refused("", writes(To, 0..32), 0),
        row("cuStreamBeginRecaptureToGraph", |r| {
            r.good("cuGraphCreate", &[r.out(10), 0]);
            vec![r.x.addr() as u64, 2, r.got(10), 0, 0]
        })
        .then(|r| {
            r.set(r.x, To);
            r.call("cuStreamEndCapture", &[r.x.addr() as u64, r.out(0)]);
        })
        .refused("", writes(To, 0..32), 0).without_driver(),
        row("cuStreamEndCapture", |r| vec![r.x.addr() as u64, r.out(0)])
            .setup(|r| {
                r.good("cuStreamBeginCapture_v2", &[r.x.addr() as u64, 2]);
                r.set(r.x, To);
            })
            .then(|r| {
                if r.done.get() {
                    exec(r, r.got(0));
                    launches_former(r);
                }
            })
            .touches([writes(To, 0..32)]).orders("A>C C>A"),
        // The second node is after nothing.
        row("cuStreamUpdateCaptureDependencies", |r| vec![r.x.addr() as u64, 0, 0, 1])
            .setup(captures_a_node).then(captures_another).finds(1).orders("A>C C>A")
            .touches([writes(To, 0..32)]).refused("A>C C>A", writes(To, 0..32), 0),
        row("cuStreamUpdateCaptureDependencies_v2", |r| vec![r.x.addr() as u64, 0, 0, 0, 1])
            .setup(captures_a_node).then(captures_another).finds(1).orders("A>C C>A")
            .touches([writes(To, 0..32)]).refused("A>C C>A", writes(To, 0..32), 0),
        // (The driver's own waits, as a card does.)
        row("cuGreenCtxCreate", |r| vec![r.out(0), green_description(r), 0, 1])
            .then(|r| {
                if r.done.get() {
                    green_stream(r, r.got(0));
                    green_record(r, r.got(0));
                }
            })
            .orders("A>B").differs(),
        row("cuGreenCtxStreamCreate", |r| vec![r.out(11), green(r), 1, 0])
            .then(|r| {
                if r.done.get() {
                    joined_to(r, r.got(11));
                    green_record(r, r.got(0));
                }
            })
            .orders("A>B"),
        row("cuCtxFromGreenCtx", |r| vec![r.out(10), green(r)])
            .then(|r| {
                if r.done.get() {
                    let within = std::ptr::with_exposed_provenance_mut(r.got(10) as usize);
                    r.in_context(within, || r.good("cuStreamCreate", &[r.out(11), 1]));
                    joined_to(r, r.got(11));
                    green_record(r, r.got(0));
                }
            })
            .orders("A>B"),
        row("cuGreenCtxRecordEvent", |r| {
            let green = green(r);
            r.good("cuGreenCtxStreamCreate", &[r.out(11), green, 1, 0]);
            vec![green, r.event(0)]
        })
        .before(|r| joined_to(r, r.got(11))).then(|r| r.wait(r.b, 0)).orders("A>B"),
        row("cuGreenCtxWaitEvent", |r| {
            let green = green(r);
            r.good("cuGreenCtxStreamCreate", &[r.out(11), green, 1, 0]);
            vec![green, r.event(0)]
        })
        .before(|r| r.record(0, r.a)).then(|r| {
            r.joined(std::ptr::with_exposed_provenance_mut(r.got(11) as usize), r.b);
        })
        .orders("A>B"),
    ]
}

fn captures_a_node(r: &Run) {
    r.good("cuStreamBeginCapture_v2", &[r.x.addr() as u64, 2]);
    r.set(r.x, To);
}

fn captures_another(r: &Run) {
    r.set(r.x, To);
    r.good("cuStreamEndCapture", &[r.x.addr() as u64, r.out(0)]);
    exec(r, r.got(0));
    launches_former(r);
}

/// A stream with other flags than the call has, of which the stand-in has not seen anything.
fn unseen_stream(r: &Run, flags: u64) -> u64 {
    r.unseen(c"cuStreamCreate", &[r.out(12), flags]);
    r.got(12)
}

/// Work in the legacy stream, and then in the created one, which another is after.
fn uses_stream(r: &Run) {
    let at = r.at(Host) - 256;
    r.stream_work(1, legacy(), (at, 1), false);
    if r.done.get() {
        let stream = std::ptr::with_exposed_provenance_mut(r.got(0) as usize);
        r.stream_work(0, stream, (at, 1), false);
        r.joined(stream, r.b);
    }
}

fn green_description(r: &Run) -> u64 {
    let (mut all, mut description) = (CUdevResource::default(), null_mut());
    let sm = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    unsafe {
        assert_eq!(r.raw.cuDeviceGetDevResource.unwrap()(0, &mut all, sm).0, OK);
        assert_eq!(r.raw.cuDevResourceGenerateDesc.unwrap()(&mut description, &mut all, 1).0, OK);
    }
    description.addr() as u64
}

/// A green context of the first device.
fn green(r: &Run) -> u64 {
    r.good("cuGreenCtxCreate", &[r.out(0), green_description(r), 0, 1]);
    r.got(0)
}

fn joined_to(r: &Run, stream: u64) {
    r.joined(r.a, std::ptr::with_exposed_provenance_mut(stream as usize));
}

/// A stream of it, which is after A.
fn green_stream(r: &Run, green: u64) {
    r.good("cuGreenCtxStreamCreate", &[r.out(11), green, 1, 0]);
    joined_to(r, r.got(11));
}

fn green_record(r: &Run, green: u64) {
    r.good("cuGreenCtxRecordEvent", &[green, r.event(0)]);
    r.wait(r.b, 0);
}

/// The library has memory, which work of A uses.
fn library(r: &Run) -> u64 {
    r.good("cuLibraryGetGlobal", &[r.out(0), r.out(1), 8, 0]);
    worked(r, r.got(0));
    8
}

fn objects() -> Vec<Row> {
    vec![
        row("cuEventCreate", |r| vec![r.out(0), 2])
            .before(|r| r.record(0, r.a)).gives(|r| vec![(0, r.event(0))])
            .then(|r| {
                let event = if r.done.get() { r.got(0) } else { r.event(0) };
                r.call("cuStreamWaitEvent", &[r.b.addr() as u64, event, 0]);
            })
            .refused("A>B", vec![], 0).both(),
        row("cuEventDestroy", |r| vec![r.event(0)])
            .before(|r| r.record(0, r.a))
            .then(|r| r.wait(r.b, 0)).finds(1).refused("", vec![], 0).both().differs(),
        row("cuEventRecord", |r| vec![r.event(0), r.s])
            .then(|r| r.wait(r.b, 0)).in_stream().orders("S>B S>S").both(),
        row("cuEventRecordWithFlags", |r| vec![r.event(0), r.s, 0])
            .then(|r| r.wait(r.b, 0)).in_stream().orders("S>B S>S").both(),
        row("cuEventQuery cuEventSynchronize", |r| vec![r.event(0)])
            .before(|r| r.record(0, r.a)).orders("A>H").both(),
        row("cuEventElapsedTime", |r| {
            vec![r.out(0), r.event(0), r.event(1)]
        })
        .before(|r| {
            r.record(0, r.a);
            r.record(1, r.b);
        })
        .orders("AB>H").both(),
        row("cuIpcGetEventHandle", |r| vec![r.keep(vec![0_u64; 8]), r.event(0)])
            .before(|r| r.record(0, r.a)).orders("A>H").without_driver(),
        // Another process may report each record of such an event.
        row("cuIpcOpenEventHandle", |r| {
            vec![r.out(0), 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
        })
        .gives(|r| vec![(0, r.event(0))]).then(|r| r.record(0, r.a)).orders("A>H")
        .without_driver(),
        // And see a value in such memory.
        row("cuIpcGetMemHandle cuMemPoolExportPointer", |r| {
            vec![r.keep(vec![0_u64; 8]), r.at(To)]
        })
        .then(|r| writes_value(r, r.at(To))).touches([writes(To, 0..4)]).orders("A>H A>C")
        .refused("A>C C>A", writes(To, 0..4), 0).without_driver(),
        row("cuMemPoolImportPointer", |r| vec![r.out(0), 8, r.keep(vec![0_u64; 8])])
            .gives(|r| vec![(0, r.hidden)]).then(|r| writes_value(r, r.hidden)).orders("A>H")
            .without_driver(),
        row("cuIpcOpenMemHandle", |r| vec![r.out(0), 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8])
            .gives(|r| vec![(0, r.hidden)]).then(|r| writes_value(r, r.hidden)).orders("A>H")
            .without_driver(),
        row("cuIpcCloseMemHandle", |r| vec![r.hidden])
            .before(|r| {
                library(r);
                r.unseen(c"cuMemFree_v2", &[r.hidden]);
            })
            .then(later).orders(DEVICES).finds(1).refused("", vec![], 1).without_driver(),
        row("cuModuleLoad cuModuleLoadData cuModuleLoadFatBinary cuModuleLoadDataEx", |r| {
            vec![r.out(0), r.keep(vec![0_u64]), 0, 0, 0]
        })
        .orders(DEVICES).without_driver(),
        row("cuModuleUnload cuLibraryUnload", |r| vec![library(r)])
            .then(later).orders(ALL).finds(1).refused(ALL, vec![], 0).without_driver(),
        // These wait for nothing, on a card too.
        row("cuLibraryLoadData cuLibraryLoadFromFile", |r| {
            let code = r.keep(c"/nothing".to_bytes_with_nul().to_vec());
            vec![r.out(0), code, 0, 0, 0, 0, 0, 0]
        })
        .without_driver(),
        row("cuModuleGetFunction cuLibraryGetKernel", |r| {
            vec![r.out(0), 8, r.keep(c"name".to_bytes_with_nul().to_vec())]
        })
        .without_driver(),
        row("cuKernelGetFunction", |r| vec![r.out(0), 8]).orders(DEVICES).without_driver(),
        // The module's memory ends with its library.
        row("cuLibraryGetModule", |r| vec![r.out(0), 7]).gives(|_| vec![(0, 8)])
            .then(|r| {
                library(r);
                r.good("cuLibraryUnload", &[7]);
                later(r);
            })
            .orders(ALL).finds(1).refused(ALL, vec![], 0).without_driver(),
        row("cuGetProcAddress cuGetProcAddress_v2", |r| {
            let name = r.keep(c"cuMemsetD8Async".to_bytes_with_nul().to_vec());
            vec![name, r.out(0), 12_040, 0, r.out(1)]
        })
        .then(is_hooked),
    ]
}

/// What was looked up is in front of the driver's function.
fn is_hooked(r: &Run) {
    if r.done.get() && r.mode == Mode::Soft {
        let name = TESTED.lock().unwrap().name.clone();
        let end = if name.ends_with("_ptsz") { "_ptsz" } else { "" };
        let name = CString::new(format!("cuMemsetD8Async{end}")).unwrap();
        assert_eq!(r.got(0), r.raw.resolve(&name).addr() as u64);
    }
}

fn writes_value(r: &Run, at: u64) {
    r.call("cuStreamWriteValue32_v2", &[r.a.addr() as u64, at, 1, 0]);
}

fn values() -> Vec<Row> {
    let written = |names, args, like| {
        row(names, args).like(like).touches([writes(To, 0..8)]).in_stream().orders(WORK)
    };
    let awaited = |names, args, like| {
        row(names, args).like(like).in_stream().orders("B>S S>S B>C")
            .before(|r| r.good("cuStreamWriteValue64_v2", &[r.b.addr() as u64, r.at(To), 7, 0]))
            .touches([writes(To, 0..8)]).refused("B>C C>B", writes(To, 0..8), 0)
    };
    vec![
        row("cuStreamWriteValue32", |r| vec![r.s, r.at(To), 7, 0])
            .like("cuStreamWriteValue32_v2").touches([writes(To, 0..4)]).in_stream().orders(WORK),
        written("cuStreamWriteValue64", |r| vec![r.s, r.at(To), 7, 0], "cuStreamWriteValue64_v2"),
        awaited("cuStreamWaitValue32", |r| vec![r.s, r.at(To), 7, 1], "cuStreamWaitValue32_v2"),
        awaited("cuStreamWaitValue64", |r| vec![r.s, r.at(To), 7, 1], "cuStreamWaitValue64_v2"),
        // Of a word of ones, and of one of zeros: the conditions AND, and NOR.
        row("cuStreamWaitValue64", |r| vec![r.s, r.at(To), 1, 2]).like("cuStreamWaitValue64_v2")
            .before(|r| {
                r.good("cuStreamWriteValue64_v2", &[r.b.addr() as u64, r.at(To), u64::MAX, 0]);
            })
            .in_stream().touches([writes(To, 0..8)]).orders("B>S S>S B>C")
            .refused("B>C C>B", writes(To, 0..8), 0),
        row("cuStreamWaitValue64", |r| vec![r.s, r.at(To), 1, 3]).like("cuStreamWaitValue64_v2")
            .before(|r| r.good("cuStreamWriteValue64_v2", &[r.b.addr() as u64, r.at(To), 0, 0]))
            .in_stream().touches([writes(To, 0..8)]).orders("B>S S>S B>C")
            .refused("B>C C>B", writes(To, 0..8), 0),
        // Each operation: the kind, the address, the value, and the condition.
        row("cuStreamBatchMemOp", |r| {
            let operation = |kind, at, value| [kind, at, value, 0, 0, 0];
            let all = [(2, To), (5, To1), (4, From)];
            let all = all.map(|(kind, area)| operation(kind, r.at(area), 7));
            vec![r.s, 3, r.keep(all.concat()), 0]
        })
        .like("cuStreamBatchMemOp_v2")
        .before(|r| r.good("cuStreamWriteValue64_v2", &[r.b.addr() as u64, r.at(From), 7, 0]))
        .touches([writes(To, 0..4), writes(To1, 0..8), writes(From, 0..8)])
        .in_stream().orders("B>S S>S S>C C>S C>B").refused("B>C C>B", writes(From, 0..8), 0),
        row("cuLaunchKernel cuLaunchCooperativeKernel", |r| {
            vec![function(r), 1, 1, 1, 1, 1, 1, 0, r.s, addresses(r, r.at(To), 3), 0]
        })
        .setup(has_kernel).touches([read_by_kernel(To)]).in_stream().orders(WORK),
        row("cuLaunchKernelEx", |r| {
            let one = 1 | 1 << 32;
            let config = r.keep(vec![one, one, one, 0, r.s, 0, 0]);
            vec![config, function(r), addresses(r, r.at(To), 3), 0]
        })
        .setup(has_kernel).touches([read_by_kernel(To)]).in_stream().orders(WORK),
        // A function in a stream: its own accesses are in the order of the stream, and the host may
        // have heard of it when it has run.
        row("cuLaunchHostFunc", |r| vec![r.s, hosted as *const () as u64, r.at(Host)])
            .then(settle).touches([writes(Host, 0..16)]).in_stream().orders(WAITS).differs(),
        row("cuLaunchHostFunc_v2", |r| vec![r.s, hosted as *const () as u64, r.at(Host), 0])
            .like("cuLaunchHostFunc")
            .then(settle).touches([writes(Host, 0..16)]).in_stream().orders(WAITS).differs(),
        row("cuStreamAddCallback", |r| vec![r.s, callback as *const () as u64, r.at(Host), 0])
            .then(settle).touches([writes(Host, 0..16)]).in_stream().orders(WAITS).differs(),
    ]
}

/// How often [`hosted`] has run.
static HOSTED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn hosted(data: *mut c_void) {
    preload::declare("in a function", None, data.addr() as u64, 16, true);
    HOSTED.fetch_add(1, Ordering::Release);
}

unsafe extern "C" fn callback(_: CUstream, _: CUresult, data: *mut c_void) {
    unsafe { hosted(data) };
}

/// Waits until all host functions have run, unseen by the checker.
fn settle(r: &Run) {
    r.unseen(c"cuCtxSynchronize", &[]);
}

/// The words of a memset of 32 bytes as a node's parameters.
fn set_params(r: &Run, area: Area) -> u64 {
    r.keep(vec![r.at(area), 0, 1 | 1 << 32, 32, 1])
}

/// A new graph with a memset node of 32 bytes: the graph, and the node.
fn built(r: &Run, area: Area) -> [u64; 2] {
    r.good("cuGraphCreate", &[r.out(9), 0]);
    [r.got(9), added(r, r.got(9), area)]
}

fn added(r: &Run, graph: u64, area: Area) -> u64 {
    let context = r.contexts[0].addr() as u64;
    r.good("cuGraphAddMemsetNode", &[r.out(8), graph, 0, 0, set_params(r, area), context]);
    r.got(8)
}

/// The parameters of a kernel node, with and without those of the second version.
fn kernel_params(r: &Run, area: Area) -> u64 {
    let (one, parameters) = (1 | 1 << 32, addresses(r, r.at(area), 3));
    r.keep(vec![function(r), one, one, one, 0, parameters, 0, 0, 0])
}

/// A line of 32 bytes.
fn line(r: &Run, to: Area, from: Area) -> u64 {
    let side = |area| [DEVICE_KIND, 0, 0, 0, r.at(area), 0, 0, 0];
    copy_3d(r, [side(from), side(to)], [32, 1, 1])
}

fn host_params(r: &Run) -> u64 {
    r.keep(vec![hosted as *const () as u64, r.at(Host)])
}

/// A graph with a host node whose function does nothing: the graph, and the node.
fn idle(r: &Run) -> [u64; 2] {
    unsafe extern "C" fn nothing(_: *mut c_void) {}
    r.good("cuGraphCreate", &[r.out(9), 0]);
    let params = r.keep(vec![nothing as *const () as u64, 0]);
    r.good("cuGraphAddHostNode", &[r.out(8), r.got(9), 0, 0, params]);
    [r.got(9), r.got(8)]
}

/// Instantiates and launches this graph.
fn runs(r: &Run, graph: u64) {
    exec(r, graph);
    launches_former(r);
    settle(r);
}

/// Work of the graph reads the memory that the object's end writes.
fn object(r: &Run) -> u64 {
    r.good("cuUserObjectCreate", &[r.out(7), r.at(From), hosted as *const () as u64, 1, 1]);
    r.got(7)
}

fn retains(r: &Run, graph: u64) {
    r.good("cuGraphRetainUserObject", &[graph, r.got(7), 1, 1]);
}

/// A graph whose kernel reads memory.
fn reading(r: &Run) -> u64 {
    let x = r.x.addr() as u64;
    r.good("cuStreamBeginCapture_v2", &[x, 2]);
    r.good("cuMemcpyDtoDAsync_v2", &[r.at(To), r.at(From), 16, x]);
    r.good("cuStreamEndCapture", &[x, r.out(14)]);
    r.got(14)
}

/// The graph is launched, and all that has the object ends.
fn ends_object(r: &Run, graph: u64) {
    let before = HOSTED.load(Ordering::Acquire);
    exec(r, graph);
    launches_former(r);
    r.good("cuGraphExecDestroy", &[r.got(13)]);
    r.good("cuGraphDestroy", &[graph]);
    // The end runs on another thread.
    while r.done.get() && HOSTED.load(Ordering::Acquire) == before {
        std::thread::yield_now();
    }
}

fn graphs() -> Vec<Row> {
    let launched = |names, args| {
        row(names, args).then(launches).touches([writes(To, 0..32)]).orders("A>C C>A")
    };
    let replaced = |names, args| {
        row(names, args).then(launches_former).touches([writes(To, 0..32)]).orders("A>C C>A")
            .refused("A>C C>A", writes(From, 0..32), 0)
    };
    vec![
        launched("cuGraphInstantiate", |r| vec![r.out(0), graph(r, To), 0, 0, 0])
            .like("cuGraphInstantiate_v2"),
        launched("cuGraphInstantiateWithFlags", |r| vec![r.out(0), graph(r, To), 0]),
        launched("cuGraphInstantiateWithParams", |r| {
            vec![r.out(0), graph(r, To), r.keep(vec![0_u64; 4])]
        }),
        launched("cuGraphClone", |r| vec![r.out(0), graph(r, To)]).then(|r| {
            if r.done.get() {
                exec(r, r.got(0));
                launches_former(r);
            }
        }),
        replaced("cuGraphExecUpdate", |r| {
            vec![exec(r, graph(r, From)), graph(r, To), r.out(0), r.out(1)]
        }),
        replaced("cuGraphExecUpdate_v2", |r| {
            vec![exec(r, graph(r, From)), graph(r, To), r.keep(vec![0_u64; 8])]
        }),
        // What the graph had before ends after the launches that had it.
        row("cuGraphExecUpdate_v2", |r| {
            r.out[12].set(reading(r));
            object(r);
            retains(r, r.got(12));
            vec![exec(r, r.got(12)), reading(r), r.keep(vec![0_u64; 8])]
        })
        .before(launches_former)
        .then(|r| {
            let before = HOSTED.load(Ordering::Acquire);
            r.good("cuGraphDestroy", &[r.got(12)]);
            // The stand-in does not see how the driver gives the object up.
            if r.done.get() {
                r.unseen(c"cuGraphExecDestroy", &[r.got(13)]);
            }
            while r.done.get() && HOSTED.load(Ordering::Acquire) == before {
                std::thread::yield_now();
            }
        })
        .touches([writes(To, 0..16), writes(From, 0..16)]).orders("A>C AC>H").differs()
        .refused("A>C C>A", [writes(To, 0..16), reads(From, 0..16)].concat(), 0),
        replaced("cuGraphExecMemsetNodeSetParams", |r| {
            let [graph, node] = built(r, From);
            vec![exec(r, graph), node, set_params(r, To), r.contexts[0].addr() as u64]
        }),
        row("cuGraphExecMemcpyNodeSetParams", |r| {
            let context = r.contexts[0].addr() as u64;
            r.good("cuGraphCreate", &[r.out(9), 0]);
            r.good("cuGraphAddMemcpyNode", &[r.out(8), r.got(9), 0, 0, line(r, From, To), context]);
            vec![exec(r, r.got(9)), r.got(8), line(r, To, From), context]
        })
        .then(launches_former).touches([writes(To, 0..32), reads(From, 0..32)])
        .orders("A>C C>A")
        .refused("A>C C>A", [writes(From, 0..32), reads(To, 0..32)].concat(), 0),
        row("cuGraphExecKernelNodeSetParams", |r| {
            r.good("cuGraphCreate", &[r.out(9), 0]);
            r.good("cuGraphAddKernelNode_v2", &[r.out(8), r.got(9), 0, 0, kernel_params(r, From)]);
            vec![exec(r, r.got(9)), r.got(8), kernel_params(r, To)]
        })
        .setup(has_kernel).then(launches_former).touches([read_by_kernel(To)])
        .orders("A>C C>A").refused("A>C C>A", read_by_kernel(From), 0),
        row("cuGraphNodeSetEnabled", |r| {
            let [graph, node] = built(r, From);
            added(r, graph, To);
            vec![exec(r, graph), node, 0]
        })
        .then(launches_former).touches([writes(To, 0..32)]).orders("A>C C>A")
        .refused("A>C C>A", [writes(To, 0..32), writes(From, 0..32)].concat(), 0),
        row("cuGraphDestroyNode", |r| {
            let [graph, _] = built(r, To);
            vec![added(r, graph, From)]
        })
        .then(|r| {
            exec(r, r.got(9));
            launches_former(r);
        })
        .touches([writes(To, 0..32)]).orders("A>C C>A")
        .refused("A>C C>A", [writes(To, 0..32), writes(From, 0..32)].concat(), 0),
        row("cuGraphLaunch", |r| vec![exec(r, graph(r, To)), r.s])
            .touches([writes(To, 0..32)]).in_stream().orders(WORK),
        // The software driver uploads nothing.
        row("cuGraphUpload", |r| vec![exec(r, graph(r, To)), r.s])
            .in_stream().orders("S>S").differs(),
        // What comes with the handle later is not known.
        row("cuGraphExecDestroy", |r| vec![exec(r, graph(r, To))])
            .then(launches_former).orders(ALL).counts_before().without_driver(),
        row("cuGraphDestroy", |r| vec![graph(r, To)])
            .then(|r| {
                let context = r.contexts[0].addr() as u64;
                let params = set_params(r, From);
                r.unseen(c"cuGraphAddMemsetNode", &[r.out(8), r.got(14), 0, 0, params, context]);
                runs(r, r.got(14));
            })
            .touches([writes(To, 0..32), writes(From, 0..32)]).orders("A>C C>A").counts_before()
            .without_driver(),
        row("cuGraphAddHostNode", |r| {
            r.good("cuGraphCreate", &[r.out(9), 0]);
            vec![r.out(8), r.got(9), 0, 0, host_params(r)]
        })
        .then(|r| runs(r, r.got(9))).touches([writes(Host, 0..16)]).orders("A>C AC>H").differs(),
        row("cuGraphHostNodeSetParams", |r| vec![idle(r)[1], host_params(r)])
            .then(|r| runs(r, r.got(9))).touches([writes(Host, 0..16)]).orders("A>C AC>H")
            .refused("A>H", vec![], 0).differs(),
        row("cuGraphExecHostNodeSetParams", |r| {
            let [graph, node] = idle(r);
            vec![exec(r, graph), node, host_params(r)]
        })
        .then(|r| {
            launches_former(r);
            settle(r);
        })
        .touches([writes(Host, 0..16)]).orders("A>C AC>H").refused("A>H", vec![], 0).differs(),
        row("cuGraphHostNodeGetParams", |r| vec![hosted_node(r), r.out(0)])
            .then(|r| is_own(r, [r.got(0), r.got(1)])),
        // The kind, three numbers that are kept free, and the description.
        row("cuGraphNodeGetParams", |r| {
            let own = host_params(r);
            let own = unsafe { *std::ptr::with_exposed_provenance::<[u64; 2]>(own as usize) };
            r.out[0].set(r.keep([&[3, 0][..], &own, &[0; 30]].concat()));
            vec![hosted_node(r), r.got(0)]
        })
        .then(|r| {
            let at = std::ptr::with_exposed_provenance::<u64>(r.got(0) as usize);
            is_own(r, unsafe { [at.add(2).read(), at.add(3).read()] });
        }),
        row("cuUserObjectCreate", |r| {
            vec![r.out(7), r.at(From), hosted as *const () as u64, 1, 1]
        })
        .then(|r| {
            let graph = reading(r);
            if r.done.get() {
                retains(r, graph);
            }
            ends_object(r, graph);
        })
        .touches([writes(To, 0..16), writes(From, 0..16)]).orders("A>C AC>H").differs()
        .refused("A>C C>A", [writes(To, 0..16), reads(From, 0..16)].concat(), 0),
        row("cuGraphRetainUserObject", |r| vec![reading(r), object(r), 1, 1])
            .then(|r| ends_object(r, r.got(14)))
            .touches([writes(To, 0..16), writes(From, 0..16)]).orders("A>C AC>H").differs()
            .refused("A>C C>A", [writes(To, 0..16), reads(From, 0..16)].concat(), 0),
    ]
}

fn hosted_node(r: &Run) -> u64 {
    r.good("cuGraphCreate", &[r.out(9), 0]);
    r.good("cuGraphAddHostNode", &[r.out(8), r.got(9), 0, 0, host_params(r)]);
    r.got(8)
}

/// A program sees its own function, and not the stand-in's.
fn is_own(r: &Run, found: [u64; 2]) {
    if r.done.get() {
        assert_eq!(found, [hosted as *const () as u64, r.at(Host)]);
    }
}
