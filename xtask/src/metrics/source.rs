//! What is in the Rust files of a tree: items with the names that they use, and what is counted by tokens or lines.
//!
//! It reads tokens, not types: enough to count, and quick to build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// All Rust files of the crates.
pub struct SourceTree {
    files: Vec<SourceFile>,
    /// Words of templates, which call methods.
    pub template_words: BTreeSet<String>,
}

impl SourceTree {
    /// Files that are part of the product.
    pub fn production(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| !file.is_test)
    }

    /// Files of tests, and of the crate that only tests use.
    pub fn tests(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_test)
    }
}

/// What an item declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    Type,
    Function,
    /// A constant, static, trait or macro.
    Other,
    /// An implementation of a trait: used as soon as its type is.
    TraitImpl,
    /// What is always used: a call of a macro beside items.
    Always,
}

/// A declaration with the names in it.
#[derive(Debug)]
pub struct Item {
    pub kind: ItemKind,
    pub name: String,
    pub is_public: bool,
    pub line: usize,
    pub uses: BTreeSet<String>,
}

/// One Rust file.
#[derive(Debug, Default)]
pub struct SourceFile {
    /// From the root of the repository.
    pub path: String,
    pub is_test: bool,
    pub items: Vec<Item>,
    /// Names that its tests use.
    pub test_uses: BTreeSet<String>,
    /// Modules that are declared for tests alone.
    test_modules: BTreeSet<String>,
    /// Lines of tests.
    test_lines: BTreeSet<usize>,
    pub code_lines: usize,
    pub comments: usize,
    pub short_docs: usize,
    pub closures_over_it: usize,
    /// Lines that compare something with a text written there.
    pub text_comparisons: Vec<usize>,
    pub dropped_calls: usize,
    pub locks_by_owner: BTreeMap<String, usize>,
    pub mutable_statics: Vec<(String, usize)>,
    /// Each thread has its own: no state of the process, but hidden all the same, so they are counted apart.
    pub thread_locals: Vec<(String, usize)>,
    pub sleeps: Vec<usize>,
}

impl SourceFile {
    /// A line of it as people write it.
    pub fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }
}

/// Every Rust file of the crates below `root`.
pub fn read_tree(root: &Path) -> Result<SourceTree> {
    let mut files = Vec::new();
    let mut template_words = BTreeSet::new();
    let folders = ["crates", "bench", "fuzz"].map(|folder| root.join(folder));
    let mut folders: Vec<_> = folders.into_iter().filter(|folder| folder.is_dir()).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
            let path = entry?.path();
            let name = path.strip_prefix(root).context("below the root")?.to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.ends_with("/target") {
                    folders.push(path);
                }
                continue;
            }
            let read = || std::fs::read_to_string(&path).with_context(|| format!("read {name}"));
            if name.ends_with(".html") {
                template_words.extend(words(&read()?));
            } else if name.ends_with(".rs") {
                let is_test = !name.starts_with("crates/")
                    || name.contains("/tests/")
                    || name.contains("/examples/")
                    || name.contains("/landfall-testkit/");
                files.push(read_file(&name, is_test, &read()?).with_context(|| format!("read {name}"))?);
            }
        }
    }
    // `#[cfg(test)] mod tests;` is in a file of its own.
    let of_tests: BTreeSet<String> = files.iter().flat_map(test_files).collect();
    for file in &mut files {
        file.is_test |= of_tests.contains(&file.path);
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(SourceTree { files, template_words })
}

/// The files of the modules that a file declares for tests.
fn test_files(file: &SourceFile) -> Vec<String> {
    let stem = file.path.trim_end_matches(".rs");
    let folder = ["/mod", "/lib", "/main"].iter().find_map(|name| stem.strip_suffix(name)).unwrap_or(stem);
    let files = |module: &String| [format!("{folder}/{module}.rs"), format!("{folder}/{module}/mod.rs")];
    file.test_modules.iter().flat_map(files).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let parts = text.split(|char: char| !(char.is_alphanumeric() || char == '_'));
    parts.filter(|word| !word.is_empty()).map(str::to_owned)
}

