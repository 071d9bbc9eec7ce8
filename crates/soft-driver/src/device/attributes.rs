//! Device attributes, as a card returns them.
//!
//! The values are in one list of what was measured (`h200-attributes.txt`); what a device of this
//! driver returns other values is in `device/mod.rs`.

/// How many attributes the list has: those of CUDA 13.0.
pub const COUNT: usize = 147;

/// The attributes of an NVIDIA H200, by number: attribute 1 is the first.
pub static H200: [i32; COUNT] = parse(include_str!("h200-attributes.txt").as_bytes());

/// The last attribute that a driver of this version has, by its header. Versions between
/// those that are named know what the one before does.
pub(crate) fn last_known(version: i32) -> u32 {
    match version {
        ..12000 => 124,
        12000..12040 => 129,
        12040..12080 => 134,
        12080..13000 => 143,
        13000..13020 => 147,
        13020..13030 => 148,
        13030..13040 => 156,
        13040..13050 => 158,
        _ => 161,
    }
}

/// A card's value; 0 for what is newer than the list.
pub(crate) fn value(attribute: u32) -> i32 {
    (attribute as usize).checked_sub(1).and_then(|at| H200.get(at)).copied().unwrap_or(0)
}

/// Reads the list when the crate is compiled: a number and a value in each line, `#` before what is
/// for people.
const fn parse(text: &[u8]) -> [i32; COUNT] {
    let mut values = [0; COUNT];
    let (mut at, mut found) = (0, 0);
    while at < text.len() {
        if text[at] == b'#' {
            while text[at] != b'\n' {
                at += 1;
            }
        } else {
            let (number, after) = read_number(text, at);
            let (value, end) = read_number(text, after + 1);
            assert!(number as usize == found + 1, "the attributes are in their order");
            values[found] = value;
            found += 1;
            at = end;
        }
        at += 1;
    }
    assert!(found == COUNT, "the list has as many attributes as it says");
    values
}

/// A number that begins here, and where it ends.
const fn read_number(text: &[u8], begin: usize) -> (i32, usize) {
    let negative = text[begin] == b'-';
    let mut at = begin + negative as usize;
    let mut value: i32 = 0;
    while text[at].is_ascii_digit() {
        // Below 0, where there is room for one more.
        value = value * 10 - (text[at] - b'0') as i32;
        at += 1;
    }
    (if negative { value } else { -value }, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_whole() {
        assert_eq!(H200[0], 1024);
        assert_eq!((value(5), value(131), value(147)), (i32::MAX, -1, 0));
        assert_eq!((value(0), value(148), value(u32::MAX)), (0, 0, 0));
        assert_eq!(last_known(13000) as usize, COUNT);
    }

    /// From the first version on that has more of them, and not before.
    #[test]
    fn each_version_has_the_attributes_of_its_header() {
        let steps = [
            (12000, 124, 129),
            (12040, 129, 134),
            (12080, 134, 143),
            (13000, 143, 147),
            (13020, 147, 148),
            (13030, 148, 156),
            (13040, 156, 158),
            (13050, 158, 161),
        ];
        for (version, before, since) in steps {
            assert_eq!([version - 1, version].map(last_known), [before, since], "{version}");
        }
    }
}
