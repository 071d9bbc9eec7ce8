//! The one sentence that says what to do next.

use crate::checks::Facts;
use crate::probe::Library;
use crate::report::{Check, Finding, Level};

/// The checks whose advice comes first, depending on the step that the driver reached. A cause
/// comes before its consequences.
fn order(facts: &Facts) -> &'static [Check] {
    use Check::{
        Bus, Container, Devices, Elsewhere, Fabric, Init, Library as Lib, Limits, Mig, Module, Mps,
        Nodes, Platform, Variable, Visible, Wsl,
    };
    if facts.probe.lost.is_some() {
        return &[Init];
    }
    if let Library::Refused { .. } = facts.probe.library {
        return &[Platform, Variable, Bus, Wsl, Container, Elsewhere, Lib, Module, Nodes];
    }
    if matches!(&facts.probe.init, Some(Err(failure)) if failure.forked) {
        return &[Init];
    }
    match facts.code() {
        Some(2 | 304) => &[Limits, Init],
        Some(3) => &[Init],
        Some(46) => &[Devices, Init],
        Some(101) => &[Visible, Mig, Init],
        Some(802) => &[Fabric, Init],
        Some(803) => &[Module, Init],
        Some(804) => &[Lib, Init],
        Some(805..=809) => &[Mps, Init],
        Some(999) => &[Bus, Wsl, Container, Module, Nodes, Mps, Init],
        // There is no device: 100, or a count of zero.
        _ if facts.probe.devices.is_empty() => {
            &[Visible, Bus, Wsl, Container, Module, Nodes, Mig, Init]
        }
        _ => &[Devices],
    }
}

pub(crate) fn next(facts: &Facts, findings: &[Finding]) -> String {
    if let Some(device) = facts.probe.devices.iter().find(|device| device.is_usable()) {
        return format!(
            "Nothing needs to be done: device {} ({}) can be used.",
            device.ordinal, device.name
        );
    }
    let wrong = |finding: &&Finding| finding.level == Level::Wrong;
    let first = order(facts)
        .iter()
        .find_map(|check| findings.iter().filter(wrong).find(|finding| finding.check == *check))
        .or_else(|| findings.iter().find(wrong));
    let advice = first.and_then(|finding| finding.advice.clone());
    advice.unwrap_or_else(|| {
        String::from("Run `nvidia-smi`, and report its output together with this text.")
    })
}
