//! Compiles the C loop that the round trips are measured beside.

fn main() {
    println!("cargo:rerun-if-changed=src/loop.c");
    cc::Build::new().file("src/loop.c").opt_level(2).compile("vulkan_loop");
}
