//! Counts what is said of all kernels in libraries: how many have an answer, how long that takes, and
//! what is said of pointers to `const`.
//!
//! ```sh
//! kernel-survey ARCHITECTURE SECONDS FILE...
//! ```
//!
//! It reads the machine code of the architecture (90 for `sm_90`) until the time is over, in as many
//! threads as there are processors. A kernel whose name says that a parameter is a pointer to `const`
//! should not be said to write by it: each that is is printed, with `perhaps` where an access is known
//! to be by this word or by another.
//!
//! Each kernel is also launched with numbers that are made up, and some threads of these launches are
//! run one by one: what they touch must be within what the launch may touch. The exit status is 1 if
//! anything is not.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cpp_demangle::{DemangleOptions, Symbol};
use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::{
    Cubin, Form, Image, Kernel, MAX_DECOMPRESSED, entries_for, find,
};
use cuda_kernel_access::execute::{Touch, execute};
use cuda_kernel_access::touch::{Span, Summary, Uses, Word, may_touch, summary, surely_touched};

#[derive(Default)]
struct Counts {
    /// The kernels that were looked at, by name and code.
    seen: HashSet<(String, Vec<u8>)>,
    known: usize,
    unknown: BTreeMap<String, usize>,
    /// Of each: what it does in any launch, and in one.
    times: Vec<[Duration; 2]>,
    slowest: Vec<(Duration, String)>,
    pointers: usize,
    written: Vec<String>,
    perhaps: Vec<String>,
    skipped: usize,
    /// Launches that were made up and have an answer, what their threads touched, and what of it is
    /// elsewhere.
    launches: usize,
    touched: usize,
    outside: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [architecture, seconds, files @ ..] = &words[..] else {
        return Err("usage: kernel-survey ARCHITECTURE SECONDS FILE...".into());
    };
    let (architecture, seconds): (u32, u64) = (architecture.parse()?, seconds.parse()?);
    let end = Instant::now() + Duration::from_secs(seconds);
    let counts = Mutex::new(Counts::default());
    let files: Vec<Vec<u8>> = files.iter().map(fs::read).collect::<Result<_, _>>()?;
    let mut images: Vec<&[u8]> = Vec::new();
    for file in &files {
        // A cubin alone is no part of a file.
        let inside = find(file);
        if inside.is_empty() { images.push(file) } else { images.extend(inside) }
    }
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(image) = images.get(next.fetch_add(1, Ordering::Relaxed)) {
                    of_image(image, architecture, end, &counts);
                }
            });
        }
    });
    let counts = counts.into_inner().map_err(|_| "a thread failed")?;
    let outside = counts.outside.len();
    print(counts, images.len());
    if outside == 0 {
        Ok(())
    } else {
        Err(format!("{outside} threads touch something else").into())
    }
}

fn of_image(image: &[u8], architecture: u32, end: Instant, counts: &Mutex<Counts>) {
    let wanted = |form: Form, version: u32| form == Form::Cubin && version == architecture;
    if Instant::now() > end {
        counts.lock().unwrap().skipped += 1;
        return;
    }
    let Ok(entries) = entries_for(image, &wanted, MAX_DECOMPRESSED) else { return };
    for entry in &entries {
        let Image::Cubin(bytes) = &entry.image else { continue };
        let Ok(cubin) = Cubin::parse(bytes) else { continue };
        for kernel in cubin.kernels.iter().filter(|kernel| kernel.is_entry) {
            let key = (kernel.name.to_owned(), kernel.code.to_vec());
            if cubin.architecture != architecture || !counts.lock().unwrap().seen.insert(key) {
                continue;
            }
            if Instant::now() > end {
                counts.lock().unwrap().skipped += 1;
                continue;
            }
            of_kernel(cubin.architecture, kernel, counts);
        }
    }
}

