//! The identity of a process, also among processes that had or will have the same id.

/// A process, distinguished from all others that had its id or will have it. All zero if that is
/// not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    /// The start time, in the system's ticks since the boot, and on Windows since 1601; 0 if
    /// unknown.
    pub(crate) started: u64,
    pub(crate) numbering: Numbering,
}

/// The system that the process id and the start time belong to. On another system they have no
/// meaning. All zero on Windows, where a start time has the same meaning for all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Numbering {
    /// The inode number of the namespace of process ids.
    pub(crate) pid_namespace: u32,
    /// The inode number of the namespace of clocks; 0 on a system without it (before Linux 5.6).
    pub(crate) time_namespace: u32,
    /// The boot of the system: needed because the inode numbers of its first namespaces are the
    /// same on every system.
    pub(crate) boot: [u8; 16],
}

impl Identity {
    /// The identity of this process.
    pub(crate) fn own() -> Self {
        system::own().unwrap_or_default()
    }

    /// The start time of the process, if its id is valid on this system.
    pub(crate) fn comparable_start(&self) -> Option<u64> {
        let comparable =
            self.started != 0 && system::numbering().is_some_and(|here| here == self.numbering);
        comparable.then_some(self.started)
    }
}

/// The fields used of the line in `/proc/PID/stat`.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// The state of its first thread.
    pub(crate) state: char,
    pub(crate) threads: u32,
    /// In ticks since the boot.
    pub(crate) started: u64,
}

#[cfg(target_os = "linux")]
impl Status {
    /// None for an incomplete line.
    pub(crate) fn of(line: &[u8]) -> Option<Self> {
        // The name is in parentheses and may hold any bytes; the other fields come after the last
        // one.
        let fields = line
            .rsplitn(2, |&byte| byte == b')')
            .next()
            .and_then(|fields| str::from_utf8(fields).ok());
        let mut fields = fields?.split_ascii_whitespace();
        let status = Self {
            // Field 3, 20 and 22.
            state: fields.next()?.chars().next()?,
            threads: fields.nth(16)?.parse().ok()?,
            started: fields.nth(1)?.parse().ok()?,
        };
        // One more field must follow: then the last number is complete.
        fields.next().map(|_| status)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::{Identity, Numbering, Status};

    pub(super) fn own() -> Option<Identity> {
        let status = Status::of(&fs::read("/proc/self/stat").ok()?)?;
        Some(Identity { started: status.started, numbering: numbering()? })
    }

    pub(super) fn numbering() -> Option<Numbering> {
        let status = fs::read("/proc/self/status").ok()?;
        if !numbers_are_own(&String::from_utf8_lossy(&status), std::process::id()) {
            return None;
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Numbering {
            pid_namespace: namespace("pid")?,
            time_namespace: namespace("time").unwrap_or_default(),
            boot: boot_id(&boot)?,
        })
    }

    fn namespace(kind: &str) -> Option<u32> {
        // A namespace's number has 32 bits.
        fs::metadata(format!("/proc/self/ns/{kind}")).ok()?.ino().try_into().ok()
    }

    /// Whether `/proc`, from which this `status` was read, belongs to this process's namespace. A
    /// container may have the `/proc` of its host.
    pub(super) fn numbers_are_own(status: &str, pid: u32) -> bool {
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        // All ids of the process, from the namespace of `/proc` to its own (since Linux 4.1).
        let one =
            field("NSpid:").is_none_or(|numbers| numbers.split_ascii_whitespace().count() == 1);
        field("Pid:").is_some_and(|number| number.parse() == Ok(pid)) && one
    }

    /// A UUID's text.
    pub(super) fn boot_id(text: &str) -> Option<[u8; 16]> {
        let digits: String = text.trim().chars().filter(|digit| *digit != '-').collect();
        // Only digits: a number could also have a sign.
        let number = digits
            .chars()
            .all(|digit| digit.is_ascii_hexdigit())
            .then(|| u128::from_str_radix(&digits, 16));
        (digits.len() == 32).then_some(number?.ok()?.to_be_bytes())
    }
}

#[cfg(windows)]
pub(crate) use system::Watched;

#[cfg(windows)]
#[allow(unsafe_code)]
mod system {
    use core::ffi::c_void;
    use std::io;
    use std::os::windows::io::{
        AsHandle as _, AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle,
    };

    use super::{Identity, Numbering};

    #[link(name = "kernel32", kind = "raw-dylib")]
    unsafe extern "system" {
        fn GetCurrentProcess() -> *mut c_void;
        fn GetProcessTimes(
            process: *mut c_void,
            created: *mut FileTime,
            ended: *mut FileTime,
            kernel: *mut FileTime,
            user: *mut FileTime,
        ) -> i32;
        fn OpenProcess(access: u32, inherited: i32, process: u32) -> *mut c_void;
        fn WaitForSingleObject(handle: *mut c_void, milliseconds: u32) -> u32;
    }

    const PROCESS_QUERY_LIMITED_INFORMATION: u32 = 0x1000;
    const SYNCHRONIZE: u32 = 0x10_0000;
    const WAIT_OBJECT_0: u32 = 0;
    const WAIT_TIMEOUT: u32 = 0x102;

    /// A handle of a process. While it is open, no other process gets its id.
    pub(crate) struct Watched(OwnedHandle);

