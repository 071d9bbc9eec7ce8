//! The command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use cuda_order_check_engine::stand_in::{folder, prepended};
use cuda_order_check_preload::{CLASSES, Settings, VARIABLE, find};
use lexopt::Arg::{Long, Short, Value};
use lexopt::Parser;

use crate::program::unchecked;
use crate::say;

const HELP: &str = "\
Reports missing order between the streams and threads of a CUDA program that nobody changed.

  cuda-order-check run [OPTION...] [--] PROGRAM [ARGUMENT...]
  cuda-order-check --list | --help | --version

Options of `run`:
  --class LIST         classes of findings to add and to leave out, such as +pools,-free
  --log FILE           write findings to this file in place of standard error; %p is the process
  --json FILE          write findings to this file as well, as a JSON object in each line
  --sarif FILE         write findings to this file as well, as code review tools read them
  --exitcode N         end with this status if there are findings
  --stacks off|full    take no stacks, which is faster; or show them with all frames
  --possible           report findings, too, of which it is not known what a kernel accesses
  --suppressions FILE  leave findings out: a line is call:NAME, function:NAME, kernel:NAME or
                       class:NAME, where * stands for any text, or begins with #
  --library PATH       the real libcuda.so.1; without it the one that the loader finds

--list lists the classes. The children of the program are checked as well, each by itself.
";

/// The command.
#[must_use]
pub fn main() -> ExitCode {
    match parse(Parser::from_env()).and_then(Action::run) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(Failure { text, code }) => {
            say(&text);
            ExitCode::from(code)
        }
    }
}

