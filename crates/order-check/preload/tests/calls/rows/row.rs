//! What a row says of a function.

use super::Touch;
use super::run::{Mode, Run};

/// What a call of a function touches and orders.
pub(super) struct Row {
    /// Without versions and suffixes. A version with other parameters has its own row.
    pub(super) names: &'static str,
    pub(super) args: fn(&Run) -> Vec<u64>,
    pub(super) setup: fn(&Run),
    pub(super) before: fn(&Run),
    pub(super) then: fn(&Run),
    pub(super) touches: Vec<Touch>,
    pub(super) orders: &'static str,
    /// How many errors are found beside those that the orders and the touched bytes are read from.
    pub(super) finds: usize,
    /// What remains of a call that is refused.
    pub(super) refused: (&'static str, Vec<Touch>, usize),
    /// The context that is current in the call.
    pub(super) current: usize,
    /// A function of the software driver that stands for one that it lacks.
    pub(super) like: &'static str,
    /// What a driver that does nothing gives out: the argument, and what.
    pub(super) gives: fn(&Run) -> Vec<(usize, u64)>,
    pub(super) modes: &'static [Mode],
    /// Whether the stream that it is given is the default one: no, or both.
    pub(super) streams: &'static [bool],
    /// Why the software driver's own checker finds something else.
    pub(super) differs: bool,
}

pub(super) fn row(names: &'static str, args: fn(&Run) -> Vec<u64>) -> Row {
    Row {
        names,
        args,
        setup: |_| (),
        before: |_| (),
        then: |_| (),
        touches: Vec::new(),
        orders: "",
        finds: 0,
        refused: ("", Vec::new(), 0),
        current: 0,
        like: "",
        gives: |_| Vec::new(),
        modes: &[Mode::Soft, Mode::Refused],
        streams: &[false],
        differs: false,
    }
}

impl Row {
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.split_whitespace().any(|own| own == name)
    }

    /// What comes before everything that is looked at, as do the steps that the arguments take.
    pub(super) fn setup(self, setup: fn(&Run)) -> Self {
        Self { setup, ..self }
    }

    /// The steps before the call.
    pub(super) fn before(self, before: fn(&Run)) -> Self {
        Self { before, ..self }
    }

    /// The steps that follow the call.
    pub(super) fn then(self, then: fn(&Run)) -> Self {
        Self { then, ..self }
    }

    /// What it touches, and what that is ordered with.
    pub(super) fn touches(self, all: impl IntoIterator<Item = Vec<Touch>>) -> Self {
        Self { touches: all.into_iter().flatten().collect(), ..self }
    }

    pub(super) fn orders(self, orders: &'static str) -> Self {
        Self { orders, ..self }
    }

    pub(super) fn finds(self, finds: usize) -> Self {
        Self { finds, ..self }
    }

    pub(super) fn current(self, current: usize) -> Self {
        Self { current, ..self }
    }

    pub(super) fn like(self, like: &'static str) -> Self {
        Self { like, ..self }
    }

    pub(super) fn gives(self, gives: fn(&Run) -> Vec<(usize, u64)>) -> Self {
        Self { gives, ..self }
    }

    pub(super) fn refused(self, orders: &'static str, touches: Vec<Touch>, finds: usize) -> Self {
        Self { refused: (orders, touches, finds), ..self }
    }

    /// It counts before the driver is called, as it gives back what others may get at once.
    pub(super) fn counts_before(self) -> Self {
        Self { refused: (self.orders, self.touches.clone(), self.finds), ..self }
    }

    /// Other calls have to see that the driver has done nothing as well.
    pub(super) fn both(self) -> Self {
        Self { modes: &[Mode::Soft, Mode::Stub, Mode::Refused], ..self }
    }

    /// The software driver needs other arguments, or others than these would end.
    pub(super) fn without_driver(self) -> Self {
        Self { modes: &[Mode::Stub, Mode::Refused], ..self }
    }

    /// It is in a stream: the one that it is given, and then the default one.
    pub(super) fn in_stream(self) -> Self {
        Self { streams: &[false, true], ..self }
    }

    /// It is in the default stream.
    pub(super) fn in_default(self) -> Self {
        Self { streams: &[true], ..self }
    }

    pub(super) fn differs(self) -> Self {
        Self { differs: true, ..self }
    }
}
