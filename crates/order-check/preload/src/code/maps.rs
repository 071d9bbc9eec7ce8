//! The files that are mapped in this process.

use crate::lock::{Lock, Rank};

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    device: u64,
    inode: u64,
    offset: u64,
}

/// Memory that is a file's, and that the process does not write.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    file: FilePlace,
}

/// The mappings as they were when they were last asked for.
static LAST: Lock<Vec<Mapping>> = Lock::new(Rank::Code, Vec::new());

/// The file's place that these bytes are mapped from: as the system says now, or as it said before,
/// if an answer that may be old is good enough.
pub(crate) fn file_of(range: [u64; 2], now: bool) -> Option<FilePlace> {
    let mut all = LAST.lock().ok()?;
    if !now && let Some(place) = find(&all, range) {
        return Some(place);
    }
    *all = parse(&std::fs::read("/proc/self/maps").ok()?);
    find(&all, range)
}

fn find(all: &[Mapping], [start, end]: [u64; 2]) -> Option<FilePlace> {
    let at = all.partition_point(|mapping| mapping.end <= start);
    let mapping = all.get(at).filter(|mapping| mapping.start <= start && end <= mapping.end)?;
    let offset = mapping.file.offset + (start - mapping.start);
    Some(FilePlace { offset, ..mapping.file })
}

/// The mappings of files that are not written, each with the ones that go on after it.
fn parse(maps: &[u8]) -> Vec<Mapping> {
    let line = |line: &str| {
        let mut parts = line.split_ascii_whitespace();
        let (start, end) = parts.next()?.split_once('-')?;
        let rights = parts.next()?;
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
        let offset = hexadecimal(parts.next()?)?;
        let (major, minor) = parts.next()?.split_once(':')?;
        let device = hexadecimal(major)? << 32 | hexadecimal(minor)?;
        let inode: u64 = parts.next()?.parse().ok()?;
        let file = FilePlace { device, inode, offset };
        let read_only = rights.starts_with("r-") && rights.ends_with('p') && inode != 0;
        read_only.then_some(Mapping { start: hexadecimal(start)?, end: hexadecimal(end)?, file })
    };
    let mut all: Vec<Mapping> = Vec::new();
    // The names of files may be any bytes.
    for next in String::from_utf8_lossy(maps).lines().filter_map(line) {
        match all.last_mut() {
            Some(last)
                if last.end == next.start
                    && FilePlace {
                        offset: last.file.offset + (last.end - last.start),
                        ..last.file
                    } == next.file =>
            {
                last.end = next.end;
            }
            _ => all.push(next),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{FilePlace, file_of, find, parse};

    #[test]
    fn only_files_that_nobody_writes_count() {
        let maps = b"00001000-00003000 r--p 00000000 08:01 7    /a library\n\
            00003000-00005000 r-xp 00002000 08:01 7    /a library\n\
            00005000-00006000 r--p 00009000 08:01 7    /a library\n\
            00006000-00007000 rw-p 00005000 08:01 7    /a library\n\
            00007000-00008000 r--s 00000000 08:01 8    /shared\n\
            00008000-00009000 r--p 00000000 00:00 0\n\
            00009000-0000a000 ---p 00000000 08:01 9    /a\xff\n";
        let all = parse(maps);
        let place = |offset| Some(FilePlace { device: 8 << 32 | 1, inode: 7, offset });
        for (range, expected) in [
            ([0x1000, 0x5000], place(0)),
            ([0x2ff0, 0x3010], place(0x1ff0)),
            ([0x5010, 0x6000], place(0x9010)),
            ([0x4ff0, 0x5010], None),
            ([0x5010, 0x6001], None),
            ([0x6000, 0x6010], None),
            ([0x7000, 0x7010], None),
            ([0x8000, 0x8010], None),
            ([0x9000, 0x9010], None),
            ([0xfff, 0x1001], None),
        ] {
            assert_eq!(find(&all, range), expected, "{range:x?}");
        }
    }

    #[test]
    fn the_text_of_this_program_is_of_a_file() {
        let here = [1_u8, 2, 3];
        let text = parse as *const () as u64;
        let place = file_of([text, text + 8], true);
        assert!(place.is_some() && place == file_of([text, text + 8], false));
        assert_eq!(file_of([(&raw const here) as u64, (&raw const here) as u64 + 3], true), None);
    }
}
