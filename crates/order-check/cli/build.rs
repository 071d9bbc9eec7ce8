//! Links the command as a shared library that can be started.
//!
//! `cargo install` installs commands only. A library inside the command, as bytes, would need a
//! second copy of cargo's resolution, and a file that a killed process leaves behind. The loader
//! does not load position-independent executables as libraries, and code for these may address
//! thread-local variables in a way that is wrong in a library: so `main.rs` has nothing but the
//! entry. Link-time optimisation across all crates (`lto = "fat"`) makes such code, and then the
//! link fails.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target =
        ["OS", "ARCH", "ENV"].map(|part| std::env::var(format!("CARGO_CFG_TARGET_{part}")));
    if target.map(Result::unwrap_or_default) != ["linux", "x86_64", "gnu"] {
        return;
    }
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    let exports = format!("{folder}/exports");
    let list = "{
        global: [a-z]*; InitializeInjectionNvtx2; __*_chk; __sysv_signal; __assert_*; _exit; _Exit;
        local: main; stand_in_start; rust_eh_personality; *;
    };\n";
    std::fs::write(&exports, list).expect("the folder is there");
    // No position-independent executable: the loader refuses to load these into other programs.
    println!("cargo::rustc-link-arg-bins=-shared");
    println!("cargo::rustc-link-arg-bins=-Wl,--entry=stand_in_start");
    // Programs ask the loader for this name.
    println!("cargo::rustc-link-arg-bins=-Wl,--soname=libcuda.so.1");
    // It has handlers for the end of the process.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,nodelete");
    println!("cargo::rustc-link-arg-bins=-Wl,--version-script={exports}");
}
