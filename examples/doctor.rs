//! Why is there no GPU here, or which one? The command `cuda-events-doctor`, run from this tree:
//! `cargo run --example doctor`, with `-- --help` for its options.

fn main() -> std::process::ExitCode {
    cuda_events_doctor::main()
}
