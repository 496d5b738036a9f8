//! Whether somebody is there: to resume a pause, to pick a task, to be asked. Nothing ever waits for somebody who is not.

use std::io::IsTerminal as _;

/// Says why nobody is there; none when somebody is.
pub fn absence_reason(flag: bool) -> Option<String> {
    let variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    absence_reason_from(flag, &variables, terminal)
}

fn absence_reason_from(flag: bool, variables: &[(String, String)], terminal: bool) -> Option<String> {
    const CI: [&str; 5] = ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "TRAVIS"];
    if flag {
        return Some("--non-interactive".to_owned());
    }
    let is_set = |value: &str| !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false" | "no");
    let says = |name: &str| {
        let own = name == "LANDFALL_NON_INTERACTIVE";
        own || CI.contains(&name) || name.starts_with("JENKINS_")
    };
    if let Some((name, _)) = variables.iter().find(|(name, value)| says(name) && is_set(value)) {
        return Some(name.clone());
    }
    (!terminal).then(|| "no terminal".to_owned())
}

#[cfg(test)]
mod tests {
    use super::absence_reason_from;

    #[test]
    fn a_flag_a_variable_or_no_terminal_mean_that_nobody_is_there() {
        let check = |flag, variables: &[(&str, &str)], terminal, expect: Option<&str>| {
            let variables: Vec<(String, String)> =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(absence_reason_from(flag, &variables, terminal).as_deref(), expect, "{variables:?}");
        };
        check(false, &[("HOME", "/home/me")], true, None);
        check(true, &[], true, Some("--non-interactive"));
        check(false, &[], false, Some("no terminal"));
        check(false, &[("LANDFALL_NON_INTERACTIVE", "1")], true, Some("LANDFALL_NON_INTERACTIVE"));
        check(false, &[("LANDFALL_NON_INTERACTIVE", "0")], true, None);
        check(false, &[("CI", "true")], true, Some("CI"));
        check(false, &[("CI", "false")], true, None);
        for name in ["GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "TRAVIS", "JENKINS_URL", "JENKINS_HOME"] {
            check(false, &[(name, "yes")], true, Some(name));
        }
    }
}
