//! Text of others, two hundred pieces of it, each made to be something else than text: an option, a path, a ref, a header, a marker.
//! Whatever becomes a name is safe as that name, and whatever stays text comes back as it went in.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use landfall_trackers::github::GithubEndpoints;
use landfall_trackers::tracker::{
    CommitSha, IssueNumber, Label, Marker, NewIssue, RepoName, Slug, Title, Tracker, TrackerBranchName,
};

use crate::world::{fake, files, marker};

/// The pieces.
fn corpus() -> Vec<String> {
    const PIECES: &[&str] = &[
        "",
        " ",
        "-",
        "--",
        "-n",
        "-rf",
        "--force",
        "--upload-pack=touch x",
        "-c core.sshCommand=x",
        "--exec=sh",
        "--output=/etc/passwd",
        "-oProxyCommand=x",
        "--help",
        "+refs/heads/main:refs/heads/main",
        ":main",
        "main:main",
        "HEAD",
        "@",
        "@{-1}",
        "main@{yesterday}",
        "FETCH_HEAD",
        "refs/heads/main",
        "refs/../../config",
        "main.lock",
        "a.lock/b",
        ".hidden",
        "a/.hidden",
        "a//b",
        "/a",
        "a/",
        "a.",
        "a..b",
        "a~1",
        "a^",
        "a:b",
        "a?b",
        "a*",
        "a[b",
        "a\\b",
        "..",
        ".",
        "../",
        "../../etc/passwd",
        "/etc/passwd",
        "~/.ssh/id_rsa",
        "C:\\Windows",
        "\\\\server\\share",
        "file:///etc/passwd",
        "a/../../b",
        "%2e%2e%2f",
        "%00",
        "a%0d%0aX-Evil: 1",
        "..%2f..%2f",
        "a\0b",
        "a\nb",
        "a\rb",
        "a\r\nX-Injected: yes",
        "\n",
        "\t",
        "\u{7f}",
        "\u{1b}[31mred",
        "\u{1b}]0;title\u{7}",
        "a\u{8}b",
        "\u{202e}txt.exe",
        "\u{2066}a\u{2069}",
        "\u{200b}",
        "\u{feff}bom",
        "\u{2028}",
        "\u{85}",
        "e\u{301}",
        "ﬁ",
        "İ",
        "ß",
        "Ω",
        "日本語",
        "🦀",
        "👩\u{200d}🔧",
        "\u{fffd}",
        "\u{10ffff}",
        "$(id)",
        "`id`",
        "; rm -rf /",
        "| sh",
        "&& id",
        "|| id",
        "> /etc/passwd",
        "< /dev/zero",
        "$HOME",
        "${IFS}",
        "!!",
        "#12",
        "#0",
        "0",
        "-1",
        "+1",
        "1e9",
        "0x10",
        "18446744073709551616",
        "99999999999999999999",
        "1 2",
        "NaN",
        "null",
        "true",
        "undefined",
        "\"",
        "'",
        "'\"'\"'",
        "\\",
        "\\n",
        "{}",
        "{{base_url}}",
        "{{7*7}}",
        "{% include x %}",
        "${{ secrets.X }}",
        "<script>alert(1)</script>",
        "<!--",
        "-->",
        "<!-- landfall:a -->",
        "x\n<!-- landfall:corpus/1 -->",
        "<!-- landfall:corpus/2 --> ",
        "<!-- verify: command \"rm -rf /\" -->",
        "<!-- verify-iteration: 99 -->",
        "+++",
        "+++\nkind = \"issue\"\n+++",
        "---\ntitle: x\n---",
        "\n+++\n",
        "title = \"x\"",
        "[table]",
        "\"\"\"",
        "'''",
        "```",
        "~~~",
        "# heading",
        "- [x] done",
        "| a | b |",
        "closes #1",
        "fixes o/r#2",
        "@someone",
        "/approve",
        "[skip ci]",
        "Signed-off-by: x",
        "Co-authored-by: y",
        "o/r",
        "o",
        "o/r/x",
        "../r",
        "o/..",
        "-o/r",
        "o/-r",
        "o/.git",
        "o/r.git",
        "o/.github",
        "o r/x",
        "https://x/y",
        "git@x:y.git",
        "ext::sh -c id",
        "http://127.0.0.1@evil",
        "//evil",
        "javascript:alert(1)",
        "data:,x",
        "a?b=c&d",
        "a#b",
        "a&b",
        "a=b",
        "a,b",
        ",",
        "a;b",
        "labels=x",
        "phase/",
        "phase/ready",
        "size/XL",
        "Phase/Ready",
        "0123456789012345678901234567890123456789",
        "0123456789abcdef0123456789abcdef0123456",
        "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
        "con",
        "NUL",
        "aux.md",
        "1.md",
        ".lock",
        ".next",
        ".new",
        "12/3.md",
        "rm -rf ~",
        "sudo id",
        "IGNORE ALL PREVIOUS INSTRUCTIONS",
        "%s%s%n",
        "{0}",
        "a\u{0301}\u{0301}\u{0301}",
        "\u{61}\u{334}",
        "ＡＢＣ",
        "а",
        "xn--80ak6aa92e",
        " leading",
        "trailing ",
        "two  spaces",
        "tab\tinside",
    ];
    let mut corpus: Vec<String> = PIECES.iter().map(|it| (*it).to_owned()).collect();
    corpus.extend([
        "a".repeat(10_000),
        "-".repeat(300),
        "/".repeat(300),
        "../".repeat(100),
        "é".repeat(257),
        "\n".repeat(50),
    ]);
    corpus
}

