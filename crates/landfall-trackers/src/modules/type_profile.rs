//! `.type-profile.md` of a module: the numbers of its checks, under `## Auto Adaptation`.
//!
//! People and agents write the section as a list, a table or lines of `key: value`. So it is read word by word: a word names what
//! the next number is about.

use landfall_model::score::GatePoint;
use landfall_model::tune::Adaptation;

use super::text::parse_heading;

/// The file.
pub const TYPE_PROFILE: &str = ".type-profile.md";

const SECTION: &str = "auto adaptation";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Topic {
    Thresholds,
    Retries,
    Interval,
    Compaction,
}

/// The numbers that a type profile sets. What cannot be read as one of them says nothing.
#[must_use]
pub fn adaptations(text: &str) -> Vec<Adaptation> {
    let mut found = Vec::new();
    let mut inside = None;
    let mut topic = None;
    for line in text.lines() {
        if let Some((level, title)) = parse_heading(line) {
            match inside {
                Some(at) if level > at => topic = topic_of(&title.to_lowercase()).or(topic),
                _ => inside = title.trim().to_lowercase().starts_with(SECTION).then_some(level),
            }
            continue;
        }
        if inside.is_some() {
            read_line(line, &mut topic, &mut found);
        }
    }
    found
}

/// Reads one line. A topic outlives its line, for lists below it; a checkpoint does not.
fn read_line(line: &str, topic: &mut Option<Topic>, found: &mut Vec<Adaptation>) {
    let line = line.to_lowercase().replace('_', "-");
    let joined = line
        .replace("post plan", "post-plan")
        .replace("mid exec", "mid-exec")
        .replace("post exec", "post-exec");
    let mut checkpoint = None;
    let mut unnamed = GatePoint::ALL.into_iter();
    for word in joined.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '.' | '%'))) {
        let word = word.trim_matches(['-', '.']);
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            match *topic {
                Some(Topic::Thresholds | Topic::Retries) => {
                    // `0.70/0.60/0.75` names no checkpoint: the order is that of the work.
                    let Some(at) = checkpoint.take().or_else(|| unnamed.next()) else { continue };
                    let adaptation = match topic {
                        Some(Topic::Thresholds) => {
                            share(word).map(|number| Adaptation::Threshold(at, number))
                        }
                        _ => word.parse().ok().map(|number| Adaptation::Retries(at, number)),
                    };
                    found.extend(adaptation);
                }
                Some(Topic::Interval) => {
                    found.extend(word.parse().ok().map(Adaptation::Interval));
                    *topic = None;
                }
                Some(Topic::Compaction) => {
                    found.extend(share(word).map(|number| Adaptation::Compaction(number / 10)));
                    *topic = None;
                }
                None => {}
            }
            continue;
        }
        *topic = topic_of(word).or(*topic);
        if *topic != Some(Topic::Interval) {
            checkpoint = GatePoint::ALL.into_iter().find(|it| word.starts_with(it.word())).or(checkpoint);
        }
    }
}

fn topic_of(word: &str) -> Option<Topic> {
    let has = |part: &str| word.contains(part);
    match () {
        () if has("compaction") => Some(Topic::Compaction), // `compaction-threshold` is no threshold of a check
        () if has("interval") => Some(Topic::Interval), // nor `mid-exec-check-interval` about a checkpoint
        () if has("retr") => Some(Topic::Retries),
        () if has("threshold") => Some(Topic::Thresholds),
        () => None,
    }
}

/// A share in thousandths: `0.65`, `65%` or `65`.
fn share(word: &str) -> Option<u32> {
    let number: f64 = word.trim_end_matches('%').parse().ok()?;
    let share = if word.ends_with('%') || number > 1.0 { number / 100.0 } else { number };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
    (0.0..=1.0).contains(&share).then(|| (share * 1000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, tags: &[&str]) {
        let found: Vec<String> = adaptations(text).into_iter().map(Adaptation::tag).collect();
        assert_eq!(found, tags, "{text}");
    }

    #[test]
    fn the_section_is_read_as_a_list_a_table_or_lines() {
        let all = [
            "threshold:post-plan:0.600",
            "threshold:mid-exec:0.550",
            "threshold:post-exec:0.650",
            "retries:post-plan:2",
            "retries:mid-exec:1",
            "retries:post-exec:4",
            "interval:5",
            "compaction:78",
        ];
        check(
            "# Type\n\n## Auto Adaptation\n\nthresholds:\n  post_plan: 0.60\n  mid_exec: 0.55\n  post_exec: 0.65\n\
             retry_limits:\n  post_plan: 2\n  mid_exec: 1\n  post_exec: 4\nmid_exec_check_interval: 5\ncompaction_threshold: 0.78\n",
            &all,
        );
        check(
            "## Auto Adaptation\n| Parameter | Value |\n|---|---|\n| post-plan threshold | 0.60 |\n| mid-exec threshold | 55% |\n\
             | post-exec threshold | 0.65 |\n| post-plan retries | 2 |\n| mid-exec retries | 1 |\n| post-exec retries | 4 |\n\
             | `mid_exec_check_interval` | 5 |\n| `compaction_threshold` | 78% |\n",
            &all,
        );
        check(
            "## Auto Adaptation (observed)\n- **thresholds**: 0.60/0.55/0.65\n- retry_limits: 2/1/4\n- mid_exec_check_interval: 5 steps\n\
             - compaction_threshold: 78\n",
            &all,
        );
    }

    #[test]
    fn other_sections_and_words_say_nothing() {
        check("# Type: software\n\n## Scoring\n\nthresholds: 0.1/0.1/0.1\n", &[]);
        check("## Auto Adaptation\n\nWrite the numbers here.\n\n## Notes\n\nretries: 9\n", &[]);
        check(
            "## Auto Adaptation\nthresholds:\n- post-plan: high\n- post-exec: 75\n",
            &["threshold:post-exec:0.750"],
        );
    }
}
