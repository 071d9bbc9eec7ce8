//! Patterns with `*`, of faults and suppressions.

/// Whether a name matches a pattern with `*`. Each part between the first and the last is matched
/// at its first occurrence, so no pattern takes long.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail));
    let Some(mut left) = inner else { return false };
    middle.split('*').all(|part| {
        let found = left.find(part);
        left = found.map_or(left, |at| &left[at + part.len()..]);
        found.is_some()
    })
}
