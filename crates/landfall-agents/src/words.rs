//! A command line into words, as a shell would, without anything a shell would do to them.

use thiserror::Error;

/// Why a command line has no words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CommandLineError {
    /// A quote is not closed.
    #[error("the {quote} at character {at} is never closed")]
    Unbalanced {
        /// Which one.
        quote: char,
        /// Where it opens, from 1.
        at: usize,
    },
    /// The last character is a backslash.
    #[error("it ends with a backslash")]
    Backslash,
    /// A byte that no argument can hold.
    #[error("it holds a NUL byte")]
    Nul,
    /// Nothing but blanks.
    #[error("it is empty")]
    Empty,
}

/// Splits at blanks. Single quotes keep everything, double quotes keep all but `\"` and `\\`, a backslash keeps the
/// next character. Nothing is expanded: `$HOME`, `*`, `~`, `|` and `;` are letters like any other.
pub fn split(line: &str) -> Result<Vec<String>, CommandLineError> {
    let mut words = Vec::new();
    // A word can be empty and still be there: `''`. So its absence is told apart from its emptiness.
    let mut word: Option<String> = None;
    let mut letters = line.chars().zip(1..).peekable();
    while let Some((letter, at)) = letters.next() {
        match letter {
            '\0' => return Err(CommandLineError::Nul),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        None => return Err(CommandLineError::Unbalanced { quote: letter, at }),
                        Some((end, _)) if end == letter => break,
                        Some(('\\', _)) if letter == '"' => {
                            match letters.next_if(|(next, _)| matches!(next, '"' | '\\')) {
                                Some((kept, _)) => word.push(kept),
                                None => word.push('\\'),
                            }
                        }
                        Some(('\0', _)) => return Err(CommandLineError::Nul),
                        Some((kept, _)) => word.push(kept),
                    }
                }
            }
            '\\' => match letters.next() {
                None => return Err(CommandLineError::Backslash),
                Some(('\0', _)) => return Err(CommandLineError::Nul),
                Some((kept, _)) => word.get_or_insert_default().push(kept),
            },
            blank if blank.is_ascii_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    if words.is_empty() { Err(CommandLineError::Empty) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::{CommandLineError, split};

    #[test]
    fn words_are_split_as_a_shell_would() {
        let check =
            |line: &str, words: &[&str]| assert_eq!(split(line).as_deref(), Ok(words_of(words).as_slice()));
        fn words_of(words: &[&str]) -> Vec<String> {
            words.iter().map(|word| (*word).to_owned()).collect()
        }
        check("my-agent --unattended", &["my-agent", "--unattended"]);
        check("  a\t b\nc ", &["a", "b", "c"]);
        check("'a b' \"c d\" e\\ f", &["a b", "c d", "e f"]);
        check("a'b'\"c\"", &["abc"]);
        check("'' x \"\"", &["", "x", ""]);
        check(r#""say \"hi\" \n \\" 'it\s'"#, &[r#"say "hi" \n \"#, r"it\s"]);
        check("$HOME * ~ | ; & > `x`", &["$HOME", "*", "~", "|", ";", "&", ">", "`x`"]);
    }

    #[test]
    fn what_cannot_be_split_says_where() {
        assert_eq!(split("a 'b c"), Err(CommandLineError::Unbalanced { quote: '\'', at: 3 }));
        assert_eq!(split("a \"b\\\""), Err(CommandLineError::Unbalanced { quote: '"', at: 3 }));
        assert_eq!(split("a \\"), Err(CommandLineError::Backslash));
        assert_eq!(split(" \t"), Err(CommandLineError::Empty));
        assert_eq!(split("a\0b"), Err(CommandLineError::Nul));
        assert_eq!(split("'\0'"), Err(CommandLineError::Nul));
        assert_eq!(split("\\\0"), Err(CommandLineError::Nul));
    }
}
