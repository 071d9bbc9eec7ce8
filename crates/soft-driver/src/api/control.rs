//! Control of a driver by text commands: for programs in other languages, through the shared
//! library.

use core::ffi::{c_char, c_int};
use core::fmt::Display;
use core::time::Duration;

use cuda_order_check_engine::Finding;

use crate::api::driver::{self, SoftDriver};
use crate::api::shared_library::shared_library;
use crate::errors;
use crate::front::faults::{Fault, can_fail_contexts};

fn lines<T: Display>(items: &[T]) -> String {
    items.iter().map(|item| format!("{item}\n")).collect()
}

const COMMANDS: &[&str] = &[
    "fault",
    "clear",
    "injected",
    "release",
    "fail",
    "hold",
    "run",
    "advance",
    "forked",
    "shutdown",
    "calls",
    "live",
    "leaks",
    "log",
    "misuses",
    "deadlocks",
    "pending",
    "order",
];

/// # Control by text
impl SoftDriver {
    /// Executes a text command, and returns its answer as text.
    ///
    /// The shared library exports this with the C signature
    /// `int cuda_soft_driver_control(const char *command, char *answer, size_t room)`. It returns 0
    /// for a valid command, and cuts the answer to the available room.
    ///
    /// | command | effect or answer |
    /// |---|---|
    /// | `fault=...` | [`inject`](Self::inject), with the text of [`Fault::from_text`] |
    /// | `clear` | [`clear_faults`](Self::clear_faults) |
    /// | `injected` | [`injected`](Self::injected) |
    /// | `release` | [`release`](Self::release) |
    /// | `fail=719` | [`fail_contexts`](Self::fail_contexts) with that code, by number or name |
    /// | `hold`, `run` | [`hold_host_functions`](Self::hold_host_functions) |
    /// | `advance=1000` | [`advance`](Self::advance) by this many nanoseconds |
    /// | `forked` | [`pretend_forked`](Self::pretend_forked) |
    /// | `shutdown` | [`shut_down`](Self::shut_down) |
    /// | `calls` | [`calls`](Self::calls) |
    /// | `live`, `leaks` | [`live`](Self::live) as text, the [`leak_report`](Self::leak_report) |
    /// | `log`, `misuses` | [`log`](Self::log) and [`misuses`](Self::misuses), one per line |
    /// | `deadlocks`, `pending` | [`deadlocks`](Self::deadlocks) and [`pending`](Self::pending), one per line |
    /// | `order` | [`order_findings`](Self::order_findings), and then [`order_warnings`](Self::order_warnings) |
    ///
    /// ```
    /// let soft = cuda_soft_driver::SoftDriver::new();
    /// assert_eq!(soft.control("live")?, "nothing");
    /// soft.control("fault=cuEventCreate:code=2")?;
    /// assert!(soft.control("nonsense").is_err());
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the command is invalid: a sentence that says why.
    pub fn control(&self, command: &str) -> Result<String, String> {
        let (name, value) = command.split_once('=').unwrap_or((command, ""));
        let takes_value = matches!(name, "fault" | "fail" | "advance");
        if takes_value != command.contains('=') && COMMANDS.contains(&name) {
            let how = if takes_value {
                format!("takes a value: {name}=...")
            } else {
                "takes no value".to_owned()
            };
            return Err(format!("`{command}` is not valid: {name} {how}"));
        }
        match name {
            "fault" => self.inject(Fault::from_text(value)?),
            "clear" => self.clear_faults(),
            "injected" => return Ok(self.injected().to_string()),
            "release" => return Ok(self.release().to_string()),
            "fail" => match errors::parse(value)? {
                code if can_fail_contexts(code) => self.fail_contexts(code),
                _ => {
                    return Err(format!(
                        "a context cannot fail with `{value}`: use the code of a failure"
                    ));
                }
            },
            "hold" => self.hold_host_functions(true),
            "run" => self.hold_host_functions(false),
            "advance" => {
                let nanoseconds = value
                    .parse()
                    .map_err(|_| format!("`{value}` is not a whole number of nanoseconds"))?;
                if !driver::try_advance(self, Duration::from_nanos(nanoseconds)) {
                    return Err(
                        "real time cannot be advanced: set up the driver with time=virtual"
                            .to_owned(),
                    );
                }
            }
            "forked" => self.pretend_forked(true),
            "shutdown" => self.shut_down(),
            "calls" => return Ok(self.calls().to_string()),
            "live" => return Ok(self.live().to_string()),
            "leaks" => return Ok(self.leak_report()),
            "log" => return Ok(lines(&self.log())),
            "misuses" => return Ok(lines(&self.misuses())),
            "deadlocks" => return Ok(lines(&self.deadlocks())),
            "pending" => return Ok(lines(&self.pending())),
            "order" => {
                let errors = self.order_findings().into_iter().map(Finding::Report);
                let warnings = self.order_warnings().into_iter().map(Finding::Warning);
                return Ok(lines(&errors.chain(warnings).collect::<Vec<_>>()));
            }
            _ => {
                return Err(format!("there is no command `{name}`: use {}", COMMANDS.join(", ")));
            }
        }
        Ok(String::new())
    }
}

/// The exported form.
///
/// # Safety
///
/// `command` must be a C string, and `answer` NULL or a place for `room` bytes.
#[doc(hidden)]
pub unsafe fn control_shared_library(
    command: *const c_char,
    answer: *mut c_char,
    room: usize,
) -> c_int {
    if command.is_null() {
        return 1;
    }
    // SAFETY: a C string, as the caller promises.
    let command = unsafe { core::ffi::CStr::from_ptr(command) }.to_string_lossy();
    let (code, text) = match shared_library().control(&command) {
        Ok(text) => (0, text),
        Err(text) => (1, text),
    };
    if !answer.is_null() && room > 0 {
        let kept = text.len().min(room - 1);
        // SAFETY: a place for `room` bytes, as the caller promises; `kept + 1` is no more.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), answer.cast(), kept);
            answer.add(kept).write(0);
        }
    }
    code
}
