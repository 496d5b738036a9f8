//! The commands in a shell text, as far as they can be told without running it. It is no shell: what it cannot read it
//! leaves out.

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SimpleCommand {
    /// Its words, without quotes, assignments, redirections and reserved words.
    pub words: Vec<String>,
    /// Whether it stands alone: no part of a pipeline, its output not taken.
    pub is_plain: bool,
    /// Whether its output is part of another command (`$(…)`).
    pub is_captured: bool,
}

const COMMANDS_MAX: usize = 2_000; // of one text; a longer script is generated
const NESTING_MAX: usize = 6; // of `$(…)`; people write two

impl SimpleCommand {
    /// Whether a shell of its own begins (`Some(true)`) or ends here: what is changed in it stays in it.
    pub(super) fn begins_subshell(&self) -> Option<bool> {
        match self.words.as_slice() {
            [word] if word == "(" => Some(true),
            [word] if word == ")" => Some(false),
            _ => None,
        }
    }
}

/// The commands of a text, in order. A parenthesis that begins or ends a shell is a command of its own.
pub(super) fn simple_commands(text: &str) -> Vec<SimpleCommand> {
    let mut found = Vec::new();
    read_commands(text, false, 0, &mut found);
    found
}

/// The state of reading one text.
#[derive(Default)]
struct CommandReader {
    words: Vec<String>,
    word: String,
    /// Whether a word is under way: `""` is one, too.
    in_word: bool,
    is_piped: bool,
    is_redirected: bool,
    /// Whether the next word is the file of a redirection.
    skips_word: bool,
}

impl CommandReader {
    fn end_word(&mut self) {
        if !self.in_word {
            return;
        }
        self.in_word = false;
        let word = std::mem::take(&mut self.word);
        if self.skips_word {
            self.skips_word = false;
            if word == "/dev/null" || word == "&2" || word == "&1" {
                self.is_redirected = false; // its output is thrown away, not compared
            }
            return;
        }
        self.words.push(word);
    }

    fn end_command(&mut self, is_captured: bool, found: &mut Vec<SimpleCommand>) {
        self.end_word();
        self.skips_word = false;
        let words = without_prefixes(std::mem::take(&mut self.words));
        if !words.is_empty() && found.len() < COMMANDS_MAX {
            let is_plain = !self.is_piped && !self.is_redirected && !is_captured;
            found.push(SimpleCommand { words, is_plain, is_captured });
        }
        (self.is_piped, self.is_redirected) = (false, false);
    }
}

fn read_commands(text: &str, is_captured: bool, depth: usize, found: &mut Vec<SimpleCommand>) {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = CommandReader::default();
    let mut heredocs: Vec<String> = Vec::new();
    let mut at = 0;
    while at < chars.len() && found.len() < COMMANDS_MAX {
        let char = chars[at];
        let next = chars.get(at + 1).copied();
        match char {
            '\\' if next == Some('\n') => at += 1,
            '\\' => {
                reader.word.extend(next);
                reader.in_word = true;
                at += 1;
            }
            '\'' => {
                reader.in_word = true;
                at += 1;
                while at < chars.len() && chars[at] != '\'' {
                    reader.word.push(chars[at]);
                    at += 1;
                }
            }
            '"' => {
                reader.in_word = true;
                at += 1;
                while at < chars.len() && chars[at] != '"' {
                    match chars[at] {
                        '\\' => {
                            reader.word.extend(chars.get(at + 1));
                            at += 2;
                        }
                        '$' if chars.get(at + 1) == Some(&'(') => {
                            at = read_substitution(&chars, at, depth, &mut reader, found)
                        }
                        other => {
                            reader.word.push(other);
                            at += 1;
                        }
                    }
                }
            }
            '$' if next == Some('(') => {
                at = read_substitution(&chars, at, depth, &mut reader, found);
                continue;
            }
            '`' => {
                let close = (at + 1..chars.len()).find(|place| chars[*place] == '`').unwrap_or(chars.len());
                let inner: String = chars[at + 1..close].iter().collect();
                if depth < NESTING_MAX {
                    read_commands(&inner, true, depth + 1, found);
                }
                reader.word.push_str(&format!("$({inner})"));
                reader.in_word = true;
                at = close;
            }
            '#' if !reader.in_word => {
                while at + 1 < chars.len() && chars[at + 1] != '\n' {
                    at += 1;
                }
            }
            '\n' => {
                reader.end_command(is_captured, found);
                for end in std::mem::take(&mut heredocs) {
                    at = after_heredoc(&chars, at, &end);
                }
            }
            ';' => reader.end_command(is_captured, found),
            '(' | ')' => {
                reader.end_command(is_captured, found);
                if !is_captured && found.len() < COMMANDS_MAX {
                    let words = vec![char.to_string()];
                    found.push(SimpleCommand { words, is_plain: false, is_captured });
                }
            }
            '&' if next == Some('&') => {
                reader.end_command(is_captured, found);
                at += 1;
            }
            '&' if reader.skips_word && !reader.in_word => {
                reader.word.push('&');
                reader.in_word = true;
            }
            '&' => reader.end_command(is_captured, found),
            '|' if next == Some('|') => {
                reader.end_command(is_captured, found);
                at += 1;
            }
            '|' => {
                reader.end_word();
                reader.is_piped = true;
                reader.end_command(is_captured, found);
                reader.is_piped = true;
            }
            '<' if next == Some('<') => {
                reader.end_word();
                at += 2;
                let end: String =
                    chars[at..].iter().take_while(|char| !matches!(char, '\n' | ';' | '|' | '&')).collect();
                let is_here_string = end.starts_with('<');
                let length = end.chars().count();
                let end = end.trim_start_matches('-').trim();
                let end: String = end
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .filter(|char| !matches!(char, '\'' | '"' | '\\'))
                    .collect();
                if !end.is_empty() && !is_here_string {
                    heredocs.push(end);
                }
                at += length;
                continue;
            }
            '<' | '>' => {
                // A number before it says which stream: only the output of the command itself is compared.
                let is_output = char == '>' && !(reader.in_word && reader.word == "2");
                if reader.in_word && reader.word.chars().all(|char| char.is_ascii_digit()) {
                    (reader.in_word, reader.word) = (false, String::new());
                }
                reader.end_word();
                reader.is_redirected |= is_output;
                reader.skips_word = true;
                if next == Some('>') {
                    at += 1;
                }
            }
            char if char.is_whitespace() => reader.end_word(),
            other => {
                reader.word.push(other);
                reader.in_word = true;
            }
        }
        at += 1;
    }
    reader.end_command(is_captured, found);
}

