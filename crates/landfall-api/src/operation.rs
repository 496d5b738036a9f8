//! What can be asked: one line each. A request and its response have the same name.

use std::time::Duration;

use serde::Deserialize;

use crate::socket::PeerProcess;
use crate::{
    Accept, Added, AgentToken, AgentTokenAsked, AgentsAsked, AgentsFound, Annotate, Annotated, Answer,
    AutoAsked, Block, Board, BoardAsked, Cancel, CertificateJson, Changed, CheckpointAsked, CheckpointDetail,
    CheckpointDrop, CheckpointLine, CheckpointList, CheckpointNew, CheckpointsDropped, Consulted, Diff,
    DiffAsked, DiscoveriesAsked, DiscoveryDrop, DiscoveryList, DoAsked, EditTask, Export, Exported, Filter,
    Fleet, FleetAsked, FlowCheck, FlowChecked, FlowDrawing, FlowList, FlowShow, Graph, GraphAsked, HaulList,
    Health, Hold, ImportText, Imported, ImprovementList, ImprovementsFile, Inbox, InboxAsked, IssueAsked,
    IssueChanged, IssueClose, IssueDetail, IssueEdit, IssueEvents, IssueEventsAsked, IssueList, IssueMade,
    IssueNew, IssueSay, IssueSummaries, IssueSummariesAsked, IssueTick, IssueVerified, IssuesAsked,
    IssuesFollow, IssuesFollowed, Limits, LogAsked, LogPage, LoopAsked, LoopLine, LoopList, LoopOf,
    LoopsAsked, Message, NewTasks, NextAsked, Nothing, Output, OutputAsked, OutputBytes, OutputList,
    OutputRange, PairAsked, Pairing, Paper, PaperAsked, PaperList, PauseAsked, Picked, Pilot, Problem,
    ProblemCode, ProposalList, ProposalOf, ProposeStart, Proposing, PullRequestDetail, QueueChanged,
    QueueReport, QueueResume, Reclaimed, ReconcileAsked, Reconciliation, Refine, RefineWithdraw, Release,
    Report, ReportAsked, Restored, Retry, ReviewAsked, ReviewList, RolledBack, Rollup, RollupAsked, RunAsked,
    RunList, RunNowAsked, RunStarted, RunView, SessionList, SessionOf, SettingsReport, SprintChanged,
    SprintList, SprintOf, SprintPlan, SprintPreview, SprintReport, Stats, StatsAsked, StatusReport,
    StopAsked, Stopped, Target, TargetConfirm, TargetSay, TaskAsked, TaskDetail, TaskPage, TrackerWebhook,
    VerifyAsked, Why,
};

/// Answers requests: the engine itself, or a client that passes them on.
pub trait Service {
    /// Carries one request out. On a problem nothing has changed.
    ///
    /// # Errors
    /// The problem, for programs and for people.
    fn call(&self, request: Request) -> Result<Response, Problem>;

    /// Whether a process that has connected to the socket may ask at all. Who the user is, the key of the socket decides; this
    /// keeps out the agents that are known as such.
    ///
    /// # Errors
    /// Why it may not.
    fn admit_peer(&self, _peer: &PeerProcess) -> Result<(), Problem> {
        Ok(())
    }

    /// Texts that nobody is to read in any answer, as far as they are known.
    fn known_secrets(&self) -> Vec<String> {
        Vec::new()
    }

    /// Hears what a tracker sent by itself. Strangers can send it, so it is believed only if it is signed.
    ///
    /// # Errors
    /// Why it is not taken.
    fn handle_webhook(&self, _hook: &TrackerWebhook) -> Result<(), Problem> {
        Err(Problem::new(ProblemCode::NotFound, "no webhook is set up here"))
    }

    /// How far things have come; none where that cannot be said without asking. It costs next to nothing.
    ///
    /// What was answered at a mark is still so for whoever asks before there is a later one: but for what agents at work
    /// say, and what people do to the files themselves.
    fn state_version(&self) -> Option<StateVersion> {
        None
    }

    /// Has everything that `work` reads, in this thread, be of one moment, and says of which: the last event that is told of.
    /// None where nobody can say; it is read all the same.
    fn run_in_one_state(&self, work: &mut dyn FnMut()) -> Option<u64> {
        work();
        None
    }

    /// Waits until something is written after `mark`, for at most so long.
    fn wait_for_change(&self, _mark: StateVersion, at_most: Duration) {
        std::thread::sleep(at_most);
    }
}

