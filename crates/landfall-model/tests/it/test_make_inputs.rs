//! Which parts of a Makefile decide what `make test` does.

use landfall_model::gaming::find_concerns;

use crate::test_protected::{Files, change, trace};

/// What a person sees of a change of a Makefile that `make test` runs.
fn check_make(base: &str, old: &str, new: &str, is_shown: bool) {
    assert!(base.contains(old), "{old}");
    let changed = change("Makefile", base, &base.replacen(old, new, 1));
    let found = find_concerns(&[changed], &trace("make test", &[("Makefile", base)]), None, None, None);
    assert_eq!(!found.is_empty(), is_shown, "{old} -> {new}: {found:?}");
}

#[test]
fn words_are_added_unseen_to_lists_of_needs_alone() {
    let base = "SRC = a.c b.c\nRUNNER = sh\nARGS = -v\nTOOL = $(RUNNER) x\n\
        test: $(SRC)\n\tPYTHONPATH=. python3 -m unittest $(ARGS)\n\t$(TOOL) run.sh\n\tcc $(SRC)\n";
    check_make(base, "a.c b.c", "a.c aa.c b.c", false);
    check_make(base, "PYTHONPATH=. python3", "PYTHONPATH=. true python3", true);
    check_make(base, "RUNNER = sh", "RUNNER = sh noop.sh", true);
    check_make(base, "ARGS = -v", "ARGS = -v nothing", true);
    check_make(base, "TOOL = $(RUNNER) x", "TOOL = $(RUNNER) x y", true);
    check_make(&base.replace("\tcc $(SRC)", "\t@$(SRC)"), "a.c b.c", "a.c b.c c.c", true);
}

#[test]
fn exported_and_special_variables_of_a_makefile_count() {
    let base = "test:\n\tgo test\nother:\n\ttrue\nX = 1\n";
    for line in [
        "export GOFLAGS = -run=None",
        "export PYTEST_ADDOPTS := -k nothing",
        "GOFLAGS = -run=None\nexport GOFLAGS",
        "override export NODE_OPTIONS = x",
        "GOFLAGS = -run=None\nexport",
        "GOFLAGS = -run=None\n.EXPORT_ALL_VARIABLES:",
        "export define GOFLAGS\n-run=None\nendef",
        "GNUMAKEFLAGS = -n",
        "MAKEFILES = evil.mk",
        ".RECIPEPREFIX = >",
        "undefine X",
        "$(eval include evil.mk)",
        "$(shell rm -rf tests)",
        "$(call evil)",
        "include $(wildcard mk/*.mk)",
    ] {
        check_make(base, "X = 1", line, true);
    }
    check_make(base, "X = 1", "X = 2", false);
    check_make(base, "X = 1", "other: export X = 2", false);
    let exported = base.replace("X = 1", "export X = 1");
    check_make(&exported, "X = 1", "X = 2", true);
}

#[test]
fn a_target_that_is_made_always_stays_so() {
    let base = ".PHONY: test other\ntest: unit\n\tgo test\nunit:\n\ttrue\nother:\n\ttrue\n";
    check_make(base, ".PHONY: test other", ".PHONY: other", true);
    check_make(base, ".PHONY: test other", ".PHONY: test", false);
    check_make(base, ".PHONY: test other", ".PHONY: test other unit", false);
    let comes = |path: &str| {
        find_concerns(
            &[change(path, "", "x\n")],
            &trace("make test", &[("Makefile", base)]),
            None,
            None,
            None,
        )
    };
    assert_eq!(comes("unit").len(), 1, "a file of the name of a target that is not phony");
    assert_eq!(comes("other"), []);
    assert_eq!(comes("test"), [], "it is phony");
}

