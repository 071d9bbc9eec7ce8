//! Relates the device's time to the host's.
//!
//! An anchor is a timing event on the tracer's own stream, with the host's time before the record
//! and after the event was seen done. The device stamps it in between, so its place on the host's
//! clock is known to half of that interval.
//!
//! The driver returns times between events as `f32` milliseconds, whose steps grow with the time:
//! 15 ns at a quarter of a second, 250 us at an hour. So the device's clock is a sum of short links
//! from anchor to anchor, in `f64`. Each link of less than half a second is known to 15 ns. If the
//! device's stamps are multiples of 32 ns, as an H200's are, each such link is rounded to such a
//! multiple. It is then exact, and so is a sum over days.

use std::collections::VecDeque;

use cuda_events::ext::PooledEvent;
use cuda_events::{EventRef, Result};

/// The maximum length of a link, in nanoseconds, that can be rounded to the grid: up to this
/// length, half a step of an `f32` of milliseconds is less than half a step of the grid.
pub(crate) const SHORT: f64 = 512e6;

/// The assumed drift between two clocks, as a part of the time: 500 ppm by which a system may slew
/// its clock, and 100 ppm of two quartzes. It is used if no later anchor measures the drift.
pub(crate) const DRIFT: f64 = 600e-6;

/// The number of anchors that are kept in addition to those that a span still needs.
const KEPT: usize = 64;

/// The grid of the time stamps of an H100 and an H200, in nanoseconds.
const GRID: f64 = 32.0;

/// The number of times that must lie on the grid before the grid is accepted. A time of at most 16
/// ms lies on it by chance once in twenty.
const EVIDENCE: u32 = 8;

/// A time between two events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Elapsed {
    pub(crate) ns: f64,
    /// The maximum error from the steps of an `f32`.
    pub(crate) error: f64,
}

/// Whether the device's stamps lie on the grid, by the evidence so far.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Grid {
    Unknown(u32),
    Believed,
    Refuted,
}

impl Grid {
    /// Converts a time from the driver, and updates the evidence about the grid.
    fn read(&mut self, milliseconds: f32) -> Elapsed {
        let ns = f64::from(milliseconds) * 1e6;
        let step = f64::from(milliseconds.abs().next_up()) - f64::from(milliseconds.abs());
        let error = step * 1e6 / 2.0;
        // Rounded without a call, as far as a time can lie on the grid.
        let snapped = ((ns / GRID + 0.5_f64.copysign(ns)) as i64) as f64 * GRID;
        // Zero lies on every grid, and a coarse number near enough to every grid's line.
        if ns != 0.0 && error < 0.5 {
            let fits = (ns - snapped).abs() <= error * 1.01;
            *self = match *self {
                _ if !fits => Self::Refuted,
                Self::Unknown(count) if count + 1 < EVIDENCE => Self::Unknown(count + 1),
                Self::Unknown(_) => Self::Believed,
                known => known,
            };
        }
        if *self == Self::Believed && ns.abs() <= SHORT {
            Elapsed { ns: snapped, error: 0.0 }
        } else {
            Elapsed { ns, error }
        }
    }
}

struct Anchor {
    event: PooledEvent,
    /// The sum of the errors of all links until here.
    chained: f64,
    point: Point,
}

/// A point that is known on both axes. Times are nanoseconds: `device` since the first anchor, the
/// others since the tracer's begin.
#[derive(Clone, Copy)]
struct Point {
    device: f64,
    /// The device's stamp lies between these two on the host's axis.
    low: f64,
    high: f64,
}

/// Two neighbouring points, and how fast the host's bounds go on between them.
#[derive(Clone, Copy)]
struct Around {
    before: Point,
    next: Point,
    low_rate: f64,
    high_rate: f64,
}

impl Around {
    #[inline]
    fn place(&self, stamp: Stamp) -> Place {
        let Self { before, low_rate, high_rate, .. } = self;
        let after = stamp.device - before.device;
        place(before.low + after * low_rate, before.high + after * high_rate, stamp.error)
    }
}

