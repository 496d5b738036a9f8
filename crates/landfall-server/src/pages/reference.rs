//! What programs can ask for: every operation, where it is and who may.

use askama::Template;
use landfall_api::http::{IDEMPOTENCY_HEADER, ROOT};
use landfall_api::{Access, Method, Problem, Request, Route};

use super::{Page, Visit, words};

#[derive(Template)]
#[template(path = "reference.html")]
struct Reference {
    groups: Vec<(String, Vec<&'static Route>)>,
}

pub(super) fn draw(_: &Visit<'_>) -> Result<Page, Problem> {
    Page::new("Operations for programs", &Reference { groups: groups() })
}

/// The operations by the first word of their path.
fn groups() -> Vec<(String, Vec<&'static Route>)> {
    let mut groups: Vec<(String, Vec<&'static Route>)> = Vec::new();
    for route in Request::ROUTES {
        let word = route.path.split('/').nth(1).unwrap_or_default();
        match groups.iter_mut().find(|(name, _)| name == word) {
            Some((_, routes)) => routes.push(route),
            None => groups.push((word.to_owned(), vec![route])),
        }
    }
    groups
}

fn access(access: Access) -> &'static str {
    match access {
        Access::Read => "anybody with a token",
        Access::Suggest => "anybody with a token; what an agent brings is a draft",
        Access::Steer => "people only",
    }
}

/// How it is asked for from a shell.
fn example(route: &Route) -> String {
    let body = match route.method {
        Method::Get => "",
        Method::Post | Method::Patch => " -H 'Content-Type: application/json' -d '{}'",
    };
    let verb = match route.method {
        Method::Get => String::new(),
        other => format!(" -X {}", other.word()),
    };
    format!(
        "curl{verb} -H \"Authorization: Bearer $(landfall token)\"{body} http://127.0.0.1:7878{ROOT}{}",
        route.path
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_there_once() {
        let html = Reference { groups: groups() }.render().expect("drawn");
        for route in Request::ROUTES {
            assert_eq!(html.matches(&format!("id=\"op-{}\"", route.name)).count(), 1, "{}", route.name);
        }
    }
}
