//! Paths, folders and patterns, and when two of them meet.

use landfall_model::PathPattern;

use crate::sim::Rng;

fn touch(text: &str) -> PathPattern {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn check_meet(a: &str, b: &str, expect: bool) {
    assert_eq!(touch(a).overlaps_with(&touch(b)), expect, "{a} and {b}");
    assert_eq!(touch(b).overlaps_with(&touch(a)), expect, "{b} and {a}");
}

#[test]
fn paths_are_read_as_people_write_them() {
    let read = |text: &str| touch(text).to_string();
    assert_eq!(read("./src//main.rs"), "src/main.rs");
    assert_eq!(read(" /src/ "), "src/");
    assert_eq!(read("src/**"), "src/**");
    assert_eq!(read("."), "**");
    assert_eq!(read("/"), "**");
    for text in ["src/main.rs", "web/", "docs/**/*.md", "**", ".github", "a b/c"] {
        assert_eq!(read(text), text, "what was read reads the same again");
        assert_eq!(touch(&read(text)), touch(text));
    }
    for wrong in ["", "  ", "..", "src/../etc", "a\nb", &"x".repeat(600), &"a/".repeat(200)] {
        assert!(wrong.parse::<PathPattern>().is_err(), "{wrong:?}");
    }
    assert!(PathPattern::for_file("../x").is_err() && PathPattern::for_file("").is_err());
}

#[test]
fn paths_and_folders_meet_where_one_holds_the_other() {
    check_meet("src/a.rs", "src/a.rs", true);
    check_meet("src/a.rs", "src/b.rs", false);
    check_meet("src", "src/a.rs", true);
    check_meet("src/", "src/deep/a.rs", true);
    check_meet("src", "src2/a.rs", false);
    check_meet("src/a", "src/ab", false);
    check_meet("**", "anything/at/all.txt", true);
    check_meet("v1.2/", "v1.2/notes", true);
}

#[test]
fn patterns_meet_where_some_file_fits_both() {
    check_meet("src/*.rs", "src/a.rs", true);
    check_meet("src/*.rs", "src/deep/a.rs", false);
    check_meet("src/**/*.rs", "src/deep/er/a.rs", true);
    check_meet("src/**/*.rs", "src/a.rs", true);
    check_meet("**/*.md", "src/a.rs", false);
    check_meet("**/*.md", "docs", true);
    check_meet("**/*.md", "docs/**", true);
    check_meet("a*c", "ab*", true);
    check_meet("a?c", "abd", false);
    check_meet("*.test.ts", "app.*", true);
    check_meet("src/*/mod.rs", "src/**/lib.rs", false);
    check_meet("**/tests/**", "crates/model/tests/it/main.rs", true);
    check_meet("src/{a,b}/x.rs", "src/c/x.rs", true); // alternatives are not told apart
    check_meet("src/{a}/x.rs", "web/c/x.rs", false);
}

#[test]
fn a_file_that_was_seen_is_no_folder() {
    let license = PathPattern::for_file("LICENSE").expect("a path");
    assert!(!license.overlaps_with(&touch("**/*.md")), "declared, it may be a folder; seen, it is a file");
    assert!(touch("LICENSE").overlaps_with(&touch("**/*.md")));
    assert!(license.overlaps_with(&touch("LICENSE")));
}

/// All paths of up to three parts over a small alphabet, for whoever wants to look at all of them.
fn paths() -> Vec<String> {
    let names = ["a", "b", "ab"];
    let mut all: Vec<String> = names.map(str::to_owned).to_vec();
    let mut last = all.clone();
    for _ in 0..2 {
        last = last.iter().flat_map(|path| names.map(|name| format!("{path}/{name}"))).collect();
        all.extend(last.clone());
    }
    all
}

#[test]
fn patterns_agree_with_looking_at_every_file() {
    let parts = ["a", "b", "ab", "*", "a*", "*b", "?", "**"];
    let files: Vec<(String, PathPattern)> = paths()
        .into_iter()
        .map(|path| (path.clone(), PathPattern::for_file(&path).expect("a path")))
        .collect();
    let (mut met, mut apart) = (0, 0);
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let mut pattern = || -> PathPattern {
            let parts: Vec<&str> = (0..1 + rng.below(2)).map(|_| parts[rng.below(parts.len())]).collect();
            touch(&parts.join("/"))
        };
        let (one, other) = (pattern(), pattern());
        let both = files.iter().find(|(_, file)| file.overlaps_with(&one) && file.overlaps_with(&other));
        assert_eq!(one.overlaps_with(&other), both.is_some(), "seed {seed}: {one} and {other}: {both:?}");
        met += u32::from(both.is_some());
        apart += u32::from(both.is_none());
    }
    assert!(met > 300 && apart > 300, "{met} met, {apart} did not");
}
