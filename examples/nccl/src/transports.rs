//! The transports of the connections, from NCCL's log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

/// A folder for NCCL's logs, one file for each process. Dropping this removes it.
pub struct Logs(PathBuf);

impl Logs {
    /// Has NCCL write its log there, in this process and those that it starts.
    ///
    /// # Safety
    ///
    /// As for [`std::env::set_var`]: no other thread runs.
    pub unsafe fn new() -> std::io::Result<Self> {
        // An earlier process with this id may have been killed before it removed its folder.
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
        let name = format!("cuda-events-nccl-{}-{now}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder)?;
        let logs = Self(folder);
        // NCCL replaces %p by the process id.
        let file = logs.0.join("%p");
        for (name, value) in [
            ("NCCL_DEBUG", "INFO".as_ref()),
            ("NCCL_DEBUG_SUBSYS", "INIT,ENV,P2P,SHM,NET".as_ref()),
            ("NCCL_DEBUG_FILE", file.as_os_str()),
        ] {
            // SAFETY: the caller's promise.
            unsafe { std::env::set_var(name, value) };
        }
        Ok(logs)
    }

    /// Prints each connection with its transport, and all lines about NVLink multicast. Whether
    /// there was a connection.
    pub fn print(&self) -> std::io::Result<bool> {
        let mut text = String::new();
        for file in std::fs::read_dir(&self.0)? {
            text += &String::from_utf8_lossy(&std::fs::read(file?.path())?);
        }
        let mut channels: BTreeMap<&str, u32> = BTreeMap::new();
        let mut multicast: BTreeMap<&str, u32> = BTreeMap::new();
        // A line begins with the host's name and the ids of the process and the thread.
        for line in text.lines().filter_map(|line| line.split_once("NCCL INFO ")) {
            let line = line.1.trim();
            match line.split_once(" : ") {
                Some((channel, way))
                    if channel.starts_with("Channel ") && way.contains(" via ") =>
                {
                    *channels.entry(way).or_default() += 1;
                }
                _ if line.contains("NVLS") => *multicast.entry(line).or_default() += 1,
                _ => {}
            }
        }
        for (way, count) in &channels {
            println!("{way}: {count} channels");
        }
        for (line, count) in &multicast {
            println!("{line} ({count} x)");
        }
        Ok(!channels.is_empty())
    }

    /// Leaves the folder where it is, for a reader.
    pub fn keep(self) -> PathBuf {
        let mut logs = std::mem::ManuallyDrop::new(self);
        std::mem::take(&mut logs.0)
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
