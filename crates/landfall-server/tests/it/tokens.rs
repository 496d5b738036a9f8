//! The token: whatever is not exactly it opens nothing, and it is nowhere but in its file.

use std::os::unix::fs::PermissionsExt;

use landfall_server::AccessKeys;

use crate::support::Place;

#[test]
fn a4_nothing_but_the_token_opens() {
    let place = Place::new();
    let token = &place.token;
    assert_eq!(token.len(), 64, "256 bits");
    let cookie = place.sign_in();
    let session = cookie.split_once('=').expect("a name and a value").1;
    let wrong = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {}", "0".repeat(64)),
        format!("Bearer {}", &token[..63]),
        format!("Bearer {}", &token[..32]),
        format!("Bearer {token}0"),
        format!("Bearer {token} {token}"),
        format!("Bearer {}", token.to_uppercase() + "x"),
        format!("Bearer {}", "a".repeat(10_000)),
        format!("Basic {token}"),
        "Basic dXNlcjpwYXNzd29yZA==".to_owned(),
        format!("Token {token}"),
        token.clone(),
        // What is in a cookie is no token: pages can be made to send it.
        format!("Bearer {session}"),
    ];
    for value in wrong {
        let answer = place.ask("GET", "/api/v1/status").with("Authorization", &value).send();
        // After ten of them, no more are looked at for a minute.
        let refused = [(401, "unauthorized"), (429, "too-many")];
        assert!(refused.contains(&(answer.status, answer.code().as_str())), "{value:?}: {answer:?}");
        // A wrong token is not made good by a cookie that is right.
        let both = place.ask("GET", "/api/v1/status").with("Authorization", &value).with("Cookie", &cookie);
        assert!([401, 429].contains(&both.send().status), "{value:?}");
    }
    let twice = place.owner("GET", "/api/v1/status").with("Authorization", &format!("Bearer {token}")).send();
    assert_eq!(twice.status, 429, "{twice:?}");
    for target in [
        format!("/api/v1/status?token={token}"),
        format!("/api/v1/status?access_token={token}"),
        format!("/api/v1/status#{token}"),
    ] {
        assert_ne!(place.ask("GET", &target).send().status, 200, "{target}");
    }
    let name = cookie.split_once('=').expect("a name and a value").0;
    for value in [token.as_str(), "", &session[..60], &"f".repeat(64)] {
        let answer = place.ask("GET", "/api/v1/status").with("Cookie", &format!("{name}={value}")).send();
        assert_eq!(answer.status, 401, "{value:?}");
    }
    assert_eq!(place.toy.asked(), []);
    assert_eq!(place.owner("GET", "/api/v1/status").send().status, 200);
    assert_eq!(place.ask("GET", "/api/v1/status").with("Cookie", &cookie).send().status, 200);
}

#[test]
fn a4_secrets_are_in_no_answer_and_in_no_other_file() {
    let place = Place::new();
    let cookie = place.sign_in();
    let session = cookie.split_once('=').expect("a name and a value").1.to_owned();
    let agent = place.agent();
    for target in [
        "/",
        "/api/v1/sessions",
        "/api/v1/settings",
        "/metrics",
        "/sessions",
        "/settings",
        "/nothing",
        "/login",
    ] {
        let answer = place.owner("GET", target).send();
        let text = format!("{answer:?}");
        for secret in [&place.token, &session, &agent] {
            assert!(!text.contains(secret.as_str()), "{target}");
        }
    }
    let wrong = place.ask("GET", "/api/v1/status").with("Authorization", "Bearer canary-of-a-token").send();
    assert!(!format!("{wrong:?}").contains("canary-of-a-token"), "{wrong:?}");
    for entry in std::fs::read_dir(place.folder.path()).expect("a folder") {
        let entry = entry.expect("an entry");
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let mode = entry.metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} is for its owner alone", entry.path().display());
        assert!(!text.contains(&session) && !text.contains(&agent), "{}", entry.path().display());
        assert_eq!(text.contains(&place.token), entry.file_name() == "token", "{}", entry.path().display());
    }
    for file in ["cmdline", "environ"] {
        let text = std::fs::read(format!("/proc/self/{file}")).expect("our own");
        assert!(!String::from_utf8_lossy(&text).contains(&place.token), "{file}");
    }
}

#[test]
fn a4_a_token_that_others_could_read_is_not_used() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let token = AccessKeys::read_or_create_token(folder.path()).expect("a token");
    assert_eq!(AccessKeys::read_or_create_token(folder.path()).expect("the same"), token);
    let path = folder.path().join("token");
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("our own");
    assert!(
        AccessKeys::read_or_create_token(folder.path())
            .expect_err("others can read it")
            .to_string()
            .contains("by others")
    );
    std::fs::remove_file(&path).expect("our own");

    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, format!("{token}\n")).expect("written");
    std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o600)).expect("our own");
    std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
    assert!(AccessKeys::read_or_create_token(folder.path()).is_err(), "a link is not followed");
    std::fs::remove_file(&path).expect("our own");

    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .expect("a pipe");
    assert!(AccessKeys::read_or_create_token(folder.path()).is_err(), "a pipe is not waited for");
    std::fs::remove_file(&path).expect("our own");

    for text in ["", "short\n", &"g".repeat(64)] {
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("our own");
        assert!(AccessKeys::read_or_create_token(folder.path()).is_err(), "{text:?} is no token");
    }
}
