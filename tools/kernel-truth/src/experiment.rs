//! A launch is repeated from the same memory, with other contents where that must not matter.
//!
//! 1. As the program asks for it: the bytes that change must be in the spans of writes.
//! 2. Once more: what differs is not the same each time, and not compared. Atomic sums of floats depend
//!    on the order of blocks, which is the same most times: kernels with atomics, four times more.
//! 3. With other bytes, twice, where it surely writes and never reads: they must be gone both times.
//! 4. With other bytes wherever it never reads: everything else must be as before. A sum whose order
//!    changes rarely differs by chance: what differs must differ three times.
//!
//! Then memory gets the contents that the program's own launch left.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use cuda_kernel_access::code::Launch;
use cuda_kernel_access::decode::AccessKind;
use cuda_kernel_access::touch::Span;

use crate::driver::{Code, Handle, driver};
use crate::hooks::CAPTURES;
use crate::images::{self, Kernel};
use crate::judge::{Verdict, reads};
use crate::memory::{Allocations, Tools, Try, check};
use crate::record::{self, Line};
use crate::set::Set;

/// A launch as the driver gets it.
pub struct Launched {
    pub function: Handle,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub cluster: [u32; 3],
}

struct Session {
    folder: PathBuf,
    log: File,
    began: Instant,
    /// With the context that they belong to.
    tools: Option<(usize, Tools)>,
    /// Launches of each kernel that were tried, and what made them different.
    tried: HashMap<usize, HashSet<u64>>,
    /// Kernels whose code was written.
    written: HashSet<usize>,
    skipped: HashMap<String, u64>,
    seconds: u64,
    each: usize,
}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

/// When a launch hangs, in milliseconds since the start; 0 if none runs.
static DEADLINE: AtomicI64 = AtomicI64::new(0);
const PATIENCE: i64 = 10_000;

thread_local! {
    static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Session {
    fn new() -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("KERNEL_TRUTH")?);
        std::fs::create_dir_all(&folder).ok()?;
        let log = folder.join(format!("{}.log", std::process::id()));
        let log = File::options().create(true).append(true).open(log).ok()?;
        let number = |name: &str, usual| {
            std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
        };
        let began = Instant::now();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(std::time::Duration::from_millis(100));
                let deadline = DEADLINE.load(Ordering::Relaxed);
                if deadline != 0 && began.elapsed().as_millis() as i64 > deadline {
                    eprintln!("kernel-truth: a launch does not end");
                    // SAFETY: nothing of this process goes on.
                    unsafe { libc::_exit(97) };
                }
            }
        });
        let mut session = Self {
            folder,
            log,
            began,
            tools: None,
            tried: HashMap::new(),
            written: HashSet::new(),
            skipped: HashMap::new(),
            seconds: number("KERNEL_TRUTH_SECONDS", 60),
            each: number("KERNEL_TRUTH_EACH", 6) as usize,
        };
        let name = std::env::var("KERNEL_TRUTH_NAME").unwrap_or_default();
        session.write(Line::new("program").field("name", name));
        Some(session)
    }

    fn write(&mut self, line: Line) {
        let _ = self.log.write_all(line.end().as_bytes());
    }

    fn skip(&mut self, why: &str) {
        let count = self.skipped.entry(why.into()).or_default();
        *count += 1;
        // The program may end without a word: each power of two is written.
        if count.is_power_of_two() {
            let line = Line::new("skipped").field("why", why).field("count", *count);
            self.write(line);
        }
    }
}

/// Launches, and watches that.
pub fn launched(asked: &Launched, launch: &dyn Fn() -> Code) -> Code {
    if INSIDE.get() || std::env::var_os("KERNEL_TRUTH").is_none() {
        return launch();
    }
    INSIDE.set(true);
    let code = with_session(asked, launch);
    INSIDE.set(false);
    code
}

fn with_session(asked: &Launched, launch: &dyn Fn() -> Code) -> Code {
    let Ok(mut session) = SESSION.lock() else { return launch() };
    if session.is_none() {
        *session = Session::new();
    }
    let Some(session) = session.as_mut() else { return launch() };
    if CAPTURES.load(Ordering::Relaxed) > 0 {
        session.skip("captured");
        return launch();
    }
    if session.began.elapsed().as_secs() > session.seconds {
        session.skip("time");
        return launch();
    }
    let kernel = match images::kernel(asked.function) {
        Ok(kernel) => kernel,
        Err(why) => {
            session.skip(&why);
            return launch();
        }
    };
    let kernel = match &*kernel {
        Ok(kernel) => kernel,
        Err(why) => {
            session.skip(why);
            return launch();
        }
    };
    describe(session, kernel);
    // SAFETY: the program's arguments, which the driver would read now.
    let Some(parameters) = (unsafe { parameters(kernel, asked) }) else {
        session.skip("no parameters");
        return launch();
    };
    let tried = session.tried.entry(kernel.number).or_default();
    if tried.len() >= session.each || !tried.insert(shape(asked, &parameters)) {
        return launch();
    }
    let mut result = None;
    let outcome = experiment(session, kernel, asked, &parameters, launch, &mut result);
    DEADLINE.store(0, Ordering::Relaxed);
    match (outcome, result) {
        (Ok(()), Some(code)) => code,
        (outcome, result) => {
            let why = outcome.err().unwrap_or_default();
            let line = Line::new("failed").field("kernel", kernel.number).field("why", &why);
            session.write(line);
            match result {
                None => launch(),
                // The memory is not as the program's launch left it.
                Some(_) => {
                    eprintln!("kernel-truth: {why} ({})", kernel.name);
                    // SAFETY: nothing of this process goes on.
                    unsafe { libc::_exit(96) }
                }
            }
        }
    }
}

