//! Two devices.

use std::ptr::null_mut;
use std::time::{Duration, Instant};

use cuda_events::sys::more::*;
use cuda_test_harness::TestDriver;
use cuda_test_harness::child::{role, say, to_hex};
use cuda_test_harness::soft_settings;

use crate::capture::{GLOBAL, begin, fate};
use crate::raw::{
    BLOCKING, INTERPROCESS, LONG, NO_TIMING, NON_BLOCKING, NULL_STREAM, Rig, SHORT, Sent, TIMING,
    beside_a_wait, code_text, must,
};
use crate::rules;
use crate::rules::{Saw, do_not_hang, in_child};

/// The primary context of the second device, which is current nowhere.
struct Second<'a> {
    rig: &'a Rig,
    device: CUdevice,
    context: CUcontext,
}

impl<'a> Second<'a> {
    fn new(rig: &'a Rig) -> Self {
        let (mut device, mut context) = (0, null_mut());
        must!(rig.cuDeviceGet(&mut device, 1));
        must!(rig.cuDevicePrimaryCtxRetain(&mut context, device));
        Self { rig, device, context }
    }
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        let _ = self.rig.cuDevicePrimaryCtxRelease_v2(self.device);
    }
}

/// The size of the copies.
const COPIED: usize = 64;

/// Which of these about the first device wait for a copy in a stream of the second one: `cuMemFree`,
/// `cuMemFreeHost`, `cuCtxSynchronize`, and an event of `cuCtxRecordEvent`.
fn waits_for_copy(
    rig: &Rig,
    second: &Second,
    [to, from]: [CUdeviceptr; 2],
    patience: Duration,
) -> String {
    let stream = rig.within(second.context, || rig.stream(NON_BLOCKING));
    let held = || {
        let latch = rig.within(second.context, || rig.hold(stream));
        must("cuMemcpyDtoD", rig.cuMemcpyDtoDAsync_v2(to, from, COPIED, stream));
        latch
    };
    let mut waited = Vec::new();
    let mut ask = |name, call: Box<dyn FnOnce() -> CUresult + Send>| {
        let latch = held();
        if beside_a_wait(rig, patience, call, move || latch.release()).starts_with("waits") {
            waited.push(name);
        }
        rig.synchronize(stream);
    };
    // Memory that the copy does not use.
    let (mut device, mut pinned) = (0, null_mut());
    must!(rig.cuMemAlloc_v2(&mut device, COPIED));
    must!(rig.cuMemHostAlloc(&mut pinned, COPIED, 0));
    let (raw, pinned) = (**rig, Sent::new(pinned));
    ask("cuMemFree", Box::new(move || raw.cuMemFree_v2(device)));
    ask("cuMemFreeHost", Box::new(move || raw.cuMemFreeHost(pinned.get())));
    ask("cuCtxSynchronize", Box::new(move || raw.cuCtxSynchronize()));
    let (latch, event) = (held(), rig.event(0));
    must!(rig.cuCtxRecordEvent(rig.context, event));
    let begin = Instant::now();
    let is_pending = || rig.cuEventQuery(event) == CUresult::CUDA_ERROR_NOT_READY;
    // Where nothing holds it, it is over soon.
    while is_pending() && begin.elapsed() < patience {
        std::thread::yield_now();
    }
    if is_pending() {
        waited.push("cuCtxRecordEvent");
    }
    latch.release();
    rig.synchronize(stream);
    match waited.len() {
        0 => "none".to_owned(),
        4 => "all".to_owned(),
        _ => waited.join(" "),
    }
}

const VISIBLE: &str = "visible";

/// Not a rule: a process that prints the UUIDs of the devices that it sees.
#[test]
#[ignore = "another process, which the rules start: cargo test -p cuda-driver-rules"]
fn visible() {
    assert_eq!(role().as_deref(), Some(VISIBLE), "this is no test of its own");
    do_not_hang();
    let rig = Rig::bare("");
    let code = rig.cuInit(0);
    if code != CUresult::CUDA_SUCCESS {
        return say(&code_text(code));
    }
    let uuids = (0..rig.device_count()).map(|device| {
        let mut uuid = CUuuid { bytes: [0; 16] };
        must!(rig.cuDeviceGetUuid(&mut uuid, device));
        let digits = to_hex(&uuid.bytes);
        let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20]];
        format!("GPU-{}-{}", groups.join("-"), &digits[20..])
    });
    say(&uuids.collect::<Vec<_>>().join(" "));
}

