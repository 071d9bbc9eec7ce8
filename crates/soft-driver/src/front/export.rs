//! The description of one exported function.

/// One exported function.
#[derive(Clone, Copy, Debug)]
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
    pub(crate) const fn new(name: &'static str, version: i32, per_thread: bool) -> Self {
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