#[derive(Debug, PartialEq)]
struct Failure {
    text: String,
    code: u8,
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

#[derive(Debug, PartialEq)]
enum Action {
    Show(String),
    /// The settings as text, and the program with its arguments.
    Run(String, Vec<OsString>),
}

fn list() -> String {
    let line = |class: &cuda_order_check_preload::Class| {
        let on = if class.on { "on" } else { "off" };
        format!("{:8}{on:5}{}\n", class.name, class.about)
    };
    CLASSES.iter().map(line).collect()
}

fn parse(mut arguments: Parser) -> Result<Action, Failure> {
    match arguments.next()? {
        None => return Err(format!("there is no command\n\n{HELP}").into()),
        Some(Long("help") | Short('h')) => return Ok(Action::Show(HELP.to_owned())),
        Some(Long("version") | Short('V')) => {
            return Ok(Action::Show(format!("cuda-order-check {}\n", env!("CARGO_PKG_VERSION"))));
        }
        Some(Long("list")) => return Ok(Action::Show(list())),
        Some(Value(command)) if command == "run" => {}
        Some(Value(command)) if command == "help" => return Ok(Action::Show(HELP.to_owned())),
        Some(Value(command)) => {
            let command = command.display();
            return Err(format!("`{command}` is no command: use run, --list or --help").into());
        }
        Some(option) => return Err(option.unexpected().into()),
    }
    // Options add to the variable, if that is set.
    let mut settings = Vec::from_iter(std::env::var(VARIABLE));
    let program: Vec<_> = loop {
        let name = match arguments.next()? {
            None => {
                let text = "there is no program: cuda-order-check run -- PROGRAM";
                return Err(text.to_owned().into());
            }
            Some(Value(program)) => break [program].into_iter().chain(arguments.raw_args()?).collect(),
            Some(Long("help") | Short('h')) => return Ok(Action::Show(HELP.to_owned())),
            Some(Long("possible")) => {
                settings.push("possible=on".to_owned());
                continue;
            }
            Some(Long(name)) => name.to_owned(),
            Some(option) => return Err(option.unexpected().into()),
        };
        let names = ["class", "log", "json", "sarif", "exitcode", "stacks", "suppressions", "library"];
        let Some(setting) = names.into_iter().find(|setting| name == *setting) else {
            let all = names.map(|name| format!("--{name}")).join(", ");
            let text = format!("`--{name}` is no option: the options are --possible, {all}");
            return Err(text.into());
        };
        let value = arguments.value().ok().filter(|value| value != "--");
        let value = value.ok_or_else(|| format!("`--{name}` has no value"))?;
        let value = value.into_string().map_err(|it| format!("{} is not UTF-8", it.display()))?;
        match setting {
            "class" => settings.extend(value.split(',').map(|class| format!("class={class}"))),
            _ if value.contains(',') => {
                return Err(format!("`--{name} {value}`: a comma cannot be part of it").into());
            }
            "exitcode" | "stacks" => settings.push(format!("{setting}={value}")),
            // A child may have another current folder.
            _ => {
                let path = std::path::absolute(&value);
                let path = path.map_err(|error| format!("`--{name} {value}`: {error}"))?;
                settings.push(format!("{setting}={}", path.display()));
            }
        }
    };
    let settings = settings.join(",");
    Settings::from_text(&settings)?;
    Ok(Action::Run(settings, program))
}

impl Action {
    fn run(self) -> Result<String, Failure> {
        let (text, program) = match self {
            Self::Show(text) => return Ok(text),
            Self::Run(text, program) => (text, program),
        };
        let own = std::env::current_exe()
            .map_err(|error| format!("the path of this command cannot be found: {error}"))?;
        let settings = Settings::from_text(&text)?;
        let library = find(&settings)?;
        if !library.is_file() {
            return Err(format!("{} is no file", library.display()).into());
        }
        let folder = folder("cuda-order-check", &own)?;
        say(&format!("the driver's library is {}", library.display()));
        let (name, arguments) = program.split_first().map_or((OsStr::new(""), &[][..]), |it| {
            (it.0.as_os_str(), it.1)
        });
        if let Some((program, why)) = unchecked(name) {
            say(&format!("{} {why}", program.display()));
        }
        // A child may have another current folder and other variables. What cannot be a setting is
        // looked for again.
        let chosen = library.to_str().filter(|path| !path.contains(','));
        let chosen = chosen.map(|path| format!("library={path}"));
        let text = [text].into_iter().chain(chosen).filter(|text| !text.is_empty());
        let mut command = Command::new(name);
        command.args(arguments).env(VARIABLE, text.collect::<Vec<_>>().join(","));
        command.env("LD_LIBRARY_PATH", prepended("LD_LIBRARY_PATH", &folder));
        // It has functions in front of those of the C library.
        command.env("LD_PRELOAD", prepended("LD_PRELOAD", &folder.join("libcuda.so.1")));
        // Regions and names of NVTX, unless a profiler has them.
        if std::env::var_os("NVTX_INJECTION64_PATH").is_none() {
            command.env("NVTX_INJECTION64_PATH", folder.join("libcuda.so.1"));
        }
        // It takes the place of this process, so signals and the status are its own.
        let error = command.exec();
        let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
        Err(Failure { text: format!("{} cannot be started: {error}", name.display()), code })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::{Action, CLASSES, Failure, HELP, parse};

    use lexopt::Parser;

    fn parsed(text: &str) -> Result<Action, Failure> {
        parse(Parser::from_args(text.split_whitespace()))
    }

    #[test]
    fn options_become_settings() {
        let run = |settings: &str, program: &[&str]| {
            Ok(Action::Run(settings.to_owned(), program.iter().map(OsString::from).collect()))
        };
        assert_eq!(parsed("run -- a --log b"), run("", &["a", "--log", "b"]));
        assert_eq!(
            parsed("run --class +reads,-free --possible --log /x/%p --exitcode=3 a -- b"),
            run("class=+reads,class=-free,possible=on,log=/x/%p,exitcode=3", &["a", "--", "b"])
        );
        // A child may have another current folder; what is no file stays as it is.
        let here = std::env::current_dir().expect("it is there");
        let here = here.display();
        assert_eq!(
            parsed("run --log l-%p --json ./j --sarif s --stacks off --library d a"),
            run(
                &format!("log={here}/l-%p,json={here}/j,sarif={here}/s,stacks=off,library={here}/d"),
                &["a"]
            )
        );
        let Ok(Action::Show(list)) = parsed("--list") else { panic!("it is a text") };
        let lines: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), CLASSES.len());
        for (line, class) in lines.iter().zip(CLASSES) {
            let on = if class.name == "pools" { "off" } else { "on" };
            assert_eq!((line[0], line[1], line[2..].join(" ")), (class.name, on, class.about.into()));
        }
        for asked in ["-h", "--help", "help", "run -h", "run --help"] {
            assert_eq!(parsed(asked), Ok(Action::Show(HELP.to_owned())), "{asked}");
        }
        for (wrong, part) in [
            ("", "there is no command"),
            ("program", "`program` is no command"),
            ("run", "there is no program"),
            ("run --log", "`--log` has no value"),
            ("run --log -- a", "`--log` has no value"),
            ("run --loud a", "`--loud` is no option"),
            ("run --class reads a", "begin with + or -"),
            ("run --exitcode 300 a", "use 0 to 255"),
            ("run --json /a,b a", "a comma cannot be part of it"),
            ("run --suppressions /nowhere/x a", "cannot read /nowhere/x"),
        ] {
            let Err(Failure { text, code: 2 }) = parsed(wrong) else { panic!("{wrong}") };
            assert!(text.contains(part), "{wrong}: {text}");
        }
    }
}
