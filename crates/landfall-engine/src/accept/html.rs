//! Pages as a tree, and CSS selectors over it: types, `#id`, `.class`, `[attribute]` in all its forms, the four combinators, lists,
//! `:not()`, `:first-child`, `:last-child`, `:only-child`, `:empty`, `:nth-child(2|odd|even)`, `:checked`, `:disabled`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use html5ever::interface::{ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::{Attribute, ExpandedName, QualName, local_name, ns};

const PARSE_MAX: Duration = Duration::from_secs(3); // ordinary pages take milliseconds
const CHUNK_BYTES: usize = 8 << 10;

/// A page. Its elements are numbered in the order of the document.
pub(super) struct HtmlDocument {
    elements: Vec<Element>,
}

struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    parent: Option<usize>,
    /// The element before it with the same parent.
    before: Option<usize>,
    /// Its place among its siblings, from 1.
    place: usize,
    is_last: bool,
    is_empty: bool,
    text: String,
}

impl HtmlDocument {
    /// Reads a page, as browsers do: whatever the text is, it is one. Only one that takes too long is none: what is nested very
    /// deep takes time in proportion to the square of that.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document = Node::new(NodeContent::Other);
        let sink = HtmlTreeSink { document: Rc::clone(&document) };
        let mut parser = html5ever::parse_document(sink, html5ever::ParseOpts::default());
        let began = Instant::now();
        let mut rest = text;
        while !rest.is_empty() && began.elapsed() < PARSE_MAX {
            let (chunk, more) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES.min(rest.len())));
            parser.process(chunk.into());
            rest = more;
        }
        let mut elements = Vec::new();
        if rest.is_empty() {
            let _ = parser.finish(); // the document is ours, too
            collect_elements(&document, &mut elements);
        } else {
            drop(parser); // what it holds of the document is held below as well
        }
        drop_tree_iteratively(document);
        if rest.is_empty() {
            Ok(Self { elements })
        } else {
            Err("the page takes too long to read".to_owned())
        }
    }

    /// The elements that match.
    pub fn select_elements(&self, selector: &Selector) -> Vec<usize> {
        let matches = |at: &usize| selector.0.iter().any(|complex| self.matches_complex(*at, complex));
        (0..self.elements.len()).filter(matches).collect()
    }

    /// The text in an element, on one line.
    pub fn element_text(&self, at: usize) -> &str {
        &self.elements[at].text
    }

    fn matches_complex(&self, at: usize, complex: &ComplexSelector) -> bool {
        self.matches_compound(at, &complex.last) && self.matches_combinators(at, &complex.rest)
    }

    fn matches_combinators(&self, at: usize, rest: &[(Combinator, CompoundSelector)]) -> bool {
        let Some(((combinator, compound), rest)) = rest.split_first() else { return true };
        let fits = |at: usize| self.matches_compound(at, compound) && self.matches_combinators(at, rest);
        let (next, many): (fn(&Element) -> Option<usize>, bool) = match combinator {
            Combinator::Inside => (|it| it.parent, true),
            Combinator::Child => (|it| it.parent, false),
            Combinator::After => (|it| it.before, true),
            Combinator::Next => (|it| it.before, false),
        };
        let mut here = next(&self.elements[at]);
        while let Some(at) = here {
            if fits(at) {
                return true;
            }
            here = if many { next(&self.elements[at]) } else { None };
        }
        false
    }

    fn matches_compound(&self, at: usize, compound: &CompoundSelector) -> bool {
        let element = &self.elements[at];
        compound.0.iter().all(|simple| match simple {
            SimpleSelector::Any => true,
            SimpleSelector::Type(name) => element.name == *name,
            SimpleSelector::Id(id) => element.attribute_value("id") == Some(id),
            SimpleSelector::Class(class) => element
                .attribute_value("class")
                .is_some_and(|all| all.split_ascii_whitespace().any(|it| it == class)),
            SimpleSelector::Attribute { name, how, ignore_case } => {
                element.attribute_value(name).is_some_and(|value| {
                    if *ignore_case {
                        how.matches_value(&value.to_lowercase())
                    } else {
                        how.matches_value(value)
                    }
                })
            }
            SimpleSelector::First => element.place == 1,
            SimpleSelector::Last => element.is_last,
            SimpleSelector::Only => element.place == 1 && element.is_last,
            SimpleSelector::Empty => element.is_empty,
            SimpleSelector::Nth(step, offset) => match element.place.checked_sub(*offset) {
                Some(0) => true,
                Some(rest) => *step > 0 && rest % step == 0,
                None => false,
            },
            SimpleSelector::Not(inner) => !inner.iter().any(|compound| self.matches_compound(at, compound)),
        })
    }
}

