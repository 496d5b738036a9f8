//! Pages drawn from made-up answers, and what holds for every template.

use std::sync::{Arc, Mutex, PoisonError};

use super::*;

/// Answers with what was made up, by the name of the operation; everything else is a problem.
pub(super) struct Made(Arc<Mutex<Vec<Response>>>);

impl Made {
    pub(super) fn from_answers(answers: Vec<Response>) -> Self {
        Self(Arc::new(Mutex::new(answers)))
    }
}

struct Answers(Arc<Mutex<Vec<Response>>>);

impl Service for Answers {
    fn call(&self, asked: Asked) -> Result<Response, Problem> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.iter().find(|it| it.name() == asked.name()).cloned();
        answer.ok_or_else(|| Problem::new(ProblemCode::NotNow, format!("`{}` is not made up", asked.name())))
    }
}

/// The whole page at a path, which may have a query; a page with a field in its path is named by an example.
pub(super) fn draw_path(target: &str, made: &Made) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let fits = |entry: &&PageEntry| {
        let (known, given): (Vec<_>, Vec<_>) = (entry.path.split('/').collect(), path.split('/').collect());
        known.len() == given.len()
            && known.iter().zip(&given).all(|(known, given)| known == given || known.starts_with('{'))
    };
    let entry = PAGES
        .iter()
        .find(|it| it.path == path)
        .or_else(|| PAGES.iter().find(fits))
        .expect("there is such a page");
    let fields = entry.path.split('/').zip(path.split('/')).filter_map(|(known, given)| {
        Some((known.strip_prefix('{')?.strip_suffix('}')?.to_owned(), given.to_owned()))
    });
    let service = Arc::new(Answers(Arc::clone(&made.0)));
    let shared = ServerState::new(service, None, &[], Vec::new(), &[], "a <b>project</b>".to_owned());
    let visit = PageContext {
        shared: &shared,
        who: &Requester::Owner,
        fields: fields.collect(),
        query: serde_html_form::from_str(query).expect("a query of our own"),
    };
    let page = (entry.draw)(&visit).unwrap_or_else(|problem| problem_page(&problem));
    draw_frame(&visit, path, target, &page, &[])
}

#[test]
fn every_page_is_drawn_in_its_frame_even_when_nothing_answers() {
    for entry in PAGES {
        let path = entry.path.replace("{task}", "T1");
        let html = draw_path(&path, &Made::from_answers(Vec::new()));
        assert!(
            html.contains("the engine does not answer") && html.contains("a &#60;b&#62;project"),
            "{path}: {html}"
        );
        assert!(html.contains("<h1"), "{path} has no heading");
    }
}

#[test]
fn every_problem_has_its_place_on_the_page_that_explains_them() {
    let html = draw_path("/problems", &Made::from_answers(Vec::new()));
    for code in ProblemCode::ALL {
        assert!(html.contains(&format!("id=\"{}\"", code.word())), "{code:?}");
    }
}

/// The policy of the pages forbids it, so it would not work; and what is put in unescaped is a door for others.
#[test]
fn no_template_has_style_or_script_of_its_own() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for (inside, ending) in [("templates", "html"), ("src/pages", "rs")] {
        for file in std::fs::read_dir(folder.join(inside)).expect("the folder is there") {
            let path = file.expect("it can be read").path();
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default().to_owned();
            if path.extension().is_none_or(|it| it != ending) || name == "tests.rs" {
                continue;
            }
            seen += 1;
            let text = std::fs::read_to_string(&path).expect("it is text").to_lowercase();
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            for bad in
                [" style=", "<style", "hx-on", "javascript:", "js:", "<iframe", "<object", "<embed", "<base"]
            {
                assert!(!text.contains(bad), "{name} has {bad:?}");
            }
            for (at, _) in text.match_indices("<script") {
                assert!(
                    text[at..].starts_with("<script src=\"/assets/") && text[at..].contains("></script>"),
                    "{name}: a script of its own"
                );
            }
            let handler = |word: &str| {
                let name = word.split('=').next().unwrap_or_default();
                word.contains('=')
                    && name.len() > 4
                    && name.starts_with("on")
                    && name.bytes().all(|it| it.is_ascii_lowercase())
            };
            if ending == "html" {
                let found = text.split_whitespace().find(|word| handler(word));
                assert!(found.is_none(), "{name} has {found:?}");
            }
            let unescaped = text.matches("|safe").count() + text.matches("| safe").count();
            let allowed = usize::from(matches!(name.as_str(), "frame.html" | "bare.html"));
            assert!(unescaped <= allowed, "{name} puts something in unescaped");
        }
    }
    assert!(seen > 15, "only {seen} files were looked at");
}
