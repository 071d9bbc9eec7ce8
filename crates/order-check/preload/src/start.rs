//! The checker begins, with the settings of the process.

use core::ffi::{CStr, c_void};
use std::collections::HashMap;
use std::sync::PoisonError;
use std::time::Instant;

use cuda_order_check_engine::feed::Feed;
use cuda_order_check_engine::files;
use cuda_order_check_engine::{Options, Warnings};

use crate::code::kernel::demangled;
use crate::fork::watch_forks;
use crate::lock::{Lock, Rank};
use crate::report::counts::Seen;
use crate::report::output::{self, Output};
use crate::report::trace::{TRACE, Trace};
use crate::settings::{Kind, Settings};
use crate::state::allocations::Allocations;
use crate::state::contexts::Contexts;
use crate::state::destroyed::Destroyed;
use crate::state::driver::Questions;
use crate::state::executions::Keeper;
use crate::state::graphs::Graphs;
use crate::state::kernels::Kernels;
use crate::state::nodes::GraphQuestions;
use crate::state::pinned::{Alias, Pinned, State};
use crate::state::streams::Streams;
use crate::state::uploads::Uploads;
use crate::state::user_objects::UserObjects;
use crate::state::values::Values;
use crate::state::waiting::Waiting;
use crate::watch::{WATCH, Watch};
use crate::{guard, pinned};

/// Checks the host's accesses to pinned memory from now on. `off` is a reason not to.
pub fn watch_host(off: Option<&'static str>, resolve: &dyn Fn(&CStr) -> *mut c_void) {
    // It is no call: a child of a fork that comes before the first one is checked.
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(watch) = &mut *watch {
        let alias = resolve(c"cuda_soft_driver_alias");
        // SAFETY: NULL, or the software driver's function of that name.
        watch.pinned.alias = unsafe { core::mem::transmute::<*mut c_void, Option<Alias>>(alias) };
        watch.pinned.driver = resolve(c"cuInit").addr();
        watch.pinned.state = match off {
            Some(reason) => {
                pinned::stop();
                State::Off(reason)
            }
            None => {
                pinned::prepare();
                State::On
            }
        };
    }
}

pub(crate) fn start(resolve: &dyn Fn(&CStr) -> *mut c_void, settings: &Settings) {
    let open = |path: &String| {
        let path = path.replace("%p", &std::process::id().to_string());
        output::open(&path, "there is no trace", files::appended(&path))
    };
    if let Some(file) = settings.trace.as_ref().and_then(open) {
        let counts = Lock::new(Rank::Counts, HashMap::new());
        let _ = TRACE.set(Trace { file, begin: Instant::now(), counts });
    }
    let output = Output::new(settings);
    let mut warnings = Warnings::NONE;
    warnings.lost_record = settings.has(Kind::Records);
    guard::start();
    watch_forks();
    cuda_order_check_engine::trace::demangle_with(demangled);
    let mut watch = WATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let questions = Questions::new(resolve);
    *watch = Some(Watch {
        feed: Feed::new(Options::new().unseen_writers(true).warnings(warnings), output),
        questions,
        seen: Seen::default(),
        contexts: Contexts::new(questions),
        streams: Streams::default(),
        memory: Allocations::default(),
        pinned: Pinned::new(),
        values: Values::default(),
        graphs: Graphs::new(GraphQuestions::new(resolve), Keeper::new(resolve)),
        kernels: Kernels::new(),
        user_objects: UserObjects::default(),
        destroyed: Destroyed::default(),
        waiting: Waiting::default(),
        under_way: Vec::new(),
        uploads: Uploads::default(),
        last_id: 0,
    });
}