impl Element {
    fn attribute_value(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// What is looked for on a page.
#[derive(Debug)]
pub(super) struct Selector(Vec<ComplexSelector>);

#[derive(Debug)]
struct ComplexSelector {
    last: CompoundSelector,
    /// From right to left.
    rest: Vec<(Combinator, CompoundSelector)>,
}

#[derive(Debug, Clone, Copy)]
enum Combinator {
    Inside,
    Child,
    After,
    Next,
}

#[derive(Debug)]
struct CompoundSelector(Vec<SimpleSelector>);

#[derive(Debug)]
enum SimpleSelector {
    Any,
    Type(String),
    Id(String),
    Class(String),
    Attribute { name: String, how: AttributeMatch, ignore_case: bool },
    First,
    Last,
    Only,
    Empty,
    Nth(usize, usize),
    Not(Vec<CompoundSelector>),
}

#[derive(Debug)]
enum AttributeMatch {
    There,
    Is(String),
    Word(String),
    Dash(String),
    Begins(String),
    Ends(String),
    Contains(String),
}

impl AttributeMatch {
    fn matches_value(&self, value: &str) -> bool {
        match self {
            Self::There => true,
            Self::Is(wanted) => value == wanted,
            Self::Word(wanted) => value.split_ascii_whitespace().any(|it| it == wanted),
            Self::Dash(wanted) => value
                .strip_prefix(wanted.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
            Self::Begins(wanted) => !wanted.is_empty() && value.starts_with(wanted.as_str()),
            Self::Ends(wanted) => !wanted.is_empty() && value.ends_with(wanted.as_str()),
            Self::Contains(wanted) => !wanted.is_empty() && value.contains(wanted.as_str()),
        }
    }
}

const SELECTOR_BYTES_MAX: usize = 1_000; // a person wrote it

impl Selector {
    /// Reads a selector.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = HtmlParser { rest: text.trim() };
        let wrong = || format!("the selector `{}` is not understood", super::files::shorten_to_line(text));
        if text.len() > SELECTOR_BYTES_MAX {
            return Err(wrong());
        }
        let mut list = Vec::new();
        loop {
            list.push(reader.parse_complex().ok_or_else(wrong)?);
            reader.skip_space();
            match reader.next() {
                None => return Ok(Self(list)),
                Some(',') => {
                    reader.skip_space();
                }
                Some(_) => return Err(wrong()),
            }
        }
    }
}

struct HtmlParser<'a> {
    rest: &'a str,
}

impl HtmlParser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.rest.strip_prefix(word).is_some_and(|rest| {
            self.rest = rest;
            true
        })
    }

    fn skip_space(&mut self) -> bool {
        let trimmed = self.rest.trim_start();
        let some = trimmed.len() < self.rest.len();
        self.rest = trimmed;
        some
    }

    fn parse_complex(&mut self) -> Option<ComplexSelector> {
        let mut last = self.parse_compound()?;
        let mut rest = Vec::new();
        loop {
            let spaced = self.skip_space();
            let combinator = match self.peek() {
                Some('>') => Combinator::Child,
                Some('+') => Combinator::Next,
                Some('~') => Combinator::After,
                None | Some(',') => break,
                Some(_) if spaced => Combinator::Inside,
                Some(_) => return None,
            };
            if !matches!(combinator, Combinator::Inside) {
                self.next();
                self.skip_space();
            }
            let compound = self.parse_compound()?;
            rest.insert(0, (combinator, std::mem::replace(&mut last, compound)));
        }
        Some(ComplexSelector { last, rest })
    }

    fn parse_compound(&mut self) -> Option<CompoundSelector> {
        let mut simples = Vec::new();
        if self.take_word("*") {
            simples.push(SimpleSelector::Any);
        } else if let Some(name) = self.parse_name() {
            simples.push(SimpleSelector::Type(name.to_ascii_lowercase()));
        }
        loop {
            match self.peek() {
                Some('#') => {
                    self.next();
                    simples.push(SimpleSelector::Id(self.parse_name()?));
                }
                Some('.') => {
                    self.next();
                    simples.push(SimpleSelector::Class(self.parse_name()?));
                }
                Some('[') => {
                    self.next();
                    simples.push(self.parse_attribute()?);
                }
                Some(':') => {
                    self.next();
                    simples.push(self.parse_pseudo()?);
                }
                _ => return (!simples.is_empty()).then_some(CompoundSelector(simples)),
            }
        }
    }

    fn parse_name(&mut self) -> Option<String> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            match c {
                c if c.is_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii() => name.push(c),
                '\\' => {
                    self.next();
                    name.push(self.peek()?);
                }
                _ => break,
            }
            self.next();
        }
        (!name.is_empty()).then_some(name)
    }

    fn parse_attribute(&mut self) -> Option<SimpleSelector> {
        self.skip_space();
        let name = self.parse_name()?.to_ascii_lowercase();
        self.skip_space();
        if self.take_word("]") {
            return Some(SimpleSelector::Attribute { name, how: AttributeMatch::There, ignore_case: false });
        }
        let make: fn(String) -> AttributeMatch = if self.take_word("=") {
            AttributeMatch::Is
        } else if self.take_word("~=") {
            AttributeMatch::Word
        } else if self.take_word("|=") {
            AttributeMatch::Dash
        } else if self.take_word("^=") {
            AttributeMatch::Begins
        } else if self.take_word("$=") {
            AttributeMatch::Ends
        } else if self.take_word("*=") {
            AttributeMatch::Contains
        } else {
            return None;
        };
        self.skip_space();
        let value = match self.peek()? {
            quote @ ('"' | '\'') => {
                self.next();
                let end = self.rest.find(quote)?;
                let value = self.rest[..end].to_owned();
                self.rest = &self.rest[end + 1..];
                value
            }
            _ => self.parse_name()?,
        };
        self.skip_space();
        let ignore_case = self.take_word("i") || self.take_word("I");
        self.skip_space();
        let value = if ignore_case { value.to_lowercase() } else { value };
        self.take_word("]").then(|| SimpleSelector::Attribute { name, how: make(value), ignore_case })
    }

    fn parse_pseudo(&mut self) -> Option<SimpleSelector> {
        let there = |name: &str| SimpleSelector::Attribute {
            name: name.to_owned(),
            how: AttributeMatch::There,
            ignore_case: false,
        };
        let name = self.parse_name()?;
        Some(match name.as_str() {
            "first-child" => SimpleSelector::First,
            "last-child" => SimpleSelector::Last,
            "only-child" => SimpleSelector::Only,
            "empty" => SimpleSelector::Empty,
            "checked" => there("checked"),
            "disabled" => there("disabled"),
            "root" => SimpleSelector::Type("html".to_owned()),
            "nth-child" => {
                let inner = self.rest.strip_prefix('(')?;
                let (inner, rest) = inner.split_once(')')?;
                self.rest = rest;
                match inner.trim() {
                    "odd" => SimpleSelector::Nth(2, 1),
                    "even" => SimpleSelector::Nth(2, 2),
                    number => SimpleSelector::Nth(0, number.parse().ok().filter(|number| *number > 0)?),
                }
            }
            "not" => {
                self.take_word("(").then_some(())?;
                let mut inner = Vec::new();
                loop {
                    self.skip_space();
                    inner.push(self.parse_compound()?);
                    self.skip_space();
                    match self.next()? {
                        ')' => break,
                        ',' => {}
                        _ => return None,
                    }
                }
                SimpleSelector::Not(inner)
            }
            _ => return None,
        })
    }
}

