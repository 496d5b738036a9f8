//! Acceptance criteria, by real files, a real git, real processes and a real server.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use landfall_engine::StateFolder;
use landfall_engine::accept::{
    AcceptanceContext, AcceptanceReport, AcceptanceSettlement, AcceptanceTree, CommandCheckout,
    CriterionResult, IssueText, Judge, JudgeQuestion, ShellContext, check_criteria, find_verify_handlers,
    settle_acceptance,
};
use landfall_engine::engine::load_settings;
use landfall_engine::host::git::{Git, Oid, Repo};
use landfall_engine::model::Timestamp;
use landfall_engine::model::acceptance::{
    AcceptanceMode, AcceptanceReason, CATALOGUE, Criteria, CustomVerifyCommand, ON_TRUST, VerifyOutcome,
    VerifyResult, WebAddress, handler_names,
};
use landfall_engine::settings::Settings;
use landfall_testkit::{FAKE_TOKEN, FakeCheck, FakeGithub, skip_test};
use landfall_trackers::github::{Github, GithubEndpoints, GithubRetryPolicy, GithubSetup, TokenSources};
use landfall_trackers::local::LocalTracker;
use landfall_trackers::tracker::{
    CommitSha, IssueNumber, Label, Marker, NewIssue, NewPullRequest, RepoName, Title, Tracker,
    TrackerBranchName, TrackerClock, TrackerIssueState, WaitEnd,
};

use VerifyResult::{Fail, Pass, Pending, PostMerge, Skipped, Uncertain};

fn git(root: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(root)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is there");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// A project with one commit, and something that is in no commit.
struct Scene {
    folder: tempfile::TempDir,
    repo: Repo,
    commit: Oid,
    settings: Settings,
    state: StateFolder,
    environment: Vec<(OsString, OsString)>,
}

const WORKFLOW: &str =
    "name: CI\non: push\njobs:\n  unit:\n    name: Unit tests\n    steps:\n      - run: make test\n";

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("shop");
        for path in [
            "shop/src/deep",
            "shop/docs",
            "shop/.github/workflows",
            "home",
            "bin",
            "shop/.landfall/verify-commands",
        ] {
            std::fs::create_dir_all(folder.path().join(path)).expect("a folder");
        }
        let write = |path: &str, text: &str| std::fs::write(root.join(path), text).expect("a file");
        write("landfall.toml", "");
        write(
            "README.md",
            "# Shop\n\n## Usage\n\nRun it.\n\n```\n# no heading\n```\n### More\n\ndeeper\n\n## Licence\n\nMIT\n",
        );
        write(
            "package.json",
            r#"{"name": "shop", "version": "1.2.3", "list": [{"x": 1}, {"x": 2}], "on": true}"#,
        );
        write("src/lib.rs", "fn main() {}\n// TODO: more\n");
        write("src/deep/a.rs", "fn a(x: i32) {}\n");
        write(".github/workflows/ci.yml", WORKFLOW);
        write(
            ".landfall/verify-commands/dns-check.md",
            "Ask whether the name is there.\n**Safe mode:** compatible\n**Permission:** always_allow\n",
        );
        write(".landfall/verify-commands/grep.md", "Never used.\n");
        std::os::unix::fs::symlink("README.md", root.join("link.md")).expect("a link");
        std::os::unix::fs::symlink("/etc/hostname", root.join("out.md")).expect("a link");
        std::os::unix::fs::symlink("../..", root.join("src/up")).expect("a link");
        for args in [&["init", "-q"] as &[_], &["add", "."], &["commit", "-qm", "first"]] {
            git(&root, args);
        }
        write("untracked.txt", "here\n");
        let found = Git::find_installed().expect("git");
        let repo = Repo::discover(&found, &root).expect("a repository");
        let commit: Oid = git(&root, &["rev-parse", "HEAD"]).parse().expect("an id");
        let settings = load_settings(&root).expect("settings");
        let state = StateFolder::at_root(folder.path().join("state"));
        let mut path = vec![folder.path().join("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").expect("there is one")));
        let environment = vec![
            ("PATH".into(), std::env::join_paths(path).expect("a path")),
            ("HOME".into(), folder.path().join("home").into_os_string()),
            ("GH_TOKEN".into(), "sesame".into()),
        ];
        Self { folder, repo, commit, settings, state, environment }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("shop")
    }

    fn at_commit(&self) -> AcceptanceTree {
        AcceptanceTree::Commit(self.repo.tree_at(&self.commit).expect("a tree"))
    }

    fn at_folder(&self) -> AcceptanceTree {
        AcceptanceTree::Folder {
            root: self.root(),
            committed: Some(self.repo.tree_at(&self.commit).expect("a tree")),
        }
    }

    fn shell(&self) -> ShellContext<'_> {
        ShellContext {
            settings: &self.settings.run,
            folder: &self.state,
            program: Path::new(env!("CARGO_BIN_EXE_landfall-engine-probe")),
            environment: &self.environment,
            root: self.repo.root(),
            checkout: CommandCheckout::Of(&self.repo, &self.commit),
        }
    }
}

fn ground<'a>(
    tree: &'a AcceptanceTree,
    shell: Option<&'a ShellContext<'a>>,
    mode: AcceptanceMode,
) -> AcceptanceContext<'a> {
    AcceptanceContext {
        tree,
        issue: IssueText { title: "Shop", body: "It should sell." },
        mode,
        merged: true,
        leave: true,
        occasion: AcceptanceReason::Verify,
        happened: &[],
        base_url: None,
        allow_localhost: false,
        handlers: &[],
        tracker: None,
        pr: None,
        head: None,
        diff: None,
        spec_folder: "docs/spec",
        judge: None,
        shell,
    }
}