/// Reads `$(…)` at `at`; the place after it. The word keeps it as it is written.
fn read_substitution(
    chars: &[char],
    at: usize,
    depth: usize,
    reader: &mut CommandReader,
    found: &mut Vec<SimpleCommand>,
) -> usize {
    let mut open = 0usize;
    let mut end = at + 1;
    while end < chars.len() {
        match chars[end] {
            '(' => open += 1,
            ')' => {
                open -= 1;
                if open == 0 {
                    break;
                }
            }
            _ => {}
        }
        end += 1;
    }
    let inner: String = chars.get(at + 2..end).unwrap_or_default().iter().collect();
    if depth < NESTING_MAX && !inner.starts_with('(') {
        read_commands(&inner, true, depth + 1, found);
    }
    reader.word.push_str(&format!("$({inner})"));
    reader.in_word = true;
    end + 1
}

/// The end of the line that ends a here-document.
fn after_heredoc(chars: &[char], newline: usize, end: &str) -> usize {
    let mut at = newline;
    while at < chars.len() {
        let line: String = chars[at + 1..].iter().take_while(|char| **char != '\n').collect();
        at += 1 + line.chars().count();
        if line.trim() == end {
            return at;
        }
    }
    at
}

/// A program that runs another one, whose words follow its own.
struct CommandWrapper {
    /// Its name, and the word after it if it has other uses.
    words: &'static [&'static str],
    /// Letters of options that take the next word, where the option ends with the letter.
    with_value: &'static str,
    /// Long options that take the next word.
    long_with_value: &'static [&'static str],
    /// Words of its own before the command.
    operands: usize,
}

const fn command_wrapper(
    words: &'static [&'static str],
    with_value: &'static str,
    operands: usize,
) -> CommandWrapper {
    CommandWrapper { words, with_value, long_with_value: &[], operands }
}

