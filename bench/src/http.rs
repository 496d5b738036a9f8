//! Just enough HTTP for the benchmarks: one connection that is kept, one request after the other.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::times::ms;

const PATIENCE: Duration = Duration::from_secs(30);

/// A server, and how it is asked.
#[derive(Debug, Clone)]
pub struct Server {
    pub at: SocketAddr,
    /// Empty where nobody asks for it.
    pub token: String,
}

/// A connection to one.
pub struct Caller {
    server: Server,
    stream: BufReader<TcpStream>,
}

impl Server {
    pub fn call(&self) -> Result<Caller> {
        let stream = TcpStream::connect(self.at).with_context(|| format!("connect to {}", self.at))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Caller { server: self.clone(), stream: BufReader::new(stream) })
    }

    /// The head of a request.
    pub fn head(&self, method: &str, path: &str, body: Option<usize>) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.at);
        if !self.token.is_empty() {
            head.push_str(&format!("Authorization: Bearer {}\r\n", self.token));
        }
        if let Some(bytes) = body {
            head.push_str(&format!("Content-Type: application/json\r\nContent-Length: {bytes}\r\n"));
        }
        head + "\r\n"
    }
}

impl Caller {
    /// Asks, and says how long the whole answer took, in milliseconds.
    pub fn get(&mut self, path: &str) -> Result<(f64, Vec<u8>)> {
        self.ask(&self.server.head("GET", path, None), &[]).with_context(|| format!("ask for {path}"))
    }

    /// Sends JSON.
    pub fn post(&mut self, path: &str, body: &str) -> Result<(f64, Vec<u8>)> {
        self.ask(&self.server.head("POST", path, Some(body.len())), body.as_bytes())
            .with_context(|| format!("send to {path}"))
    }

    fn ask(&mut self, head: &str, body: &[u8]) -> Result<(f64, Vec<u8>)> {
        let began = Instant::now();
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat())?;
        let status = self.line()?;
        let mut length = None;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse::<usize>()?);
            }
        }
        let mut answer = vec![0; length.with_context(|| format!("`{status}` without a length"))?];
        self.stream.read_exact(&mut answer)?;
        let took = ms(began.elapsed());
        ensure!(status.starts_with("HTTP/1.1 200"), "{status}: {}", String::from_utf8_lossy(&answer));
        Ok((took, answer))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the server hung up");
        }
        Ok(line.trim_end().to_owned())
    }
}
