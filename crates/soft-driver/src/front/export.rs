//! The description of one exported function.

use cuda_events::Version;
use cuda_events::sys::ENTRY_POINTS;

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
    /// `listed` is the version that the line of `name` has, or nothing. A line may keep its version
    /// after `cuda-events` has bound the name.
    pub(crate) const fn new(name: &'static str, listed: &[i32], per_thread: bool) -> Self {
        let version = match (bound_version(name), listed) {
            (Some(version), []) => version.as_raw() as i32,
            (None, [version]) => *version,
            (Some(version), [listed]) if version.as_raw() as i32 == *listed => *listed,
            (Some(_), _) => panic!("src/sys/symbols.rs has another version of it: correct one"),
            (None, _) => panic!("cuda-events does not bind it: give it a version"),
        };
        Self { name, version, per_thread, supported: true }
    }

    pub(crate) const fn unsupported(mut self) -> Self {
        self.supported = false;
        self
    }

    /// The name for `cuGetProcAddress`: without the version and the per-thread suffix.
    pub fn base(&self) -> &'static str {
        let name = self.name;
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
}

/// The version of a name in the list of `cuda-events`.
const fn bound_version(name: &str) -> Option<Version> {
    const TWIN: &str = "_ptsz";
    let mut at = 0;
    while at < ENTRY_POINTS.len() {
        let entry = &ENTRY_POINTS[at];
        let legacy = entry.function.name();
        if name.len() == legacy.len() && is_same(name, legacy) {
            return Some(entry.version);
        }
        if name.len() == legacy.len() + TWIN.len() {
            let (start, end) = name.split_at(legacy.len());
            if is_same(end, TWIN) && is_same(start, legacy) {
                return entry.per_thread_version;
            }
        }
        at += 1;
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
