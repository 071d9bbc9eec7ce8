//! `CUDA_VISIBLE_DEVICES`.

use super::Evidence;
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
    fn look(evidence: &Evidence) -> Option<Self> {
        const FOLDER: &str = "/proc/driver/nvidia/gpus";
        // The driver itself counted them.
        if let Some(count) = evidence.probe.unhidden.filter(|count| *count > 0) {
            return Some(Self { count, uuids: Vec::new() });
        }
        if evidence.system.platform() != Platform::Linux {
            return None;
        }
        match evidence.system.list(FOLDER) {
            Ok(gpus) if !gpus.is_empty() => {
                let uuid = |gpu: &String| uuid_in(evidence.system, &format!("{FOLDER}/{gpu}"));
                Some(Self { count: gpus.len(), uuids: gpus.iter().filter_map(uuid).collect() })
            }
            _ => {
                let count = evidence.probe.nodes.iter().filter(|node| node.gpu().is_some()).count();
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

/// Whether two entries name one GPU.
fn is_repeated(entries: &[&str]) -> bool {
    entries.iter().enumerate().any(|(at, entry)| {
        let same = |other: &&str| match (number(other), number(entry)) {
            (Some(one), Some(two)) => one == two,
            _ => other == entry,
        };
        entries.iter().take(at).any(same)
    })
}

pub(super) fn visible(evidence: &Evidence) -> Finding {
    let check = Check::Visible;
    let Some(value) = evidence.system.env(VARIABLE) else {
        return Finding::ok(check, format!("{VARIABLE} is not set"));
    };
    let known = Known::look(evidence);
    let advice = match known.as_ref().map(|known| known.count) {
        Some(1) => format!("Unset {VARIABLE}, or set it to 0 or to a UUID from `nvidia-smi -L`."),
        Some(count) => format!(
            "Unset {VARIABLE}, or set it to different numbers from 0 to {}, or to UUIDs from \
             `nvidia-smi -L`.",
            count - 1
        ),
        None => format!("Unset {VARIABLE}, or set it to numbers or UUIDs from `nvidia-smi -L`."),
    };
    let advice = match (evidence.slurm, value.trim()) {
        (true, "" | "NoDevFiles") => String::from(
            "Request a GPU for the job with `--gres=gpu:1`: Slurm hides the GPUs from a job \
             without one.",
        ),
        _ => advice,
    };
    // Without the variable the driver has a device, and with it none.
    let proven = evidence.probe.is_without_device()
        && evidence.probe.unhidden.is_some_and(|count| count > 0);
    let entries: Vec<&str> = value.split(',').map(str::trim).collect();
    let good = entries.iter().take_while(|entry| names_a_gpu(entry, known.as_ref())).count();
    let (good, rest) = entries.split_at_checked(good).unwrap_or((&entries, &[]));
    if good.is_empty() || (proven && !is_repeated(good)) {
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
    if is_repeated(good) {
        let text = format!("{VARIABLE} is {value}, which lists a GPU twice: cuInit refuses that");
        return Finding::wrong(check, text, advice);
    }
    if let Some(entry) = rest.first() {
        let text = format!("{VARIABLE} is {value}: entries from {entry:?} on are ignored");
        return Finding::note(check, text);
    }
    Finding::note(check, format!("{VARIABLE} is {value}"))
}
