//! Libraries with something wrong in their headers, given to the loader in a child process.
//!
//! Not by libFuzzer, as each takes a process: first every field of the file's header, of each
//! program header and of each dynamic entry is set to each of some values, and then pairs of them
//! at random. The loader must return, and not panic. The system's own loader may crash on such a
//! file, which nobody can keep it from: that is counted.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cuda_events::Driver;

const CHILD: &str = "CUDA_EVENTS_FUZZ_ELF";

/// A field: where it is, and how many bytes it has.
#[derive(Clone, Copy)]
struct Field(usize, usize);

fn number(file: &[u8], Field(at, bytes): Field) -> u64 {
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&file[at..at + bytes]);
    u64::from_le_bytes(word)
}

fn set(file: &mut [u8], Field(at, bytes): Field, value: u64) {
    file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

/// All fields of the headers.
fn fields(file: &[u8]) -> Vec<Field> {
    // The identification byte by byte, and the rest of the file's header.
    let mut fields: Vec<Field> = (0..16).map(|at| Field(at, 1)).collect();
    let mut at = 16;
    for bytes in [2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2] {
        fields.push(Field(at, bytes));
        at += bytes;
    }
    let (start, count) = (number(file, Field(32, 8)) as usize, number(file, Field(56, 2)) as usize);
    for header in 0..count {
        let mut at = start + 56 * header;
        let (kind, offset) = (number(file, Field(at, 4)), number(file, Field(at + 8, 8)) as usize);
        let length = number(file, Field(at + 32, 8)) as usize;
        for bytes in [4, 4, 8, 8, 8, 8, 8, 8] {
            fields.push(Field(at, bytes));
            at += bytes;
        }
        const DYNAMIC: u64 = 2;
        if kind == DYNAMIC {
            fields.extend((offset..offset + length).step_by(8).map(|at| Field(at, 8)));
        }
    }
    fields
}

/// What a field is set to.
fn values(now: u64) -> [u64; 9] {
    [
        0,
        1,
        u64::MAX,
        now ^ 1,
        now.wrapping_add(1),
        now.wrapping_mul(2),
        now ^ 1 << 63,
        now << 8,
        0x1000,
    ]
}

#[derive(Default, Debug)]
struct Count {
    refused: u64,
    loaded: u64,
    crashed: u64,
}

struct Child {
    program: PathBuf,
    file: PathBuf,
    count: Count,
}

impl Child {
    fn given(&mut self, library: &[u8], what: &str) {
        std::fs::write(&self.file, library).expect("a file");
        let mut child = Command::new(&self.program)
            .env(CHILD, &self.file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program starts again");
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                break status;
            }
            if began.elapsed() > Duration::from_secs(60) {
                let _ = child.kill();
                let _ = child.wait();
                fail(&format!("the loader hangs with {what}"), library);
            }
            std::thread::sleep(Duration::from_micros(200));
        };
        match (status.code(), status.signal()) {
            (Some(10), _) => self.count.refused += 1,
            (Some(11), _) => self.count.loaded += 1,
            // ld.so itself ends the process so for some.
            (Some(127), _) | (_, Some(_)) => self.count.crashed += 1,
            other => fail(&format!("the loader ends with {other:?} for {what}"), library),
        }
    }
}

fn fail(what: &str, library: &[u8]) -> ! {
    let path = std::env::temp_dir().join(format!("cuda-events-fuzz-elf-{}.so", std::process::id()));
    let _ = std::fs::write(&path, library);
    eprintln!("{what}: {}", path.display());
    std::process::exit(1)
}

fn main() {
    if let Some(path) = std::env::var_os(CHILD) {
        // SAFETY: a damaged library may do anything: this process is there to show it.
        let code = match unsafe { Driver::load_from(Path::new(&path)) } {
            Ok(driver) => {
                let _ = driver.version();
                11
            }
            Err(error) => {
                let text = format!("{error} {error:?}");
                assert!(!text.is_empty());
                10
            }
        };
        std::process::exit(code);
    }
    let (mut seconds, mut runs) = (60, u64::MAX);
    for argument in std::env::args() {
        if let Some(given) = argument.strip_prefix("-max_total_time=") {
            seconds = given.parse().expect("a number of seconds");
        }
        if let Some(given) = argument.strip_prefix("-runs=") {
            runs = given.parse().unwrap_or(u64::MAX);
        }
    }
    let until = Instant::now() + Duration::from_secs(seconds);
    let places = ["/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib"];
    let names = ["libdl.so.2", "libutil.so.1", "librt.so.1", "libm.so.6"];
    let paths = names.iter().flat_map(|name| places.map(|place| Path::new(place).join(name)));
    let base = paths.filter_map(|path| std::fs::read(path).ok()).next().expect("a library");
    let fields = fields(&base);
    let file = std::env::temp_dir().join(format!("cuda-events-fuzz-elf-{}", std::process::id()));
    let program = std::env::current_exe().expect("a path");
    let mut child = Child { program, file: file.clone(), count: Count::default() };
    let mut executions = 0_u64;
    let mut go_on = || {
        executions += 1;
        executions <= runs && Instant::now() < until
    };
    let mut done = 0;
    'all: for field in &fields {
        for value in values(number(&base, *field)) {
            if !go_on() {
                break 'all;
            }
            let mut library = base.clone();
            set(&mut library, *field, value);
            child.given(&library, &format!("{:?} set to {value:#x}", (field.0, field.1)));
            done += 1;
        }
    }
    let each = fields.len() * 9;
    println!("{done} of {each} single damages of {} fields: {:?}", fields.len(), child.count);
    let mut random = std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64);
    println!("pairs with the seed {random}");
    let mut next = |end: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % end
    };
    while go_on() {
        let mut library = base.clone();
        for _ in 0..2 {
            let field = fields[next(fields.len())];
            let value = values(number(&base, field))[next(9)];
            set(&mut library, field, value);
        }
        if next(8) == 0 {
            library.truncate(next(library.len()));
        }
        child.given(&library, "two fields");
        done += 1;
    }
    let _ = std::fs::remove_file(file);
    println!("{:?}", child.count);
    println!("stat::number_of_executed_units: {done}");
}
