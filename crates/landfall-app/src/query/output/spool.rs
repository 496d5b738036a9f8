//! Pages of a file of lines, forward and backward, with bounded work: a page is made of the lines that begin between its two
//! ends, so pages that meet show every line once.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use landfall_api::Said;
use rustix::fs::{Mode, OFlags};

const WINDOW: usize = 64 * 1024;
const WORK_MAX: u64 = 4 << 20; // bytes one request looks at: some ten milliseconds
const LINE_MAX: usize = 256 * 1024; // of one line; the longest messages of agents that mean something
const TEXT_MAX: usize = 1 << 20; // of one page

/// A file of lines.
pub(super) struct SpoolFile {
    /// None while nothing was written.
    file: Option<File>,
    len: u64,
    /// What was read last, and where it begins.
    window: (u64, Vec<u8>),
}

/// Which way a page goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageDirection {
    /// Lines that begin at a place or after it.
    Forward,
    /// Lines that begin before a place.
    Backward,
}

/// What is wanted.
pub(super) struct SpoolPageRequest {
    pub way: PageDirection,
    pub at: u64,
    pub lines: usize,
    /// A last line without an end is not there yet.
    pub grows: bool,
}

/// A line as it was written.
pub(super) struct SpoolLine {
    /// Where it begins.
    pub at: u64,
    /// What it says, without its end.
    pub bytes: Vec<u8>,
    /// Whether there is more of it.
    pub cut: bool,
}

/// A page.
pub(super) struct SpoolPage {
    pub lines: Vec<Said>,
    pub from: u64,
    pub next: u64,
    pub first: bool,
    pub last: bool,
}

/// A line and where the next one begins.
enum SpoolRead {
    Whole(SpoolLine, u64),
    /// Its end is further away than the work that is left. The place to go on from is within it.
    Long(SpoolLine, u64),
    /// It is not there, or not yet.
    None,
}

