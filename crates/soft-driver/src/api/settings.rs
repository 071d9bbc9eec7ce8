//! The settings of a driver as text.

use core::time::Duration;

use cuda_order_check_engine::files;
use cuda_order_check_engine::findings::Suppression;
use cuda_order_check_engine::{HostOrder, Warnings};

use crate::api::builder::Builder;
use crate::errors;
use crate::front::faults::Fault;
use crate::machine::config::{OnDeadlock, OnMisuse, OrderCheck, Rules, Scheduler, Time};

impl Builder {
    pub(super) fn set(self, name: &str, value: &str) -> Result<Self, String> {
        let Some((_, takes)) = SETTINGS.iter().find(|(known, _)| *known == name) else {
            let names: Vec<_> = SETTINGS.iter().map(|(name, _)| *name).collect();
            return Err(format!("there is no setting `{name}`: use {}", names.join(", ")));
        };
        let bad = || format!("`{value}` is not a value of {name}: use {takes}");
        let number = || value.parse::<u64>().map_err(|_| bad());
        let choice = |no: &str, yes: &str| match value {
            _ if value == yes => Ok(true),
            _ if value == no => Ok(false),
            _ => Err(bad()),
        };
        Ok(match name {
            "version" => {
                let (major, minor) = value.split_once('.').ok_or_else(bad)?;
                let part = |text: &str| text.parse().map_err(|_| bad());
                self.version(part(major)?, part(minor)?)
            }
            "devices" => self.devices(number()?.try_into().map_err(|_| bad())?),
            "visible" => self.visible_from_environment(choice("all", "environment")?),
            "memory" => {
                let digits = value.trim_end_matches(['K', 'M', 'G']);
                let shift = match &value[digits.len()..] {
                    "" => 0,
                    "K" => 10,
                    "M" => 20,
                    "G" => 30,
                    _ => return Err(bad()),
                };
                let count: u64 = digits.parse().map_err(|_| bad())?;
                self.memory(count.checked_mul(1 << shift).ok_or_else(bad)?)
            }
            "misuse" => self.on_misuse(if choice("abort", "error")? {
                OnMisuse::Error
            } else {
                OnMisuse::Abort
            }),
            "rules" => self.rules(if choice("faithful", "strict")? {
                Rules::Strict
            } else {
                Rules::Faithful
            }),
            "time" => {
                self.time(if choice("real", "virtual")? { Time::Virtual } else { Time::Real })
            }
            "seed" if value == "random" => {
                // The text may be parsed without a driver being made of it.
                let mut builder = self.scheduler(Scheduler::from_time());
                builder.config.work.prints_seed = true;
                builder
            }
            "seed" => self.scheduler(Scheduler::Seeded(number()?)),
            "latency" => self.latency(Duration::from_micros(number()?)),
            "connections" => self.connections(number()?.try_into().map_err(|_| bad())?),
            "deadlock" => self.on_deadlock(if choice("misuse", "hang")? {
                OnDeadlock::Hang
            } else {
                OnDeadlock::Misuse
            }),
            "order" => self.check_order(match value {
                "off" => OrderCheck::Off,
                "report" => OrderCheck::Report,
                "abort" => OrderCheck::Abort,
                _ => return Err(bad()),
            }),
            "order_warnings" => {
                let mut warnings = Warnings::NONE;
                for name in value.split('+') {
                    match WARNINGS.iter().find(|(known, _)| *known == name) {
                        Some((_, switch)) => *switch(&mut warnings) = true,
                        None if name == "all" => warnings = Warnings::all(),
                        None => {
                            let names: Vec<_> = WARNINGS.iter().map(|(name, _)| *name).collect();
                            return Err(format!("{}: {}", bad(), names.join(", ")));
                        }
                    }
                }
                self.order_warnings(warnings)
            }
            "order_backtraces" => self.order_backtraces(choice("off", "on")?),
            "order_host" => self.order_host(if choice("submission", "reported")? {
                HostOrder::Reported
            } else {
                HostOrder::Submission
            }),
            "order_log" if value.is_empty() => return Err(bad()),
            "order_log" => self.order_log(value),
            "order_format" => self.order_json(choice("text", "json")?),
            "order_suppress" => match value.strip_prefix("file:") {
                Some(path) => {
                    let text = files::text(path)
                        .map_err(|error| format!("order_suppress: cannot read {path}: {error}"))?;
                    let all = Suppression::from_lines(&text)?;
                    all.into_iter().fold(self, Self::suppress)
                }
                None => self.order_suppress(value),
            },
            "order_exitcode" => self.order_exitcode(number()?.try_into().map_err(|_| bad())?),
            "ipc" => self.ipc(choice("off", "on")?),
            "ipc_slots" => self.ipc_slots(number()?.try_into().map_err(|_| bad())?),
            "log" => self.log(number()?.try_into().map_err(|_| bad())?),
            "log_lookups" => self.log_lookups(choice("off", "on")?),
            "leaks" => self.report_leaks(choice("ignore", "report")?),
            "leaks_log" if value.is_empty() => return Err(bad()),
            "leaks_log" => self.leaks_log(value),
            "without" => self.without(value),
            "null" => self.null_lookup(value),
            "init" => self.init_result(errors::parse(value)?),
            "fault" => self.fault(Fault::from_text(value)?),
            _ => unreachable!("each name of the list is dealt with"),
        })
    }
}