/// What makes a launch different from others: all but addresses.
fn shape(asked: &Launched, parameters: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (asked.grid, asked.block).hash(&mut hasher);
    for word in parameters.chunks(8) {
        let number = word.try_into().map_or(0, u64::from_le_bytes);
        if !(1 << 32..1 << 48).contains(&number) {
            word.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// # Safety
///
/// What the driver would read may be read.
unsafe fn parameters(kernel: &Kernel, asked: &Launched) -> Option<Vec<u8>> {
    let size = kernel.parameters.iter().map(|one| one.0 + one.1).max().unwrap_or(0) as usize;
    let mut bytes = vec![0; size];
    if !asked.parameters.is_null() {
        for (index, &(offset, size)) in kernel.parameters.iter().enumerate() {
            // SAFETY: as many places of as many bytes as the kernel has parameters.
            let from = unsafe {
                let place = *asked.parameters.add(index);
                std::slice::from_raw_parts(place.cast::<u8>(), size as usize)
            };
            bytes.get_mut(offset as usize..(offset + size) as usize)?.copy_from_slice(from);
        }
        return Some(bytes);
    }
    if asked.extra.is_null() {
        return (size == 0).then_some(bytes);
    }
    let (mut buffer, mut count) = (std::ptr::null::<u8>(), 0_usize);
    for pair in 0..2 {
        // SAFETY: pairs of a kind and a pointer, ended by a zero.
        unsafe {
            match *asked.extra.add(pair * 2) as usize {
                1 => buffer = (*asked.extra.add(pair * 2 + 1)).cast(),
                2 => count = *(*asked.extra.add(pair * 2 + 1)).cast::<usize>(),
                _ => break,
            }
        }
    }
    if buffer.is_null() {
        return None;
    }
    // SAFETY: the buffer has so many bytes.
    Some(unsafe { std::slice::from_raw_parts(buffer, count) }.to_vec())
}

fn describe(session: &mut Session, kernel: &Kernel) {
    if !session.written.insert(kernel.number) {
        return;
    }
    let mut line = Line::new("kernel")
        .field("kernel", kernel.number)
        .field("architecture", kernel.architecture)
        .field("name", &kernel.name)
        .field("others", kernel.others)
        .field("micros", kernel.known.took.as_micros());
    if let Some(reason) = kernel.known.reason() {
        line = line.field("unknown", reason);
    }
    session.write(line);
    let name = format!("{}.{}.cubin", std::process::id(), kernel.number);
    let _ = std::fs::write(session.folder.join(name), &kernel.cubin);
}

/// Ranges of a set that lie in allocations.
fn inside(set: &Set, allocations: &Allocations) -> Set {
    set.and(&allocations.ranges().cloned().collect())
}

fn experiment(
    session: &mut Session,
    kernel: &Kernel,
    asked: &Launched,
    parameters: &[u8],
    launch: &dyn Fn() -> Code,
    result: &mut Option<Code>,
) -> Try<()> {
    let driver = driver().ok_or("no driver")?;
    let mut context = std::ptr::null_mut();
    // SAFETY: a place for a handle.
    check("context", unsafe { (driver.context)(&mut context) })?;
    if session.tools.as_ref().is_none_or(|tools| tools.0 != context as usize) {
        session.tools = Some((context as usize, Tools::new(driver)?));
    }
    let mut line = Line::new("launch")
        .field("kernel", kernel.number)
        .field("grid", record::sizes(asked.grid))
        .field("block", record::sizes(asked.block))
        .field("cluster", record::sizes(asked.cluster))
        .field("parameters", record::bytes(parameters));
    let given = Launch::new(asked.grid, asked.block, parameters);
    let verdict = match &kernel.known.code {
        Ok(code) => Verdict::new(code, &given).map_err(|reason| reason.to_string()),
        Err(reason) => Err(reason.clone()),
    };
    patience(session.began);
    let Some((_, tools)) = session.tools.as_mut() else { return Err("no tools".into()) };
    tools.synchronize()?;
    let words: Vec<u64> =
        parameters.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let memory = Allocations::now(tools, &words)?;
    line = line.field("allocations", record::ranges(memory.ranges()));
    memory.save(tools, 0)?;
    let again = || {
        let code = launch();
        check("launch again", code)
    };

    // 1.
    *result = Some(launch());
    check("launch", result.unwrap_or(0))?;
    tools.synchronize()?;
    let (wrote, inexact) = memory.differences(tools, 0, None)?;
    memory.save(tools, 1)?;
    line = line.field("count", wrote.len()).field("inexact", inexact);
    line = line.field("wrote", record::ranges(wrote.iter().take(1000)));
    let wrote: Set = wrote.into_iter().collect();
    line = line.field("bytes", wrote.bytes());
    let Ok(verdict) = verdict else {
        session.write(line);
        return Ok(());
    };
    if let Some(may_write) = &verdict.may_write {
        let outside = wrote.without(may_write);
        line = line.field("outside", record::ranges(outside.ranges().iter().take(20)));
        line = line.field("outside-bytes", outside.bytes());
    }

    // 2.
    let is_atomic = |span: &Span| {
        !matches!(span.kind, AccessKind::Read | AccessKind::Write | AccessKind::CopyToShared)
    };
    let mut varies = Vec::new();
    for _ in 0..if verdict.spans.iter().any(is_atomic) { 5 } else { 1 } {
        memory.restore(tools, 0)?;
        again()?;
        tools.synchronize()?;
        varies.extend(memory.differences(tools, 1, None)?.0);
    }
    let varies: Set = varies.into_iter().collect();
    line = line.field("varies", varies.bytes());

    // 3. What may be read is left as it is: other contents could send the kernel anywhere.
    let surely = inside(&verdict.surely(AccessKind::Write), &memory);
    let read = verdict.may_read.clone().unwrap_or_else(|| {
        let bounded = verdict.spans.iter().filter(|span| reads(span.kind));
        bounded.filter_map(|span| span.bytes.clone()).collect()
    });
    let filled = surely.without(&read);
    line = line.field("sure", surely.bytes()).field("filled", filled.bytes());
    if !filled.ranges().is_empty() {
        // No driver fills a part of two allocations at once.
        let whole = memory.ranges().map(|range| Set::from_iter([range.clone()]));
        let filled_parts: Vec<_> =
            whole.flat_map(|one| filled.and(&one).ranges().to_vec()).collect();
        let mut kept = filled_parts.clone();
        for value in [0x5b, 0xa4] {
            memory.restore(tools, 0)?;
            for range in &filled_parts {
                tools.set(range, value)?;
            }
            tools.synchronize()?;
            patience(session.began);
            again()?;
            tools.synchronize()?;
            let mut same = Vec::new();
            for range in &kept {
                for (at, byte) in tools.read(range)?.iter().enumerate() {
                    if *byte == value {
                        let address = range.start + at as u64;
                        same.push(address..address + 1);
                    }
                }
            }
            kept = same;
        }
        let kept = Set::from_iter(kept);
        line = line.field("kept", record::ranges(kept.ranges().iter().take(20)));
        line = line.field("kept-bytes", kept.bytes());
    }

    // 4.
    if let Some(may_read) = &verdict.may_read
        && varies.bytes() == 0
    {
        // Other contents may end the process: the line is of the steps before.
        let step = Line::new("step").field("kernel", kernel.number).field("what", "unread");
        let _ = session.log.write_all(step.end().as_bytes());
        let unread: Vec<_> = memory.ranges().flat_map(|range| may_read.missing(range)).collect();
        let mut lost: Option<Set> = None;
        for _ in 0..3 {
            memory.restore(tools, 0)?;
            for part in &unread {
                tools.fill(part)?;
            }
            tools.synchronize()?;
            patience(session.began);
            again()?;
            tools.synchronize()?;
            let now: Set = memory.differences(tools, 1, Some(0))?.0.into_iter().collect();
            let still = lost.map_or_else(|| now.clone(), |before| before.and(&now));
            let is_empty = still.ranges().is_empty();
            lost = Some(still);
            if is_empty {
                break;
            }
        }
        let lost = lost.unwrap_or_default();
        let unread: u64 = unread.iter().map(|part| part.end - part.start).sum();
        line = line.field("unread", unread).field("lost-bytes", lost.bytes());
        line = line.field("lost", record::ranges(lost.ranges().iter().take(20)));
    }
    memory.restore(tools, 1)?;
    session.write(line);
    Ok(())
}

fn patience(began: Instant) {
    let now = began.elapsed().as_millis() as i64;
    DEADLINE.store(now + PATIENCE, Ordering::Relaxed);
}
