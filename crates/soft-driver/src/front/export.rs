//! The description of one exported function.

use cuda_events::Version;
use cuda_events::sys::more::VERSIONS;
use cuda_events::sys::{ENTRY_POINTS, EntryPoint};

/// One exported function.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Export {
    /// The exported name: `cuEventDestroy_v2`, `cuEventRecord_ptsz`.
    pub name: &'static str,
    /// The version of CUDA that introduced it, as 12080 for 12.8.
    pub version: i32,
    /// Whether a NULL stream means the per-thread default stream.
    pub per_thread: bool,
    /// Whether it is implemented; otherwise it returns `CUDA_ERROR_NOT_SUPPORTED`.
    pub supported: bool,
}

impl Export {
    /// `listed` is the version that the line of `name` has, which is for names that `cuda-events`
    /// does not declare. A line may keep it afterwards.
    pub(crate) const fn new(name: &'static str, listed: &[i32], supported: bool) -> Self {
        let version = match (declared_version(name), listed) {
            (Some(version), []) => version.as_raw() as i32,
            (None, [version]) => *version,
            (Some(version), [listed]) if version.as_raw() as i32 == *listed => *listed,
            (Some(_), _) => {
                panic!("src/sys/exports.rs has another version of it than wrapper.h: correct one")
            }
            (None, _) => {
                panic!("cuda-events does not declare it: give it a version in src/sys/exports.rs")
            }
        };
        Self { name, version, per_thread: is_per_thread(name), supported }
    }

    /// The name for `cuGetProcAddress`: without the version and the per-thread suffix.
    pub fn base(&self) -> &'static str {
        base(self.name)
    }
}

/// The base name of an exported name.
pub(crate) fn base(name: &str) -> &str {
    let name = name.strip_suffix("_ptsz").or(name.strip_suffix("_ptds")).unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((base, version))
            if !version.is_empty() && version.bytes().all(|digit| digit.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    }
}

/// Whether a name is that of a per-thread-default-stream twin.
const fn is_per_thread(name: &str) -> bool {
    matches!(name.as_bytes(), [.., b'_', b'p', b't', b's' | b'd', b'z' | b's'])
}

/// The places of a hash table of what `cuda-events` declares: each export is looked up while the
/// crate compiles, and a search of the whole lists for each took the compiler four seconds.
const PLACES: usize = 1024;

/// An exported name, the version that introduced it, and that of its twin.
type Declared = (&'static str, Version, Option<Version>);

static DECLARED: [Option<Declared>; PLACES] = {
    let mut declared = [None; PLACES];
    let mut at = 0;
    while at < ENTRY_POINTS.len() + VERSIONS.len() {
        let one = if at < ENTRY_POINTS.len() {
            let entry = &ENTRY_POINTS[at];
            (exported(entry), entry.version, entry.per_thread_version)
        } else {
            VERSIONS[at - ENTRY_POINTS.len()]
        };
        let mut place = hash(one.0);
        while declared[place].is_some() {
            place = (place + 1) % PLACES;
        }
        declared[place] = Some(one);
        at += 1;
    }
    declared
};

const fn exported(entry: &EntryPoint) -> &'static str {
    match entry.name.to_str() {
        Ok(name) => name,
        Err(_) => "",
    }
}

/// The place where the search for a name begins.
const fn hash(name: &str) -> usize {
    let name = name.as_bytes();
    let mut hash = 0_usize;
    let mut at = 0;
    while at < name.len() {
        hash = (hash * 31 + name[at] as usize) % PLACES;
        at += 1;
    }
    hash
}

/// The version of a name that `cuda-events` declares.
const fn declared_version(name: &str) -> Option<Version> {
    let twin = is_per_thread(name);
    let legacy = if twin { name.split_at(name.len() - "_ptsz".len()).0 } else { name };
    let mut place = hash(legacy);
    while let Some((name, version, of_twin)) = DECLARED[place] {
        if is_same(name, legacy) {
            return if twin { of_twin } else { Some(version) };
        }
        place = (place + 1) % PLACES;
    }
    None
}

pub(crate) const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    // From the end, where names differ most.
    let mut at = one.len();
    while at > 0 {
        at -= 1;
        if one[at] != other[at] {
            return false;
        }
    }
    true
}
