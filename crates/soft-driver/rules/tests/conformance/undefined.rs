//! Misuse that is undefined on a real driver, which often crashes. The software driver reports the
//! call in a message and ends the process. With the setting `misuse=error` it returns an error.

#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::ptr::null_mut;

use cuda_events::sys::*;
#[cfg(target_os = "linux")]
use cuda_soft_driver::SemaphoreKind;
use cuda_test_harness::child::{role, say};
use cuda_test_harness::soft_settings;

use crate::capture;
#[cfg(target_os = "linux")]
use crate::external::{OPAQUE, TIMELINE, import};
use crate::green::describe;
use crate::ipc::Peer;
#[cfg(unix)]
use crate::process::forked_call;
use crate::raw::{INTERPROCESS, NO_TIMING, NON_BLOCKING, Rig, code_text, must};
use crate::rules;
use crate::rules::{How, Rule, announce, do_not_hang, in_child, report};
#[cfg(target_os = "linux")]
use crate::semaphores::exported;

const ROLE: &str = "misuse";

/// Defines rules about misuse, each with the names that the message must have, and with the code of
/// the call in the run in which the driver returns errors. The body returns it, and reports the
/// handle that it misuses, if it does one.
macro_rules! misuses {
    ($(
        $(#[doc = $statement:literal])+
        $(#[cfg($when:meta)])?
        $([since($major:literal, $minor:literal)])?
        fn $name:ident($rig:ident $(, $about:ident)?)
            names [$first:literal $(, $named:literal)*] = $code:literal $body:block
    )*) => {
        $(
        $(#[cfg($when)])?
        #[test]
        fn $name() {
            fn body($rig: &Rig, _about: &dyn Fn(*const ())) -> CUresult {
                $(let $about = _about;)?
                $body
            }
            let rule = Rule {
                module: module_path!(),
                name: stringify!($name),
                statement: &[$($statement),+],
                expected: concat!(
                    "aborted, naming ", $first, $(", ", $named,)* $(the_handle!($about),)?
                    "; as an error ", $code
                ),
                how: How::new().soft_only()$(.since($major, $minor))?,
                body: |_, _| {},
            };
            judge(&rule, &[$first $(, $named)*], body);
        }
        )*
    };
}

macro_rules! the_handle {
    ($about:ident) => {
        ", the handle"
    };
}

const HANDLE: &str = "handle ";
const ANSWER: &str = "answer ";

fn judge(rule: &Rule, names: &[&str], body: fn(&Rig, &dyn Fn(*const ())) -> CUresult) {
    if role().as_deref() == Some(ROLE) {
        do_not_hang();
        let rig = Rig::new("");
        let code = body(&rig, &|handle| say(&format!("{HANDLE}{:#x}", handle.addr())));
        say(&format!("{ANSWER}{}", code_text(code)));
        // The rest need not be cleaned up, and this may be impossible.
        std::process::exit(0);
    }
    announce(rule);
    if let Some(reason) = rule.how.unable() {
        return report(rule, &format!("not run: {reason}"));
    }
    let run = |settings: &str| {
        in_child(&rule.test(), ROLE, &[("CUDA_SOFT_DRIVER", &soft_settings(settings))])
    };
    let find = |output: &[String], what: &str| {
        output.iter().find_map(|line| line.strip_prefix(what).map(str::to_owned))
    };

    let aborted = run("misuse=abort");
    let end = aborted.badly.unwrap_or_else(|| "did not end".to_owned());
    let handle = find(&aborted.answers, HANDLE);
    let message = aborted
        .errors
        .lines()
        .find(|line| line.starts_with("cuda-soft-driver: cu"))
        .unwrap_or_default();
    let has = |text: &str| message.contains(text);
    let mut named: Vec<String> =
        names.iter().filter(|name| has(name)).map(|name| (*name).to_owned()).collect();
    if handle.as_deref().is_some_and(has) {
        named.push("the handle".to_owned());
    }
    let all = named.len() == names.len() + usize::from(handle.is_some());
    let more = if all { String::new() } else { format!(" in \"{message}\"") };

    let refused = run("misuse=error");
    let answer =
        find(&refused.answers, ANSWER).unwrap_or_else(|| refused.badly.unwrap_or_default());
    report(rule, &format!("{end}, naming {}{more}; as an error {answer}", named.join(", ")));
}

fn about<T>(about: &dyn Fn(*const ()), handle: *mut T) {
    about(handle.cast_const().cast());
}

/// An event that is misused.
fn event(rig: &Rig, report: &dyn Fn(*const ())) -> CUevent {
    let event = rig.event(NO_TIMING);
    about(report, event);
    event
}

/// A stream that is misused.
fn stream(rig: &Rig, report: &dyn Fn(*const ())) -> CUstream {
    let stream = rig.stream(NON_BLOCKING);
    about(report, stream);
    stream
}

/// A handle that no driver returned.
fn made_up<T>() -> *mut T {
    std::ptr::without_provenance_mut(0x7f12_3456_7890)
}

misuses! {
    /// A query of an event that never existed is undefined.
    fn query_of_a_made_up_event(rig, report) names ["cuEventQuery"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let event = made_up();
        about(report, event);
        rig.cuEventQuery(event)
    }

    /// A query of a destroyed event is undefined.
    fn query_of_a_destroyed_event(rig, report) names ["cuEventQuery", "cuEventDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let event = event(rig, report);
        must!(rig.cuEventDestroy_v2(event));
        rig.cuEventQuery(event)
    }

    /// A query of a destroyed event is undefined, also after another event was created in its
    /// place.
    fn query_of_a_replaced_event(rig, report) names ["cuEventQuery", "cuEventDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let event = event(rig, report);
        must!(rig.cuEventDestroy_v2(event));
        let _ = rig.event(NO_TIMING);
        rig.cuEventQuery(event)
    }

    /// A record of a destroyed event is undefined.
    fn record_of_a_destroyed_event(rig, report) names ["cuEventRecord", "cuEventDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let event = event(rig, report);
        must!(rig.cuEventDestroy_v2(event));
        rig.cuEventRecord(event, rig.stream(NON_BLOCKING))
    }

    /// Destroying an event twice is undefined.
    fn an_event_destroyed_twice(rig, report) names ["cuEventDestroy_v2", "thread"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let event = event(rig, report);
        must!(rig.cuEventDestroy_v2(event));
        rig.cuEventDestroy_v2(event)
    }

    /// A query of an event that another thread destroyed is undefined. The message of the software
    /// driver names that thread.
    fn an_event_destroyed_in_another_thread(rig, report)
        names ["cuEventQuery", "cuEventDestroy_v2", "the-destroyer"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let event = event(rig, report);
        let (raw, sent) = (**rig, crate::raw::Sent::new(event));
        let destroy = move || must!(raw.cuEventDestroy_v2(sent.get()));
        let thread = std::thread::Builder::new().name("the-destroyer".to_owned());
        let thread = thread.spawn(destroy).expect("a thread");
        thread.join().expect("no panic");
        rig.cuEventQuery(event)
    }

    /// A query of a destroyed stream is undefined.
    fn query_of_a_destroyed_stream(rig, report) names ["cuStreamQuery", "cuStreamDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let stream = stream(rig, report);
        must!(rig.cuStreamDestroy_v2(stream));
        rig.cuStreamQuery(stream)
    }

    /// A query of a stream that was destroyed while it had work is undefined.
    fn query_of_a_busy_destroyed_stream(rig, report) names ["cuStreamQuery", "cuStreamDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let stream = stream(rig, report);
        let _latch = rig.hold(stream);
        must!(rig.cuStreamDestroy_v2(stream));
        rig.cuStreamQuery(stream)
    }

    /// Destroying a stream twice is undefined.
    fn a_stream_destroyed_twice(rig, report) names ["cuStreamDestroy_v2", "thread"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let stream = stream(rig, report);
        must!(rig.cuStreamDestroy_v2(stream));
        rig.cuStreamDestroy_v2(stream)
    }

    /// A query of a stream whose handle is a small number is undefined.
    fn query_of_a_small_number(rig, report) names ["cuStreamQuery"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let stream = std::ptr::without_provenance_mut(3);
        about(report, stream);
        rig.cuStreamQuery(stream)
    }

    /// A query of a stream whose handle is a larger number is undefined.
    fn query_of_a_larger_number(rig, report) names ["cuStreamQuery"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let stream = std::ptr::without_provenance_mut(0xFFFF);
        about(report, stream);
        rig.cuStreamQuery(stream)
    }

    /// Passing an event as a stream is undefined. The real driver did not crash, and returned
    /// `CUDA_ERROR_CONTEXT_IS_DESTROYED`.
    fn an_event_as_a_stream(rig, report) names ["cuStreamQuery", "event"]
        = "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)" {
        let event = event(rig, report);
        rig.cuStreamQuery(event.cast())
    }

    /// Passing a stream as an event is undefined.
    fn a_stream_as_an_event(rig, report) names ["cuEventQuery", "stream"]
        = "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)" {
        let stream = stream(rig, report);
        rig.cuEventQuery(stream.cast())
    }

    /// Passing zeroed memory of the program as an event is undefined. The real driver did not
    /// crash, and returned `CUDA_ERROR_INVALID_CONTEXT`.
    fn zeroed_memory_as_an_event(rig, report) names ["cuEventQuery"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let mut memory = [0_u64; 512];
        about(report, memory.as_mut_ptr());
        rig.cuEventQuery(memory.as_mut_ptr().cast())
    }

    /// Making a context current that never existed is undefined.
    fn a_made_up_context(rig, report) names ["cuCtxSetCurrent"]
        = "CUDA_ERROR_INVALID_CONTEXT (201)" {
        let context = made_up();
        about(report, context);
        rig.cuCtxSetCurrent(context)
    }

    /// Destroying a context twice is undefined.
    fn a_context_destroyed_twice(rig, report) names ["cuCtxDestroy_v2"]
        = "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)" {
        let context = rig.new_context();
        about(report, context);
        must("cuCtxDestroy", rig.destroy_context(context));
        rig.cuCtxDestroy_v2(context)
    }

    /// Destroying a stream after its context is undefined.
    fn a_stream_destroyed_after_its_context(rig, report)
        names ["cuStreamDestroy_v2", "cuCtxDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let context = rig.new_context();
        let stream = rig.within(context, || rig.stream(NON_BLOCKING));
        about(report, stream);
        must("cuCtxDestroy", rig.destroy_context(context));
        rig.cuStreamDestroy_v2(stream)
    }

    /// A query of an event from before the last release of the primary context is undefined.
    fn an_event_from_before_the_last_release(rig, report)
        names ["cuEventQuery", "cuDevicePrimaryCtxRelease_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let event = event(rig, report);
        must!(rig.cuDevicePrimaryCtxRelease_v2(rig.device));
        let mut again = null_mut();
        must!(rig.cuDevicePrimaryCtxRetain(&mut again, rig.device));
        rig.cuEventQuery(event)
    }

    /// Exchanging the capture mode is undefined if the place for the mode is NULL.
    fn no_place_for_the_capture_mode(rig) names ["cuThreadExchangeStreamCaptureMode", "NULL"]
        = "CUDA_ERROR_INVALID_VALUE (1)" {
        rig.cuThreadExchangeStreamCaptureMode(null_mut())
    }

    /// Looking up an entry point is undefined if the place for its address is NULL.
    [since(12, 0)]
    fn no_place_for_the_entry_point(rig) names ["cuGetProcAddress_v2", "NULL"]
        = "CUDA_ERROR_INVALID_VALUE (1)" {
        rig.cuGetProcAddress_v2(c"cuInit".as_ptr(), null_mut(), 2000, 0, null_mut())
    }

    /// Looking up an entry point is undefined if its name is NULL.
    [since(12, 0)]
    fn no_name_of_the_entry_point(rig) names ["cuGetProcAddress_v2", "NULL"]
        = "CUDA_ERROR_INVALID_VALUE (1)" {
        rig.cuGetProcAddress_v2(std::ptr::null(), &mut null_mut(), 2000, 0, null_mut())
    }

    /// The call for the name of a code is undefined if the place for the name is NULL.
    fn no_place_for_a_name(rig) names ["cuGetErrorName", "NULL"] = "CUDA_ERROR_INVALID_VALUE (1)" {
        rig.cuGetErrorName(CUresult::CUDA_SUCCESS, null_mut())
    }

    /// The call for the text of a code is undefined if the place for the text is NULL.
    fn no_place_for_a_text(rig) names ["cuGetErrorString", "NULL"]
        = "CUDA_ERROR_INVALID_VALUE (1)" {
        rig.cuGetErrorString(CUresult::CUDA_SUCCESS, null_mut())
    }

    /// Signalling NULL as an external semaphore is undefined.
    fn no_semaphore_to_signal(rig) names ["cuSignalExternalSemaphoresAsync", "NULL"]
        = "CUDA_ERROR_INVALID_VALUE (1)" {
        let stream = rig.stream(NON_BLOCKING);
        rig.cuSignalExternalSemaphoresAsync(&null_mut(), &Default::default(), 1, stream)
    }

    /// A binary semaphore is imported as a timeline. An H100 returned success; NVIDIA documents no
    /// use of such an import.
    #[cfg(target_os = "linux")]
    [since(11, 2)]
    fn an_import_of_a_binary_one_as_a_timeline(rig)
        names ["cuImportExternalSemaphore", "binary semaphore"]
        = "CUDA_ERROR_UNKNOWN (999)" {
        import(rig, TIMELINE, exported(rig, SemaphoreKind::Binary).as_raw_fd(), 0)
    }

    /// A timeline is imported as a binary semaphore. An H100 returned success; NVIDIA documents no
    /// use of such an import.
    #[cfg(target_os = "linux")]
    [since(11, 2)]
    fn an_import_of_a_timeline_as_a_binary_one(rig)
        names ["cuImportExternalSemaphore", "timeline semaphore"]
        = "CUDA_ERROR_UNKNOWN (999)" {
        import(rig, OPAQUE, exported(rig, SemaphoreKind::Timeline).as_raw_fd(), 0)
    }

    /// Destroying a stream in a forked child is undefined.
    #[cfg(unix)]
    fn a_stream_destroyed_in_a_forked_child(rig, report) names ["cuStreamDestroy_v2", "forked"]
        = "CUDA_ERROR_NOT_INITIALIZED (3)" {
        let stream = stream(rig, report);
        forked_call(|| rig.cuStreamDestroy_v2(stream))
    }

    /// Instantiating a graph is undefined if a node has a destroyed event.
    [since(11, 4)]
    fn a_graph_of_a_destroyed_event(rig, report)
        names ["cuGraphInstantiateWithFlags", "cuEventDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let (event, mut graph, mut node) = (rig.event(NO_TIMING), null_mut(), null_mut());
        about(report, event);
        must!(rig.cuGraphCreate(&mut graph, 0));
        must!(rig.cuGraphAddEventRecordNode(&mut node, graph, std::ptr::null(), 0, event));
        must!(rig.cuEventDestroy_v2(event));
        rig.cuGraphInstantiateWithFlags(&mut null_mut(), graph, 0)
    }

    /// Launching an executable graph is undefined if one of its nodes was set to an event that was
    /// destroyed afterwards.
    [since(11, 4)]
    fn a_launch_over_a_destroyed_event_that_was_set(rig, report)
        names ["cuGraphLaunch", "cuEventDestroy_v2"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let (first, event, stream) = (rig.event(NO_TIMING), rig.event(NO_TIMING),
            rig.stream(NON_BLOCKING));
        let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
        about(report, event);
        must!(rig.cuGraphCreate(&mut graph, 0));
        must!(rig.cuGraphAddEventRecordNode(&mut node, graph, std::ptr::null(), 0, first));
        must("cuGraphInstantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        must!(rig.cuGraphExecEventRecordNodeSetEvent(exec, node, event));
        must!(rig.cuEventDestroy_v2(event));
        rig.cuGraphLaunch(exec, stream)
    }

    /// A wait for an interprocess event in a stream of another context is undefined.
    fn an_ipc_event_waited_for_in_another_context(rig, report) names ["cuStreamWaitEvent"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let (event, other) = (rig.event(INTERPROCESS), rig.new_context());
        about(report, event);
        let stream = rig.within(other, || rig.stream(NON_BLOCKING));
        rig.cuStreamWaitEvent(stream, event, 0)
    }

    /// The description of no resource is undefined.
    [since(12, 4)]
    fn a_description_of_nothing(rig) names ["cuDevResourceGenerateDesc", "no resource"]
        = "CUDA_ERROR_INVALID_VALUE (1)" {
        describe(rig, &mut []).0
    }

    /// Using an event that was imported from a damaged descriptor is undefined. In this rule the
    /// descriptor names a slot that no context has. It still opens.
    fn an_import_of_a_damaged_descriptor(rig, report) names ["cuEventQuery", "damaged"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let mut peer = Peer::start();
        let mut descriptor = peer.export();
        descriptor[16..20].fill(0xA5);
        let (code, event) = rig.open(descriptor);
        must("cuIpcOpenEventHandle", code);
        about(report, event);
        let code = rig.cuEventQuery(event);
        peer.end();
        code
    }

    /// Using an imported event after its exporter has destroyed it is undefined.
    fn an_import_of_a_destroyed_event(rig, report) names ["cuEventQuery", "exporter destroyed"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let mut peer = Peer::start();
        let (code, event) = rig.open(peer.export());
        must("cuIpcOpenEventHandle", code);
        must!(rig.cuEventQuery(event));
        peer.step("destroy");
        about(report, event);
        let code = rig.cuEventQuery(event);
        peer.end();
        code
    }

    /// Using an imported event is undefined after its exporter has destroyed it and created another
    /// one in its place. On a real driver the import refers to the new event.
    fn an_import_whose_place_has_another_event(rig, report) names ["cuEventQuery", "another event"]
        = "CUDA_ERROR_INVALID_HANDLE (400)" {
        let mut peer = Peer::start();
        let (code, event) = rig.open(peer.export());
        must("cuIpcOpenEventHandle", code);
        peer.step("destroy");
        peer.export();
        about(report, event);
        let code = rig.cuEventQuery(event);
        peer.end();
        code
    }

    /// A query of an event of a destroyed context is undefined. The real driver crashed in some
    /// runs, and returned `CUDA_ERROR_CONTEXT_IS_DESTROYED` in others.
    fn an_event_of_a_destroyed_context(rig, report) names ["cuEventQuery", "cuCtxDestroy_v2"]
        = "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)" {
        let context = rig.new_context();
        let event = rig.within(context, || rig.event(NO_TIMING));
        about(report, event);
        must("cuCtxDestroy", rig.destroy_context(context));
        rig.cuEventQuery(event)
    }

    /// A launch of a graph over memory that was freed is undefined. An H200 wrote to the bytes of
    /// the memory's next owner.
    [since(11, 7)]
    fn a_launch_over_freed_memory(rig, report) names ["cuGraphLaunch", "freed"]
        = "CUDA_ERROR_INVALID_VALUE (1)" {
        let stream = rig.stream(NON_BLOCKING);
        let (mut address, mut graph, mut exec) = (0, null_mut(), null_mut());
        must!(rig.cuMemAlloc_v2(&mut address, 4096));
        about(report, std::ptr::without_provenance_mut::<()>(address as usize));
        capture::begin(rig, stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED);
        must!(rig.cuStreamWriteValue64_v2(stream, address, 1, 0));
        must!(rig.cuStreamEndCapture(stream, &mut graph));
        must!(rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        must!(rig.cuGraphLaunch(exec, stream));
        rig.synchronize(stream);
        must!(rig.cuMemFree_v2(address));
        // Another owner's, at the same address.
        must!(rig.cuMemAlloc_v2(&mut address, 4096));
        rig.cuGraphLaunch(exec, stream)
    }
}

rules! {
    /// Querying the event of a node of a destroyed graph is undefined. A real driver returned
    /// `CUDA_ERROR_INVALID_VALUE` in one run, and the event in another.
    [alone, soft_only, since(11, 1)]
    fn a_node_of_a_destroyed_graph(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        let (event, mut graph, mut node, mut found) =
            (rig.event(NO_TIMING), null_mut(), null_mut(), null_mut());
        must!(rig.cuGraphCreate(&mut graph, 0));
        must!(rig.cuGraphAddEventRecordNode(&mut node, graph, std::ptr::null(), 0, event));
        must!(rig.cuGraphDestroy(graph));
        saw.text(code_text(rig.cuGraphEventRecordNodeGetEvent(node, &mut found)));
    }
}
