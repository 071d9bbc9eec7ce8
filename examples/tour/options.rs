//! The command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use lexopt::Arg::{Long, Short};
use lexopt::Parser;

use super::report::Failure;

pub(crate) const HELP: &str = "\
A tour of the crate cuda-events: it times work on a stream, and orders two streams.

usage: tour [--mib N] [--driver native|soft|/absolute/path] [--device N] [--calls]
            [--trace FILE]

  --mib N         size of the memset and of the copy in MiB, 256 by default; the tour allocates
                  two buffers of that size
  --driver WHICH  native (the NVIDIA driver of this machine), soft (the software driver in this
                  program), or the absolute path of a driver library
                  default: native, or soft if there is no NVIDIA driver
  --device N      the device's number, 0 by default
  --calls         print every driver call of this process on standard error, with its arguments,
                  its result and its time
  --trace FILE    write a trace of the tour as a page for a browser: the work of each stream,
                  the driver calls of this process, and an arrow for each wait
  --help          print this text

--mib=16 is the same as --mib 16. The variable CUDA_EVENTS_DRIVER selects a driver, as for every
program that uses this crate.

exit code: 0 all parts succeeded, 1 a part failed, 2 a bad option, device or driver
";

/// Which driver to open.
#[derive(Clone)]
pub(crate) enum Choice {
    Native,
    Soft,
    Path(PathBuf),
}

pub(crate) struct Options {
    pub(crate) bytes: usize,
    pub(crate) driver: Option<Choice>,
    pub(crate) device: u32,
    pub(crate) calls: bool,
    pub(crate) trace: Option<PathBuf>,
}

impl Options {
    /// Returns the options, or `None` for `--help`.
    pub(crate) fn parse(mut arguments: Parser) -> Result<Option<Self>, Failure> {
        let mut options =
            Self { bytes: 256 << 20, driver: None, device: 0, calls: false, trace: None };
        let usage = |error: lexopt::Error| Failure::Usage(format!("{error}; see --help"));
        while let Some(argument) = arguments.next().map_err(usage)? {
            match argument {
                Long("help") | Short('h') => return Ok(None),
                Long("calls") => options.calls = true,
                Long("trace") => options.trace = Some(value(&mut arguments, "--trace")?.into()),
                Long("mib") => {
                    let value = value(&mut arguments, "--mib")?;
                    let bytes = number::<usize>(&value)
                        .filter(|mib| *mib > 0)
                        .and_then(|mib| mib.checked_mul(1 << 20));
                    options.bytes =
                        bytes.ok_or_else(|| bad("--mib", &value, "a number of MiB, 1 or more"))?;
                }
                Long("device") => {
                    let value = value(&mut arguments, "--device")?;
                    options.device = number(&value)
                        .ok_or_else(|| bad("--device", &value, "a device's number"))?;
                }
                Long("driver") => {
                    let value = value(&mut arguments, "--driver")?;
                    options.driver = Some(match value.to_str() {
                        Some("native") => Choice::Native,
                        Some("soft") => Choice::Soft,
                        _ if PathBuf::from(&value).is_absolute() => Choice::Path(value.into()),
                        _ => {
                            let takes = "native, soft or an absolute path";
                            return Err(bad("--driver", &value, takes));
                        }
                    });
                }
                other => return Err(usage(other.unexpected())),
            }
        }
        Ok(Some(options))
    }
}

/// The value of an option, which is not empty.
fn value(arguments: &mut Parser, option: &str) -> Result<OsString, Failure> {
    let missing = || Failure::Usage(format!("{option} needs a value; see --help"));
    arguments.value().ok().filter(|value| !value.is_empty()).ok_or_else(missing)
}

fn number<T: std::str::FromStr>(value: &OsStr) -> Option<T> {
    value.to_str()?.parse().ok()
}

fn bad(option: &str, value: &OsStr, takes: &str) -> Failure {
    Failure::Usage(format!("{option} needs {takes}, not {value:?}"))
}
