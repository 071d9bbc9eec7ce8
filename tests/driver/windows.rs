//! Finding and naming the library on Windows.

#![cfg(windows)]

use crate::common;

use std::path::Path;

use common::child::{self, own_binary, role, say};
use common::{TestDriver, say_not_run, shared_library};
use cuda_events::loader::DRIVER_VARIABLE;
use cuda_events::{Driver, Error};

use crate::loading::*;

#[test]
fn the_file_of_a_library_is_reported() {
    let named = shared_library();
    let driver = common::load_from(&named).expect("it is a driver");
    let path = driver.library().expect("it has a file");
    assert!(path.is_absolute());
    assert_eq!(path.canonicalize().ok(), named.canonicalize().ok());
}

/// A name without a folder is looked for in the system's own alone, so that nobody who can write
/// beside the program, or into the current folder, puts a driver there.
#[test]
fn a_library_beside_the_program_is_not_taken() {
    // One that the process has loaded already is found by its name.
    common::own_process!();
    if TestDriver::chosen() == TestDriver::Shared {
        return say_not_run("this process has the library already");
    }
    let library = shared_library();
    let name = library.file_name().expect("a name");
    assert_eq!(library.parent(), own_binary().parent());
    let Err(Error::Load(error)) = common::load_from(name) else { panic!("it was found") };
    assert_eq!(error.attempts().len(), 1);
}

/// The one candidate, unless there is a driver.
#[test]
fn the_usual_place_is_the_systems_folder() {
    if role().is_some() {
        match Driver::load() {
            Ok(driver) => {
                let library = driver.library().expect("it has a file").to_string_lossy();
                assert!(library.to_lowercase().contains(r"\system32\"), "{library}");
            }
            Err(error) => {
                let error = refused(Err(error));
                let failure = only_failure(&error, Path::new(USUAL));
                assert!(open_text(&failure).contains(NO_FILE), "{error}");
            }
        }
        return say("done");
    }
    // Neither the folder of the program nor those of the search have a say.
    let folder = Folder::new("usual");
    std::fs::copy(shared_library(), folder.path(USUAL)).expect("a copy");
    in_child("the_usual_place_is_the_systems_folder", |command| {
        command.env(SEARCH_VARIABLE, &folder.0).current_dir(&folder.0);
    });
}

#[test]
fn the_programs_own_choice_outranks_the_variable() {
    let named = shared_library();
    if role().is_some() {
        let driver = common::load_from(&named).expect("the program names a driver");
        assert_eq!(driver.library(), Some(&*named));
        return say("done");
    }
    in_child("the_programs_own_choice_outranks_the_variable", |command| {
        command.env(DRIVER_VARIABLE, r"C:\nowhere\nvcuda.dll");
    });
}

/// Whether this process runs as administrator, by another way than the crate's.
fn is_elevated() -> bool {
    #[link(name = "shell32", kind = "raw-dylib")]
    unsafe extern "system" {
        fn IsUserAnAdmin() -> i32;
    }
    // SAFETY: it has no preconditions.
    unsafe { IsUserAnAdmin() != 0 }
}

/// A process with more rights than its user's other programs takes no library from the environment,
/// and the error says so. Any other process takes the one that is named.
#[test]
fn an_ignored_variable_is_reported() {
    const NAME: &str = "an_ignored_variable_is_reported";
    const WHY: &str = "CUDA_EVENTS_DRIVER is set but ignored because this process is elevated";
    let named = shared_library();
    if role().is_some() {
        return match Driver::load() {
            Ok(driver) if driver.library() == Some(&named) => say("honoured"),
            // The system's own.
            Ok(_) => say("ignored"),
            Err(error) if error.to_string().contains(WHY) => say("ignored"),
            Err(error) => say(&error.to_string()),
        };
    }
    let mut command = child::command(&own_binary(), &child::full_name(NAME), "loads");
    let output = command.env(DRIVER_VARIABLE, &named).output().expect("it starts again");
    let printed = String::from_utf8_lossy(&output.stdout);
    let expected = if is_elevated() { "@ ignored" } else { "@ honoured" };
    assert!(printed.contains(expected), "{expected}: {printed}");
}
