//! Compiles the C loops, and notes the compilers.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=loops.c");
    println!("cargo::rerun-if-changed=build.rs");
    let mut build = cc::Build::new();
    // As for a release of a C program, whatever cargo was asked for.
    build.file("loops.c").opt_level(3).warnings(true).warnings_into_errors(true).compile("loops");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    println!("cargo::rustc-env=BENCH_RUSTC={}", version(Command::new(rustc)));
    println!("cargo::rustc-env=BENCH_CC={}", version(build.get_compiler().to_command()));
}

/// The first line of what a compiler says of itself.
fn version(mut compiler: Command) -> String {
    let output = compiler.arg("--version").output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}
