//! An agent that speaks through its socket, as `landfall` does for real ones.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

fn connect() -> UnixStream {
    let path = PathBuf::from(std::env::var_os("LANDFALL_SIGNAL").expect("given"));
    // Its folder need not be open to us to be walked through.
    let folder = std::fs::File::open("/").and_then(|_| {
        rustix::fs::open(
            path.parent().expect("a folder"),
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )
        .map_err(Into::into)
    });
    let folder = folder.expect("a folder");
    let name = path.file_name().expect("a name");
    UnixStream::connect(Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
        .expect("somebody listens")
}

/// Says each line on a connection of its own and prints the answers.
pub fn each(lines: &[&str]) {
    for line in lines {
        let mut stream = connect();
        let _ = stream.write_all(format!("{line}\n").as_bytes()); // who is not welcome is answered before it speaks
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).expect("answered");
        print!("{answer}");
    }
}

/// Never stops saying what is not taken, and reads every answer; meanwhile it says a line that is taken.
pub fn through_noise(line: &str) {
    let stream = connect();
    let mut answers = stream.try_clone().expect("a second handle");
    let (heard, answered) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while std::io::Read::read(&mut answers, &mut [0; 65536]).is_ok_and(|read| read > 0) {
            heard.send(()).ok(); // only the first is waited for
        }
    });
    std::thread::spawn(move || {
        let mut stream = stream;
        while stream.write_all(&b"nonsense\n".repeat(400)).is_ok() {}
        println!("sent away");
    });
    answered.recv().expect("the noise is under way, or was sent away");
    each(&[line]);
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// Holds more connections than there are places, half of them silent; then says one line over and over, far past every
/// bound, and prints how often it was taken.
pub fn much(line: &str) {
    let silent: Vec<UnixStream> = (0..4).map(|_| connect()).collect();
    let long = format!("{{\"key\":\"k\",\"say\":\"ask\",\"text\":\"{}\"}}\n", "x".repeat(80 * 1024));
    let mut stream = connect();
    let _ = stream.write_all(long.as_bytes()); // it may hang up before the end
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("answered");
    print!("{answer}");
    let filler = "y".repeat(60 * 1024);
    let (mut taken, mut last) = (0, String::new());
    while taken < 200 {
        let mut stream = connect();
        let sent = line.replace("FILL", &filler);
        stream.write_all(format!("{sent}\n").as_bytes()).expect("taken");
        last.clear();
        BufReader::new(stream).read_line(&mut last).expect("answered");
        if !last.contains("true") {
            break;
        }
        taken += 1;
    }
    print!("{taken} taken, then {last}");
    drop(silent);
}