/// An instant of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) device: f64,
    error: f64,
    chained: f64,
}

/// A place on the host's axis, and how far off it can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) ns: f64,
    pub(crate) error: f64,
}

pub(crate) struct Clock {
    grid: Grid,
    /// The anchors, the oldest first.
    anchors: VecDeque<Anchor>,
    /// An anchor that was not seen done yet, and the host's time before its record.
    pending: Option<(PooledEvent, f64)>,
    /// The points around the instant that was placed last. Later anchors come after both.
    around: Option<Around>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { grid: Grid::Unknown(0), anchors: VecDeque::new(), pending: None, around: None }
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Adds an anchor whose record was submitted after the host's time `low`.
    pub(crate) fn begin(&mut self, event: PooledEvent, low: f64) {
        self.pending = Some((event, low));
    }

    /// Returns whether no anchor is pending any more. It calls `now` after the event was seen done.
    pub(crate) fn settle(&mut self, now: impl Fn() -> f64) -> Result<bool> {
        let Some((event, _)) = &self.pending else { return Ok(true) };
        let done = event.query().map(|progress| progress.is_done());
        let high = now();
        match done {
            Ok(false) => return Ok(false),
            Ok(true) => {}
            Err(error) => {
                self.pending = None;
                return Err(error);
            }
        }
        let Some((event, low)) = self.pending.take() else { return Ok(true) };
        let anchor = match self.anchors.back() {
            None => Anchor { event, chained: 0.0, point: Point { device: 0.0, low, high } },
            Some(Anchor { event: last_event, chained, point: last }) => {
                let link = match last_event.elapsed_ms(&event) {
                    Ok(milliseconds) => self.grid.read(milliseconds),
                    Err(error) => {
                        event.discard();
                        return Err(error);
                    }
                };
                // Stamps of one stream rise; this is for a driver that says otherwise.
                let ns = link.ns.max(0.0);
                let tight = (
                    low.max(last.low + ns * (1.0 - DRIFT)),
                    high.min(last.high + ns * (1.0 + DRIFT)),
                );
                // The last anchor says where this one is, too, unless a clock was set in between.
                let (low, high) = if tight.0 <= tight.1 { tight } else { (low, high) };
                let point = Point { device: last.device + ns, low, high };
                Anchor { event, chained: chained + link.error, point }
            }
        };
        self.anchors.push_back(anchor);
        Ok(true)
    }

    /// The device's time of the newest anchor that is done.
    pub(crate) fn newest(&self) -> Option<f64> {
        self.anchors.back().map(|anchor| anchor.point.device)
    }

    /// When the event happened, from the anchor that is nearest to it.
    pub(crate) fn stamp(&mut self, event: &EventRef) -> Result<Option<Stamp>> {
        let Some(last) = self.anchors.back() else { return Ok(None) };
        let mut from = last;
        let mut elapsed = self.grid.read(last.event.elapsed_ms(event)?);
        if elapsed.ns < -SHORT {
            // The time is known well enough to find the anchor after it.
            let rough = last.point.device + elapsed.ns;
            let after = self.anchors.partition_point(|anchor| anchor.point.device <= rough);
            let near = [after.checked_sub(1), Some(after)].into_iter().flatten();
            let distance = |anchor: &&Anchor| (anchor.point.device - rough).abs();
            let nearest = near
                .filter_map(|at| self.anchors.get(at))
                .min_by(|one, other| distance(one).total_cmp(&distance(other)));
            if let Some(anchor) = nearest {
                from = anchor;
                elapsed = self.grid.read(anchor.event.elapsed_ms(event)?);
            }
        }
        Ok(Some(Stamp {
            device: from.point.device + elapsed.ns,
            error: elapsed.error,
            chained: from.chained,
        }))
    }

