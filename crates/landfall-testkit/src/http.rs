//! As much of HTTP/1.1 as the agents use: requests with a length or in chunks, kept connections, answers whole or in
//! chunks.

use std::io::{self, BufRead, Read as _, Write};

/// No agent sends more than a few MB in one request.
const BODY_MAX: usize = 64 << 20;
/// A header line longer than this is no header.
const LINE_MAX: u64 = 64 << 10;

/// A request, read to its end.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// The value of a header; the first one wins.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The next request on a connection; none when the other side has closed it.
pub(crate) fn read(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<Option<HttpRequest>> {
    let Some(first) = line(from)? else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(wrong("a request without a path"));
    };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = Vec::new();
    loop {
        let header = line(from)?.ok_or_else(|| wrong("the headers end in the middle"))?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').ok_or_else(|| wrong("a header without a colon"))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = HttpRequest { method, path, headers, body: Vec::new() };
    if request.header("expect").is_some_and(|it| it.eq_ignore_ascii_case("100-continue")) {
        to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if request.header("transfer-encoding").is_some_and(|it| it.eq_ignore_ascii_case("chunked")) {
        request.body = chunks(from)?;
    } else if let Some(length) = request.header("content-length") {
        let length = length.parse::<usize>().ok().filter(|it| *it <= BODY_MAX);
        let mut body = vec![0; length.ok_or_else(|| wrong("a length that cannot be"))?];
        from.read_exact(&mut body)?;
        request.body = body;
    }
    Ok(Some(request))
}

fn chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let head = line(from)?.ok_or_else(|| wrong("the chunks end in the middle"))?;
        let size = head.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| wrong("a chunk without a size"))?;
        if size == 0 {
            while line(from)?.is_some_and(|trailer| !trailer.is_empty()) {}
            return Ok(body);
        }
        if body.len() + size > BODY_MAX {
            return Err(wrong("a body that has no end"));
        }
        let began = body.len();
        body.resize(began + size, 0);
        from.read_exact(&mut body[began..])?;
        line(from)?;
    }
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    from.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err(wrong("a line without an end"));
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Sends an answer of known length.
pub(crate) fn answer(
    to: &mut impl Write,
    status: u16,
    headers: &[(String, String)],
    body: &[u8],
) -> io::Result<()> {
    let mut text = head(status, headers);
    text += &format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    to.write_all(&[text.as_bytes(), body].concat())
}

/// A comment among events, which says nothing.
pub(crate) fn keep_alive(to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"8\r\n: ping\n\n\r\n")
}

/// Begins an answer of events; [`event`] goes on with it and [`end_events`] ends it.
pub(crate) fn begin_events(to: &mut impl Write, headers: &[(String, String)]) -> io::Result<()> {
    let mut text = head(200, headers);
    text +=
        "content-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
    to.write_all(text.as_bytes())
}

/// Sends one event.
pub(crate) fn event(to: &mut impl Write, name: Option<&str>, data: &str) -> io::Result<()> {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    let text = format!("{name}data: {data}\n\n");
    to.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

/// Ends an answer of events.
pub(crate) fn end_events(to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"0\r\n\r\n")
}

fn head(status: u16, headers: &[(String, String)]) -> String {
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Other",
    }
}
