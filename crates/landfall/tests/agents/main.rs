//! The real agents, driven by the real program, with a model of our own behind them.
//!
//! `cargo xtask agents` installs them and runs this; without it every test is reported as skipped. A story
//! is told once, in a module of its own, and holds for every agent that it can happen to.

mod assistant;
mod kind;
mod modules;
mod outage;
mod shared;
mod stage;
mod stories;
mod terminal;

/// The program under test.
const LANDFALL: &str = env!("CARGO_BIN_EXE_landfall");

/// Makes a test of each story for an agent.
macro_rules! agent {
    ($module:ident: $kind:ident: $($story:ident),+ $(,)?) => {
        mod $module {
            $(
                #[test]
                fn $story() {
                    crate::stories::$story(crate::kind::Kind::$kind);
                }
            )+
        }
    };
}

agent!(claude: Claude:
    edits_commits_signals_and_lands,
    is_seen_to_change_its_own_settings,
    signals_from_its_shell,
    signals_by_its_tools,
    answers_a_probe,
    goes_on_with_its_session,
    begins_anew_when_its_session_is_gone,
    waits_out_a_passing_error,
    asks_for_a_login,
    waits_for_the_reset_of_its_limit,
    is_stopped_when_it_hangs,
    is_stopped_when_its_stream_stalls,
    goes_on_after_its_turn_limit,
    is_started_again_after_sigterm,
    survives_the_end_of_the_engine,
);

agent!(codex: Codex:
    edits_commits_signals_and_lands,
    is_seen_to_change_its_own_settings,
    signals_from_its_shell,
    signals_by_its_tools,
    answers_a_probe,
    goes_on_with_its_session,
    begins_anew_when_its_session_is_gone,
    waits_out_a_passing_error,
    asks_for_a_login,
    waits_for_the_reset_of_its_limit,
    is_stopped_when_it_hangs,
    is_stopped_when_its_stream_stalls,
    is_started_again_after_sigterm,
    survives_the_end_of_the_engine,
);

agent!(gemini: Gemini:
    edits_commits_signals_and_lands,
    signals_from_its_shell,
    signals_by_its_tools,
    answers_a_probe,
    goes_on_with_its_session,
    begins_anew_when_its_session_is_gone,
    waits_out_a_passing_error,
    asks_for_a_login,
    waits_when_its_limit_names_no_reset,
    is_stopped_when_it_hangs,
    goes_on_after_its_turn_limit,
    is_started_again_after_sigterm,
    survives_the_end_of_the_engine,
);

agent!(opencode: Opencode:
    edits_commits_signals_and_lands,
    signals_from_its_shell,
    signals_by_its_tools,
    answers_a_probe,
    goes_on_with_its_session,
    begins_anew_when_its_session_is_gone,
    waits_out_a_passing_error,
    asks_for_a_login,
    is_stopped_when_it_hangs,
    is_started_again_after_sigterm,
    survives_the_end_of_the_engine,
);

agent!(acp_claude: AcpClaude:
    edits_commits_signals_and_lands,
    signals_from_its_shell,
    signals_by_its_tools,
    answers_a_probe,
    goes_on_with_its_session,
    begins_anew_when_its_session_is_gone,
    waits_out_a_passing_error,
    asks_for_a_login,
    waits_when_its_limit_names_no_reset,
    is_stopped_when_it_hangs,
    is_started_again_after_sigterm,
    survives_the_end_of_the_engine,
);

// In this mode it tells neither a limit from a passing error nor keeps its sessions.
agent!(acp_gemini: AcpGemini:
    edits_commits_signals_and_lands,
    signals_from_its_shell,
    signals_by_its_tools,
    answers_a_probe,
    begins_anew_when_its_session_is_gone,
    waits_out_a_passing_error,
    asks_for_a_login,
    is_stopped_when_it_hangs,
    is_started_again_after_sigterm,
    survives_the_end_of_the_engine,
);

/// Makes the tests of [`outage`] for an agent: `cargo xtask outage` runs all of them, the usual run only what no other
/// story shows.
macro_rules! outage {
    ($module:ident: $kind:ident) => {
        mod $module {
            use crate::kind::Kind;
            use crate::outage as stories;

            #[test]
            fn outage_silence() {
                stories::silence(Kind::$kind);
            }

            #[test]
            fn outage_long_thinking() {
                stories::long_thinking(Kind::$kind);
            }

            #[test]
            #[ignore = "`cargo xtask outage` runs it"]
            fn outage_cut_stream() {
                stories::cut_stream(Kind::$kind);
            }

            #[test]
            #[ignore = "`cargo xtask outage` runs it"]
            fn outage_endless_529() {
                stories::endless_529(Kind::$kind);
            }

            #[test]
            #[ignore = "`cargo xtask outage` runs it"]
            fn outage_daily_quota() {
                stories::daily_quota(Kind::$kind);
            }

            #[test]
            #[ignore = "`cargo xtask outage` runs it"]
            fn outage_identical_loop() {
                stories::identical_loop(Kind::$kind);
            }

            #[test]
            #[ignore = "`cargo xtask outage` runs it"]
            fn outage_setsid_daemon() {
                stories::setsid_daemon(Kind::$kind);
            }
        }
    };
}

outage!(outage_claude: Claude);
outage!(outage_codex: Codex);
outage!(outage_gemini: Gemini);
outage!(outage_opencode: Opencode);
