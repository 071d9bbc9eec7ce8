//! `CUDA_VISIBLE_DEVICES`.

use super::Facts;
use crate::report::{Check, Finding};
use crate::system::{Platform, System};

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// The GPUs that the kernel module lists, including those hidden from this process.
struct Known {
    count: usize,
    /// Empty where they cannot be read.
    uuids: Vec<String>,
}

impl Known {
    fn look(facts: &Facts) -> Option<Self> {
        const FOLDER: &str = "/proc/driver/nvidia/gpus";
        // The driver itself counted them.
        if let Some(count) = facts.probe.unhidden.filter(|count| *count > 0) {
            return Some(Self { count, uuids: Vec::new() });
        }
        if facts.system.platform() != Platform::Linux {
            return None;
        }
        match facts.system.list(FOLDER) {
            Ok(gpus) if !gpus.is_empty() => {
                let uuid = |gpu: &String| uuid_in(facts.system, &format!("{FOLDER}/{gpu}"));
                Some(Self { count: gpus.len(), uuids: gpus.iter().filter_map(uuid).collect() })
            }
            _ => {
                let count = facts.probe.nodes.iter().filter(|node| node.gpu().is_some()).count();
                (count > 0).then_some(Self { count, uuids: Vec::new() })
            }
        }
    }
}

fn uuid_in(system: &System, gpu: &str) -> Option<String> {
    let text = system.read(&format!("{gpu}/information")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("GPU UUID:"))?;
    Some(value.trim().to_owned()).filter(|uuid| uuid.starts_with("GPU-"))
}

/// The driver reads a number as C does: to the first character that is no digit.
fn number(entry: &str) -> Option<usize> {
    let end = entry.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(entry.len());
    entry.get(..end)?.parse().ok()
}

/// Whether an entry names a GPU of this machine; true if that is unknown.
fn names_a_gpu(entry: &str, known: Option<&Known>) -> bool {
    if let Some(number) = number(entry) {
        return known.is_none_or(|known| number < known.count);
    }
    if entry.starts_with("MIG-") {
        return true;
    }
    entry.starts_with("GPU-")
        && known.is_none_or(|known| {
            known.uuids.is_empty() || known.uuids.iter().any(|uuid| uuid.starts_with(entry))
        })
}

pub(super) fn visible(facts: &Facts) -> Finding {
    let check = Check::Visible;
    let Some(value) = facts.system.env(VARIABLE) else {
        return Finding::ok(check, format!("{VARIABLE} is not set"));
    };
    let known = Known::look(facts);
    let advice = match known.as_ref().map(|known| known.count) {
        Some(1) => format!("Unset {VARIABLE}, or set it to 0 or to a UUID from `nvidia-smi -L`."),
        Some(count) => format!(
            "Unset {VARIABLE}, or set it to different numbers from 0 to {}, or to UUIDs from \
             `nvidia-smi -L`.",
            count - 1
        ),
        None => format!("Unset {VARIABLE}, or set it to numbers or UUIDs from `nvidia-smi -L`."),
    };
    let entries: Vec<&str> = value.split(',').map(str::trim).collect();
    let good = entries.iter().take_while(|entry| names_a_gpu(entry, known.as_ref())).count();
    let (good, rest) = entries.split_at_checked(good).unwrap_or((&entries, &[]));
    if good.is_empty() {
        let text = match (value.trim(), known) {
            ("", _) => format!("{VARIABLE} is set and empty, which hides every GPU"),
            (_, Some(known)) => format!(
                "{VARIABLE} is {value}, which hides every GPU: the first entry matches no GPU here \
                 ({} in all)",
                known.count
            ),
            _ => format!(
                "{VARIABLE} is {value}, which hides every GPU: the first entry names no GPU"
            ),
        };
        return Finding::wrong(check, text, advice);
    }
    let twice = good.iter().enumerate().any(|(at, entry)| {
        let same = |other: &&str| match (number(other), number(entry)) {
            (Some(one), Some(two)) => one == two,
            _ => other == entry,
        };
        good.iter().take(at).any(same)
    });
    if twice {
        let text = format!("{VARIABLE} is {value}, which lists a GPU twice: cuInit refuses that");
        return Finding::wrong(check, text, advice);
    }
    if let Some(entry) = rest.first() {
        let text = format!("{VARIABLE} is {value}: entries from {entry:?} on are ignored");
        return Finding::note(check, text);
    }
    Finding::note(check, format!("{VARIABLE} is {value}"))
}
