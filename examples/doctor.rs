//! Shows which GPU a program would use here, or why it cannot use one. This is the command
//! `cuda-events-doctor`, run from this tree: `cargo run --example doctor`, with `-- --help` for its
//! options.

fn main() -> std::process::ExitCode {
    cuda_events_doctor::main()
}
