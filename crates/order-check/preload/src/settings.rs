//! The settings of the stand-in, and the classes of its findings.

use std::ffi::OsString;
use std::path::PathBuf;

use cuda_order_check_engine::findings::{Stacks, Suppression};
use cuda_order_check_engine::{AccessKind, Report, Side, files};

/// The environment variable with the settings.
pub const VARIABLE: &str = "CUDA_ORDER_CHECK";

/// An environment variable. In a program with the rights of another user there is none: who starts it
/// must not choose what it loads and writes.
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    // SAFETY: it has no preconditions.
    let is_secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    if is_secure { None } else { std::env::var_os(name) }
}

/// A class of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name in settings and suppressions.
    pub name: &'static str,
    /// Whether it is on by default.
    pub on: bool,
    /// What is reported.
    pub about: &'static str,
}

macro_rules! classes {
    ($($class:ident $name:literal $on:literal $about:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind { $($class,)* }

        /// All classes.
        pub const CLASSES: &[Class] =
            &[$(Class { name: $name, on: $on, about: $about },)*];

        impl Kind {
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$class => $name,)* }
            }
        }
    };
}

classes! {
    Copy "copy" true
        "a copy or memset that writes, and another one or a kernel with an address of the bytes";
    Uploads "uploads" true
        "a copy from ordinary memory, whose call returns before its last bytes have arrived";
    Free "free" true "a free or an allocation, and an unordered use of the memory";
    Host "host" true "an access of the host to pinned or managed memory that a stream still uses";
    Objects "objects" true
        "an event or a stream that a call uses after its end, or destroys while another waits for it";
    Records "records" true
        "an event that is recorded again before a wait that may mean its record before";
    Reads "reads" true "a copy that only reads, and a kernel that writes the bytes";
    Pools "pools" false
        "extends the others: an address of an allocation of 32 MiB or more stands for all of it";
    Kernels "kernels" true "two kernels, one of which writes bytes that the other accesses";
}

/// Whether a kernel makes the access: one that is launched, or one of a graph.
pub(crate) fn is_of_kernel(side: &Side) -> bool {
    is_launch(side) || side.launch().is_some()
}

/// Whether a call launches a kernel.
pub(crate) fn is_launch(side: &Side) -> bool {
    side.call.name.starts_with("cuLaunchKernel") || side.call.name.starts_with("cuLaunchCoop")
}

/// For tests: the access is one that a kernel without code may make.
#[cfg(test)]
pub(crate) fn launched(access: cuda_order_check_engine::Access) -> cuda_order_check_engine::Access {
    use cuda_order_check_engine::{Launch, Launched};
    #[derive(Debug)]
    struct Kernel;
    impl Launch for Kernel {
        fn number(&self) -> u64 {
            1
        }
    }
    access.of_launch(Launched::new(std::sync::Arc::new(Kernel)))
}

pub(crate) fn is_read(side: &Side) -> bool {
    side.kind == AccessKind::Read
}

impl Kind {
    /// The class of a report.
    pub(crate) fn of(report: &Report) -> Self {
        let sides = [&report.first, &report.second];
        let frees = |side: &&Side| matches!(side.kind, AccessKind::Free | AccessKind::Allocate);
        // Copies from pageable memory are accesses of the thread that makes the call.
        let host =
            |side: &&Side| side.agent.stream_id().is_none() && !side.call.name.starts_with("cuM");
        if report.problem.is_of_an_object() {
            return Self::Objects;
        }
        if sides.iter().any(frees) {
            return Self::Free;
        }
        if sides.iter().any(host) {
            return Self::Host;
        }
        if report.first.is_upload() {
            return Self::Uploads;
        }
        match sides.map(is_of_kernel) {
            [true, true] => Self::Kernels,
            [true, false] if is_read(&report.second) => Self::Reads,
            [false, true] if is_read(&report.first) => Self::Reads,
            _ => Self::Copy,
        }
    }
}

/// What to look for, and where to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether each class is on.
    classes: Vec<bool>,
    /// The file for reports; standard error without one. `%p` is the process.
    pub log: Option<String>,
    /// The file for reports as JSON.
    pub json: Option<String>,
    /// The file for reports as code review tools read them.
    pub sarif: Option<String>,
    /// The exit status of a process with errors; 0 for its own.
    pub exitcode: u8,
    /// Whether calls have stacks.
    pub stacks: bool,
    /// How much of them findings show.
    pub shown: Stacks,
    /// Whether findings are reported of which it is not known what a kernel accesses.
    pub possible: bool,
    /// What is not reported.
    pub suppressed: Vec<Suppression>,
    /// The path of the real library.
    pub library: Option<PathBuf>,
    /// The file for a line for each hooked call.
    pub trace: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            classes: CLASSES.iter().map(|class| class.on).collect(),
            log: None,
            json: None,
            sarif: None,
            exitcode: 0,
            stacks: true,
            shown: Stacks::Short,
            possible: false,
            suppressed: Vec::new(),
            library: None,
            trace: None,
        }
    }
}