/// How far things have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateVersion {
    /// Requests that may have changed something, counted when they were done.
    pub writes: u64,
    /// The last event of the journal, as far as a run writes there; what is written at rest is a request.
    pub seq: u64,
}

impl StateVersion {
    /// Whether everything that had happened by `other` had happened by this one.
    #[must_use]
    pub fn covers_version(self, other: Self) -> bool {
        self.writes >= other.writes && self.seq >= other.seq
    }
}

/// Who may ask for an operation. A new operation has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// It changes nothing: whoever has any token.
    Read,
    /// It brings something in for a person to look at: an agent too, and what it brings is a draft.
    Suggest,
    /// It decides, spends, or changes what is: people only.
    Steer,
}

/// What carrying out an operation takes. A server bounds how many of each kind run at once, so that none keeps the others out. A new
/// operation has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationCost {
    /// It reads tables and files.
    Read,
    /// It changes something here, in a moment. It has no bound: a change never waits for those who read.
    Change,
    /// It starts processes, or goes through everything there is.
    Heavy,
    /// It waits for a tracker, which may be far away and slow.
    Tracker,
}

/// How an operation is asked for over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// Changes nothing; its words are in the path and the query.
    Get,
    /// Its words are in the path and a JSON body.
    Post,
    /// The same, for a part of something.
    Patch,
    /// Ends something; its words are in the path and the query.
    Delete,
}

