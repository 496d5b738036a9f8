//! Accounts: what many tasks share and what can be used up or logged out for all of them.

use std::collections::BTreeMap;

use crate::event::Event;
use crate::status::Wait;
use crate::task::{State, Task};
use crate::{TaskId, Timestamp};

/// Whether an account can be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountState {
    /// It can.
    Open,
    /// Not before then; after that one agent tries it first.
    UsedUp {
        /// The reset, as it was first said.
        until: Timestamp,
    },
    /// Not before a person has logged in and said so.
    LoggedOut {
        /// The task that asks them.
        task: TaskId,
    },
}

/// What may be done on an account now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
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

impl AccountState {
    /// What may be done now.
    #[must_use]
    pub fn leave(&self, now: Timestamp) -> Leave {
        match self {
            Self::Open => Leave::Free,
            Self::UsedUp { until } if *until <= now => Leave::One,
            Self::UsedUp { until } => Leave::Never { until: Some(*until) },
            Self::LoggedOut { .. } => Leave::Never { until: None },
        }
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
    pub fn shut(&self) -> impl Iterator<Item = (&String, &AccountState)> {
        self.0.iter()
    }

    /// Takes a change in.
    pub fn set(&mut self, account: &str, state: AccountState) {
        match state {
            AccountState::Open => drop(self.0.remove(account)),
            AccountState::UsedUp { .. } | AccountState::LoggedOut { .. } => {
                self.0.insert(account.to_owned(), state);
            }
        }
    }

    /// What a fact about a task means for its account, if anything. `task` is as it was before.
    #[must_use]
    pub fn follows(&self, task: &Task, at: Timestamp, event: &Event) -> Option<AccountState> {
        let now = self.get(&task.driving.as_ref()?.account);
        let next = match event {
            Event::Waited { wait: Wait::Quota { until }, .. } => match now {
                AccountState::UsedUp { until: known } if known >= until => return None,
                _ => AccountState::UsedUp { until: *until },
            },
            Event::Waited { wait: Wait::Login { .. }, .. } => AccountState::LoggedOut { task: task.id },
            // A person answered one of those who asked: one agent finds out whether it helped.
            Event::Resumed { .. } => match (&task.state, now) {
                (State::Waiting { wait: Wait::Login { .. }, .. }, AccountState::LoggedOut { .. }) => {
                    AccountState::UsedUp { until: at }
                }
                _ => return None,
            },
            // Whoever asked is gone, and nobody else may ask.
            Event::Ended(_) | Event::Retried { .. } | Event::Waited { .. } => match now {
                AccountState::LoggedOut { task: asker } if *asker == task.id => {
                    AccountState::UsedUp { until: at }
                }
                _ => return None,
            },
            // What was begun before the reset says nothing about what comes after it.
            Event::IterationEnded { verdict, .. } if verdict.is_own_word() => match now {
                AccountState::UsedUp { until } if *until > at => return None,
                _ => AccountState::Open,
            },
            _ => return None,
        };
        (next != *now).then_some(next)
    }
}
