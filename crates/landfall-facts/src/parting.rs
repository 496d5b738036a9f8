//! Why an attempt ended without a result.

words! {
    /// Why an attempt ended without a result.
    pub enum YieldReason {
        /// The engine is being stopped and the iteration was over.
        Drained = "drained",
        /// A person stopped it.
        Stopped = "stopped",
        /// The agent crashed; it is started again.
        Crashed = "crashed",
        /// The agent vanished.
        Lost = "lost",
        /// The agent was silent for too long.
        Stalled = "stalled",
        /// The agent could not be started.
        NotStarted = "not-started",
        /// The account is used up.
        Quota = "quota",
        /// The provider had a passing trouble.
        Transient = "transient",
        /// It asked a person.
        Asked = "asked",
        /// The gate could not be trusted.
        GateBroken = "gate-broken",
        /// It said COMPLETE but changed nothing.
        NothingChanged = "nothing-changed",
        /// Something on this machine failed.
        Machine = "machine",
        /// Something on this machine failed for lack of a resource that can be had again.
        Shortage = "shortage",
        /// A budget of the run or the day was used up.
        Budget = "budget",
        /// It used up the budget of an attempt.
        Overspent = "overspent",
        /// The account wants a login.
        Login = "login",
        /// It said the same thing over and over.
        Looping = "looping",
        /// The session to go on with was gone.
        SessionGone = "session-gone",
        /// It said it was done, but what the step must leave behind is not there.
        OutputMissing = "output-missing",
        /// A person changed its course: it goes on with that.
        Redirected = "redirected",
        /// A person keeps it from going on.
        Held = "held",
        /// It failed, and something is done about that.
        Recovered = "recovered",
        /// It looked for something outside that has not happened yet.
        NotYet = "not-yet",
    }
}
