//! What this process may use: shared memory and limits.

use super::Evidence;
use crate::report::{Check, Finding};
use crate::system::Platform;

/// Interprocess events of one context take 80 KiB of it.
const SMALL: u64 = 1 << 20;
/// What Docker gives a container that is asked for nothing else.
const DOCKERS: u64 = 64 << 20;

/// A size as `mount` writes it: `65536k`.
fn size(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text.get(..end)?.parse().ok()?;
    let shift = match text.get(end..)? {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    number.checked_shl(shift)
}

pub(super) fn shared_memory(evidence: &Evidence) -> Option<Finding> {
    const FOLDER: &str = "/dev/shm";
    if evidence.system.platform() != Platform::Linux {
        return None;
    }
    let check = Check::SharedMemory;
    let instead = "shared timelines do not need it";
    if !evidence.system.is_folder(FOLDER) {
        let text = format!("no {FOLDER}: interprocess events cannot be created; {instead}");
        return Some(Finding::note(check, text));
    }
    let mounts = match evidence.system.read("/proc/self/mounts") {
        Ok(mounts) => mounts,
        Err(error) => {
            return Some(Finding::unknown(check, format!("/proc/self/mounts: {error}")));
        }
    };
    // What was mounted last is what there is.
    let options = mounts.lines().rev().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        (fields.next() == Some(FOLDER)).then(|| fields.nth(1)).flatten()
    });
    let Some(options) = options else {
        return Some(Finding::ok(check, format!("{FOLDER}, without a separate mount")));
    };
    let bytes = options.split(',').find_map(|option| size(option.strip_prefix("size=")?));
    let shown = bytes.map_or(String::new(), |bytes| match bytes {
        0..SMALL => format!(" of {} KiB", bytes >> 10),
        _ => format!(" of {} MiB", bytes >> 20),
    });
    if options.split(',').any(|option| option == "ro") {
        let text =
            format!("{FOLDER} is read-only: interprocess events cannot be created; {instead}");
        return Some(Finding::note(check, text));
    }
    if bytes.is_some_and(|bytes| bytes < SMALL) {
        let text =
            format!("{FOLDER}{shown} has room for only a few interprocess events; {instead}");
        return Some(Finding::note(check, text));
    }
    Some(match (evidence.container, bytes) {
        (Some(_), Some(DOCKERS)) => Finding::note(
            check,
            format!(
                "{FOLDER}{shown} belongs to this container only: interprocess events of other \
                 containers cannot be opened without --ipc=host or --ipc=container:NAME; {instead}"
            ),
        ),
        (Some(_), _) => Finding::note(
            check,
            format!(
                "{FOLDER}{shown}; interprocess events work only with containers that share it, and \
                 the doctor cannot see which do; {instead}"
            ),
        ),
        (None, _) => Finding::ok(check, format!("{FOLDER}{shown}")),
    })
}

/// The soft limit in a line of `/proc/self/limits`; none for unlimited.
fn limit(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

pub(super) fn limits(evidence: &Evidence) -> Vec<Finding> {
    /// Below this, libraries that lock memory (RDMA) fail often.
    const LOCKED: u64 = 64 << 20;
    /// The driver opens some files a device.
    const FILES: u64 = 256;
    /// The driver has some threads in each process.
    const THREADS: u64 = 32;
    if evidence.system.platform() != Platform::Linux {
        return Vec::new();
    }
    let check = Check::Limits;
    let text = match evidence.system.read("/proc/self/limits") {
        Ok(text) => text,
        Err(error) => {
            return vec![Finding::unknown(check, format!("/proc/self/limits: {error}"))];
        }
    };
    let mut findings = Vec::new();
    let refused = matches!(evidence.code(), Some(2 | 304));
    let mut limited = |text: String, advice: &str| {
        findings.push(match refused {
            true => Finding::wrong(check, text, advice),
            false => Finding::note(check, text),
        });
    };
    let space = limit(&text, "Max address space");
    if let Some(bytes) = space {
        limited(
            format!("address space {} MiB: CUDA reserves more than it uses", bytes >> 20),
            "Run `ulimit -v unlimited` first: the driver cannot reserve the address space it \
             needs.",
        );
    }
    if let Some(files) = limit(&text, "Max open files").filter(|files| *files < FILES) {
        limited(
            format!("open files {files}: CUDA opens some for each device"),
            "Run `ulimit -n 1024` first: the driver cannot open the files it needs.",
        );
    }
    let number = |name: &str| {
        let text = evidence.system.read(&format!("/sys/fs/cgroup/pids.{name}")).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let left = number("max").zip(number("current")).map(|(max, used)| max.saturating_sub(used));
    let left = left.or_else(|| limit(&text, "Max processes")).filter(|left| *left < THREADS);
    if let Some(left) = left {
        limited(
            format!("processes and threads {left} more: CUDA starts some"),
            "Raise the limit of processes and threads (`ulimit -u`, in systemd TasksMax, in a \
             container --pids-limit): the driver cannot start its threads.",
        );
    }
    findings.push(match limit(&text, "Max locked memory") {
        Some(bytes) if bytes < LOCKED => Finding::note(
            check,
            format!(
                "locked memory {} KiB: libraries that lock memory themselves, such as those for \
                 RDMA, may fail (ulimit -l)",
                bytes >> 10
            ),
        ),
        Some(bytes) => Finding::ok(check, format!("locked memory {} MiB", bytes >> 20)),
        None if space.is_some() => Finding::ok(check, "locked memory is not limited"),
        None => Finding::ok(check, "memory and address space are not limited"),
    });
    findings
}