impl HttpMethod {
    /// As HTTP writes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Where an operation is on the wire.
#[derive(Debug, Clone, Copy)]
pub struct OperationRoute {
    /// Its name: the function of [`TypedService`].
    pub name: &'static str,
    /// How it is asked for.
    pub method: HttpMethod,
    /// Its path below [`crate::http::ROOT`]; a word in braces is a field of the request.
    pub path: &'static str,
    /// Who may.
    pub access: Access,
    /// What carrying it out takes.
    pub cost: OperationCost,
    /// What it does, in one sentence.
    pub doc: &'static str,
}

macro_rules! operations {
    ($($(#[doc = $doc:literal])* $variant:ident: $method:ident($asked:ty) -> $answer:ty, $access:ident $cost:ident $verb:ident $path:literal;)*) => {
        /// What a client asks.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request {
            $($(#[doc = $doc])* $variant($asked),)*
        }

        /// What the engine answers; `--json` prints the answer within.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Response {
            $($(#[doc = $doc])* $variant($answer),)*
        }

        impl Request {
            /// Every operation there is.
            pub const ROUTES: &[OperationRoute] = &[$(OperationRoute {
                name: stringify!($method),
                method: HttpMethod::$verb,
                path: $path,
                access: Access::$access,
                cost: OperationCost::$cost,
                doc: concat!($($doc),*),
            }),*];

            /// The place of this operation among [`Self::ROUTES`].
            fn place(&self) -> usize {
                #[expect(non_camel_case_types, reason = "named like the functions")]
                enum Place { $($method),* }
                match self { $(Self::$variant(_) => Place::$method as usize,)* }
            }

            /// Where this operation is on the wire.
            #[must_use]
            pub fn route(&self) -> &'static OperationRoute {
                &Self::ROUTES[self.place()]
            }

            /// The name of this operation.
            #[must_use]
            pub fn name(&self) -> &'static str {
                self.route().name
            }

            /// The words of this request.
            ///
            /// # Errors
            /// When they cannot be written as JSON.
            pub fn words(&self) -> Result<serde_json::Value, serde_json::Error> {
                match self { $(Self::$variant(asked) => serde_json::to_value(asked),)* }
            }

            /// The request for `name` with these words; none if no operation has that name.
            ///
            /// # Errors
            /// What cannot be understood.
            pub fn of_words<'de, D: serde::Deserializer<'de>>(name: &str, words: D) -> Result<Option<Self>, D::Error> {
                match name {
                    $(stringify!($method) => <$asked>::deserialize(words).map(|asked| Some(Self::$variant(asked))),)*
                    _ => Ok(None),
                }
            }
        }

        impl Response {
            /// The name of the operation it answers.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($method),)* }
            }

            /// The answer within, as JSON.
            ///
            /// # Errors
            /// When it cannot be written.
            pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
                match self { $(Self::$variant(answer) => serde_json::to_vec(answer),)* }
            }

            /// The answer to the operation `name`.
            ///
            /// # Errors
            /// When it cannot be understood.
            pub fn of_json(name: &str, json: &[u8]) -> Result<Option<Self>, serde_json::Error> {
                match name {
                    $(stringify!($method) => serde_json::from_slice(json).map(|answer| Some(Self::$variant(answer))),)*
                    _ => Ok(None),
                }
            }
        }

        /// The schemas of every request and answer, in the order of [`Request::ROUTES`].
        #[cfg(feature = "schema")]
        pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(schemars::Schema, schemars::Schema)> {
            vec![$((generator.subschema_for::<$asked>(), generator.subschema_for::<$answer>())),*]
        }

        /// The same operations as functions with the types that belong together.
        pub trait TypedService: Service {
            $(
                $(#[doc = $doc])*
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
    Add: add(NewTasks) -> Added, Suggest Change Post "/tasks";
    /// A page of tasks.
    List: list(Filter) -> TaskPage, Read Read Get "/tasks";
    /// All there is to know about one task.
    Show: show(TaskAsked) -> Box<TaskDetail>, Read Read Get "/tasks/{task}";
    /// Changes the words of a task.
    Edit: edit(EditTask) -> Changed, Steer Change Patch "/tasks/{task}";
    /// What goes on, what waits, and how the project stands.
    Status: status(Nothing) -> Box<StatusReport>, Read Read Get "/status";
    /// Tasks by what they need from a person, and what is wrong.
    Board: board(BoardAsked) -> Box<Board>, Read Read Get "/board";
    /// Everything that waits for a person, with what can be done about each.
    Inbox: inbox(InboxAsked) -> Inbox, Read Read Get "/inbox";
    /// Which task needs which.
    Graph: graph(GraphAsked) -> Graph, Read Read Get "/graph";
    /// What came of the work, by day, by agent and in all.
    Stats: stats(StatsAsked) -> Box<Stats>, Read Read Get "/stats";
    /// What is there: agents at work, folders, lanes, the disk.
    Fleet: fleet(FleetAsked) -> Box<Fleet>, Read Heavy Get "/fleet";
    /// The settings, key by key.
    Settings: settings(Nothing) -> Box<SettingsReport>, Steer Change Get "/settings";
    /// What agents and checks of a task printed: which outputs there are.
    Outputs: outputs(TaskAsked) -> OutputList, Read Read Get "/tasks/{task}/outputs";
    /// A page of what an agent or a check printed.
    Output: output(OutputAsked) -> Box<Output>, Read Read Get "/tasks/{task}/output";
    /// The same as bytes, as they were printed.
    OutputBytes: output_bytes(OutputRange) -> OutputBytes, Read Read Get "/tasks/{task}/output/bytes";
    /// Why a task is where it is.
    Why: why(TaskAsked) -> Why, Read Read Get "/tasks/{task}/why";
    /// A page of the journal, for people.
    Log: log(LogAsked) -> LogPage, Read Read Get "/journal";
    /// What a task changes, or what its work changed since a commit.
    Diff: diff(DiffAsked) -> Diff, Read Read Get "/tasks/{task}/diff";
    /// Stops the run, or one task of it.
    Stop: stop(StopAsked) -> Stopped, Steer Change Post "/stop";
    /// Lets tasks that ended or wait start again.
    Retry: retry(Retry) -> Changed, Steer Change Post "/tasks/retry";
    /// Ends tasks as done without a landing of their own; the tasks that need them go on.
    Accept: accept(Accept) -> Changed, Steer Change Post "/tasks/accept";
    /// Ends tasks that are wanted no more; their work is kept.
    Cancel: cancel(Cancel) -> Changed, Steer Change Post "/tasks/cancel";
    /// Says something to the agent of a task: with its next run, or at once.
    Message: message(Message) -> Changed, Steer Change Post "/tasks/{task}/message";
    /// Keeps tasks from going on once what is under way is over.
    Hold: hold(Hold) -> Changed, Steer Change Post "/tasks/hold";
    /// Lets tasks that are held, or paused, go on where they were.
    Release: release(Release) -> Changed, Steer Change Post "/tasks/release";
    /// Says that tasks cannot go on, as their agents would.
    Block: block(Block) -> Changed, Steer Change Post "/tasks/block";
    /// Sets limits for one task alone.
    Limits: limits(Limits) -> Changed, Steer Change Patch "/tasks/{task}/limits";
    /// Answers the question a task waits with, or approves it.
    Answer: answer(Answer) -> Changed, Steer Change Post "/tasks/{task}/answer";
    /// Wants one step of a task done now: the flow says in which phase that is possible.
    TaskDo: task_do(DoAsked) -> Changed, Steer Change Post "/tasks/{task}/do";
    /// What a task is for, how close it is, and what judges said of it.
    Target: target(TaskAsked) -> Box<Target>, Read Read Get "/tasks/{task}/target";
    /// Says something about what a task is for.
    TargetSay: target_say(TargetSay) -> Changed, Steer Change Post "/tasks/{task}/target";
    /// Says yes to what a task is for, as it was shown; from then on it goes by itself.
    TargetConfirm: target_confirm(TargetConfirm) -> Changed, Steer Change Post "/tasks/{task}/target/confirm";
    /// Wants something otherwise while a task is under way, or more of what is done.
    Refine: refine(Refine) -> Changed, Steer Change Post "/tasks/{task}/refinements";
    /// Takes a refinement back, as long as nobody has dealt with it.
    RefineWithdraw: refine_withdraw(RefineWithdraw) -> Changed, Steer Change Post "/tasks/{task}/refinements/withdraw";
    /// The papers of a task: its plan, and what else its agents wrote for each other.
    Papers: papers(TaskAsked) -> PaperList, Read Read Get "/tasks/{task}/papers";
    /// One paper of a task.
    Paper: paper(PaperAsked) -> Box<Paper>, Read Read Get "/tasks/{task}/paper";
    /// Writes into the margin of a paper, all or nothing. A plan that says something else then is judged again.
    Annotate: annotate(Annotate) -> Annotated, Steer Change Post "/tasks/{task}/annotations";
    /// Takes a landed task back by a new commit that undoes it.
    Rollback: rollback(TaskAsked) -> RolledBack, Steer Change Post "/tasks/{task}/rollback";
    /// Lets the run begin nothing new; iterations under way finish.
    Pause: pause(PauseAsked) -> Box<Pilot>, Steer Change Post "/pause";
    /// Lets a paused run go on.
    Resume: resume(Nothing) -> Box<Pilot>, Steer Change Post "/resume";
    /// Who picks tasks in the run under way.
    Pilot: pilot(Nothing) -> Box<Pilot>, Read Read Get "/auto";
    /// Changes who picks tasks.
    Auto: auto(AutoAsked) -> Box<Pilot>, Steer Change Post "/auto";
    /// Picks the next task of a semi-automatic run.
    Next: next(NextAsked) -> Picked, Steer Change Post "/next";
    /// Loops of sessions over modules, newest first.
    Loops: loops(LoopsAsked) -> LoopList, Read Read Get "/loops";
    /// Has a module's task worked on for a session, within limits of its own.
    LoopStart: loop_start(LoopAsked) -> Box<LoopLine>, Steer Change Post "/loops";
    /// Ends the loop of a session once what is under way is finished.
    LoopStop: loop_stop(LoopOf) -> Box<LoopLine>, Steer Change Post "/loops/{session}/stop";
    /// Follows issues of the project's tracker, each by a task. A run drives them.
    IssuesFollow: issues_follow(IssuesFollow) -> IssuesFollowed, Steer Change Post "/issues/follow";
    /// What happened to issues that were followed, oldest first.
    IssueEvents: issue_events(IssueEventsAsked) -> IssueEvents, Read Read Get "/issues/events";
    /// The same summed up: runs, how long phases took and waited, what was done about failures, tokens by phase and model.
    IssueRollup: issue_rollup(RollupAsked) -> Box<Rollup>, Read Read Get "/issues/rollup";
    /// What agents propose when they look back on issues.
    Improvements: improvements(Nothing) -> ImprovementList, Read Tracker Get "/issues/proposals";
    /// Makes issues of what agents propose, each once.
    ImprovementsFile: improvements_file(ImprovementsFile) -> ImprovementList, Steer Tracker Post "/issues/proposals/file";
    /// Which issues would be followed, and how. Nothing is changed.
    IssuesPreview: issues_preview(IssuesFollow) -> IssuesFollowed, Read Tracker Post "/issues/preview";
    /// Batches of issues of which something is left, newest first.
    IssueBatches: issue_batches(Nothing) -> HaulList, Read Tracker Get "/issues/batches";
    /// What became of the issues of some tasks.
    IssueSummaries: issue_summaries(IssueSummariesAsked) -> IssueSummaries, Read Read Get "/issues/summaries";
    /// The issues of the project's tracker.
    IssueList: issue_list(IssuesAsked) -> IssueList, Read Tracker Get "/issues";
    /// Makes an issue in the project's tracker.
    IssueNew: issue_new(IssueNew) -> IssueMade, Steer Tracker Post "/issues";
    /// Everything about one issue.
    IssueShow: issue_show(IssueAsked) -> Box<IssueDetail>, Read Tracker Get "/issues/{issue}";
    /// Changes an issue, all at once.
    IssueEdit: issue_edit(IssueEdit) -> IssueChanged, Steer Tracker Patch "/issues/{issue}";
    /// Says something about an issue.
    IssueSay: issue_say(IssueSay) -> IssueChanged, Steer Tracker Post "/issues/{issue}/comments";
    /// Ticks a box of an issue, or opens it again.
    IssueTick: issue_tick(IssueTick) -> IssueChanged, Steer Tracker Post "/issues/{issue}/tick";
    /// Closes an issue.
    IssueClose: issue_close(IssueClose) -> IssueChanged, Steer Tracker Post "/issues/{issue}/close";
    /// Opens an issue again.
    IssueReopen: issue_reopen(IssueAsked) -> IssueChanged, Steer Tracker Post "/issues/{issue}/reopen";
    /// Whether a phase of an issue is complete, by what can be seen. Commits that are not here yet are fetched.
    Reconcile: reconcile(ReconcileAsked) -> Box<Reconciliation>, Steer Tracker Post "/issues/{issue}/reconciliation";
    /// Looks at the acceptance criteria of an issue, and does what follows. That may take minutes, and cost.
    IssueVerify: issue_verify(VerifyAsked) -> Box<IssueVerified>, Steer Heavy Post "/issues/{issue}/verify";
    /// Everything about a pull request, or about the one of an issue.
    IssuePull: issue_pull(IssueAsked) -> Box<PullRequestDetail>, Read Tracker Get "/pulls/{issue}";
    /// What a sprint would be.
    SprintPreview: sprint_preview(SprintPlan) -> SprintPreview, Read Read Post "/sprints/preview";
    /// One sprint, and what became of it.
    Sprint: sprint(SprintOf) -> Box<SprintReport>, Read Read Get "/sprint";
    /// Every sprint there was.
    Sprints: sprints(Nothing) -> SprintList, Read Read Get "/sprints";
    /// Lets the open sprint begin nothing new.
    SprintPause: sprint_pause(PauseAsked) -> SprintChanged, Steer Change Post "/sprints/open/pause";
    /// Lets the open sprint go on, in the run that is under way.
    SprintResume: sprint_resume(Nothing) -> SprintChanged, Steer Change Post "/sprints/open/resume";
    /// Ends the open sprint; what is under way is finished.
    SprintCancel: sprint_cancel(Nothing) -> SprintChanged, Steer Change Post "/sprints/open/cancel";
    /// The landing queue.
    Queue: queue(Nothing) -> Box<QueueReport>, Read Read Get "/queue";
    /// Takes nothing more from the landing queue.
    QueuePause: queue_pause(PauseAsked) -> QueueChanged, Steer Change Post "/queue/pause";
    /// Lets the landing queue move again.
    QueueResume: queue_resume(QueueResume) -> QueueChanged, Steer Change Post "/queue/resume";
    /// Takes a task out of the landing queue; it waits for a person.
    QueueEject: queue_eject(TaskAsked) -> Changed, Steer Change Post "/queue/{task}/eject";
    /// What a person is to look at.
    Reviews: reviews(Nothing) -> ReviewList, Read Read Get "/reviews";
    /// Says what is to become of work that was looked at.
    Review: review(ReviewAsked) -> Changed, Steer Change Post "/reviews";
    /// The checkpoints there are.
    Checkpoints: checkpoints(Nothing) -> CheckpointList, Read Read Get "/checkpoints";
    /// One checkpoint, and what going back to it takes away.
    Checkpoint: checkpoint(CheckpointAsked) -> CheckpointDetail, Read Read Get "/checkpoints/{name}";
    /// Makes a checkpoint of the base.
    CheckpointCreate: checkpoint_create(CheckpointNew) -> CheckpointLine, Steer Change Post "/checkpoints";
    /// Brings the base back to a checkpoint, by a task that is verified and landed like any other.
    CheckpointRestore: checkpoint_restore(CheckpointAsked) -> Restored, Steer Change Post "/checkpoints/{name}/restore";
    /// Lets checkpoints go.
    CheckpointDrop: checkpoint_drop(CheckpointDrop) -> CheckpointsDropped, Steer Change Post "/checkpoints/drop";
    /// The evidence of a landed task.
    Certificate: certificate(TaskAsked) -> CertificateJson, Read Read Get "/tasks/{task}/certificate";
    /// A report about a task or a run.
    Report: report(ReportAsked) -> Report, Read Read Get "/report";
    /// Begins a run in the server that holds the project.
    RunStart: run_start(RunAsked) -> RunStarted, Steer Change Post "/runs";
    /// What goes on in the run under way, with its news since a place in the journal.
    RunNow: run_now(RunNowAsked) -> Box<RunView>, Read Read Get "/run";
    /// The runs there were, newest first.
    Runs: runs(Nothing) -> RunList, Read Read Get "/runs";
    /// The flows there are.
    FlowList: flow_list(Nothing) -> FlowList, Read Read Get "/flows";
    /// One flow, drawn.
    FlowShow: flow_show(FlowShow) -> FlowDrawing, Read Read Get "/flows/{name}";
    /// What is wrong with a flow file.
    FlowCheck: flow_check(FlowCheck) -> FlowChecked, Read Read Post "/flows/check";
    /// Tasks as files that `add -f` reads.
    Export: export(Export) -> Exported, Read Heavy Post "/export";
    /// Adds tasks from a list of another tool.
    Import: import(ImportText) -> Imported, Steer Heavy Post "/imports";
    /// Has an agent turn a goal into tasks; they come as drafts. That takes minutes, and costs.
    Propose: propose(ProposeStart) -> Proposing, Steer Change Post "/proposals";
    /// The proposals this server was asked for.
    Proposals: proposals(Nothing) -> ProposalList, Read Read Get "/proposals";
    /// Lets the drafts of a proposal start.
    ProposalAccept: proposal_accept(ProposalOf) -> Changed, Steer Change Post "/proposals/accept";
    /// Which agents there are, and what each profile would run.
    Agents: agents(AgentsAsked) -> AgentsFound, Steer Heavy Get "/agents";
    /// Asks agents a small question each, to see whether they answer. It costs a little.
    Probe: probe(AgentsAsked) -> AgentsFound, Steer Heavy Post "/agents/probe";
    /// What agents found out.
    Discoveries: discoveries(DiscoveriesAsked) -> DiscoveryList, Read Read Get "/discoveries";
    /// Withdraws what agents found out; the answer names it.
    DiscoveryDrop: discovery_drop(DiscoveryDrop) -> DiscoveryList, Steer Change Post "/discoveries/drop";
    /// Notes what an agent used that was asked outside of any task.
    Consulted: consulted(Consulted) -> Nothing, Steer Change Post "/consulted";
    /// Whether everything Landfall needs is there and whole.
    Doctor: doctor(Nothing) -> Health, Read Heavy Get "/doctor";
    /// Makes the tables anew from the journal. The project must be at rest.
    Rebuild: rebuild(Nothing) -> Health, Steer Heavy Post "/doctor/rebuild";
    /// What could be given back of the disk.
    Reclaimable: reclaimable(Nothing) -> Reclaimed, Read Heavy Get "/reclaim";
    /// Gives disk space back, where it is proved that nothing is lost.
    Reclaim: reclaim(Nothing) -> Reclaimed, Steer Heavy Post "/reclaim";
    /// Who is let in to the web pages.
    Sessions: sessions(Nothing) -> SessionList, Steer Change Get "/sessions";
    /// Lets somebody in no more.
    SessionRevoke: session_revoke(SessionOf) -> SessionList, Steer Change Post "/sessions/{session}/revoke";
    /// Makes a link that lets one browser in, once.
    Pair: pair(PairAsked) -> Pairing, Steer Change Post "/pairings";
    /// Makes a token for an agent: it reads and suggests, and decides nothing.
    AgentToken: agent_token(AgentTokenAsked) -> AgentToken, Steer Change Post "/tokens";
}

impl<S: Service + ?Sized> TypedService for S {}
