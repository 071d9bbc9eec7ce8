//! Ranks that are processes of their own.

use std::io::{Read, Result, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts the thread that adds for all ranks of a job, and returns its port.
pub fn listen() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        if let Err(error) = serve(&listener) {
            eprintln!("fake NCCL: {error}");
        }
    });
    Ok(port)
}

fn number(stream: &mut TcpStream) -> Result<usize> {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes) as usize)
}

/// Waits for all ranks, and then adds for them until one of them ends.
fn serve(listener: &TcpListener) -> Result<()> {
    let mut ranks = vec![];
    let mut count = 1;
    while ranks.len() < count {
        let mut stream = listener.accept()?.0;
        count = number(&mut stream)?;
        ranks.push(stream);
    }
    // Each of them waits for all.
    for rank in &mut ranks {
        rank.write_all(&[1])?;
    }
    loop {
        let mut sum: Vec<u32> = vec![];
        for rank in &mut ranks {
            let Ok(words) = number(rank) else { return Ok(()) };
            let mut bytes = vec![0; 4 * words];
            rank.read_exact(&mut bytes)?;
            sum.resize(words, 0);
            for (sum, word) in sum.iter_mut().zip(bytes.as_chunks().0) {
                *sum = sum.wrapping_add(u32::from_le_bytes(*word));
            }
        }
        let bytes: Vec<u8> = sum.iter().flat_map(|word| word.to_le_bytes()).collect();
        for rank in &mut ranks {
            rank.write_all(&bytes)?;
        }
    }
}

/// From a rank to that thread.
#[derive(Clone)]
pub struct Link(Arc<(TcpStream, AtomicBool)>);

impl Link {
    /// Returns when all ranks are there.
    pub fn new(port: u16, ranks: usize) -> Result<Self> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.write_all(&(ranks as u64).to_le_bytes())?;
        stream.read_exact(&mut [0])?;
        Ok(Self(Arc::new((stream, AtomicBool::new(false)))))
    }

    pub fn has_failed(&self) -> bool {
        self.0.1.load(Ordering::Relaxed)
    }

    /// Replaces the words at `to` by the sum of all ranks' words at `from`. If a rank has ended,
    /// they stay as they are.
    ///
    /// # Safety
    ///
    /// Both addresses are of so many words, which nothing else uses.
    pub unsafe fn all_reduce(&self, from: usize, to: usize, words: usize) {
        let at = std::ptr::with_exposed_provenance_mut::<u8>;
        let mut bytes = vec![0; 4 * words];
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(at(from), bytes.as_mut_ptr(), bytes.len()) };
        if let Err(error) = self.add(&mut bytes) {
            eprintln!("fake NCCL: {error}");
            self.0.1.store(true, Ordering::Relaxed);
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at(to), bytes.len()) };
    }

    /// Replaces this rank's words by the sum.
    fn add(&self, bytes: &mut [u8]) -> Result<()> {
        let mut stream = &self.0.0;
        stream.write_all(&(bytes.len() as u64 / 4).to_le_bytes())?;
        stream.write_all(bytes)?;
        stream.read_exact(bytes)
    }
}
