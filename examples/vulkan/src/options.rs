//! The command line.

use std::num::NonZeroU64;

use crate::cost::MOST;

pub fn usage() -> String {
    format!(
        "\
usage: vulkan [--rounds N] [--without cuda|vulkan] [--cost N]

In N rounds (default: 10000) a Vulkan queue and a CUDA stream pass a buffer back and forth with a
timeline semaphore. --without omits the wait of one side and expects wrong data.

--cost N measures N round trips of the semaphore alone, and compares them with the same loop in C.
The median may be at most {MOST} times that of the loop.

It needs Vulkan 1.2 (libvulkan.so.1) with VK_KHR_external_semaphore_fd on CUDA's device 0.

exit code: 0 the data is as expected, or the cost; 1 it is not, or a call failed; 2 a bad option
"
    )
}

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
    pub cost: Option<u64>,
}

impl Options {
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, &'static str> {
        let mut options = Self { rounds: 10_000, without: Without::Nothing, cost: None };
        while let Some(argument) = arguments.next() {
            let value = arguments.next();
            // Nothing is shown by no rounds.
            let number = || value.as_ref()?.parse().ok().map(NonZeroU64::get);
            match (&*argument, value.as_deref()) {
                ("--rounds", _) => {
                    options.rounds = number().ok_or("--rounds needs a number above 0")?;
                }
                ("--cost", _) => {
                    options.cost = Some(number().ok_or("--cost needs a number above 0")?);
                }
                ("--without", Some("cuda")) => options.without = Without::Cuda,
                ("--without", Some("vulkan")) => options.without = Without::Vulkan,
                ("--without", _) => return Err("--without needs cuda or vulkan"),
                _ => return Err("unknown option"),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Options, &'static str> {
        Options::parse(arguments.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let default = Options { rounds: 10_000, without: Without::Nothing, cost: None };
        assert_eq!(parse(""), Ok(default));
        let all = Options { rounds: 1, without: Without::Cuda, cost: Some(2) };
        assert_eq!(parse("--rounds 1 --without cuda --cost 2"), Ok(all));
        assert_eq!(parse("--without vulkan").map(|it| it.without), Ok(Without::Vulkan));
    }

    #[test]
    fn wrong_options_are_refused() {
        for (arguments, why) in [
            ("--rounds 0", "--rounds needs a number above 0"),
            ("--rounds -1", "--rounds needs a number above 0"),
            ("--rounds", "--rounds needs a number above 0"),
            ("--cost 0", "--cost needs a number above 0"),
            ("--cost many", "--cost needs a number above 0"),
            ("--without", "--without needs cuda or vulkan"),
            ("--without order", "--without needs cuda or vulkan"),
            ("--nothing", "unknown option"),
        ] {
            assert_eq!(parse(arguments), Err(why), "{arguments}");
        }
    }

    #[test]
    fn the_limit_is_reported() {
        assert!(usage().contains("at most 1.02 times"), "{}", usage());
    }
}
