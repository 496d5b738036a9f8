//! An example for every command, shown at the end of its help.

/// A command, and what one types for it.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("demo", &["landfall demo", "landfall demo --dir /tmp/landfall-demo"]),
    ("init", &["landfall init"]),
    ("check", &["landfall check", "landfall check T7", "landfall check --unconfined"]),
    ("doctor", &["landfall doctor", "landfall doctor --sandbox"]),
    ("agents", &["landfall agents", "landfall agents --probe default"]),
    (
        "add",
        &[
            "landfall add \"Fix the off-by-one in the parser\" --criterion \"parser tests pass\"",
            "landfall add \"Document the new flag\" --needs T1",
            "landfall add -f tasks.md",
        ],
    ),
    ("list", &["landfall list", "landfall list --status failed,blocked"]),
    ("show", &["landfall show T7"]),
    ("edit", &["landfall edit T7 --priority 1 --tag critical", "landfall edit T7 --ready"]),
    ("run", &["landfall run", "landfall run T7 T8 --slots 2", "landfall run --detach"]),
    ("run pause", &["landfall run pause --reason \"release today\""]),
    ("run resume", &["landfall run resume"]),
    ("run next", &["landfall run next T7"]),
    ("run autopilot", &["landfall run autopilot off"]),
    ("stop", &["landfall stop", "landfall stop T7 --now"]),
    ("status", &["landfall status", "landfall status --json"]),
    ("top", &["landfall top"]),
    ("why", &["landfall why T7", "landfall why '#12'"]),
    ("log", &["landfall log --follow", "landfall log T7 --agent", "landfall log T7 --check tests"]),
    ("report", &["landfall report", "landfall report T7"]),
    ("stats", &["landfall stats --days 7"]),
    ("serve", &["landfall serve", "landfall serve --run"]),
    ("inbox", &["landfall inbox"]),
    ("answer", &["landfall answer T7 \"Use spaces\"", "landfall answer T7 approve"]),
    (
        "review",
        &[
            "landfall review",
            "landfall review T7 approve",
            "landfall review T7 changes \"Keep the old flag\"",
        ],
    ),
    ("review approve", &["landfall review T7 approve \"looks good\""]),
    ("review changes", &["landfall review T7 changes \"Keep the old flag\""]),
    ("review reject", &["landfall review T7 reject \"not needed any more\""]),
    ("review skip", &["landfall review T7 skip"]),
    ("review defer", &["landfall review T7 defer"]),
    ("retry", &["landfall retry T7 --note \"The service is back\""]),
    ("accept", &["landfall accept T7 --already-done \"landed by hand as 3f2a9c0d\""]),
    ("cancel", &["landfall cancel T7 --reason \"duplicate of T3\""]),
    ("queue", &["landfall queue", "landfall queue pause --reason \"release today\""]),
    ("queue show", &["landfall queue show"]),
    ("queue pause", &["landfall queue pause --reason \"release today\""]),
    ("queue resume", &["landfall queue resume"]),
    ("queue eject", &["landfall queue eject T7"]),
    ("diff", &["landfall diff T7", "landfall diff T7 > T7.patch"]),
    ("certificate", &["landfall certificate T7"]),
    ("rollback", &["landfall rollback T7"]),
    ("issue", &["landfall issue list", "landfall issue show 12"]),
    ("issue new", &["landfall issue new \"Crash on empty input\" --body-file crash.md --size S"]),
    ("issue list", &["landfall issue list --label bug"]),
    ("issue show", &["landfall issue show 12"]),
    ("issue pr", &["landfall issue pr 12"]),
    ("issue edit", &["landfall issue edit 12 --size M --label parser"]),
    ("issue tick", &["landfall issue tick 12 2"]),
    ("issue comment", &["landfall issue comment 12 \"Reproduced on main\""]),
    ("issue close", &["landfall issue close 12 --not-planned"]),
    ("issue reopen", &["landfall issue reopen 12"]),
    ("issue label", &["landfall issue label 12 --add bug --remove question"]),
    ("issue events", &["landfall issue events 12"]),
    ("issue proposals", &["landfall issue proposals"]),
    ("issue size", &["landfall issue size 12 M"]),
    ("issue reconcile", &["landfall issue reconcile 12 --phase code-pr --strict"]),
    ("issue verify", &["landfall issue verify 12 --dry-run"]),
    ("auto", &["landfall auto 12", "landfall auto --batch 12 15 19", "landfall auto --batch 5 --dry-run"]),
    ("help", &["landfall help run", "landfall help --all", "landfall help --man man1"]),
    ("completions", &["landfall completions zsh"]),
    ("sprint", &["landfall sprint start --until 08:00", "landfall sprint report"]),
    (
        "sprint start",
        &["landfall sprint start --until 08:00", "landfall sprint start --count 10 --tag quick-win"],
    ),
    ("sprint status", &["landfall sprint status"]),
    ("sprint pause", &["landfall sprint pause"]),
    ("sprint resume", &["landfall sprint resume"]),
    ("sprint cancel", &["landfall sprint cancel"]),
    ("sprint report", &["landfall sprint report S3"]),
    ("sprint list", &["landfall sprint list"]),
    (
        "task",
        &["landfall task hold T7 \"wait for the release\"", "landfall task tell T7 \"The API moved to v2\""],
    ),
    ("task hold", &["landfall task hold T7 \"wait for the release\""]),
    ("task release", &["landfall task release T7"]),
    (
        "task tell",
        &[
            "landfall task tell T7 \"The API moved to v2\"",
            "landfall task tell T7 --now \"Stop: wrong file\"",
        ],
    ),
    ("task limits", &["landfall task limits T7 --iterations 30 --time 2h --usd 5"]),
    ("task block", &["landfall task block T7 \"needs a database\""]),
    ("task do", &["landfall task do T7 plan", "landfall task do T7 exec --step 2"]),
    ("task papers", &["landfall task papers T7", "landfall task papers T7 plan.md"]),
    ("task annotate", &["landfall task annotate T7 comment \"Which version?\" --on \"upgrade the parser\""]),
    ("task attach", &["landfall task attach T7"]),
    ("objective", &["landfall objective show T7", "landfall objective refine T7 \"It must also read CSV\""]),
    ("objective show", &["landfall objective show T7", "landfall objective show T7 --ok"]),
    ("objective refine", &["landfall objective refine T7 \"It must also read CSV\""]),
    ("checkpoint", &["landfall checkpoint", "landfall checkpoint create before-upgrade"]),
    ("checkpoint list", &["landfall checkpoint list"]),
    ("checkpoint create", &["landfall checkpoint create before-upgrade"]),
    ("checkpoint restore", &["landfall checkpoint restore before-upgrade"]),
    ("checkpoint delete", &["landfall checkpoint delete before-upgrade"]),
    ("checkpoint cleanup", &["landfall checkpoint cleanup --keep 10"]),
    ("graph", &["landfall graph", "landfall graph T7 --depth 2"]),
    ("propose", &["landfall propose \"Support CSV input\" --dry-run"]),
    ("project", &["landfall project token", "landfall project reclaim --dry-run"]),
    ("trust", &["landfall trust"]),
    ("project token", &["landfall project token", "landfall project token --agent review-bot"]),
    ("project pair", &["landfall project pair phone"]),
    ("project sessions", &["landfall project sessions"]),
    ("project reclaim", &["landfall project reclaim --dry-run"]),
    ("project import", &["landfall project import TODO.md --dry-run"]),
    ("project export", &["landfall project export --dir tasks"]),
    ("project flow", &["landfall project flow list", "landfall project flow show quick"]),
    ("project flow list", &["landfall project flow list"]),
    ("project flow show", &["landfall project flow show quick"]),
    ("project flow check", &["landfall project flow check my-flow.toml"]),
    ("project module", &["landfall project module init csv-input"]),
    ("project module init", &["landfall project module init csv-input --title \"CSV input\""]),
    ("project module mend", &["landfall project module mend"]),
    ("project plugin", &["landfall project plugin install --user"]),
    ("project plugin install", &["landfall project plugin install --user"]),
    ("project plugin remove", &["landfall project plugin remove --user --dry-run"]),
    ("project plugin status", &["landfall project plugin status"]),
    ("project discoveries", &["landfall project discoveries"]),
    ("project discoveries drop", &["landfall project discoveries drop 3"]),
    ("signal", &["landfall signal complete", "landfall signal ask \"Tabs or spaces?\""]),
    ("mcp", &["landfall mcp"]),
];

