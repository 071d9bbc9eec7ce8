//! The driver library: finding and opening it, its table, observers, more than one, forks and the
//! end of the process.

use cuda_events_test_support as common;

mod entry_point;
mod fork;
mod hidden_interface;
mod loading;
mod lookups;
mod observer;
mod observers;
mod order_switch;
mod raw_table;
mod requirements;
mod search;
mod shutdown;
mod static_program;
mod thirty_two_bits;
mod two_drivers;
mod windows;
