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

/// Checks whose findings follow from one another: one piece of advice for each group. An error of
/// `cuInit` follows from any of them.
fn group(check: Check) -> Option<u8> {
    match check {
        Check::Init => None,
        Check::Variable => Some(1),
        Check::Visible => Some(2),
        Check::Limits => Some(3),
        _ => Some(0),
    }
}

/// What to do next, and what to do after that.
pub(crate) fn next(facts: &Facts, findings: &[Finding]) -> (String, Vec<String>) {
    if let Some(device) = facts.probe.devices.iter().find(|device| device.is_usable()) {
        let advice = if facts.is_software() {
            String::from(
                "Nothing needs to be done to run on the software driver; to use a GPU, remove it \
                 from CUDA_EVENTS_DRIVER, LD_PRELOAD or the library search path.",
            )
        } else {
            format!(
                "Nothing needs to be done: device {} ({}) can be used.",
                device.ordinal, device.name
            )
        };
        return (advice, Vec::new());
    }
    let wrong: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Wrong).collect();
    let ordered =
        order(facts).iter().find_map(|check| wrong.iter().find(|finding| finding.check == *check));
    let Some(first) = ordered.or(wrong.first()) else {
        let advice = "Run `nvidia-smi`, and report its output together with this text.";
        return (String::from(advice), Vec::new());
    };
    let mut groups = vec![group(first.check)];
    // Without the variable the driver works, so the machine is in order. A process that was lost
    // says nothing of the rest.
    if first.check == Check::Init || facts.probe.unhidden.is_some_and(|count| count > 0) {
        groups.push(Some(0));
    }
    let variable = wrong.iter().any(|finding| finding.check == Check::Variable);
    let mut then = Vec::new();
    for finding in &wrong {
        let of = group(finding.check);
        // The only library that is tried is the variable's.
        let follows = variable && matches!(finding.check, Check::Library | Check::Elsewhere);
        if of.is_some() && !groups.contains(&of) && !follows {
            groups.push(of);
            then.extend(finding.advice.clone());
        }
    }
    (first.advice.clone().unwrap_or_default(), then)
}
