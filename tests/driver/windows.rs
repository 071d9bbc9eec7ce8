//! Finding and naming the library on Windows.

#![cfg(windows)]

use crate::common;

use common::child::{self, own_binary, role, say};
use common::{Door, say_not_run, shared_library};
use cuda_events::loader::DRIVER_VARIABLE;
use cuda_events::{Driver, Error};

#[test]
fn the_file_of_a_library_is_told() {
    let named = shared_library();
    let driver = Driver::load_from(&named).expect("it is a driver");
    let told = driver.library().expect("it has a file");
    assert!(told.is_absolute());
    assert_eq!(told.canonicalize().ok(), named.canonicalize().ok());
}

/// A name without a folder is looked for in the system's own alone, so that nobody who can write
/// beside the program, or into the current folder, puts a driver there.
#[test]
fn a_library_beside_the_program_is_not_taken() {
    // One that the process has loaded already is found by its name.
    common::own_process!();
    if Door::chosen() == Door::Shared {
        return say_not_run("this process has the library already");
    }
    let library = shared_library();
    let name = library.file_name().expect("a name");
    assert_eq!(library.parent(), own_binary().parent());
    let Err(Error::Load(error)) = Driver::load_from(name) else { panic!("it was found") };
    assert_eq!(error.attempts().len(), 1);
}

#[test]
fn an_ignored_variable_is_told() {
    const NAME: &str = "an_ignored_variable_is_told";
    let named = shared_library();
    if role().is_some() {
        return match Driver::load() {
            Ok(driver) if driver.library() == Some(&named) => say("honoured"),
            Ok(driver) => say(&format!("another: {:?}", driver.library())),
            Err(error) => say(&error.to_string()),
        };
    }
    let mut command = child::command(&own_binary(), &child::full_name(NAME), "loads");
    let output = command.env(DRIVER_VARIABLE, &named).output().expect("it starts again");
    let said = String::from_utf8_lossy(&output.stdout);
    let why = "CUDA_EVENTS_DRIVER is set but ignored because this process is elevated";
    let system_driver = said.contains("another: ");
    assert!(said.contains("@ honoured") || said.contains(why) || system_driver, "{said}");
}
