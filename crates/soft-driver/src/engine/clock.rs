//! The time that events are stamped with.

use std::time::Instant;

use crate::machine::config::Time;

/// Measured on real hardware: differences of stamps lie on a grid of 32 ns.
pub(crate) const TICK_NS: u64 = 32;

pub(crate) struct Clock {
    kind: Time,
    origin: Option<Instant>,
    virtual_ns: u64,
    last: u64,
    /// Virtual time has moved with a piece of work.
    pub(super) moved: bool,
}

impl Clock {
    pub(crate) const fn new() -> Self {
        Self { kind: Time::Real, origin: None, virtual_ns: 0, last: 0, moved: false }
    }

    pub(crate) fn start(&mut self, kind: Time) {
        *self = Self { kind, origin: Some(Instant::now()), ..Self::new() };
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.kind == Time::Virtual
    }

    /// Moves virtual time; real time moves by itself.
    pub(crate) fn advance(&mut self, ns: u64) {
        self.virtual_ns = self.virtual_ns.saturating_add(ns);
    }

    /// Now, in nanoseconds since the driver started.
    pub(crate) fn now(&self) -> u64 {
        match self.kind {
            Time::Real => self.origin.map_or(0, |origin| origin.elapsed().as_nanos() as u64),
            Time::Virtual => self.virtual_ns,
        }
    }

    /// Moves virtual time to `ns`, unless that has passed.
    pub(crate) fn reach(&mut self, ns: u64) {
        self.virtual_ns = self.virtual_ns.max(ns);
    }

    /// The next stamp, in ticks: later than every one before, as on a device that does one thing
    /// after the other.
    pub(crate) fn stamp(&mut self) -> u64 {
        self.last = (self.now() / TICK_NS).max(self.last + 1);
        if self.is_virtual() {
            self.virtual_ns = self.virtual_ns.max(self.last * TICK_NS);
        }
        self.last
    }
}

/// The milliseconds between two stamps, negative when they are in the other order.
pub(crate) fn milliseconds(start: u64, end: u64) -> f32 {
    let ticks = end as i64 - start as i64;
    (ticks as f64 * TICK_NS as f64 / 1e6) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_grow_and_lie_on_the_grid() {
        let mut clock = Clock::new();
        clock.start(Time::Real);
        let stamps: Vec<u64> = (0..1000).map(|_| clock.stamp()).collect();
        assert!(stamps.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(milliseconds(10, 10), 0.0);
        assert_eq!(milliseconds(10, 11), 32e-6);
        assert_eq!(milliseconds(11, 10), -32e-6);
    }

    #[test]
    fn virtual_time_stands_until_moved() {
        let mut clock = Clock::new();
        clock.start(Time::Virtual);
        let first = clock.stamp();
        clock.advance(1_000_000);
        let second = clock.stamp();
        assert!((milliseconds(first, second) - 1.0).abs() < 1e-4);
    }
}
