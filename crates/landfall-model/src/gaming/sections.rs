//! The parts of shared settings files that decide about the checks: the rest of them may change unseen.

use std::collections::{BTreeMap, BTreeSet};

use super::ecosystems::{PACKAGE_KEYS, SectionRule};
use super::json_text::{members, string};

/// The lines of a settings file that count by a rule of the table.
pub(super) fn settings_lines(text: &str, rule: &SectionRule) -> Vec<String> {
    let mut counts = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_start_matches('[').trim_end_matches(']');
            let begins = |section: &str| {
                header
                    .strip_prefix(section)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
            };
            counts = rule.sections.iter().any(|section| begins(section));
        }
        if counts || rule.lines.iter().any(|beginning| line.starts_with(beginning)) {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// The scripts of a package.json that these names run, and its settings for runners, a line each. A text that is no
/// JSON object counts as a whole.
pub(super) fn package_lines(text: &str, scripts: &BTreeSet<String>) -> Vec<String> {
    let Some(package) = members(text) else {
        return text.lines().map(|line| line.trim().to_owned()).collect();
    };
    let mut lines = Vec::new();
    for (name, line) in package_scripts(text) {
        if scripts.contains(&name) {
            lines.push(format!("\"{name}\": \"{line}\""));
        }
    }
    for (name, value) in &package {
        if PACKAGE_KEYS.contains(&name.as_str()) {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("\"{name}\": {value}"));
        }
    }
    // A package that comes from this repository can be any program.
    let tables = ["dependencies", "devDependencies", "overrides", "resolutions"];
    for (_, table) in package.iter().filter(|(name, _)| tables.contains(&name.as_str())) {
        for (name, from) in members(table).unwrap_or_default() {
            let is_local = |from: &String| {
                ["file:", "link:", "portal:", "./", "../"].iter().any(|mark| from.starts_with(mark))
            };
            if string(from).as_ref().is_some_and(is_local) {
                lines.push(format!("\"{name}\": {from}"));
            }
        }
    }
    lines
}

/// The scripts of a package.json. Of two with one name the later one counts, as in npm.
pub(super) fn package_scripts(text: &str) -> BTreeMap<String, String> {
    let tables = members(text).unwrap_or_default().into_iter().filter(|(name, _)| name == "scripts");
    let scripts = tables.flat_map(|(_, table)| members(table).unwrap_or_default());
    scripts.filter_map(|(name, line)| Some((name, string(line)?))).collect()
}

/// A Makefile as far as its rules can be told without running it.
#[derive(Debug, Default)]
pub(super) struct Makefile {
    rules: Vec<MakeRule>,
    variables: Vec<(String, String)>,
    /// Lines that count whatever is made: conditions, includes, special variables.
    always: Vec<String>,
    pub includes: Vec<String>,
}

#[derive(Debug)]
struct MakeRule {
    targets: Vec<String>,
    needs: Vec<String>,
    recipe: Vec<String>,
}

const MAKE_STEPS_MAX: usize = 500; // targets and variables that one command can use

impl Makefile {
    pub(super) fn parse(text: &str) -> Self {
        let mut makefile = Self::default();
        let joined = text.replace("\\\n", " ");
        let mut in_define: Option<(String, Vec<String>)> = None;
        for line in joined.lines() {
            let bare = line.trim();
            if let Some((name, mut lines)) = in_define.take() {
                if bare == "endef" {
                    makefile.variables.push((name, lines.join("\n")));
                } else {
                    lines.push(line.to_owned());
                    in_define = Some((name, lines));
                }
                continue;
            }
            if let Some(recipe) = line.strip_prefix('\t') {
                if let Some(rule) = makefile.rules.last_mut() {
                    rule.recipe.push(recipe.trim_end().to_owned());
                }
                continue;
            }
            let code = bare.split(" #").next().unwrap_or_default().trim();
            if code.is_empty() || code.starts_with('#') {
                continue;
            }
            let first = code.split_whitespace().next().unwrap_or_default();
            match first {
                "include" | "-include" | "sinclude" => {
                    makefile.includes.extend(code.split_whitespace().skip(1).map(str::to_owned));
                    makefile.always.push(code.to_owned());
                }
                "ifeq" | "ifneq" | "ifdef" | "ifndef" | "else" | "endif" | "vpath" | "unexport" => {
                    makefile.always.push(code.to_owned());
                }
                "define" => {
                    let name = code.split_whitespace().nth(1).unwrap_or_default();
                    in_define = Some((name.to_owned(), Vec::new()));
                }
                _ => makefile.read_line(code),
            }
        }
        makefile
    }

