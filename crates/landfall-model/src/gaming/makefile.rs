//! A Makefile as far as its rules can be told without running it: which of its lines decide what a target does.

use std::collections::{BTreeMap, BTreeSet};

use super::shell_text::simple_commands;

/// The rules and variables of one file.
#[derive(Debug, Default)]
pub(super) struct Makefile {
    rules: Vec<MakeRule>,
    variables: Vec<MakeVariable>,
    /// Lines that count whatever is made: includes, special variables, what is evaluated while the file is read.
    always: Vec<MakeLine>,
    includes: Vec<String>,
    exported: BTreeSet<String>,
    exports_all: bool,
    /// Where each variable is set.
    places: BTreeMap<String, Vec<usize>>,
}

/// A line with the conditions around it, which count where it does.
#[derive(Debug)]
struct MakeLine {
    conditions: String,
    text: String,
}

#[derive(Debug)]
struct MakeRule {
    targets: Vec<String>,
    needs: Vec<String>,
    recipe: Vec<MakeLine>,
    conditions: String,
    /// `test: FLAGS = x` in place of needs.
    assignment: Option<String>,
}

#[derive(Debug)]
struct MakeVariable {
    name: String,
    line: MakeLine,
    value: String,
}

/// What a variable is used for. Words that come to a list of files weaken nothing; those of a command may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct VariableUse {
    is_need: bool,
    is_command: bool,
}

/// What some targets use.
struct MakeUse {
    rules: Vec<bool>,
    variables: Vec<bool>,
    targets: BTreeSet<String>,
    /// Every variable that they name, defined here or elsewhere.
    names: BTreeMap<String, VariableUse>,
}

const MAKE_STEPS_MAX: usize = 500; // targets and variables that one command can use
const CONDITIONS_MAX: usize = 8; // around one line; people nest two
const WORDS_MAX: usize = 5_000; // of one list, with its variables in place
const SPECIAL: [&str; 12] = [
    "SHELL",
    ".SHELLFLAGS",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    ".DEFAULT_GOAL",
    ".RECIPEPREFIX",
    ".EXTRA_PREREQS",
    "VPATH",
    "MAKE",
    "PATH",
    ".LIBPATTERNS",
];

impl Makefile {
    pub(super) fn parse(text: &str) -> Self {
        let mut makefile = Self::default();
        let joined = text.replace("\\\n", " ");
        let mut in_define: Option<(String, Vec<String>)> = None;
        let mut conditions: Vec<String> = Vec::new();
        for line in joined.lines() {
            let bare = line.trim();
            let around = conditions[conditions.len().saturating_sub(CONDITIONS_MAX)..].join(" / ");
            if let Some((head, mut lines)) = in_define.take() {
                if bare == "endef" {
                    makefile.define_variable(&head, &lines.join("\n"), around);
                } else {
                    lines.push(line.to_owned());
                    in_define = Some((head, lines));
                }
                continue;
            }
            let code = bare.split(" #").next().unwrap_or_default().trim();
            let first = code.split_whitespace().next().unwrap_or_default();
            match first {
                "ifeq" | "ifneq" | "ifdef" | "ifndef" => {
                    conditions.push(code.to_owned());
                    continue;
                }
                "else" => {
                    if let Some(last) = conditions.last_mut() {
                        *last = format!("{last} {code}");
                    }
                    continue;
                }
                "endif" => {
                    conditions.pop();
                    continue;
                }
                _ => {}
            }
            if let Some(recipe) = line.strip_prefix('\t') {
                if let Some(rule) = makefile.rules.last_mut() {
                    let text = recipe.trim_end().to_owned();
                    rule.recipe.push(MakeLine { conditions: around, text });
                }
                continue;
            }
            if code.is_empty() || code.starts_with('#') {
                continue;
            }
            let define = ["export ", "override ", "private "].iter().fold(code, without_prefix);
            if define.split_whitespace().next() == Some("define") {
                in_define = Some((code.to_owned(), Vec::new()));
                continue;
            }
            makefile.read_line(code, around);
        }
        for (place, variable) in makefile.variables.iter().enumerate() {
            makefile.places.entry(variable.name.clone()).or_default().push(place);
        }
        makefile
    }

    fn define_variable(&mut self, head: &str, value: &str, conditions: String) {
        let mut words = head.split_whitespace().skip_while(|word| *word != "define").skip(1);
        let name = words.next().unwrap_or_default().to_owned();
        if head.starts_with("export ") {
            self.exported.insert(name.clone());
        }
        let line = MakeLine { conditions, text: format!("{head}: {value}") };
        self.variables.push(MakeVariable { name, line, value: value.to_owned() });
    }

