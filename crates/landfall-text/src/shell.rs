//! Words of commands that people copy into a shell.

/// A word as a POSIX shell reads it: quoted if it has characters that mean something to the shell.
pub fn quote_shell_word(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._/-+@%:,=".contains(char);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quote_shell_word;

    #[test]
    fn a_word_with_meaning_to_the_shell_is_quoted() {
        let cases =
            [("T1", "T1"), ("", "''"), ("x$(id)", "'x$(id)'"), ("a'b", r"'a'\''b'"), ("a&b", "'a&b'")];
        for (word, quoted) in cases {
            assert_eq!(quote_shell_word(word), quoted);
        }
    }
}
