//! Short words for long things.

use std::ops::Range;

use crate::frames::Frame;
use crate::op::Call;

/// The most letters of a kernel's name, and of a function's.
const KERNEL: usize = 64;
const FUNCTION: usize = 40;

/// Leaves out the middle, so that this many letters are left.
pub(super) fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let left = most.saturating_sub(3);
    let (head, tail) = (left - left / 3, left / 3);
    let begin: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{begin}...{end}")
}

/// Leaves out the end, so that this many letters are left.
pub(super) fn cut_end(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let begin: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{begin}...")
}

/// A function without its arguments: `f<int>` of `void f<int>(float*) const`.
fn without_arguments(name: &str) -> &str {
    let name = name.strip_suffix(" const").unwrap_or(name);
    if !name.ends_with(')') {
        return name;
    }
    let mut depth = 0;
    for (at, sign) in name.char_indices().rev() {
        depth += i32::from(sign == ')') - i32::from(sign == '(');
        // A function in a namespace without a name begins so.
        if depth == 0 {
            return name.get(..at).filter(|rest| !rest.is_empty()).unwrap_or(name);
        }
    }
    name
}

/// A kernel's name without its arguments, and cut in the middle of its template.
pub(super) fn kernel(name: &str) -> String {
    let bare = without_arguments(name);
    let bare = bare.strip_prefix("void ").unwrap_or(bare);
    if bare.chars().count() <= KERNEL {
        return bare.to_owned();
    }
    let Some((begin, rest)) = bare.split_once('<') else { return cut(bare, KERNEL) };
    let begin = cut(begin, KERNEL / 2);
    let left = KERNEL.saturating_sub(begin.chars().count() + 1);
    format!("{begin}<{}", cut(rest, left))
}

/// The kernel of a launch, otherwise the driver's function.
pub(super) fn action(call: &Call) -> String {
    match call.name.split_once(" of ") {
        Some((_, name)) => format!("kernel {}", kernel(name)),
        None => call.name.clone().into_owned(),
    }
}

/// A function's name as a place has it.
pub(super) fn function(frame: &Frame<'_>) -> String {
    let name = without_arguments(frame.function);
    let mut name = name.rsplit("(anonymous namespace)::").next().unwrap_or(name);
    // The first names of a path say least.
    while name.chars().count() > FUNCTION
        && let Some((first, rest)) = name.split_once("::")
        && !first.contains(['<', '{'])
    {
        name = rest;
    }
    cut(name, FUNCTION)
}

/// `8 KiB`, `12 bytes`.
pub(super) fn size(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >> shift > 0 && bytes.trailing_zeros() >= shift {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" })
}

/// Ranges that touch each other are one.
pub(super) fn merged(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        match all.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => all.push(range.clone()),
        }
    }
    all
}

/// `0x1000 to 0x10ff`.
pub(super) fn range(range: &Range<u64>) -> String {
    match range.end - range.start {
        1 => format!("{:#x}", range.start),
        _ => format!("{:#x} to {:#x}", range.start, range.end.saturating_sub(1)),
    }
}

