//! An agent in its workspace cannot move the person's branches, nor make the engine run its code: whatever it plants, the
//! program it planted is never run while the work is brought in, verified, landed, looked at and cleaned up.

use std::path::PathBuf;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::sandbox::{off, open};

/// Every attack of the scripted agent.
const ATTACKS: [&str; 9] = [
    "branches",
    "hooks",
    "filter",
    "fsmonitor",
    "gitfile",
    "nested-bare",
    "alternates",
    "attributes",
    "config-include",
];

/// Whether the agents and the checks are confined. What is planted must not fire either way: without the sandbox the
/// rest of the defence stands alone.
#[derive(Debug, Clone, Copy)]
enum Sandbox {
    On,
    Off,
}

struct Attacked {
    scratch: ScratchProject,
    canary: PathBuf,
    branches: String,
    begin: String,
}

impl Attacked {
    /// A person's repository with branches and a tag that nobody but them may move.
    fn new(settings: &str, sandbox: Sandbox) -> Self {
        let scratch = ScratchProject::new(LANDFALL);
        scratch.more_settings(settings);
        // Whoever runs what was planted can write the canary, an agent or a check in the sandbox too.
        let canary = open(&scratch).join("canary");
        match sandbox {
            Sandbox::On => {}
            Sandbox::Off => off(&scratch),
        }
        for branch in ["mine", "master"] {
            scratch.git(&["branch", branch]);
        }
        scratch.git(&["tag", "v1"]);
        let begin = scratch.git(&["rev-parse", "main"]);
        let mut it = Self { scratch, canary, branches: String::new(), begin };
        it.branches = it.refs();
        it
    }

    /// Every ref of the person, `main` and their HEAD's place apart.
    fn refs(&self) -> String {
        let all = self.scratch.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let others: Vec<&str> = all.lines().filter(|line| !line.starts_with("refs/heads/main ")).collect();
        format!("{}\n{}", others.join("\n"), self.scratch.git(&["symbolic-ref", "HEAD"]))
    }

    /// Nothing planted was run, and everything of the person stands where it should.
    #[track_caller]
    fn check(&self, story: &str) {
        let fired = std::fs::read_to_string(&self.canary);
        assert!(fired.is_err(), "{story}: the engine ran {}", fired.unwrap_or_default());
        assert_eq!(self.refs(), self.branches, "{story}");
        let main = self.scratch.git(&["rev-parse", "main"]);
        let base = self.scratch.landfall(&["--json", "status"]).json()["base"]["commit"].clone();
        assert_eq!(main, base, "{story}: the store's base is what was published");
        let new =
            self.scratch.git(&["rev-list", "--first-parent", "--count", &format!("{}..main", self.begin)]);
        let landed = self.scratch.log().iter().filter(|it| it["kind"] == "landed").count();
        assert_eq!(new, landed.to_string(), "{story}: only landings moved main");
        assert_eq!(self.scratch.git(&["status", "--porcelain"]), "", "{story}: the checkout is whole");
        self.scratch.git(&["fsck", "--connectivity-only"]);
        assert_eq!(self.scratch.left_behind(), [], "{story}");
    }

    /// Every command that looks at the work or at the store.
    fn look(&self, story: &str) {
        let commands: [&[&str]; 8] = [
            &["diff", "T1"],
            &["show", "T1"],
            &["log"],
            &["report", "T1"],
            &["status"],
            &["doctor"],
            &["reclaim", "--dry-run"],
            &["export"],
        ];
        for args in commands {
            let said = self.scratch.landfall(args);
            assert!(said.code.is_some(), "{story}: {args:?}: {said:?}");
        }
    }
}

/// One run works and attacks; the next leaves something uncommitted, so that the engine has to add it, and is done.
fn script(attack: &str, canary: &str, last: &str) -> String {
    let canary = if attack == "branches" { String::new() } else { format!("canary = \"{canary}\"\n") };
    format!(
        "[[iteration]]\nmisbehave = \"move-main\"\nattack = \"{attack}\"\n{canary}\
         [[iteration.write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n\
         [[iteration]]\ncommit = false\nsignal = \"{last}\"\n\
         [[iteration.write]]\npath = \"left.txt\"\ntext = \"left\\n\"\n\
         [[iteration.write]]\npath = \"a.txt\"\ntext = \"one\\ntwo\\nfour\\n\"\n"
    )
}