const ORDER_WARNINGS: &str = "`all`, or names such as `lost_record`, separated by `+`";

/// The warnings of the order checker, by name.
type OrderWarning = (&'static str, fn(&mut Warnings) -> &mut bool);

const WARNINGS: &[OrderWarning] = &[
    ("never_recorded", |warnings| &mut warnings.never_recorded),
    ("lost_record", |warnings| &mut warnings.lost_record),
    ("ignored_query", |warnings| &mut warnings.ignored_query),
    ("useless_wait", |warnings| &mut warnings.useless_wait),
    ("capture_leak", |warnings| &mut warnings.capture_leak),
];

/// The settings of the text form: each name, and its values.
const SETTINGS: &[(&str, &str)] = &[
    ("version", "a CUDA version such as `12.4`, from `11.0` to `13.5`"),
    ("devices", "0 to 8"),
    ("visible", "`environment` or `all`"),
    ("memory", "bytes, with an optional `K`, `M` or `G` after the number"),
    ("misuse", "`abort` or `error`"),
    ("rules", "`faithful` or `strict`"),
    ("time", "`real` or `virtual`"),
    ("seed", "a number or `random`"),
    ("latency", "whole microseconds"),
    ("connections", "1 to 32"),
    ("deadlock", "`misuse` or `hang`"),
    ("order", "`report`, `abort` or `off`"),
    ("order_warnings", ORDER_WARNINGS),
    ("order_backtraces", "`on` or `off`"),
    ("order_host", "`submission` or `reported`"),
    ("order_log", "a file's path"),
    ("order_format", "`text` or `json`"),
    ("order_suppress", "`call:NAME`, `function:NAME` or `file:PATH`"),
    ("order_exitcode", "0 to 255"),
    ("ipc", "`on` or `off`"),
    ("ipc_slots", "0 to 4096"),
    ("log", "how many calls"),
    ("log_lookups", "`on` or `off`"),
    ("leaks", "`report` or `ignore`"),
    ("leaks_log", "a file's path"),
    ("without", "an exported name"),
    ("null", "a base name"),
    ("init", "a result code by number or name"),
    ("fault", "a fault, as for `Fault::from_text`"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::NEWEST;

    #[test]
    fn text() {
        let text = "version=12.4, devices=2 memory=3M \
                    misuse=error,rules=strict,time=virtual,seed=7,latency=5,ipc=off,\
                    ipc_slots=3,connections=32,deadlock=hang,log=9,leaks=report,without=cuInit,null=cuEventRecord,init=34,\
                    fault=cuEvent*:nth=2:code=9";
        let builder = Builder::from_text(text).unwrap();
        let config = builder.config;
        assert_eq!(
            (config.version, config.devices.count, config.devices.memory),
            (12040, 2, 3 << 20)
        );
        assert_eq!(
            (config.on_misuse, config.rules, config.work.time),
            (OnMisuse::Error, Rules::Strict, Time::Virtual)
        );
        assert_eq!(config.work.scheduler, Scheduler::Seeded(7));
        assert_eq!(
            (config.work.latency, config.ipc, config.ipc_slots),
            (Duration::from_micros(5), false, 3)
        );
        assert_eq!((config.connections, config.on_deadlock), (Some(32), OnDeadlock::Hang));
        assert_eq!((config.log.calls, config.log.report_leaks, config.init_result), (9, true, 34));
        assert_eq!(
            (config.lookups.missing.len(), config.lookups.null.len(), builder.faults.len()),
            (1, 1, 1)
        );
        assert_eq!(Builder::from_text("").unwrap().config.version, 13000);
        for wrong in [
            "version",
            "version=12",
            "version=12.100",
            "devices=9",
            "memory=3X",
            "ipc=yes",
            "colour=red",
            "fault=",
        ] {
            assert!(Builder::from_text(wrong).is_err(), "{wrong}");
        }
    }

    /// Users of the shared library read the README of its package, not this documentation.
    #[test]
    fn every_setting_is_listed_everywhere() {
        let (page, code) = (include_str!("../../README.md"), include_str!("builder.rs"));
        let (major, minor) = NEWEST;
        let versions = SETTINGS[0].1;
        assert!(versions.ends_with(&format!("to `{major}.{minor}`")), "the newest: {versions}");
        for (name, takes) in SETTINGS {
            let row = format!("| `{name}` | {takes} |");
            assert!(page.contains(&row), "the page lacks {row}");
            assert!(code.contains(&format!("    /// {row}")), "the documentation lacks {row}");
            let error = Builder::from_text(&format!("{name}=")).expect_err(name);
            assert!(!error.contains("there is no setting"), "{error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let (major, minor) = NEWEST;
        let newest = format!("use 11.0 to {major}.{minor}");
        let newer = format!("version={major}.{}", minor + 1);
        for version in ["version=10.0", "version=99.99", &newer, "version=4294967295.0"] {
            let error = Builder::from_text(version).expect_err(version);
            assert!(error.contains(&newest), "{version}: {error}");
        }
        for (text, message) in [
            ("version=10.0", "version 10.0 is not supported: use 11.0 to"),
            ("version=12.10", "version 12.10 is not supported: use 11.0 to"),
            ("devices=9", "use 0 to 8"),
            ("ipc_slots=4097", "use 0 to 4096"),
            ("connections=0", "0 channels are not supported: use 1 to 32"),
            ("connections=33", "use 1 to 32"),
            ("deadlock=wait", "`wait` is not a value of deadlock: use `misuse` or `hang`"),
            ("without=cuEventDestroi", "no function is exported as `cuEventDestroi`"),
            ("null=cuEventDestroy_v2", "`cuEventDestroy_v2` cannot be looked up"),
            ("ipc=true", "`true` is not a value of ipc: use `on` or `off`"),
            ("leaks=yes", "use `report` or `ignore`"),
            ("order_warnings=all", "`order_warnings` has no effect without the order checker"),
            ("order=off order_warnings=lost_record", "add `order=report`"),
            ("order_backtraces=on", "`order_backtraces` has no effect without"),
            ("order_host=reported", "`order_host` has no effect without"),
            ("order_log=a", "`order_log` has no effect without"),
            ("order_format=json", "`order_format` has no effect without"),
            ("order_suppress=call:cu*", "`order_suppress` has no effect without"),
            ("order_exitcode=1", "`order_exitcode` has no effect without"),
            ("order=report order_exitcode=256", "use 0 to 255"),
            ("order=report order_suppress=race:x", "is not a suppression: use call:NAME"),
            ("order=report order_suppress=file:/nowhere/x", "cannot read /nowhere/x"),
            #[cfg(unix)]
            ("order=report order_suppress=file:/dev/zero", "/dev/zero: it is not a plain file"),
            ("order=report order_host=all", "use `submission` or `reported`"),
            ("latency=1.5", "use whole microseconds"),
            (
                "init=xyz",
                "`xyz` is not a result code: use a number like 2 or a name like \
                 CUDA_ERROR_OUT_OF_MEMORY",
            ),
            ("colour=red", "there is no setting `colour`: use version, devices"),
            ("version=12.4 version=13.0", "`version` is set twice"),
            ("seed=random seed=3", "`seed` is set twice"),
            ("fault=cuEvntRecord", "no entry point matches `cuEvntRecord`"),
        ] {
            let error = Builder::from_text(text).expect_err(text);
            assert!(error.contains(message), "{text}: {error}");
        }
        // In Rust the first of them stops the build.
        let panics = |builder: Builder| {
            let built = std::panic::catch_unwind(|| builder.build()).expect_err("it is not built");
            built.downcast_ref::<String>().cloned().unwrap_or_default()
        };
        assert!(
            panics(Builder::default().version(10, 0).devices(9))
                .contains("cannot be set up: version 10.0 is not supported")
        );
        assert!(
            panics(Builder::default().order_warnings(Warnings::all()))
                .contains("`order_warnings` has no effect without the order checker")
        );
        assert!(
            panics(Builder::default().fault(Fault::on("cuNothing")))
                .contains("no entry point matches")
        );
        assert!(
            panics(Builder::default().lookup_as("cuInit", "cuNothing"))
                .contains("no function is exported as")
        );
    }
}