impl Settings {
    /// Parses the text of [`VARIABLE`]: pairs `name=value`, separated by commas. The last one of a
    /// name counts, except `class` and `suppressions`, which may come more than once.
    ///
    /// # Errors
    ///
    /// One sentence about the first pair that is unknown or invalid.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut settings = Self::default();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| format!("`{pair}` is not name=value"))?;
            settings.set(name, value)?;
        }
        Ok(settings)
    }

    /// Of a text that [`from_text`](Self::from_text) refuses: the real library, and nothing else.
    #[must_use]
    pub fn of_library(text: &str) -> Self {
        let pairs = text.split(',').filter_map(|pair| pair.trim().split_once('='));
        let is_library = |(name, value): &(&str, &str)| *name == "library" && !value.is_empty();
        let library = pairs.rev().find(is_library).map(|(_, value)| value.into());
        Self { library, ..Self::default() }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return Err(format!("`{name}` has no value"));
        }
        let text = || Some(value.to_owned());
        match name {
            "class" => self.set_class(value)?,
            "log" => self.log = text(),
            "json" => self.json = text(),
            "sarif" => self.sarif = text(),
            "exitcode" => {
                self.exitcode =
                    value.parse().map_err(|_| format!("`exitcode={value}`: use 0 to 255"))?;
            }
            "stacks" => {
                (self.stacks, self.shown) = match value {
                    "on" => (true, Stacks::Short),
                    "full" => (true, Stacks::Full),
                    "off" => (false, Stacks::Short),
                    _ => return Err(format!("`stacks={value}`: use on, off or full")),
                };
            }
            "possible" => self.possible = switch(name, value)?,
            "suppressions" => {
                let lines = files::text(value)
                    .map_err(|error| format!("suppressions: cannot read {value}: {error}"))?;
                let all = Suppression::from_lines(&lines);
                self.suppressed
                    .extend(all.map_err(|what| format!("suppressions: {value}: {what}"))?);
                let unknown = self.suppressed.iter().find_map(|rule| match rule {
                    Suppression::Class(name) if !name.contains('*') => {
                        CLASSES.iter().all(|class| class.name != name).then_some(name)
                    }
                    _ => None,
                });
                if let Some(name) = unknown {
                    return Err(format!("suppressions: {value}: there is no class {name}"));
                }
            }
            "library" => self.library = Some(value.into()),
            "trace" => self.trace = text(),
            _ => {
                return Err(format!(
                    "`{name}` is no setting: use class, log, json, sarif, exitcode, stacks, \
                     possible, suppressions, library or trace"
                ));
            }
        }
        Ok(())
    }

    fn set_class(&mut self, value: &str) -> Result<(), String> {
        let (on, name) = match value.split_at_checked(1) {
            Some(("+", name)) => (true, name),
            Some(("-", name)) => (false, name),
            _ => return Err(format!("`class={value}`: begin with + or -, such as class=+pools")),
        };
        let place = CLASSES.iter().position(|class| class.name == name);
        match place.and_then(|place| self.classes.get_mut(place)) {
            Some(class) => *class = on,
            None => {
                let names: Vec<_> = CLASSES.iter().map(|class| class.name).collect();
                let names = names.join(", ");
                return Err(format!("`{name}` is no class: the classes are {names}"));
            }
        }
        Ok(())
    }

    /// Whether the class `host` is on.
    #[must_use]
    pub fn checks_host(&self) -> bool {
        self.has(Kind::Host)
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.classes.get(kind as usize).copied().unwrap_or_default()
    }
}

