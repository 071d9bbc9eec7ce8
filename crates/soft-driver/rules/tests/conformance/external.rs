//! External semaphores: the calls that return an error, and signals and waits. A real driver
//! imports semaphores of Vulkan.

use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::{null, null_mut};

use cuda_events::sys::*;
use cuda_soft_driver::SemaphoreKind;
use cuda_test_harness::memory;

use crate::green::{one, stream_in};
use crate::raw::{NON_BLOCKING, Rig, code_text};
use crate::rules;
use crate::semaphores::{available, exported};

type Type = CUexternalSemaphoreHandleType;

pub const OPAQUE: Type = Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
pub const TIMELINE: Type = Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;

fn described(kind: Type, fd: i32, flags: u32) -> CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC::default();
    description.type_ = kind;
    description.handle.fd = fd;
    description.flags = flags;
    description
}

pub fn import(rig: &Rig, kind: Type, fd: i32, flags: u32) -> CUresult {
    let mut semaphore = null_mut();
    rig.cuImportExternalSemaphore(&mut semaphore, &described(kind, fd, flags))
}

/// Imports a new semaphore of another API.
fn imported(rig: &Rig, kind: SemaphoreKind) -> CUexternalSemaphore {
    let as_kind = if matches!(kind, SemaphoreKind::Timeline) { TIMELINE } else { OPAQUE };
    let description = described(as_kind, exported(rig, kind).into_raw_fd(), 0);
    let mut semaphore = null_mut();
    let code = rig.cuImportExternalSemaphore(&mut semaphore, &description);
    assert_eq!(code, CUresult::CUDA_SUCCESS, "the import");
    semaphore
}

fn signal(rig: &Rig, stream: CUstream, all: &[CUexternalSemaphore], value: u64) -> CUresult {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    params.params.fence.value = value;
    let params = vec![params; all.len()];
    rig.cuSignalExternalSemaphoresAsync(all.as_ptr(), params.as_ptr(), all.len() as u32, stream)
}

fn wait(rig: &Rig, stream: CUstream, all: &[CUexternalSemaphore], value: u64) -> CUresult {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    params.params.fence.value = value;
    let params = vec![params; all.len()];
    rig.cuWaitExternalSemaphoresAsync(all.as_ptr(), params.as_ptr(), all.len() as u32, stream)
}

/// What streams of two contexts do with a semaphore of the first one.
fn in_two_contexts(
    rig: &Rig,
    semaphore: CUexternalSemaphore,
    own: CUstream,
    other: CUstream,
) -> String {
    let signalled = signal(rig, own, &[semaphore], 1);
    // Without it a wait that is accepted would never end.
    rig.cuStreamSynchronize(own);
    let others = [signal(rig, other, &[semaphore], 2), wait(rig, other, &[semaphore], 1)];
    let waited = wait(rig, own, &[semaphore], 1);
    let then = rig.cuStreamSynchronize(own);
    format!(
        "signal {}; the other's signal {}, wait {}; wait {}; then {}",
        code_text(signalled),
        code_text(others[0]),
        code_text(others[1]),
        code_text(waited),
        code_text(then)
    )
}

fn nothing() -> OwnedFd {
    File::open("/dev/null").expect("it is there").into()
}

