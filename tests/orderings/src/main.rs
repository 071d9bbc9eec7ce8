//! Tries the orders in which threads may run and see each other's writes.
//!
//! The files of the libraries that are named here are the shipped ones, by path: `crate::sync` is
//! loom's in this program. What they import besides is in `world.rs`, in a few lines. The files
//! `checks.rs` have what must be so, in whichever order. Then `faults.rs` weakens one access after the
//! other, and demands that a check finds it.
//!
//! orderings                all checks, then all faults
//! orderings CHECK...       runs these
//! orderings --list         prints the names of the checks

// Each check uses a part of a file.
#![allow(dead_code, unused_imports, unsafe_code)]
// There is one shelf here; the driver's names begin alike.
#![allow(clippy::modulo_one, clippy::enum_variant_names, clippy::new_without_default)]
// There is one error type here.
#![allow(clippy::useless_conversion)]

mod faults;
mod sync;
mod world;

#[path = "../../../src/growing_list.rs"]
mod growing_list;

pub use world::{Context, Driver, Error, Event, EventFlags, EventRef, Progress, Result, StreamRef};
pub use world::{capture, foundation, sys};
use world::{error, handle, handle_traits, thread, time};

// The files of cuda-timelines import these by this name.
extern crate self as cuda_events;

/// A check, and its name.
type Check = (&'static str, fn());

fn checks() -> impl Iterator<Item = Check> {
    let all = [driver::checks::ALL, ext::checks::ALL, inbox_checks::ALL, completion::checks::ALL];
    all.into_iter().chain([timeline::checks::ALL]).flatten().copied()
}

mod driver {
    pub mod checks;

    pub use super::world::{Driver, call, capture_count, fork};

    #[path = "../../../../src/driver/flag.rs"]
    pub mod flag;
    #[path = "../../../../src/driver/init.rs"]
    pub mod init;
    #[path = "../../../../src/driver/libraries.rs"]
    pub mod libraries;
}

mod ext {
    pub mod checks;

    #[path = "../../../../src/ext/event_pool.rs"]
    pub mod event_pool;
}

mod inbox_checks;

#[path = "../../../crates/timelines/src/inbox.rs"]
mod inbox;

mod completion {
    pub mod checks;

    #[path = "../../../../crates/timelines/src/completion/entry.rs"]
    pub mod entry;
}

mod timeline {
    pub mod checks;

    #[path = "../../../../crates/timelines/src/timeline/followed.rs"]
    pub mod followed;
    #[path = "../../../../crates/timelines/src/timeline/foreign.rs"]
    pub mod foreign;
    #[path = "../../../../crates/timelines/src/timeline/line.rs"]
    pub mod line;
    #[path = "../../../../crates/timelines/src/timeline/queue.rs"]
    pub mod queue;
    #[path = "../../../../crates/timelines/src/timeline/shared_failure.rs"]
    pub mod shared_failure;
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if wanted == ["--list"] {
        for (name, _) in checks() {
            println!("{name}");
        }
        return;
    }
    let unknown = wanted.iter().find(|name| checks().all(|(known, _)| known != *name));
    if let Some(name) = unknown {
        eprintln!("there is no check {name}: see --list");
        std::process::exit(2);
    }
    let mut places = Vec::new();
    for (name, check) in checks() {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            let runs = world::run(check);
            println!("{name}: {runs} orders");
            places.push((name, faults::noted()));
        }
    }
    if wanted.is_empty() && !faults::all_are_found(&places) {
        std::process::exit(1);
    }
}
