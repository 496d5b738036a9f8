//! What an agent offers to be set in a session, wherever in its answer it says so.

use serde_json::Value;

/// The answer to `session/new`, `session/load` or `session/resume`.
pub(super) struct SessionOffers(Value);

impl SessionOffers {
    pub(super) fn new(answer: Value) -> Self {
        Self(answer)
    }

    pub(super) fn has_mode(&self, mode: &str) -> bool {
        iter_array(&self.0["modes"]["availableModes"]).any(|it| it["id"] == mode)
    }

    /// The model in use.
    pub(super) fn current_model(&self) -> Option<String> {
        let option = self.options_in_category("model").next().map(|option| &option["currentValue"]);
        option.unwrap_or(&self.0["models"]["currentModelId"]).as_str().map(str::to_owned)
    }

    /// The option of this category, and which of its values has this id or name.
    pub(super) fn find_option(&self, category: &str, wanted: &str) -> Option<(String, String)> {
        self.options_in_category(category).find_map(|option| {
            let value = values(option).find(|it| it["value"] == wanted || it["name"] == wanted)?;
            Some((option["id"].as_str()?.to_owned(), value["value"].as_str()?.to_owned()))
        })
    }

    /// The model of this id or name, where models are not an option like others.
    pub(super) fn find_model(&self, wanted: &str) -> Option<&str> {
        let models = iter_array(&self.0["models"]["availableModels"]);
        models.into_iter().find(|it| it["modelId"] == wanted || it["name"] == wanted)?["modelId"].as_str()
    }

    /// What could be chosen instead.
    pub(super) fn known_values(&self, category: &str) -> Vec<&str> {
        const SHOWN_MAX: usize = 20; // enough to see how they are written
        let options =
            self.options_in_category(category).flat_map(values).filter_map(|value| value["value"].as_str());
        let models = iter_array(&self.0["models"]["availableModels"]).filter_map(|it| it["modelId"].as_str());
        let models = models.filter(|_| category == "model");
        options.chain(models).take(SHOWN_MAX).collect()
    }

    fn options_in_category(&self, category: &str) -> impl Iterator<Item = &Value> {
        iter_array(&self.0["configOptions"])
            .filter(move |option| option["category"] == category || option["id"] == category)
    }
}

/// The values of an option, in groups or not.
fn values(option: &Value) -> impl Iterator<Item = &Value> {
    let (groups, plain): (Vec<_>, Vec<_>) =
        iter_array(&option["options"]).partition(|value| value["options"].is_array());
    plain.into_iter().chain(groups.into_iter().flat_map(|group| iter_array(&group["options"])))
}

fn iter_array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
