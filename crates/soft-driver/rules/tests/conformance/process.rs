//! A process that forks or ends.
//!
//! Windows has no fork. There `std::process::exit` runs no handler and no destructor of the
//! program.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use cuda_events::sys::*;
use cuda_test_harness::child::say;

use crate::raw::{NO_TIMING, NON_BLOCKING, Raw, Sent, code_text};
use crate::rules;
use crate::rules::Saw;
#[cfg(unix)]
use cuda_test_harness::fork;

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> i32;
}

/// Runs `work` in a forked child, and returns its result, or the end of the child.
#[cfg(unix)]
fn in_forked_child(work: impl FnOnce() -> String) -> String {
    let (output, status) = fork::in_child(|| {
        // The parent's time limit does not apply here.
        crate::rules::do_not_hang();
        work()
    });
    if status == 0 {
        output
    } else {
        format!("{output} (the child ended with wait status {status})")
    }
}

/// Makes a call in a forked child, and returns its code. If a signal ended the child, this process
/// ends in the same way.
#[cfg(unix)]
pub fn forked_call(call: impl FnOnce() -> CUresult) -> CUresult {
    let output = in_forked_child(|| call().0.to_string());
    match output.parse() {
        Ok(code) => CUresult(code),
        Err(_) => std::process::abort(),
    }
}

/// The handles that an exit handler uses: the table, an event and a stream.
struct Asked {
    raw: Raw,
    event: Sent,
    stream: Sent,
}

static ASKED: Mutex<Option<Asked>> = Mutex::new(None);

/// Makes calls of several kinds in a handler at exit.
extern "C" fn ask() {
    let asked = ASKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(Asked { raw, event, stream }) = &*asked else { return };
    let (mut version, mut count, mut created) = (0, 0, null_mut());
    let one = Saw::default();
    // The stream has no work now.
    let idle = raw.cuStreamQuery(stream.get());
    one.codes(&[
        ("cuDriverGetVersion", raw.cuDriverGetVersion(&mut version)),
        ("cuDeviceGetCount", raw.cuDeviceGetCount(&mut count)),
        ("cuEventQuery", raw.cuEventQuery(event.get())),
        ("cuEventRecord", raw.cuEventRecord(event.get(), stream.get())),
        ("cuStreamQuery", idle),
        ("cuEventCreate", raw.cuEventCreate(&mut created, 0)),
        ("cuEventDestroy", raw.cuEventDestroy_v2(event.get())),
        ("cuStreamDestroy", raw.cuStreamDestroy_v2(stream.get())),
    ]);
    say(&one.all());
}

fn ask_at_exit() {
    // SAFETY: the handler is a function of this program and does not unwind.
    assert_eq!(unsafe { atexit(ask) }, 0);
}

/// Prepares the handles for the handlers, and ends the process.
fn exit(raw: &Raw) -> ! {
    let (event, stream) = (raw.event(NO_TIMING), raw.stream(NON_BLOCKING));
    raw.record(event, stream);
    raw.synchronize(stream);
    let asked = Asked { raw: *raw, event: Sent::new(event), stream: Sent::new(stream) };
    *ASKED.lock().expect("no panic") = Some(asked);
    std::process::exit(0);
}

/// Whether the destructor below makes its calls: it is part of every process of this binary.
static ASK_IN_DESTRUCTOR: AtomicBool = AtomicBool::new(false);

