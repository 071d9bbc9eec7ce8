//! Compiles the C loops.

fn main() {
    println!("cargo::rerun-if-changed=loops.c");
    println!("cargo::rerun-if-changed=build.rs");
    // As the Rust side is compiled by default, also where that is not what cargo was asked for: the two are compared.
    cc::Build::new().file("loops.c").opt_level(3).warnings(true).warnings_into_errors(true).compile("loops");
}
