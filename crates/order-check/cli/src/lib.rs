//! The command `cuda-order-check`, and the library that it puts before the driver's: see README.md.

macro_rules! on_linux {
    ($($item:item)*) => {
        $(
            #[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
            $item
        )*
    };
}

on_linux! {
    mod annotations;
    mod calls;
    mod command;
    mod library;
    mod program;
    pub use command::main;

    /// A line on standard error, which may be closed.
    pub(crate) fn say(text: &str) {
        cuda_order_check_engine::findings::Sink::stderr("cuda-order-check: ").write(text);
    }
}

/// The command.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
pub fn main() -> std::process::ExitCode {
    eprintln!("cuda-order-check: this is for Linux on x86-64 with glibc only");
    std::process::ExitCode::from(2)
}