/// The variable that a line of source gives a new stream to.
pub(super) fn variable(line: &str) -> Option<String> {
    let is_name = |name: &str| {
        let first = name.chars().next();
        first.is_some_and(|sign| sign.is_alphabetic() || sign == '_')
            && name.chars().all(|sign| sign.is_alphanumeric() || sign == '_' || sign == '.')
    };
    if let Some((_, rest)) = line.split_once("StreamCreate") {
        let (_, rest) = rest.split_once('&')?;
        let end = rest.find([',', ')'])?;
        return rest.get(..end).map(str::trim).filter(|name| is_name(name)).map(str::to_owned);
    }
    let (name, value) = line.split_once('=')?;
    let value = value.trim_start();
    let makes_one = value.contains("tream") && !value.contains(" for ");
    if !makes_one || value.starts_with(['=', '[', '(', '{']) {
        return None;
    }
    let name = name.split_whitespace().last()?;
    let before = line.split_once(name)?.0;
    (is_name(name) && !before.contains(',')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{FUNCTION, KERNEL, cut, cut_end, function, kernel, merged, range, size, variable};
    use crate::frames::Frame;

    #[test]
    fn names_of_kernels_are_cut_in_their_templates() {
        for (name, expected) in [
            ("softmax", "softmax"),
            ("void scale<float>(float*, int)", "scale<float>"),
            ("(anonymous namespace)::fill(int*)", "(anonymous namespace)::fill"),
            ("f(void (*)(int), int) const", "f"),
        ] {
            assert_eq!(kernel(name), expected);
        }
        let long = format!(
            "void at::native::vectorized_elementwise_kernel<4, {}>(int, X)",
            "A<b>, ".repeat(170)
        );
        let short = kernel(&long);
        assert!(short.starts_with("at::native::vect") && short.ends_with('>'), "{short}");
        assert!(short.contains("<4, ") && short.contains("..."), "{short}");
        assert!((50..=KERNEL).contains(&short.chars().count()), "{short}");
        assert_eq!(kernel(&"x".repeat(2000)).chars().count(), KERNEL);
        // One that is as long as it may be is whole.
        for whole in ["x".repeat(KERNEL), format!("f<{}>", "x".repeat(KERNEL - 3))] {
            assert_eq!(kernel(&whole), whole);
            let longer = kernel(&whole.replacen('x', "xx", 1));
            assert!(longer.contains("...") && longer.chars().count() <= KERNEL, "{longer}");
        }
    }

    #[test]
    fn the_last_names_of_a_path_are_left() {
        let name = |text: &str| function(&Frame::new(text).expect("a frame"));
        let path = "a_long_name_of_a_module::and_of_another_one::upload";
        assert_eq!(name(path), "and_of_another_one::upload");
        assert_eq!(name(&format!("{path}(float*, int), at a.cpp:3")), "and_of_another_one::upload");
        assert_eq!(name("(anonymous namespace)::upload(int)"), "upload");
        // One that is as long as it may be is whole, and no template or closure is opened.
        for first in ["first", "first<", "first{"] {
            let whole = format!("{first}::{}", "x".repeat(FUNCTION - first.len() - 2));
            assert_eq!(name(&whole), whole);
            let shorter = name(&format!("{whole}x"));
            assert_eq!(shorter.starts_with(first), first != "first", "{shorter}");
            assert!(shorter.chars().count() <= FUNCTION, "{shorter}");
        }
    }

    #[test]
    fn ranges_that_touch_are_one() {
        let bytes: Vec<_> = (0x10..0x1e).map(|at| at..at + 1).collect();
        let touching = merged(&bytes);
        assert_eq!((touching.len(), touching[0].clone()), (1, 0x10..0x1e));
        assert_eq!(merged(&[0..2, 3..4, 4..6, 9..9]), [0..2, 3..6]);
        assert_eq!([range(&(0x10..0x1e)), range(&(7..8))], ["0x10 to 0x1d", "0x7"]);
    }

    #[test]
    fn sizes_are_round_or_exact() {
        let all = [1, 12, 1023, 1024, 1025, 8192, 20 << 20, 3 << 30].map(size);
        assert_eq!(
            all,
            ["1 byte", "12 bytes", "1023 bytes", "1 KiB", "1025 bytes", "8 KiB", "20 MiB", "3 GiB"]
        );
    }

    #[test]
    fn a_stream_has_the_name_of_its_variable() {
        for (line, expected) in [
            ("uploads = torch.cuda.Stream()", Some("uploads")),
            ("    self.uploads = cp.cuda.Stream(non_blocking=True)  # own", Some("self.uploads")),
            ("cudaStreamCreateWithFlags(&uploads, cudaStreamNonBlocking);", Some("uploads")),
            ("let mut uploads = Stream::new(&context)?;", Some("uploads")),
            ("streams = [torch.cuda.Stream() for _ in range(2)]", None),
            ("one, two = Stream(), Stream()", None),
            ("cudaStreamCreate(&streams[i]);", None),
            ("new(\"cuStreamCreate\", 1)", None),
            ("uploads == Stream()", None),
            ("x = 1", None),
        ] {
            assert_eq!(variable(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn what_is_long_loses_its_middle() {
        assert_eq!(cut("abcdefghijklmno", 9), "abcd...no");
        assert_eq!([cut("abc", 3), cut_end("abcdef", 5)], ["abc", "ab..."]);
    }
}
