//! The text of each error.

use cuda_events::sys::{CUresult, Function};
use cuda_timelines::{Error, SharedTimelineError};

#[rustfmt::skip] // A row in few lines.
fn texts() -> Vec<(Error, &'static str)> {
    vec![
        (cuda_events::Error::Driver {
            function: Function::cuEventQuery,
            code: CUresult::CUDA_ERROR_UNKNOWN,
        }
        .into(), "cuEventQuery failed with CUDA_ERROR_UNKNOWN (999)"),
        (Error::TimelineInCapture { function: Function::cuStreamWriteValue64_v2 },
            "cuStreamWriteValue64_v2 was not called: the stream captures, and each launch of the \
             graph would write or wait for the same value again; signal in the stream of the \
             launch, after the launch"),
        (Error::PerThreadTimeline,
            "a timeline cannot belong to the per-thread default stream, which is another stream in \
             each thread; create a stream for it"),
        (Error::Poisoned,
            "the timeline was poisoned before it reached the value: its owner gave up or is gone"),
        (Error::ContextDropped,
            "the point is not reached, and the last share of its timeline's context was dropped, \
             so nothing can show whether it ever will be; keep the timeline or the context until \
             its points are reached"),
        (Error::ExporterGone,
            "the process that had to signal the timeline has ended before it did; import from its \
             successor"),
        (Error::ContextMismatch { device: 1, other_device: 1 },
            "no call was made: the stream, and the timeline, file, memory or graph, belong to two \
             contexts of device 1; make all of them in one context"),
        (
            Error::ContextMismatch { device: 0, other_device: 1 },
            "no call was made: the stream belongs to a context of device 0, and the timeline, file, \
             memory or graph to one of device 1; make all of them in one context",
        ),
        (
            Error::NoThread,
            "the operating system started no thread for cuda-timelines, which looks after streams \
             that wait for other contexts or processes, and after shared timelines; raise the limit \
             of threads (RLIMIT_NPROC, or pids.max of the container), and call again",
        ),
        (SharedTimelineError::DescriptorLength { found: 3, expected: 20 }.into(),
            "timeline descriptor refused: it has 3 bytes, not 20"),
        (SharedTimelineError::DescriptorMagic.into(),
            "timeline descriptor refused: it does not begin like one; send the bytes of \
             TimelineDescriptor::to_bytes"),
        (
            SharedTimelineError::DescriptorVersion { found: 2, expected: 1 }.into(),
            "timeline descriptor refused: it is of version 2, and this cuda-timelines reads version \
             1; use the same release in both processes",
        ),
        (SharedTimelineError::DescriptorChecksum.into(),
            "timeline descriptor refused: it was damaged on the way (its checksum does not match)"),
        (SharedTimelineError::NoSuchTimeline { index: 64 }.into(),
            "timeline descriptor refused: it names place 64, which no file or memory of timelines \
             has; use the same release in both processes"),
        (SharedTimelineError::OtherKind { in_memory: true }.into(),
            "the descriptor names a timeline in device memory; import it with \
             ImportedTimeline::open_memory"),
        (SharedTimelineError::OtherKind { in_memory: false }.into(),
            "the descriptor names a timeline in a file; import it with ImportedTimeline::open, and \
             with the file"),
        (SharedTimelineError::NotMemory.into(), if cfg!(windows) {
            "the handle does not belong to a section of the page file; send the handle of a \
             TimelineFile"
        } else {
            "the file descriptor does not belong to a file of memory (memfd); send the file \
             descriptor of a TimelineFile"
        }),
        (SharedTimelineError::Unsealed.into(), if cfg!(windows) {
            "the section has pages that are not committed, so reading them would end this \
             process; send the handle of a TimelineFile"
        } else {
            "the file of memory is not sealed against shrinking, growing and other seals, so \
             its owner could end this process by truncating it; send the file descriptor of a \
             TimelineFile"
        }),
        (SharedTimelineError::FileSize { found: 64, expected: 4096 }.into(),
            "the file of memory has 64 bytes, and a file of timelines has 4096; send the file of a \
             TimelineFile, and use the same release in both processes"),
        (SharedTimelineError::FileMagic.into(),
            "the file of memory contains no timelines; send the file of a TimelineFile"),
        (
            SharedTimelineError::FileVersion { found: 2, expected: 1 }.into(),
            "the timelines in the file are of version 2, and this cuda-timelines reads version 1; use \
             the same release in both processes",
        ),
        (SharedTimelineError::OtherFile.into(),
            "the descriptor belongs to a timeline of another file; send each descriptor together \
             with the file of its timeline"),
        (SharedTimelineError::FileFull.into(),
            "there is no place left for a timeline, and those of dropped timelines are not used \
             again; make another TimelineFile or TimelineMemory"),
        (SharedTimelineError::SameProcess { pid: 7 }.into(),
            "cuIpcOpenMemHandle_v2 failed with CUDA_ERROR_INVALID_CONTEXT (201): probably this \
             process (id 7) made the timeline's handle, and device memory can be opened only in \
             another one; pass the timeline itself"),
        (SharedTimelineError::MemoryOfOtherDevice { exported: Some(1), context: 0 }.into(),
            "the timeline's memory is on device 1, and the context is of device 0; open it in a \
             context of device 1"),
        (SharedTimelineError::MemoryOfOtherDevice { exported: None, context: 2 }.into(),
            "the timeline's memory is on a device that this process does not see, and the context \
             is of device 2; look at CUDA_VISIBLE_DEVICES in both processes"),
        (SharedTimelineError::OtherMemory.into(),
            "the memory behind the timeline's handle is not the timeline's: probably its owner \
             freed it; keep the TimelineMemory in its process, and send a new handle"),
        (SharedTimelineError::Platform.into(),
            "this platform has no memory that is safe to share, so timelines cannot be shared \
             between processes; use interprocess events"),
    ]
}

#[test]
fn every_error_has_its_text() {
    for (error, text) in texts() {
        assert_eq!(error.to_string(), text);
        // What `unwrap` and `main` print.
        assert_eq!(format!("{error:?}"), text);
        assert!(std::error::Error::source(&error).is_none(), "its text would be printed twice");
        if let Error::SharedTimeline(error) = error {
            assert_eq!((error.to_string(), format!("{error:?}")), (text.into(), text.into()));
        }
    }
}

/// An error of cuda-events keeps its call, its code and its meaning.
#[test]
fn an_error_of_the_driver_passes_through() {
    let (function, code) = (Function::cuEventQuery, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    for (error, code, sticky) in [
        (cuda_events::Error::Driver { function, code }, Some(code), true),
        (cuda_events::Error::ForkedChild { function }, None, true),
        (cuda_events::Error::DriverMismatch { function }, None, false),
    ] {
        let passed = Error::from(error);
        assert_eq!(
            (passed.function(), passed.code(), passed.is_sticky()),
            (Some(function), code, sticky)
        );
    }
    let function = Function::cuStreamWriteValue64_v2;
    assert_eq!(Error::TimelineInCapture { function }.function(), Some(function));
    let mismatch = Error::ContextMismatch { device: 0, other_device: 1 };
    assert_eq!((mismatch.function(), mismatch.code()), (Some(function), None));
    let own = Error::from(SharedTimelineError::SameProcess { pid: 7 });
    let refused = (Some(Function::cuIpcOpenMemHandle_v2), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    assert_eq!((own.function(), own.code()), (refused.0, Some(refused.1)));
    assert!(Error::Poisoned.function().is_none() && !Error::Poisoned.is_sticky());
}
