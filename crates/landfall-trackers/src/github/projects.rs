//! The few things REST has no way for: the size field of a project, and that a draft is ready.

use serde::Deserialize;
use serde_json::json;

use landfall_model::TaskSize;

use super::Github;
use super::client::{GraphqlError, UNSEEN};
use crate::tracker::{IssueNumber, TrackerError, TrackerResult, escape_beginning};

/// The items an issue is, in the projects it is in, with their size field. An issue is in a few projects at most.
const SIZES: &str = "query($owner:String!,$name:String!,$number:Int!,$field:String!){repository(owner:$owner,name:$name){\
issue(number:$number){projectItems(first:20,includeArchived:false){nodes{id \
size:fieldValueByName(name:$field){...on ProjectV2ItemFieldSingleSelectValue{name} ...on ProjectV2ItemFieldTextValue{text}} \
project{id closed field(name:$field){...on ProjectV2SingleSelectField{id options{id name}}}}}}}}}";

const SET_SIZE: &str = "mutation($project:ID!,$item:ID!,$field:ID!,$option:String!){updateProjectV2ItemFieldValue(\
input:{projectId:$project,itemId:$item,fieldId:$field,value:{singleSelectOptionId:$option}}){projectV2Item{id}}}";

const READY: &str =
    "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}";

#[derive(Deserialize)]
struct GithubSizes {
    repository: Option<SizesRepository>,
}

#[derive(Deserialize)]
struct SizesRepository {
    issue: Option<SizesIssue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SizesIssue {
    project_items: ProjectItems,
}

#[derive(Deserialize)]
struct ProjectItems {
    nodes: Vec<Option<ProjectItem>>,
}

/// An issue in a project.
#[derive(Deserialize)]
pub(super) struct ProjectItem {
    id: String,
    size: Option<ProjectFieldValue>,
    project: GithubProject,
}

#[derive(Deserialize)]
struct ProjectFieldValue {
    name: Option<String>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct GithubProject {
    id: String,
    closed: bool,
    field: Option<ProjectField>,
}

#[derive(Deserialize)]
struct ProjectField {
    id: Option<String>,
    #[serde(default)]
    options: Vec<ProjectFieldOption>,
}

#[derive(Deserialize)]
struct ProjectFieldOption {
    id: String,
    name: String,
}

impl ProjectItem {
    /// The size in it, if it is one of ours.
    pub(super) fn task_size(&self) -> Option<TaskSize> {
        let value = self.size.as_ref()?;
        value.name.as_deref().or(value.text.as_deref())?.trim().parse().ok()
    }

    fn find_choice(&self, size: TaskSize) -> Option<(&str, &str)> {
        let field = self.project.field.as_ref()?;
        let choice = field.options.iter().find(|choice| choice.name.trim().parse() == Ok(size))?;
        Some((field.id.as_deref()?, &choice.id))
    }
}

impl Github {
    /// The items of open projects. A token that may not look at projects, and a server that has none, have none.
    pub(super) fn list_project_items(&self, number: IssueNumber) -> TrackerResult<Vec<ProjectItem>> {
        let Some(field) = &self.size_field else { return Ok(Vec::new()) };
        let what = format!("read the size of {number} in its projects");
        let (owner, name) = (self.repository.owner(), self.repository.name());
        let variables = json!({ "owner": owner, "name": name, "number": number.get(), "field": field });
        match self.client.query_graphql::<GithubSizes>(&what, SIZES, &variables)? {
            Ok(sizes) => {
                let issue = sizes.repository.and_then(|repository| repository.issue);
                let nodes = issue.map(|issue| issue.project_items.nodes).unwrap_or_default();
                Ok(nodes.into_iter().flatten().filter(|item| !item.project.closed).collect())
            }
            // No leave, no such thing, or no word for it: the label says it then.
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Sets the size in every project that has the field; says whether any had.
    pub(super) fn set_size_fields(&self, number: IssueNumber, size: TaskSize) -> TrackerResult<bool> {
        let what = format!("set the size of {number} in its projects");
        let mut had = false;
        for item in self.list_project_items(number)? {
            let Some((field, option)) = item.find_choice(size) else { continue };
            had = true;
            if item.task_size() == Some(size) {
                continue;
            }
            let variables =
                json!({ "project": item.project.id, "item": item.id, "field": field, "option": option });
            let done = self.client.query_graphql::<serde_json::Value>(&what, SET_SIZE, &variables)?;
            done.map_err(|errors| graphql_refusal(&what, &errors))?;
        }
        Ok(had)
    }

    pub(super) fn send_ready(&self, what: &str, node: &str) -> TrackerResult<()> {
        let done = self.client.query_graphql::<serde_json::Value>(what, READY, &json!({ "id": node }))?;
        done.map(drop).map_err(|errors| graphql_refusal(what, &errors))
    }
}

fn graphql_refusal(what: &str, errors: &[GraphqlError]) -> TrackerError {
    let what = what.to_owned();
    let why = errors.first().map_or("no reason was given", |error| &error.message);
    let why = escape_beginning(why, 300);
    match errors.first().and_then(|error| error.kind.as_deref()) {
        Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => TrackerError::Forbidden { what, why },
        Some("NOT_FOUND") => TrackerError::NotFound { what, hint: UNSEEN.to_owned() },
        Some(_) | None => TrackerError::Refused { what, why },
    }
}
