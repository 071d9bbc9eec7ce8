//! Numbers in an image. Each read is checked: an image may be damaged, or be none.

/// The `count` bytes at `at`.
pub(crate) fn slice(bytes: &[u8], at: u64, count: u64) -> Option<&[u8]> {
    let end = at.checked_add(count)?;
    bytes.get(usize::try_from(at).ok()?..usize::try_from(end).ok()?)
}

fn array<const N: usize>(bytes: &[u8], at: u64) -> Option<[u8; N]> {
    slice(bytes, at, N as u64)?.try_into().ok()
}

pub(crate) fn u16(bytes: &[u8], at: u64) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

pub(crate) fn u32(bytes: &[u8], at: u64) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

pub(crate) fn u64(bytes: &[u8], at: u64) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// The text from `at` to the next zero byte.
pub(crate) fn text(bytes: &[u8], at: u64) -> Option<&str> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(rest.get(..end)?).ok()
}
