//! A program that says at its start why it cannot use a GPU: the doctor's report about the process
//! itself, with its own environment, rights and limits.

use std::process::ExitCode;

use cuda_events::Driver;
use cuda_events_doctor::{Level, Report};

fn main() -> ExitCode {
    let report = Report::of_this_process(Driver::load());
    if report.usable() {
        println!("a GPU can be used{}", if report.is_software() { ": in software" } else { "" });
        return ExitCode::SUCCESS;
    }
    for finding in report.findings().iter().filter(|finding| finding.level() == Level::Wrong) {
        eprintln!("{finding}");
    }
    eprintln!("{}", report.advice());
    ExitCode::FAILURE
}
