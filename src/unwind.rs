//! Which types may be used again after a panic: all except those that hold values of the program
//! (`CurrentStream`, `GraphExec`). A graph that is only borrowed may be half changed.

use core::panic::{RefUnwindSafe, UnwindSafe};

macro_rules! unwind_safe {
    ($($type:ty),* $(,)?) => {
        $(static_assertions::assert_impl_all!($type: UnwindSafe, RefUnwindSafe);)*
    };
}

unwind_safe!(
    crate::attributes::MemorySyncDomain,
    crate::attributes::MemorySyncDomainMap,
    crate::attributes::SynchronizationPolicy,
    crate::capture::CaptureMode,
    crate::capture::CaptureStatus,
    crate::capture::DependencyUpdate,
    crate::capture::Capture<'static>,
    crate::capture::CaptureDependency,
    crate::capture::CaptureInfo,
    crate::capture::RecordFlags,
    crate::capture::ThreadCaptureMode,
    crate::capture::WaitFlags,
    crate::ext::LazyState,
    crate::ext::EventPool,
    crate::ext::IpcLease,
    crate::ext::LazyEvent,
    crate::ext::PooledEvent,
    crate::ext::StreamScope,
    crate::ext::Timer<'static>,
    crate::ext::Timing,
    crate::external::BinarySemaphore,
    crate::external::ImportError<()>,
    crate::external::SemaphorePoint<'static>,
    crate::external::TimelineSemaphore,
    crate::foundation::Damage,
    crate::foundation::Deferring<()>,
    crate::foundation::Envelope,
    crate::foundation::Fields<'static>,
    crate::foundation::ForeignCapture,
    crate::foundation::Origin,
    crate::foundation::OwnCapture<'static>,
    crate::foundation::WeakContext,
    crate::graph::GraphNode,
    crate::green::SmResource,
    crate::green::SmSplit,
    crate::ipc::DescriptorError,
    crate::ipc::ExporterState,
    crate::ipc::ExporterProcess,
    crate::ipc::IpcEventDescriptor,
    crate::loader::LoadFailure,
    crate::loader::LoadAttempt,
    crate::loader::LoadError,
    crate::loader::LoadOptions,
    crate::mem_ops::BarrierScope,
    crate::mem_ops::WaitCondition,
    crate::mem_ops::MemOp,
    crate::mem_ops::WaitValueFlags,
    crate::mem_ops::WriteValueFlags,
    crate::Error,
    crate::Progress,
    crate::Context,
    crate::CurrentContext<'static>,
    crate::Device,
    crate::Driver,
    crate::Event,
    crate::EventFlags,
    crate::EventRef,
    crate::ForeignStream<()>,
    crate::PriorityRange,
    crate::Stream,
    crate::StreamOptions,
    crate::StreamRef,
    crate::Uuid,
    crate::Version,
);

static_assertions::assert_impl_all!(crate::graph::Graph: UnwindSafe);