extern "C" fn destructor() {
    if ASK_IN_DESTRUCTOR.load(Ordering::SeqCst) {
        ask();
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

rules! {
    /// In a process that was forked after `cuInit`, the driver behaves as if it had never been
    /// initialised, and `cuInit` returns `CUDA_ERROR_NOT_INITIALIZED`.
    #[cfg(unix)]
    [alone]
    fn a_forked_child_is_not_initialised(rig, saw) =
        "CUDA_ERROR_NOT_INITIALIZED (3) from cuInit, cuDeviceGetCount, cuCtxGetCurrent, \
         cuEventCreate, cuStreamCreate; success from cuDriverGetVersion"
    {
        saw.text(in_forked_child(|| {
            let (mut count, mut version, mut context, mut event, mut stream) =
                (0, 0, null_mut(), null_mut(), null_mut());
            let one = Saw::default();
            one.codes(&[
                ("cuInit", rig.cuInit(0)),
                ("cuDeviceGetCount", rig.cuDeviceGetCount(&mut count)),
                ("cuCtxGetCurrent", rig.cuCtxGetCurrent(&mut context)),
                ("cuEventCreate", rig.cuEventCreate(&mut event, 0)),
                ("cuStreamCreate", rig.cuStreamCreate(&mut stream, 0)),
                ("cuDriverGetVersion", rig.cuDriverGetVersion(&mut version)),
            ]);
            one.all()
        }));
    }

    /// In a forked child, querying or destroying inherited handles returns success, which has no
    /// meaning.
    #[cfg(unix)]
    [alone]
    fn inherited_handles_in_a_forked_child(rig, saw) = "success from cuEventQuery, cuStreamQuery, \
        cuEventDestroy" {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, stream);
        rig.synchronize(stream);
        saw.text(in_forked_child(|| {
            let one = Saw::default();
            one.codes(&[
                ("cuEventQuery", rig.cuEventQuery(event)),
                ("cuStreamQuery", rig.cuStreamQuery(stream)),
                ("cuEventDestroy", rig.cuEventDestroy_v2(event)),
            ]);
            one.all()
        }));
    }

    /// In a forked child, submitting work with inherited handles, or waiting for it, returns
    /// success, which has no meaning.
    #[cfg(unix)]
    [alone]
    fn work_in_a_forked_child(rig, saw) =
        "success from cuEventRecord, cuStreamWaitEvent, cuEventSynchronize, cuStreamSynchronize"
    {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, stream);
        rig.synchronize(stream);
        saw.text(in_forked_child(|| {
            let one = Saw::default();
            one.codes(&[
                ("cuEventRecord", rig.cuEventRecord(event, stream)),
                ("cuStreamWaitEvent", rig.cuStreamWaitEvent(stream, event, 0)),
                ("cuEventSynchronize", rig.cuEventSynchronize(event)),
                ("cuStreamSynchronize", rig.cuStreamSynchronize(stream)),
            ]);
            one.all()
        }));
    }

    /// The calls and the exit of a forked child do not harm the parent.
    #[cfg(unix)]
    [alone]
    fn the_parent_of_a_fork(rig, saw) = "record success; synchronize success; stream success; \
        destroy success" {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, stream);
        rig.synchronize(stream);
        let _ = in_forked_child(|| {
            let _ = (rig.cuEventQuery(event), rig.cuEventDestroy_v2(event));
            String::new()
        });
        saw.code("record", rig.cuEventRecord(event, stream));
        saw.code("synchronize", rig.cuEventSynchronize(event));
        saw.code("stream", rig.cuStreamQuery(stream));
        saw.code("destroy", rig.cuEventDestroy_v2(event));
    }

    /// A forked child may end by `exit`, which runs the inherited exit handlers.
    #[cfg(unix)]
    [alone]
    fn a_forked_child_exits(rig, saw) = "ended well; the parent success" {
        let stream = rig.stream(NON_BLOCKING);
        let (_, status) = fork::in_child(|| std::process::exit(0));
        if status == 0 {
            saw.text("ended well")
        } else {
            saw.text(format_args!("wait status {status}"))
        }
        saw.code("the parent", rig.cuStreamQuery(stream));
    }

    /// A process that was forked before `cuInit` can use the driver, and so can its parent.
    #[cfg(unix)]
    [bare]
    fn forked_before_init(rig, saw) =
        "cuInit success; cuDevicePrimaryCtxRetain success; cuEventCreate success; the parent's \
            cuInit success"
    {
        saw.text(in_forked_child(|| {
            let (mut context, mut event) = (null_mut(), null_mut());
            let one = Saw::default();
            one.code("cuInit", rig.cuInit(0));
            one.code("cuDevicePrimaryCtxRetain", rig.cuDevicePrimaryCtxRetain(&mut context, 0));
            must!(rig.cuCtxSetCurrent(context));
            one.code("cuEventCreate", rig.cuEventCreate(&mut event, 0));
            one.all()
        }));
        saw.code("the parent's cuInit", rig.cuInit(0));
    }

    /// An exit handler that was registered after the driver was loaded and initialised runs while
    /// the driver still works.
    #[cfg(unix)]
    [alone]
    fn a_handler_registered_after_init(rig, saw) =
        "success from cuDriverGetVersion, cuDeviceGetCount, cuEventQuery, cuEventRecord, \
         cuStreamQuery, cuEventCreate, cuEventDestroy, cuStreamDestroy"
    {
        let _ = saw;
        ask_at_exit();
        exit(rig);
    }

    /// An exit handler that was registered before the driver was loaded runs after the driver has
    /// shut down. Every call then returns `CUDA_ERROR_DEINITIALIZED`.
    #[cfg(unix)]
    [before_loading(ask_at_exit)]
    fn a_handler_registered_before_loading(rig, saw) =
        "CUDA_ERROR_DEINITIALIZED (4) from cuDriverGetVersion, cuDeviceGetCount, cuEventQuery, \
         cuEventRecord, cuStreamQuery, cuEventCreate, cuEventDestroy, cuStreamDestroy"
    {
        let _ = saw;
        exit(rig);
    }

    /// A destructor of the program runs after the driver has shut down. Every call then returns
    /// `CUDA_ERROR_DEINITIALIZED`.
    #[cfg(unix)]
    [alone]
    fn a_destructor_of_the_program(rig, saw) =
        "CUDA_ERROR_DEINITIALIZED (4) from cuDriverGetVersion, cuDeviceGetCount, cuEventQuery, \
         cuEventRecord, cuStreamQuery, cuEventCreate, cuEventDestroy, cuStreamDestroy"
    {
        let _ = saw;
        ASK_IN_DESTRUCTOR.store(true, Ordering::SeqCst);
        exit(rig);
    }

    /// A thread can continue to call the driver while the process ends. Its calls return success or
    /// `CUDA_ERROR_DEINITIALIZED`, and nothing crashes.
    [alone]
    fn a_thread_that_calls_during_exit(rig, saw) = "ended well" {
        let (event, stream) = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING));
        rig.record(event, stream);
        rig.synchronize(stream);
        let (raw, event) = (**rig, Sent::new(event));
        let (begin, begun) = channel();
        std::thread::spawn(move || {
            for calls in 1_u64.. {
                let code = raw.cuEventQuery(event.get());
                if calls == 100 {
                    begin.send(()).expect("the rule waits");
                }
                if code != CUresult::CUDA_SUCCESS && code != CUresult::CUDA_ERROR_DEINITIALIZED {
                    say(&format!("the thread saw {code}"));
                    return;
                }
            }
        });
        begun.recv().expect("the thread calls");
        saw.text("ended well");
        std::process::exit(0);
    }

    /// A process may end while the driver still has work.
    [alone]
    fn exit_with_work_under_way(rig, saw) = "ended well" {
        let stream = rig.stream(NON_BLOCKING);
        unsafe extern "C" fn nothing(_data: *mut c_void) {}
        must!(rig.cuLaunchHostFunc(stream, Some(nothing), null_mut()));
        let _ = rig.recorded(stream);
        saw.text("ended well");
        std::process::exit(0);
    }

    /// A process may end without releasing anything.
    [alone]
    fn exit_without_release(rig, saw) = "ended well" {
        let _ = (rig.event(NO_TIMING), rig.stream(NON_BLOCKING), rig.new_context());
        saw.text(if code_text(rig.cuCtxSynchronize()) == "success" {
            "ended well"
        } else {
            "not ready to end"
        });
        std::process::exit(0);
    }
}
