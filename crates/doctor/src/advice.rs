//! The one sentence that says what to do next.

use crate::checks::Evidence;
use crate::probe::{How, Library};
use crate::report::{Check, Finding, Level};

/// The checks in the order in which their advice counts. What a check has seen comes before what a
/// code usually means, which is all that [`Check::Init`] knows, and a cause before its consequences.
fn order(evidence: &Evidence) -> Vec<Check> {
    use Check::{
        Bus, Container, Devices, Elsewhere, Fabric, Init, Library as Lib, Limits, Log, Mig, Module,
        Mps, Nodes, Platform, Variable, Visible, Wsl,
    };
    /// From the machine to the process.
    const CAUSES: [Check; 12] =
        [Platform, Wsl, Bus, Container, Module, Log, Nodes, Lib, Limits, Mps, Mig, Devices];
    let probe = evidence.probe;
    // What the code speaks of, where it was also seen.
    let first: &[Check] = match (&probe.lost, evidence.code()) {
        (Some(lost), _) => match &lost.how {
            How::NotStarted { .. } => &[Init],
            How::Ended(_) if lost.settings.is_some() => &[Init],
            How::Ended(how) if how.contains("SIGSYS") => &[Init],
            How::Ended(_) => &[Module, Lib, Init],
            How::Hung(_) => &[Mps, Log, Module, Init],
        },
        _ if matches!(probe.library, Library::Refused { .. }) => {
            &[Platform, Variable, Bus, Wsl, Container, Elsewhere, Lib, Module, Log, Nodes]
        }
        _ if matches!(&probe.init, Some(Err(failure)) if failure.forked) => &[Init],
        (_, Some(2 | 304)) => &[Limits],
        (_, Some(46)) => &[Devices],
        (_, Some(101)) => &[Visible, Mig],
        (_, Some(802)) if evidence.bus.switches > 0 => &[Fabric],
        (_, Some(803)) => &[Lib, Module],
        (_, Some(804)) => &[Lib],
        (_, Some(805..=809)) => &[Mps],
        // There is no device: 100, or a count of zero. Where there is none without the variable
        // either, something else is wrong first.
        _ if probe.is_without_device() && probe.unhidden != Some(0) => &[Visible],
        _ => &[],
    };
    let last = [Fabric, Init, Variable, Elsewhere, Visible];
    first.iter().copied().chain(CAUSES).chain(last).collect()
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
pub(crate) fn advice(evidence: &Evidence, findings: &[Finding]) -> (String, Vec<String>) {
    if let Some(device) = evidence.probe.devices.iter().find(|device| device.is_usable()) {
        let advice = if evidence.is_software() {
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
    let ordered = order(evidence)
        .iter()
        .find_map(|check| wrong.iter().find(|finding| finding.check == *check));
    let Some(first) = ordered.or(wrong.first()) else {
        let advice = "Run `nvidia-smi`, and report its output together with this text.";
        return (String::from(advice), Vec::new());
    };
    let mut groups = vec![group(first.check)];
    // Without the variable the driver works, so the machine is in order. A process that was lost
    // says nothing of the rest.
    let unasked = matches!(
        &evidence.probe.lost,
        Some(lost) if matches!(lost.how, How::NotStarted { .. })
    );
    if (first.check == Check::Init && !unasked)
        || evidence.probe.unhidden.is_some_and(|count| count > 0)
    {
        groups.push(Some(0));
    }
    let variable = wrong.iter().any(|finding| finding.check == Check::Variable);
    let mut then = Vec::new();
    for finding in &wrong {
        let own = group(finding.check);
        // While the variable names a library, no other is tried.
        let follows = variable && matches!(finding.check, Check::Library | Check::Elsewhere);
        if own.is_some() && !groups.contains(&own) && !follows {
            groups.push(own);
            then.extend(finding.advice.clone());
        }
    }
    (first.advice.clone().unwrap_or_default(), then)
}