fn of_kernel(architecture: u32, kernel: &Kernel<'_>, counts: &Mutex<Counts>) {
    let begin = Instant::now();
    let code = Code::new(architecture, kernel).map_err(|why| why.to_string());
    let found = code
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|code| summary(code).map_err(|why| why.to_string()));
    let in_any = begin.elapsed();
    let begin = Instant::now();
    if let Ok(code) = &code {
        let launch = Launch::new([1024, 1, 1], [256, 1, 1], Vec::new());
        _ = may_touch(code, &launch);
        surely_touched(code, &launch);
    }
    let in_one = begin.elapsed();
    let (launches, touched, outside) =
        code.as_ref().map_or_else(|_| Default::default(), |code| of_threads(kernel.name, code));
    let mut counts = counts.lock().unwrap();
    counts.launches += launches;
    counts.touched += touched;
    counts.outside.extend(outside);
    counts.times.push([in_any, in_one]);
    counts.slowest.push((in_any + in_one, kernel.name.to_owned()));
    if counts.slowest.len() > 1000 {
        shorten(&mut counts.slowest);
    }
    match found {
        Ok(summary) => {
            counts.known += 1;
            of_const(kernel, &summary, &mut counts);
        }
        Err(why) => {
            // Places differ from kernel to kernel, and the instruction there is what matters.
            let place = why.split_whitespace().find_map(|word| word.strip_prefix("0x"));
            let at = place.and_then(|place| usize::from_str_radix(place, 16).ok());
            let word = at.and_then(|at| kernel.code.get(at..at + 2));
            let number = word.map_or(String::new(), |bytes| {
                format!(" ({:#05x})", u16::from_le_bytes([bytes[0], bytes[1]]) & 0xfff)
            });
            let why = why.replace(&format!("0x{}", place.unwrap_or("?")), "some place");
            *counts.unknown.entry(why + &number).or_default() += 1;
        }
    }
}

/// The same numbers for a kernel in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x14b_73a5);
        (self.0 >> 33) % end
    }

    /// Parameters of a kind: addresses, zeros, and small, larger and any numbers among addresses.
    fn parameters(&mut self, kind: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < 640 {
            let address = 0x7f00_0000_0000 + (self.below(4096) << 24);
            let is_first = bytes.len() < 64;
            let word: u64 = match kind {
                0 => address,
                1 => 0,
                _ if self.below(if is_first { 2 } else { 6 }) == 0 => address,
                2 | 3 => (1 + self.below(300)) | (self.below(40) << 32),
                4 => self.below(100_000),
                _ => (self.below(1 << 31) << 1) | (self.below(9) << 32),
            };
            bytes.extend(word.to_le_bytes());
        }
        bytes
    }
}

/// Launches that have an answer, how often their threads touched memory, and what is outside.
fn of_threads(name: &str, code: &Code) -> (usize, usize, Vec<String>) {
    let seed = name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let mut random = Random(seed);
    let (mut launches, mut touched, mut outside) = (0, 0, Vec::new());
    for kind in 0..6 {
        let parameters = random.parameters(kind);
        let grids = [[1, 1, 1], [64, 3, 1], [7, 1, 2], [132, 1, 1]];
        let blocks = [[256, 1, 1], [128, 1, 1], [32, 4, 1], [64, 2, 2]];
        let [grid, block] = [grids, blocks].map(|sizes| sizes[random.below(4) as usize]);
        // The variables of the module are somewhere, too: constant ones have one word, and its first name
        // says where all of them are.
        let place = |name: &str| {
            let mut words = code.variables().map(|(word, _)| word);
            let (word, _) = code.variables().find(|(_, other)| *other == name)?;
            let is_first = code.variables().find(|(other, _)| *other == word)?.1 == name;
            let at = words.position(|other| other == word)? as u64;
            is_first.then_some(0x7e00_0000_1000 + (at << 32))
        };
        let launch = Launch::new(grid, block, parameters).with_variables(code, &place);
        let Ok(spans) = may_touch(code, &launch) else { continue };
        launches += 1;
        for thread in 0..10 {
            let mut pick = |size: u32| match thread {
                0 => 0,
                1 => size - 1,
                _ => random.below(size.into()) as u32,
            };
            let place = [grid.map(&mut pick), block.map(&mut pick)];
            // Memory is not known, zeros, or small numbers.
            let memory = &mut |address: u64, bytes: u8| match thread % 3 {
                0 => None,
                1 => Some(0),
                _ => {
                    let small = u128::from(address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60);
                    Some(if bytes > 4 { (small << 32) | small } else { small })
                }
            };
            let run = execute(code, &launch, place[0], place[1], memory, 20_000);
            let known = run.touched.get(..run.known).unwrap_or_default();
            touched += known.len();
            let wrong = known.iter().filter(|touch| !is_within(touch, &spans)).take(1);
            outside
                .extend(wrong.map(|touch| format!("{touch:x?} of {place:?}, {launch:x?}: {name}")));
        }
    }
    (launches, touched, outside)
}