    fn read_line(&mut self, code: &str, conditions: String) {
        const EVALUATED: [&str; 11] =
            ["eval", "call", "shell", "foreach", "info", "warning", "error", "if", "or", "and", "file"];
        let line = || MakeLine { conditions: conditions.clone(), text: code.to_owned() };
        let mut words = code.split_whitespace();
        let function = code.strip_prefix("$(").or(code.strip_prefix("${"));
        let function = function.and_then(|inside| inside.split([' ', ')', '}']).next()).unwrap_or_default();
        match words.next().unwrap_or_default() {
            "include" | "-include" | "sinclude" => {
                let names = code.replace("$(wildcard ", " ").replace("${wildcard ", " ");
                self.includes.extend(names.split_whitespace().skip(1).map(str::to_owned));
                self.always.push(line());
                return;
            }
            "vpath" | "unexport" | "undefine" | "load" | "-load" => {
                self.always.push(line());
                return;
            }
            "export" if !code.contains('=') => {
                self.exports_all |= words.clone().next().is_none();
                self.exported.extend(words.map(str::to_owned));
                self.always.push(line());
                return;
            }
            _ if EVALUATED.contains(&function) => {
                self.always.push(line());
                return;
            }
            _ => {}
        }
        let is_exported = code.split_whitespace().take(3).any(|word| word == "export");
        let bare = ["export ", "override ", "private "].iter().fold(code, without_prefix);
        let bare = ["export ", "override ", "private "].iter().fold(bare, without_prefix);
        match (bare.find(':'), bare.find('=')) {
            (Some(colon), equals)
                if equals.is_none_or(|equals| colon < equals)
                    && !bare[colon..].starts_with(":=")
                    && !bare[colon..].starts_with("::=")
                    && !bare[colon..].starts_with(":::=") =>
            {
                self.read_rule(&bare[..colon], bare[colon + 1..].trim_start_matches(':'), line());
            }
            (_, Some(equals)) => {
                let name = bare[..equals].trim_end_matches([':', '?', '+', '!', ' ', '\t']).trim();
                if SPECIAL.contains(&name) {
                    self.always.push(line());
                }
                if is_exported {
                    self.exported.insert(name.to_owned());
                }
                let value = bare[equals + 1..].trim().to_owned();
                let line = MakeLine { conditions, text: bare.to_owned() };
                self.variables.push(MakeVariable { name: name.to_owned(), line, value });
            }
            (_, None) => self.always.push(line()),
        }
    }

    fn read_rule(&mut self, targets: &str, rest: &str, line: MakeLine) {
        const SPECIAL_TARGETS: [&str; 6] =
            [".IGNORE", ".SILENT", ".ONESHELL", ".DEFAULT", ".EXPORT_ALL_VARIABLES", ".POSIX"];
        let targets: Vec<String> = targets.split_whitespace().map(str::to_owned).collect();
        if targets.iter().any(|target| SPECIAL_TARGETS.contains(&target.as_str())) {
            self.exports_all |= targets.iter().any(|target| target == ".EXPORT_ALL_VARIABLES");
            self.always.push(MakeLine { conditions: line.conditions.clone(), text: line.text.clone() });
        }
        let assigned = rest.split_once('=').map(|(name, _)| name.trim_end_matches([':', '?', '+', '!', ' ']));
        let is_name = |name: &str| {
            let name = ["export ", "override ", "private "].iter().fold(name.trim(), without_prefix);
            !name.is_empty() && !name.contains([' ', ';', '\t'])
        };
        let conditions = line.conditions;
        if assigned.is_some_and(is_name) {
            let assignment = Some(line.text);
            let rule = MakeRule { targets, needs: Vec::new(), recipe: Vec::new(), conditions, assignment };
            self.rules.push(rule);
            return;
        }
        let (needs, recipe) = rest.split_once(';').map_or((rest, None), |(needs, line)| (needs, Some(line)));
        let needs = needs.split_whitespace().filter(|word| *word != "|").map(str::to_owned).collect();
        let recipe = recipe
            .map(|text| MakeLine { conditions: conditions.clone(), text: text.trim().to_owned() })
            .into_iter()
            .collect();
        self.rules.push(MakeRule { targets, needs, recipe, conditions, assignment: None });
    }

    /// The files that it includes. A `*` stands for what cannot be told.
    pub(super) fn included_files(&self) -> Vec<String> {
        let expand = |name: &String| {
            let mut name = name.trim_end_matches([')', '}']).to_owned();
            for variable in variable_names(&name) {
                let value = self.variables.iter().rev().find(|known| known.name == variable);
                let value = value.map_or("*", |known| known.value.as_str());
                name = name
                    .replace(&format!("$({variable})"), value)
                    .replace(&format!("${{{variable}}}"), value);
            }
            match name.find('$') {
                Some(at) => format!("{}*", &name[..at]),
                None => name,
            }
        };
        self.includes.iter().map(expand).collect()
    }

