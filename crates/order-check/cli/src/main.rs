//! The command `cuda-order-check`. The linker makes a library of it: see README.md.

fn main() -> std::process::ExitCode {
    cuda_order_check_cli::main()
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
cuda_order_check_engine::stand_in_start!();