fn is_within(touch: &Touch, spans: &[Span]) -> bool {
    let mut all = spans.iter().filter(|span| (span.at, span.kind) == (touch.at, touch.kind));
    // What ends with the last address is in no range that has an end.
    let Some(end) = touch.address.checked_add(touch.bytes.into()) else {
        return all.any(|span| span.bytes.is_none());
    };
    all.any(|span| {
        let inside =
            |range: &std::ops::Range<u64>| range.start <= touch.address && end <= range.end;
        span.bytes.as_ref().is_none_or(inside)
            && (touch.address..end).all(|at| span.may_touch(&(at..at + 1)))
    })
}

fn shorten(slowest: &mut Vec<(Duration, String)>) {
    slowest.sort_by(|one, two| two.cmp(one));
    slowest.truncate(5);
}

/// Counts the parameters that are pointers to `const`, and those that are said to be written by.
fn of_const(kernel: &Kernel<'_>, summary: &Summary, counts: &mut Counts) {
    let options = DemangleOptions::new().no_return_type();
    let Some(name) =
        Symbol::new(kernel.name).ok().and_then(|name| name.demangle_with_options(&options).ok())
    else {
        return;
    };
    let parameters = parameters(&name);
    if parameters.len() != kernel.parameters.len() {
        return;
    }
    for (text, parameter) in parameters.iter().zip(&kernel.parameters) {
        let Some(to) = text.strip_suffix('*').filter(|to| to.ends_with(" const")) else { continue };
        // A table of pointers is read, and the pointers lead elsewhere.
        if to.contains('*') {
            continue;
        }
        counts.pointers += 1;
        let word = summary.words.iter().find(|word| word.offset == parameter.offset);
        let said = |uses: fn(&Word) -> Uses| {
            word.is_some_and(|word| uses(word).written || uses(word).atomic)
        };
        let line = || format!("{text} at {}: {}", parameter.offset, kernel.name);
        if said(|word| word.as_base) {
            counts.written.push(line());
        } else if said(|word| word.uses) {
            counts.perhaps.push(line());
        }
    }
}

/// The types between the last pair of parentheses.
fn parameters(name: &str) -> Vec<&str> {
    let Some(inside) = name.strip_suffix(')') else { return Vec::new() };
    let mut depth = 0_i32;
    let mut from = inside.len();
    let mut all = Vec::new();
    let mut end = inside.len();
    for (at, byte) in inside.bytes().enumerate().rev() {
        match byte {
            b')' | b'>' | b']' => depth += 1,
            b'(' if depth == 0 => {
                from = at + 1;
                break;
            }
            b'(' | b'<' | b'[' => depth -= 1,
            b',' if depth == 0 => {
                all.push(inside[at + 1..end].trim());
                end = at;
            }
            _ => {}
        }
    }
    if from < end {
        all.push(inside[from..end].trim());
    }
    all.reverse();
    all
}

fn print(mut counts: Counts, images: usize) {
    let count = counts.times.len();
    println!("{images} images, {count} kernels, {} not for want of time", counts.skipped);
    println!("{} have an answer", counts.known);
    for (why, count) in &counts.unknown {
        println!("  {count:6} {why}");
    }
    for (at, what) in ["any launch", "one launch"].into_iter().enumerate() {
        let mut times: Vec<Duration> = counts.times.iter().map(|times| times[at]).collect();
        times.sort_unstable();
        let quantile = |share: f64| times.get((count as f64 * share) as usize).or(times.last());
        let shares =
            [0.5, 0.9, 0.99, 0.999, 1.0].map(|share| quantile(share).copied().unwrap_or_default());
        let long = times.iter().filter(|time| **time > Duration::from_millis(50)).count();
        println!("{what}: 50, 90, 99, 99.9, 100 %: {shares:.1?}; {long} took more than 50 ms");
    }
    shorten(&mut counts.slowest);
    for (time, name) in &counts.slowest {
        println!("  {time:.1?} {name}");
    }
    println!(
        "{} launches of made-up numbers, {} accesses of some threads, {} outside",
        counts.launches,
        counts.touched,
        counts.outside.len()
    );
    for one in &counts.outside {
        println!("  {one}");
    }
    println!(
        "{} pointers to const, {} are said to be written by, {} perhaps",
        counts.pointers,
        counts.written.len(),
        counts.perhaps.len()
    );
    for one in &counts.written {
        println!("  {one}");
    }
    for one in &counts.perhaps {
        println!("  perhaps {one}");
    }
}
