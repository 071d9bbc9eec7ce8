//! Writes one trampoline for each name.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let list = "../src/names.txt";
    println!("cargo::rerun-if-changed={list}");
    let names = fs::read_to_string(list).expect("the list of names is there");
    let mut code = format!("slots! {{ {} }}\n", names.lines().count());
    for (index, name) in names.lines().enumerate() {
        writeln!(code, "trampoline! {{ {name} {index} }}").expect("a string takes it");
    }
    let all = names.lines().map(|name| format!("{name} as *const c_void, "));
    writeln!(code, "exports! {{ {} }}", all.collect::<String>()).expect("a string takes it");
    let folder = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("trampolines.rs"), code).expect("the folder is there");
    // Programs ask the loader for this name.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
}
