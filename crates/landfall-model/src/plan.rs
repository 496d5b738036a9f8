//! What the engine reads out of a plan: its steps, which requirements each covers, and the check that proves it.

use std::collections::BTreeSet;

/// The steps of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanOutline {
    /// In order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanStep {
    /// The number it has in the plan.
    pub number: u32,
    /// In a line.
    pub title: String,
    /// The requirements it covers.
    pub covers: BTreeSet<u32>,
    /// The command that fails before the step and passes after it.
    pub verify: Option<String>,
}

/// The most steps a plan may have.
pub const STEPS_MAX: usize = 200;

const APPROACH_CHARS_MAX: usize = 300; // a few titles tell two plans apart

impl PlanOutline {
    /// Reads a plan. A step is a heading such as `## Step 3: …`, or, where there is none, a line `3. …` at the margin.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let headed = Self::parse_with(text, parse_step_heading);
        if headed.steps.is_empty() { Self::parse_with(text, parse_step_item) } else { headed }
    }

    fn parse_with(text: &str, begins: fn(&str) -> Option<(u32, String)>) -> Self {
        let mut steps: Vec<PlanStep> = Vec::new();
        let mut fenced = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            if fenced {
                continue;
            }
            let next = steps.last().map_or(1, |step| step.number + 1);
            match begins(line) {
                // Numbers go up by one; a list within a step begins anew and is none.
                Some((number, title)) if number == next && steps.len() < STEPS_MAX => {
                    steps.push(PlanStep { number, title, covers: parse_covers(line), verify: None });
                }
                _ => {
                    if let Some(step) = steps.last_mut() {
                        step.covers.extend(parse_covers(line));
                        step.verify = step.verify.take().or_else(|| parse_verify_command(line));
                    }
                }
            }
        }
        Self { steps }
    }

    /// What it does, in the titles of its steps: how it differs from another plan for the same requirements.
    #[must_use]
    pub fn approach(&self) -> String {
        let titles: Vec<&str> = self.steps.iter().map(|step| step.title.as_str()).collect();
        let text = titles.join("; ");
        match text.char_indices().nth(APPROACH_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("at most a few hundred")
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Every requirement that some step covers.
    #[must_use]
    pub fn covered_requirements(&self) -> BTreeSet<u32> {
        self.steps.iter().flat_map(|step| step.covers.iter().copied()).collect()
    }
}

fn parse_step_heading(line: &str) -> Option<(u32, String)> {
    let rest = line.strip_prefix('#')?.trim_start_matches('#').trim_start();
    let rest = rest.strip_prefix("Step ").or_else(|| rest.strip_prefix("step "))?;
    parse_numbered(rest)
}

fn parse_step_item(line: &str) -> Option<(u32, String)> {
    let (number, title) = parse_numbered(line)?;
    let mark = line[leading_digits(line)..].chars().next()?;
    matches!(mark, '.' | ')').then_some((number, title))
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn parse_numbered(text: &str) -> Option<(u32, String)> {
    let length = leading_digits(text);
    let number = text[..length].parse().ok()?;
    let title = text[length..].trim_start_matches(['.', ')', ':', ' ', '-', '–', '—']).trim();
    Some((number, title.chars().take(200).collect()))
}

/// The requirements named after `Covers:` in a line.
fn parse_covers(line: &str) -> BTreeSet<u32> {
    let lower = line.to_ascii_lowercase();
    let Some(at) = lower.find("covers:") else { return BTreeSet::new() };
    let named = lower[at + "covers:".len()..].split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned);
    named.filter_map(|word| word.strip_prefix('r')?.parse().ok()).collect()
}

/// The command after `Verify:` at the beginning of a line, which may be an entry of a list or set in bold.
fn parse_verify_command(line: &str) -> Option<String> {
    const COMMAND_CHARS_MAX: usize = 1_000; // a line of shell; more than that belongs into a file
    let line = line.trim_start().trim_start_matches(['-', '*', ' ']);
    let (word, rest) = line.split_once(':')?;
    let rest = rest.trim().trim_start_matches("**").trim();
    let command =
        rest.strip_prefix('`').and_then(|it| it.split_once('`')).map_or(rest, |(inner, _)| inner).trim();
    let is_verify = word.trim_end_matches('*').eq_ignore_ascii_case("verify");
    let fits = !command.is_empty() && command.chars().count() <= COMMAND_CHARS_MAX;
    (is_verify && fits).then(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_headings_or_a_list_and_name_what_they_cover() {
        let plan = "# Plan\n\n1. not a step\n\n## Step 1: Make it\nCovers: R1, R3\n1. inner\n2. inner\n\n## Step 2 - Test it (Covers: r2)\n";
        let outline = PlanOutline::read(plan);
        assert_eq!(outline.len(), 2);
        assert_eq!(outline.steps[0].title, "Make it");
        assert_eq!(outline.covered_requirements(), BTreeSet::from([1, 2, 3]));
        let list =
            "Goal: x\n\n1. Make it. Covers: R1\n   1. inner\n2) Test it\n```\n3. not this\n```\n3. Ship it\n";
        assert_eq!(
            PlanOutline::read(list).steps.iter().map(|it| it.title.as_str()).collect::<Vec<_>>(),
            ["Make it. Covers: R1", "Test it", "Ship it"]
        );
        assert!(PlanOutline::read("no steps here\n").is_empty());
    }

    #[test]
    fn a_step_names_the_command_that_proves_it() {
        let plan = "## Step 1: Make it\nVerify: sh t/one.sh\nVerify: not this\n## Step 2: Test it\n- **Verify:** `make test`, please\n\
                    ## Step 3: Tell it\nWe verify: nothing\nVerify:\n";
        let named: Vec<_> = PlanOutline::read(plan).steps.into_iter().map(|step| step.verify).collect();
        assert_eq!(named, [Some("sh t/one.sh".to_owned()), Some("make test".to_owned()), None]);
    }
}