impl SpoolFile {
    /// Opens the file `name` of the folder `key`. No link is followed, nothing but a regular file is opened.
    pub fn open(root: &Path, key: &str, name: &str) -> io::Result<Self> {
        let plain = !key.is_empty() && !key.starts_with('.') && !key.contains(['/', '\0']);
        if !plain {
            return Err(io::Error::other("not a plain name"));
        }
        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir: OwnedFd = rustix::fs::open(root.join(key), folder, Mode::empty())?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&dir, name, flags, Mode::empty()) {
            Ok(file) => Self::new(File::from(file)),
            // The run has its folder before its files.
            Err(rustix::io::Errno::NOENT) => Ok(Self { file: None, len: 0, window: (0, Vec::new()) }),
            Err(error) => Err(error.into()),
        }
    }

    pub fn new(file: File) -> io::Result<Self> {
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        // What is written while it is read is for the next time.
        Ok(Self { file: Some(file), len: meta.len(), window: (0, Vec::new()) })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// At most so many bytes.
    pub fn read(&self, at: u64, many: usize) -> io::Result<Vec<u8>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let there = usize::try_from(self.len.saturating_sub(at)).unwrap_or(many).min(many);
        let mut bytes = vec![0; there];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// A page of what `render` makes of each line.
    pub fn read_page(
        &mut self,
        wish: &SpoolPageRequest,
        render: &mut dyn FnMut(&SpoolLine) -> Vec<Said>,
    ) -> io::Result<SpoolPage> {
        match wish.way {
            PageDirection::Forward => self.read_page_forward(wish, render),
            PageDirection::Backward => self.read_page_backward(wish, render),
        }
    }

    fn read_page_forward(
        &mut self,
        wish: &SpoolPageRequest,
        render: &mut dyn FnMut(&SpoolLine) -> Vec<Said>,
    ) -> io::Result<SpoolPage> {
        let from = wish.at.min(self.len);
        let stop = from.saturating_add(WORK_MAX);
        let mut at = from;
        let (mut lines, mut text) = (Vec::new(), 0);
        let mut over = false;
        if !self.begins_line(at)? {
            match self.find_line_end(at, stop)? {
                Some(end) => at = end,
                None => (at, over) = (stop.min(self.len), true),
            }
        }
        while !over && at < stop && lines.len() < wish.lines && text < TEXT_MAX {
            match self.read_line_at(at, stop, wish.grows)? {
                SpoolRead::Whole(line, next) => {
                    take(&mut lines, &mut text, render(&line));
                    at = next;
                }
                SpoolRead::Long(line, next) => {
                    take(&mut lines, &mut text, render(&line));
                    (at, over) = (next, true);
                }
                SpoolRead::None => break,
            }
        }
        let last = at >= self.len
            || matches!(self.read_line_at(at, stop.max(at + WORK_MAX), wish.grows)?, SpoolRead::None);
        Ok(SpoolPage { lines, from, next: at, first: from == 0, last })
    }

    fn read_page_backward(
        &mut self,
        wish: &SpoolPageRequest,
        render: &mut dyn FnMut(&SpoolLine) -> Vec<Said>,
    ) -> io::Result<SpoolPage> {
        let next = wish.at.min(self.len);
        let floor = next.saturating_sub(WORK_MAX);
        let mut from = next;
        let (mut pages, mut many, mut text) = (Vec::new(), 0, 0);
        'windows: while from > floor {
            let low = from.saturating_sub(WINDOW as u64).max(floor);
            for start in self.line_beginnings(low, from)? {
                if many >= wish.lines || text >= TEXT_MAX {
                    break 'windows;
                }
                from = start;
                match self.read_line_at(start, start.saturating_add(WORK_MAX), wish.grows)? {
                    SpoolRead::Whole(line, _) | SpoolRead::Long(line, _) => {
                        let mut said = Vec::new();
                        take(&mut said, &mut text, render(&line));
                        many += said.len();
                        pages.push(said);
                    }
                    SpoolRead::None => {}
                }
            }
            from = low;
        }
        let lines = pages.into_iter().rev().flatten().collect();
        Ok(SpoolPage { lines, from, next, first: from == 0, last: next >= self.len })
    }

    /// Whether a line begins here.
    fn begins_line(&mut self, at: u64) -> io::Result<bool> {
        Ok(at == 0 || self.read_bytes(at - 1, at)?.first() == Some(&b'\n'))
    }

    /// The places from `low` and before `high` at which lines begin, the last one first.
    fn line_beginnings(&mut self, low: u64, high: u64) -> io::Result<Vec<u64>> {
        let before = low.saturating_sub(1);
        let bytes = self.read_bytes(before, high.saturating_sub(1))?;
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let mut starts: Vec<u64> = ends.map(|(at, _)| before + at as u64 + 1).collect();
        if low == 0 && high > 0 {
            starts.insert(0, 0);
        }
        starts.reverse();
        Ok(starts)
    }

    /// The line that begins at `at`.
    fn read_line_at(&mut self, at: u64, stop: u64, grows: bool) -> io::Result<SpoolRead> {
        if at >= self.len {
            return Ok(SpoolRead::None);
        }
        let end = self.find_line_end(at, stop)?;
        let (limit, whole) = match end {
            Some(end) => (end - 1, true),
            None => (stop.min(self.len), stop >= self.len),
        };
        if end.is_none() && whole && grows {
            return Ok(SpoolRead::None);
        }
        let mut bytes = self.read(at, usize::try_from(limit - at).unwrap_or(LINE_MAX).min(LINE_MAX))?;
        let cut = !whole || limit - at > bytes.len() as u64;
        if !cut && bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        let line = SpoolLine { at, bytes, cut };
        Ok(match (end, whole) {
            (Some(end), _) => SpoolRead::Whole(line, end),
            (None, true) => SpoolRead::Whole(line, self.len),
            (None, false) => SpoolRead::Long(line, limit),
        })
    }

    /// Where the line after the one at `at` begins, looked for up to `stop`.
    fn find_line_end(&mut self, at: u64, stop: u64) -> io::Result<Option<u64>> {
        let stop = stop.min(self.len);
        let mut from = at;
        while from < stop {
            let (start, bytes) = self.fill_window(from)?;
            let offset = usize::try_from(from - start).expect("within the window");
            match bytes[offset..].iter().position(|byte| *byte == b'\n') {
                Some(found) => {
                    let end = from + found as u64 + 1;
                    return Ok((end <= stop).then_some(end));
                }
                None => from = start + bytes.len() as u64,
            }
            if bytes.len() == offset {
                break; // the file was cut short behind our back
            }
        }
        Ok(None)
    }

    /// The window around a place, read if need be.
    fn fill_window(&mut self, at: u64) -> io::Result<(u64, &[u8])> {
        let (start, bytes) = &self.window;
        if at < *start || at >= start + bytes.len() as u64 {
            self.window = (at, self.read(at, WINDOW)?);
        }
        Ok((self.window.0, &self.window.1))
    }

    /// The bytes from `low` to `high`, not through the window: they go the other way.
    fn read_bytes(&self, low: u64, high: u64) -> io::Result<Vec<u8>> {
        self.read(low, usize::try_from(high.saturating_sub(low)).unwrap_or(0))
    }
}

