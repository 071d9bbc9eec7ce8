//! The command line.

use std::num::NonZeroU64;

use lexopt::Arg::{Long, Short};
use lexopt::Parser;

pub const USAGE: &str = "\
usage: vulkan [--rounds N] [--without cuda|vulkan]

In N rounds (default: 10000) a Vulkan queue and a CUDA stream pass a buffer back and forth with a
timeline semaphore. --without omits the wait of one side and expects wrong data.

It needs Vulkan 1.2 (libvulkan.so.1) with VK_KHR_external_semaphore_fd on CUDA's device 0.

exit code: 0 the data is as expected; 1 it is not, or a call failed; 2 a bad option
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    Nothing,
    Cuda,
    Vulkan,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub rounds: u64,
    pub without: Without,
}

impl Options {
    /// The options, or none for `--help`.
    pub fn parse(mut arguments: Parser) -> Result<Option<Self>, String> {
        let mut options = Self { rounds: 10_000, without: Without::Nothing };
        while let Some(argument) = arguments.next().map_err(|error| error.to_string())? {
            match argument {
                Long("help") | Short('h') => return Ok(None),
                Long("rounds") => options.rounds = number(&mut arguments, "--rounds")?,
                Long("without") => {
                    options.without = match arguments.value().unwrap_or_default().to_str() {
                        Some("cuda") => Without::Cuda,
                        Some("vulkan") => Without::Vulkan,
                        _ => return Err("--without needs cuda or vulkan".to_owned()),
                    };
                }
                other => return Err(other.unexpected().to_string()),
            }
        }
        Ok(Some(options))
    }
}

/// The value of an option; nothing is shown by no rounds.
fn number(arguments: &mut Parser, option: &str) -> Result<u64, String> {
    let value = arguments.value().unwrap_or_default();
    let number = value.to_str().and_then(|text| text.parse::<NonZeroU64>().ok());
    number.map(NonZeroU64::get).ok_or_else(|| format!("{option} needs a number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Options, String> {
        let options = Options::parse(Parser::from_args(arguments.split_whitespace()))?;
        options.ok_or_else(|| "help".to_owned())
    }

    #[test]
    fn options_are_read() {
        let default = Options { rounds: 10_000, without: Without::Nothing };
        assert_eq!(parse(""), Ok(default));
        let all = Options { rounds: 1, without: Without::Cuda };
        assert_eq!(parse("--rounds 1 --without cuda"), Ok(all));
        assert_eq!(parse("--without vulkan").map(|it| it.without), Ok(Without::Vulkan));
    }

    #[test]
    fn wrong_options_are_refused() {
        for (arguments, why) in [
            ("--rounds 0", "--rounds needs a number above 0"),
            ("--rounds -1", "--rounds needs a number above 0"),
            ("--rounds", "--rounds needs a number above 0"),
            ("--without", "--without needs cuda or vulkan"),
            ("--without order", "--without needs cuda or vulkan"),
            ("--nothing", "invalid option '--nothing'"),
        ] {
            assert_eq!(parse(arguments), Err(why.to_owned()), "{arguments}");
        }
    }
}