    fn read_line(&mut self, code: &str) {
        let code = ["export ", "override ", "private "]
            .iter()
            .fold(code, |code, word| code.strip_prefix(word).unwrap_or(code));
        let equals = code.find('=');
        let colon = code.find(':');
        match (colon, equals) {
            // `a := b`, `a = b`, `a ?= b`; `test: A = b` is a variable of a rule.
            (Some(colon), Some(equals))
                if colon < equals
                    && !code[colon..].starts_with(":=")
                    && !code[colon..].starts_with("::=") =>
            {
                self.always.push(code.to_owned());
            }
            (_, Some(equals)) => {
                let name = code[..equals].trim_end_matches([':', '?', '+', '!', ' ', '\t']).trim();
                const SPECIAL: [&str; 6] =
                    ["SHELL", ".SHELLFLAGS", "MAKEFLAGS", ".DEFAULT_GOAL", "MAKE", "PATH"];
                if SPECIAL.contains(&name) {
                    self.always.push(code.to_owned());
                }
                self.variables.push((name.to_owned(), code.to_owned()));
            }
            (Some(colon), None) => {
                let targets: Vec<String> = code[..colon].split_whitespace().map(str::to_owned).collect();
                let rest = code[colon + 1..].trim_start_matches(':');
                let (needs, recipe) =
                    rest.split_once(';').map_or((rest, None), |(needs, recipe)| (needs, Some(recipe)));
                let needs = needs.split_whitespace().filter(|word| *word != "|").map(str::to_owned).collect();
                let recipe = recipe.map(|line| line.trim().to_owned()).into_iter().collect();
                let special = targets.iter().any(|target| {
                    matches!(
                        target.as_str(),
                        ".IGNORE" | ".SILENT" | ".ONESHELL" | ".DEFAULT" | ".EXPORT_ALL_VARIABLES"
                    )
                });
                if special {
                    self.always.push(code.to_owned());
                }
                self.rules.push(MakeRule { targets, needs, recipe });
            }
            (None, None) => {}
        }
    }

    /// What `make` makes when no target is named.
    fn default_target(&self) -> Option<&str> {
        let mut targets = self.rules.iter().flat_map(|rule| &rule.targets);
        targets.find(|target| !target.starts_with('.') && !target.contains('%')).map(String::as_str)
    }

    fn used_rules(&self, targets: &BTreeSet<String>) -> (Vec<&MakeRule>, Vec<&(String, String)>) {
        let mut names: Vec<String> = targets.iter().cloned().collect();
        if targets.contains("") || targets.is_empty() {
            names.extend(self.default_target().map(str::to_owned));
        }
        let mut known: BTreeSet<String> = names.iter().cloned().collect();
        let mut used = vec![false; self.rules.len()];
        let mut variables_used = vec![false; self.variables.len()];
        let mut steps = 0;
        // An including file names variables of this one so.
        for name in targets.iter().filter_map(|target| target.strip_prefix('$')) {
            for (used, (known, _)) in variables_used.iter_mut().zip(&self.variables) {
                *used |= known == name;
            }
        }
        while let Some(name) = names.pop() {
            steps += 1;
            if steps > MAKE_STEPS_MAX {
                break;
            }
            let is_explicit =
                self.rules.iter().any(|rule| rule.targets.contains(&name) && !rule.recipe.is_empty());
            for (place, rule) in self.rules.iter().enumerate() {
                let by_pattern = |target: &String| {
                    target.split_once('%').is_some_and(|(before, after)| {
                        !is_explicit
                            && name.len() >= before.len() + after.len()
                            && name.starts_with(before)
                            && name.ends_with(after)
                    })
                };
                if used[place] || !(rule.targets.contains(&name) || rule.targets.iter().any(by_pattern)) {
                    continue;
                }
                used[place] = true;
                let texts = rule.needs.iter().chain(&rule.recipe);
                let named: Vec<String> = texts.clone().flat_map(|text| variable_names(text)).collect();
                names.extend(rule.needs.iter().filter(|need| known.insert((*need).clone())).cloned());
                let mut pending = named;
                while let Some(variable) = pending.pop() {
                    for (place, (name, text)) in self.variables.iter().enumerate() {
                        if *name == variable && !variables_used[place] {
                            variables_used[place] = true;
                            pending.extend(variable_names(text));
                            // A variable may hold the names of targets.
                            let words = text
                                .split_once('=')
                                .map(|(_, value)| value)
                                .unwrap_or_default()
                                .split_whitespace();
                            names.extend(words.map(str::to_owned).filter(|word| known.insert(word.clone())));
                        }
                    }
                }
            }
        }
        let rules = self.rules.iter().zip(&used).filter(|(_, used)| **used).map(|(rule, _)| rule).collect();
        let variables = self
            .variables
            .iter()
            .zip(&variables_used)
            .filter(|(_, used)| **used)
            .map(|(variable, _)| variable)
            .collect();
        (rules, variables)
    }