// ── The tree that the parser builds ────────────────────────────────────────────────────────────────────────────

type NodeRef = Rc<Node>;

struct Node {
    content: NodeContent,
    name: QualName,
    parent: RefCell<Option<std::rc::Weak<Node>>>,
    children: RefCell<Vec<NodeRef>>,
}

enum NodeContent {
    Element(RefCell<Vec<Attribute>>),
    Text(RefCell<String>),
    Other,
}

impl Node {
    fn new(content: NodeContent) -> NodeRef {
        Self::with_name(content, QualName::new(None, ns!(), local_name!("")))
    }

    fn with_name(content: NodeContent, name: QualName) -> NodeRef {
        Rc::new(Self { content, name, parent: RefCell::default(), children: RefCell::default() })
    }

    fn parent_node(&self) -> Option<NodeRef> {
        self.parent.borrow().as_ref().and_then(std::rc::Weak::upgrade)
    }
}

struct HtmlTreeSink {
    document: NodeRef,
}

impl HtmlTreeSink {
    fn insert_child(&self, parent: &NodeRef, at: usize, child: NodeOrText<NodeRef>) {
        match child {
            NodeOrText::AppendText(text) => {
                let mut children = parent.children.borrow_mut();
                if let Some(before) = at.checked_sub(1).and_then(|at| children.get(at))
                    && let NodeContent::Text(known) = &before.content
                {
                    known.borrow_mut().push_str(&text);
                    return;
                }
                let node = Node::new(NodeContent::Text(RefCell::new(text.to_string())));
                *node.parent.borrow_mut() = Some(Rc::downgrade(parent));
                children.insert(at, node);
            }
            NodeOrText::AppendNode(node) => {
                self.remove_from_parent(&node);
                *node.parent.borrow_mut() = Some(Rc::downgrade(parent));
                let mut children = parent.children.borrow_mut();
                let at = at.min(children.len());
                children.insert(at, node);
            }
        }
    }

