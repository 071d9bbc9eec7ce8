//! The command line.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::ExitCode;

use cuda_order_check_engine::files;
use cuda_order_check_engine::stand_in::NAMES;
use cuda_soft_driver::Builder;
use lexopt::Arg::{Long, Short, Value};
use lexopt::Parser;

use crate::run::{Run, run};

const HELP: &str = "\
Runs programs on a CUDA driver in software, without a GPU.

  cuda-soft-driver run [OPTION...] [--] PROGRAM [ARGUMENT...]
  cuda-soft-driver install DIR
  cuda-soft-driver --help | --version

`run` puts the driver in place of libcuda.so.1 for PROGRAM and its children. At the end it prints
the findings and the leaks of all of them.

Options of `run`, as --NAME VALUE or --NAME=VALUE:
  --order report     find accesses to memory that nothing orders
  --devices 2        how many devices there are, 0 to 8
  --version 12.4     the driver's CUDA version, 11.0 to 13.5
  --fault FAULT      make calls fail, such as cuEventRecord*:nth=3:code=2
  --SETTING VALUE    every other setting of CUDA_SOFT_DRIVER, such as --misuse error
  --leaks WHAT       report (without the option), ignore, or fail: leaks count as findings
  --exitcode N       the status if PROGRAM succeeds and there are findings; 66 without the option

`install` writes libcuda.so.1 and libcuda.so into the folder DIR, for LD_LIBRARY_PATH.

The status is that of PROGRAM, or 128 and the number of the signal that ended it; 126 or 127 if it
cannot be started; 2 for a wrong command line.
";

/// The variable that has the driver's settings.
pub(crate) const VARIABLE: &str = "CUDA_SOFT_DRIVER";

/// A message for standard error, and the status.
#[derive(Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) text: String,
    pub(crate) code: u8,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, code: 2 }
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        error.to_string().into()
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The command.
#[must_use]
pub fn main() -> ExitCode {
    match start(Parser::from_env()) {
        Ok((text, code)) => {
            use std::io::Write;
            // Whoever reads may be gone.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(code)
        }
        Err(Failure { text, code }) => {
            eprintln!("cuda-soft-driver: {text}");
            ExitCode::from(code)
        }
    }
}

/// What is printed, and the status.
fn start(mut arguments: Parser) -> Result<(String, u8), Failure> {
    let first = arguments.next()?;
    let own = || {
        std::env::current_exe()
            .map_err(|error| format!("the path of this command cannot be found: {error}"))
    };
    let command = match first {
        None => return Err(format!("there is no command\n\n{HELP}").into()),
        Some(Long("help") | Short('h')) => return Ok((HELP.to_owned(), 0)),
        Some(Long("version") | Short('V')) => {
            return Ok((format!("cuda-soft-driver {}\n", env!("CARGO_PKG_VERSION")), 0));
        }
        Some(Value(command)) => command,
        Some(option) => return Err(option.unexpected().into()),
    };
    match command.to_str() {
        Some("help") => Ok((HELP.to_owned(), 0)),
        Some("run") => {
            let ambient = std::env::var(VARIABLE).unwrap_or_default();
            match parse(&ambient, arguments)? {
                Some(wanted) => run(&wanted, &own()?),
                None => Ok((HELP.to_owned(), 0)),
            }
        }
        Some("install") => {
            let folder = only(arguments, "install DIR")?.ok_or("install into which folder?")?;
            Ok((install(&own()?, Path::new(&folder))?, 0))
        }
        _ => {
            let command = command.display();
            Err(format!("`{command}` is no command: use run, install or --help").into())
        }
    }
}

/// The only argument that a command takes, or none.
fn only(mut arguments: Parser, usage: &str) -> Result<Option<OsString>, Failure> {
    let one = match arguments.next()? {
        Some(Value(one)) => Some(one),
        Some(_) => return Err(format!("usage: cuda-soft-driver {usage}").into()),
        None => None,
    };
    match arguments.next()? {
        None => Ok(one),
        Some(_) => Err(format!("usage: cuda-soft-driver {usage}").into()),
    }
}