    /// What `make` makes when no target is named.
    fn default_target(&self) -> Option<&str> {
        let mut targets = self.rules.iter().flat_map(|rule| &rule.targets);
        targets.find(|target| !target.starts_with('.') && !target.contains('%')).map(String::as_str)
    }

    fn variables_named<'a>(
        &'a self,
        name: &str,
    ) -> impl DoubleEndedIterator<Item = (usize, &'a MakeVariable)> {
        let places = self.places.get(name).map(Vec::as_slice).unwrap_or_default();
        places.iter().map(|place| (*place, &self.variables[*place]))
    }

    /// The words of a list, with variables that hold names in place. What cannot be told becomes a pattern.
    fn words_of(&self, words: &[String]) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for word in words {
            if found.len() >= WORDS_MAX {
                break;
            }
            let Some(at) = word.find('$') else {
                found.push(word.clone());
                continue;
            };
            let name = word.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
            let name = name.or_else(|| word.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')));
            let before = found.len();
            for (_, variable) in self.variables_named(name.unwrap_or_default()) {
                let values = variable.value.split_whitespace().take(WORDS_MAX - found.len().min(WORDS_MAX));
                found.extend(values.map(str::to_owned));
            }
            if found.len() == before {
                let end = word.rfind([')', '}']).map_or(at + 1, |end| end + 1);
                found.push(format!("{}%{}", &word[..at], word.get(end..).unwrap_or_default()));
            }
        }
        found
    }

    fn use_of(&self, targets: &BTreeSet<String>) -> MakeUse {
        let mut names: Vec<String> =
            targets.iter().filter(|target| !target.is_empty() && !target.starts_with('$')).cloned().collect();
        if targets.contains("") || targets.is_empty() {
            names.extend(self.default_target().map(str::to_owned));
        }
        let mut found = MakeUse {
            rules: vec![false; self.rules.len()],
            variables: vec![false; self.variables.len()],
            targets: names.iter().cloned().collect(),
            names: BTreeMap::new(),
        };
        let rule_targets: Vec<Vec<String>> =
            self.rules.iter().map(|rule| self.words_of(&rule.targets)).collect();
        let mut explicit: BTreeSet<&str> = BTreeSet::new();
        for (_, targets) in self.rules.iter().zip(&rule_targets).filter(|(rule, _)| !rule.recipe.is_empty()) {
            explicit.extend(targets.iter().map(String::as_str));
        }
        let exported = self.variables.iter().filter(|variable| self.is_exported(&variable.name));
        let mut pending: Vec<(String, VariableUse)> = exported
            .map(|variable| (variable.name.clone(), VariableUse { is_need: false, is_command: true }))
            .collect();
        // A file that includes this one, or is included by it, names variables so.
        pending.extend(targets.iter().filter_map(|target| named_use(target)));
        self.follow_variables(pending, &mut found, &mut names);
        let mut steps = 0;
        while let Some(name) = names.pop() {
            steps += 1;
            if steps > MAKE_STEPS_MAX {
                break;
            }
            let is_explicit = explicit.contains(name.as_str());
            for (place, rule) in self.rules.iter().enumerate() {
                let by_pattern = |target: &String| {
                    target.split_once('%').is_some_and(|(before, after)| {
                        !is_explicit
                            && name.len() >= before.len() + after.len()
                            && name.starts_with(before)
                            && name.ends_with(after)
                    })
                };
                let targets = &rule_targets[place];
                if found.rules[place] || !(targets.contains(&name) || targets.iter().any(by_pattern)) {
                    continue;
                }
                found.rules[place] = true;
                let needs = self.words_of(&rule.needs).into_iter();
                let new_needs: Vec<String> =
                    needs.filter(|need| found.targets.insert(need.clone())).collect();
                names.extend(new_needs);
                let pending = variables_of(rule);
                self.follow_variables(pending, &mut found, &mut names);
            }
        }
        found
    }

    fn is_exported(&self, name: &str) -> bool {
        self.exports_all || self.exported.contains(name)
    }

    /// Notes the use of variables, and of those that they are made of.
    fn follow_variables(
        &self,
        mut pending: Vec<(String, VariableUse)>,
        found: &mut MakeUse,
        names: &mut Vec<String>,
    ) {
        while let Some((name, way)) = pending.pop() {
            let known = found.names.entry(name.clone()).or_default();
            let more = VariableUse {
                is_need: known.is_need || way.is_need,
                is_command: known.is_command || way.is_command,
            };
            let is_new = *known != more;
            *known = more;
            for (place, variable) in self.variables_named(&name) {
                if found.variables[place] && !is_new {
                    continue;
                }
                found.variables[place] = true;
                pending.extend(variable_names(&variable.value).into_iter().map(|inner| (inner, more)));
                // A variable may hold the names of targets.
                let words = variable.value.split_whitespace().map(str::to_owned);
                names.extend(words.filter(|word| found.targets.insert(word.clone())));
            }
        }
    }

    /// What these targets need from the files that belong to this one: targets, and variables with a `$` before them.
    pub(super) fn needed_targets(&self, targets: &BTreeSet<String>) -> BTreeSet<String> {
        let used = self.use_of(targets);
        let mut needed: BTreeSet<String> =
            targets.iter().filter(|target| !target.is_empty()).cloned().collect();
        let rules = self.rules.iter().zip(&used.rules).filter(|(_, used)| **used).map(|(rule, _)| rule);
        needed.extend(rules.flat_map(|rule| rule.needs.iter().filter(|need| !need.contains('$')).cloned()));
        needed.extend(used.names.iter().map(|(name, way)| match (way.is_command, way.is_need) {
            (true, _) => format!("$!{name}"),
            (false, true) => format!("$:{name}"),
            (false, false) => format!("${name}"),
        }));
        needed
    }

    /// Whether words may come to this variable unseen: files that a target needs, and no part of a command.
    pub(super) fn is_list_of_needs(&self, targets: &BTreeSet<String>, name: &str) -> bool {
        let used = self.use_of(targets);
        used.names.get(name).is_some_and(|way| way.is_need && !way.is_command)
    }

    /// The lines that decide what these targets do.
    pub(super) fn lines_for_targets(&self, targets: &BTreeSet<String>) -> Vec<String> {
        let used = self.use_of(targets);
        let mut lines = Vec::new();
        let mut around = String::new();
        let mut add = |conditions: &str, text: String| {
            if conditions != around {
                around = conditions.to_owned();
                lines.push(around.clone());
            }
            lines.push(text);
        };
        for line in &self.always {
            add(&line.conditions, line.text.clone());
        }
        for (variable, _) in self.variables.iter().zip(&used.variables).filter(|(_, used)| **used) {
            add(&variable.line.conditions, variable.line.text.clone());
        }
        let phony = self.phony_targets();
        for target in used.targets.iter().filter(|target| phony.contains(*target)) {
            add("", format!("{PHONY_MARK}{target}"));
        }
        for (rule, _) in self.rules.iter().zip(&used.rules).filter(|(_, used)| **used) {
            let head = format!("{}: {}", rule.targets.join(" "), rule.needs.join(" "));
            add(&rule.conditions, rule.assignment.clone().unwrap_or_else(|| head.trim_end().to_owned()));
            for line in &rule.recipe {
                add(&line.conditions, format!("\t{}", line.text));
            }
        }
        lines
    }

    fn phony_targets(&self) -> BTreeSet<String> {
        let rules = self.rules.iter().filter(|rule| rule.targets.iter().any(|name| name == ".PHONY"));
        rules.flat_map(|rule| self.words_of(&rule.needs)).collect()
    }

    /// Used targets that are not made if a file of their name is there.
    pub(super) fn targets_like_files(&self, targets: &BTreeSet<String>) -> Vec<String> {
        let used = self.use_of(targets);
        let phony = self.phony_targets();
        let rules =
            self.rules.iter().zip(&used.rules).filter(|(rule, used)| **used && !rule.recipe.is_empty());
        let made: BTreeSet<String> = rules.flat_map(|(rule, _)| self.words_of(&rule.targets)).collect();
        let is_plain = |target: &&String| !target.contains(['%', '$', '*']) && !phony.contains(*target);
        used.targets.intersection(&made).filter(is_plain).cloned().collect()
    }

    /// The commands that these targets run, with their variables in place. Each text is a shell of its own.
    pub(super) fn commands_for_targets(&self, targets: &BTreeSet<String>) -> Vec<String> {
        let used = self.use_of(targets);
        let value = |name: &str| {
            let mut values = self.variables_named(name).rev().filter(|(place, _)| used.variables[*place]);
            values.next().map(|(_, variable)| variable.value.as_str())
        };
        let expand = |line: &MakeLine| {
            let mut line = line.text.trim_start_matches(['@', '-', '+', ' ']).to_owned();
            for name in variable_names(&line) {
                if let Some(value) = value(&name).filter(|value| value.len() < 4_000) {
                    line = line.replace(&format!("$({name})"), value).replace(&format!("${{{name}}}"), value);
                    if name.len() == 1 {
                        line = line.replace(&format!("${name}"), value);
                    }
                }
            }
            line.replace("$$", "$").replace("$(MAKE)", "make").replace("${MAKE}", "make")
        };
        let rules = self.rules.iter().zip(&used.rules).filter(|(_, used)| **used).map(|(rule, _)| rule);
        let recipes = rules.map(|rule| rule.recipe.iter().map(expand).collect::<Vec<_>>());
        match self.rules.iter().any(|rule| rule.targets.iter().any(|target| target == ".ONESHELL")) {
            true => recipes.map(|lines| lines.join("\n")).collect(),
            false => recipes.flatten().collect(),
        }
    }
}

