//! A driver's calls, as operations of the checker.
//!
//! A [`Feed`] has a method for each call that orders work or touches memory. The methods take
//! handles, addresses and sizes, and no state of the driver. So a feed works for a software driver
//! and in front of a real one. It keeps the state that the checker's operations leave to their
//! caller: the memory that the host can read without a call, the words that streams and the host
//! write there, the events of other processes, the nodes of graphs, the host functions, and the
//! names of threads.
//!
//! Call [`begin`](CallFeed::begin) when a call begins. Then call the methods for the actions of the
//! call, in the order in which the driver accepted the calls. Handles are the numbers of objects, as
//! in [`Op`](crate::Op).
//!
//! The methods are in four parts, by subject. Each part dereferences to the next one, so that all of
//! them are methods of a feed: [`Feed`] (graphs), [`MemoryFeed`], [`StreamFeed`] and [`CallFeed`].
//!
//! ```
//! use cuda_order_check_engine::feed::{Feed, Memory, Observer};
//! use cuda_order_check_engine::{Access, EventId, Finding, Options, StreamId, ThreadId};
//!
//! struct Print;
//!
//! impl Observer for Print {
//!     fn thread(&self) -> ThreadId {
//!         ThreadId(1)
//!     }
//!     fn thread_name(&self, thread: ThreadId) -> String {
//!         thread.0.to_string()
//!     }
//!     fn finding(&mut self, finding: Finding) {
//!         panic!("{finding}");
//!     }
//! }
//!
//! let (one, other, event) = (StreamId(0xa), StreamId(0xb), EventId(0xe));
//! let mut feed = Feed::new(Options::default(), Print);
//! feed.begin("cuMemAlloc_v2", 1, None);
//! feed.allocate(0x7000, 256, Memory::Device);
//! feed.begin("cuMemsetD8Async", 2, None);
//! feed.write(one, None, &[Access::write(0x7000, 256).filled(0)]);
//! feed.begin("cuEventRecord", 3, None);
//! feed.record(event, one);
//! feed.begin("cuStreamWaitEvent", 4, None);
//! feed.wait(other, event);
//! feed.begin("cuLaunchKernel", 5, None);
//! feed.work(other, &[Access::read(0x7000, 256)]);
//! ```

/// A feed has the methods of its next part.
macro_rules! part {
    ($feed:ident, $field:ident: $part:ident) => {
        impl<O> std::ops::Deref for $feed<O> {
            type Target = $part<O>;

            fn deref(&self) -> &Self::Target {
                &self.$field
            }
        }

        impl<O> std::ops::DerefMut for $feed<O> {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.$field
            }
        }
    };
}

mod calls;
mod graphs;
mod memory;
mod nodes;
mod places;
mod streams;

pub use calls::{CallFeed, Observer};
pub use graphs::Feed;
pub use memory::MemoryFeed;
pub use nodes::{GraphNode, GraphWork, Semaphore};
pub use places::Memory;
pub use streams::{Awaited, Creator, StreamFeed};
