//! A night of sixty tasks: a graph of needs, eight agents at once, and every way to misbehave that the scripted agent knows.
//! What each task comes to is worked out here from the script alone, and what is on `main` is looked at with git alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use landfall_testkit::ScratchProject;

use crate::LANDFALL;
use crate::conflicts::BASE_IN_PROMPT;

const TASKS: usize = 60;

/// Every file in `want` names a file and a line that must stand in it. The shell reads them by itself: the checks of this night
/// look at thousands of such files, and a program for each would be most of its time.
const CHECK: &str = r#"passed=0
failed=0
for want in want/*; do
  [ -e "$want" ] || continue
  { read -r path; read -r line; } < "$want"
  found=no
  if [ -e "$path" ]; then
    while IFS= read -r have; do [ "$have" != "$line" ] || found=yes; done < "$path"
  fi
  if [ $found = yes ]; then passed=$((passed + 1)); else
    failed=$((failed + 1)); echo "FAIL $path: $line is missing"; fi
done
echo "$((passed + 1)) passed, $failed failed"
[ "$failed" = 0 ]
"#;

const SETTINGS: &str = r#"[agent.default]
kind = "script"

[[verify.command]]
name = "tests"
run = "sh test.sh"
timeout = "60s"

[run]
slots = 8
lanes = 2
failures_max = 0
iterations_max = 9
restarts_max = 2
stalls_step_max = 1
silence = "2s"
grace = "500ms"
output_cap = "64KiB"
"#;

/// What an agent does wrong before it gets over it. Each of these befalls every tenth task.
const PASSING: [&str; 13] = [
    "misbehave = \"crash\"",
    "misbehave = \"fail\"",
    "misbehave = \"hang\"",
    "misbehave = \"no-op\"",
    "say = \"still thinking\"",
    "signal = \"complete\"", // an empty claim
    "misbehave = \"flood\"\nbytes = \"2MB\"",
    "misbehave = \"garbage\"",
    "misbehave = \"setsid\"\ntarget = \"NUMBER.log\"\nfor = \"120s\"",
    "misbehave = \"orphan\"\nfor = \"120s\"",
    "misbehave = \"quota\"\nuntil = \"300ms\"",
    "misbehave = \"transient\"",
    "exit = 3\nsay = \"half done\"",
];

/// How a task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It lands.
    Lands,
    /// It lands, after a first try that fails its check.
    LandsAfterRed,
    /// It lands, though the agent leaves its work uncommitted.
    LandsDirty,
    /// It lands, though another changes the same line: the agent brings both together.
    LandsShared(usize),
    /// The agent asks a person.
    Asks,
    /// The agent gives up.
    GivesUp,
    /// It says complete for ever and never does anything.
    Empty,
    /// It says complete for ever and the check never passes.
    Lies,
    /// It never says anything.
    Mute,
    /// It falls silent again and again.
    Hangs,
    /// It crashes again and again.
    Crashes,
}

impl End {
    /// The status a task of this kind must have in the end, if everything it needs has landed.
    fn status(self) -> &'static str {
        match self {
            Self::Lands | Self::LandsAfterRed | Self::LandsDirty | Self::LandsShared(_) => "done",
            Self::Asks => "waiting",
            Self::GivesUp | Self::Empty => "blocked",
            Self::Lies | Self::Mute | Self::Hangs | Self::Crashes => "failed",
        }
    }
}

/// A task as it is planned.
struct Plan {
    end: End,
    /// What goes wrong before.
    trouble: Vec<&'static str>,
    /// The numbers of the tasks it needs.
    needs: Vec<usize>,
}

/// A small generator: the plan is arbitrary, and the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).expect("below a small number")
    }
}

/// The plan of the night. Tasks are numbered from 1, as Landfall numbers them.
fn night() -> BTreeMap<usize, Plan> {
    let mut dice = Dice(0x60_7A5C_5EED);
    let mut plans = BTreeMap::new();
    for number in 1..=TASKS {
        let end = match number {
            7 | 31 => End::Asks,
            12 | 40 => End::GivesUp,
            18 => End::Empty,
            23 => End::Lies,
            29 => End::Mute,
            36 => End::Hangs,
            47 => End::Crashes,
            4 | 5 => End::LandsShared(1),
            20 | 21 => End::LandsShared(2),
            44 | 45 => End::LandsShared(3),
            _ if number % 10 == 3 => End::LandsAfterRed,
            _ if number % 10 == 8 => End::LandsDirty,
            _ => End::Lands,
        };
        let mut needs: BTreeSet<usize> = BTreeSet::new();
        if number > 8 {
            for _ in 0..[0, 0, 0, 1, 1, 2][dice.below(6)] {
                needs.insert(number - 1 - dice.below(8));
            }
        }
        plans.insert(number, Plan { end, trouble: Vec::new(), needs: needs.into_iter().collect() });
    }
    for trouble in PASSING {
        let mut left = TASKS / 10;
        while left > 0 {
            let plan = plans.get_mut(&(1 + dice.below(TASKS))).expect("a number of a task");
            // Three in a row would be too much for restarts and stalls, which is another story.
            if plan.end.status() == "done" && plan.trouble.len() < 2 && !plan.trouble.contains(&trouble) {
                plan.trouble.push(trouble);
                left -= 1;
            }
        }
    }
    plans
}

/// The script of a task: what goes wrong, and then what it comes to, as often as it is asked.
fn script(number: usize, plan: &Plan) -> String {
    let mut script = String::new();
    for (place, trouble) in plan.trouble.iter().enumerate() {
        let trouble = trouble.replace("NUMBER", &number.to_string());
        writeln!(script, "[[iteration]]\nsession = \"s-{number}-{place}\"\n{trouble}").expect("a string");
    }
    let mut work = |keys: &str, right: bool| {
        let line = if right { format!("work of {number}") } else { "not yet".to_owned() };
        writeln!(
            script,
            "[[iteration]]\n{keys}\n[[iteration.write]]\npath = \"f/{number}.txt\"\ntext = \"{line}\\n\"\n\
             [[iteration.write]]\npath = \"want/{number}\"\ntext = \"f/{number}.txt\\nwork of {number}\\n\""
        )
        .expect("a string");
    };
    match plan.end {
        End::Lands => work("signal = \"complete\"", true),
        End::LandsAfterRed => {
            work("signal = \"complete\"", false);
            work("signal = \"complete\"", true);
        }
        End::LandsDirty => work("misbehave = \"forget-commit\"", true),
        End::LandsShared(which) => {
            work("signal = \"complete\"", true);
            write!(
                script,
                "[[iteration.write]]\npath = \"shared/{which}.txt\"\ntext = \"line of {number}\\n\"\n\
                 [[iteration.write]]\npath = \"want/{number}-shared\"\ntext = \"shared/{which}.txt\\nline of {number}\\n\"\n\
                 [[iteration]]\nsignal = \"complete\"\nrun = [\"sh\", \"-c\", '''{BASE_IN_PROMPT}; \
                 git merge -q $base; {{ git show $base:shared/{which}.txt; echo line of {number}; }} > shared/{which}.txt; \
                 git add --all; git -c user.name=a -c user.email=a@example.invalid commit -qm merged''']\n",
            )
            .expect("a string");
        }
        End::Asks => script.push_str("[[iteration]]\nsignal = \"pending:red or blue?\"\n"),
        End::GivesUp => script.push_str("[[iteration]]\nsignal = \"blocked:no way\"\n"),
        End::Empty => script.push_str("[[iteration]]\nsignal = \"complete\"\n"),
        End::Lies => work("misbehave = \"lie\"", false),
        End::Mute => script.push_str("[[iteration]]\nmisbehave = \"no-op\"\n"),
        End::Hangs => work("misbehave = \"hang\"", true),
        End::Crashes => work("misbehave = \"crash\"", true),
    }
    script
}

/// What must become of each task: its own end, if all that it needs comes to "done".
fn expected(plans: &BTreeMap<usize, Plan>) -> BTreeMap<usize, &'static str> {
    let mut ends: BTreeMap<usize, &'static str> = BTreeMap::new();
    for (number, plan) in plans {
        let met = plan.needs.iter().all(|need| ends[need] == "done");
        ends.insert(*number, if met { plan.end.status() } else { "waiting" });
    }
    ends
}

/// Looks at `main` with git and a shell alone: every commit of it is green, every task that should be is in it, once, and
/// after what it needs.
#[track_caller]
fn check_main(scratch: &ScratchProject, plans: &BTreeMap<usize, Plan>, ends: &BTreeMap<usize, &'static str>) {
    let place = scratch.root().join("plain");
    scratch.git(&["clone", "--quiet", ".", &place.display().to_string()]);
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&place).args(args).output().expect("git runs");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    };
    let mut landed: BTreeSet<usize> = BTreeSet::new();
    let format = "--format=%H %(trailers:key=Landfall-Task,valueonly,separator=%x20)";
    for line in git(&["log", "--first-parent", "--reverse", format, "main"]).lines() {
        let (commit, trailers) = line.split_once(' ').unwrap_or((line, ""));
        git(&["checkout", "--quiet", commit]);
        let check = Command::new("sh").arg("test.sh").current_dir(&place).output().expect("sh runs");
        assert!(check.status.success(), "{commit}: {}", String::from_utf8_lossy(&check.stdout));
        let tasks: Vec<usize> = trailers
            .split_whitespace()
            .filter_map(|task| task.strip_prefix('T').and_then(|number| number.parse().ok()))
            .collect();
        for task in &tasks {
            let needs = &plans[task].needs;
            assert!(
                needs.iter().all(|need| landed.contains(need)),
                "T{task} came before its needs {needs:?}"
            );
        }
        for task in tasks {
            assert!(landed.insert(task), "T{task} landed twice");
            let text = std::fs::read_to_string(place.join(format!("f/{task}.txt"))).unwrap_or_default();
            assert_eq!(text, format!("work of {task}\n"), "T{task} is in {commit}");
        }
    }
    let wanted: BTreeSet<usize> =
        ends.iter().filter(|(_, end)| **end == "done").map(|(number, _)| *number).collect();
    assert_eq!(landed, wanted, "what is done is on main, and nothing else");
    git(&["fsck", "--connectivity-only"]);
    std::fs::remove_dir_all(place).expect("ours");
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Nothing lies around that nobody needs any more.
#[track_caller]
fn check_disk(scratch: &ScratchProject, ends: &BTreeMap<usize, &'static str>) {
    let workspaces = scratch.state().join("workspaces");
    let is_ours = |name: &&String| [".engine", ".clean"].contains(&name.as_str());
    for name in
        names(&workspaces).union(&names(&workspaces.join(".engine/rooms"))).filter(|name| !is_ours(name))
    {
        let number: usize =
            name.trim_start_matches('T').parse().unwrap_or_else(|_| panic!("what is {name}?"));
        assert_ne!(ends[&number], "done", "the workspace of {name} is of no use any more");
    }
    let count = |folder: &str| names(&scratch.state().join(folder)).len();
    assert_eq!(count("workspaces/.engine/attic"), 0);
    assert!(count("workspaces/.engine/warm") <= 16, "a bounded number of checkouts is kept warm");
    assert!(
        count("lanes") <= 7,
        "two lanes, one for each of two batches, one for a rebuild, one for the base, and the clean mark"
    );
    for name in names(&scratch.root().join("tmp")) {
        let left = names(&scratch.root().join("tmp").join(&name));
        assert_eq!(left, BTreeSet::new(), "no temporary file is left in {name}");
    }
    assert_eq!(scratch.git(&["status", "--porcelain"]), "", "the checkout is clean");
    assert_eq!(
        scratch.git(&["worktree", "list"]).lines().count(),
        1,
        "nothing is left in the person's repository"
    );
}

#[test]
fn sixty_tasks_with_every_misbehaviour_end_by_themselves_and_main_is_green() {
    let mut scratch = ScratchProject::new(LANDFALL);
    scratch.be_patient(Duration::from_secs(900));
    scratch.file("test.sh", CHECK);
    for which in 1..=3 {
        scratch.file(&format!("shared/{which}.txt"), "shared\n");
    }
    scratch.settings(SETTINGS);
    let plans = night();
    let ends = expected(&plans);
    let of = |end: &str| ends.values().filter(|it| **it == end).count();
    assert!(of("done") >= 35 && of("failed") == 4, "the night is worth its while: {ends:?}");
    for (number, plan) in &plans {
        let needs: Vec<String> = plan.needs.iter().map(|need| format!("T{need}")).collect();
        let more: Vec<&str> = needs.iter().flat_map(|need| ["--needs", need.as_str()]).collect();
        let id = scratch.task(&format!("Number {number}"), &script(*number, plan), &more);
        assert_eq!(id, format!("T{number}"));
    }

    let run = scratch.landfall(&["run"]);

    assert_eq!(scratch.left_behind(), [], "nothing is left running");
    let seen: BTreeMap<usize, String> =
        plans.keys().map(|number| (*number, scratch.status(&format!("T{number}")))).collect();
    let wrong: Vec<String> = ends
        .iter()
        .filter(|(number, end)| seen[number] != **end)
        .map(|(number, end)| {
            let plan = &plans[number];
            let why = scratch.why(&format!("T{number}"));
            format!("wanted {end} ({:?} after {:?}): {why}", plan.end, plan.trouble)
        })
        .collect();
    assert_eq!(wrong, [""; 0], "every task is where it should be");
    assert_eq!(run.code, Some(8), "{}\n{}", run.out, run.err);
    for number in ends.iter().filter(|(_, end)| **end == "waiting").map(|(number, _)| number) {
        let begun = plans[number].needs.iter().all(|need| ends[need] == "done");
        let wanted = if begun { "question" } else { "dependency" };
        assert_eq!(scratch.wait_of(&format!("T{number}")), wanted, "T{number}");
        assert_eq!(scratch.prompts(&format!("T{number}")).is_empty(), !begun, "T{number}");
    }
    check_main(&scratch, &plans, &ends);
    check_disk(&scratch, &ends);

    // Another run finds nothing to do but to remind of the questions.
    let main = scratch.git(&["rev-parse", "main"]);
    assert_eq!(scratch.landfall(&["run"]).code, Some(9));
    assert_eq!(scratch.git(&["rev-parse", "main"]), main);
}
