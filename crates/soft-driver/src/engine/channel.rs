//! Channels: the few hardware queues that the streams of a context share.
//!
//! A stream with something to do has one of its context's channels. On a card a channel does what
//! it was given in the order in which it was given, whatever stream that is of: a wait for a value
//! holds back all that was submitted to its channel after it. A stream that has nothing to do takes
//! one without waits, if there is one, when it is given something. Waits for events and host
//! functions hold back nothing here. What they wait for was submitted before them, or is the host's
//! to do, so that it makes no difference to what comes to its end; and rules that were measured say
//! that a held host function leaves other streams alone.

use std::collections::BTreeMap;

/// The default of a driver, and how many it can have.
const DEFAULT_CHANNELS: u32 = 8;
pub(crate) const MOST_CHANNELS: u32 = 32;

/// Which channel of which context.
pub(crate) type ChannelKey = (u32, u32);

/// How many channels a context has: `CUDA_DEVICE_MAX_CONNECTIONS`, which a real driver reads, too.
pub(crate) fn from_environment() -> u32 {
    let set = std::env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok();
    let set = set.and_then(|text| text.trim().parse::<u32>().ok()).filter(|count| *count > 0);
    set.unwrap_or(DEFAULT_CHANNELS).min(MOST_CHANNELS)
}

/// A channel in which streams wait for values.
#[derive(Default)]
struct Channel {
    /// The waits that are not over, by their place in the order of submission, with their streams.
    waits: BTreeMap<u64, u32>,
    /// Streams whose first task was submitted after one of those.
    held: Vec<u32>,
}

/// The channels of all contexts.
pub(crate) struct Channels {
    /// How many a context has.
    pub(crate) per_context: u32,
    /// Those in which something waits for a value. There is an entry for no other.
    waiting: BTreeMap<ChannelKey, Channel>,
}

impl Channels {
    pub(crate) const fn new() -> Self {
        Self { per_context: DEFAULT_CHANNELS, waiting: BTreeMap::new() }
    }

    /// Whether no stream waits for a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Forgets all waits.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// How many waits there are in a channel.
    pub(crate) fn count(&self, key: ChannelKey) -> usize {
        self.waiting.get(&key).map_or(0, |channel| channel.waits.len())
    }

    pub(crate) fn wait(&mut self, key: ChannelKey, at: u64, stream: u32) {
        self.waiting.entry(key).or_default().waits.insert(at, stream);
    }

    /// A wait is over. The streams that can be looked at again.
    pub(crate) fn pass(&mut self, key: ChannelKey, at: u64) -> Vec<u32> {
        let Some(channel) = self.waiting.get_mut(&key) else { return Vec::new() };
        channel.waits.remove(&at);
        let held = core::mem::take(&mut channel.held);
        if channel.waits.is_empty() {
            self.waiting.remove(&key);
        }
        held
    }

    /// Whether a task at this place of the order was submitted after a wait that is left; then its
    /// stream is held.
    pub(crate) fn hold(&mut self, key: ChannelKey, at: u64, stream: u32) -> bool {
        let Some(channel) = self.waiting.get_mut(&key) else { return false };
        let behind = channel.waits.first_key_value().is_some_and(|(first, _)| *first < at);
        if behind {
            channel.held.push(stream);
        }
        behind
    }

    /// All streams that are held: they are to be looked at again.
    pub(crate) fn take_held(&mut self) -> Vec<u32> {
        self.waiting.values_mut().flat_map(|channel| core::mem::take(&mut channel.held)).collect()
    }

    /// The waits of each channel, for the search for deadlocks.
    pub(crate) fn waits(&self) -> BTreeMap<ChannelKey, BTreeMap<u64, u32>> {
        self.waiting.iter().map(|(key, channel)| (*key, channel.waits.clone())).collect()
    }
}
