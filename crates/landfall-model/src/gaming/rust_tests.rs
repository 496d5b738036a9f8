//! Modules of tests inside Rust files: where they are, and how those of the base take the place of those of the work.

use super::{ChangedFile, is_test_path};

/// Modules whose declaration goes while their files stay: the tests in them are not built any more. As `file: name`.
pub(super) fn unbuilt_modules(files: &[ChangedFile]) -> Vec<String> {
    let declared = |line: &str| -> Option<String> {
        let code = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        let name = code.strip_prefix("mod ")?.strip_suffix(';')?.trim();
        Some(name.to_owned())
    };
    let rust = || files.iter().filter(|file| file.path.ends_with(".rs"));
    let added: Vec<String> = rust().flat_map(|file| &file.added).filter_map(|line| declared(line)).collect();
    let mut found = Vec::new();
    for file in rust().filter(|file| !file.deleted) {
        for name in file.removed.iter().filter_map(|line| declared(line)) {
            let is_its_file = |path: &str| {
                path.ends_with(&format!("/{name}.rs")) || path.ends_with(&format!("/{name}/mod.rs"))
            };
            let goes = files.iter().any(|other| other.deleted && is_its_file(&other.path));
            if !goes && !added.contains(&name) {
                found.push(format!("{}: {name}", file.path));
            }
        }
    }
    found
}

/// A module of tests at the top of a file.
struct TestModule<'a> {
    name: &'a str,
    begin: usize,
    end: usize,
    is_test: bool,
    /// Whether its content is in another file.
    is_declared: bool,
}

/// The file of the work with the tests of the base in place of its own: in Rust, unit tests are in the file that they test.
/// None if there are none, or they are the same.
pub(super) fn with_modules_of_base(base: &str, work: &str) -> Option<String> {
    let (base_masked, work_masked) = (mask_rust_code(base), mask_rust_code(work));
    let base_modules = find_modules(&base_masked);
    let work_modules = find_modules(&work_masked);
    let is_in_a_test_file = |name: &str| is_test_path(&format!("{name}.rs"));
    let of_tests = base_modules
        .iter()
        .filter(|module| module.is_test && (!module.is_declared || is_in_a_test_file(module.name)));
    let mut edits: Vec<(usize, usize, &str)> = Vec::new();
    let mut appended = String::new();
    for module in of_tests {
        let text = &base[module.begin..module.end];
        let mut same_name = work_modules.iter().filter(|found| found.name == module.name);
        match same_name.next() {
            None => appended.push_str(&format!("\n{text}\n")),
            Some(first) if work[first.begin..first.end] == *text => {}
            Some(first) => edits.push((first.begin, first.end, text)),
        }
        // One of two is left out of the build; which of them cannot be told.
        edits.extend(same_name.map(|found| (found.begin, found.end, "")));
    }
    if edits.is_empty() && appended.is_empty() {
        return None;
    }
    edits.sort_unstable();
    let mut text = String::new();
    let mut from = 0;
    for (begin, end, new) in edits {
        text.push_str(&work[from..begin]);
        text.push_str(new);
        from = end;
    }
    text.push_str(&work[from..]);
    text.push_str(&appended);
    Some(text)
}

/// The file without its modules of tests, which are put back as a whole.
pub(super) fn without_modules(text: &str) -> String {
    let mut left = String::new();
    let mut from = 0;
    for module in module_ranges(text) {
        left.push_str(&text[from..module.start]);
        from = module.end;
    }
    left.push_str(&text[from..]);
    left
}

/// Where the modules of tests are, in bytes.
pub(super) fn module_ranges(text: &str) -> Vec<std::ops::Range<usize>> {
    let masked = mask_rust_code(text);
    let of_tests = find_modules(&masked).into_iter().filter(|module| module.is_test);
    of_tests.map(|module| module.begin..module.end).collect()
}

