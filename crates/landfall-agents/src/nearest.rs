//! What someone may have meant by a word we do not know.

/// The known word closest to `given`, if one is close enough to be a slip of the hand.
#[must_use]
pub fn nearest_word<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Words are short; a long one is not a slip, and the table grows with the product of the lengths.
    const LENGTH_MAX: usize = 64;
    let given: Vec<char> = given.chars().take(LENGTH_MAX + 1).map(|c| c.to_ascii_lowercase()).collect();
    if given.len() > LENGTH_MAX {
        return None;
    }
    known
        .into_iter()
        .map(|word| (edit_distance(&given, word), word))
        .filter(|(steps, word)| *steps <= 1 + word.chars().count() / 4)
        .min_by_key(|(steps, _)| *steps)
        .map(|(_, word)| word)
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn edit_distance(given: &[char], word: &str) -> usize {
    let word: Vec<char> = word.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=word.len()).collect();
    for (i, a) in given.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in word.iter().enumerate() {
            let change = last[j] + usize::from(a != b);
            let mut best = change.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && given[i - 1] == *b && word[j - 1] == *a {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[word.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest_word;

    #[test]
    fn a_slip_finds_the_word_and_another_word_finds_nothing() {
        let known = ["script", "command", "hang"];
        assert_eq!(nearest_word("scirpt", known), Some("script"));
        assert_eq!(nearest_word("Comand", known), Some("command"));
        assert_eq!(nearest_word("hnag", known), Some("hang"));
        assert_eq!(nearest_word("claude", known), None);
        assert_eq!(nearest_word("", known), None);
        assert_eq!(nearest_word(&"script".repeat(1000), known), None);
    }
}