/// The variants of enums of these names in a text.
pub fn variants(text: &str, enums: &[&str]) -> BTreeSet<String> {
    let Ok(stream) = text.parse::<TokenStream>() else { return BTreeSet::new() };
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut found = BTreeSet::new();
    for (at, tree) in trees.iter().enumerate() {
        let is_one = matches!(tree, TokenTree::Ident(name) if enums.iter().any(|wanted| name == wanted));
        let is_enum = at > 0 && is_word(&trees[at - 1], "enum");
        if let (true, Some(TokenTree::Group(body))) = (is_one && is_enum, trees.get(at + 1)) {
            let mut begins = true;
            for tree in body.stream() {
                match &tree {
                    TokenTree::Ident(name) if begins => {
                        found.insert(format!("{} {name}", trees[at]));
                        begins = false;
                    }
                    TokenTree::Punct(punct) if punct.as_char() == ',' => begins = true,
                    _ => {}
                }
            }
        }
    }
    found
}

fn read_file(path: &str, is_test: bool, text: &str) -> Result<SourceFile> {
    let mut file = SourceFile { path: path.to_owned(), is_test, ..SourceFile::default() };
    let stream = text.parse::<TokenStream>().map_err(|error| anyhow::anyhow!("{error}"))?;
    read_items(&mut file, stream);
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if file.test_lines.contains(&(number + 1)) || code.is_empty() {
            continue;
        }
        if !code.starts_with("//") {
            file.code_lines += 1;
        } else if !code.starts_with("///") && !code.starts_with("//!") && code.len() < line.len() {
            file.comments += 1;
        }
    }
    Ok(file)
}

fn is_word(tree: &TokenTree, word: &str) -> bool {
    matches!(tree, TokenTree::Ident(ident) if ident == word)
}

fn is_sign(tree: Option<&TokenTree>, sign: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Reads the items of a module, a trait or an implementation.
fn read_items(file: &mut SourceFile, stream: TokenStream) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        let end = item_end(&trees, at);
        read_item(file, &trees[at..end]);
        at = end;
    }
}

/// The place behind the item that begins here: behind its body, or its semicolon.
fn item_end(trees: &[TokenTree], begin: usize) -> usize {
    let mut at = begin;
    // Its braces are no body: a value, or the list of an import.
    let mut is_value = false;
    let mut has_body = false;
    while at < trees.len() {
        match &trees[at] {
            TokenTree::Punct(punct) if punct.as_char() == ';' => return at + 1,
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                // An attribute, perhaps of the file.
                at += 1 + usize::from(is_sign(trees.get(at + 1), '!'));
            }
            TokenTree::Punct(punct) if punct.as_char() == '=' => is_value |= !has_body,
            TokenTree::Ident(word) if word == "use" => is_value |= !has_body,
            TokenTree::Ident(word) => {
                let word = word.to_string();
                has_body |=
                    matches!(word.as_str(), "fn" | "impl" | "trait" | "struct" | "enum" | "union" | "mod");
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !is_value => return at + 1,
            _ => {}
        }
        at += 1;
    }
    trees.len()
}

fn read_item(file: &mut SourceFile, trees: &[TokenTree]) {
    let mut at = 0;
    let mut is_for_tests = false;
    let mut uses = BTreeSet::new();
    while is_sign(trees.get(at), '#') {
        at += 1 + usize::from(is_sign(trees.get(at + 1), '!'));
        if let Some(TokenTree::Group(attribute)) = trees.get(at) {
            let text = attribute.to_string().replace(' ', "");
            is_for_tests |=
                text.starts_with("[cfg(test") || text.starts_with("[cfg(all(test") || text == "[test]";
            // Planted bugs are switched on by the command that looks whether the simulation finds them, and by nothing else.
            is_for_tests |= text == "[cfg(feature=\"seeded-bugs\")]";
            // `#[serde(default = "name")]` calls a function by its name. Documentation names things that it does not use.
            if !text.starts_with("[doc=") {
                uses.extend(words(&text));
            }
        }
        at += 1;
    }
    let Some(first) = trees.get(at) else { return };
    let line = first.span().start().line;
    let is_public = is_word(first, "pub");
    if is_public {
        at += 1;
        if matches!(trees.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
        {
            at += 1;
        }
    }
    let rest = &trees[at.min(trees.len())..];
    let keyword = rest.iter().find_map(|tree| match tree {
        TokenTree::Ident(word) => {
            let word = word.to_string();
            // What may stand before the word that says what it is.
            let is_qualifier = match word.as_str() {
                "async" | "unsafe" | "extern" | "default" => true,
                "const" => rest.iter().any(|tree| is_word(tree, "fn")),
                _ => false,
            };
            (!is_qualifier).then_some(word)
        }
        _ => None,
    });
    let keyword = keyword.unwrap_or_default();
    let name = name_behind(rest, &keyword);
    if is_for_tests {
        let last = trees.last().map_or(line, |tree| tree.span().end().line);
        file.test_lines.extend(trees[0].span().start().line..=last);
        collect_names(trees.iter().cloned().collect(), &mut file.test_uses);
        if keyword == "mod" && is_sign(trees.last(), ';') {
            file.test_modules.insert(name);
        }
        return;
    }
    let body = rest.iter().rev().find_map(|tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
        _ => None,
    });
    let all: TokenStream = rest.iter().cloned().collect();
    let kind = match keyword.as_str() {
        "mod" => {
            body.into_iter().for_each(|body| read_items(file, body));
            return;
        }
        "impl" => return read_impl(file, rest, body, line),
        "use" => return read_use(file, rest, line),
        "struct" | "enum" | "union" => {
            file.short_docs += short_docs(&all);
            let locks = locks(&all);
            if locks > 0 {
                *file.locks_by_owner.entry(name.clone()).or_default() += locks;
            }
            ItemKind::Type
        }
        "type" => ItemKind::Type,
        "fn" => ItemKind::Function,
        "const" | "static" | "trait" | "macro_rules" => ItemKind::Other,
        _ => ItemKind::Always,
    };
    count_tokens(file, &all, false);
    if keyword == "static" && is_mutable(&all) {
        let locks = locks(&all);
        if locks > 0 {
            *file.locks_by_owner.entry(format!("static {name}")).or_default() += locks;
        }
    }
    collect_names(all, &mut uses);
    uses.remove(&name);
    file.items.push(Item { kind, name, is_public, line, uses });
}

