//! What must hold for the acceptance criteria in the body of an issue, whatever the body is.

use std::collections::BTreeSet;

use landfall_model::acceptance::{Check, Criteria, Mode, Occasion, Plan, Standing, plan, tick, tick_again};

/// Reads a body, plans each criterion where nothing may be run, and ticks every box.
pub fn criteria(data: &[u8]) {
    let Ok(body) = std::str::from_utf8(data) else { return };
    let customs = BTreeSet::from(["dns-check".to_owned()]);
    let criteria = Criteria::of(body, &customs);
    let standing = Standing {
        mode: Mode::Safe,
        merged: true,
        leave: false,
        base_url: None,
        allow_localhost: false,
        handlers: &[],
        occasion: Occasion::Verify,
        happened: &[],
    };
    for criterion in &criteria.items {
        if let Plan::Run(verify, _) = plan(criterion, standing) {
            assert!(verify.when.is_none(), "a condition is a command");
            assert!(
                !matches!(verify.check, Check::Command(_) | Check::BuildSuccess(_) | Check::McpCall { .. }),
                "nothing is run in safe mode"
            );
        }
    }
    let all: BTreeSet<usize> = criteria.items.iter().map(|it| it.line).collect();
    let ticked = tick(body, &all);
    assert_eq!(ticked.len(), body.len(), "one byte becomes another");
    let changed = body.bytes().zip(ticked.bytes()).filter(|(before, after)| before != after);
    assert!(changed.into_iter().all(|pair| pair == (b' ', b'x')), "only boxes change");
    let again = Criteria::of(&ticked, &customs);
    assert_eq!(again.items.len(), criteria.items.len());
    assert!(again.items.iter().all(|it| it.ticked));
    let read: Vec<_> = criteria.items.iter().collect();
    assert_eq!(tick_again(&ticked, &read, &customs), ticked, "what is ticked stays so");
}
