//! The command `cuda-driver-rules`: the rules of `tests/conformance` on any libcuda, as a report.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the rules are for 64-bit programs: no other can load the driver");

#[cfg(not(test))]
#[path = "../tests/conformance/main.rs"]
mod conformance;

// Where the rules expect them, as in the test.
#[cfg(not(test))]
use conformance::*;

#[cfg(not(test))]
fn main() -> std::process::ExitCode {
    command::main()
}
