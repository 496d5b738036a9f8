//! What can be asked: one line each. A request and its response have the same name.

use serde::{Deserialize, Serialize};

use crate::{
    Added, AgentsAsked, AgentsFound, Answer, AutoAsked, Block, Board, BoardAsked, Cancel, CertificateJson,
    Changed, CheckpointAsked, CheckpointDetail, CheckpointDrop, CheckpointLine, CheckpointList,
    CheckpointNew, CheckpointsDropped, Diff, DiffAsked, DiscoveriesAsked, DiscoveryList, Doctor, EditTask,
    Export, Exported, Filter, Fleet, FleetAsked, FlowCheck, FlowChecked, FlowDrawing, FlowList, FlowShow,
    Graph, GraphAsked, Health, Hold, Inbox, InboxAsked, Limits, LogAsked, LogPage, Message, NewTasks,
    NextAsked, Nothing, Output, OutputAsked, OutputBytes, OutputList, OutputRange, PauseAsked, Picked, Pilot,
    Problem, ProblemCode, QueueChanged, QueueReport, QueueResume, Reclaim, Reclaimed, Release, Report,
    ReportOf, Restored, Retry, ReviewAsked, ReviewList, RolledBack, RunList, SettingsReport, SprintChanged,
    SprintList, SprintOf, SprintPlan, SprintPreview, SprintReport, Stats, StatsAsked, StatusReport,
    StopAsked, Stopped, TaskAsked, TaskDetail, TaskPage, Why,
};

/// Answers requests: the engine itself, or a client that passes them on.
pub trait Service {
    /// Carries one request out. On a problem nothing has changed.
    ///
    /// # Errors
    /// The problem, for programs and for people.
    fn call(&self, request: Request) -> Result<Response, Problem>;

    /// Whether the process `pid`, of the same user, may ask at all.
    ///
    /// # Errors
    /// Why it may not.
    fn admit(&self, _pid: i32) -> Result<(), Problem> {
        Ok(())
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident: $method:ident($asked:ty) -> $answer:ty;)*) => {
        /// What a client asks.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "op", content = "asked", rename_all = "kebab-case")]
        pub enum Request {
            $($(#[$doc])* $variant($asked),)*
        }

        /// What the engine answers; `--json` prints the answer within.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "op", content = "answer", rename_all = "kebab-case")]
        pub enum Response {
            $($(#[$doc])* $variant($answer),)*
        }

        impl Request {
            /// The name of every operation.
            pub const NAMES: &[&str] = &[$(stringify!($method)),*];

            /// The name of this operation.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($method),)* }
            }
        }

        impl Response {
            /// The name of the operation it answers.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($method),)* }
            }
        }

        /// The same operations as functions with the types that belong together.
        pub trait Ask: Service {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                /// The problem that kept it from being done.
                fn $method(&self, asked: $asked) -> Result<$answer, Problem> {
                    match self.call(Request::$variant(asked))? {
                        Response::$variant(answer) => Ok(answer),
                        other => Err(Problem::new(
                            ProblemCode::Internal,
                            format!("asked for `{}` and got an answer to `{}`", stringify!($method), other.name()),
                        )),
                    }
                }
            )*
        }
    };
}

