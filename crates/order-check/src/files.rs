//! Files that settings name. None holds the program up, and none fills its memory.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek};
use std::path::Path;

/// The longest list, in bytes.
const MOST: u64 = 4 << 20;

/// Opens a plain file for reading. A named pipe would wait for somebody who writes, and a device may
/// have no end.
///
/// # Errors
///
/// It cannot be opened, or is no plain file.
pub fn plain(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let check = |metadata: fs::Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a plain file")),
    };
    // To open a device may do something, and something else may be there later.
    check(fs::metadata(path)?)?;
    let file = at_once(OpenOptions::new().read(true)).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// The bytes of a plain file that has at most so many.
///
/// # Errors
///
/// It cannot be read, is no plain file, or is longer.
pub fn bytes(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    plain(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it is longer than {} MiB", most >> 20);
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    Ok(bytes)
}

/// The text of a plain file of at most 4 MiB.
///
/// # Errors
///
/// It cannot be read, is no plain file, is longer, or is not UTF-8.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = bytes(path, MOST)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

/// What was written to a file that is in memory, from its begin on.
#[must_use]
pub fn written_text(mut file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Opens a file for text at its end, and creates it.
///
/// # Errors
///
/// It cannot be opened or created, or is a pipe that nobody reads.
pub fn appended(path: impl AsRef<Path>) -> io::Result<File> {
    written(OpenOptions::new().create(true).append(true), path.as_ref())
}

/// Opens a file for other contents, and creates it.
///
/// # Errors
///
/// As [`appended`].
pub fn anew(path: impl AsRef<Path>) -> io::Result<File> {
    written(OpenOptions::new().create(true).write(true).truncate(true), path.as_ref())
}

fn written(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = at_once(options).open(path).map_err(|error| if_unread(path, error))?;
    waits(&file)?;
    Ok(file)
}

/// The open does not wait for the other end of a pipe.
#[cfg(all(unix, feature = "process"))]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.custom_flags(libc::O_NONBLOCK)
}

#[cfg(not(all(unix, feature = "process")))]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Says what the system's number means for a pipe.
fn if_unread(path: &Path, error: io::Error) -> io::Error {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
            && error.kind() != ErrorKind::PermissionDenied
        {
            return io::Error::new(error.kind(), "nobody reads this pipe");
        }
    }
    let _ = path;
    error
}

/// A write waits until there is room, as without [`at_once`].
#[cfg(all(unix, feature = "process"))]
fn waits(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let file = file.as_raw_fd();
    // SAFETY: the file is open, and the calls take and give its flags only.
    let set = unsafe {
        let flags = libc::fcntl(file, libc::F_GETFL);
        flags >= 0 && libc::fcntl(file, libc::F_SETFL, flags & !libc::O_NONBLOCK) == 0
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(all(unix, feature = "process")))]
fn waits(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix, feature = "process"))]
mod tests {
    use std::ffi::CString;
    use std::fs::{self, File, OpenOptions};
    use std::io::{self, Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};
    use std::sync::mpsc;
    use std::time::Duration;

    use super::{MOST, anew, appended, at_once, text};

    type Open = fn(&Path) -> io::Result<File>;
    const AT_END: Open = |path| appended(path);
    const ANEW: Open = |path| anew(path);

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("files-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn pipe(&self) -> PathBuf {
            let path = self.0.join("pipe");
            let name = CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: a C string.
            assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The text of the error of what must not wait for ever.
    fn refused<T: Send + 'static>(open: impl FnOnce() -> io::Result<T> + Send + 'static) -> String {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(open().map(drop)));
        let result = receiver.recv_timeout(Duration::from_secs(60)).expect("it waits");
        result.expect_err("it is refused").to_string()
    }

    #[test]
    fn a_list_is_a_plain_file_of_some_length() {
        let folder = Folder::new("list");
        let pipe = folder.pipe();
        for path in [pipe, folder.0.clone(), "/dev/zero".into(), "/dev/tty".into()] {
            if path.exists() {
                let shown = path.display().to_string();
                assert_eq!(refused(move || text(path)), "it is not a plain file", "{shown}");
            }
        }
        // Of gigabytes, of which the disk has none.
        let long = folder.0.join("long");
        let file = File::create(&long).unwrap();
        file.set_len(64 << 30).unwrap();
        let path = long.clone();
        assert_eq!(refused(move || text(path)), "it is longer than 4 MiB");
        file.set_len(MOST).unwrap();
        assert_eq!(text(&long).unwrap().len() as u64, MOST, "the longest one");
        file.set_len(MOST + 1).unwrap();
        assert!(text(&long).is_err(), "one more");
        fs::write(&long, b"a\xff").unwrap();
        assert_eq!(refused(move || text(long)), "it is not UTF-8");
    }

    #[test]
    fn a_pipe_is_written_while_somebody_reads() {
        let folder = Folder::new("pipe");
        let pipe = folder.pipe();
        let path = pipe.clone();
        assert_eq!(refused(move || appended(path)), "nobody reads this pipe");
        let path = pipe.clone();
        assert_eq!(refused(move || anew(path)), "nobody reads this pipe");
        let mut reader = at_once(OpenOptions::new().read(true)).open(&pipe).unwrap();
        for open in [AT_END, ANEW] {
            let mut file = open(&pipe).unwrap();
            // SAFETY: the file is open.
            let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
            assert_eq!(flags & libc::O_NONBLOCK, 0, "a full pipe is waited for");
            file.write_all(b"a line\n").unwrap();
            let mut line = [0; 7];
            reader.read_exact(&mut line).unwrap();
            assert_eq!(&line, b"a line\n");
        }
    }

    #[test]
    fn what_is_written_anew_has_nothing_else() {
        let folder = Folder::new("anew");
        let path = folder.0.join("file");
        for (open, all) in [(AT_END, "one\n"), (AT_END, "one\none\n"), (ANEW, "one\n")] {
            open(&path).unwrap().write_all(b"one\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), all);
        }
    }
}
