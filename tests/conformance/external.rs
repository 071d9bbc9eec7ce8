//! External semaphores: what is refused. What works takes a semaphore of another API, which
//! examples/vulkan has on a card and tests/streams/external.rs on the software driver.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{null, null_mut};

use cuda_events::sys::*;

use crate::common::memory;
use crate::raw::{NON_BLOCKING, Rig, said};
use crate::rules;

type Type = CUexternalSemaphoreHandleType;

const OPAQUE: Type = Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
const TIMELINE: Type = Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;

fn described(kind: Type, fd: i32, flags: u32) -> CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
        type_: kind,
        handle: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_u { fd },
        flags,
        ..Default::default()
    }
}

fn import(rig: &Rig, kind: Type, fd: i32, flags: u32) -> CUresult {
    let mut semaphore = null_mut();
    rig.cuImportExternalSemaphore(&mut semaphore, &described(kind, fd, flags))
}

fn nothing() -> OwnedFd {
    File::open("/dev/null").expect("it is there").into()
}

rules! {
    /// An import takes a place for the handle, and a description.
    [alone]
    fn an_import_without_a_place(rig, saw) =
        "no place CUDA_ERROR_INVALID_VALUE (1); no description CUDA_ERROR_INVALID_VALUE (1)"
    {
        let description = described(OPAQUE, nothing().as_raw_fd(), 0);
        saw.code("no place", rig.cuImportExternalSemaphore(null_mut(), &description));
        let mut semaphore = null_mut();
        saw.code("no description", rig.cuImportExternalSemaphore(&mut semaphore, null()));
    }

    /// An import takes a type of handle that there is.
    [alone]
    fn an_import_of_an_unknown_type(rig, saw) =
        "0 CUDA_ERROR_INVALID_VALUE (1); 99 CUDA_ERROR_INVALID_VALUE (1)"
    {
        let file = nothing();
        saw.code("0", import(rig, CUexternalSemaphoreHandleType(0), file.as_raw_fd(), 0));
        saw.code("99", import(rig, CUexternalSemaphoreHandleType(99), file.as_raw_fd(), 0));
    }

    /// An import takes no flags.
    [alone]
    fn an_import_with_flags(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        saw.text(said(import(rig, OPAQUE, nothing().as_raw_fd(), 1)));
    }

    /// What is no semaphore is not imported, and its descriptor stays open.
    [alone, since(11, 2)]
    fn an_import_of_something_else(rig, saw) =
        "/dev/null CUDA_ERROR_UNKNOWN (999), CUDA_ERROR_UNKNOWN (999); a pipe CUDA_ERROR_UNKNOWN \
         (999), CUDA_ERROR_UNKNOWN (999); a file of memory CUDA_ERROR_UNKNOWN (999), \
         CUDA_ERROR_UNKNOWN (999); all open"
    {
        let (pipe, _other_end) = std::io::pipe().expect("a pipe");
        let memory = memory::file(4096, rustix::fs::SealFlags::empty());
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

    /// A number that is no descriptor is not imported.
    [alone, since(11, 2)]
    fn an_import_of_no_descriptor(rig, saw) =
        "opaque CUDA_ERROR_UNKNOWN (999); timeline CUDA_ERROR_INVALID_VALUE (1)"
    {
        saw.code("opaque", import(rig, OPAQUE, -1, 0));
        saw.code("timeline", import(rig, TIMELINE, -1, 0));
    }

    /// Handles of Windows are an invalid value on Linux.
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

    /// An import takes a current context.
    [alone]
    fn an_import_without_a_context(rig, saw) = "CUDA_ERROR_INVALID_CONTEXT (201)" {
        let file = nothing();
        rig.cuCtxSetCurrent(null_mut());
        saw.text(said(import(rig, OPAQUE, file.as_raw_fd(), 0)));
    }

    /// A call that is about no semaphores is an invalid value.
    [alone]
    fn no_semaphores_at_all(rig, saw) =
        "signal CUDA_ERROR_INVALID_VALUE (1); wait CUDA_ERROR_INVALID_VALUE (1); the stream success"
    {
        let stream = rig.stream(NON_BLOCKING);
        saw.code("signal", rig.cuSignalExternalSemaphoresAsync(null(), null(), 0, stream));
        saw.code("wait", rig.cuWaitExternalSemaphoresAsync(null(), null(), 0, stream));
        saw.code("the stream", rig.cuStreamQuery(stream));
    }

    /// NULL is no semaphore that can be destroyed.
    [alone]
    fn destroying_null(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        saw.text(said(rig.cuDestroyExternalSemaphore(null_mut())));
    }

    /// NULL is no semaphore that can be waited for.
    [alone]
    fn waiting_for_null(rig, saw) = "CUDA_ERROR_INVALID_VALUE (1)" {
        let stream = rig.stream(NON_BLOCKING);
        let wait = Default::default();
        saw.text(said(rig.cuWaitExternalSemaphoresAsync(&null_mut(), &wait, 1, stream)));
    }
}