operations! {
    /// Adds tasks, many at once, all or none.
    Add: add(NewTasks) -> Added;
    /// A page of tasks.
    List: list(Filter) -> TaskPage;
    /// All there is to know about one task.
    Show: show(TaskAsked) -> Box<TaskDetail>;
    /// Changes the words of a task.
    Edit: edit(EditTask) -> Changed;
    /// What goes on, what waits, and how the project stands.
    Status: status(Nothing) -> Box<StatusReport>;
    /// Tasks by what they need from a person, and what is wrong.
    Board: board(BoardAsked) -> Box<Board>;
    /// Everything that waits for a person, with what can be done about each.
    Inbox: inbox(InboxAsked) -> Inbox;
    /// Which task needs which.
    Graph: graph(GraphAsked) -> Graph;
    /// What came of the work, by day, by agent and in all.
    Stats: stats(StatsAsked) -> Box<Stats>;
    /// What is there: agents at work, folders, lanes, the disk.
    Fleet: fleet(FleetAsked) -> Box<Fleet>;
    /// The settings, key by key.
    Settings: settings(Nothing) -> Box<SettingsReport>;
    /// What agents and checks of a task printed: which outputs there are.
    Outputs: outputs(TaskAsked) -> OutputList;
    /// A page of what an agent or a check printed.
    Output: output(OutputAsked) -> Box<Output>;
    /// The same as bytes, as they were printed.
    OutputBytes: output_bytes(OutputRange) -> OutputBytes;
    /// Why a task is where it is.
    Why: why(TaskAsked) -> Why;
    /// A page of the journal, for people.
    Log: log(LogAsked) -> LogPage;
    /// What a task changes, or what its work changed since a commit.
    Diff: diff(DiffAsked) -> Diff;
    /// Stops the run, or one task of it.
    Stop: stop(StopAsked) -> Stopped;
    /// Lets tasks that ended or wait start again.
    Retry: retry(Retry) -> Changed;
    /// Ends tasks that are wanted no more; their work is kept.
    Cancel: cancel(Cancel) -> Changed;
    /// Says something to the agent of a task: with its next run, or at once.
    Message: message(Message) -> Changed;
    /// Keeps tasks from going on once what is under way is over.
    Hold: hold(Hold) -> Changed;
    /// Lets tasks that are held, or paused, go on where they were.
    Release: release(Release) -> Changed;
    /// Says that tasks cannot go on, as their agents would.
    Block: block(Block) -> Changed;
    /// Sets limits for one task alone.
    Limits: limits(Limits) -> Changed;
    /// Answers the question a task waits with, or approves it.
    Answer: answer(Answer) -> Changed;
    /// Takes a landed task back by a new commit that undoes it.
    Rollback: rollback(TaskAsked) -> RolledBack;
    /// Lets the run begin nothing new; iterations under way finish.
    Pause: pause(PauseAsked) -> Box<Pilot>;
    /// Lets a paused run go on.
    Resume: resume(Nothing) -> Box<Pilot>;
    /// Who picks tasks, and changes that.
    Auto: auto(AutoAsked) -> Box<Pilot>;
    /// Picks the next task of a semi-automatic run.
    Next: next(NextAsked) -> Picked;
    /// What a sprint would be.
    SprintPreview: sprint_preview(SprintPlan) -> SprintPreview;
    /// One sprint, and what became of it.
    Sprint: sprint(SprintOf) -> Box<SprintReport>;
    /// Every sprint there was.
    Sprints: sprints(Nothing) -> SprintList;
    /// Lets the open sprint begin nothing new.
    SprintPause: sprint_pause(PauseAsked) -> SprintChanged;
    /// Lets the open sprint go on, in the run that is under way.
    SprintResume: sprint_resume(Nothing) -> SprintChanged;
    /// Ends the open sprint; what is under way is finished.
    SprintCancel: sprint_cancel(Nothing) -> SprintChanged;
    /// The landing queue.
    Queue: queue(Nothing) -> Box<QueueReport>;
    /// Takes nothing more from the landing queue.
    QueuePause: queue_pause(PauseAsked) -> QueueChanged;
    /// Lets the landing queue move again.
    QueueResume: queue_resume(QueueResume) -> QueueChanged;
    /// Takes a task out of the landing queue; it waits for a person.
    QueueEject: queue_eject(TaskAsked) -> Changed;
    /// What a person is to look at.
    Reviews: reviews(Nothing) -> ReviewList;
    /// Says what is to become of work that was looked at.
    Review: review(ReviewAsked) -> Changed;
    /// The checkpoints there are.
    Checkpoints: checkpoints(Nothing) -> CheckpointList;
    /// One checkpoint, and what going back to it takes away.
    Checkpoint: checkpoint(CheckpointAsked) -> CheckpointDetail;
    /// Makes a checkpoint of the base.
    CheckpointCreate: checkpoint_create(CheckpointNew) -> CheckpointLine;
    /// Brings the base back to a checkpoint, by a task that is verified and landed like any other.
    CheckpointRestore: checkpoint_restore(CheckpointAsked) -> Restored;
    /// Lets checkpoints go.
    CheckpointDrop: checkpoint_drop(CheckpointDrop) -> CheckpointsDropped;
    /// The evidence of a landed task.
    Certificate: certificate(TaskAsked) -> CertificateJson;
    /// A report about a task or a run.
    Report: report(ReportOf) -> Report;
    /// The runs there were, newest first.
    Runs: runs(Nothing) -> RunList;
    /// The flows there are.
    FlowList: flow_list(Nothing) -> FlowList;
    /// One flow, drawn.
    FlowShow: flow_show(FlowShow) -> FlowDrawing;
    /// What is wrong with a flow file.
    FlowCheck: flow_check(FlowCheck) -> FlowChecked;
    /// Tasks as files that `add -f` reads.
    Export: export(Export) -> Exported;
    /// Which agents there are, and what each profile would run.
    Agents: agents(AgentsAsked) -> AgentsFound;
    /// What agents found out.
    Discoveries: discoveries(DiscoveriesAsked) -> DiscoveryList;
    /// Whether everything Landfall needs is there and whole.
    Doctor: doctor(Doctor) -> Health;
    /// Gives disk space back, where it is proved that nothing is lost.
    Reclaim: reclaim(Reclaim) -> Reclaimed;
}

impl<S: Service + ?Sized> Ask for S {}
