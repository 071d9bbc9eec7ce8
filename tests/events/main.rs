//! Events: the errors of all that has to do with them, and what one handle is.

use cuda_events_test_support as common;

mod causes;
mod driver_log;
mod errors;
mod handles;