    impl Watched {
        /// The process with this id that started then; none if another process has the id now.
        pub(crate) fn find(pid: u32, started: u64) -> io::Result<Option<Self>> {
            let access = PROCESS_QUERY_LIMITED_INFORMATION | SYNCHRONIZE;
            // SAFETY: it takes numbers.
            let handle = unsafe { OpenProcess(access, 0, pid) };
            if handle.is_null() {
                return Err(io::Error::last_os_error());
            }
            // SAFETY: just opened, and owned by nothing else.
            let process = unsafe { OwnedHandle::from_raw_handle(handle) };
            let is_it = created(process.as_handle())? == started;
            Ok(is_it.then_some(Self(process)))
        }

        /// Whether it has ended; none if the system returns an error.
        pub(crate) fn has_ended(&self) -> Option<bool> {
            // SAFETY: an open handle, which may be waited for. It does not wait.
            match unsafe { WaitForSingleObject(self.0.as_raw_handle(), 0) } {
                WAIT_OBJECT_0 => Some(true),
                WAIT_TIMEOUT => Some(false),
                _ => None,
            }
        }
    }

    /// Ticks of 100 ns, the lower half first.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct FileTime([u32; 2]);

    /// The start time of a process, in ticks of 100 ns since 1601.
    fn created(process: BorrowedHandle<'_>) -> io::Result<u64> {
        let mut times = [FileTime::default(); 4];
        let [created, ended, kernel, user] = &mut times;
        let process = process.as_raw_handle();
        // SAFETY: a handle that is open for the call, and places for the times.
        let read = unsafe { GetProcessTimes(process, created, ended, kernel, user) } != 0;
        let FileTime([low, high]) = *created;
        let time = u64::from(high) << 32 | u64::from(low);
        if read { Ok(time) } else { Err(io::Error::last_os_error()) }
    }

    pub(super) fn own() -> Option<Identity> {
        // SAFETY: it has no preconditions, and its handle, a constant, is never closed.
        let process = unsafe { BorrowedHandle::borrow_raw(GetCurrentProcess()) };
        Some(Identity { started: created(process).ok()?, numbering: numbering()? })
    }

    #[expect(clippy::unnecessary_wraps, reason = "on Linux it may not be known")]
    pub(super) fn numbering() -> Option<Numbering> {
        Some(Numbering::default())
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
mod system {
    use super::{Identity, Numbering};

    pub(super) fn own() -> Option<Identity> {
        None
    }

    pub(super) fn numbering() -> Option<Numbering> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::system::{boot_id, numbers_are_own};
    use super::*;

    #[test]
    fn starts_count_where_numbers_do() {
        let own = Identity::own();
        assert!(own.started != 0 && own.numbering.pid_namespace != 0, "{own:?}");
        assert_ne!(own.numbering.boot, [0; 16]);
        assert_eq!(own.comparable_start(), Some(own.started));
        let elsewhere = |change: fn(&mut Identity)| {
            let mut identity = own;
            change(&mut identity);
            identity.comparable_start()
        };
        assert_eq!(elsewhere(|other| other.started += 1), Some(own.started + 1));
        assert_eq!(elsewhere(|other| other.started = 0), None);
        assert_eq!(elsewhere(|other| other.numbering.pid_namespace ^= 1), None);
        assert_eq!(elsewhere(|other| other.numbering.time_namespace ^= 1), None);
        assert_eq!(elsewhere(|other| other.numbering.boot[15] ^= 1), None);
        assert_eq!(Identity::default().comparable_start(), None);
    }

    #[test]
    fn other_namespaces_are_detected() {
        let status = |numbers: &str| {
            format!("Name:\tPid:\nPid:\t17\nPPid:\t1\nNSpid:\t{numbers}\nNSpgid:\t17\n")
        };
        assert!(numbers_are_own(&status("17"), 17));
        // The host's `/proc`, where the process has another number, or by chance the same.
        assert!(!numbers_are_own(&status("17\t4"), 4));
        assert!(!numbers_are_own(&status("17\t17"), 17));
        // Linux before 4.1 does not say which numbers a process has elsewhere.
        assert!(numbers_are_own("Name:\tx\nPid:\t17\n", 17));
        assert!(!numbers_are_own("Name:\tx\nPid:\t17\n", 4));
        assert!(!numbers_are_own("", 17));
    }

    #[test]
    fn a_boot_is_sixteen_bytes() {
        let text = "00112233-4455-6677-8899-aabbccddeeff\n";
        let bytes = core::array::from_fn(|byte| 0x11 * byte as u8);
        assert_eq!(boot_id(text), Some(bytes));
        for bad in [
            "",
            "00112233",
            &text[1..],
            &text.replace("00", "+0"),
            &format!("0{text}"),
            &text.replace('a', "g"),
        ] {
            assert_eq!(boot_id(bad), None, "{bad:?}");
        }
    }

    fn line(name: &str) -> String {
        // As the kernel writes it, up to the field after the start time.
        format!("4711 ({name}) S 1 4711 4711 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 77 0 88 99\n")
    }

    #[test]
    fn a_name_may_hold_any_bytes() {
        let status = Status { state: 'S', threads: 77, started: 88 };
        for name in
            ["exporter", "", "a) Z 1 (b", ") Z 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "\u{fffd}"]
        {
            assert_eq!(Status::of(line(name).as_bytes()), Some(status), "{name:?}");
        }
        let mut bytes = line("ab").into_bytes();
        bytes[6..8].copy_from_slice(b"\xff\xfe");
        assert_eq!(Status::of(&bytes), Some(status));
    }
}
