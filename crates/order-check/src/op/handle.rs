//! The numbers of objects, and who makes a call.

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(
            /// The number of the object: a handle, an address or a count.
            pub u64,
        );
    )*};
}

handles! {
    /// A context, or another object that has a legacy default stream and is synchronized as a
    /// whole.
    ContextId;
    /// A stream. A default stream needs its own number in each context (and thread).
    StreamId;
    /// An event.
    EventId;
    /// A graph that was defined or captured.
    GraphId;
    /// A thread of the host.
    ThreadId;
    /// A host function in a stream, with one number for each submission.
    FunctionId;
    /// A handover from one thread to another: a lock, a channel, a message.
    TokenId;
}

/// The thread or the host function that makes a call, or that accesses memory on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// A thread of the program.
    Thread(ThreadId),
    /// A host function, between [`Op::FunctionBegin`](crate::Op::FunctionBegin) and [`Op::FunctionEnd`](crate::Op::FunctionEnd).
    Function(FunctionId),
}
