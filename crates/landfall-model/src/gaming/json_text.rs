//! The members of a JSON object, as texts. The model knows no format of the journal or the wire, and of a package.json it needs
//! no more than this.

/// The members of an object with their values as they are written; none if the text is no object.
pub(super) fn object_members(text: &str) -> Option<Vec<(String, &str)>> {
    let inside = text.trim_start_matches('\u{feff}').trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut found = Vec::new();
    let mut rest = inside.trim_start();
    while !rest.is_empty() {
        let name_end = value_end(rest)?;
        let name = parse_json_string(&rest[..name_end])?;
        let value = rest[name_end..].trim_start().strip_prefix(':')?.trim_start();
        let end = value_end(value)?;
        found.push((name, &value[..end]));
        rest = value[end..].trim_start();
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest.trim_start(),
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(found)
}

/// Where the value at the beginning of a text ends; none if there is none. No recursion: brackets are counted.
fn value_end(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut in_string = false;
    let mut is_escaped = false;
    for (at, char) in text.char_indices() {
        match (in_string, char) {
            (true, _) if is_escaped => is_escaped = false,
            (true, '\\') => is_escaped = true,
            (true, '"') => {
                in_string = false;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            (true, _) => {}
            (false, '"') => in_string = true,
            (false, '{' | '[') => depth += 1,
            (false, '}' | ']') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            (false, ',' | ':') if depth == 0 => return (at > 0).then(|| text[..at].trim_end().len()),
            (false, _) => {}
        }
    }
    (!in_string && depth == 0 && !text.is_empty()).then(|| text.trim_end().len())
}

/// The text of a JSON string.
pub(super) fn parse_json_string(value: &str) -> Option<String> {
    let mut chars = value.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut text = String::new();
    while let Some(char) = chars.next() {
        if char != '\\' {
            text.push(char);
            continue;
        }
        match chars.next()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok()?;
                text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            other => text.push(other),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{object_members, parse_json_string};

    #[test]
    fn members_are_read_as_they_are_written() {
        let found =
            object_members(" { \"a\" : \"x, \\\"y\\\"\", \"b\":{\"c\":[1,2]},\n\"d\": true , \"e\":1 }\n");
        let expected = [("a", "\"x, \\\"y\\\"\""), ("b", "{\"c\":[1,2]}"), ("d", "true"), ("e", "1")];
        assert_eq!(found, Some(expected.map(|(name, value)| (name.to_owned(), value)).to_vec()));
        assert_eq!(parse_json_string("\"x, \\\"y\\\" \\u0041\""), Some("x, \"y\" A".to_owned()));
        assert_eq!(object_members("{}"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_object_is_none() {
        for text in
            ["", "[]", "{", "}", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1 2:3}", "{\"a", "{\"a\":[}", "{]}"]
        {
            assert_eq!(object_members(text), None, "{text}");
        }
        assert_eq!(object_members(&"{\"a\":".repeat(100_000)), None);
    }
}
