//! Flows for people who choose or write one.

use landfall_api::{self as api, Problem, ProblemCode, nearest_word};
use landfall_engine::flows::{self, FlowCatalogue};
use landfall_engine::model::flow::{draw_as_mermaid, draw_as_text};

use crate::project::place::ProjectLocation;
use crate::project::problems;

fn load_flows(place: &ProjectLocation) -> FlowCatalogue {
    flows::load_flows(Some(&place.root.join(".landfall/flows")))
}

pub(crate) fn list_flows(place: &ProjectLocation) -> Result<api::FlowList, Problem> {
    let loaded = load_flows(place);
    if !loaded.errors.is_empty() {
        return Err(problems::from_flow_errors(&loaded.errors));
    }
    let settings =
        landfall_engine::engine::load_settings(&place.root).map_err(|error| problems::open(&error))?;
    let built_in = flows::built_in();
    let lines = loaded.flows.iter().map(|(name, flow)| {
        let own = loaded.sources.get(name) != built_in.get(name);
        api::FlowLine {
            name: name.clone(),
            about: flow.about.clone(),
            origin: if own { api::FlowOrigin::Project } else { api::FlowOrigin::BuiltIn },
            steps: flow.steps.iter().map(|step| step.name.as_str().to_owned()).collect(),
            default: *name == settings.project.flow,
            not_yet: flow
                .follows_an_issue()
                .then(|| "it follows an issue: `landfall auto` makes its tasks".to_owned()),
        }
    });
    Ok(api::FlowList { flows: lines.collect() })
}

pub(crate) fn show_flow(place: &ProjectLocation, asked: &api::FlowShow) -> Result<api::FlowDrawing, Problem> {
    let loaded = load_flows(place);
    let name = &asked.name;
    let text = match (asked.form, loaded.flows.get(name), loaded.sources.get(name)) {
        (api::FlowForm::Source, _, Some(source)) => source.clone(),
        (api::FlowForm::Text, Some(flow), _) => draw_as_text(flow),
        (api::FlowForm::Mermaid, Some(flow), _) => draw_as_mermaid(flow),
        (_, None, Some(_)) => return Err(problems::from_flow_errors(&loaded.errors)),
        (_, _, None) => {
            let known: Vec<&str> = loaded.sources.keys().map(String::as_str).collect();
            let list = known.join(", ");
            let hint = match nearest_word(&known, name) {
                Some(word) => format!("did you mean `{word}`? known: {list}"),
                None => format!("known: {list}"),
            };
            return Err(
                Problem::new(ProblemCode::UnknownFlow, format!("there is no flow `{name}`")).with_hint(hint)
            );
        }
    };
    Ok(api::FlowDrawing { name: name.clone(), form: asked.form, text })
}

pub(crate) fn check_flow(asked: &api::FlowCheck) -> api::FlowChecked {
    let problems = match flows::parse_flow(&asked.text, &asked.name) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .into_iter()
            .map(|error| api::FlowProblem {
                line: error.line.and_then(|line| u32::try_from(line).ok()),
                message: error.message,
                hint: error.hint,
            })
            .collect(),
    };
    api::FlowChecked { name: asked.name.clone(), problems }
}