fn switch(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{name}={value}`: use on or off")),
    }
}

#[cfg(test)]
mod tests {
    use cuda_order_check_engine::findings::Stacks;

    use super::{Kind, Settings, launched};

    /// The classes of two operations, each in a stream of its own or of the host, in both orders.
    #[test]
    fn each_finding_has_a_class() {
        use cuda_order_check_engine::{Access, Call, Checker, Op, StreamId, ThreadId};
        let class = |all: [(&'static str, bool, Access); 2]| {
            let mut checker = Checker::default();
            for (stream, (name, in_stream, access)) in (1..).zip(all) {
                let (stream, accesses) = (StreamId(stream), &[access][..]);
                let op = match in_stream {
                    true => Op::Work { stream, accesses },
                    false => Op::Host { accesses },
                };
                checker.apply(Call::new(name, stream.0, ThreadId(1)), op);
            }
            let all = checker.take_findings();
            all.first().and_then(|finding| finding.report()).map(Kind::of)
        };
        let (read, write) = (|| Access::read(64, 8), || Access::write(64, 8));
        let copy = |access| ("cuMemcpyDtoDAsync_v2", true, access);
        let kernel = |access| ("cuLaunchKernel of softmax", true, access);
        let together = |access| ("cuLaunchCooperativeKernel of softmax", true, access);
        // A kernel of a graph, and a copy of one.
        let node = |access| ("cuGraphLaunch", true, launched(access));
        let copy_node = |access| ("cuGraphLaunch", true, access);
        let host = |access| ("a load", false, access);
        let set = || ("cuMemsetD8Async", true, write());
        let frees = || ("cuMemFreeAsync", true, Access::free(64, 8));
        let allocates = || ("cuMemAllocAsync", true, Access::allocate(64, 8));
        assert_eq!(class([copy(read()), copy(read())]), None, "two reads");
        for (pair, expected) in [
            ([copy(write()), set()], Kind::Copy),
            ([copy(read()), set()], Kind::Copy),
            ([kernel(read()), set()], Kind::Copy),
            ([kernel(write()), copy(read())], Kind::Reads),
            ([kernel(write()), kernel(write())], Kind::Kernels),
            ([together(write()), copy(read())], Kind::Reads),
            ([kernel(read()), together(write())], Kind::Kernels),
            ([node(write()), copy(read())], Kind::Reads),
            ([copy(read()), node(write())], Kind::Reads),
            ([node(write()), kernel(read())], Kind::Kernels),
            ([node(write()), set()], Kind::Copy),
            ([copy_node(write()), kernel(read())], Kind::Copy),
            ([copy_node(read()), kernel(write())], Kind::Reads),
            ([set(), host(read())], Kind::Host),
            ([("cuMemcpyHtoD_v2", true, write()), host(read())], Kind::Host),
            ([frees(), host(read())], Kind::Free),
            ([set(), ("cuMemcpyHtoD_v2", false, read())], Kind::Copy),
            // It has returned; one that comes later has not.
            ([("cuMemcpyHtoD_v2", true, write()), kernel(read())], Kind::Uploads),
            ([set(), ("cuMemcpyHtoD_v2", true, write())], Kind::Copy),
            ([frees(), kernel(read())], Kind::Free),
            ([allocates(), kernel(read())], Kind::Free),
            ([allocates(), set()], Kind::Free),
        ] {
            let [one, other] = pair.clone();
            assert_eq!(class(pair), Some(expected), "{} and {}", one.0, other.0);
        }
        // A kernel may come first or last.
        assert_eq!(class([copy(read()), kernel(write())]), Some(Kind::Reads));
        assert_eq!(class([set(), kernel(read())]), Some(Kind::Copy));
        assert_eq!(class([kernel(read()), frees()]), Some(Kind::Free));
    }

    #[test]
    fn settings_are_parsed() {
        let text = "class=+pools,class=-free, log=/tmp/a b-%p,exitcode=7,exitcode=66";
        let settings = Settings::from_text(text).expect("it is valid");
        assert!(settings.has(Kind::Pools) && settings.has(Kind::Copy));
        assert!(!settings.has(Kind::Free) && Settings::default().has(Kind::Reads));
        assert_eq!((settings.log.as_deref(), settings.exitcode), (Some("/tmp/a b-%p"), 66));
        assert_eq!(Settings::from_text(""), Ok(Settings::default()));
        let text = "log=/l,json=/j,sarif=/s,trace=/t,library=/d,possible=on";
        let file = |path: &str| Some(path.to_owned());
        let expected = Settings {
            log: file("/l"),
            json: file("/j"),
            sarif: file("/s"),
            trace: file("/t"),
            library: Some("/d".into()),
            possible: true,
            ..Settings::default()
        };
        assert_eq!(Settings::from_text(text), Ok(expected));
        let stacks =
            |text| Settings::from_text(text).map(|settings| (settings.stacks, settings.shown));
        assert_eq!(stacks("stacks=full"), Ok((true, Stacks::Full)));
        assert_eq!(stacks("stacks=full,stacks=off"), Ok((false, Stacks::Short)));
        let typo = std::env::temp_dir().join(format!("suppressions-{}", std::process::id()));
        std::fs::write(&typo, "class:frea\n").expect("a new file");
        let of_typo = format!("suppressions={}", typo.display());
        let text = Settings::from_text(&of_typo).expect_err("there is no such class");
        assert!(text.ends_with("there is no class frea"), "{text}");
        std::fs::write(&typo, "class:fr*\nclass:free\n").expect("the file");
        assert!(Settings::from_text(&of_typo).is_ok());
        std::fs::remove_file(&typo).expect("the file");
        let broken = "suppressions=/nowhere/x, library=/a/b";
        assert_eq!(Settings::of_library(broken).library, Some("/a/b".into()));
        let several = "library=/a, library=/b,x, library=";
        assert_eq!(Settings::of_library(several).library, Some("/b".into()), "the last one");
        for (wrong, part) in [
            ("x", "`x` is not name=value"),
            ("x=1", "`x` is no setting: use class, log"),
            ("log=", "`log` has no value"),
            ("class=reads", "begin with + or -"),
            ("class=+reeds", "`reeds` is no class: the classes are copy, uploads"),
            ("exitcode=256", "use 0 to 255"),
            ("stacks=1", "`stacks=1`: use on, off or full"),
            ("possible=yes", "`possible=yes`: use on or off"),
            ("suppressions=/nowhere/x", "cannot read /nowhere/x"),
            ("suppressions=/dev/zero", "cannot read /dev/zero: it is not a plain file"),
            ("suppressions=/dev", "cannot read /dev: it is not a plain file"),
        ] {
            let text = Settings::from_text(wrong).expect_err(wrong);
            assert!(text.contains(part) && text.lines().count() == 1, "{wrong}: {text}");
        }
    }
}