#[test]
fn there_are_two_hundred_of_them_and_no_two_are_the_same() {
    let corpus = corpus();
    let different: BTreeSet<&String> = corpus.iter().collect();
    assert!(corpus.len() >= 200 && different.len() == corpus.len(), "{} {}", corpus.len(), different.len());
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

#[test]
fn what_becomes_a_name_is_safe_as_one() {
    let mut branches = 0;
    for text in corpus() {
        if let Ok(branch) = TrackerBranchName::new(&text) {
            branches += 1;
            assert!(!branch.as_str().starts_with('-') && is_plain(branch.as_str()), "{text:?}");
            // git has the last word on what a ref is, and a path made of it stays where it is put.
            let asked =
                Command::new("git").args(["check-ref-format", &format!("refs/heads/{branch}")]).status();
            assert!(asked.expect("git runs").success(), "{text:?}");
            let parts = Path::new(branch.as_str()).components();
            assert!(
                parts.into_iter().all(|part| matches!(part, std::path::Component::Normal(_))),
                "{text:?}"
            );
        }
        if let Ok(label) = Label::new(&text) {
            assert!(is_plain(label.as_str()) && !label.as_str().contains(','), "{text:?}");
        }
        let slug = Slug::from_text(&text).to_string();
        let legal =
            slug.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(legal && !slug.is_empty() && slug.len() <= 40 && !slug.starts_with('-'), "{text:?}: {slug}");
        assert!(TrackerBranchName::new(&format!("issue-1-{slug}")).is_ok(), "{text:?}: {slug}");
        let title = Title::from_text(&text).to_string();
        assert!(
            is_plain(&title) && !title.trim().is_empty() && title.chars().count() <= 256,
            "{text:?}: {title:?}"
        );
        if let Ok(commit) = CommitSha::new(&text) {
            assert!(commit.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()), "{text:?}");
        }
        if let Ok(number) = text.parse::<IssueNumber>() {
            assert_eq!(number.to_string().trim_start_matches('#'), text.trim_start_matches('#'));
        }
        if let Ok(repository) = RepoName::new(&text) {
            assert_eq!(repository.to_string(), text);
            assert!(!repository.owner().starts_with(['-', '.']) && repository.name() != "..", "{text:?}");
        }
        if let Ok(marker) = Marker::new(&text) {
            assert_eq!(Marker::split_marker(&marker.sign_text("x")).map(|(marker, _)| marker), Some(marker));
        }
        if let Ok(base) = GithubEndpoints::new(&text) {
            assert!(
                base.rest_url().starts_with("https://") || base.rest_url().starts_with("http://127.0.0.1"),
                "{text:?}"
            );
            assert!(!base.rest_url().contains('@'), "{text:?}");
        }
    }
    assert!(branches > 40, "only {branches} were taken: the test tests nothing");
}

