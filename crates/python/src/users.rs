//! Which users' processes are trusted at the other end of a socket.

/// Every user whom the namespace of this process does not have. `nobody` has the same number.
const UNMAPPED: u32 = 65534;

/// Whether a peer has this process's user, or root's rights. `map` is `/proc/self/uid_map`.
pub(crate) fn is_own(own: u32, peer: u32, map: &str) -> bool {
    peer == 0 || peer == own && (peer != UNMAPPED || has_all(map))
}

/// Whether a namespace has all users, as the system's first one: then each number is one user's.
fn has_all(map: &str) -> bool {
    let count = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
    map.lines().filter_map(count).sum::<u64>() >= u64::from(u32::MAX)
}