    fn find_position(&self, node: &NodeRef) -> Option<(NodeRef, usize)> {
        let parent = node.parent_node()?;
        let at = parent.children.borrow().iter().position(|it| Rc::ptr_eq(it, node))?;
        Some((parent, at))
    }
}

impl TreeSink for HtmlTreeSink {
    type Handle = NodeRef;
    type Output = NodeRef;
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) -> NodeRef {
        self.document
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> NodeRef {
        Rc::clone(&self.document)
    }

    fn elem_name<'a>(&'a self, target: &'a NodeRef) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, attributes: Vec<Attribute>, _: ElementFlags) -> NodeRef {
        Node::with_name(NodeContent::Element(RefCell::new(attributes)), name)
    }

    fn create_comment(&self, _: StrTendril) -> NodeRef {
        Node::new(NodeContent::Other)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> NodeRef {
        Node::new(NodeContent::Other)
    }

    fn append(&self, parent: &NodeRef, child: NodeOrText<NodeRef>) {
        let at = parent.children.borrow().len();
        self.insert_child(parent, at, child);
    }

    fn append_based_on_parent_node(&self, element: &NodeRef, before: &NodeRef, child: NodeOrText<NodeRef>) {
        match element.parent_node() {
            Some(_) => self.append_before_sibling(element, child),
            None => self.append(before, child),
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &NodeRef) -> NodeRef {
        // What is in a template is not on the page; here it is kept below it, and found there.
        Rc::clone(target)
    }

    fn same_node(&self, one: &NodeRef, two: &NodeRef) -> bool {
        Rc::ptr_eq(one, two)
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &NodeRef, child: NodeOrText<NodeRef>) {
        if let Some((parent, at)) = self.find_position(sibling) {
            self.insert_child(&parent, at, child);
        }
    }

    fn add_attrs_if_missing(&self, target: &NodeRef, attributes: Vec<Attribute>) {
        if let NodeContent::Element(known) = &target.content {
            let mut known = known.borrow_mut();
            for attribute in attributes {
                if !known.iter().any(|it| it.name == attribute.name) {
                    known.push(attribute);
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &NodeRef) {
        if let Some((parent, at)) = self.find_position(target) {
            parent.children.borrow_mut().remove(at);
        }
        *target.parent.borrow_mut() = None;
    }

    fn reparent_children(&self, node: &NodeRef, parent: &NodeRef) {
        let children = std::mem::take(&mut *node.children.borrow_mut());
        for child in &children {
            *child.parent.borrow_mut() = Some(Rc::downgrade(parent));
        }
        parent.children.borrow_mut().extend(children);
    }
}

const TEXT_BYTES_MAX: usize = 64 << 10; // of one element; enough to find a sentence in

/// The elements in the order of the document. Without recursion: pages can be as deep as their author likes.
fn collect_elements(document: &NodeRef, elements: &mut Vec<Element>) {
    struct OpenNode {
        node: NodeRef,
        next: usize,
        element: Option<usize>,
        last: Option<usize>,
        count: usize,
    }
    let open = |node: NodeRef, element| OpenNode { node, next: 0, element, last: None, count: 0 };
    let mut stack = vec![open(Rc::clone(document), None)];
    while let Some(top) = stack.last_mut() {
        let child = top.node.children.borrow().get(top.next).cloned();
        let Some(child) = child else {
            if let Some(last) = top.last {
                elements[last].is_last = true;
            }
            stack.pop();
            continue;
        };
        top.next += 1;
        match &child.content {
            NodeContent::Element(attributes) => {
                top.count += 1;
                let attributes = attributes.borrow();
                let attributes =
                    attributes.iter().map(|it| (it.name.local.to_string(), it.value.to_string()));
                let at = elements.len();
                elements.push(Element {
                    name: child.name.local.to_string(),
                    attributes: attributes.collect(),
                    parent: top.element,
                    before: top.last,
                    place: top.count,
                    is_last: false,
                    is_empty: true,
                    text: String::new(),
                });
                top.last = Some(at);
                if let Some(parent) = top.element {
                    elements[parent].is_empty = false;
                }
                stack.push(open(Rc::clone(&child), Some(at)));
            }
            NodeContent::Text(text) => {
                let text = text.borrow();
                if let Some(parent) = top.element {
                    elements[parent].is_empty &= text.is_empty();
                }
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let mut above = top.element.filter(|_| !words.is_empty());
                let mut up = 0;
                while let Some(at) = above.filter(|_| up < 64) {
                    let whole = &mut elements[at].text;
                    if whole.len() + words.len() < TEXT_BYTES_MAX {
                        if !whole.is_empty() {
                            whole.push(' ');
                        }
                        whole.push_str(&words);
                    }
                    above = elements[at].parent;
                    up += 1;
                }
            }
            NodeContent::Other => {}
        }
    }
}

/// Takes the tree apart from the top: dropped as it is, a deep one would use up the stack.
fn drop_tree_iteratively(document: NodeRef) {
    let mut open = vec![document];
    while let Some(node) = open.pop() {
        open.append(&mut node.children.borrow_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::{HtmlDocument, Selector};

    const TEXT: &str = r#"<!doctype html><title>Shop</title><body class="a b">
        <ul id=list><li class=one>First <b>thing</b><li>Second<li data-x="Some-Thing">Third</ul>
        <table><tr><td>1</table><p>Text</p><p lang="en-GB"></p><input type=checkbox checked>"#;

    fn count_matches(selector: &str) -> usize {
        HtmlDocument::parse(TEXT)
            .expect("a page")
            .select_elements(&Selector::parse(selector).expect(selector))
            .len()
    }

    #[test]
    fn selectors_find_what_browsers_find() {
        for (selector, wanted) in [
            ("li", 3),
            ("#list > li", 3),
            ("body li", 3),
            ("body > li", 0),
            ("ul#list li.one", 1),
            ("li + li", 2),
            ("li.one ~ li", 2),
            ("table tbody td", 1),
            ("body.a.b", 1),
            ("body.c", 0),
            ("[data-x]", 1),
            ("[data-x=\"Some-Thing\"]", 1),
            ("[data-x='some-thing' i]", 1),
            ("[data-x^=Some]", 1),
            ("[data-x$='ing'], [data-x*=e-T], p[lang|=en]", 2),
            ("li:first-child", 1),
            ("li:last-child", 1),
            ("li:nth-child(2)", 1),
            ("li:nth-child(odd)", 2),
            ("li:not(.one)", 2),
            ("p:empty", 1),
            ("input:checked", 1),
            ("*", 16),
            ("title, h1", 1),
        ] {
            assert_eq!(count_matches(selector), wanted, "{selector}");
        }
        let page = HtmlDocument::parse(TEXT).expect("a page");
        let found = page.select_elements(&Selector::parse("li.one").expect("one"));
        assert_eq!(page.element_text(found[0]), "First thing");
        for wrong in [
            "",
            ">",
            "a >",
            "a,,b",
            "[",
            "a[b",
            "a:hover",
            "a::before",
            ":not(",
            "a)b",
            "#",
            ".",
            "a{}",
            "[a=\"b]",
        ] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_that_is_nested_without_end_is_given_up() {
        assert!(HtmlDocument::parse(&"<div>".repeat(2_000)).is_ok_and(|page| page.elements.len() == 2_003));
        assert!(HtmlDocument::parse(&"<div>".repeat(800_000)).is_err());
    }
}