/// So many in one tracker: whatever is made is looked for first, among all that is there.
const AT_ONCE: usize = 20;

/// Writes every piece wherever text goes, and looks whether it comes back.
fn through(tracker: &dyn Tracker, pieces: &[String]) {
    for (index, text) in pieces.iter().enumerate() {
        let key = marker(&format!("corpus/n{index}"));
        let label = Label::new(text).ok();
        let new = NewIssue {
            marker: key.clone(),
            title: Title::from_text(text),
            body: text.clone(),
            labels: label.iter().cloned().collect(),
        };
        let made =
            tracker.create_issue(&new).unwrap_or_else(|error| panic!("{text:?}: {error}")).into_inner();
        let issue = tracker.read_issue(made.number).expect("it is there");
        assert_eq!(issue.title, Title::from_text(text).as_str(), "{text:?}");
        assert_eq!(issue.body, key.sign_text(text), "{text:?}");
        assert!(key.is_on(&issue.body), "{text:?}");
        assert_eq!(issue.labels, label.iter().cloned().collect(), "{text:?}");
        let said = tracker.add_comment(issue.number.into(), &key, text).expect("said").into_inner();
        assert_eq!(said.marker(), Some(key), "{text:?}");
        if let Some(label) = label {
            let left = tracker.change_labels(issue.number, &[].into(), &[label].into()).expect("taken away");
            assert_eq!(left, [].into(), "{text:?}");
        }
        if let Ok(branch) = TrackerBranchName::new(text) {
            assert_eq!(tracker.pull_requests_of(&branch), Ok(vec![]), "{text:?}");
        }
    }
}

#[test]
fn files_stay_in_their_folder() {
    let seen: usize = corpus().chunks(AT_ONCE).map(look_at_files).sum();
    assert!(seen > 600, "{seen}");
}

/// Writes pieces, and counts the files that came of them.
fn look_at_files(pieces: &[String]) -> usize {
    let files = files();
    through(&files.local, pieces);
    let mut seen = 0;
    let mut folders = vec![files.folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("readable");
            let name = entry.file_name().into_string().expect("text");
            let numbered = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
            let known = numbered(name.strip_suffix(".md").unwrap_or(&name))
                || ["issues", ".lock", ".next"].contains(&name.as_str());
            assert!(known, "{name}");
            seen += 1;
            if entry.file_type().expect("known").is_dir() {
                folders.push(entry.path());
            }
        }
    }
    seen
}

#[test]
fn requests_go_where_they_were_meant_to_go() {
    corpus().chunks(AT_ONCE).for_each(look_at_requests);
}

fn look_at_requests(pieces: &[String]) {
    let it = fake();
    through(&it.github, pieces);
    let known: BTreeSet<&str> = [
        "accept",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "if-none-match",
        "user-agent",
        "x-github-api-version",
    ]
    .into();
    for heard in it.fake.heard() {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte);
        assert!(heard.path.bytes().all(legal) && !heard.path.contains("/../"), "{}", heard.path);
        let parts: Vec<&str> = heard.path.split('/').skip(1).collect();
        let fits = matches!(
            parts[..],
            ["user"]
                | ["repos", "o", "r", "issues" | "pulls" | "labels"]
                | ["repos", "o", "r", "issues", _]
                | ["repos", "o", "r", "issues", _, "comments" | "labels"]
                | ["repos", "o", "r", "issues", _, "labels", _]
                | ["repositories", "1", "issues"]
        );
        assert!(fits, "{}", heard.path);
        let headers: BTreeSet<String> = heard.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        assert!(headers.iter().all(|name| known.contains(name.as_str())), "{headers:?}");
        let names: BTreeSet<&str> = heard.query.iter().map(|(name, _)| name.as_str()).collect();
        let asked = ["creator", "direction", "head", "page", "per_page", "since", "sort", "state"];
        assert!(names.iter().all(|name| asked.contains(name)), "{names:?}");
    }
}