#[test]
fn functions_and_short_names_of_variables_are_followed() {
    let base = "define run_test\nsh $(1)\nendef\nT = sh run.sh\nV = sh v.sh\nNAMES = quick slow\n\
        test:\n\t$(call run_test,x)\n\t$T\n\t$(value V)\n";
    check_make(base, "sh $(1)", "true $(1)", true);
    check_make(base, "T = sh run.sh", "T = true", true);
    check_make(base, "V = sh v.sh", "V = true", true);
    check_make(base, "NAMES = quick", "NAMES = q", false);
    let base = "NAMES = test lint\n$(NAMES):\n\tsh $@.sh\ndocs:\n\ttrue\n";
    check_make(base, "sh $@.sh", "true $@.sh", true);
    check_make(base, "\ttrue", "\tfalse", false);
}

#[test]
fn conditions_count_around_what_is_used() {
    let base = "ifeq ($(CI),1)\ntest:\n\tgo test\nelse\ntest:\n\tgo test -short\nendif\n\
        ifdef DOCS\ndocs:\n\ttrue\nendif\ndocs: FLAGS = x\ntest: FLAGS = y\n";
    check_make(base, "ifeq ($(CI),1)", "ifeq ($(CI),2)", true);
    check_make(base, "else\n", "else ifdef NEVER\n", true);
    check_make(base, "ifdef DOCS", "ifndef DOCS", false);
    check_make(base, "docs: FLAGS = x", "docs: FLAGS = z", false);
    check_make(base, "test: FLAGS = y", "test: FLAGS = z", true);
    let inside = "test:\nifdef X\n\tgo test\nendif\n";
    check_make(inside, "ifdef X", "ifdef Y", true);
}

#[test]
fn variables_that_an_included_file_uses_count() {
    let files: Files<'_> = &[
        ("Makefile", "RUNNER = sh\nSOURCES = a.sh\nUNUSED = x\ninclude mk/*.mk tests.mk\ntest: unit\n"),
        ("tests.mk", "unit: $(SOURCES)\n\t$(RUNNER) run.sh\n"),
    ];
    let shown = |path: &str, before: &str, old: &str, new: &str| {
        let changed = change(path, before, &before.replacen(old, new, 1));
        !find_concerns(&[changed], &trace("make test", files), None, None, None).is_empty()
    };
    assert!(shown("Makefile", files[0].1, "RUNNER = sh", "RUNNER = true"));
    assert!(shown("Makefile", files[0].1, "RUNNER = sh", "RUNNER = sh noop.sh"));
    assert!(!shown("Makefile", files[0].1, "SOURCES = a.sh", "SOURCES = a.sh b.sh"));
    assert!(!shown("Makefile", files[0].1, "UNUSED = x", "UNUSED = y"));
    let evil = change("mk/evil.mk", "", "unit:\n\ttrue\n");
    assert_eq!(
        find_concerns(&[evil], &trace("make test", files), None, None, None).len(),
        1,
        "found by its pattern"
    );
    let other = change("mk/docs.mk", "", "docs:\n\ttrue\n");
    assert_eq!(find_concerns(&[other], &trace("make test", files), None, None, None), []);
}

#[test]
fn a_hostile_makefile_is_read_in_bounded_time() {
    let many = |line: &str| line.repeat(100_000 / line.len());
    let base = "test:\n\ttrue\n";
    for text in [
        format!("X = {}\n.PHONY: {}\ntest: $(X)\n\ttrue\n", many("a "), many("$(X) ")),
        (0..4_000).map(|at| format!("V{at} = $(V{}) $(W{at})\n", at + 1)).collect::<String>()
            + "test: $(V0)\n\t$(V0)\n",
        (0..4_000).map(|at| format!("t{at} $(X): t{}\n\ttrue\n", at + 1)).collect::<String>()
            + "test: t0\n\ttrue\n",
        many("ifdef X\n"),
        many("test: %\n\t$(call f)\n"),
    ] {
        let changed = change("Makefile", base, &text);
        assert!(
            !find_concerns(&[changed], &trace("make test", &[("Makefile", base)]), None, None, None)
                .is_empty()
        );
        let _ = trace("make test", &[("Makefile", &text)]);
    }
}