/// The name behind its keyword.
fn name_behind(trees: &[TokenTree], keyword: &str) -> String {
    let mut rest = trees.iter().skip_while(|tree| !is_word(tree, keyword)).skip(1);
    rest.find_map(|tree| match tree {
        TokenTree::Ident(name) if name != "mut" => Some(name.to_string()),
        _ => None,
    })
    .unwrap_or_default()
}

/// The functions of a type, or what a trait does for it.
fn read_impl(file: &mut SourceFile, head: &[TokenTree], body: Option<TokenStream>, line: usize) {
    let Some(body) = body else { return };
    let of_trait = head.iter().position(|tree| is_word(tree, "for") && !is_lifetime_bound(head, tree));
    let Some(place) = of_trait else { return read_items(file, body) };
    // The last name of its path; arguments and bounds come behind it.
    let path =
        head[place + 1..].iter().take_while(|tree| !is_sign(Some(tree), '<') && !is_word(tree, "where"));
    let names =
        path.filter_map(|tree| if let TokenTree::Ident(name) = tree { Some(name.to_string()) } else { None });
    let name = names.last();
    let all: TokenStream = head.iter().cloned().collect();
    count_tokens(file, &all, false);
    let mut uses = BTreeSet::new();
    collect_names(all, &mut uses);
    let name = name.unwrap_or_default();
    file.items.push(Item { kind: ItemKind::TraitImpl, name, is_public: false, line, uses });
}

/// `for<'a>` is no implementation.
fn is_lifetime_bound(head: &[TokenTree], word: &TokenTree) -> bool {
    let place = head.iter().position(|tree| std::ptr::eq(tree, word)).unwrap_or(0);
    is_sign(head.get(place + 1), '<')
}

/// `use a::b as c`: whoever names `c` uses `b`. Any other import uses nothing by itself.
fn read_use(file: &mut SourceFile, trees: &[TokenTree], line: usize) {
    let mut flat = Vec::new();
    flatten(trees.iter().cloned().collect(), &mut flat);
    for part in flat.windows(3).filter(|part| part[1] == "as") {
        let uses = BTreeSet::from([part[0].clone()]);
        file.items.push(Item {
            kind: ItemKind::TraitImpl,
            name: part[2].clone(),
            is_public: false,
            line,
            uses,
        });
    }
}

fn flatten(stream: TokenStream, flat: &mut Vec<String>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => flatten(group.stream(), flat),
            other => flat.push(other.to_string()),
        }
    }
}

