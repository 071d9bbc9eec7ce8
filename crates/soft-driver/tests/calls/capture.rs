//! Launches of graphs with events that are gone, which a real driver leaves undefined.

use crate::common;

use std::ptr::null_mut;

use common::*;
use cuda_events::sys::*;

const NO_TIMING: u32 = CU_EVENT_DISABLE_TIMING;

#[test]
fn launching_with_an_event_that_is_gone_is_misuse() {
    for is_record in [true, false] {
        let raw = Raw::new();
        let stream = raw.stream(1);
        let (first, second) = (raw.event(NO_TIMING), raw.event(NO_TIMING));
        let (mut graph, mut node, mut exec) = (null_mut(), null_mut(), null_mut());
        unsafe {
            assert_eq!((raw.cuGraphCreate)(&mut graph, 0).0, OK);
            let (add, set, pattern) = if is_record {
                (
                    raw.cuGraphAddEventRecordNode,
                    raw.cuGraphExecEventRecordNodeSetEvent,
                    "cuGraphExecEventRecord*",
                )
            } else {
                (
                    raw.cuGraphAddEventWaitNode,
                    raw.cuGraphExecEventWaitNodeSetEvent,
                    "cuGraphExecEventWait*",
                )
            };
            assert_eq!(add.unwrap()(&mut node, graph, std::ptr::null(), 0, first).0, OK);
            assert_eq!(raw.cuGraphInstantiateWithFlags.unwrap()(&mut exec, graph, 0).0, OK);
            // The work is done although the program is told otherwise, so that it keeps nothing.
            raw.soft.inject(cuda_soft_driver::Fault::on(pattern).once().after_the_work());
            assert_eq!(set.unwrap()(exec, node, second).0, 999);
            assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
            raw.sync(stream);
            assert_eq!((raw.cuEventDestroy_v2)(second).0, OK);
            assert_eq!((raw.cuGraphLaunch)(exec, stream).0, INVALID_HANDLE);
            let misuses = raw.soft.misuses();
            assert_eq!(misuses.len(), 1);
            assert!(misuses[0].starts_with("cuGraphLaunch: event 0x"), "{misuses:?}");
            assert!(misuses[0].contains("was destroyed by cuEventDestroy_v2"), "{misuses:?}");
            assert!(!raw.busy(stream), "nothing was submitted");
            // Set once more it is good again, and the first one is none of its business any more.
            let third = raw.event(NO_TIMING);
            assert_eq!(set.unwrap()(exec, node, third).0, OK);
            assert_eq!((raw.cuEventDestroy_v2)(first).0, OK);
            assert_eq!((raw.cuGraphLaunch)(exec, stream).0, OK);
            raw.sync(stream);
            assert_eq!(raw.soft.misuses().len(), 1);
            assert_eq!((raw.cuGraphExecDestroy)(exec).0, OK);
        }
    }
}
