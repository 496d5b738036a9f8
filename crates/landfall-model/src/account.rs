//! Accounts: what many tasks share and what can be used up or logged out for all of them.

use std::collections::BTreeMap;

use crate::Timestamp;
use crate::decide::trouble_ms;
use crate::event::{AgentExit, Event};
use crate::judge::Verdict;
use crate::status::WaitReason;
use crate::task::{Task, TaskState};
pub use landfall_facts::account::AccountState;

/// What may be done on an account now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountPermit {
    /// Agents may start.
    Free,
    /// One may start, if none is at work: it finds out for the others.
    One,
    /// None may.
    Never {
        /// Before this moment, if time brings it.
        until: Option<Timestamp>,
    },
}

impl AccountPermit {
    /// What may be done now.
    #[must_use]
    pub fn for_state(state: &AccountState, now: Timestamp) -> Self {
        match state {
            AccountState::Open => Self::Free,
            AccountState::UsedUp { until, .. } | AccountState::Troubled { until, .. } if *until <= now => {
                Self::One
            }
            AccountState::UsedUp { until, .. } | AccountState::Troubled { until, .. } => {
                Self::Never { until: Some(*until) }
            }
            AccountState::LoggedOut { .. } => Self::Never { until: None },
        }
    }
}

/// An account that is used up until then; none if that was known.
fn used_up_state(now: &AccountState, until: Timestamp, guessed: bool) -> Option<AccountState> {
    match now {
        AccountState::UsedUp { until: known, .. } if *known >= until => None,
        _ => Some(AccountState::UsedUp { until, guessed }),
    }
}

/// The accounts that are not simply open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounts(BTreeMap<String, AccountState>);

impl Accounts {
    /// How an account stands.
    #[must_use]
    pub fn get(&self, account: &str) -> &AccountState {
        self.0.get(account).unwrap_or(&AccountState::Open)
    }

    /// Those that are not open.
    pub fn closed_accounts(&self) -> impl Iterator<Item = (&String, &AccountState)> {
        self.0.iter()
    }

    /// Takes a change in.
    pub fn set_state(&mut self, account: &str, state: AccountState) {
        match state {
            AccountState::Open => {
                self.0.remove(account);
            }
            AccountState::UsedUp { .. } | AccountState::Troubled { .. } | AccountState::LoggedOut { .. } => {
                self.0.insert(account.to_owned(), state);
            }
        }
    }

    /// What a fact about a task means for its account, if anything. `task` is as it was before.
    #[must_use]
    pub fn state_after_event(&self, task: &Task, at: Timestamp, event: &Event) -> Option<AccountState> {
        let now = self.get(&task.driving.as_ref()?.account);
        let next = match event {
            Event::Waited { wait: WaitReason::Quota { until, guessed }, .. } => {
                used_up_state(now, *until, *guessed)?
            }
            // The agent waits by itself. The others need not find out for themselves.
            Event::AccountWaitBegan { until: Some(until), .. } if *until > at => {
                used_up_state(now, *until, false)?
            }
            Event::AccountWaitEnded { .. } => match now {
                AccountState::UsedUp { .. } => AccountState::Open,
                AccountState::Open | AccountState::Troubled { .. } | AccountState::LoggedOut { .. } => {
                    return None;
                }
            },
            // Once may be chance. Twice in a row it is the provider, and the others need not find out for themselves. An
            // answer that was waited for as long as `run.silence` is no chance.
            Event::IterationEnded { verdict: Verdict::Transient { .. }, exit, .. } => {
                let count = task.counters.transients + 1;
                let certain = matches!(exit, AgentExit::Silent);
                let tries = match now {
                    AccountState::UsedUp { until, .. } if *until > at => return None,
                    AccountState::LoggedOut { .. } => return None,
                    // It was begun before the trouble was known: it says nothing new.
                    AccountState::Troubled { until, .. } if *until > at => return None,
                    AccountState::Troubled { tries, .. } => tries.saturating_add(1),
                    AccountState::Open | AccountState::UsedUp { .. } if count < 2 && !certain => return None,
                    AccountState::Open | AccountState::UsedUp { .. } => count,
                };
                AccountState::Troubled { until: at.plus_ms(trouble_ms(task.id, tries)), tries }
            }
            Event::Waited { wait: WaitReason::Login { .. }, .. } => AccountState::LoggedOut { task: task.id },
            // A person answered one of those who asked: one agent finds out whether it helped.
            Event::Resumed { .. } => match (&task.state, now) {
                (
                    TaskState::Waiting { wait: WaitReason::Login { .. }, .. },
                    AccountState::LoggedOut { .. },
                ) => AccountState::UsedUp { until: at, guessed: false },
                _ => return None,
            },
            // Whoever asked is gone, and nobody else may ask.
            Event::Ended(_) | Event::Retried { .. } | Event::Waited { .. } => match now {
                AccountState::LoggedOut { task: asker } if *asker == task.id => {
                    AccountState::UsedUp { until: at, guessed: false }
                }
                _ => return None,
            },
            // What was begun before the reset says nothing about what comes after it.
            Event::IterationEnded { verdict, .. } if verdict.is_own_word() => match now {
                AccountState::UsedUp { until, .. } if *until > at => return None,
                AccountState::Open
                | AccountState::UsedUp { .. }
                | AccountState::Troubled { .. }
                | AccountState::LoggedOut { .. } => AccountState::Open,
            },
            _ => return None,
        };
        (next != *now).then_some(next)
    }

    /// The model answered an agent on this account: it can be worked on, if it was only to be tried.
    #[must_use]
    pub fn state_after_answer(&self, account: &str, now: Timestamp) -> Option<AccountState> {
        match AccountPermit::for_state(self.get(account), now) {
            AccountPermit::One => Some(AccountState::Open),
            AccountPermit::Free | AccountPermit::Never { .. } => None,
        }
    }

    /// A person wants a task that waits for its account to go on now: one agent finds out whether it can.
    #[must_use]
    pub fn state_after_override(&self, task: &Task, at: Timestamp) -> Option<(String, AccountState)> {
        let account = &task.driving.as_ref()?.account;
        match (&task.state, AccountPermit::for_state(self.get(account), at)) {
            (
                TaskState::Waiting { wait: WaitReason::Quota { .. } | WaitReason::Backoff { .. }, .. },
                AccountPermit::Never { until: Some(_) },
            ) => Some((account.clone(), AccountState::UsedUp { until: at, guessed: false })),
            _ => None,
        }
    }
}
