//! Plays that several stories use.

use landfall_testkit::{PlayTurn, Tokens};

/// What each turn of [`works`] costs.
pub const PRICE: Tokens = Tokens { fresh: 1200, cached: 300, out: 40 };

/// Adds `hello.txt` and commits it.
pub const WORK: &str = "echo hello > hello.txt && git add hello.txt && git commit -qm 'add hello'";

/// Works, and says so with the tag that the prompt names.
pub fn works() -> Vec<PlayTurn> {
    vec![PlayTurn::shell(WORK).with_words("I add the file.").tokens(PRICE), says_complete()]
}

/// Says the closing tag as the prompt names it, with its key.
pub fn says_complete() -> PlayTurn {
    PlayTurn::quote("<landfall key=", ">COMPLETE</landfall>").tokens(PRICE)
}