/// The devices that a process sees with this list, or without a list.
fn sees(list: Option<&str>) -> String {
    // The shared library reads the environment itself.
    let asked = if TestDriver::chosen() == TestDriver::Soft { ",visible=environment" } else { "" };
    let settings = soft_settings(&format!("devices=3{asked}"));
    let mut environment = vec![("CUDA_SOFT_DRIVER", settings.as_str())];
    environment.extend(list.map(|list| ("CUDA_VISIBLE_DEVICES", list)));
    let ended = in_child("devices::visible", VISIBLE, &environment);
    ended.badly.unwrap_or_else(|| ended.answers.join(", "))
}

fn all_visible() -> Result<(), String> {
    let set = std::env::var_os("CUDA_VISIBLE_DEVICES");
    set.map_or(Ok(()), |_| Err("the environment chooses the devices".to_owned()))
}

/// Reports the devices that each list selects among all devices.
fn lists(saw: &Saw, all: &[&str], lists: &[(&str, String)]) {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (what, list) in lists {
        let there = sees(Some(list));
        let number = |uuid: &str| all.iter().position(|one| *one == uuid);
        let numbers: Option<Vec<_>> = there.split(' ').map(number).collect();
        let answer = numbers.map_or(there, |numbers| format!("{numbers:?}"));
        match groups.iter_mut().find(|(seen, _)| *seen == answer) {
            Some((_, lists)) => lists.push(what),
            None => groups.push((answer, vec![what])),
        }
    }
    for (answer, lists) in groups {
        saw.text(format_args!("{answer} from {}", lists.join(", ")));
    }
}