    /// What these targets need from the files that this one includes: targets, and variables with a `$` before them.
    pub(super) fn needed_targets(&self, targets: &BTreeSet<String>) -> BTreeSet<String> {
        let (rules, variables) = self.used_rules(targets);
        let mut needed: BTreeSet<String> =
            targets.iter().filter(|target| !target.is_empty()).cloned().collect();
        let texts = rules.iter().flat_map(|rule| rule.needs.iter().chain(&rule.recipe));
        let texts = texts.chain(variables.iter().map(|(_, text)| text));
        needed.extend(texts.flat_map(|text| variable_names(text)).map(|name| format!("${name}")));
        needed.extend(rules.iter().flat_map(|rule| rule.needs.iter().cloned()));
        needed
    }

    /// The lines that decide what these targets do.
    pub(super) fn lines(&self, targets: &BTreeSet<String>) -> Vec<String> {
        let (rules, variables) = self.used_rules(targets);
        let mut lines = self.always.clone();
        lines.extend(
            variables.into_iter().map(|(name, text)| {
                if text.contains('=') { text.clone() } else { format!("{name}: {text}") }
            }),
        );
        for rule in rules {
            lines.push(format!("{}: {}", rule.targets.join(" "), rule.needs.join(" ")).trim_end().to_owned());
            lines.extend(rule.recipe.iter().map(|line| format!("\t{line}")));
        }
        lines
    }

    /// The commands that these targets run, with their variables in place. Each text is a shell of its own.
    pub(super) fn commands(&self, targets: &BTreeSet<String>) -> Vec<String> {
        let (rules, variables) = self.used_rules(targets);
        let value = |name: &str| {
            variables
                .iter()
                .rev()
                .find(|(known, _)| known == name)
                .and_then(|(_, text)| text.split_once('='))
                .map(|(_, value)| value.trim())
        };
        let expand = |line: &String| {
            let mut line = line.trim_start_matches(['@', '-', '+', ' ']).to_owned();
            for name in variable_names(&line) {
                if let Some(value) = value(&name).filter(|value| value.len() < 4_000) {
                    line = line.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
                }
            }
            line.replace("$$", "$").replace("$(MAKE)", "make").replace("${MAKE}", "make")
        };
        let recipes = rules.iter().map(|rule| rule.recipe.iter().map(expand).collect::<Vec<_>>());
        match self.rules.iter().any(|rule| rule.targets.iter().any(|target| target == ".ONESHELL")) {
            true => recipes.map(|lines| lines.join("\n")).collect(),
            false => recipes.flatten().collect(),
        }
    }
}

/// The names of the variables that a text uses. The text may be hostile: both the names and their number are bounded, or a
/// line of nested parentheses would cost the square of its length.
fn variable_names(text: &str) -> Vec<String> {
    const NAME_MAX: usize = 100;
    const NAMES_MAX: usize = 1_000;
    let mut names = Vec::new();
    let mut rest = text;
    while names.len() < NAMES_MAX
        && let Some(at) = rest.find('$')
    {
        rest = &rest[at + 1..];
        let close = match rest.chars().next() {
            Some('(') => ')',
            Some('{') => '}',
            Some(_) | None => continue,
        };
        let ends = |char: char| char == close || matches!(char, ' ' | ':' | '$' | '(' | '{');
        let inside: String = rest[1..].chars().take(NAME_MAX).take_while(|char| !ends(*char)).collect();
        names.push(inside);
    }
    names
}

/// Whether `now` only adds words to a variable or a list of what `before` has, and no word that could be a command.
pub(super) fn only_adds_words(before: &str, now: &str) -> bool {
    let Some(((name, old), (name_now, new))) = before.split_once('=').zip(now.split_once('=')) else {
        return false;
    };
    let mut new_words = new.split_whitespace();
    let is_harmless = |word: &str| {
        word.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '/' | '-'))
            && !word.starts_with('-')
    };
    let mut added = Vec::new();
    for old_word in old.split_whitespace() {
        loop {
            match new_words.next() {
                Some(word) if word == old_word => break,
                Some(word) => added.push(word),
                None => return false,
            }
        }
    }
    added.extend(new_words);
    // The first word may be the program; it stays.
    name == name_now
        && old.split_whitespace().next() == new.split_whitespace().next()
        && added.iter().all(|word| is_harmless(word))
}

#[cfg(test)]
mod bounds {
    use super::variable_names;

    #[test]
    fn nested_variables_cost_no_more_than_their_length() {
        let names = variable_names(&"$(".repeat(200_000));
        let bytes: usize = names.iter().map(String::len).sum();
        assert!(names.len() <= 1_000 && bytes <= 100_000, "{} names of {bytes} bytes", names.len());
        assert_eq!(variable_names("cc $(CFLAGS) ${LIBS} $x"), ["CFLAGS", "LIBS"]);
    }
}