fn criteria(hint: &str) -> Criteria {
    Criteria::from_body(&format!("- [ ] <!-- verify: {hint} --> it holds"), &["dns-check".to_owned()].into())
}

fn look(ground: &AcceptanceContext<'_>, hint: &str) -> CriterionResult {
    let criteria = criteria(hint);
    assert_eq!(criteria.items.len(), 1, "{hint}");
    check_criteria(&criteria, ground).remove(0)
}

/// Each of these is looked at; `true` says that it was seen to pass and to fail and to be misunderstood.
fn check_table(ground: &AcceptanceContext<'_>, table: &[(&str, VerifyResult)]) {
    for (hint, wanted) in table {
        let seen = look(ground, hint);
        assert_eq!(seen.result, *wanted, "{hint}: {}", seen.evidence);
        assert!(!seen.evidence.is_empty(), "{hint} says why");
    }
}

const FILES: &[(&str, VerifyResult)] = &[
    (r#"file_exists "README.md""#, Pass),
    (r#"file_exists "./src/lib.rs""#, Pass),
    (r#"file_exists "src""#, Fail),
    (r#"file_exists "nope.md""#, Fail),
    (r#"file_exists "README.md/x""#, Fail),
    (r#"file_exists "link.md""#, Pass),
    (r#"file_exists "out.md""#, Uncertain),
    (r#"file_exists "src/up/x""#, Uncertain),
    (r#"file_exists "../x""#, Uncertain),
    (r#"file_exists "/etc/passwd""#, Uncertain),
    (r#"file_exists ".git/config""#, Uncertain),
    (r#"file_exists"#, Uncertain),
    (r#"file_not_exists "nope.md""#, Pass),
    (r#"file_not_exists "README.md""#, Fail),
    (r#"file_not_exists "-x""#, Uncertain),
    (r#"dir_exists "src/""#, Pass),
    (r#"dir_exists "README.md""#, Fail),
    (r#"dir_exists "~""#, Uncertain),
    (r#"dir_not_exists "old""#, Pass),
    (r#"dir_not_exists "src""#, Fail),
    (r#"dir_not_exists """#, Uncertain),
    (r#"git_committed "README.md""#, Pass),
    (r#"git_committed "untracked.txt""#, Fail),
    (r#"git_committed ":(top)x""#, Uncertain),
    (r#"file_contains "README.md" "Run it.""#, Pass),
    (r#"file_contains "README.md" "run it""#, Fail),
    (r#"file_contains "link.md" "Run it.""#, Pass),
    (r#"file_contains "nope.md" "x""#, Fail),
    (r#"file_contains "out.md" "x""#, Uncertain),
    (r#"file_contains "README.md" """#, Uncertain),
    (r#"file_not_contains "README.md" "buy""#, Pass),
    (r#"file_not_contains "README.md" "Run it.""#, Fail),
    (r#"file_not_contains "README.md""#, Uncertain),
    (r#"files_not_contain "src/**/*.rs" "FIXME""#, Pass),
    (r#"files_not_contain "nothing/*.rs" "TODO""#, Pass),
    (r#"files_not_contain "src/**/*.rs" "TODO""#, Fail),
    (r#"files_not_contain "src/[a" "TODO""#, Uncertain),
    (r#"grep "^fn [a-z]+\(x: i(32|64)\)" "src/deep/a.rs""#, Pass),
    (r#"grep "[[:digit:]]{2}" "src/deep/a.rs""#, Pass),
    (r#"grep "^FN" "src/deep/a.rs""#, Fail),
    (r#"grep "(" "src/deep/a.rs""#, Uncertain),
    (r#"grep "(((x{1000}){1000}){1000})" "src/deep/a.rs""#, Uncertain),
    (r#"json_field "package.json" ".version" "1.2.3""#, Pass),
    (r#"json_field "package.json" ".list[1].x" "2""#, Pass),
    (r#"json_field "package.json" ".on" "true""#, Pass),
    (r#"json_field "package.json" ".list | length" "2""#, Pass),
    (r#"json_field "package.json" ".version" "2""#, Fail),
    (r#"json_field "README.md" ".a" "1""#, Fail),
    (r#"json_field "package.json" ".a | env" "1""#, Uncertain),
    (r#"section_contains "README.md" "Usage" "Run it.""#, Pass),
    (r#"section_contains "README.md" "Usage" "deeper""#, Pass),
    (r#"section_contains "README.md" "Usage" "MIT""#, Fail),
    (r#"section_contains "README.md" "Prices" "x""#, Uncertain),
    (r#"section_contains "README.md" "no heading" "x""#, Uncertain),
    (r#"section_not_contains "README.md" "Usage" "MIT""#, Pass),
    (r#"section_not_contains "README.md" "Usage" "Run it.""#, Fail),
    (r#"section_not_contains "README.md" "Prices" "x""#, Uncertain),
    (r#"symlink "link.md" "README.md""#, Pass),
    (r#"symlink "link.md" "other.md""#, Fail),
    (r#"symlink "README.md" "x""#, Fail),
    (r#"symlink "src/up/x" "x""#, Uncertain),
    (r#"unknown_command "x""#, Uncertain),
];

#[test]
fn files_are_looked_at_in_a_commit_and_in_a_folder() {
    let scene = Scene::new();
    let (commit, folder) = (scene.at_commit(), scene.at_folder());
    for mode in [AcceptanceMode::Safe, AcceptanceMode::Full] {
        check_table(&ground(&commit, None, mode), FILES);
        check_table(&ground(&folder, None, mode), FILES);
    }
    let missing =
        look(&ground(&commit, None, AcceptanceMode::Safe), r#"section_contains "README.md" "Prices" "x""#);
    assert!(missing.evidence.contains("it has `Shop`, `Usage`, `More`"), "{}", missing.evidence);
    // What is in no commit is seen in the folder alone.
    let hint = r#"file_exists "untracked.txt""#;
    assert_eq!(look(&ground(&commit, None, AcceptanceMode::Safe), hint).result, Fail);
    assert_eq!(look(&ground(&folder, None, AcceptanceMode::Safe), hint).result, Pass);
}

#[test]
fn commands_run_on_a_checkout_in_the_sandbox_and_see_nothing_secret() {
    let scene = Scene::new();
    let (tree, shell) = (scene.at_commit(), scene.shell());
    let full = ground(&tree, Some(&shell), AcceptanceMode::Full);
    let outside = scene.folder.path().join("home/outside");
    check_table(
        &full,
        &[
            (r#"command "test -f README.md && ! test -e untracked.txt""#, Pass),
            (r#"command "[[ x == x ]] && echo y > here && test -f here""#, Pass),
            (r#"command "! test -e here""#, Pass), // each verification has a checkout of its own
            (r#"command "exit 3""#, Fail),
            (r#"command "kill -9 $$""#, Fail),
            (r#"command "test -z \"$GH_TOKEN\"""#, Pass),
            (r#"command " ""#, Uncertain),
            (r#"build_success "true""#, Pass),
            (r#"build_success "false""#, Fail),
            (r#"build_success"#, Uncertain),
            (&format!(r#"command "echo x > {}""#, outside.display()), Fail),
            (r#"file_exists "README.md" --when="test -f README.md""#, Pass),
            (r#"file_exists "nope.md" --when="test -f README.md""#, Fail),
            (r#"file_exists "README.md" --when="false""#, Skipped),
            (r#"file_exists "README.md" --when="no-such-program""#, Skipped),
            (r#"file_exists "README.md" --when"#, Uncertain),
            (r#"mcp_call "tool" "what""#, Uncertain),
            (r#"mcp_call "tool""#, Uncertain),
        ],
    );
    assert!(!outside.exists(), "it may write only in its checkout");
    assert!(!scene.root().join("here").exists(), "nor in the person's");
    // Within one, the next command finds what the one before it made: one installs, the other tests.
    let body = "- [ ] <!-- verify: command \"echo y > here\" --> a\n- [ ] <!-- verify: command \"test -f here\" --> b\n";
    let both: Vec<_> = check_criteria(&Criteria::from_body(body, &BTreeSet::new()), &full)
        .into_iter()
        .map(|it| it.result)
        .collect();
    assert_eq!(both, [Pass, Pass]);
    let failed = look(&full, r#"command "echo the reason; exit 3""#);
    assert_eq!(failed.evidence, "it ended with code 3: the reason");
}

#[test]
fn safe_mode_runs_nothing_and_asks_no_private_address() {
    let scene = Scene::new();
    let (tree, shell) = (scene.at_commit(), scene.shell());
    let safe = ground(&tree, Some(&shell), AcceptanceMode::Safe);
    let flag = scene.folder.path().join("flag");
    let touch = format!("touch {}", flag.display());
    for hint in [
        format!(r#"command "{touch}""#),
        format!(r#"build_success "{touch}""#),
        format!(r#"file_exists "README.md" --when="{touch}""#),
        r#"browser_check "https://example.com" "a""#.to_owned(),
        r#"lighthouse_check "https://example.com" "seo" "1""#.to_owned(),
        r#"visual_diff "a.png" "https://example.com""#.to_owned(),
        r#"browser_screenshot "https://example.com" "a""#.to_owned(),
        r#"mcp_call "a" "b""#.to_owned(),
        r#"github_check "gh pr merge 1" "x""#.to_owned(),
        r#"http_status "http://127.0.0.1:1" "200" --allow-localhost"#.to_owned(),
        r#"http_status "http://localhost:1" "200""#.to_owned(),
        r#"http_status "http://2130706433:1" "200""#.to_owned(),
        r#"http_status "http://0x7f.1:1" "200""#.to_owned(),
        r#"http_status "http://[::ffff:127.0.0.1]:1" "200""#.to_owned(),
        r#"html_check "http://169.254.169.254" "a" --exists"#.to_owned(),
        r#"api_check "http://10.0.0.1" ".a" "b""#.to_owned(),
        r#"http_header "http://192.168.0.1" "a" "b""#.to_owned(),
        r#"http_redirect "http://[fd00::1]" "https://example.com" "301""#.to_owned(),
    ] {
        assert_eq!(look(&safe, &hint).result, Uncertain, "{hint}");
    }
    assert!(!flag.exists(), "nothing was run");
}

/// A server that says what the path asks for.
struct Site {
    port: u16,
    over: Arc<AtomicBool>,
    door: Option<std::thread::JoinHandle<()>>,
}

const PAGE: &str = "<!doctype html><title>Shop</title><ul id=list><li class=one>First<li>Second</ul><p hidden></p>\
    <script>document.body.insertAdjacentHTML('beforeend', '<em id=late>made late</em>')</script>";

impl Site {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let door = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::spawn(move || drop(serve(stream))); // a client that left is none of ours
            }
        });
        Self { port, over, door: Some(door) }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port)); // so that it looks
        if let Some(door) = self.door.take() {
            door.join().expect("it ends");
        }
    }
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or("/");
    let (status, more, body) = match path {
        "/page" | "/other" => ("200 OK", "X-Shop: open; really\r\nContent-Type: text/html\r\n", PAGE),
        "/json" => ("200 OK", "Content-Type: application/json\r\n", r#"{"ok": true, "items": [1, 2, 3]}"#),
        "/old" => ("301 Moved Permanently", "Location: /page\r\n", ""),
        "/red" => ("200 OK", "Content-Type: text/html\r\n", "<body style='background:red'>"),
        _ => ("404 Not Found", "", "no"),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn addresses_are_asked_once_a_person_lets_this_machine_be_asked() {
    let (scene, site) = (Scene::new(), Site::open());
    let tree = scene.at_commit();
    let base = WebAddress::new(&format!("http://127.0.0.1:{}", site.port)).expect("an address");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let closed = format!(r#"http_status "http://127.0.0.1:{closed}/" "200""#);
    let table: &[(&str, VerifyResult)] = &[
        (r#"http_status "{{base_url}}/page" "200""#, Pass),
        (r#"http_status "{{base_url}}/none" "404""#, Pass),
        (r#"http_status "{{base_url}}/none" "200""#, Fail),
        (r#"http_status "{{base_url}}/old" "301""#, Pass),
        (&closed, Fail),
        (r#"http_status "{{base_url}}/page" "20""#, Uncertain),
        (r#"http_status "ftp://a" "200""#, Uncertain),
        (r#"html_check "{{base_url}}/page" "ul#list > li" --count=2"#, Pass),
        (r#"html_check "{{base_url}}/page" "li.one" "--exists""#, Pass),
        (r#"html_check "{{base_url}}/page" "li" "--count=3""#, Fail),
        (r#"html_check "{{base_url}}/page" "table" --exists"#, Fail),
        (r#"html_check "{{base_url}}/none" "li" --exists"#, Fail),
        (r#"html_check "{{base_url}}/page" "li:hover" --exists"#, Uncertain),
        (r#"html_check "{{base_url}}/page" "li""#, Uncertain),
        (r#"api_check "{{base_url}}/json" ".items | length" "3""#, Pass),
        (r#"api_check "{{base_url}}/json" ".ok" "false""#, Fail),
        (r#"api_check "{{base_url}}/page" ".ok" "true""#, Fail),
        (r#"api_check "{{base_url}}/none" ".ok" "true""#, Fail),
        (r#"api_check "{{base_url}}/json" "$x" "true""#, Uncertain),
        (r#"http_header "{{base_url}}/page" "x-shop" "open""#, Pass),
        (r#"http_header "{{base_url}}/page" "x-shop" "closed""#, Fail),
        (r#"http_header "{{base_url}}/page" "x-other" "open""#, Fail),
        (r#"http_header "{{base_url}}/page" "x shop" "open""#, Uncertain),
        (r#"http_redirect "{{base_url}}/old" "{{base_url}}/page" "301""#, Pass),
        (r#"http_redirect "{{base_url}}/old" "{{base_url}}/page" "302""#, Fail),
        (r#"http_redirect "{{base_url}}/old" "{{base_url}}/other" "301""#, Fail),
        (r#"http_redirect "{{base_url}}/page" "{{base_url}}/other" "301""#, Fail),
        (r#"http_redirect "{{base_url}}/old" "nowhere" "301""#, Uncertain),
    ];
    let local = AcceptanceContext {
        base_url: Some(&base),
        allow_localhost: true,
        ..ground(&tree, None, AcceptanceMode::Safe)
    };
    check_table(&local, table);
    check_table(&AcceptanceContext { allow_localhost: false, mode: AcceptanceMode::Full, ..local }, table);
    let nowhere = ground(&tree, None, AcceptanceMode::Full);
    check_table(&nowhere, &[(r#"http_status "{{base_url}}/page" "200""#, Uncertain)]);
}

#[test]
fn a_browser_sees_what_scripts_made_where_one_is_installed() {
    let (scene, site) = (Scene::new(), Site::open());
    let (tree, shell) = (scene.at_commit(), scene.shell());
    let base = WebAddress::new(&format!("http://127.0.0.1:{}", site.port)).expect("an address");
    let judge = |question: &JudgeQuestion<'_>| {
        let picture =
            std::fs::read(question.picture.expect("a picture")).map_err(|error| error.to_string())?;
        assert!(picture.starts_with(b"\x89PNG"));
        let verdict = if question.prompt.contains("a list") { "PASS" } else { "FAIL" };
        Ok(format!(r#"{{"verdict": "{verdict}", "evidence": "seen", "negative_cases": ["none"]}}"#))
    };
    let full = AcceptanceContext {
        base_url: Some(&base),
        judge: Some(&judge),
        ..ground(&tree, Some(&shell), AcceptanceMode::Full)
    };
    let wrong: &[(&str, VerifyResult)] = &[
        (r#"browser_check "{{base_url}}/page" "em:hover""#, Uncertain),
        (r#"browser_check "file:///etc/passwd" "em""#, Uncertain),
        (r#"browser_screenshot "{{base_url}}/page" """#, Uncertain),
        (r#"visual_diff "../a.png" "{{base_url}}/page""#, Uncertain),
        (r#"visual_diff "{{base_url}}/page" "{{base_url}}/page" --viewports="wide""#, Uncertain),
        (r#"visual_diff "{{base_url}}/page" "{{base_url}}/page" --states="hover""#, Uncertain),
        (r#"lighthouse_check "{{base_url}}/page" "beauty" "90""#, Uncertain),
        (r#"lighthouse_check "{{base_url}}/page" "seo" "101""#, Uncertain),
    ];
    check_table(&full, wrong);
    let seen = look(&full, r#"browser_check "{{base_url}}/page" "em#late" "made late""#);
    if seen.evidence.contains("no browser is installed") {
        assert_eq!(seen.result, Uncertain, "never a pass without a look");
        return skip_test("no browser is installed");
    }
    let table: &[(&str, VerifyResult)] = &[
        (r#"browser_check "{{base_url}}/page" "em#late" "made late""#, Pass),
        (r#"browser_check "{{base_url}}/page" "em#late" "made early""#, Fail),
        (r#"browser_check "{{base_url}}/page" "table""#, Fail),
        (r#"browser_screenshot "{{base_url}}/page" "a list""#, Pass),
        (r#"browser_screenshot "{{base_url}}/page" "a cat""#, Fail),
        (
            r#"visual_diff "{{base_url}}/page" "{{base_url}}/other" --viewports="390x844" --states="default""#,
            Pass,
        ),
        (r#"visual_diff "{{base_url}}/page" "{{base_url}}/red""#, Fail),
    ];
    check_table(&full, table);
}

#[test]
fn lighthouse_is_believed_where_it_is_installed() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    let (tree, shell) = (scene.at_commit(), scene.shell());
    let full = ground(&tree, Some(&shell), AcceptanceMode::Full);
    let hint = r#"lighthouse_check "https://example.com" "seo" "90""#;
    assert_eq!(look(&full, hint).result, Uncertain, "never a pass without a look");
    let program = scene.folder.path().join("bin/lighthouse");
    let score = |score: &str| {
        std::fs::write(
            &program,
            format!("#!/bin/sh\necho '{{\"categories\":{{\"seo\":{{\"score\":{score}}}}}}}'\n"),
        )
        .expect("a file");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        look(&full, hint).result
    };
    assert_eq!([score("0.9"), score("0.894"), score("null")], [Pass, Fail, Uncertain]);
}

struct TestClock(AtomicI64);

impl TrackerClock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::SeqCst))
    }

    fn wait(&self, ms: u64) -> WaitEnd {
        self.0.fetch_add(i64::try_from(ms).expect("short"), Ordering::SeqCst);
        WaitEnd::Elapsed
    }
}

fn clock() -> Arc<TestClock> {
    Arc::new(TestClock(AtomicI64::new(1_800_000_000_000)))
}

fn github(fake: &FakeGithub) -> Github {
    let token = TokenSources::default().with_provider("the test", Arc::new(|| Ok(FAKE_TOKEN.to_owned())));
    let patience = GithubRetryPolicy {
        answer_ms: 1_500,
        limit_ms_max: 90_000,
        tries_max: 2,
        again_ms: 100,
        write_gap_ms: 0,
    };
    Github::new(GithubSetup {
        base: GithubEndpoints::new(&fake.url()).expect("an address"),
        repository: RepoName::new("o/r").expect("a name"),
        token,
        proxy: None,
        size_field: None,
        patience,
        clock: clock(),
    })
    .expect("it can be made")
}

fn checks(list: &[(&str, &str)]) -> Vec<FakeCheck> {
    let one = |(name, state): &(&str, &str)| match *state {
        "queued" | "in_progress" => {
            FakeCheck { name: (*name).to_owned(), status: (*state).to_owned(), conclusion: None }
        }
        done => FakeCheck {
            name: (*name).to_owned(),
            status: "completed".to_owned(),
            conclusion: Some(done.to_owned()),
        },
    };
    list.iter().map(one).collect()
}

#[test]
fn the_forge_is_asked_by_its_tracker_and_never_by_a_shell() {
    let scene = Scene::new();
    let tree = scene.at_commit();
    let fake = FakeGithub::start();
    let tracker = github(&fake);
    let issue = fake.world(|world| world.opened("Sell things", "body", &["phase/verify"]));
    fake.world(|world| {
        world.branches.insert("main".to_owned(), "a".repeat(40));
        world.branches.insert("work".to_owned(), scene.commit.as_str().to_owned());
    });
    let pull = tracker
        .create_pull_request(&NewPullRequest {
            head: TrackerBranchName::new("work").expect("a name"),
            head_sha: CommitSha::new(scene.commit.as_str()).expect("an id"),
            base: TrackerBranchName::new("main").expect("a name"),
            title: Title::from_text("Sell"),
            body: String::new(),
            draft: false,
        })
        .expect("it can be made")
        .into_inner();
    let set = |list: &[(&str, &str)]| {
        fake.world(|world| world.checks.insert(scene.commit.as_str().to_owned(), checks(list)));
    };
    let safe = AcceptanceContext {
        tracker: Some(&tracker),
        pr: Some(pull.number),
        ..ground(&tree, None, AcceptanceMode::Safe)
    };
    set(&[("Unit tests", "success"), ("lint", "success")]);
    let view = format!(r#"github_check "gh issue view {issue} --json state --jq .state" "OPEN""#);
    let closed = format!(r#"github_check "gh issue view {issue} --json state,title" "CLOSED""#);
    check_table(
        &safe,
        &[
            (&view, Pass),
            (&closed, Fail),
            (r#"github_check "gh issue view 99" "x""#, Uncertain),
            (r#"github_check "gh issue view me" "x""#, Uncertain),
            (r#"github_check "gh pr view --json headRefName --jq '.headRefName'" "work""#, Pass),
            (r#"github_check "gh pr view" "MERGED""#, Fail),
            (r#"github_check "gh pr view --json colour" "x""#, Uncertain),
            (r#"github_check "gh pr view --repo a/b" "x""#, Uncertain),
            (r#"github_check "gh pr checks" "pass""#, Pass),
            (r#"github_check "gh pr checks" "unit""#, Pass), // the key of a job that is shown by another name
            (r#"github_check "gh pr checks" "Unit tests""#, Pass),
            (r#"github_check "gh pr checks" "deploy""#, Fail),
            (r#"github_check "gh run list" "success""#, Pass),
            (r#"github_check "gh run list --json conclusion --jq .[].conclusion" "success""#, Pass),
            (
                r#"github_check "gh run list --workflow ci.yml --limit 1 --json status --jq .[0].status" "completed""#,
                Pass,
            ),
            (r#"github_check "gh run list --workflow=CI --branch main" "success""#, Pass),
            (r#"github_check "gh run list --workflow other.yml" "success""#, Uncertain),
            (r#"github_check "gh api repos/o/r" "x""#, Uncertain), // no client here
            (r#"github_check "gh api user" "x""#, Uncertain),
            (r#"github_check "gh pr view | sh" "x""#, Uncertain),
            (r#"github_check "gh pr merge" "x""#, Uncertain),
            // In safe mode the forge's own run of a command answers for it.
            (r#"command "make test""#, Pass),
            (r#"command "make other""#, Uncertain),
        ],
    );
    let expected = |list: &[(&str, &str)], wanted: [VerifyResult; 4]| {
        set(list);
        let hints = [
            r#"github_check "gh pr checks" "pass""#,
            r#"github_check "gh pr checks" "unit""#,
            r#"github_check "gh run list --json conclusion" "success""#,
            r#"command "make test""#,
        ];
        for (hint, wanted) in hints.iter().zip(wanted) {
            let seen = look(&safe, hint);
            assert_eq!(seen.result, wanted, "{hint} with {list:?}: {}", seen.evidence);
        }
    };
    expected(&[("Unit tests", "in_progress"), ("lint", "success")], [Pending; 4]);
    expected(&[("lint", "queued")], [Pending, Pending, Pending, Uncertain]);
    expected(&[("Unit tests", "failure"), ("lint", "success")], [Fail; 4]);
    // What cut a check off says nothing about the work.
    expected(&[("Unit tests", "cancelled")], [Uncertain; 4]);
    expected(&[("Unit tests", "timed_out")], [Uncertain; 4]);
    // No check for the commit at all: the forge has not looked.
    expected(&[], [Uncertain; 4]);
    // A job called "fail" that passed has passed.
    expected(&[("fail fast", "success"), ("Unit tests", "success")], [Pass; 4]);
    let nobody = ground(&tree, None, AcceptanceMode::Safe);
    check_table(
        &nobody,
        &[(r#"github_check "gh pr view" "x""#, Uncertain), (r#"command "make test""#, Uncertain)],
    );
    let unknown = AcceptanceContext { pr: None, ..safe };
    check_table(&unknown, &[(r#"github_check "gh pr checks" "pass""#, Uncertain)]);
    // Cut off where a command may be run: it is run here.
    set(&[("Unit tests", "cancelled")]);
    let shell = scene.shell();
    let full =
        AcceptanceContext { tracker: Some(&tracker), ..ground(&tree, Some(&shell), AcceptanceMode::Full) };
    assert_eq!(look(&full, r#"command "test -f README.md""#).result, Pass);
}

#[test]
fn the_client_of_a_forge_gets_words_that_were_understood_and_what_it_says_is_not_shown() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    let program = scene.folder.path().join("bin/gh");
    std::fs::write(&program, "#!/bin/sh\necho \"private: $GH_TOKEN $*\"\n").expect("a file");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (tree, shell) = (scene.at_commit(), scene.shell());
    let safe = ground(&tree, Some(&shell), AcceptanceMode::Safe);
    let seen = look(&safe, r#"github_check "gh api repos/o/r --jq '.a b'" "sesame api repos/o/r --jq .a b""#);
    assert_eq!(seen.result, Pass, "{}", seen.evidence);
    let seen = look(&safe, r#"github_check "gh api repos/o/r" "public""#);
    assert_eq!((seen.result, seen.evidence.contains("private")), (Fail, false), "{}", seen.evidence);
    for hint in [
        r#"github_check "gh api repos/o/r/../../user" "x""#,
        r#"github_check "gh api https://evil.example" "x""#,
        r#"github_check "gh api repos/o/r -X DELETE" "x""#,
        r#"github_check "gh run view x" "x""#,
    ] {
        assert_eq!(look(&safe, hint).result, Uncertain, "{hint}");
    }
}

#[test]
fn a_judge_sees_the_issue_the_change_and_the_files_and_never_the_plan() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.root().join("docs/spec")).expect("a folder");
    std::fs::write(scene.root().join("docs/spec/issue-1.md"), "the plan").expect("a file");
    let tree = scene.at_folder();
    let diff = "diff --git a/docs/spec/issue-1.md b/docs/spec/issue-1.md\n+the plan\ndiff --git a/src/lib.rs b/src/lib.rs\n+fn sell() {}\n";
    let asked = std::sync::Mutex::new(Vec::new());
    let judge = |question: &JudgeQuestion<'_>| {
        asked.lock().expect("alone").push(question.prompt.to_owned());
        let verdict = if question.prompt.contains("sells") { "PASS" } else { "FAIL" };
        Ok(format!(
            r#"{{"verdict": "{verdict}", "evidence": "src/lib.rs", "negative_cases": ["empty shop"]}}"#
        ))
    };
    let (own, said) = find_verify_handlers(&tree);
    assert_eq!(own.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["dns-check"]);
    assert!(said.len() == 1 && said[0].contains("grep.md"), "{said:?}");
    assert_eq!(handler_names(&own), BTreeSet::from(["dns-check".to_owned()]));
    for mode in [AcceptanceMode::Safe, AcceptanceMode::Full] {
        let ground = AcceptanceContext {
            judge: Some(&judge),
            diff: Some(diff),
            handlers: &own,
            ..ground(&tree, None, mode)
        };
        check_table(
            &ground,
            &[
                (r#"rubric "src/lib.rs sells, see docs/spec/issue-1.md""#, Pass),
                (r#"rubric "it flies""#, Fail),
                (r#"rubric """#, Uncertain),
                (r#"dns-check "shop.example sells""#, Pass),
                (r#"dns-check "shop.example""#, Fail),
            ],
        );
    }
    let asked = asked.into_inner().expect("alone");
    assert!(asked.iter().all(|it| it.contains("It should sell.") && it.contains("+fn sell() {}")));
    assert!(asked.iter().all(|it| !it.contains("the plan")));
    assert!(asked[0].contains("// TODO: more"), "the named file: {}", asked[0]);
    assert!(
        asked[2].contains("Ask whether the name is there.") && asked[2].contains("1: shop.example sells")
    );
    let nobody = AcceptanceContext { handlers: &own, ..ground(&tree, None, AcceptanceMode::Safe) };
    check_table(&nobody, &[(r#"rubric "x""#, Uncertain), (r#"dns-check "x""#, Uncertain)]);
    let broken = |_: &JudgeQuestion<'_>| Err("no quota".to_owned());
    let broken: &dyn Judge = &broken;
    check_table(&AcceptanceContext { judge: Some(broken), ..nobody }, &[(r#"rubric "x""#, Uncertain)]);
}

/// Every command was seen to pass, to fail and to be misunderstood, but for those whose fate is to stay open.
#[test]
fn the_tables_of_these_tests_hold_every_command() {
    let source: String = include_str!("accept.rs").split_whitespace().collect();
    let rows: Vec<&str> = source.split("r#\"").collect();
    for spec in CATALOGUE {
        for result in ["Pass", "Fail", "Uncertain"] {
            // No MCP server is wired, and lighthouse has a test of its own.
            let exempt = matches!(spec.name, "mcp_call" | "lighthouse_check") && result != "Uncertain";
            let seen = rows.iter().any(|row| {
                row.strip_prefix(spec.name).is_some_and(|row| row.starts_with('"'))
                    && [")", ",)"].iter().any(|end| row.contains(&format!("\"#,{result}{end}")))
            });
            assert!(exempt || seen, "{} {result}", spec.name);
        }
    }
}

const BODY: &str = "### Pre-merge (auto-verified)\n\
- [ ] <!-- verify: file_exists \"README.md\" --> there is a README\n\
- [ ] <!-- verify: file_exists \"nope.md\" --> there is more\n\
### Post-merge\n\
- [ ] a person likes it\n";

fn verified(
    scene: &Scene,
    tracker: &dyn Tracker,
    issue: IssueNumber,
) -> (Vec<VerifyResult>, AcceptanceReport) {
    verified_on(scene, tracker, issue, None)
}

fn verified_on(
    scene: &Scene,
    tracker: &dyn Tracker,
    issue: IssueNumber,
    side: Option<&str>,
) -> (Vec<VerifyResult>, AcceptanceReport) {
    let tree = scene.at_commit();
    let body = tracker.read_issue(issue).expect("there").body;
    let criteria = Criteria::from_body(&body, &BTreeSet::new());
    let ground = AcceptanceContext { tracker: Some(tracker), ..ground(&tree, None, AcceptanceMode::Safe) };
    let checked = check_criteria(&criteria, &ground);
    let settled = settle_acceptance(&AcceptanceSettlement {
        tracker,
        issue,
        criteria: &criteria,
        checked: &checked,
        customs: &BTreeSet::new(),
        commit: scene.commit.as_str(),
        iterations_max: 3,
        open_pr: None,
        left: 0,
        was_done: false,
        side,
    });
    (checked.iter().map(|it| it.result).collect(), settled.expect("it can be settled"))
}

/// The whole of it: fails, is told once, is sent back, is mended, and is done when a person has ticked the last box.
fn cycle(scene: &mut Scene, tracker: &dyn Tracker) {
    let new = NewIssue {
        marker: Marker::new("test/1").expect("a key"),
        title: Title::from_text("Shop"),
        body: BODY.to_owned(),
        labels: [Label::new("phase/verify").expect("a label")].into(),
    };
    let issue = tracker.create_issue(&new).expect("made").into_inner().number;
    tracker.close_issue(issue, landfall_trackers::tracker::CloseReason::Done).expect("closed");
    let labels = || {
        let seen = tracker.read_issue(issue).expect("there");
        seen.labels.iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>()
    };
    let comments = || tracker.list_comments(issue.into()).expect("comments").len();
    let state = || tracker.read_issue(issue).expect("there").state;

    let (results, first) = verified(scene, tracker, issue);
    assert_eq!(results, [Pass, Fail, Skipped]);
    assert_eq!(first.outcome, VerifyOutcome::Reopen { iteration: 1 });
    assert_eq!((first.ticked, first.told, first.known, comments()), (1, true, false, 1));
    assert_eq!((state(), labels()), (TrackerIssueState::Open, vec![]));
    let body = tracker.read_issue(issue).expect("there").body;
    assert!(
        body.contains("- [x] <!-- verify: file_exists \"README.md\" --> there is a README\n- [ ] <!--"),
        "{body}"
    );

    // Again without a change: nothing twice, and what a person did meanwhile stays.
    tracker.swap_label(issue, "phase/", Some(&Label::new("phase/code").expect("a label"))).expect("swapped");
    let (_, again) = verified(scene, tracker, issue);
    assert_eq!((again.outcome, again.ticked, again.told, again.known), (first.outcome, 0, false, true));
    assert_eq!((comments(), labels()), (1, vec!["phase/code".to_owned()]));

    // Twice more with something new each time: the third failure is for a person.
    for (number, wanted) in
        [(2, VerifyOutcome::Reopen { iteration: 2 }), (3, VerifyOutcome::Exhausted { iteration: 3 })]
    {
        git(&scene.root(), &["commit", "-q", "--allow-empty", "-m", "more"]);
        scene.commit = git(&scene.root(), &["rev-parse", "HEAD"]).parse().expect("an id");
        let (_, settled) = verified(scene, tracker, issue);
        assert_eq!((settled.outcome, comments()), (wanted, number));
    }
    assert_eq!(labels(), ["phase/verify"]);
    let said = tracker.list_comments(issue.into()).expect("comments");
    assert!(said[2].body.contains("MAX_ITERATIONS_REACHED") && said[2].body.contains("needs a person"));

    // Mended: what is left is a person's.
    std::fs::write(scene.root().join("nope.md"), "").expect("a file");
    for args in [&["add", "nope.md"] as &[_], &["commit", "-qm", "mended"]] {
        git(&scene.root(), args);
    }
    scene.commit = git(&scene.root(), &["rev-parse", "HEAD"]).parse().expect("an id");
    for round in 0..2 {
        let (results, settled) = verified(scene, tracker, issue);
        assert_eq!(results, [Pass, Pass, Skipped]);
        assert_eq!((settled.outcome, settled.told), (VerifyOutcome::LeftOver(1), round == 0));
        assert_eq!((comments(), labels()), (4, vec!["phase/verify".to_owned()]));
    }
    let body = tracker.read_issue(issue).expect("there").body.replace("[ ] a person", "[x] a person");
    let edit = landfall_trackers::tracker::IssueTextEdit { title: None, body: Some(body) };
    tracker.edit_issue(issue, &edit).expect("edited");
    for _ in 0..2 {
        let (_, settled) = verified(scene, tracker, issue);
        assert_eq!(settled.outcome, VerifyOutcome::Done);
        let trusted: Vec<bool> = settled.checked.iter().map(|it| it.evidence.starts_with(ON_TRUST)).collect();
        assert_eq!(trusted, [false, false, true], "what nobody can look at is said to be trusted");
        assert!(matches!(state(), TrackerIssueState::Closed { .. }));
        assert_eq!(labels(), ["phase/done"]);
    }
}

#[test]
fn an_issue_goes_round_until_it_holds_on_the_local_tracker() {
    let mut scene = Scene::new();
    let local = LocalTracker::new(&scene.folder.path().join("issues"), "landfall", clock());
    cycle(&mut scene, &local);
}

#[test]
fn what_was_found_on_another_base_says_nothing_of_this_one() {
    let scene = Scene::new();
    let tracker = LocalTracker::new(&scene.folder.path().join("issues"), "landfall", clock());
    let new = NewIssue {
        marker: Marker::new("test/1").expect("a key"),
        title: Title::from_text("Shop"),
        body: BODY.to_owned(),
        labels: [Label::new("phase/verify").expect("a label")].into(),
    };
    let issue = tracker.create_issue(&new).expect("made").into_inner().number;
    let of_another =
        |side| landfall_engine::accept::is_of_another_base(&tracker, issue, side).expect("readable");
    assert!(!of_another(None) && of_another(Some("release-1")), "nobody told anything");
    let (_, there) = verified_on(&scene, &tracker, issue, Some("release-1"));
    assert_eq!(there.outcome, VerifyOutcome::Reopen { iteration: 1 });
    assert!(of_another(None) && !of_another(Some("release-1")) && of_another(Some("release-2")));
    assert!(!landfall_engine::accept::was_verified(&tracker, issue, None).expect("readable"));
    let (_, here) = verified(&scene, &tracker, issue);
    assert_eq!(
        (here.outcome, here.known),
        (VerifyOutcome::Reopen { iteration: 1 }, false),
        "the first one here"
    );
    let (_, again) = verified_on(&scene, &tracker, issue, Some("release-1"));
    assert_eq!((again.outcome, again.known), (there.outcome, true));
    assert!(!of_another(None) && !of_another(Some("release-1")));
}

#[test]
fn an_issue_goes_round_until_it_holds_on_github() {
    let mut scene = Scene::new();
    let fake = FakeGithub::start();
    cycle(&mut scene, &github(&fake));
}

#[test]
fn what_comes_after_the_merge_is_not_looked_at_before() {
    let scene = Scene::new();
    let tree = scene.at_commit();
    let body = "### Pre-merge\n- [ ] <!-- verify: file_exists \"README.md\" --> a\n### Post-merge\n- [ ] <!-- verify: file_exists \"README.md\" --> b\n";
    let criteria = Criteria::from_body(body, &BTreeSet::new());
    let results = |merged| -> Vec<VerifyResult> {
        let ground = AcceptanceContext { merged, ..ground(&tree, None, AcceptanceMode::Safe) };
        check_criteria(&criteria, &ground).into_iter().map(|it| it.result).collect()
    };
    assert_eq!((results(false), results(true)), (vec![Pass, PostMerge], vec![Pass, Pass]));
    let _ = CustomVerifyCommand::parse("x", ""); // that it can be named from outside
}
