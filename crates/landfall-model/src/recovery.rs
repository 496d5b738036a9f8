//! How a step that failed is gone on with: a ladder of four rungs.
//!
//! What the step was to bring about is looked for first, whatever its exit code says. Then a catalogue of known patterns
//! is asked, of which the first that fits wins. Then an agent reads the evidence and answers with a plan of operations,
//! each from a closed list. Then it stops and says so. All of it is decided here and done elsewhere: the same operations
//! are what the catalogue orders, what a plan may name and what the engine carries out.

mod climbed;
mod event;
mod ladder;
mod log;
mod pattern;
mod place;
mod plan;

pub(crate) use climbed::is_climbed;
pub use climbed::{
    RecoveryContext, RecoveryStep, base_moved_fact, has_step_result, reconcile_point,
    recovery_after_acceptance, recovery_after_checks, recovery_after_exchange, recovery_after_run,
};
pub use event::{
    Diagnosis, PendingRecovery, Recoveries, Recovery, RecoveryEvent, RecoveryOutcome, RecoveryTier,
};
pub use ladder::{ACTIONS_PER_STEP_MAX, AgentAvailability, TierDecision, decide_tier};
pub use landfall_facts::recovery::{COMMENT_CHARS_MAX, OPS, OpProblem, OpShape, RecoveryOp};
pub use log::{PROMOTED_AT, PatternCandidate, find_recurring_failures, project_log, render_recovery_entry};
pub use pattern::{
    Known, Pattern, PatternCondition, PatternSample, RecoveryAction, Symptoms, TAIL_LINES_MAX,
    claims_success, detect_pattern, find_shadowed_patterns,
};
pub use place::{IssueArtifacts, is_restorable, restored_phase};
pub use plan::{
    DraftStep, PlanAction, PlanProblem, RATIONALE_CHARS_MAX, RecoveryPlan, RecoveryPlanBounds,
    RecoveryPlanDraft, STEPS_MAX, check_plan,
};
