//! What the environment says instead of `landfall.toml`, for one run.

use super::Settings;
use super::problem::SettingsProblem;
use super::units::parse_millis;

impl Settings {
    /// The settings with `LANDFALL_MODEL` as the model of the default profile, and `LANDFALL_TIMEOUT` as the time a task may
    /// take, where those are set.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn with_env_overrides(
        mut self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsProblem> {
        let set =
            |name: &str| variable(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        if let (Some(model), Some(profile)) = (set("LANDFALL_MODEL"), self.agents.get_mut("default")) {
            profile.model = Some(model);
        }
        if let Some(text) = set("LANDFALL_TIMEOUT") {
            let problem = |message: String| SettingsProblem {
                file: "LANDFALL_TIMEOUT".to_owned(),
                line: None,
                column: None,
                message,
                hint: Some("a time such as `30m`, or unset it".to_owned()),
            };
            self.run.task_limit_ms = match parse_millis(&text).map_err(problem)? {
                0 => return Err(problem("a task needs some time".to_owned())),
                ms => ms,
            };
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;

    #[test]
    fn the_environment_overrides_the_model_and_the_time_of_a_task() {
        let settings = || {
            let text =
                "[agent.default]\nkind = \"claude\"\nmodel = \"slow\"\n[agent.other]\nkind = \"claude\"\n";
            Settings::parse(text, "landfall.toml").expect("it reads")
        };
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let plain = settings().with_env_overrides(&set(&[("LANDFALL_MODEL", " ")])).expect("nothing is set");
        assert_eq!(plain.agents["default"].model.as_deref(), Some("slow"));
        let both =
            settings().with_env_overrides(&set(&[("LANDFALL_MODEL", "fast"), ("LANDFALL_TIMEOUT", "90m")]));
        let both = both.expect("both fit");
        assert_eq!(
            (both.agents["default"].model.as_deref(), both.run.task_limit_ms),
            (Some("fast"), 5_400_000)
        );
        assert_eq!(both.agents["other"].model, None, "a profile with another name keeps its own");
        for bad in [&[("LANDFALL_TIMEOUT", "soon")][..], &[("LANDFALL_TIMEOUT", "0s")]] {
            let problem =
                settings().with_env_overrides(&set(bad)).expect_err("it cannot be used").to_string();
            assert!(problem.contains("LANDFALL_TIMEOUT"), "{problem}");
        }
    }
}
