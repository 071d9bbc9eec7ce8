//! The command `cuda-soft-driver`. The linker makes a library of it: see README.md.

fn main() -> std::process::ExitCode {
    cuda_soft_driver_cli::main()
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu"
))]
cuda_order_check_engine::stand_in_start!();