fn lands(attack: &str, sandbox: Sandbox) -> Attacked {
    let story = format!("{attack}, sandbox {sandbox:?}");
    let it = Attacked::new("", sandbox);
    let scratch = &it.scratch;
    scratch.task("Attacks", &script(attack, &it.canary.display().to_string(), "complete"), &[]);
    // It gets the workspace of the first, and its own git would set off whatever stayed there.
    let plain = "signal = \"complete\"\n[[write]]\npath = \"c.txt\"\ntext = \"plain\\n\"\n";
    scratch.task("Plain", plain, &["--needs", "T1"]);
    let run = scratch.landfall(&["run"]);
    it.check(&format!("{story}, landing: {}", scratch.why("T1")));
    assert_eq!(scratch.status("T1"), "done", "{story}: {}\n{}", scratch.why("T1"), run.err);
    assert_eq!(scratch.status("T2"), "done", "{story}: {}\n{}", scratch.why("T2"), run.err);
    for (file, text) in
        [("b.txt", "work"), ("left.txt", "left"), ("c.txt", "plain"), ("a.txt", "one\ntwo\nfour")]
    {
        assert_eq!(scratch.git(&["show", &format!("main:{file}")]), text, "{story}: {file}");
    }
    it.look(&story);
    scratch.landfall(&["reclaim"]).ok();
    it.check(&format!("{story}, afterwards"));
    it
}

fn is_kept(attack: &str, sandbox: Sandbox) {
    let story = format!("{attack}, sandbox {sandbox:?}");
    let it = Attacked::new("[keep]\nfailed = \"0s\"", sandbox);
    let scratch = &it.scratch;
    scratch.task("Attacks", &script(attack, &it.canary.display().to_string(), "blocked:enough"), &[]);
    scratch.landfall(&["run"]);
    assert_eq!(scratch.status("T1"), "blocked", "{story}: {}", scratch.why("T1"));
    it.look(&story);
    // The old workspace is given up for a new one, and then that one too.
    scratch.landfall(&["retry", "T1", "--fresh"]).ok();
    scratch.landfall(&["run"]);
    scratch.landfall(&["cancel", "T1"]).ok();
    scratch.landfall(&["reclaim"]).ok();
    assert!(
        !it.canary.exists(),
        "{story}: the engine ran {}",
        std::fs::read_to_string(&it.canary).unwrap_or_default()
    );
    assert_eq!(it.refs(), it.branches, "{story}");
    assert_eq!(scratch.git(&["rev-parse", "main"]), it.begin, "{story}: nothing was proved, nothing moved");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{story}");
    let kept = scratch.kept("T1", "left.txt", "left\n");
    assert_ne!(kept, Vec::<String>::new(), "{story}: what it left is kept");
    assert_eq!(scratch.left_behind(), [], "{story}");
}

#[test]
fn the_table_names_every_attack() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/script.md"));
    let page = page.expect("the page is there");
    let table = page.split("| attack |").nth(1).expect("a table of attacks");
    let named = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).count();
    assert_eq!(named, ATTACKS.len() - 1, "`branches` stands above the table, the others in it");
    for attack in &ATTACKS[1..] {
        assert!(table.contains(&format!("| `{attack}` |")), "{attack}");
    }
}

macro_rules! attacks {
    ($($lands:ident $is_kept:ident $attack:literal;)*) => {
        $(
            #[test]
            fn $lands() {
                lands($attack, Sandbox::On);
                lands($attack, Sandbox::Off);
            }

            #[test]
            fn $is_kept() {
                is_kept($attack, Sandbox::On);
                is_kept($attack, Sandbox::Off);
            }
        )*
    };
}

