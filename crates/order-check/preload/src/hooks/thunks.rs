//! Entries for functions of which only the name is known: each calls [`arrived`] and then the real
//! function, with all arguments as they were.

use crate::names::edited;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError};

use crate::lock::{Lock, Rank};

/// How many there are. The library knows of about 700 functions, and hooks 250.
const COUNT: usize = 512;
/// The bytes of each thunk, with the padding.
const SIZE: usize = 16;

// No argument is in the flags, in rax or in r11; a function with a variable number of arguments,
// which the driver does not have, would have a count in rax. The frame is described for unwinders.
core::arch::global_asm!(
    ".pushsection .text",
    ".balign 16",
    ".globl cuda_order_check_thunks",
    ".hidden cuda_order_check_thunks",
    "cuda_order_check_thunks:",
    ".set cuda_order_check_index, 0",
    ".rept {count}",
    // `push index`, and a jump to the common part.
    ".byte 0x68",
    ".long cuda_order_check_index",
    ".byte 0xe9",
    ".long 2f - . - 4",
    ".balign 16, 0xcc",
    ".set cuda_order_check_index, cuda_order_check_index + 1",
    ".endr",
    "2:",
    ".cfi_startproc",
    ".cfi_def_cfa_offset 16",
    "push rbp",
    ".cfi_def_cfa_offset 24",
    ".cfi_offset rbp, -24",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "sub rsp, 192",
    "and rsp, -16",
    "mov [rsp], rdi",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 24], rcx",
    "mov [rsp + 32], r8",
    "mov [rsp + 40], r9",
    "movups [rsp + 48], xmm0",
    "movups [rsp + 64], xmm1",
    "movups [rsp + 80], xmm2",
    "movups [rsp + 96], xmm3",
    "movups [rsp + 112], xmm4",
    "movups [rsp + 128], xmm5",
    "movups [rsp + 144], xmm6",
    "movups [rsp + 160], xmm7",
    "mov rdi, [rbp + 8]",
    "mov rsi, rsp",
    "call {arrived}",
    "mov r11, rax",
    "mov rdi, [rsp]",
    "mov rsi, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    "mov rcx, [rsp + 24]",
    "mov r8, [rsp + 32]",
    "mov r9, [rsp + 40]",
    "movups xmm0, [rsp + 48]",
    "movups xmm1, [rsp + 64]",
    "movups xmm2, [rsp + 80]",
    "movups xmm3, [rsp + 96]",
    "movups xmm4, [rsp + 112]",
    "movups xmm5, [rsp + 128]",
    "movups xmm6, [rsp + 144]",
    "movups xmm7, [rsp + 160]",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 16",
    "add rsp, 8",
    ".cfi_def_cfa_offset 8",
    "jmp r11",
    ".cfi_endproc",
    ".popsection",
    count = const COUNT,
    arrived = sym arrived,
);

unsafe extern "C" {
    static cuda_order_check_thunks: [[u8; SIZE]; COUNT];
}

struct Thunk {
    name: OnceLock<String>,
    real: AtomicPtr<c_void>,
    calls: AtomicU64,
}

static THUNKS: [Thunk; COUNT] = [const {
    Thunk {
        name: OnceLock::new(),
        real: AtomicPtr::new(core::ptr::null_mut()),
        calls: AtomicU64::new(0),
    }
}; COUNT];

/// The number of those that are in use.
static USED: Lock<usize> = Lock::new(Rank::Entries, 0);

/// A call of a function of which only the name is known. Returns the real function.
///
/// # Safety
///
/// The first six words that it was called with.
unsafe extern "C" fn arrived(index: usize, arguments: *const [usize; 6]) -> *mut c_void {
    let Some(thunk) = THUNKS.get(index) else { return core::ptr::null_mut() };
    thunk.calls.fetch_add(1, Ordering::Relaxed);
    if let Some(name) = thunk.name.get() {
        // SAFETY: as the caller says.
        crate::hooks::unmodelled::unmodelled(name, unsafe { &*arguments });
    }
    thunk.real.load(Ordering::Relaxed)
}

/// The entry in front of a real function; that function itself when there are no more.
pub(crate) fn entry(name: &str, real: *mut c_void) -> *mut c_void {
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    let is = |thunk: &Thunk| thunk.name.get().is_some_and(|own| own == name);
    let index = THUNKS.iter().take(*used).position(is).unwrap_or(*used);
    let Some(thunk) = THUNKS.get(index) else { return real };
    thunk.real.store(real, Ordering::Relaxed);
    let _ = thunk.name.set(name.to_owned());
    *used = (*used).max(index + 1);
    let first = &raw const cuda_order_check_thunks;
    first.cast::<[u8; SIZE]>().wrapping_add(index).cast_mut().cast()
}

/// The functions that were called and that may order anything, and how often.
pub(crate) fn called() -> impl Iterator<Item = (&'static str, u64)> {
    let all = THUNKS.iter().map(|thunk| (thunk.name.get(), thunk.calls.load(Ordering::Relaxed)));
    all.filter_map(|(name, calls)| Some((name?.as_str(), calls)))
        .filter(|(name, calls)| *calls > 0 && edited(name).is_none())
}
