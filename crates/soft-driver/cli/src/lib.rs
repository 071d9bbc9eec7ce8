//! The command `cuda-soft-driver`, and the library that it puts in place of the driver's: see
//! README.md.

macro_rules! on_linux {
    ($($item:item)*) => {
        $(
            #[cfg(all(
                target_os = "linux",
                any(target_arch = "x86_64", target_arch = "aarch64"),
                target_env = "gnu"
            ))]
            $item
        )*
    };
}

on_linux! {
    mod command;
    mod run;
    // Its exports are the file's.
    use cuda_soft_driver_shared as _;
    pub use command::main;
}

/// The command.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_env = "gnu"
)))]
pub fn main() -> std::process::ExitCode {
    eprintln!(
        "cuda-soft-driver: this is for Linux with glibc on x86-64 and aarch64 only; elsewhere \
         build the package cuda-soft-driver-shared"
    );
    std::process::ExitCode::from(2)
}