rules! {
    /// An import needs a place for the handle, and a description. If either is NULL, it returns
    /// `CUDA_ERROR_INVALID_VALUE`.
    [alone]
    fn an_import_without_a_place(rig, saw) =
        "no place CUDA_ERROR_INVALID_VALUE (1); no description CUDA_ERROR_INVALID_VALUE (1)"
    {
        let description = described(OPAQUE, nothing().as_raw_fd(), 0);
        saw.code("no place", rig.cuImportExternalSemaphore(null_mut(), &description));
        let mut semaphore = null_mut();
        saw.code("no description", rig.cuImportExternalSemaphore(&mut semaphore, null()));
    }

    /// An import with an unknown type of handle returns `CUDA_ERROR_INVALID_VALUE`.
    [alone]
    fn an_import_of_an_unknown_type(rig, saw) =
        "0 CUDA_ERROR_INVALID_VALUE (1); 99 CUDA_ERROR_INVALID_VALUE (1)"
    {
        let file = nothing();
        saw.code("0", import(rig, CUexternalSemaphoreHandleType(0), file.as_raw_fd(), 0));
        saw.code("99", import(rig, CUexternalSemaphoreHandleType(99), file.as_raw_fd(), 0));
    }

    /// The flags of an import must be 0.
    [alone]
    fn an_import_with_flags(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        saw.text(code_text(import(rig, OPAQUE, nothing().as_raw_fd(), 1)));
    }

    /// A file that is not a semaphore cannot be imported. Its descriptor stays open.
    [alone, since(11, 2)]
    fn an_import_of_something_else(rig, saw) =
        "/dev/null CUDA_ERROR_UNKNOWN (999), CUDA_ERROR_UNKNOWN (999); a pipe CUDA_ERROR_UNKNOWN \
         (999), CUDA_ERROR_UNKNOWN (999); a file of memory CUDA_ERROR_UNKNOWN (999), \
         CUDA_ERROR_UNKNOWN (999); all open"
    {
        let (pipe, _other_end) = std::io::pipe().expect("a pipe");
        let memory = memory::plain(4096);
        let files =
            [("/dev/null", nothing()), ("a pipe", pipe.into()), ("a file of memory", memory)];
        let mut open = true;
        for (what, file) in &files {
            let [opaque, timeline] =
                [OPAQUE, TIMELINE].map(|kind| import(rig, kind, file.as_raw_fd(), 0));
            saw.text(format!("{what} {opaque}, {timeline}"));
            open &= file.try_clone().is_ok();
        }
        saw.text(if open { "all open" } else { "not all open" });
    }

    /// A number that is not a descriptor cannot be imported. The error depends on the type of
    /// handle.
    [alone, since(11, 2)]
    fn an_import_of_no_descriptor(rig, saw) =
        "opaque CUDA_ERROR_UNKNOWN (999); timeline CUDA_ERROR_INVALID_VALUE (1)"
    {
        saw.code("opaque", import(rig, OPAQUE, -1, 0));
        saw.code("timeline", import(rig, TIMELINE, -1, 0));
    }

    /// On Linux, an import with a type of handle for Windows returns `CUDA_ERROR_INVALID_VALUE`.
    [alone, since(11, 2)]
    fn an_import_of_handles_of_windows(rig, saw) =
        "2 CUDA_ERROR_INVALID_VALUE (1); 3 CUDA_ERROR_INVALID_VALUE (1); 4 \
         CUDA_ERROR_INVALID_VALUE (1); 10 CUDA_ERROR_INVALID_VALUE (1)"
    {
        let file = nothing();
        for kind in [2, 3, 4, 10] {
            let code = import(rig, CUexternalSemaphoreHandleType(kind), file.as_raw_fd(), 0);
            saw.code(&kind.to_string(), code);
        }
    }

    /// An import needs a current context.
    [alone]
    fn an_import_without_a_context(rig, saw) = "CUDA_ERROR_INVALID_CONTEXT (201)" {
        let file = nothing();
        rig.cuCtxSetCurrent(null_mut());
        saw.text(code_text(import(rig, OPAQUE, file.as_raw_fd(), 0)));
    }

    /// A signal or a wait with no semaphores returns `CUDA_ERROR_INVALID_VALUE`.
    [alone]
    fn no_semaphores_at_all(rig, saw) =
        "signal CUDA_ERROR_INVALID_VALUE (1); wait CUDA_ERROR_INVALID_VALUE (1); the stream success"
    {
        let stream = rig.stream(NON_BLOCKING);
        saw.code("signal", rig.cuSignalExternalSemaphoresAsync(null(), null(), 0, stream));
        saw.code("wait", rig.cuWaitExternalSemaphoresAsync(null(), null(), 0, stream));
        saw.code("the stream", rig.cuStreamQuery(stream));
    }

    /// Destroying NULL as a semaphore returns `CUDA_ERROR_INVALID_VALUE`.
    [alone]
    fn destroying_null(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        saw.text(code_text(rig.cuDestroyExternalSemaphore(null_mut())));
    }

    /// A wait for NULL as a semaphore returns `CUDA_ERROR_INVALID_VALUE`.
    [alone]
    fn waiting_for_null(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        let stream = rig.stream(NON_BLOCKING);
        let wait = Default::default();
        saw.text(code_text(rig.cuWaitExternalSemaphoresAsync(&null_mut(), &wait, 1, stream)));
    }

    /// A stream that waits for several timelines in one call continues after the last of them is
    /// signalled.
    [alone, since(11, 2), needs(available)]
    fn several_in_one_call(rig, saw) =
        "wait success; at first CUDA_ERROR_NOT_READY (600); signals success; after two of three \
         CUDA_ERROR_NOT_READY (600); after the third success"
    {
        let all = [(); 3].map(|()| imported(rig, SemaphoreKind::Timeline));
        let (waits, signals) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        saw.code("wait", wait(rig, waits, &all, 1));
        saw.code("at first", rig.cuStreamQuery(waits));
        saw.code("signals", signal(rig, signals, &all[..2], 1));
        rig.cuStreamSynchronize(signals);
        saw.code("after two of three", rig.cuStreamQuery(waits));
        signal(rig, signals, &all[2..], 1);
        rig.cuStreamSynchronize(signals);
        saw.code("after the third", rig.cuStreamSynchronize(waits));
    }

    /// A wait for a semaphore and NULL in one call returns an error, and the stream waits for
    /// neither.
    [alone, since(11, 2), needs(available)]
    fn a_wait_for_one_and_null(rig, saw) =
        "wait CUDA_ERROR_INVALID_VALUE (1); the stream success"
    {
        let all = [imported(rig, SemaphoreKind::Timeline), null_mut()];
        let stream = rig.stream(NON_BLOCKING);
        saw.code("wait", wait(rig, stream, &all, 1));
        saw.code("the stream", rig.cuStreamQuery(stream));
        signal(rig, rig.stream(NON_BLOCKING), &all[..1], 1);
    }

    /// A signal and a wait can be captured. Each launch of the graph runs them.
    [alone, since(11, 4), needs(available)]
    fn in_a_capture(rig, saw) =
        "wait success; signal success; end success; instantiate success; launch success; pending \
         CUDA_ERROR_NOT_READY (600); then success"
    {
        let [there, back] = [(); 2].map(|()| imported(rig, SemaphoreKind::Timeline));
        let (stream, other) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        rig.cuStreamBeginCapture_v2(
            stream,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        );
        saw.code("wait", wait(rig, stream, &[there], 1));
        saw.code("signal", signal(rig, stream, &[back], 1));
        let (mut graph, mut exec) = (null_mut(), null_mut());
        saw.code("end", rig.cuStreamEndCapture(stream, &mut graph));
        saw.code("instantiate", rig.cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        saw.code("launch", rig.cuGraphLaunch(exec, stream));
        saw.code("pending", rig.cuStreamQuery(stream));
        signal(rig, other, &[there], 1);
        wait(rig, other, &[back], 1);
        rig.cuStreamSynchronize(other);
        saw.code("then", rig.cuStreamSynchronize(stream));
    }

    /// A stream can wait for a binary semaphore before the signal is submitted to another stream.
    [alone, needs(available)]
    fn a_binary_wait_before_its_signal(rig, saw) =
        "wait success; before CUDA_ERROR_NOT_READY (600); signal success; then success"
    {
        let all = [imported(rig, SemaphoreKind::Binary)];
        let (waits, signals) = (rig.stream(NON_BLOCKING), rig.stream(NON_BLOCKING));
        saw.code("wait", wait(rig, waits, &all, 0));
        saw.code("before", rig.cuStreamQuery(waits));
        saw.code("signal", signal(rig, signals, &all, 0));
        saw.code("then", rig.cuStreamSynchronize(waits));
    }

    /// A stream of a green context cannot use any semaphore. A semaphore that is imported while a
    /// green context is current belongs to the primary context.
    [alone, since(12, 4), needs(available)]
    fn in_a_green_context(rig, saw) =
        "of the primary: signal success; the other's signal CUDA_ERROR_INVALID_HANDLE (400), wait \
         CUDA_ERROR_INVALID_HANDLE (400); wait success; then success; of the green: signal \
         CUDA_ERROR_INVALID_HANDLE (400); the other's signal success, wait success; wait \
         CUDA_ERROR_INVALID_HANDLE (400); then success"
    {
        let green = one(rig);
        let (own, other) = (rig.stream(NON_BLOCKING), stream_in(rig, green));
        let semaphore = imported(rig, SemaphoreKind::Timeline);
        saw.text(format!("of the primary: {}", in_two_contexts(rig, semaphore, own, other)));
        let semaphore = rig.within(green.context, || imported(rig, SemaphoreKind::Timeline));
        saw.text(format!("of the green: {}", in_two_contexts(rig, semaphore, other, own)));
    }

    /// A stream of a context cannot use a semaphore that was imported in another context of the
    /// device.
    [alone, since(11, 2), needs(available)]
    fn in_another_context(rig, saw) =
        "signal success; the other's signal CUDA_ERROR_INVALID_VALUE (1), wait \
         CUDA_ERROR_INVALID_VALUE (1); wait success; then success"
    {
        let context = rig.new_context();
        let other = rig.within(context, || rig.stream(NON_BLOCKING));
        let semaphore = imported(rig, SemaphoreKind::Timeline);
        saw.text(in_two_contexts(rig, semaphore, rig.stream(NON_BLOCKING), other));
    }

    /// On Linux, `cuDeviceGetLuid` returns `CUDA_ERROR_NOT_SUPPORTED`: only Windows identifies a
    /// device by a LUID.
    [alone]
    fn a_name_of_windows(rig, saw) = "CUDA_ERROR_NOT_SUPPORTED (801)" {
        let (mut luid, mut nodes) = ([0; 8], 0);
        saw.text(code_text(rig.cuDeviceGetLuid(luid.as_mut_ptr(), &mut nodes, 0)));
    }
}