    /// The stamp that comes `milliseconds` after another stamp, and the time between the two.
    /// `None` if that time is too long to be exact.
    pub(crate) fn after(&mut self, start: Stamp, milliseconds: f32) -> Option<(Stamp, Elapsed)> {
        let elapsed = self.grid.read(milliseconds);
        let end = Stamp {
            device: start.device + elapsed.ns,
            error: start.error + elapsed.error,
            chained: start.chained,
        };
        (elapsed.ns.abs() <= SHORT).then_some((end, elapsed))
    }

    /// Where an instant of the device is on the host's axis: between the anchors around it.
    pub(crate) fn place(&mut self, stamp: Stamp) -> Place {
        // Spans are placed almost in order, so most lie where the one before did.
        let around = self
            .around
            .filter(|it| it.before.device < stamp.device && stamp.device <= it.next.device);
        match around {
            Some(around) => around.place(stamp),
            None => self.look_around(stamp),
        }
    }

    /// Finds the points before and after an instant of the device.
    #[cold]
    #[inline(never)]
    fn look_around(&mut self, stamp: Stamp) -> Place {
        let after = self.anchors.partition_point(|anchor| anchor.point.device < stamp.device);
        let point = |at: usize| self.anchors.get(at).map(|anchor| anchor.point);
        match (after.checked_sub(1).and_then(point), point(after)) {
            (Some(before), Some(next)) => {
                let whole = next.device - before.device;
                let low_rate = (next.low - before.low) / whole;
                let high_rate = (next.high - before.high) / whole;
                self.around.insert(Around { before, next, low_rate, high_rate }).place(stamp)
            }
            (Some(only), None) | (None, Some(only)) => {
                let distance = stamp.device - only.device;
                let more = distance.abs() * DRIFT;
                place(only.low + distance, only.high + distance, more + stamp.error)
            }
            (None, None) => Place { ns: stamp.device, error: f64::INFINITY },
        }
    }

    /// Forgets the anchors that no later event can be near.
    pub(crate) fn forget(&mut self) {
        let more = self.anchors.len().saturating_sub(KEPT);
        self.anchors.drain(..more);
    }
}

/// The middle of an interval of the host's axis. More can be added to its error.
fn place(low: f64, high: f64, more: f64) -> Place {
    Place { ns: (low + high) / 2.0, error: (high - low) / 2.0 + more }
}

/// How long it is from one stamp to another, and how far off that can be.
pub(crate) fn between(start: Stamp, end: Stamp) -> Elapsed {
    let error = start.error + end.error + (end.chained - start.chained).abs();
    Elapsed { ns: end.device - start.device, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver's number for so many nanoseconds.
    fn milliseconds(ns: u32) -> f32 {
        (f64::from(ns) / 1e6) as f32
    }

    #[test]
    fn a_grid_is_believed_after_enough_evidence() {
        let mut grid = Grid::Unknown(0);
        // Zero and coarse numbers say nothing.
        for ns in [0, 32 * 10_000_000, 1_000_000_007] {
            grid.read(milliseconds(ns));
            assert_eq!(grid, Grid::Unknown(0));
        }
        for count in 1..EVIDENCE {
            let read = grid.read(milliseconds(32 * 1001 * count));
            assert!(read.error > 0.0);
            assert_eq!(grid, Grid::Unknown(count));
        }
        grid.read(-milliseconds(32 * 12_345));
        assert_eq!(grid, Grid::Believed);
        // The last before half a second, which a number is off from by up to 15 ns.
        let last = 32 * 15_999_999;
        let read = grid.read(milliseconds(last));
        assert_eq!(read, Elapsed { ns: f64::from(last), error: 0.0 });
        // Beyond that the number is what is known.
        let read = grid.read(milliseconds(32 * 20_000_000));
        assert!((15.0..16.0 * 2.0).contains(&read.error), "{read:?}");
    }

    #[test]
    fn one_time_off_the_grid_refutes_it() {
        let mut grid = Grid::Believed;
        grid.read(milliseconds(32 * 7 + 13));
        assert_eq!(grid, Grid::Refuted);
        for count in 1..100 {
            assert!(grid.read(milliseconds(32 * count)).error > 0.0);
        }
        assert_eq!(grid, Grid::Refuted);
    }
}
