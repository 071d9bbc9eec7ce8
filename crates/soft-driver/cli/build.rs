//! Links the command as a shared library that can be started.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let [os, processor, environment] = ["OS", "ARCH", "ENV"]
        .map(|part| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default());
    let is_64_bit = ["x86_64", "aarch64"].contains(&&*processor);
    if os != "linux" || !is_64_bit || environment != "gnu" {
        return;
    }
    let folder = std::env::var("OUT_DIR").expect("cargo sets it");
    let exports = format!("{folder}/exports");
    let list = "{ global: cu[A-Z]*; cuda_soft_driver_*; local: main; stand_in_start; *; };\n";
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