/// Adds the examples to the help of each command, also where the command is hidden under its former name.
pub fn add_examples(cli: clap::Command) -> clap::Command {
    cli.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        match command.is_hide_set() {
            true => add_examples_below(command, &moved_command_path(&name).unwrap_or(name)),
            false => add_examples_below(command, &name),
        }
    })
}

/// Where a command is now that was at the top before: the path that ends with its name.
fn moved_command_path(name: &str) -> Option<String> {
    let ending = match name {
        "target" => " show".to_owned(),
        name => format!(" {name}"),
    };
    let home = |path: &&str| match name {
        "target" => *path == "objective show",
        _ => {
            path.ends_with(&ending)
                && path.matches(' ').count() == 1
                && !path.starts_with("sprint ")
                && !path.starts_with("queue ")
        }
    };
    EXAMPLES.iter().map(|(path, _)| *path).find(home).map(str::to_owned)
}

fn add_examples_below(command: clap::Command, path: &str) -> clap::Command {
    let command = command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        add_examples_below(below, &path)
    });
    let Some((_, lines)) = EXAMPLES.iter().find(|(of, _)| *of == path) else { return command };
    let mut text = String::from(if lines.len() == 1 { "Example:\n" } else { "Examples:\n" });
    for line in *lines {
        text += &format!("  {line}\n");
    }
    match command.get_after_help().map(ToString::to_string) {
        Some(after) => command.after_help(format!("{after}\n\n{}", text.trim_end())),
        None => command.after_help(text.trim_end().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::EXAMPLES;
    use crate::commands::{build_cli, named};

    /// The words of an example, as a shell splits them.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().expect("there is a first part");
        let mut words = vec![String::new()];
        let mut quote = None;
        for character in line.chars() {
            match (quote, character) {
                (Some(open), _) if open == character => quote = None,
                (None, '"' | '\'') => quote = Some(character),
                (None, ' ') => words.push(String::new()),
                _ => words.last_mut().expect("there is one").push(character),
            }
        }
        words
    }

    #[test]
    fn every_example_can_be_typed_and_is_of_its_command() {
        for (path, lines) in EXAMPLES {
            for line in *lines {
                // The id of an issue is looked up, which needs a project.
                let line = line.replace("'#12'", "T12");
                let words = words(&line);
                let read = named::parse_task_names(build_cli(), &std::sync::Arc::default())
                    .try_get_matches_from(&words);
                assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
                assert!(
                    path.split(' ').all(|word| words.contains(&word.to_owned())),
                    "{line} is no example of `{path}`"
                );
            }
        }
    }

    #[test]
    fn every_command_has_an_example() {
        fn walk(command: &clap::Command, path: &str, missing: &mut Vec<String>) {
            for below in command.get_subcommands() {
                if below.get_name() == "help" && !path.is_empty() {
                    continue;
                }
                let path = format!("{path} {}", below.get_name()).trim().to_owned();
                if !below.get_after_help().is_some_and(|text| text.to_string().contains("Example")) {
                    missing.push(path.clone());
                }
                walk(below, &path, missing);
            }
        }
        let mut missing = Vec::new();
        walk(&build_cli(), "", &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }

    /// Commands that messages, templates and documents tell people to type, with the file that says so.
    fn advised_commands() -> Vec<(String, String)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut folders =
            vec![root.join("crates"), root.join("docs/guide"), root.join("plugin"), root.join("prompts")];
        let mut files = vec![root.join("README.md")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the folder is there") {
                let path = entry.expect("it can be read").path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                match path.is_dir() {
                    true if name != "tests" && name != "target" => folders.push(path),
                    false if [".rs", ".md", ".html"].iter().any(|ending| name.ends_with(ending)) => {
                        files.push(path)
                    }
                    _ => {}
                }
            }
        }
        let mut advised = Vec::new();
        for path in files {
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let parts = text.split("`landfall ").skip(1).filter_map(|part| part.split(['`', '\n']).next());
            advised.extend(parts.map(|command| (command.to_owned(), path.display().to_string())));
        }
        advised
    }

    #[test]
    fn every_command_that_a_message_or_document_names_exists() {
        let mut cli = build_cli();
        cli.build();
        let advised = advised_commands();
        assert!(advised.len() > 300, "only {} were found", advised.len());
        let mut wrong = Vec::new();
        for (line, file) in advised {
            let mut command = &cli;
            let mut words = line.split_whitespace().peekable();
            words.next_if_eq(&"--json");
            if words.next_if_eq(&"--base").is_some() {
                words.next();
            }
            if words.next_if(|word| ["bridge", "play", "sit"].contains(word)).is_some() {
                continue; // not for people: Landfall starts these itself
            }
            while let Some(below) = words.peek().and_then(|word| command.find_subcommand(word)) {
                command = below;
                words.next();
            }
            let is_word =
                |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
            let mut ahead = words.clone();
            let unknown = ahead
                .peek()
                .filter(|_| std::ptr::eq(command, &cli))
                .filter(|word| is_word(word) && !word.starts_with('-'));
            let option = words.clone().filter_map(|word| word.strip_prefix("--")).find(|option| {
                let name = option.split(['=', ',', ']']).next().unwrap_or_default();
                let known = command.get_arguments().any(|arg| arg.get_long() == Some(name));
                !name.is_empty()
                    && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
                    && !known
                    && !["help", "version"].contains(&name)
            });
            if unknown.is_some()
                || option.is_some()
                || (command.is_hide_set() && !file.contains("/commands/"))
            {
                wrong.push(format!("{file}: landfall {line}"));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} commands cannot be typed or have moved:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }

    #[test]
    fn every_row_names_a_command() {
        for (path, _) in EXAMPLES {
            let mut command = &build_cli();
            for word in path.split(' ') {
                command = command.find_subcommand(word).unwrap_or_else(|| panic!("no command `{path}`"));
            }
        }
    }
}