attacks! {
    branches_cannot_be_moved_by_work_that_lands branches_cannot_be_moved_by_work_that_is_kept "branches";
    hooks_do_not_fire_when_work_lands hooks_do_not_fire_when_work_is_kept "hooks";
    filters_do_not_fire_when_work_lands filters_do_not_fire_when_work_is_kept "filter";
    fsmonitor_does_not_fire_when_work_lands fsmonitor_does_not_fire_when_work_is_kept "fsmonitor";
    a_swapped_gitfile_does_not_fire_when_work_lands a_swapped_gitfile_does_not_fire_when_work_is_kept "gitfile";
    a_nested_bare_repository_does_not_fire_when_work_lands a_nested_bare_repository_does_not_fire_when_work_is_kept
        "nested-bare";
    alternates_do_not_fire_when_work_lands alternates_do_not_fire_when_work_is_kept "alternates";
    attributes_do_not_fire_when_work_lands attributes_do_not_fire_when_work_is_kept "attributes";
    an_included_configuration_does_not_fire_when_work_lands an_included_configuration_does_not_fire_when_work_is_kept
        "config-include";
}

/// What the agent said of its tries to move branches beyond its workspace.
fn reached(sandbox: Sandbox) -> Vec<String> {
    let it = lands("branches", sandbox);
    let records = std::fs::read_dir(it.scratch.state().join("attempts")).expect("there are records");
    let said =
        records.flatten().map(|it| std::fs::read_to_string(it.path().join("out.log")).unwrap_or_default());
    let tries = said.flat_map(|said| said.lines().map(str::to_owned).collect::<Vec<_>>());
    tries.filter(|line| line.contains("tried git -C ")).collect()
}

#[test]
fn in_the_sandbox_every_try_to_move_a_branch_elsewhere_is_refused() {
    let confined = reached(Sandbox::On);
    assert!(confined.len() >= 3 && confined.iter().all(|it| it.contains(": refused")), "{confined:?}");
    let free = reached(Sandbox::Off);
    assert!(free.iter().any(|it| it.contains(": done")), "the attack bites without it: {free:?}");
}

/// What an agent may do to its own workspace by a shell, and what must come of it.
fn by_shell(command: &str, sandbox: Sandbox) -> Attacked {
    let it = Attacked::new("[run]\niterations_max = 2\nrestarts_max = 0", sandbox);
    let project = it.scratch.project().display().to_string();
    let command = command.replace("PROJECT", &project);
    let script = format!(
        "run = [\"sh\", \"-c\", '''{command}''']\nsignal = \"complete\"\n[[write]]\npath = \"b.txt\"\ntext = \"work\\n\"\n"
    );
    it.scratch.task("Attacks", &script, &[]);
    it
}

/// Whatever became of the task, the person's files, branches and settings are as they were, but for landings.
#[track_caller]
fn harmless(command: &str) -> [ScratchProject; 2] {
    [harmless_in(command, Sandbox::On), harmless_in(command, Sandbox::Off)]
}

#[track_caller]
fn harmless_in(command: &str, sandbox: Sandbox) -> ScratchProject {
    let it = by_shell(command, sandbox);
    let scratch = &it.scratch;
    let config = std::fs::read_to_string(scratch.project().join(".git/config")).expect("readable");
    scratch.landfall(&["run"]);
    let story = format!("{command}, sandbox {sandbox:?}: {}", scratch.why("T1"));
    it.look(&story);
    scratch.landfall(&["reclaim"]);
    assert!(
        ["done", "blocked", "failed", "timeout", "review"].contains(&scratch.status("T1").as_str()),
        "{story}"
    );
    assert_eq!(it.refs(), it.branches, "{story}");
    let there = std::fs::read_to_string(scratch.project().join("a.txt")).expect("the person's file is there");
    assert_eq!(there, "one\ntwo\nthree\n", "{story}");
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{story}");
    let now = std::fs::read_to_string(scratch.project().join(".git/config")).expect("readable");
    assert_eq!(now, config, "{story}");
    scratch.git(&["fsck", "--connectivity-only"]);
    assert_eq!(scratch.left_behind(), [], "{story}");
    it.scratch
}

#[test]
fn a_work_tree_that_points_at_the_person_changes_nothing_there() {
    for scratch in harmless("git config core.worktree PROJECT") {
        assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
        assert_eq!(scratch.git(&["show", "main:b.txt"]), "work");
    }
}

