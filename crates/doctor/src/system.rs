//! Where everything is read from: the files of this machine and the environment of this process,
//! or a folder and a map that stand for them in a test.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The most that is read of a file: those that are of interest are small.
const MOST: u64 = 1 << 20;

/// The operating systems that the doctor distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    /// Linux on a 64-bit processor, WSL included.
    Linux,
    /// Windows on a 64-bit processor.
    Windows,
    /// Any other system. NVIDIA has no driver for it.
    Other,
}

impl Platform {
    fn here() -> Self {
        match std::env::consts::OS {
            _ if cfg!(not(target_pointer_width = "64")) => Self::Other,
            "linux" => Self::Linux,
            "windows" => Self::Windows,
            _ => Self::Other,
        }
    }
}

/// The files and the environment that the doctor checks.
///
/// [`System::here`] is this machine. [`System::simulated`] uses a folder instead of `/` and an
/// empty environment. It is for tests, and for a copy of another machine's files.
#[derive(Clone, Debug)]
pub struct System {
    /// None for the machine's own.
    root: Option<PathBuf>,
    environment: BTreeMap<String, OsString>,
    platform: Platform,
    machine: String,
    refusals: BTreeMap<String, i32>,
}

impl System {
    /// This machine and the environment of this process.
    pub fn here() -> Self {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| name.into_string().ok().map(|name| (name, value)))
            .collect();
        Self {
            root: None,
            environment,
            platform: Platform::here(),
            machine: std::env::consts::ARCH.to_owned(),
            refusals: BTreeMap::new(),
        }
    }

    /// A machine whose files are below `root`. Its environment is empty, and its processor is
    /// x86-64.
    pub fn simulated(root: impl Into<PathBuf>, platform: Platform) -> Self {
        Self {
            root: Some(root.into()),
            environment: BTreeMap::new(),
            platform,
            machine: "x86_64".to_owned(),
            refusals: BTreeMap::new(),
        }
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// Makes opening this file fail with this error number (`EACCES` is 13).
    ///
    /// It is for tests: the system refuses nothing to root in a simulated folder.
    #[must_use]
    pub fn refuses(mut self, path: &str, number: i32) -> Self {
        self.refusals.insert(path.to_owned(), number);
        self
    }

    pub(crate) fn platform(&self) -> Platform {
        self.platform
    }

    /// The processor, as Rust names it.
    pub(crate) fn machine(&self) -> &str {
        &self.machine
    }

    /// A variable of the environment, if it is set. What is no text is shown as far as it can be.
    pub(crate) fn env(&self, name: &str) -> Option<String> {
        // On Windows the case of a name does not matter.
        let same = |known: &str| match self.platform {
            Platform::Windows => known.eq_ignore_ascii_case(name),
            _ => known == name,
        };
        let value = self.environment.iter().find(|(known, _)| same(known))?.1;
        Some(value.to_string_lossy().into_owned())
    }

    /// Where an absolute path of the machine's is.
    fn place(&self, path: &str) -> PathBuf {
        let Some(root) = &self.root else {
            return PathBuf::from(path);
        };
        // `C:\Windows` of a simulated Windows is a folder without the drive.
        let path = path.strip_prefix("C:").unwrap_or(path).replace('\\', "/");
        root.join(path.trim_start_matches('/'))
    }

    /// The machine's name of a path that `place` gave.
    fn name(&self, path: &Path) -> String {
        let inner = self.root.as_ref().and_then(|root| {
            let root = root.canonicalize().unwrap_or_else(|_| root.clone());
            path.strip_prefix(root).ok().map(|path| Path::new("/").join(path))
        });
        inner.unwrap_or_else(|| path.to_owned()).display().to_string()
    }

    /// The beginning of a file, as text.
    pub(crate) fn read(&self, path: &str) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(path, MOST)?).into_owned())
    }

    /// The first `most` bytes of a file.
    pub(crate) fn bytes(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        self.part(path, 0, most)
    }

    /// At most `most` bytes of a file, from `start` on.
    pub(crate) fn part(&self, path: &str, start: u64, most: u64) -> io::Result<Vec<u8>> {
        self.refused(path)?;
        let place = self.place(path);
        // A named pipe would wait for somebody at the other end.
        if !fs::metadata(&place)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
        }
        let mut bytes = Vec::new();
        let mut file = File::open(place)?;
        file.seek(SeekFrom::Start(start))?;
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.place(path)).is_ok()
    }

    pub(crate) fn is_folder(&self, path: &str) -> bool {
        self.place(path).is_dir()
    }

    /// The size of a plain file.
    pub(crate) fn size(&self, path: &str) -> Option<u64> {
        fs::metadata(self.place(path)).ok().filter(|data| data.is_file()).map(|data| data.len())
    }

    /// The names in a folder, in order.
    pub(crate) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        self.refused(path)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(self.place(path))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The last part of where a link leads.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.place(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// The file behind all links; the path itself where that cannot be found out.
    pub(crate) fn real(&self, path: &str) -> String {
        match self.place(path).canonicalize() {
            Ok(real) => self.name(&real),
            Err(_) => path.to_owned(),
        }
    }

    /// Whether this user may open a device node for reading and writing.
    pub(crate) fn open(&self, path: &str) -> io::Result<()> {
        self.refused(path)?;
        File::options().read(true).write(true).open(self.place(path)).map(drop)
    }

    fn refused(&self, path: &str) -> io::Result<()> {
        self.refusals.get(path).map_or(Ok(()), |number| Err(io::Error::from_raw_os_error(*number)))
    }

    /// Whether a file is a device; in a simulated machine a plain file stands for one.
    pub(crate) fn is_device(&self, path: &str) -> bool {
        let Ok(data) = fs::metadata(self.place(path)) else { return false };
        #[cfg(unix)]
        if self.root.is_none() {
            use std::os::unix::fs::FileTypeExt;
            return data.file_type().is_char_device();
        }
        data.is_file()
    }

    /// The kernel's messages about NVIDIA's driver, as far as this user may read them.
    pub(crate) fn kernel_messages(&self) -> Vec<String> {
        let text = match &self.root {
            Some(_) => self.read("/dev/kmsg").unwrap_or_default(),
            None => {
                kernel_records().unwrap_or_else(|| self.read("/var/log/dmesg").unwrap_or_default())
            }
        };
        let about =
            |text: &&str| ["NVRM", "nvidia", "module"].iter().any(|word| text.contains(word));
        let bare =
            |text: &str| text.split_once(';').map_or(text, |(_, text)| text).trim().to_owned();
        text.lines().filter(about).map(bare).collect()
    }

    /// The mode and the group of a file.
    #[cfg(unix)]
    pub(crate) fn rights(&self, path: &str) -> Option<Rights> {
        use std::os::unix::fs::MetadataExt;
        let data = fs::metadata(self.place(path)).ok()?;
        let number = data.gid().to_string();
        let groups = self.read("/etc/group").unwrap_or_default();
        let named = groups.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1) == Some(&number)).then(|| name.to_owned())
        });
        let group = named.unwrap_or(number);
        let mode = data.mode() & 0o777;
        Some(Rights { text: format!("mode {mode:o}, group {group}"), group, mode })
    }

    /// Other systems have no such rights.
    #[cfg(not(unix))]
    pub(crate) fn rights(&self, _path: &str) -> Option<Rights> {
        None
    }
}

/// The records in the kernel's buffer, or none if this user may not read it.
#[cfg(target_os = "linux")]
fn kernel_records() -> Option<String> {
    use std::os::unix::fs::OpenOptionsExt;
    /// At the end of the records a read fails and does not wait for the next one.
    const O_NONBLOCK: i32 = 0o4000;
    /// Far more than the kernel keeps.
    const RECORDS: usize = 100_000;
    let mut file = File::options().read(true).custom_flags(O_NONBLOCK).open("/dev/kmsg").ok()?;
    let mut text = String::new();
    let mut record = [0; 8192];
    for _ in 0..RECORDS {
        match file.read(&mut record) {
            Ok(size) if size > 0 => {
                text += &String::from_utf8_lossy(record.get(..size).unwrap_or_default());
            }
            // A record was overwritten before it was read.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            _ => break,
        }
    }
    Some(text)
}

/// Other systems have no such file.
#[cfg(not(target_os = "linux"))]
fn kernel_records() -> Option<String> {
    None
}

/// Who may open a file.
#[cfg_attr(not(unix), allow(dead_code))]
pub(crate) struct Rights {
    /// Such as `mode 660, group video`.
    pub(crate) text: String,
    pub(crate) group: String,
    pub(crate) mode: u32,
}
