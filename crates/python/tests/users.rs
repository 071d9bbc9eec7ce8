//! The rule for users, which needs no Python, and no other user.

#[path = "../src/users.rs"]
mod users;

use users::is_own;

#[test]
fn own_and_root_are_trusted() {
    const ALL: &str = "         0          0 4294967295\n";
    const CONTAINER: &str = "         0     100000      65536\n";
    const TWO: &str = "0 1000 1\n1 100000 65536\n";
    for (own, peer, map, expected) in [
        (1000, 1000, ALL, true),
        (1000, 0, ALL, true),
        (0, 0, CONTAINER, true),
        (1000, 1001, ALL, false),
        (0, 1000, ALL, false),
        // Where all users have numbers, `nobody` is one of them. Elsewhere anybody may be it.
        (65534, 65534, ALL, true),
        (65534, 65534, CONTAINER, false),
        (65534, 65534, TWO, false),
        (65534, 65534, "", false),
        (0, 65534, CONTAINER, false),
        (1000, 1000, CONTAINER, true),
    ] {
        assert_eq!(is_own(own, peer, map), expected, "{own}, {peer}: {map}");
    }
}
