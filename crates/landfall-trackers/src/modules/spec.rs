//! A module as a task: what it wants, what it needs, where it begins.

use landfall_model::tune::{self, Adaptation};
use landfall_model::{SpecError, Tag, TaskSpec};
use thiserror::Error;

use super::folder::ModuleFolderSnapshot;
use super::problem::UnreadableMetadata;
use super::record::{ModuleDependency, ModulePhase, ModuleStatus};
use super::type_profile::{self, TYPE_PROFILE};

/// What a module asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleSpec {
    /// Its words, without needs: those are known by module.
    pub spec: TaskSpec,
    /// What must come before, by module.
    pub needs: Vec<ModuleDependency>,
    /// Where it is.
    pub status: ModuleStatus,
    /// Where its flow takes it up: `executing`, `re-planning/needs-check`.
    pub entry: String,
    /// Steps of its plan that are done.
    pub completed_steps: u32,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Why a module is no task.
#[derive(Debug, Error)]
pub enum ModuleTaskError {
    /// Its metadata cannot be used.
    #[error(transparent)]
    Unread(#[from] UnreadableMetadata),
    /// Its words are out of bounds.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// The task a module asks for.
///
/// # Errors
/// When its metadata cannot be used, or its words are out of bounds.
pub fn read_wanted_task(seen: &ModuleFolderSnapshot) -> Result<ModuleSpec, ModuleTaskError> {
    let mut warnings = seen.warnings.clone();
    let module = match &seen.metadata {
        Some(Ok(metadata)) => {
            warnings.extend(metadata.warnings.iter().map(ToString::to_string));
            metadata.module.clone()
        }
        Some(Err(unread)) => return Err(unread.clone().into()),
        None => {
            warnings.push(format!("`{}` has no metadata; it counts as a draft", seen.place.shown_path()));
            super::record::ModuleRecord::new("", "")
        }
    };
    let target = seen.read_target();
    let title = if module.title.trim().is_empty() { &seen.place.name } else { &module.title };
    let mut spec =
        TaskSpec::new(&super::text::plain_line(title)).or_else(|_| TaskSpec::new(&seen.place.name))?;
    spec.body = super::text::strip_markup(target.text()).trim().to_owned();
    spec.criteria = target.plain_requirements.clone();
    spec.criteria.extend(target.requirements.iter().map(|it| match it.criteria.is_empty() {
        true => format!("R{}: {}", it.r, it.text),
        false => format!("R{}: {} ({})", it.r, it.text, it.criteria),
    }));
    // The type and the type profile set the numbers of its checks: tags say so where a person can read and change them.
    let kinds =
        tune::split_types(&[&module.kind]).into_iter().map(|word| format!("type:{}", word.replace(' ', "-")));
    let profile = seen.file_text(TYPE_PROFILE).unwrap_or_default();
    let numbers = type_profile::adaptations(&profile).into_iter().map(Adaptation::tag);
    let own = module.tags.iter().filter(|tag| !tag.starts_with("type:") || module.kind.is_empty());
    for word in own.cloned().chain(kinds).chain(numbers) {
        match word.parse::<Tag>() {
            Ok(tag) => {
                spec.tags.insert(tag);
            }
            Err(error) => warnings.push(error.to_string()),
        }
    }
    spec.source = format!("module:{}", seen.place.shown_path());
    spec.flow = Some(seen.place.sort.flow_name().to_owned());
    if !target.is_substantive() {
        spec.draft = true;
        warnings.push(format!(
            "`{}/{}` says nothing yet; fill it first",
            seen.place.shown_path(),
            super::folder::TARGET
        ));
    }
    warnings.extend(
        target.warnings.iter().map(|(line, why)| {
            format!("{}/{}:{line}: {why}", seen.place.shown_path(), super::folder::TARGET)
        }),
    );
    spec.check_bounds()?;
    Ok(ModuleSpec {
        spec,
        needs: module.depends_on.clone(),
        status: module.status,
        entry: entry_name(module.status, &module.phase),
        completed_steps: module.completed_steps,
        warnings,
    })
}

/// The word under which a flow says where a task in this state begins.
#[must_use]
pub fn entry_name(status: ModuleStatus, phase: &ModulePhase) -> String {
    match (status, phase) {
        (ModuleStatus::RePlanning, ModulePhase::NeedsPlan | ModulePhase::NeedsCheck) => {
            format!("{status}/{}", phase.wire_name())
        }
        _ => status.wire_name().to_owned(),
    }
}

/// The needs that are not met, each with how far it is; `status` says how far a module is, if there is one.
#[must_use]
pub fn find_unmet_needs(
    needs: &[ModuleDependency],
    status: impl Fn(&str) -> Option<ModuleStatus>,
) -> Vec<(&ModuleDependency, Option<ModuleStatus>)> {
    let far = needs.iter().map(|need| (need, status(&need.module)));
    far.filter(|(need, status)| !status.is_some_and(|status| need.is_met_by(status))).collect()
}
