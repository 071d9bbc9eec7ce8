//! Which devices a process sees, and in which order: `CUDA_VISIBLE_DEVICES`.

use crate::abi::*;

/// The UUID of a device of the machine, the same in every process.
pub(crate) fn uuid(device: usize) -> [u8; 16] {
    let mut bytes = *b"0-cuda-soft-dev.";
    bytes[0] += device as u8;
    bytes
}

/// A UUID as the list has it: `GPU-` and hexadecimal digits in five groups.
fn text(device: usize) -> String {
    let mut text = "GPU".to_owned();
    for (at, byte) in uuid(device).iter().enumerate() {
        let bar = if matches!(at, 0 | 4 | 6 | 8 | 10) { "-" } else { "" };
        text += &format!("{bar}{byte:02x}");
    }
    text
}

/// The number that an entry begins with; what comes after it does not count.
fn index(entry: &str) -> Option<usize> {
    let entry = entry.trim();
    let digits = entry.strip_prefix('+').unwrap_or(entry);
    let end = digits.find(|other: char| !other.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The one device whose UUID begins so.
fn by_uuid(entry: &str, count: usize) -> Option<usize> {
    let mut found = (0..count).filter(|device| text(*device).starts_with(entry));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The devices that a list makes visible, of so many. The first entry decides whether it is a list
/// of numbers or of UUIDs; an entry that names no device ends it; one that is there twice is an
/// invalid device.
pub(crate) fn visible(list: &str, count: usize) -> Result<Vec<usize>, CUresult> {
    let uuids = list.starts_with("GPU-");
    let mut devices = Vec::new();
    for entry in list.split(',') {
        let found = match uuids {
            true => by_uuid(entry.trim(), count).filter(|_| entry.trim().starts_with("GPU-")),
            false => index(entry).filter(|index| *index < count),
        };
        let Some(device) = found else { break };
        if devices.contains(&device) {
            return Err(INVALID_DEVICE);
        }
        devices.push(device);
    }
    Ok(devices)
}

/// The devices of `CUDA_VISIBLE_DEVICES`, or all if it is not set.
pub(crate) fn from_environment(count: usize) -> Result<Vec<usize>, CUresult> {
    match std::env::var_os("CUDA_VISIBLE_DEVICES") {
        Some(list) => visible(&list.to_string_lossy(), count),
        None => Ok((0..count).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let (first, third) = (text(0), text(2));
        assert_eq!(first, "GPU-302d6375-6461-2d73-6f66-742d6465762e");
        let both = format!("{third},{first}");
        let short = format!("{third},GPU-3");
        for (list, devices) in [
            ("0,1,2", vec![0, 1, 2]),
            ("2,0", vec![2, 0]),
            (" 1 , 2gpu", vec![1, 2]),
            ("", vec![]),
            ("-1", vec![]),
            ("NoDevFiles", vec![]),
            ("1,-1,0", vec![1]),
            ("0,3,1", vec![0]),
            ("0,,1", vec![0]),
            (&first, vec![0]),
            (&both, vec![2, 0]),
            (&short, vec![2]),
            ("GPU-", vec![]),
            ("GPU-77", vec![]),
        ] {
            assert_eq!(visible(list, 3), Ok(devices), "{list}");
        }
        assert_eq!(visible("GPU-3", 1), Ok(vec![0]), "the only one");
        assert_eq!(visible(&format!("{first},1"), 3), Ok(vec![0]), "a number among UUIDs");
        assert_eq!(visible("1,GPU-3", 3), Ok(vec![1]));
        assert_eq!(visible("1,0,1", 3), Err(INVALID_DEVICE));
    }
}
