//! Which reports are about the same two places.

use cuda_order_check::{Access, Call, Checker, ContextId, Op, StreamId, StreamKind, ThreadId};

/// Default streams have one name in all contexts and threads, and are different places.
#[test]
fn default_streams_of_two_contexts_are_two_places() {
    let mut checker = Checker::default();
    let mut number = 0;
    let mut tell = |op: Op<'_>| {
        number += 1;
        checker.apply(Call::new("call", number, ThreadId(1)), op);
    };
    for context in [1, 2] {
        let (stream, context) = (StreamId(context), ContextId(context));
        let name = Some("0x1 (the legacy default stream)");
        tell(Op::StreamCreate { stream, context, kind: StreamKind::Legacy, name });
    }
    let kind = StreamKind::NonBlocking;
    tell(Op::StreamCreate { stream: StreamId(3), context: ContextId(1), kind, name: None });
    // Each of them in a loop, as a program has it.
    for turn in 0..4 {
        for stream in [1, 2] {
            let address = turn << 16 | stream << 12;
            let accesses = &[Access::write(address, 64)];
            tell(Op::Work { stream: StreamId(stream), accesses });
            tell(Op::Work { stream: StreamId(3), accesses });
        }
    }
    let found: Vec<String> = checker.take_findings().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:#?}");
}
