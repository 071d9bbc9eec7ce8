//! Prints what a file of device code contains. The text is for people, and may change.

use std::process::ExitCode;

use cuda_kernel_access::code::{Code, Launch};
use cuda_kernel_access::container::{Cubin, Error, Image, Kernel, Parameter, entries, find};
use cuda_kernel_access::decode::{INSTRUCTION, decode};
use cuda_kernel_access::parameters::bytes_read;
use cuda_kernel_access::ptx::{Entry, Module};
use cuda_kernel_access::touch::{Uses, may_touch, summary, surely_touched};

const USAGE: &str = "usage: kernel-access FILE [KERNEL] [--code] [--launch GRID BLOCK ARGUMENT...]

FILE is a fat binary, a cubin, PTX, or a program or library that contains fat binaries.
Prints each image's kernels with their parameters, which bytes of these they read, and what they do
at addresses that are made from them; or only those of KERNEL (its mangled name). --code prints the
instructions, too, each with its address: as far as this version knows them, '?' for the others.

--launch prints where each access to global memory may be in a launch, and accesses that some threads
make for certain. GRID and BLOCK are X, X,Y or X,Y,Z. Each ARGUMENT is a number (as 150, -1 or
0x7f1200000000) for one parameter, or all bytes of it as 'bytes:' and hexadecimal digits. Parameters
without one are unknown.

exit codes: 0 printed; 1 the file cannot be read, or has no image that can; 2 wrong arguments;
3 there is no such kernel, or none at all";

fn main() -> ExitCode {
    let mut file = None;
    let mut kernel = None;
    let mut code = false;
    let mut launch = None;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--help" {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        if text == "--version" {
            println!("kernel-access {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        if text == "--code" {
            code = true;
            continue;
        }
        if text == "--launch" {
            // The rest belongs to it.
            launch = Asked::parse(&mut arguments.by_ref().map(|one| one.to_string_lossy().into()));
            if launch.is_none() {
                eprintln!("kernel-access: invalid launch\n{USAGE}");
                return ExitCode::from(2);
            }
            continue;
        }
        if text.starts_with('-') || kernel.is_some() {
            eprintln!("kernel-access: invalid argument '{text}'\n{USAGE}");
            return ExitCode::from(2);
        }
        if file.is_none() {
            file = Some(argument);
        } else {
            kernel = Some(text.into_owned());
        }
    }
    let Some(file) = file else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let bytes = match contents(&file) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("kernel-access: {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    };
    // Who reads the output may stop before its end.
    print(&bytes, kernel.as_deref(), code, launch.as_ref(), &mut std::io::stdout().lock())
        .unwrap_or(ExitCode::SUCCESS)
}

/// What is not a plain file, such as a device, may have no end.
fn contents(path: impl AsRef<std::path::Path>) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    const MOST: u64 = 1 << 28;
    let file = std::fs::File::open(path)?;
    let most = if file.metadata()?.is_file() { u64::MAX } else { MOST };
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == most {
        return Err(std::io::Error::other("it is no plain file, and has no end within 256 MiB"));
    }
    Ok(bytes)
}

