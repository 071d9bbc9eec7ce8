//! Events, and the errors of all that has to do with them.

use cuda_events_test_support as common;

mod causes;
mod elapsed_steps;
mod errors;
mod events;
mod handles;
mod parity_behaviour;