/// Every name in the tokens, also those in texts that are formatted and in attributes.
fn collect_names(stream: TokenStream, names: &mut BTreeSet<String>) {
    let mut after_hash = false;
    for tree in stream {
        match tree {
            TokenTree::Ident(name) => {
                names.insert(name.to_string().trim_start_matches("r#").to_owned());
            }
            TokenTree::Group(group) => {
                let is_doc = after_hash && group.to_string().replace(' ', "").starts_with("[doc=");
                if !is_doc {
                    collect_names(group.stream(), names);
                }
            }
            TokenTree::Literal(text) => {
                let text = text.to_string();
                if text.starts_with('"') || text.starts_with("r") {
                    let captured = text.split('{').skip(1).filter_map(|part| part.split(['}', ':']).next());
                    names.extend(captured.flat_map(words));
                    // A whole name in quotes: serde, askama and clap call functions so.
                    let whole = text.trim_matches('"');
                    if whole.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | ':')) {
                        names.extend(words(whole));
                    }
                }
                after_hash = false;
                continue;
            }
            TokenTree::Punct(punct) => {
                after_hash = punct.as_char() == '#';
                continue;
            }
        }
        after_hash = false;
    }
}

/// `Mutex<…>` and `RwLock<…>` in a declaration.
fn locks(stream: &TokenStream) -> usize {
    let trees: Vec<TokenTree> = stream.clone().into_iter().collect();
    let inside: usize = trees
        .iter()
        .map(|tree| if let TokenTree::Group(group) = tree { locks(&group.stream()) } else { 0 })
        .sum();
    let here = trees.windows(2).filter(|pair| {
        (is_word(&pair[0], "Mutex") || is_word(&pair[0], "RwLock")) && is_sign(Some(&pair[1]), '<')
    });
    inside + here.count()
}

/// Whether a static can change while the program runs.
fn is_mutable(stream: &TokenStream) -> bool {
    let before_value = stream.clone().into_iter().take_while(|tree| !is_sign(Some(tree), '='));
    before_value.into_iter().any(|tree| match tree {
        TokenTree::Ident(word) => {
            let word = word.to_string();
            matches!(
                word.as_str(),
                "mut" | "Mutex" | "RwLock" | "OnceLock" | "Cell" | "RefCell" | "OnceCell" | "Condvar"
            ) || word.starts_with("Atomic")
        }
        _ => false,
    })
}

/// Docs of fields and variants of up to five words.
fn short_docs(declaration: &TokenStream) -> usize {
    const WORDS: usize = 5;
    let mut found = 0;
    let body = declaration.clone().into_iter().filter_map(|tree| match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
        _ => None,
    });
    for stream in body {
        let mut docs = String::new();
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) if at > 0 && is_sign(trees.get(at - 1), '#') => {
                    let mut inside = group.stream().into_iter();
                    if inside.next().is_some_and(|tree| is_word(&tree, "doc")) {
                        docs.push_str(&inside.nth(1).map(|text| text.to_string()).unwrap_or_default());
                        docs.push(' ');
                    }
                }
                TokenTree::Ident(_) if !docs.is_empty() => {
                    let length = docs.replace('"', " ").split_whitespace().count();
                    found += usize::from(length <= WORDS);
                    docs.clear();
                }
                // Fields of a variant.
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let inner = TokenTree::Group(group.clone());
                    found += short_docs(&std::iter::once(inner).collect());
                }
                _ => {}
            }
        }
    }
    found
}

