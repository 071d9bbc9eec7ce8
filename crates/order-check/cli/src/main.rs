//! The command `cuda-order-check`. The linker makes a library of it: see README.md.

fn main() -> std::process::ExitCode {
    cuda_order_check_cli::main()
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
mod start {
    //! What the linker puts into a program, and leaves out of a library.

    /// The loader of programs, which starts this file as the command.
    #[used]
    #[unsafe(link_section = ".interp")]
    static LOADER: [u8; 28] = *b"/lib64/ld-linux-x86-64.so.2\0";

    /// Where the command begins: what `_start` is in other programs, which the linker leaves out of
    /// a library.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    unsafe extern "C" fn order_check_start() {
        core::arch::naked_asm!(
            "xor ebp, ebp",
            // The function that the loader wants to be called at the exit.
            "mov r9, rdx",
            "pop rsi",
            "mov rdx, rsp",
            "and rsp, -16",
            "push rax",
            "push rsp",
            // No functions for the begin and the end: the loader calls those of a library.
            "xor r8d, r8d",
            "xor ecx, ecx",
            "mov rdi, [rip + main@GOTPCREL]",
            "call [rip + __libc_start_main@GOTPCREL]",
            "hlt",
        )
    }
}
