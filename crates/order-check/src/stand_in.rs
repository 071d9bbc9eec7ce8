//! A command whose file is also the library that programs open as `libcuda.so.1`: how it starts, and
//! how it comes before the driver's library. The README of `cuda-order-check` has the reasons.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The names under which programs ask the loader for the driver library.
pub const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// What the linker puts into a program, and leaves out of a library: the name of the loader of
/// programs, and the entry `stand_in_start`. Only for the file of a command with a `main`.
#[macro_export]
#[doc(hidden)]
macro_rules! stand_in_start {
    () => {
        /// The loader of programs, which starts this file as the command. The linker drops a section
        /// that nothing refers to, and until Rust 1.89 `#[used]` alone is no reference to it: so
        /// the entry refers to it, by a relocation that changes no byte.
        #[cfg(target_arch = "x86_64")]
        #[used]
        #[unsafe(link_section = ".interp")]
        static LOADER: [u8; 28] = *b"/lib64/ld-linux-x86-64.so.2\0";

        #[cfg(target_arch = "aarch64")]
        #[used]
        #[unsafe(link_section = ".interp")]
        static LOADER: [u8; 27] = *b"/lib/ld-linux-aarch64.so.1\0";

        /// Where the command begins: what `_start` is in other programs. The loader calls the
        /// functions for the begin and the end, as those of a library.
        #[cfg(target_arch = "x86_64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn stand_in_start() {
            core::arch::naked_asm!(
                "xor ebp, ebp",
                // The function that the loader wants to be called at the exit.
                "mov r9, rdx",
                "pop rsi",
                "mov rdx, rsp",
                "and rsp, -16",
                "push rax",
                "push rsp",
                "xor r8d, r8d",
                "xor ecx, ecx",
                "mov rdi, [rip + main@GOTPCREL]",
                "call [rip + __libc_start_main@GOTPCREL]",
                "hlt",
                ".reloc ., R_X86_64_NONE, {loader}",
                loader = sym LOADER,
            )
        }

        #[cfg(target_arch = "aarch64")]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn stand_in_start() {
            core::arch::naked_asm!(
                "mov x29, #0",
                "mov x30, #0",
                // The function that the loader wants to be called at the exit.
                "mov x5, x0",
                "ldr x1, [sp]",
                "add x2, sp, #8",
                "mov x6, sp",
                "mov x3, #0",
                "mov x4, #0",
                "adrp x0, :got:main",
                "ldr x0, [x0, :got_lo12:main]",
                "bl __libc_start_main",
                "brk #0",
                ".reloc ., R_AARCH64_NONE, {loader}",
                loader = sym LOADER,
            )
        }
    };
}

/// A folder of this user in which the file `own` has the names of the driver's library. It stays:
/// there is one for each place of the command, and it has only links. `command` is the name of the
/// folder around it.
///
/// # Errors
///
/// One sentence, if there is no place for such a folder.
pub fn folder(command: &str, own: &Path) -> Result<PathBuf, String> {
    let variable = |name| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    // SAFETY: it has no preconditions.
    let user = unsafe { libc::geteuid() };
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cache = cache.map(|cache| cache.join(command));
    // A child may have another current folder.
    let temporary = std::path::absolute(env::temp_dir()).ok();
    let temporary = temporary.map(|it| it.join(format!("{command}-{user}")));
    let mut errors = String::new();
    for base in cache.into_iter().chain(temporary) {
        match link(&base, own, user) {
            Ok(folder) => return Ok(folder),
            Err(error) => errors += &format!("; {}: {error}", base.display()),
        }
    }
    Err(format!("there is no folder for the library{errors}"))
}

fn link(base: &Path, own: &Path, user: u32) -> io::Result<PathBuf> {
    let splits = |sign: &u8| matches!(sign, b':' | b';' | b'$') || sign.is_ascii_whitespace();
    if base.as_os_str().as_encoded_bytes().iter().any(splits) {
        return Err(io::Error::other("the loader would not take such a path as one"));
    }
    let mut hasher = DefaultHasher::new();
    own.hash(&mut hasher);
    let folder = base.join(format!("{:016x}", hasher.finish()));
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    for folder in [base, &folder] {
        let found = fs::symlink_metadata(folder)?;
        if !found.is_dir() || found.uid() != user || found.mode() & 0o022 != 0 {
            return Err(io::Error::other("others may write there"));
        }
    }
    for name in NAMES {
        let place = folder.join(name);
        let is_there = || fs::read_link(&place).is_ok_and(|target| target == own);
        // Another process may be here as well. A link to something else is a damaged one.
        if !is_there() && symlink(own, &place).is_err() && !is_there() {
            fs::remove_file(&place)?;
            symlink(own, &place)?;
        }
    }
    Ok(folder)
}

/// The value of an environment variable with a path before its others, such as `LD_LIBRARY_PATH`.
#[must_use]
pub fn prepended(variable: &str, first: &Path) -> OsString {
    let mut paths = first.as_os_str().to_owned();
    if let Some(others) = env::var_os(variable).filter(|it| !it.is_empty()) {
        paths.push(OsStr::new(":"));
        paths.push(others);
    }
    paths
}