/// The modules at the top of a masked text, in order. One inside another item may never be built.
fn find_modules(masked: &str) -> Vec<TestModule<'_>> {
    let bytes = masked.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut begin) = (0, 0);
    let mut open = 0i64;
    while at < bytes.len() {
        match bytes[at] {
            byte if begin == at && byte.is_ascii_whitespace() => begin += 1,
            b'(' | b'[' => open += 1,
            b')' | b']' => {
                open -= 1;
                // `#![…]` is about the file.
                if open == 0 && masked[begin..at].trim_start().starts_with("#!") {
                    begin = at + 1;
                }
            }
            b';' if open <= 0 => {
                found.extend(module_of(masked, begin, at, at + 1));
                begin = at + 1;
            }
            b'{' if open <= 0 => {
                let end = closing_brace(bytes, at);
                found.extend(module_of(masked, begin, at, end));
                (at, begin) = (end, end);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The place behind the brace that closes the one at `open`.
fn closing_brace(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

/// The module that an item is: attributes, visibility, `mod NAME`.
fn module_of(masked: &str, begin: usize, head_end: usize, end: usize) -> Option<TestModule<'_>> {
    let head = &masked[begin..head_end];
    let mut rest = head.trim_start();
    let begin = begin + (head.len() - rest.len());
    let mut is_test = false;
    while let Some(inside) = rest.strip_prefix("#[") {
        let mut depth = 1usize;
        let close = inside.find(|char: char| {
            depth = depth + usize::from(char == '[') - usize::from(char == ']');
            depth == 0
        })?;
        let attribute: String = inside[..close].split_whitespace().collect();
        let names_test = attribute.split(|char: char| !char.is_alphanumeric()).any(|word| word == "test");
        is_test |= attribute.starts_with("cfg(") && names_test && !attribute.contains("not(test");
        rest = inside[close + 1..].trim_start();
    }
    if let Some(behind) = rest.strip_prefix("pub") {
        let behind = behind.trim_start();
        rest = behind
            .strip_prefix('(')
            .and_then(|inside| inside.split_once(')'))
            .map_or(behind, |(_, rest)| rest);
    }
    let name = rest.trim_start().strip_prefix("mod ")?.trim();
    let is_declared = masked[..end].ends_with(';');
    const MARKS: [&str; 4] = ["#[test]", "::test]", "#[rstest", "#[test_case"];
    let body = &masked[head_end..end];
    is_test |= !is_declared && MARKS.iter().any(|mark| body.contains(mark));
    Some(TestModule { name, begin, end, is_test, is_declared })
}

/// The text with blanks for comments and for what is in quotes, so that what is left is code. Each byte keeps its place.
fn mask_rust_code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = match rest {
            [b'/', b'/', ..] => at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => at + block_comment(rest),
            [b'"', ..] => at + quoted_length(rest, b'"'),
            [b'r', ..] | [b'b' | b'c', b'r', ..] if at == 0 || !is_name(bytes[at - 1]) => {
                match raw_string(rest) {
                    Some(length) => at + length,
                    None => {
                        at += 1;
                        continue;
                    }
                }
            }
            [b'\'', b'\\', ..] => at + quoted_length(rest, b'\''),
            // A lifetime has no second quote.
            [b'\'', ..] => match text.get(at + 1..).and_then(|rest| rest.chars().next()) {
                Some(char) if bytes.get(at + 1 + char.len_utf8()) == Some(&b'\'') => at + char.len_utf8() + 2,
                Some(_) | None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        let end = end.min(bytes.len());
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8(out).expect("whole characters are blanked")
}

pub(super) fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'/', b'*') => (depth, at) = (depth + 1, at + 2),
            (b'*', b'/') => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

pub(super) fn quoted_length(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of `r"…"` or `r#"…"#` at the beginning.
pub(super) fn raw_string(bytes: &[u8]) -> Option<usize> {
    let begin = bytes.iter().position(|byte| *byte == b'r')? + 1;
    let hashes = bytes[begin..].iter().take_while(|byte| **byte == b'#').count();
    let open = begin + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut at = open + 1;
    while at < bytes.len() {
        let closes = bytes[at] == b'"'
            && bytes.len() - at > hashes
            && bytes[at + 1..at + 1 + hashes].iter().all(|byte| *byte == b'#');
        if closes {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(bytes.len())
}
