//! The hidden items that published crates use. `cuda-timelines` and `cuda-soft-driver` take every
//! compatible version of this crate, also one that is newer than themselves, and `cargo semver-checks`
//! does not see hidden items. So each has a line here. What no longer compiles is a breaking change.

use std::time::Duration;

use cuda_events::foundation::{HostReads, deferring_observers};
use cuda_events::{Driver, HostClock};

use crate::common::Gpu;

/// Where the declarations are that `cuda-soft-driver` and the order checker import.
#[cfg(feature = "__abi")]
#[expect(unused_imports, reason = "a name that went away does not compile")]
use cuda_events::sys::more::{
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v2,
    CUDA_MEMSET_NODE_PARAMS, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo,
    CUgraphInstantiateResult, CUlaunchConfig, CUmemLocation, NEWEST, VERSIONS, types,
};

/// The grammar of the list of exports.
#[cfg(feature = "__abi")]
macro_rules! names {
    ($($name:ident $($version:literal)?),*) => { &[$(stringify!($name)),*] };
}

#[cfg(feature = "__abi")]
const _: &[&str] = cuda_events::__for_each_export!(names);

/// Exactly these methods: with one more that has no default, no older implementation compiles.
struct Clock;

impl HostClock for Clock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn wait(&self, _until: Duration) {}
    fn polled(&self, _what: usize) {}
    fn begin_task(&self, _look: fn()) {}
    fn end_task(&self) {}
    fn serve(&self) {}
}

const WITH_CLOCK: fn(Driver, &'static dyn HostClock) -> Driver = Driver::with_clock;
const CLOCK: fn(Driver) -> Option<&'static dyn HostClock> = Driver::clock;
const WITH_HOST_READS: fn(Driver, &'static HostReads) -> Driver = Driver::with_host_reads;
const HOST_READS: fn(Driver) -> Option<&'static HostReads> = Driver::host_reads;
static SAW: fn(usize, u64) = |_, _| {};

#[test]
fn the_hidden_interface_is_stable() {
    let driver = Gpu::new().driver;
    let clock = CLOCK(WITH_CLOCK(driver, &Clock)).expect("its clock");
    let (what, look): (usize, fn()) = (0, || {});
    clock.wait(clock.now());
    clock.polled(what);
    clock.begin_task(look);
    clock.end_task();
    clock.serve();
    HOST_READS(WITH_HOST_READS(driver, &SAW)).expect("its function")(0, 0);
    let mut guarded = deferring_observers(Box::new(1));
    **guarded += 1;
    assert_eq!(**guarded, 2);
}