fn take(lines: &mut Vec<Said>, text: &mut usize, said: Vec<Said>) {
    *text += said.iter().map(|it| it.text.len()).sum::<usize>();
    lines.extend(said);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use landfall_api::Level;

    use super::*;

    fn spool(text: &[u8]) -> SpoolFile {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(text).expect("there is room");
        SpoolFile::new(file).expect("it is regular")
    }

    #[test]
    fn a_run_that_has_made_no_files_yet_has_printed_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("T7-a1-i1")).expect("there is room");
        for way in [PageDirection::Forward, PageDirection::Backward] {
            let mut spool =
                SpoolFile::open(root.path(), "T7-a1-i1", "out.log").expect("it is empty, not broken");
            let at = if way == PageDirection::Forward { 0 } else { u64::MAX };
            let page = spool
                .read_page(&SpoolPageRequest { way, at, lines: 10, grows: true }, &mut plain)
                .expect("a page");
            assert!(page.lines.is_empty() && page.next == 0, "{} lines", page.lines.len());
        }
        assert!(SpoolFile::open(root.path(), "T7-a1-i2", "out.log").is_err(), "there was no such run");
    }

    /// A folder with one output, and beside it somebody else's words.
    fn canary() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().expect("a folder");
        let attempts = root.path().join("attempts");
        for (folder, says) in [("attempts/T7-a1-i1", "ours\n"), ("elsewhere", "canary\n")] {
            std::fs::create_dir_all(root.path().join(folder)).expect("there is room");
            std::fs::write(root.path().join(folder).join("out.log"), says).expect("there is room");
        }
        std::fs::write(root.path().join("out.log"), "canary\n").expect("there is room");
        std::fs::write(attempts.join("out.log"), "canary\n").expect("there is room");
        std::os::unix::fs::symlink(root.path().join("elsewhere"), attempts.join("T7-link")).expect("a link");
        (root, attempts)
    }

    fn said(attempts: &Path, key: &str) -> Option<String> {
        let spool = SpoolFile::open(attempts, key, "out.log").ok()?;
        Some(String::from_utf8_lossy(&spool.read(0, 100).ok()?).into_owned())
    }

    #[test]
    fn a7_none_of_a_hundred_thousand_names_leads_out_of_the_folder() {
        let (_root, attempts) = canary();
        assert_eq!(said(&attempts, "T7-a1-i1").as_deref(), Some("ours\n"));
        let parts = [
            "..",
            ".",
            "/",
            "\\",
            "T7-a1-i1",
            "T7-link",
            "elsewhere",
            "attempts",
            "\0",
            "%2e",
            "%2f",
            "\u{ff0e}",
            "\u{2024}",
            "\u{202e}",
            "~",
            " ",
            "*",
            "out.log",
            "-",
            "\n",
            "\u{0}",
            "x",
            "C:",
            ";",
            "|",
            "$(id)",
            "\u{2215}",
            "...",
        ];
        let mut dice = Dice(7);
        let mut led = 0;
        for round in 0..100_000 {
            let many = 1 + dice.below(6);
            let mut name: String = (0..many)
                .map(|_| parts[usize::try_from(dice.below(parts.len() as u64)).expect("small")])
                .collect();
            if dice.below(500) == 0 {
                name = name.repeat(500);
            }
            if let Some(said) = said(&attempts, &name) {
                assert!(said == "ours\n" || said.is_empty(), "{name:?} in round {round} led to {said:?}");
                led += u32::from(said == "ours\n");
                assert!(name == "T7-a1-i1" || said.is_empty(), "{name:?}");
            }
        }
        assert!(led > 100, "now and then it is the right one: {led}");
    }

    #[test]
    fn a8_a_folder_that_trades_places_with_a_link_a_million_times_gives_nothing_away() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};

        let (root, attempts) = canary();
        let (folder, link) = (attempts.join("T7-a1-i1"), attempts.join("T7-link"));
        let file = root.path().join("file-link");
        std::os::unix::fs::symlink(root.path().join("elsewhere/out.log"), &file).expect("a link");
        let over = AtomicBool::new(false);
        let (ours, flips) = std::thread::scope(|scope| {
            let racer = scope.spawn(|| {
                let mut flips = 0_u32;
                // Both the folder and the file within it.
                while flips < 1_000_000 && !over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).expect("both are there");
                    let inner = [&folder, &link].into_iter().find(|it| !it.is_symlink()).expect("one is it");
                    renameat_with(CWD, inner.join("out.log"), CWD, &file, RenameFlags::EXCHANGE)
                        .expect("both are there");
                    flips += 2;
                }
                over.store(true, Ordering::Relaxed);
                flips
            });
            let began = std::time::Instant::now();
            let mut ours = 0_u32;
            while !over.load(Ordering::Relaxed) {
                match said(&attempts, "T7-a1-i1").as_deref() {
                    Some("ours\n") => ours += 1,
                    Some("") | None => {}
                    Some(other) => panic!("it led to {other:?}"),
                }
                if began.elapsed() > std::time::Duration::from_secs(10) {
                    over.store(true, Ordering::Relaxed); // a slow disk has turned often enough
                }
            }
            (ours, racer.join().expect("it only turns"))
        });
        assert!(flips > 10_000, "{flips}");
        assert!(ours > 0, "now and then it is the folder");
    }

    fn plain(line: &SpoolLine) -> Vec<Said> {
        let text = String::from_utf8_lossy(&line.bytes).into_owned();
        vec![Said { at: line.at, level: Level::Raw, at_ms: None, text, cut: line.cut, tool: None }]
    }

    /// Every line and where it begins, by the simplest means.
    fn all(text: &[u8]) -> Vec<u64> {
        let mut starts: Vec<u64> = Vec::new();
        if !text.is_empty() {
            starts.push(0);
        }
        starts.extend((1..text.len()).filter(|at| text[at - 1] == b'\n').map(|at| at as u64));
        starts
    }

    /// A small generator: the same numbers every time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, many: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % many
        }
    }

    fn text(dice: &mut Dice) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..dice.below(60) {
            let long = if dice.below(20) == 0 { 200_000 } else { 30 };
            text.extend(std::iter::repeat_n(b'x', usize::try_from(dice.below(long)).expect("small")));
            text.push(b'\n');
        }
        if dice.below(2) == 0 {
            text.extend_from_slice(b"no end");
        }
        text
    }

    #[test]
    fn walks_show_every_line_once_whichever_way_they_go_and_wherever_they_begin() {
        for seed in 0..200 {
            let mut dice = Dice(seed);
            let text = text(&mut dice);
            let starts = all(&text);
            let lines = 1 + usize::try_from(dice.below(7)).expect("small");
            let cut = dice.below(text.len() as u64 + 1);
            let mut spool = spool(&text);
            let walk = |spool: &mut SpoolFile, way: PageDirection, mut at: u64| {
                let mut seen: Vec<u64> = Vec::new();
                loop {
                    let page = spool
                        .read_page(&SpoolPageRequest { way, at, lines, grows: false }, &mut plain)
                        .expect("it reads");
                    assert!(page.lines.is_sorted_by_key(|it| it.at), "seed {seed}");
                    let found: Vec<u64> = page.lines.iter().map(|it| it.at).collect();
                    match way {
                        PageDirection::Forward => seen.extend(found),
                        PageDirection::Backward => seen.splice(0..0, found).for_each(drop),
                    }
                    let over = if way == PageDirection::Forward { page.last } else { page.first };
                    if over {
                        return seen;
                    }
                    let next = if way == PageDirection::Forward { page.next } else { page.from };
                    assert_ne!(next, at, "seed {seed}: it does not move");
                    at = next;
                }
            };
            assert_eq!(walk(&mut spool, PageDirection::Forward, 0), starts, "seed {seed}: forward");
            assert_eq!(walk(&mut spool, PageDirection::Backward, u64::MAX), starts, "seed {seed}: backward");
            let mut both = walk(&mut spool, PageDirection::Backward, cut);
            both.extend(walk(&mut spool, PageDirection::Forward, cut));
            assert_eq!(both, starts, "seed {seed}: cut at {cut}");
        }
    }

    #[test]
    fn a_line_longer_than_the_work_of_a_page_is_shown_once_and_walked_over() {
        let mut text = b"first\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 9 << 20));
        text.extend_from_slice(b"\nlast\n");
        let mut spool = spool(&text);
        let starts = all(&text);
        for way in [PageDirection::Forward, PageDirection::Backward] {
            let (mut seen, mut at) = (Vec::new(), if way == PageDirection::Forward { 0 } else { u64::MAX });
            for _ in 0..20 {
                let page = spool
                    .read_page(&SpoolPageRequest { way, at, lines: 10, grows: false }, &mut plain)
                    .expect("it reads");
                seen.extend(page.lines.iter().map(|it| (it.at, it.cut)));
                if (way == PageDirection::Forward && page.last)
                    || (way == PageDirection::Backward && page.first)
                {
                    break;
                }
                at = if way == PageDirection::Forward { page.next } else { page.from };
            }
            seen.sort_unstable();
            let expected: Vec<(u64, bool)> = starts.iter().map(|at| (*at, *at == 6)).collect();
            assert_eq!(seen, expected, "{way:?}");
        }
    }

    #[test]
    fn a_line_that_is_still_being_written_is_not_shown_before_it_ends() {
        let mut spool = spool(b"one\ntwo");
        let wish = |grows| SpoolPageRequest { way: PageDirection::Forward, at: 0, lines: 10, grows };
        let page = spool.read_page(&wish(true), &mut plain).expect("it reads");
        assert_eq!((page.lines.len(), page.next, page.last), (1, 4, true));
        let page = spool.read_page(&wish(false), &mut plain).expect("it reads");
        assert_eq!((page.lines.len(), page.next, page.last), (2, 7, true));
    }

    #[test]
    fn a_link_is_not_followed() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("T1-a1-i1")).expect("a folder");
        let log = root.path().join("T1-a1-i1/out.log");
        std::os::unix::fs::symlink("/etc/hostname", &log).expect("a link");
        assert!(SpoolFile::open(root.path(), "T1-a1-i1", "out.log").is_err());
        assert!(SpoolFile::open(root.path(), "../x", "out.log").is_err());
        std::os::unix::fs::symlink("T1-a1-i1", root.path().join("T2")).expect("a link");
        std::fs::remove_file(&log).expect("it is there");
        std::fs::write(&log, "x\n").expect("there is room");
        assert!(SpoolFile::open(root.path(), "T2", "out.log").is_err());
        assert!(SpoolFile::open(root.path(), "T1-a1-i1", "out.log").is_ok());
    }
}
