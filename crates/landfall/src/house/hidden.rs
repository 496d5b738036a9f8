//! Secrets that are known: what is set for agents and for whom to tell, and what the environment calls a key or a token.

use std::collections::BTreeSet;

use landfall_engine::settings::Way;

use super::agents::is_secret;
use super::place::Place;

/// Texts that nobody is to read in an answer. Settings that are broken complain elsewhere.
pub(super) fn secrets(place: &Place) -> Vec<String> {
    let environment = place.environment();
    let mut found = BTreeSet::new();
    let mut note = |value: &str| {
        // A path tells nobody anything, and words with blanks are sentences.
        if !value.starts_with('/') && !value.contains(char::is_whitespace) {
            found.insert(value.to_owned());
        }
    };
    for (name, value) in &environment {
        if is_secret(&name.to_string_lossy()) {
            note(&value.to_string_lossy());
        }
    }
    let Ok(settings) = landfall_engine::engine::load_settings(&place.root) else {
        return found.into_iter().collect();
    };
    for profile in settings.agents.values() {
        profile.env.iter().filter(|(name, _)| is_secret(name)).for_each(|(_, value)| note(value));
    }
    let around = landfall_engine::tracker::Around {
        root: &place.root,
        folder: &place.folder,
        environment: &environment,
        author: "",
    };
    for secret in landfall_engine::tracker::secrets_in_files(&settings.tracker, &around) {
        note(&secret);
    }
    for channel in &settings.notify {
        let (Way::Webhook(address) | Way::Ntfy(address) | Way::Slack(address)) = &channel.way else {
            continue;
        };
        if let Some(url) = &address.url {
            note(url);
        }
        for name in [&address.url_env, &address.token_env].into_iter().flatten() {
            let value = environment.iter().find(|(key, _)| key.to_str() == Some(name));
            if let Some((_, value)) = value {
                note(&value.to_string_lossy());
            }
        }
    }
    found.into_iter().collect()
}
