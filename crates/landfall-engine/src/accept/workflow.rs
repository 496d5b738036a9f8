//! Workflow files of a forge, read as far as needed: which job runs which command, and what the job is called where its result is
//! shown. Line by line and by indentation; what is written in another way is not found, and the criterion stays open.

/// A job of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct WorkflowJob {
    /// What the file calls it.
    pub key: String,
    /// What it is shown as.
    pub name: Option<String>,
    /// The command lines it runs.
    pub runs: Vec<String>,
}

impl WorkflowJob {
    /// Whether a check of this name is this job: by name, by key, with a matrix behind it or a caller before it.
    pub fn is_called(&self, check: &str) -> bool {
        let name = self.name.as_deref().unwrap_or(&self.key);
        // What an expression becomes is not known here.
        let (known, whole) = name.split_once("${{").map_or((name, true), |(known, _)| (known, false));
        let check = check.rsplit_once(" / ").map_or(check, |(_, last)| last);
        if whole {
            check == known || check.strip_prefix(known).is_some_and(|rest| rest.starts_with(" ("))
        } else {
            !known.is_empty() && check.starts_with(known)
        }
    }
}

/// The jobs of a workflow.
pub(super) fn parse_workflow_jobs(text: &str) -> Vec<WorkflowJob> {
    let mut jobs: Vec<WorkflowJob> = Vec::new();
    let (mut inside, mut key_indent, mut block): (bool, Option<usize>, Option<usize>) = (false, None, None);
    for line in text.lines() {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if let Some(at) = block {
            if trimmed.is_empty() {
                continue;
            }
            if indent > at {
                if let Some(job) = jobs.last_mut() {
                    job.runs.push(trimmed.to_owned());
                }
                continue;
            }
            block = None;
        }
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if indent == 0 {
            inside = trimmed == "jobs:";
            continue;
        }
        if !inside {
            continue;
        }
        let keys = *key_indent.get_or_insert(indent);
        if indent == keys {
            if let Some(key) = trimmed.strip_suffix(':') {
                jobs.push(WorkflowJob { key: strip_quotes(key), ..WorkflowJob::default() });
            }
            continue;
        }
        let Some(job) = jobs.last_mut() else { continue };
        let word = trimmed.strip_prefix("- ").unwrap_or(trimmed).trim_start();
        if let Some(name) = trimmed.strip_prefix("name:")
            && job.name.is_none()
            && job.runs.is_empty()
            && indent <= keys + 4
            && !trimmed.starts_with('-')
        {
            job.name = Some(strip_quotes(name));
        } else if let Some(run) = word.strip_prefix("run:") {
            let run = run.trim();
            match run.chars().next() {
                Some('|' | '>') => block = Some(indent),
                Some(_) => job.runs.push(strip_quotes(run)),
                None => {}
            }
        } else if trimmed == "steps:" {
            job.name.get_or_insert_with(|| job.key.clone()); // names below are those of steps
        }
    }
    jobs
}

fn strip_quotes(text: &str) -> String {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inner('"').or_else(|| inner('\'')).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::parse_workflow_jobs;

    #[test]
    fn jobs_are_found_with_their_names_and_commands() {
        let text = "name: CI\non: push\njobs:\n  test:\n    name: \"Run tests\"\n    runs-on: x\n    steps:\n      - uses: a/b\n      - name: step\n        run: cargo test\n  lint:\n    strategy:\n      matrix: {}\n    steps:\n      - run: |\n          cargo fmt --check\n          cargo clippy\n\n      - run: 'make doc'\n  # note\n  m:\n    name: On ${{ matrix.os }}\n    steps: []\nenv:\n  run: no\n";
        let jobs = parse_workflow_jobs(text);
        let seen: Vec<_> =
            jobs.iter().map(|job| (job.key.as_str(), job.name.as_deref(), job.runs.join(";"))).collect();
        assert_eq!(
            seen,
            [
                ("test", Some("Run tests"), "cargo test".to_owned()),
                ("lint", Some("lint"), "cargo fmt --check;cargo clippy;make doc".to_owned()),
                ("m", Some("On ${{ matrix.os }}"), String::new()),
            ]
        );
        let [test, lint, m] = &jobs[..] else { panic!("three") };
        assert!(test.is_called("Run tests") && test.is_called("CI / Run tests") && !test.is_called("test"));
        assert!(lint.is_called("lint (linux, 1)") && !lint.is_called("linting"));
        assert!(m.is_called("On linux") && !m.is_called("Off"));
    }
}
