//! The known word that someone may have meant.

/// The known word closest to `word`, if it is close enough to be a slip of the fingers.
#[must_use]
pub fn nearest_word<'a>(known: &[&'a str], word: &str) -> Option<&'a str> {
    let far = word.chars().count() / 3 + 1;
    let near = known.iter().map(|it| (edit_distance(it, word), *it)).min()?;
    (near.0 <= far).then_some(near.1)
}

/// How many letters must be put in, taken out or exchanged.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_lowercase().chars().take(64).collect(); // longer words are nobody's slip
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.to_lowercase().chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let exchanged = corner + usize::from(a != *b);
            corner = row[j + 1];
            row[j + 1] = exchanged.min(corner + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest_word;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["priority", "needs", "title", "tags"];
        assert_eq!(nearest_word(&known, "piority"), Some("priority"));
        assert_eq!(nearest_word(&known, "Tag"), Some("tags"));
        assert_eq!(nearest_word(&known, "need"), Some("needs"));
        assert_eq!(nearest_word(&known, "assignee"), None);
        assert_eq!(nearest_word(&[], "x"), None);
    }
}