rules! {
    /// `CUDA_VISIBLE_DEVICES` selects devices by number or by the beginning of a UUID. The list
    /// ends at the first entry that is not a device. If it names a device twice, or no device,
    /// `cuInit` returns an error.
    [alone, needs(all_visible)]
    fn visible_devices(rig, saw) =
        "[0] from 0, blanks, 0 and nonsense, 0gpu, 0 and -1, 0 and 99, 0 and nothing, UUID, \
         begin of the UUID, UUID and 0; CUDA_ERROR_NO_DEVICE (100) from empty, -1, 99, nonsense, \
         another UUID; CUDA_ERROR_INVALID_DEVICE (101) from 0 twice, UUID twice"
    {
        let _ = rig;
        let all = sees(None);
        let all: Vec<&str> = all.split(' ').collect();
        let uuid = all[0];
        let own = |text: &str| text.to_owned();
        lists(saw, &all, &[
            ("0", own("0")),
            ("blanks", own(" 0 ")),
            ("0 and nonsense", own("0,x")),
            ("0gpu", own("0gpu")),
            ("0 and -1", own("0,-1,0")),
            ("0 and 99", own("0,99")),
            ("0 and nothing", own("0,,")),
            ("UUID", own(uuid)),
            ("begin of the UUID", own(&uuid[..12])),
            ("UUID and 0", format!("{uuid},0")),
            ("empty", own("")),
            ("-1", own("-1")),
            ("99", own("99")),
            ("nonsense", own("x")),
            ("0 twice", own("0,0")),
            ("UUID twice", format!("{uuid},{uuid}")),
            ("another UUID", own("GPU-ffffffff-ffff-ffff-ffff-fffffffffff1")),
        ]);
    }

    /// The devices have the order of the list in `CUDA_VISIBLE_DEVICES`.
    [alone, two_devices, needs(all_visible)]
    fn visible_devices_in_order(rig, saw) =
        "[1] from 1, 1 and -1, second UUID, second UUID and 0; [1, 0] from 1 and 0, both UUIDs; \
         [0, 1] from 0 and 1; CUDA_ERROR_INVALID_DEVICE (101) from one of them twice"
    {
        let _ = rig;
        let all = sees(None);
        let all: Vec<&str> = all.split(' ').collect();
        let (first, second) = (all[0], all[1]);
        let own = |text: &str| text.to_owned();
        lists(saw, &all, &[
            ("1", own("1")),
            ("1 and -1", own("1,-1,0")),
            ("second UUID", own(second)),
            ("second UUID and 0", format!("{second},0")),
            ("1 and 0", own("1,0")),
            ("both UUIDs", format!("{second},{first}")),
            ("0 and 1", own("0,1")),
            ("one of them twice", own("1,0,1")),
        ]);
    }

    /// Each device has its own primary context. `cuCtxGetDevice` in that context returns the
    /// device.
    [two_devices]
    fn primary_contexts(rig, saw) = "different contexts; the second one's device 1" {
        let second = Second::new(rig);
        saw.holds("different contexts", second.context != rig.context);
        let mut device = 77;
        must("cuCtxGetDevice", rig.within(second.context, || rig.cuCtxGetDevice(&mut device)));
        saw.text(format_args!("the second one's device {device}"));
    }

    /// An event cannot be recorded in a stream of another device.
    [two_devices]
    fn recording_across_devices(rig, saw) =
        "CUDA_ERROR_INVALID_HANDLE (400) from event of the first, event of the second"
    {
        let second = Second::new(rig);
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        let (others, theirs) =
            rig.within(second.context, || (rig.event(NO_TIMING), rig.stream(NON_BLOCKING)));
        saw.codes(&[
            ("event of the first", rig.cuEventRecord(event, theirs)),
            ("event of the second", rig.cuEventRecord(others, stream)),
        ]);
    }

    /// A stream can wait for an event of another device.
    [two_devices]
    fn waiting_across_devices(rig, saw) =
        "second for first: CUDA_ERROR_NOT_READY (600), then success; first for second: \
         CUDA_ERROR_NOT_READY (600), then success"
    {
        let second = Second::new(rig);
        let (here, there) =
            (rig.stream(NON_BLOCKING), rig.within(second.context, || rig.stream(NON_BLOCKING)));
        let ways = [
            ("second for first", rig.context, here, there),
            ("first for second", second.context, there, here),
        ];
        for (name, context, held, waiting) in ways {
            let event = rig.within(context, || rig.event(NO_TIMING));
            let latch = rig.hold(held);
            rig.record(event, held);
            must!(rig.cuStreamWaitEvent(waiting, event, 0));
            let before = code_text(rig.cuStreamQuery(waiting));
            latch.release();
            saw.text(format_args!(
                "{name}: {before}, then {}",
                code_text(rig.cuStreamSynchronize(waiting))
            ));
        }
    }

    /// Events of different devices have no elapsed time. The call returns
    /// `CUDA_ERROR_INVALID_HANDLE`.
    [two_devices]
    fn elapsed_across_devices(rig, saw) = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let second = Second::new(rig);
        let recorded = || {
            let (stream, event) = (rig.stream(NON_BLOCKING), rig.event(TIMING));
            rig.record(event, stream);
            rig.synchronize(stream);
            event
        };
        let events = (recorded(), rig.within(second.context, recorded));
        saw.text(code_text(rig.elapsed_code(events.0, events.1)));
    }

    /// An event of one device can be queried, synchronized and destroyed while a context of another
    /// device is current.
    [two_devices]
    fn asking_with_another_device_current(rig, saw) =
        "query CUDA_ERROR_NOT_READY (600); synchronize success; destroy success"
    {
        let second = Second::new(rig);
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        let event = rig.recorded(stream);
        rig.within(second.context, || {
            saw.code("query", rig.cuEventQuery(event));
            latch.release();
            saw.code("synchronize", rig.cuEventSynchronize(event));
            saw.code("destroy", rig.cuEventDestroy_v2(event));
        });
    }

    /// The legacy streams of two devices do not wait for each other.
    [two_devices]
    fn legacy_streams(rig, saw) = "here CUDA_ERROR_NOT_READY (600); there success" {
        let second = Second::new(rig);
        let stream = rig.stream(BLOCKING);
        let latch = rig.hold(stream);
        saw.code("here", rig.cuStreamQuery(NULL_STREAM));
        saw.code("there", rig.within(second.context, || rig.cuStreamSynchronize(NULL_STREAM)));
        latch.release();
        rig.synchronize(stream);
    }

    /// `cuMemFree` and `cuMemFreeHost` do not wait for the work of another device that does not use
    /// the memory.
    [two_devices]
    fn frees(rig, saw) =
        "cuMemFree returns at once, success; cuMemFreeHost returns at once, success"
    {
        const PORTABLE: u32 = 1;
        let second = Second::new(rig);
        let (mut device, mut pinned) = (0, null_mut());
        must!(rig.cuMemAlloc_v2(&mut device, 64));
        must!(rig.cuMemHostAlloc(&mut pinned, 64, PORTABLE));
        let (raw, pinned) = (**rig, Sent::new(pinned));
        let latch = rig.within(second.context, || rig.hold(rig.stream(NON_BLOCKING)));
        let freed = beside_a_wait(rig, LONG, move || raw.cuMemFree_v2(device), || latch.release());
        saw.text(format_args!("cuMemFree {freed}"));
        let latch = rig.within(second.context, || rig.hold(rig.stream(NON_BLOCKING)));
        let freed = beside_a_wait(rig, LONG, move || raw.cuMemFreeHost(pinned.get()), || latch.release());
        saw.text(format_args!("cuMemFreeHost {freed}"));
    }

    /// A copy from one device to another in the legacy stream is also in the other device's: it
    /// waits for the blocking streams of both, and they wait for it.
    [two_devices]
    fn copies_in_the_legacy_stream(rig, saw) =
        "beside a blocking stream there: waits, then success; \
         beside a non-blocking one: returns at once, success; \
         a blocking stream there, later: waits, then success"
    {
        const BYTES: usize = 64;
        let second = Second::new(rig);
        let allocate = || {
            let mut memory = 0;
            must!(rig.cuMemAlloc_v2(&mut memory, BYTES));
            memory
        };
        let (here, there) = (allocate(), rig.within(second.context, allocate));
        let copy = || must("cuMemcpyDtoD", rig.cuMemcpyDtoDAsync_v2(here, there, BYTES, NULL_STREAM));
        let raw = **rig;
        let beside = |flags, patience| {
            let latch = rig.within(second.context, || rig.hold(rig.stream(flags)));
            copy();
            let call = move || raw.cuStreamSynchronize(NULL_STREAM);
            beside_a_wait(rig, patience, call, || latch.release())
        };
        saw.text(format_args!("beside a blocking stream there: {}", beside(BLOCKING, SHORT)));
        saw.text(format_args!("beside a non-blocking one: {}", beside(NON_BLOCKING, LONG)));
        let latch = rig.hold(rig.stream(BLOCKING));
        copy();
        rig.within(second.context, || {
            let stream = rig.stream(BLOCKING);
            must!(rig.cuMemsetD8Async(there, 1, BYTES, stream));
            let stream = Sent::new(stream);
            let call = move || raw.cuStreamSynchronize(stream.get());
            let waited = beside_a_wait(rig, SHORT, call, || latch.release());
            saw.text(format_args!("a blocking stream there, later: {waited}"));
        });
    }

    /// A copy between the stream's device and another one may also be work of the other one: calls
    /// there wait for it, whatever they are about. It is not if the stream's device has peer access
    /// to the other, and this is the destination or has no access itself.
    [two_devices, since(12, 5)]
    fn copies_are_work_of_the_source(rig, saw) =
        "no access, from here: all, to here: all; there has it, from here: none, to here: none; \
         both have it, from here: all, to here: none; here has it, from here: all, to here: all"
    {
        let second = Second::new(rig);
        let allocate = |context| {
            let mut memory = 0;
            rig.within(context, || must!(rig.cuMemAlloc_v2(&mut memory, COPIED)));
            memory
        };
        let (here, there) = (allocate(rig.context), allocate(second.context));
        // A call that returns may do so late, on a machine with other work.
        let look = |access: &str, waits: [bool; 2]| {
            let [first, last] = waits.map(|waits| if waits { SHORT } else { LONG });
            let from_here = waits_for_copy(rig, &second, [there, here], first);
            let to_here = waits_for_copy(rig, &second, [here, there], last);
            saw.text(format_args!("{access}, from here: {from_here}, to here: {to_here}"));
        };
        let peers = [(rig.context, second.context), (second.context, rig.context)];
        let [enable, disable] = [true, false].map(|on| {
            move |(from, to): (CUcontext, CUcontext)| {
                rig.within(from, || match on {
                    true => must!(rig.cuCtxEnablePeerAccess(to, 0)),
                    false => must!(rig.cuCtxDisablePeerAccess(to)),
                });
            }
        });
        look("no access", [true, true]);
        enable(peers[1]);
        look("there has it", [false, false]);
        enable(peers[0]);
        look("both have it", [true, false]);
        disable(peers[1]);
        look("here has it", [true, true]);
        disable(peers[0]);
        must!(rig.cuMemFree_v2(here));
        rig.within(second.context, || must!(rig.cuMemFree_v2(there)));
    }

    /// `cuStreamGetDevice` returns the device of a stream.
    [two_devices, since(12, 8)]
    fn the_device_of_a_stream(rig, saw) = "1; 0" {
        let second = Second::new(rig);
        let (here, there) =
            (rig.stream(NON_BLOCKING), rig.within(second.context, || rig.stream(NON_BLOCKING)));
        for stream in [there, here] {
            let mut device = 77;
            must!(rig.cuStreamGetDevice(stream, &mut device));
            saw.text(device);
        }
    }

    /// The ids of streams are unique across devices.
    [two_devices, since(12, 0)]
    fn ids(rig, saw) = "all different" {
        let second = Second::new(rig);
        let mut ids = Vec::new();
        for context in [rig.context, second.context] {
            rig.within(context, || {
                ids.push(rig.id(NULL_STREAM));
                ids.push(rig.id(rig.stream(NON_BLOCKING)));
            });
        }
        let unique: std::collections::BTreeSet<u64> = ids.iter().copied().collect();
        saw.holds("all different", unique.len() == ids.len());
    }

    /// A global capture also forbids queries of events and streams of another device.
    /// `cuCtxSynchronize` of that device's context is allowed.
    [two_devices]
    fn a_capture_and_another_device(rig, saw) =
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900) from event query, stream query; success from \
         context synchronize; invalidated"
    {
        let second = Second::new(rig);
        let (event, theirs) =
            rig.within(second.context, || (rig.event(NO_TIMING), rig.stream(NON_BLOCKING)));
        rig.record(event, theirs);
        rig.synchronize(theirs);
        let stream = rig.stream(NON_BLOCKING);
        begin(rig, stream, GLOBAL);
        saw.codes(&[
            ("event query", rig.cuEventQuery(event)),
            ("stream query", rig.cuStreamQuery(theirs)),
            ("context synchronize", rig.within(second.context, || rig.cuCtxSynchronize())),
        ]);
        saw.text(fate(rig, stream));
    }

    /// A stream of another device joins a capture when it waits for an event of the capture.
    [two_devices]
    fn joining_a_capture_across_devices(rig, saw) = "wait success; status 1; joined again success; \
        unharmed" {
        let second = Second::new(rig);
        let (stream, theirs) =
            (rig.stream(NON_BLOCKING), rig.within(second.context, || rig.stream(NON_BLOCKING)));
        begin(rig, stream, GLOBAL);
        let fork = rig.recorded(stream);
        saw.code("wait", rig.cuStreamWaitEvent(theirs, fork, 0));
        saw.text(
            crate::capture::status(rig, theirs)
                .map_or_else(code_text, |status| format!("status {status}")),
        );
        let join = rig.within(second.context, || rig.event(NO_TIMING));
        rig.record(join, theirs);
        saw.code("joined again", rig.cuStreamWaitEvent(stream, join, 0));
        saw.text(fate(rig, stream));
    }

    /// A whole-context record (`cuCtxRecordEvent`) covers the streams of one device, not those of
    /// another.
    [two_devices, since(12, 5)]
    fn whole_contexts(rig, saw) = "of the other device success; of this one CUDA_ERROR_NOT_READY \
        (600)" {
        let second = Second::new(rig);
        let stream = rig.stream(NON_BLOCKING);
        let latch = rig.hold(stream);
        let (here, there) =
            (rig.event(NO_TIMING), rig.within(second.context, || rig.event(NO_TIMING)));
        must!(rig.cuCtxRecordEvent(rig.context, here));
        must!(rig.cuCtxRecordEvent(second.context, there));
        saw.code("of the other device", rig.settled(there));
        saw.code("of this one", rig.cuEventQuery(here));
        latch.release();
        rig.synchronize(stream);
    }

    /// Releasing the primary context of one device does not affect the primary context of another.
    [two_devices]
    fn releasing_one(rig, saw) = "still there success" {
        let event = rig.event(NO_TIMING);
        drop(Second::new(rig));
        saw.code("still there", rig.cuEventRecord(event, rig.stream(NON_BLOCKING)));
    }

    /// A context of each device can export its own interprocess events, and their descriptors are
    /// different.
    [two_devices]
    fn exporting(rig, saw) = "success from the first, the second; different descriptors" {
        let second = Second::new(rig);
        let mut handles = [CUipcEventHandle { reserved: [0; 64] }; 2];
        let (here, there) =
            (rig.event(INTERPROCESS), rig.within(second.context, || rig.event(INTERPROCESS)));
        saw.codes(&[
            ("the first", rig.cuIpcGetEventHandle(&mut handles[0], here)),
            (
                "the second",
                rig.within(second.context, || rig.cuIpcGetEventHandle(&mut handles[1], there)),
            ),
        ]);
        saw.holds("different descriptors", handles[0].reserved != handles[1].reserved);
    }

    /// A descriptor can also be opened in a context of a device that is not the exporter's. Queries
    /// and waits there see the exporter's record.
    [two_devices]
    fn importing_on_another_device(rig, saw) =
        "open success; query CUDA_ERROR_NOT_READY (600); a stream there that waits \
         CUDA_ERROR_NOT_READY (600); then success"
    {
        let second = Second::new(rig);
        let mut peer = crate::ipc::Peer::start();
        let descriptor = peer.export();
        let (code, event) = rig.within(second.context, || rig.open(descriptor));
        saw.code("open", code);
        let theirs = rig.within(second.context, || rig.stream(NON_BLOCKING));
        peer.step("hold");
        peer.step("record");
        saw.code("query", rig.cuEventQuery(event));
        must!(rig.cuStreamWaitEvent(theirs, event, 0));
        saw.code("a stream there that waits", rig.cuStreamQuery(theirs));
        peer.step("release");
        saw.code("then", rig.cuStreamSynchronize(theirs));
        peer.end();
    }

    /// Memory can be copied between devices, whether or not their contexts have access to each
    /// other. Peer access is enabled and disabled once for each pair of contexts. A second call
    /// returns an error.
    [two_devices]
    fn peers(rig, saw) =
        "copied; can reach 1, itself 0; access supported success, 1; of itself \
         CUDA_ERROR_INVALID_DEVICE (101); enabling success, again \
         CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED (704); itself CUDA_ERROR_PEER_ACCESS_UNSUPPORTED \
         (217); flags CUDA_ERROR_INVALID_VALUE (1); disabling success, again \
         CUDA_ERROR_PEER_ACCESS_NOT_ENABLED (705)"
    {
        let second = Second::new(rig);
        let (mut from, mut to) = (0, 0);
        must!(rig.cuMemAlloc_v2(&mut from, 64));
        rig.within(second.context, || must!(rig.cuMemAlloc_v2(&mut to, 64)));
        let stream = rig.stream(NON_BLOCKING);
        let mut back = [0_u8; 64];
        must!(rig.cuMemsetD8Async(from, 6, 64, stream));
        must!(rig.cuMemcpyPeerAsync(to, second.context, from, rig.context, 64, stream));
        let place = back.as_mut_ptr().cast();
        must!(rig.cuMemcpyDtoHAsync_v2(place, to, 64, stream));
        rig.synchronize(stream);
        saw.holds("copied", back == [6; 64]);
        let can = |device, peer| {
            let mut can = 77;
            must!(rig.cuDeviceCanAccessPeer(&mut can, device, peer));
            can
        };
        let itself = can(rig.device, rig.device);
        saw.text(format_args!("can reach {}, itself {itself}", can(rig.device, second.device)));
        const ACCESS: CUdevice_P2PAttribute = CUdevice_P2PAttribute(2);
        let mut value = 77;
        let code = rig.cuDeviceGetP2PAttribute(&mut value, ACCESS, rig.device, second.device);
        saw.text(format_args!("access supported {}, {value}", code_text(code)));
        let code = rig.cuDeviceGetP2PAttribute(&mut value, ACCESS, rig.device, rig.device);
        saw.code("of itself", code);
        let enable = |peer, flags| code_text(rig.cuCtxEnablePeerAccess(peer, flags));
        let once = enable(second.context, 0);
        saw.text(format_args!("enabling {once}, again {}", enable(second.context, 0)));
        saw.text(format_args!("itself {}", enable(rig.context, 0)));
        saw.text(format_args!("flags {}", enable(second.context, 1)));
        let disable = || code_text(rig.cuCtxDisablePeerAccess(second.context));
        let once = disable();
        saw.text(format_args!("disabling {once}, again {}", disable()));
        must!(rig.cuMemFree_v2(from));
        rig.within(second.context, || must!(rig.cuMemFree_v2(to)));
    }
}
