//! Many who watch a stream of events at once, in one process: each notes what it saw, and when.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::http::Server;

/// Everybody who watches.
pub struct Viewers {
    // Dropped with everything in it: nobody goes on watching.
    _runtime: Runtime,
    seen: Arc<Seen>,
    many: usize,
}

#[derive(Default)]
struct Seen {
    watching: AtomicUsize,
    /// How many were hung up on, or were told something twice or not at all.
    broken: AtomicUsize,
    told: AtomicU64,
    /// Whether lags are noted.
    noting: AtomicBool,
    lags_ms: Mutex<Vec<f64>>,
    /// The last event of each.
    last: Mutex<Vec<u64>>,
}

impl Viewers {
    pub fn watch(server: &Server, path: &str, many: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let seen = Arc::new(Seen { last: Mutex::new(vec![0; many]), ..Seen::default() });
        for number in 0..many {
            let (seen, server, path) = (Arc::clone(&seen), server.clone(), path.to_owned());
            runtime.spawn(async move {
                drop(watch(&server, &path, number, &seen).await); // whatever it was: it does not watch any more
                seen.broken.fetch_add(1, Ordering::Relaxed);
            });
        }
        let it = Self { _runtime: runtime, seen, many };
        it.until("everybody watches", || it.seen.watching.load(Ordering::Relaxed) == many)?;
        Ok(it)
    }

    /// Notes lags from now on.
    pub fn note(&self, lags: bool) {
        self.seen.noting.store(lags, Ordering::Relaxed);
    }

    /// The lags noted so far, in milliseconds.
    pub fn lags_ms(&self) -> Vec<f64> {
        std::mem::take(&mut self.seen.lags_ms.lock().expect("no viewer panics"))
    }

    /// Events told so far, to all of them together.
    pub fn told(&self) -> u64 {
        self.seen.told.load(Ordering::Relaxed)
    }

    /// How many were hung up on, or saw a gap.
    pub fn broken(&self) -> usize {
        self.seen.broken.load(Ordering::Relaxed)
    }

    /// Waits until everybody saw an event.
    pub fn wait_for(&self, id: u64) -> Result<()> {
        self.until("everybody saw the last event", || {
            self.seen.last.lock().expect("no viewer panics").iter().all(|last| *last >= id)
        })
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(60);
        while !holds() {
            ensure!(Instant::now() < until, "waited too long until {what}");
            ensure!(self.broken() < self.many, "every viewer was hung up on before {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

async fn watch(server: &Server, path: &str, number: usize, seen: &Seen) -> Result<()> {
    let mut stream = TcpStream::connect(server.at).await?;
    stream.write_all(server.head("GET", path, None).as_bytes()).await?;
    let (mut buffer, mut filled) = (vec![0; 64 * 1024], 0);
    let mut last = 0;
    let mut begun = false;
    loop {
        if filled == buffer.len() {
            buffer.resize(filled * 2, 0);
        }
        let more = stream.read(&mut buffer[filled..]).await?;
        ensure!(more > 0, "hung up on");
        filled += more;
        let now_ms = now_ms();
        let mut from = 0;
        let (mut lags, mut told) = (Vec::new(), 0);
        while let Some(length) = buffer[from..filled].iter().position(|byte| *byte == b'\n') {
            let line = buffer[from..from + length].trim_ascii();
            from += length + 1;
            if !begun && line.is_empty() {
                begun = true; // the head of the answer is over
                seen.watching.fetch_add(1, Ordering::Relaxed);
            } else if let Some(id) = line.strip_prefix(b"id:") {
                let id: u64 = str::from_utf8(id)?.trim().parse().context("an id")?;
                ensure!(last == 0 || id == last + 1, "{id} follows {last}");
                last = id;
                told += 1;
            } else if let Some(at_ms) = line.strip_prefix(b"data:").and_then(written_at) {
                lags.push(now_ms - at_ms);
            }
        }
        buffer.copy_within(from..filled, 0);
        filled -= from;
        if told > 0 {
            seen.told.fetch_add(told, Ordering::Relaxed);
            seen.last.lock().expect("no viewer panics")[number] = last;
            if seen.noting.load(Ordering::Relaxed) {
                seen.lags_ms.lock().expect("no viewer panics").extend(lags);
            }
        }
    }
}

/// When an event was written, by its own word.
fn written_at(data: &[u8]) -> Option<f64> {
    const NAME: &[u8] = b"\"at_ms\":";
    let head = &data[..data.len().min(100)]; // it is among the first fields
    let from = head.windows(NAME.len()).position(|it| it == NAME)? + NAME.len();
    let digits = data[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&data[from..from + digits]).ok()?.parse().ok()
}

/// Milliseconds since 1970, with fractions.
pub fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64() * 1000.0
}
