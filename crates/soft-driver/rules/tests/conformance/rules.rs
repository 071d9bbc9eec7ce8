//! What a rule is, and how it is run.

use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Stdio;
use std::sync::{PoisonError, RwLock};

use cuda_events::sys::{CUresult, Version};
use cuda_test_harness::child::{self, end_after, own_binary, say};
use cuda_test_harness::soft_settings;
use cuda_test_harness::{TestDriver, say_not_run};

use crate::raw::{Rig, code_text};

/// How the result of a rule begins that could not run.
pub const NOT_RUN: &str = "not run: ";

/// The role of a child that does one rule.
pub const ROLE: &str = "rule";

/// Defines rules: for each its statement, its name, what it is expected to answer, and how that is
/// found out.
///
/// A rule is the test of the same name, and its id is that name with its subject:
/// `elapsed.reversed-is-negative` is the test `elapsed::reversed_is_negative`.
#[macro_export]
macro_rules! rules {
    ($(
        $(#[doc = $statement:literal])+
        $(#[cfg($when:meta)])?
        $([$($option:ident $(($($value:expr),*))?),*])?
        fn $name:ident($rig:ident, $saw:ident) = $expected:literal $body:block
    )*) => {
        $(
        $(#[cfg($when)])?
        #[test]
        fn $name() {
            fn body($rig: &$crate::raw::Rig, $saw: &$crate::rules::Saw) $body
            let how = $crate::rules::How::new()$($(.$option($($($value),*)?))*)?;
            $crate::rules::run(&$crate::rules::Rule {
                module: module_path!(),
                name: stringify!($name),
                statement: &[$($statement),+],
                expected: $expected,
                how,
                body,
            });
        }
        )*
    };
}

/// How a rule is run.
pub struct How {
    bare: bool,
    alone: bool,
    soft_only: bool,
    since: Option<Version>,
    before: Option<Version>,
    devices: i32,
    settings: &'static str,
    environment: Vec<(&'static str, &'static str)>,
    undisturbed: bool,
    before_loading: Option<fn()>,
    needs: Option<fn() -> Result<(), String>>,
}

impl How {
    pub fn new() -> Self {
        Self {
            bare: false,
            alone: false,
            soft_only: false,
            since: None,
            before: None,
            devices: 1,
            settings: "",
            environment: Vec::new(),
            undisturbed: false,
            before_loading: None,
            needs: None,
        }
    }

    /// In a process of its own: what it does stays in the process, or may end it.
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// In a process of its own, without `cuInit`.
    pub fn bare(mut self) -> Self {
        self.bare = true;
        self.alone()
    }

    /// Not on a driver that is older than this.
    pub fn since(mut self, major: u32, minor: u32) -> Self {
        self.since = Some(Version::new(major, minor));
        self
    }

    /// Not on a driver that is as new as this: it answers differently.
    pub fn before(mut self, major: u32, minor: u32) -> Self {
        self.before = Some(Version::new(major, minor));
        self
    }

    /// Needs two devices.
    pub fn two_devices(mut self) -> Self {
        self.devices = 2;
        self.settings("devices=2")
    }

    /// The software driver is set up so; a real one is as it is.
    pub fn settings(mut self, settings: &'static str) -> Self {
        self.settings = settings;
        // A shared library reads them once.
        self.alone |= TestDriver::chosen() == TestDriver::Shared;
        self
    }

    /// In a process of its own with this environment.
    pub fn environment(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self.alone()
    }

    /// With no other rule at the same time: processes whose contexts failed at once on one real
    /// device did not come to their end.
    pub fn undisturbed(mut self) -> Self {
        self.undisturbed = true;
        self
    }

    /// In a process of its own, where this is done before the driver is loaded.
    pub fn before_loading(mut self, work: fn()) -> Self {
        self.before_loading = Some(work);
        self.alone()
    }

    /// Not where this machine lacks something: the function says what.
    pub fn needs(mut self, check: fn() -> Result<(), String>) -> Self {
        self.needs = Some(check);
        self
    }

    /// What a real driver leaves undefined or does not have.
    pub fn soft_only(mut self) -> Self {
        self.soft_only = true;
        self
    }

    /// Why it cannot run here.
    pub fn unable(&self) -> Option<String> {
        if self.soft_only && TestDriver::chosen() == TestDriver::Native {
            return Some("undefined on a real driver".to_owned());
        }
        if let Some(lacking) = self.needs.and_then(|needs| needs().err()) {
            return Some(lacking);
        }
        let since = self.since?;
        let version = Rig::bare(self.settings).version();
        if version < since {
            return Some(format!("since CUDA {since}, the driver is of {version}"));
        }
        let before = self.before.filter(|before| version >= *before)?;
        Some(format!("before CUDA {before}, the driver is of {version}"))
    }
}

/// A statement about the driver, and how to find out.
pub struct Rule {
    pub module: &'static str,
    pub name: &'static str,
    pub statement: &'static [&'static str],
    pub expected: &'static str,
    pub how: How,
    pub body: fn(&Rig, &Saw),
}

impl Rule {
    fn subject(&self) -> &'static str {
        self.module.rsplit("::").next().unwrap_or(self.module)
    }

    /// The test's name, as the harness takes it.
    pub fn test(&self) -> String {
        format!("{}::{}", self.subject(), self.name)
    }

    pub fn id(&self) -> String {
        format!("{}.{}", self.subject(), self.name).replace('_', "-")
    }

    fn statement(&self) -> String {
        let statement = self.statement.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        match self.how.since {
            Some(since) => format!("{statement} Since CUDA {since}."),
            None => statement,
        }
    }
}

/// What the driver answered, so far.
#[derive(Default)]
pub struct Saw {
    items: RefCell<Vec<String>>,
    /// A child says each item at once, because it may not come to its end.
    at_once: bool,
}

impl Saw {
    pub fn text(&self, item: impl Display) {
        let item = item.to_string();
        if self.at_once {
            say(&item);
        }
        self.items.borrow_mut().push(item);
    }

    pub fn code(&self, what: &str, code: CUresult) {
        self.text(format_args!("{what} {}", code_text(code)));
    }

    /// Whether something holds that should: the words for it, or that it is not so.
    pub fn holds(&self, what: &str, holds: bool) {
        if holds { self.text(what) } else { self.text(format_args!("NOT {what}")) }
    }

    /// The codes of several calls: each code once, with the calls that answered it.
    pub fn codes(&self, calls: &[(&str, CUresult)]) {
        let mut groups: Vec<(CUresult, Vec<&str>)> = Vec::new();
        for (call, code) in calls {
            match groups.iter_mut().find(|(seen, _)| seen == code) {
                Some((_, calls)) => calls.push(call),
                None => groups.push((*code, vec![call])),
            }
        }
        for (code, calls) in groups {
            self.text(format_args!("{} from {}", code_text(code), calls.join(", ")));
        }
    }

    pub fn all(&self) -> String {
        self.items.borrow().join("; ")
    }
}

/// How a child process ended, and what it said.
pub struct Ended {
    pub answers: Vec<String>,
    /// None when it ended well.
    pub badly: Option<String>,
    pub errors: String,
}

/// Runs a test of this binary in a process of its own.
pub fn in_child(test: &str, role: &str, environment: &[(&str, &str)]) -> Ended {
    let mut command = child::command(&own_binary(), test, role);
    command.envs(environment.iter().copied());
    let output = command.stdin(Stdio::null()).output().expect("the test binary starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    let answers = text
        .lines()
        .filter_map(|line| line.split_once("@ "))
        .map(|(_, answer)| answer.to_owned())
        .collect();
    let badly = child::how_it_failed(output.status);
    Ended { answers, badly, errors: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// In a child: ends it when a call never returns, so that a wrong answer does not stop everything.
pub fn do_not_hang() {
    end_after(120);
}

fn rig(how: &How) -> Rig {
    if how.bare { Rig::bare(how.settings) } else { Rig::new(how.settings) }
}

/// Does what the rule does. What is seen stays with `saw`.
fn observe(rule: &Rule, saw: &Saw) -> Result<(), String> {
    let done = catch_unwind(AssertUnwindSafe(|| {
        if let Some(work) = rule.how.before_loading {
            work();
        }
        let rig = rig(&rule.how);
        if rule.how.devices > 1 && rig.device_count() < rule.how.devices {
            return Err("not run: one device".to_owned());
        }
        (rule.body)(&rig, saw);
        Ok(())
    }));
    match done {
        Ok(done) => done,
        Err(panic) => {
            let what = panic.downcast_ref::<String>().cloned();
            let what = what.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            if let Some(not_run) = what.as_ref().filter(|what| what.starts_with(NOT_RUN)) {
                return Err(not_run.clone());
            }
            saw.text(format_args!("panicked: {}", what.unwrap_or_default().replace('\n', " ")));
            Ok(())
        }
    }
}

pub fn run(rule: &Rule) {
    if child::role().as_deref() == Some(ROLE) {
        do_not_hang();
        let saw = Saw { at_once: true, ..Saw::default() };
        if let Err(not_run) = observe(rule, &saw) {
            saw.text(not_run);
        }
        return;
    }
    announce(rule);
    // Those that have to be alone wait for all others of this process to end, and hold back the
    // rest.
    static ALONE: RwLock<()> = RwLock::new(());
    let _alone =
        rule.how.undisturbed.then(|| ALONE.write().unwrap_or_else(PoisonError::into_inner));
    let _beside =
        (!rule.how.undisturbed).then(|| ALONE.read().unwrap_or_else(PoisonError::into_inner));
    let observed = match rule.how.unable() {
        Some(reason) => format!("not run: {reason}"),
        None if rule.how.alone => {
            let settings = soft_settings(rule.how.settings);
            let mut environment = rule.how.environment.clone();
            environment.push(("CUDA_SOFT_DRIVER", &settings));
            let ended = in_child(&rule.test(), ROLE, &environment);
            let mut items = ended.answers;
            items.extend(ended.badly.map(|badly| format!("the process {badly}")));
            let not_run = items.iter().find(|item| item.starts_with(NOT_RUN));
            not_run.cloned().unwrap_or_else(|| items.join("; "))
        }
        None => {
            let saw = Saw::default();
            observe(rule, &saw).err().unwrap_or_else(|| saw.all())
        }
    };
    report(rule, &observed);
}

/// Writes what a rule is about into the log, before it runs.
pub fn announce(rule: &Rule) {
    let (id, test, statement) = (rule.id(), rule.test(), rule.statement());
    println!("\nabout {id} | {test} | {statement}\ncards {id} | {}", rule.expected);
}

/// Writes a rule's result into the log, and compares it with what is expected.
pub fn report(rule: &Rule, observed: &str) {
    println!("\nrule {} | {observed}", rule.id());
    if observed.starts_with(NOT_RUN) {
        return say_not_run(observed);
    }
    assert_eq!(observed, rule.expected, "rule {}: {}", rule.id(), rule.statement());
}
