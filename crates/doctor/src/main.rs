//! The command `cuda-events-doctor`.

fn main() -> std::process::ExitCode {
    cuda_events_doctor::main()
}
