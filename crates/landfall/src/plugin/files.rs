//! What the plugin consists of.

use std::borrow::Cow;

/// A file of the plugin as the repository has it: its path, its text.
pub type PluginFile = (&'static str, &'static str);

macro_rules! skills {
    ($($name:literal),* $(,)?) => {
        /// The skills: their names, their texts.
        pub const SKILLS: &[PluginFile] =
            &[$(($name, include_str!(concat!("../../../../plugin/skills/", $name, "/SKILL.md")))),*];
    };
}

skills!["auto", "plan", "check", "exec", "verify", "merge", "report", "target", "status"];

const README: &str = include_str!("../../../../plugin/README.md");
const MANIFEST: &str = include_str!("../../../../plugin/.claude-plugin/plugin.json");

/// What makes a folder a plugin of Claude Code. It is written last: before it is there, there is no plugin.
pub const MANIFEST_PATH: &str = ".claude-plugin/plugin.json";

/// What the folders of our skills begin with where they stand beside those of others.
pub const PREFIX: &str = "landfall-";

/// The files of a plugin of Claude Code, the manifest last.
pub fn plugin_files() -> Vec<(String, Cow<'static, str>)> {
    let skills = SKILLS.iter().map(|(name, text)| (format!("skills/{name}/SKILL.md"), Cow::Borrowed(*text)));
    let rest = [("README.md", README), (MANIFEST_PATH, MANIFEST)];
    let rest = rest.map(|(path, text)| (path.to_owned(), Cow::Borrowed(text)));
    skills.chain(rest).collect()
}

/// The files of the skills alone. They stand beside those of others, so each bears our name.
pub fn skill_files() -> Vec<(String, Cow<'static, str>)> {
    let file = |(name, text): &PluginFile| {
        let own = format!("\nname: {PREFIX}{name}\n");
        let text = text.replacen(&format!("\nname: {name}\n"), &own, 1);
        (format!("{PREFIX}{name}/SKILL.md"), Cow::Owned(text))
    };
    SKILLS.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folder_comes_with_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin");
        let mut found = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder of ours").flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => {
                        let name = path.strip_prefix(&root).expect("below it").to_str().expect("text");
                        found.push((name.to_owned(), std::fs::read_to_string(&path).expect("a text")));
                    }
                }
            }
        }
        let mut embedded: Vec<_> =
            plugin_files().into_iter().map(|(path, text)| (path, text.into_owned())).collect();
        found.sort();
        embedded.sort();
        assert_eq!(found, embedded);
    }

    #[test]
    fn every_skill_is_one_that_any_reader_of_skills_understands() {
        let mut together: Vec<_> = skill_files();
        together.extend(SKILLS.iter().map(|(name, text)| (format!("{name}/SKILL.md"), Cow::Borrowed(*text))));
        for (path, text) in together {
            let folder = path.split('/').next().expect("a folder");
            let head = text.strip_prefix("---\n").and_then(|text| text.split_once("\n---\n"));
            let (head, body) = head.unwrap_or_else(|| panic!("{path} has no head"));
            let value = |key: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
                line.unwrap_or_else(|| panic!("{path} has no {key}"))
            };
            assert_eq!(value("name"), folder, "the name is that of the folder");
            // What stands there without quotes must not look like a key or a comment to whoever reads YAML.
            let about = value("description");
            assert!(
                !about.contains(": ") && !about.contains(" #") && about.starts_with(char::is_alphabetic),
                "{path}"
            );
            assert!((1..=1024).contains(&about.chars().count()), "{path}: at most 1024 letters");
            assert!(
                about.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)),
                "{path} is found in Chinese too"
            );
            assert!(body.contains("`LANDFALL_SIGNAL`"), "{path} is not for agents at work");
            assert!(body.lines().count() < 100, "{path} is short");
        }
    }

    #[test]
    fn the_words_of_every_source_start_the_skill() {
        let auto = SKILLS.iter().find(|(name, _)| *name == "auto").expect("it is there").1;
        let words = [
            "auto",
            "autopilot",
            "run automatically",
            "hands-off",
            "full cycle",
            "end to end",
            "continue",
            "start auto",
            "go auto",
            "one step manually",
            "just the plan",
            "--start",
            "--stop",
            "--status",
            "`load`",
            "`stop`",
            "`status`",
            "启动",
            "自动",
        ];
        for word in words {
            assert!(auto.contains(word), "`{word}`");
        }
    }

    #[test]
    fn the_manifest_has_the_version_of_the_program() {
        let manifest: serde_json::Value = serde_json::from_str(MANIFEST).expect("JSON");
        assert_eq!(
            (&manifest["name"], &manifest["version"]),
            (&"landfall".into(), &env!("CARGO_PKG_VERSION").into())
        );
    }
}