#[test]
fn a_git_folder_that_is_a_link_to_the_persons_changes_nothing_there() {
    harmless("mv .git ../old-git; ln -s PROJECT/.git .git");
}

#[test]
fn a_git_file_that_leads_to_the_persons_repository_changes_nothing_there() {
    harmless("rm -rf .git; echo 'gitdir: PROJECT/.git' > .git");
}

#[test]
fn a_head_that_names_another_branch_is_taken_for_what_it_is() {
    for scratch in harmless("git checkout -q -b other; git symbolic-ref HEAD refs/heads/other") {
        assert_eq!(scratch.git(&["show", "main:b.txt"]), "work", "{}", scratch.why("T1"));
    }
}

#[test]
fn a_detached_head_loses_no_commit() {
    for scratch in harmless(
        "git checkout -q --detach; echo more > more.txt; git add more.txt; git -c user.name=a -c user.email=a@b commit -qm more",
    ) {
        assert_eq!(scratch.git(&["show", "main:more.txt"]), "more", "{}", scratch.why("T1"));
    }
}

#[test]
fn borrowed_objects_that_vanish_end_with_a_reason() {
    harmless("echo /nowhere/objects > .git/objects/info/alternates");
}

#[test]
fn a_workspace_that_became_a_link_to_the_project_does_not_take_the_project_along() {
    harmless("cd .. && mv T1 gone && ln -s PROJECT T1");
}

#[test]
fn links_that_lead_out_are_kept_as_links() {
    for scratch in harmless("ln -s PROJECT/.git/config stolen; ln -s / root") {
        assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
        let kind = scratch.git(&["ls-tree", "main", "stolen"]);
        assert!(kind.starts_with("120000"), "{kind}");
    }
}

#[test]
fn there_is_no_origin_to_push_to() {
    for scratch in harmless("git push -q origin HEAD:refs/heads/main; echo pushed: $? >&2; git remote >&2") {
        let records = std::fs::read_dir(scratch.state().join("attempts")).expect("there are records");
        let said: String = records
            .flatten()
            .filter(|it| it.file_name().to_string_lossy().contains("-i1"))
            .map(|it| std::fs::read_to_string(it.path().join("err.log")).unwrap_or_default())
            .collect();
        assert!(said.contains("pushed: 128"), "{said}");
        assert!(!said.lines().any(|line| line.trim() == "origin"), "{said}");
    }
}

#[test]
fn amended_commits_land_as_what_they_change() {
    for scratch in harmless("git -c user.name=a -c user.email=a@b commit -q --amend -m amended") {
        assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
        assert_eq!(scratch.git(&["show", "main:b.txt"]), "work");
    }
}

#[test]
fn work_with_a_history_of_its_own_is_no_false_alarm_after_landing() {
    let alone = "git -c user.name=a -c user.email=a@b commit-tree -m alone HEAD^{tree}";
    for scratch in harmless(&format!("git reset -q --soft $({alone})")) {
        assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
        assert_eq!(scratch.git(&["show", "main:b.txt"]), "work");
        assert_eq!(scratch.git(&["show", "main:a.txt"]), "one\ntwo\nthree");
    }
}

#[test]
fn a_branch_and_a_stash_beside_the_landed_work_are_kept() {
    for scratch in harmless(
        "git checkout -q -b side; echo side > side.txt; git add side.txt; git commit -qm side; git checkout -q -; echo stashed > a.txt; git stash -q",
    ) {
        assert_eq!(scratch.status("T1"), "done", "{}", scratch.why("T1"));
        let kept =
            scratch.store(&["for-each-ref", "--format=%(refname)", "refs/landfall/kept"]).expect("git runs");
        let shows = |path: &str, text: &str| {
            let at = |name: &str| scratch.store(&["show", &format!("{name}:{path}")]);
            kept.lines().any(|name| at(name).as_deref() == Some(text))
        };
        assert!(shows("side.txt", "side") && shows("a.txt", "stashed"), "{kept}");
    }
}