/// How the line begins that says of a used target that it is made always. One that comes weakens nothing.
pub(super) const PHONY_MARK: &str = ".PHONY: ";

fn without_prefix<'a>(code: &'a str, word: &&str) -> &'a str {
    code.strip_prefix(*word).map_or(code, str::trim_start)
}

/// A variable of another file, as [`Makefile::needed_targets`] writes it.
fn named_use(target: &str) -> Option<(String, VariableUse)> {
    let name = target.strip_prefix('$')?;
    Some(match (name.strip_prefix('!'), name.strip_prefix(':')) {
        (Some(name), _) => (name.to_owned(), VariableUse { is_need: false, is_command: true }),
        (None, Some(name)) => (name.to_owned(), VariableUse { is_need: true, is_command: false }),
        (None, None) => (name.to_owned(), VariableUse::default()),
    })
}

/// The variables that a rule names, each with what it is used for.
fn variables_of(rule: &MakeRule) -> Vec<(String, VariableUse)> {
    let of_need = VariableUse { is_need: true, is_command: false };
    let mut found: Vec<(String, VariableUse)> = Vec::new();
    for text in &rule.needs {
        found.extend(variable_names(text).into_iter().map(|name| (name, of_need)));
    }
    for text in rule.targets.iter().chain(&rule.assignment) {
        found.extend(variable_names(text).into_iter().map(|name| (name, VariableUse::default())));
    }
    for line in &rule.recipe {
        let names = variable_names(&line.text);
        if names.is_empty() {
            continue;
        }
        // A mark in place of each variable shows where it stands in a command.
        let mut marked = line.text.trim_start_matches(['@', '-', '+', ' ']).to_owned();
        for name in &names {
            let mark = format!("\u{1}{name}\u{1}");
            marked = marked.replace(&format!("$({name})"), &mark).replace(&format!("${{{name}}}"), &mark);
        }
        let commands = simple_commands(&marked);
        for name in names {
            let mark = format!("\u{1}{name}\u{1}");
            let is_argument = marked.contains(&mark)
                && commands.iter().all(|command| {
                    let is_shell_text = command.words.iter().any(|word| word == "-c" || word == "eval");
                    !command.words[0].contains(&mark) && !is_shell_text
                });
            found.push((name, VariableUse { is_need: false, is_command: !is_argument }));
        }
    }
    found
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
            Some('$') => {
                rest = &rest[1..];
                continue;
            }
            Some(char) if char.is_ascii_alphanumeric() => {
                names.push(char.to_string());
                continue;
            }
            Some(_) | None => continue,
        };
        let ends = |char: char| char == close || matches!(char, ' ' | ':' | '$' | '(' | '{');
        let inside: String = rest[1..].chars().take(NAME_MAX).take_while(|char| !ends(*char)).collect();
        // `$(call f,x)` uses `f`.
        if matches!(inside.as_str(), "call" | "value" | "origin") {
            let named = rest[1 + inside.len()..].trim_start();
            let ends = |char: char| char == close || matches!(char, ',' | ' ' | '$' | '(' | '{');
            names.push(named.chars().take(NAME_MAX).take_while(|char| !ends(*char)).collect());
        } else {
            names.push(inside);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::variable_names;

    #[test]
    fn nested_variables_cost_no_more_than_their_length() {
        let names = variable_names(&"$(".repeat(200_000));
        let bytes: usize = names.iter().map(String::len).sum();
        assert!(names.len() <= 1_000 && bytes <= 100_000, "{} names of {bytes} bytes", names.len());
        assert_eq!(
            variable_names("cc $(CFLAGS) ${LIBS} $x $$y $(call f,$(A)) $@"),
            ["CFLAGS", "LIBS", "x", "f", "A"]
        );
    }
}