const WRAPPERS: &[CommandWrapper] = &[
    command_wrapper(&["exec"], "a", 0),
    command_wrapper(&["command"], "", 0),
    command_wrapper(&["builtin"], "", 0),
    CommandWrapper { long_with_value: &["--unset", "--chdir"], ..command_wrapper(&["env"], "uC", 0) },
    CommandWrapper {
        long_with_value: &["--user", "--group", "--chdir"],
        ..command_wrapper(&["sudo"], "ugChprtTUDR", 0)
    },
    CommandWrapper { long_with_value: &["--adjustment"], ..command_wrapper(&["nice"], "n", 0) },
    command_wrapper(&["nohup"], "", 0),
    command_wrapper(&["setsid"], "", 0),
    command_wrapper(&["xvfb-run"], "nefpsw", 0),
    CommandWrapper {
        long_with_value: &["--input", "--output", "--error"],
        ..command_wrapper(&["stdbuf"], "ioe", 0)
    },
    CommandWrapper {
        long_with_value: &["--kill-after", "--signal"],
        ..command_wrapper(&["timeout"], "ks", 1)
    },
    CommandWrapper {
        long_with_value: &["--class", "--classdata"],
        ..command_wrapper(&["ionice"], "cnpPu", 0)
    },
    command_wrapper(&["chrt"], "TPD", 1),
    command_wrapper(&["taskset"], "", 1),
    CommandWrapper { long_with_value: &["--timeout", "--wait"], ..command_wrapper(&["flock"], "wE", 1) },
    CommandWrapper {
        long_with_value: &["--max-args", "--max-procs"],
        ..command_wrapper(&["xargs"], "nPILsdaE", 0)
    },
    CommandWrapper { long_with_value: &["--package"], ..command_wrapper(&["npx"], "p", 0) },
    command_wrapper(&["bunx"], "", 0),
    command_wrapper(&["npm", "exec"], "p", 0),
    command_wrapper(&["pnpm", "exec"], "", 0),
    command_wrapper(&["yarn", "exec"], "", 0),
    CommandWrapper {
        long_with_value: &["--with", "--python", "--extra", "--group", "--package", "--env-file"],
        ..command_wrapper(&["uv", "run"], "p", 0)
    },
    command_wrapper(&["poetry", "run"], "", 0),
    command_wrapper(&["pipenv", "run"], "", 0),
    command_wrapper(&["pdm", "run"], "p", 0),
    command_wrapper(&["hatch", "run"], "", 0),
    command_wrapper(&["rye", "run"], "", 0),
    command_wrapper(&["bundle", "exec"], "", 0),
    command_wrapper(&["direnv", "exec"], "", 1),
    command_wrapper(&["mise", "exec"], "", 0),
];

impl CommandWrapper {
    /// How many words of the command are the wrapper's own; none if the command is another one.
    fn matched_length(&self, words: &[String]) -> Option<usize> {
        let is_this =
            words.len() > self.words.len() && self.words.iter().zip(words).all(|(own, word)| own == word);
        if !is_this {
            return None;
        }
        let mut at = self.words.len();
        while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
            at += 1;
            if option == "--" {
                break;
            }
            let letter = option.chars().next_back().filter(|_| !option.starts_with("--"));
            let takes_next = letter.is_some_and(|letter| self.with_value.contains(letter))
                || self.long_with_value.contains(&option.as_str());
            at += usize::from(takes_next);
        }
        Some(at + self.operands).filter(|length| *length < words.len())
    }
}

/// The words of a command without what stands before it: assignments, reserved words, and programs that run another.
fn without_prefixes(words: Vec<String>) -> Vec<String> {
    const RESERVED: &[&str] =
        &["if", "then", "else", "elif", "fi", "while", "until", "do", "done", "!", "{", "}", "time", "esac"];
    let mut words = words;
    loop {
        let Some(first) = words.first() else { return words };
        let is_assignment = first.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        });
        if RESERVED.contains(&first.as_str()) || is_assignment {
            words.remove(0);
        } else if let Some(length) = WRAPPERS.iter().find_map(|wrapper| wrapper.matched_length(&words)) {
            words.drain(..length);
        } else {
            return words;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::simple_commands;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = simple_commands(text)
            .iter()
            .map(|command| {
                let mark = match (command.is_plain, command.is_captured) {
                    (true, _) => "",
                    (false, false) => "~",
                    (false, true) => "$",
                };
                format!("{mark}{}", command.words.join(" "))
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn commands_are_told_apart() {
        check("cargo test && sh ./ci.sh || exit 1", &["cargo test", "sh ./ci.sh", "exit 1"]);
        check("A=1 env B=2 sh -e a.sh; timeout -k 1 60 make test", &["sh -e a.sh", "make test"]);
        check("if ! sh a.sh; then exit 1; fi # sh b.sh", &["sh a.sh", "exit 1"]);
        check("sh 'a b.sh' \"c\" \\\n  d", &["sh a b.sh c d"]);
        check("a | b\nc", &["~a", "~b", "c"]);
        check("(cd a) && b", &["~(", "cd a", "~)", "b"]);
        check("nice -n 5 timeout -k 1 9 env -u X sudo -u y a -b", &["a -b"]);
        check("a > out; b >/dev/null 2>&1; c 2> err", &["~a", "b", "c"]);
    }

    #[test]
    fn what_is_captured_is_marked() {
        check("[ \"$(sh a.sh x)\" = y ]", &["$sh a.sh x", "[ $(sh a.sh x) = y ]"]);
        check("x=`sh a.sh`", &["$sh a.sh"]);
    }

    #[test]
    fn a_here_document_is_no_command() {
        check("cat <<'EOF'\nsh a.sh\nEOF\nsh b.sh", &["cat", "sh b.sh"]);
    }

    #[test]
    fn a_text_that_never_ends_a_quote_is_read_to_its_end() {
        for text in
            ["sh \"a", "sh 'a", "sh $(a $(b", "sh `a", "cat <<EOF\nx", "$(", "\\", "<<", "\"$(", "\"\\"]
        {
            assert!(simple_commands(text).len() < 5, "{text}");
        }
        assert!(simple_commands(&"$(".repeat(100_000)).len() < 10);
    }
}
