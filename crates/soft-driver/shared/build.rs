//! Gives the shared library the name of the driver's.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Then a preload by path serves a later `dlopen("libcuda.so.1")`, and a C program that is linked
    // with it asks for that name.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    }
}
