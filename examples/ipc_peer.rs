//! One side of an interprocess event, for a program in another language on the other side.
//!
//! It reads commands from standard input, one per line, and prints one line for each. It ends with
//! code 2 after an unknown command. `tests/interop/peers.py` uses it.
//!
//! The handles are the driver's 64 bytes in hexadecimal, as PyTorch (`torch.cuda.Event.ipc_handle`,
//! `from_ipc_handle`) and cuda.core use them.
//!
//! | line | answer |
//! | --- | --- |
//! | `export` | `handle HEX`: an event recorded after work that is held |
//! | `release` | `released`: the held work ends |
//! | `import HEX` | `imported` |
//! | `query` | `true` or `false`: whether the imported event is done |
//! | `wait` | `queued`: a stream waits for the imported event, and then records its own event |
//! | `check` | `true` or `false`: whether its own event is done |
//! | `finish` | `true`, or `false` after 20 seconds: waits for its own event |
//! | `quit` | none |

use std::error::Error;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use cuda_events::{
    Context, Device, Driver, Event, EventFlags, IpcEventDescriptor, Stream, StreamOptions,
};

#[derive(Default)]
struct Peer {
    exported: Option<Event>,
    imported: Option<Event>,
    own: Option<Event>,
    latch: Option<Sender<()>>,
}

const USAGE: &str = "\
usage: ipc_peer [/absolute/path/of/a/driver]

One side of an interprocess event. It reads one command per line on standard input, and prints one
line for each:

  export      `handle HEX`: an event recorded after work that is held
  release     `released`: the held work ends
  import HEX  `imported`; HEX is the 128 hexadecimal digits of a handle
  query       `true` or `false`: whether the imported event is done
  wait        `queued`: a stream waits for the imported event, then records its own event
  check       `true` or `false`: whether its own event is done
  finish      `true`, or `false` after 20 seconds: waits for its own event
  quit        ends the program
";

/// A line that is not a command, with the reason.
#[derive(Debug)]
struct NoCommand(String);

impl std::fmt::Display for NoCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NoCommand {}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = match &arguments[..] {
        [] => None,
        [help] if help == "--help" || help == "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [path] if !path.starts_with('-') => Some(path),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ipc_peer: {error}");
            if !error.is::<NoCommand>() {
                return ExitCode::FAILURE;
            }
            eprint!("\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(path: Option<&String>) -> Result<(), Box<dyn Error>> {
    let driver = match path {
        // SAFETY: whoever starts this program names a driver.
        Some(path) => unsafe { Driver::load_from(path) }?,
        None => Driver::load()?,
    };
    let context = Context::primary(Device::new(driver, 0)?)?;
    let (held, waiting) = (
        Stream::new(&context, StreamOptions::new())?,
        Stream::new(&context, StreamOptions::new())?,
    );
    let mut peer = Peer::default();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (command, argument) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match command {
            "export" => peer.export(&context, &held)?,
            "release" => {
                peer.latch.take().ok_or("no work is held")?.send(())?;
                "released".to_owned()
            }
            "import" => {
                let descriptor = IpcEventDescriptor::from_raw(from_hex(argument)?, false);
                // SAFETY: the program on the other side keeps its event until it has sent
                // `quit` to this one.
                peer.imported = Some(unsafe { Event::from_ipc_descriptor(&context, &descriptor) }?);
                "imported".to_owned()
            }
            "query" => {
                peer.imported.as_ref().ok_or("no event is imported")?.query()?.is_done().to_string()
            }
            "wait" => {
                waiting.wait_event(peer.imported.as_ref().ok_or("no event is imported")?)?;
                peer.own = Some(waiting.record_event(EventFlags::empty())?);
                "queued".to_owned()
            }
            "check" => peer
                .own
                .as_ref()
                .ok_or("this peer has recorded no event")?
                .query()?
                .is_done()
                .to_string(),
            "finish" => {
                let own = peer.own.as_ref().ok_or("this peer has recorded no event")?;
                own.synchronize_timeout(Duration::from_secs(20))?.is_done().to_string()
            }
            "quit" => break,
            _ => return Err(NoCommand(format!("there is no command {line:?}")).into()),
        };
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

impl Peer {
    fn export(&mut self, context: &Context, held: &Stream) -> Result<String, Box<dyn Error>> {
        let (release, released) = channel();
        held.launch_host_function(move || {
            // Ends when the other side says so, or when this process does.
            let _ = released.recv();
        })?;
        self.latch = Some(release);
        let event = Event::new(context, EventFlags::INTERPROCESS)?;
        event.record(held)?;
        let handle = event.ipc_descriptor()?.to_raw();
        self.exported = Some(event);
        Ok(format!(
            "handle {}",
            handle.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        ))
    }
}

fn from_hex(text: &str) -> Result<[u8; 64], NoCommand> {
    // Not all that a number may have, such as a sign.
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits: Option<[u32; 128]> = digits.and_then(|digits| digits.try_into().ok());
    match digits {
        Some(digits) => {
            Ok(std::array::from_fn(|byte| (digits[2 * byte] * 16 + digits[2 * byte + 1]) as u8))
        }
        None => Err(NoCommand(format!(
            "import needs the 128 hexadecimal digits of a handle, not {text:?}"
        ))),
    }
}