fn print(
    bytes: &[u8],
    wanted: Option<&str>,
    code: bool,
    launch: Option<&Asked>,
    out: &mut impl std::io::Write,
) -> std::io::Result<ExitCode> {
    let mut printed = false;
    let (mut failed, mut damaged) = (false, false);
    let mut report = |error: &Error| {
        eprintln!("kernel-access: {error}");
        failed = true;
    };
    let found = match entries(bytes) {
        Ok(found) => found,
        Err(error) => {
            // Not an image itself: it may contain some.
            let mut inside = Vec::new();
            for image in find(bytes) {
                match entries(image) {
                    Ok(entries) => inside.extend(entries),
                    Err(error) => report(&error),
                }
            }
            if inside.is_empty() {
                report(&error);
            }
            inside
        }
    };
    for entry in &found {
        match &entry.image {
            Image::Cubin(image) => match Cubin::parse(image) {
                Ok(cubin) => {
                    for kernel in cubin
                        .kernels
                        .iter()
                        .filter(|kernel| wanted.is_none_or(|name| name == kernel.name))
                    {
                        print_kernel(out, cubin.architecture, kernel)?;
                        print_uses(out, cubin.architecture, kernel, launch)?;
                        if code {
                            match decode(cubin.architecture, kernel.code) {
                                Ok(instructions) => {
                                    for (index, instruction) in instructions.iter().enumerate() {
                                        writeln!(
                                            out,
                                            "  {:04x} {instruction}",
                                            index * INSTRUCTION
                                        )?;
                                    }
                                }
                                Err(error) => writeln!(out, "  {error}")?,
                            }
                        }
                        printed = true;
                    }
                }
                Err(error) => report(&error),
            },
            Image::Ptx(text) => {
                if wanted.is_none() {
                    writeln!(out, "PTX, {} bytes", text.len())?;
                    printed = true;
                }
                match Module::parse(text) {
                    Ok(module) => {
                        let is_wanted =
                            |entry: &&Entry<'_>| wanted.is_none_or(|name| name == entry.name);
                        for entry in module.entries.iter().filter(is_wanted) {
                            print_entry(out, &module, entry, code, launch)?;
                            printed = true;
                        }
                    }
                    Err(error) => {
                        eprintln!("kernel-access: {error}");
                        damaged = true;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(if failed || damaged {
        ExitCode::FAILURE
    } else if printed {
        ExitCode::SUCCESS
    } else {
        match wanted {
            Some(name) => eprintln!(
                "kernel-access: there is no kernel {name}; without KERNEL all are printed"
            ),
            None => eprintln!("kernel-access: the image has no kernel"),
        }
        ExitCode::from(3)
    })
}

fn print_kernel(
    out: &mut impl std::io::Write,
    architecture: u32,
    kernel: &Kernel<'_>,
) -> std::io::Result<()> {
    writeln!(out, "sm_{architecture} {}: {} bytes of code", kernel.name, kernel.code.len())?;
    print_parameters(out, &kernel.parameters)?;
    match bytes_read(architecture, kernel) {
        Ok(ranges) => {
            let ranges: Vec<_> =
                ranges.iter().map(|range| format!("{}..{}", range.start, range.end)).collect();
            writeln!(
                out,
                "  reads of its parameters: {}",
                if ranges.is_empty() { "nothing".into() } else { ranges.join(", ") }
            )
        }
        Err(reason) => writeln!(out, "  which parameters it reads is not known: {reason}"),
    }
}

fn print_parameters(
    out: &mut impl std::io::Write,
    parameters: &[Parameter],
) -> std::io::Result<()> {
    for parameter in parameters {
        writeln!(
            out,
            "  parameter {}: {} bytes at {}",
            parameter.ordinal, parameter.size, parameter.offset
        )?;
    }
    Ok(())
}

fn print_entry(
    out: &mut impl std::io::Write,
    module: &Module<'_>,
    entry: &Entry<'_>,
    code: bool,
    launch: Option<&Asked>,
) -> std::io::Result<()> {
    writeln!(out, "PTX for sm_{} {}", module.architecture, entry.name)?;
    print_parameters(out, &entry.parameters)?;
    let found = match Code::from_ptx(module, entry.name) {
        Ok(found) => found,
        Err(reason) => return writeln!(out, "  what it touches is not known: {reason}"),
    };
    print_touched(out, &found, &entry.parameters, launch)?;
    if code {
        for (at, instruction) in (0..).step_by(INSTRUCTION).zip(found.instructions()) {
            writeln!(out, "  {at:04x} {}: {instruction}", found.line(at).unwrap_or(0))?;
        }
    }
    Ok(())
}

/// A launch as it was asked for.
struct Asked {
    grid: [u32; 3],
    block: [u32; 3],
    /// Little-endian; a number has 16 bytes.
    arguments: Vec<Vec<u8>>,
}

impl Asked {
    fn parse(rest: &mut impl Iterator<Item = String>) -> Option<Self> {
        let mut sizes = || {
            let text = rest.next()?;
            let mut sizes = [1; 3];
            let mut parts = text.split(',');
            for (size, part) in sizes.iter_mut().zip(&mut parts) {
                *size = part.parse().ok()?;
            }
            parts.next().is_none().then_some(sizes)
        };
        let (grid, block) = (sizes()?, sizes()?);
        let arguments = rest.map(|text| argument(&text)).collect::<Option<_>>()?;
        Some(Self { grid, block, arguments })
    }

    /// With the arguments where the kernel has its parameters. `None` if one does not fit.
    fn launch(&self, parameters: &[Parameter]) -> Option<Launch> {
        let mut bytes = Vec::new();
        if self.arguments.len() > parameters.len() {
            return None;
        }
        for (parameter, argument) in parameters.iter().zip(&self.arguments) {
            let (offset, size) = (parameter.offset as usize, parameter.size as usize);
            let mut value = argument.clone();
            let more = value.split_off(size.min(value.len()));
            // What is cut off a number may only be its sign.
            let fill = if value.last().is_some_and(|last| last >> 7 != 0) { 255 } else { 0 };
            if value.len() < size || !more.iter().all(|&byte| byte == 0 || byte == fill) {
                return None;
            }
            bytes.resize(offset + size, 0);
            bytes[offset..].copy_from_slice(&value);
        }
        Some(Launch::new(self.grid, self.block, bytes))
    }
}

fn argument(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("bytes:") {
        let digits: Option<Vec<u8>> =
            digits.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
        return Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect());
    }
    let number = match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(number.to_le_bytes().to_vec())
}

fn print_uses(
    out: &mut impl std::io::Write,
    architecture: u32,
    kernel: &Kernel<'_>,
    launch: Option<&Asked>,
) -> std::io::Result<()> {
    // The reason was printed with the parameters.
    if launch.is_none() && bytes_read(architecture, kernel).is_err() {
        return Ok(());
    }
    let code = match Code::new(architecture, kernel) {
        Ok(code) => code,
        Err(reason) => return writeln!(out, "  what it touches is not known: {reason}"),
    };
    print_touched(out, &code, &kernel.parameters, launch)
}

fn print_touched(
    out: &mut impl std::io::Write,
    code: &Code,
    parameters: &[Parameter],
    launch: Option<&Asked>,
) -> std::io::Result<()> {
    match summary(code) {
        Ok(summary) => {
            for word in summary.words.iter().filter(|word| !word.uses.none()) {
                let uses = names(word.uses, word.as_base);
                let own = code.variables().filter(|(offset, _)| *offset == word.offset);
                let variables: Vec<&str> = own.map(|(_, name)| name).collect();
                match variables.as_slice() {
                    [] => writeln!(out, "  word at {}: {uses}", word.offset)?,
                    all => writeln!(out, "  variable {}: {uses}", all.join(" or "))?,
                }
            }
            if !summary.memory.none() {
                writeln!(
                    out,
                    "  addresses from memory: {}",
                    names(summary.memory, summary.memory)
                )?;
            }
        }
        Err(reason) => writeln!(out, "  what it touches is not known: {reason}")?,
    }
    let Some(asked) = launch else { return Ok(()) };
    let Some(launch) = asked.launch(parameters) else {
        return writeln!(out, "  the arguments do not fit its parameters");
    };
    match may_touch(code, &launch) {
        Ok(spans) => {
            for span in spans {
                let kind = format!("{:?}", span.kind);
                match span.bytes {
                    Some(bytes) => {
                        write!(
                            out,
                            "  may be: {:04x} {kind} {:#x}..{:#x}, {} bytes",
                            span.at,
                            bytes.start,
                            bytes.end,
                            bytes.end - bytes.start
                        )?;
                        for rows in span.rows {
                            write!(out, ", {} of each {}", rows.width, rows.pitch)?;
                        }
                        writeln!(out)?;
                    }
                    None => writeln!(out, "  may be: {:04x} {kind} anywhere", span.at)?,
                }
            }
        }
        Err(reason) => writeln!(out, "  where its accesses may be is not known: {reason}")?,
    }
    for touch in surely_touched(code, &launch) {
        writeln!(
            out,
            "  surely: {:04x} {:?} {:#x}, {} bytes",
            touch.at, touch.kind, touch.address, touch.bytes
        )?;
    }
    Ok(())
}

/// What is done at addresses with this base, and what is done by this word or by another.
fn names(uses: Uses, as_base: Uses) -> String {
    let all = [
        (uses.read, as_base.read, "read"),
        (uses.written, as_base.written, "written"),
        (uses.atomic, as_base.atomic, "atomic"),
        // It is no access.
        (uses.other, true, "other"),
    ];
    let all = all.into_iter().filter(|one| one.0);
    let names: Vec<String> = all
        .map(|(_, known, name)| format!("{}{name}", if known { "" } else { "perhaps " }))
        .collect();
    names.join(", ")
}