/// What is counted anywhere in an item.
fn count_tokens(file: &mut SourceFile, stream: &TokenStream, in_thread_local: bool) {
    let trees: Vec<TokenTree> = stream.clone().into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        let next = trees.get(at + 1);
        let before = at.checked_sub(1).and_then(|at| trees.get(at));
        match tree {
            TokenTree::Group(group) => {
                let is_macro = is_sign(before, '!') && at > 1 && is_word(&trees[at - 2], "thread_local");
                count_tokens(file, &group.stream(), in_thread_local || is_macro);
            }
            TokenTree::Ident(word) => {
                let call = match next {
                    Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                        Some(group.stream())
                    }
                    _ => None,
                };
                let is_method = is_sign(before, '.');
                if word == "it" && is_sign(next, '|') {
                    file.closures_over_it += 1;
                } else if word == "drop" && !is_method && call.as_ref().is_some_and(ends_in_call) {
                    file.dropped_calls += 1;
                } else if word == "sleep" && call.is_some() && !is_method && !is_word_before(before, "fn") {
                    // A method of this name is of a type of ours: it says how long, and does not sleep.
                    file.sleeps.push(word.span().start().line);
                } else if word == "static" && !is_sign(before, '\'') {
                    let declaration: TokenStream =
                        trees[at..].iter().take_while(|tree| !is_sign(Some(tree), ';')).cloned().collect();
                    if is_mutable(&declaration) {
                        let found = (name_behind(&trees[at..], "static"), word.span().start().line);
                        match in_thread_local {
                            true => file.thread_locals.push(found),
                            false => file.mutable_statics.push(found),
                        }
                    }
                }
            }
            // `== "…"`, and `"…" ==`
            TokenTree::Punct(punct)
                if matches!(punct.as_char(), '=' | '!') && punct.spacing() == Spacing::Joint =>
            {
                let is_comparison = is_sign(next, '=');
                let sides = [before, trees.get(at + 2)];
                if is_comparison && sides.iter().any(|side| is_text(*side)) {
                    file.text_comparisons.push(punct.span().start().line);
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn is_word_before(tree: Option<&TokenTree>, word: &str) -> bool {
    tree.is_some_and(|tree| is_word(tree, word))
}

/// Whether it is a text with a word in it. Without a letter it is a sign of some syntax, such as `---` or `*`: nothing that an enum
/// could be made of.
fn is_text(tree: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Literal(literal)) = tree else { return false };
    let literal = literal.to_string();
    literal.starts_with(['"', 'r']) && literal.trim_start_matches(['r', '#']).contains(char::is_alphabetic)
}

/// Whether what is in parentheses is the result of a call.
fn ends_in_call(inside: &TokenStream) -> bool {
    let trees: Vec<TokenTree> = inside.clone().into_iter().filter(|tree| !is_sign(Some(tree), '?')).collect();
    let is_call =
        matches!(trees.last(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis);
    is_call && trees.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_and_figures_are_read() {
        let text = "//! Docs.\n\nuse a::b as c;\nstatic S: Mutex<u32> = Mutex::new(1);\n\npub struct One {\n    /// How many.\n    \
                    a: Mutex<RwLock<u32>>,\n    /// A longer text about this field here.\n    b: u32,\n}\n\nimpl One {\n    pub fn go(&self) \
                    {\n        // Why.\n        drop(self.call());\n        let x = list.map(|it| it == \"a\");\n        thread::sleep(x);\n    \
                    }\n}\n\nimpl Display for One {\n    fn fmt(&self) {}\n}\n\n#[cfg(test)]\nmod tests {\n    fn helper() { One::go(); }\n}\n";
        let file = read_file("src/a.rs", false, text).expect("it is read");
        let names: Vec<(ItemKind, &str)> =
            file.items.iter().map(|item| (item.kind, item.name.as_str())).collect();
        assert_eq!(
            names,
            [
                (ItemKind::TraitImpl, "c"),
                (ItemKind::Other, "S"),
                (ItemKind::Type, "One"),
                (ItemKind::Function, "go"),
                (ItemKind::TraitImpl, "One"),
            ]
        );
        assert!(file.test_uses.contains("go") && !file.items[3].uses.contains("helper"));
        let counts = [
            file.code_lines,
            file.comments,
            file.short_docs,
            file.closures_over_it,
            file.text_comparisons.len(),
            file.dropped_calls,
        ];
        assert_eq!(counts, [16, 1, 1, 1, 1, 1]);
        assert_eq!(file.locks_by_owner.values().sum::<usize>(), 3);
        assert_eq!((file.mutable_statics.len(), file.sleeps.len()), (1, 1));
    }

    #[test]
    fn what_is_no_fault_is_not_counted() {
        let text = "thread_local! {\n    static OWN: RefCell<u32> = RefCell::new(1);\n}\n\n#[cfg(feature = \"seeded-bugs\")]\nmod \
                    switch {\n    static ACTIVE: AtomicU32 = AtomicU32::new(0);\n}\n\nfn wait(text: &str) -> bool {\n    \
                    self.deadline.sleep();\n    text == \"---\" || text == \"word\"\n}\n";
        let file = read_file("src/a.rs", false, text).expect("it is read");
        assert_eq!((file.mutable_statics.len(), file.thread_locals.len()), (0, 1));
        assert_eq!((file.sleeps.len(), file.text_comparisons.as_slice()), (0, [12].as_slice()));
    }

    #[test]
    fn variants_of_an_enum_are_named() {
        let text =
            "pub enum Event {\n    /// One.\n    Added { a: u32 },\n    Gone(u32),\n}\nenum Other { X }\n";
        let found: Vec<String> = variants(text, &["Event"]).into_iter().collect();
        assert_eq!(found, ["Event Added", "Event Gone"]);
    }
}
