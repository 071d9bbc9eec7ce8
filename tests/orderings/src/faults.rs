//! Faults that are put into the checked files as they run: an access with a weaker ordering, or an
//! exchange in two steps.
//!
//! Each access of an atomic passes by here with the place of its call. The first run of a check
//! notes the places. Then the program runs the check again for each of them, as a process with that
//! one fault, until a check fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::Location;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// The variable that names the fault of this process.
const VARIABLE: &str = "ORDERINGS_FAULT";

type Place = &'static Location<'static>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The access is relaxed.
    Relaxed(Place),
    /// The exchange is a load and a store.
    Torn(Place),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Relaxed(place) | Self::Torn(place)) = self;
        // The files are named from here: `tests/orderings/src/../../../src/growing_list.rs`.
        let file = place.file().rsplit("../").next().unwrap_or_default();
        let what = if matches!(self, Self::Relaxed(_)) { "relaxed" } else { "in two steps" };
        write!(formatter, "{file}:{}:{} {what}", place.line(), place.column())
    }
}

static NOTED: Mutex<BTreeSet<Fault>> = Mutex::new(BTreeSet::new());

/// Whether this process has the fault.
fn is_planted(fault: Fault) -> bool {
    static PLANTED: OnceLock<Option<String>> = OnceLock::new();
    // The checks' own accesses stay.
    if !fault.place().file().contains("../") {
        return false;
    }
    match PLANTED.get_or_init(|| std::env::var(VARIABLE).ok()) {
        Some(planted) => *planted == fault.to_string(),
        None => {
            NOTED.lock().unwrap().insert(fault);
            false
        }
    }
}

/// The ordering that the access at this place has.
pub fn order(order: Ordering, place: Place) -> Ordering {
    if order != Ordering::Relaxed && is_planted(Fault::Relaxed(place)) {
        return Ordering::Relaxed;
    }
    order
}

/// Whether the exchange at this place is a load and a store.
pub fn is_torn(place: Place) -> bool {
    is_planted(Fault::Torn(place))
}

impl Fault {
    fn place(self) -> Place {
        let (Self::Relaxed(place) | Self::Torn(place)) = self;
        place
    }

    /// How the comment begins that gives the reason why no check finds such a fault. It is within
    /// the four lines above the access.
    fn spare(self) -> &'static str {
        match self {
            Self::Relaxed(_) => "Spare ordering",
            Self::Torn(_) => "Spare exchange",
        }
    }

    /// Whether the source gives a reason why no check finds this fault.
    fn is_spare(self, sources: &mut BTreeMap<&'static str, String>) -> bool {
        let file = self.place().file();
        let source = sources.entry(file).or_insert_with(|| {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
            std::fs::read_to_string(format!("{path}/{file}")).expect("the source is there")
        });
        let line = self.place().line() as usize;
        let mut above = source.lines().take(line).skip(line.saturating_sub(5));
        above.any(|line| line.contains(self.spare()))
    }

    /// Whether this check fails in a process with the fault.
    fn is_found_by(self, check: &str) -> bool {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(program);
        command.arg(check).env(VARIABLE, self.to_string()).env("RUST_BACKTRACE", "0");
        let done = command.output().expect("this program starts");
        // It may end by a panic while another one unwinds.
        !done.status.success() && String::from_utf8_lossy(&done.stderr).contains("panicked at")
    }
}

/// What the checks so far have passed by, which is forgotten.
pub fn noted() -> BTreeSet<Fault> {
    std::mem::take(&mut *NOTED.lock().unwrap())
}

/// Runs the checks with each fault in turn; `places` has the places that each check passes by.
/// Returns whether each fault is found, or has a reason why not.
pub fn all_are_found(places: &[(&'static str, BTreeSet<Fault>)]) -> bool {
    let mut sources = BTreeMap::new();
    let all: BTreeSet<Fault> = places.iter().flat_map(|(_, faults)| faults).copied().collect();
    let all: Vec<Fault> = all.into_iter().filter(|fault| !fault.is_spare(&mut sources)).collect();
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        while let Some(&fault) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut checks = places.iter().filter(|(_, faults)| faults.contains(&fault));
            match checks.find(|(check, _)| fault.is_found_by(check)) {
                Some((check, _)) => println!("{fault}: found by {check}"),
                None => {
                    missed.fetch_add(1, Ordering::Relaxed);
                    let spare = fault.spare();
                    eprintln!("{fault}: NO CHECK FINDS IT: write `// {spare}: the reason`");
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    println!("{} faults, {} of them not found", all.len(), missed.load(Ordering::Relaxed));
    missed.load(Ordering::Relaxed) == 0
}