/// What `run` is to do; nothing if it asks for help. `ambient` are settings that the options
/// replace.
fn parse(ambient: &str, mut arguments: Parser) -> Result<Option<Run>, Failure> {
    let mut set: Vec<(String, String)> = vec![("leaks".to_owned(), "report".to_owned())];
    let (mut status, mut leaks_fail) = (66, false);
    // The same name again replaces what was there before, except for those that can be repeated.
    let mut add = |name: &str, value: &str| {
        if !matches!(name, "without" | "null" | "fault" | "order_suppress") {
            set.retain(|(known, _)| known != name);
        }
        set.push((name.to_owned(), value.to_owned()));
    };
    for pair in ambient.split([',', ' ']).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        add(name, value);
    }
    let program: Vec<_> = loop {
        let name = match arguments.next()? {
            None => return Err("there is no program: cuda-soft-driver run -- PROGRAM".into()),
            Some(Value(program)) => break [program].into_iter().chain(arguments.raw_args()?).collect(),
            Some(Long("help") | Short('h')) => return Ok(None),
            Some(Long(name)) => name.to_owned(),
            Some(option) => return Err(option.unexpected().into()),
        };
        let value = arguments.value().map_err(|_| format!("`--{name}` has no value"))?;
        let value = value.into_string().map_err(|it| format!("{it:?} is not UTF-8"))?;
        let setting = name.replace('-', "_");
        match (&*setting, &*value) {
            ("exitcode", _) => {
                status = value.parse().map_err(|_| format!("`--{name}`: use 0 to 255"))?;
            }
            (_, value) if value.contains([',', ' ']) => {
                return Err(format!("`--{name} {value}`: it may have no comma and no space").into());
            }
            ("leaks", "fail") => {
                leaks_fail = true;
                add("leaks", "report");
            }
            ("leaks", value) if !matches!(value, "report" | "ignore") => {
                return Err(format!("`--leaks {value}`: use report, ignore or fail").into());
            }
            ("leaks", value) => {
                leaks_fail = false;
                add("leaks", value);
            }
            // A child may have another current folder.
            ("order_log" | "leaks_log", value) if !value.is_empty() => {
                let path = std::path::absolute(value);
                let path = path.map_err(|error| format!("`--{name} {value}`: {error}"))?;
                add(&setting, &path.display().to_string());
            }
            (setting, value) => add(setting, value),
        }
    };
    let wanted = Run { settings: set, program, status, leaks_fail };
    let _right = Builder::from_text(&wanted.text())?;
    Ok(Some(wanted))
}

/// Whether a file is the software driver.
fn is_software(path: &Path) -> bool {
    /// A name that only the software driver exports.
    const MARK: &[u8] = b"\0cuda_soft_driver_control\0";
    /// The file of this command is shorter.
    const MOST: u64 = 1 << 30;
    files::bytes(path, MOST).is_ok_and(|bytes| bytes.windows(MARK.len()).any(|at| at == MARK))
}

/// Writes the file of this command under the names of the library.
fn install(own: &Path, folder: &Path) -> Result<String, String> {
    let failed = |path: &Path, error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let [library, link] = NAMES.map(|name| folder.join(name));
    for place in [&library, &link] {
        // A driver of somebody else is not lost.
        if place.symlink_metadata().is_ok() && !is_software(place) {
            return Err(format!(
                "{} is there, and is not the software driver: choose another folder",
                place.display()
            ));
        }
    }
    // A process may have the library open, so the new one takes its name at once.
    let new = |name: &str| folder.join(format!("{name}.{}", std::process::id()));
    let [copy, other] = NAMES.map(new);
    let put = || {
        // What a process of this number has left. Others may write into the folder as well, so the
        // file is a new one, and no link to another.
        for left in [&copy, &other] {
            let _ = fs::remove_file(left);
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&copy)?;
        io::copy(&mut fs::File::open(own)?, &mut file)?;
        file.set_permissions(fs::Permissions::from_mode(0o755))?;
        drop(file);
        fs::rename(&copy, &library)?;
        symlink(NAMES[0], &other)?;
        fs::rename(&other, &link)
    };
    put().map_err(|error| {
        for left in [&copy, &other] {
            let _ = fs::remove_file(left);
        }
        failed(folder, error)
    })?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    Ok(format!(
        "{}\n{}\nUse it: LD_LIBRARY_PATH={} PROGRAM\n",
        library.display(),
        link.display(),
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(ambient: &str, text: &str) -> Result<Option<Run>, Failure> {
        parse(ambient, Parser::from_args(text.split_whitespace()))
    }

    #[test]
    fn options_become_settings() {
        let run = |ambient: &str, text: &str| {
            let run = parsed(ambient, text).expect("it is right").expect("it runs");
            (run.text(), run.program.len(), run.status, run.leaks_fail)
        };
        let usual = "leaks=report".to_owned();
        assert_eq!(run("", "-- a --devices b"), (usual, 3, 66, false));
        assert_eq!(
            run("devices=4,fault=cuInit:code=1", "--order=report --devices 2 --version 12.4 a"),
            (
                "leaks=report,fault=cuInit:code=1,order=report,devices=2,version=12.4".to_owned(),
                1,
                66,
                false
            )
        );
        let logged = run("", "--leaks=fail --exitcode 3 --order report --order-log /x/%p a");
        assert_eq!(logged, ("leaks=report,order=report,order_log=/x/%p".to_owned(), 1, 3, true));
        assert_eq!(run("", "--leaks ignore a").0, "leaks=ignore");
        assert_eq!(parsed("", "--help"), Ok(None));
        assert_eq!(parsed("", "-h"), Ok(None));
        for (wrong, part) in [
            ("", "there is no program"),
            ("--devices", "`--devices` has no value"),
            ("--device 2 a", "there is no setting `device`: use version, devices"),
            ("--version 9.0 a", "use 11.0 to "),
            ("--exitcode 300 a", "use 0 to 255"),
            ("--leaks off a", "use report, ignore or fail"),
            ("--order-log /a,b a", "no comma"),
            ("--order-log=/a a", "add `order=report`"),
        ] {
            let Err(Failure { text, code: 2 }) = parsed("", wrong) else { panic!("{wrong}") };
            assert!(text.contains(part), "{wrong}: {text}");
        }
    }
}
