//! What the log says of itself.

use std::time::{SystemTime, UNIX_EPOCH};

use cuda_test_harness::TestDriver;
use cuda_test_harness::child;

use crate::raw::Rig;

/// Not a rule: the head of the log, for the page that is written from it.
#[test]
fn head() {
    if child::role().is_some() {
        return;
    }
    let rig = Rig::new("");
    let mut name = [0_u8; 128];
    must!(rig.cuDeviceGetName(name.as_mut_ptr().cast(), 128, rig.device));
    let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
    let driver = match TestDriver::chosen() {
        TestDriver::Soft => "soft",
        TestDriver::Shared => "shared",
        TestDriver::Native => "native",
    };
    let command: Vec<String> = std::env::args().skip(1).collect();
    println!("\nhead door | {driver}");
    println!("head device | {name} (of {})", rig.device_count());
    println!("head driver | {}CUDA {}", kernel_module(), rig.version());
    println!("head date | {}", today());
    println!("head command | CUDA_EVENTS_TEST_DRIVER={driver} conformance {}", command.join(" "));
}

/// The version of the NVIDIA driver, where that is what is under test and can be told.
fn kernel_module() -> String {
    if TestDriver::chosen() != TestDriver::Native {
        return String::new();
    }
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let number = |word: &&str| {
        word.split('.').count() >= 2 && word.split('.').all(|part| part.parse::<u32>().is_ok())
    };
    text.split_whitespace().find(number).map(|version| format!("{version}, ")).unwrap_or_default()
}

/// The date, in days of the Gregorian calendar counted from 1970.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut days = seconds / 86400;
    let mut year = 1970;
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= months[month] {
        days -= months[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}
