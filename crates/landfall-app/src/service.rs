//! Where requests arrive: reads are answered from the tables, writes go to whoever holds the project.

pub(crate) mod served_project;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use landfall_api::client::{ConnectError, EngineClient};
use landfall_api::socket::PeerProcess;
use landfall_api::{
    self as api, Access, LoopOf, NewTasks, Problem, ProblemCode, Request, Response, Service, StateVersion,
    TrackerWebhook, TypedService as _,
};
use landfall_engine::host::lock::StateLockError;
use landfall_engine::host::wait::FolderWatch;
use landfall_engine::{Engine, EngineReply, EngineRequest, OpenError};
use landfall_text::pluralize;
use landfall_trackers::github::webhook::Deliveries;

use crate::command::{changes, follow_issues, import, loops, reclaim, reconcile, verify};
use crate::project::engine_at::EngineLocation;
use crate::project::open_engine::{HolderRefusal, PATIENCE, PAUSE, check_no_agent, open, retry_while_held};
use crate::project::place::ProjectLocation;
use crate::project::query_context::Query;
use crate::project::{conversions, problems, reader_pool};
use crate::query::autopilot;
use crate::query::issues::IssueChange;
use crate::query::{
    agents, board, checkpoints, discoveries, doctor, fleet, flows, graph, inbox, issue_history, issues,
    output, queue, reclaimable, reports, reviews, secret_masking, settings, sprints, stats, targets,
};
use crate::run::RunMonitor;
use crate::service::served_project::ServedProject;

/// Answers for one project.
pub(crate) struct ProjectService {
    place: ProjectLocation,
    hand: EngineAccess,
    /// What trackers sent by themselves, by the ids they gave.
    heard: Mutex<Deliveries>,
}

/// How writes reach the engine.
enum EngineAccess {
    /// It drives in this process, and ends with its run.
    Running(RunMonitor),
    /// This process keeps the project, and drives it when asked to.
    Kept(Arc<ServedProject>),
    /// By the socket of the engine that runs, or by an engine of our own for the moment.
    Door,
}

impl EngineAccess {
    /// The run in this process, if one is under way.
    fn current_run(&self) -> Option<RunMonitor> {
        match self {
            Self::Running(running) => Some(running.clone()),
            Self::Kept(keeper) => keeper.current_run(),
            Self::Door => None,
        }
    }
}

impl ProjectService {
    fn with_access(place: ProjectLocation, hand: EngineAccess) -> Self {
        Self { place, hand, heard: Mutex::default() }
    }

    /// For clients: nothing is held between requests.
    pub fn through_socket(place: ProjectLocation) -> Self {
        Self::with_access(place, EngineAccess::Door)
    }

    /// For the process that drives.
    pub fn for_running(place: ProjectLocation, running: RunMonitor) -> Self {
        Self::with_access(place, EngineAccess::Running(running))
    }

    /// For the process that keeps the project.
    pub fn for_served_project(place: ProjectLocation, keeper: Arc<ServedProject>) -> Self {
        Self::with_access(place, EngineAccess::Kept(keeper))
    }

    fn locate_engine(&self) -> EngineLocation {
        match (&self.hand, self.hand.current_run()) {
            (_, Some(running)) => EngineLocation::Here { site: running.site },
            (EngineAccess::Kept(keeper), None) => EngineLocation::Resting { since_ms: keeper.since_ms() },
            (EngineAccess::Running(_) | EngineAccess::Door, None) => EngineLocation::locate(&self.place),
        }
    }

    fn read(&self, request: Request) -> Result<Response, Problem> {
        let engine = self.locate_engine();
        let look = Query { place: &self.place, engine: &engine };
        Ok(match request {
            Request::List(asked) => Response::List(look.list_tasks(&asked)?),
            Request::Show(asked) => Response::Show(look.task_detail(conversions::model_task(asked.task))?),
            Request::Status(_) => Response::Status(look.status_report()?),
            Request::Why(asked) => Response::Why(look.explain_task(conversions::model_task(asked.task))?),
            Request::Board(asked) => Response::Board(board::build_board(&look, &asked)?),
            Request::Inbox(asked) => Response::Inbox(inbox::build_inbox(&look, &asked)?),
            Request::Graph(asked) => Response::Graph(graph::build_graph(&look, &asked)?),
            Request::Stats(asked) => Response::Stats(stats::build_stats(&look, asked)?),
            Request::IssueEvents(asked) => {
                Response::IssueEvents(issue_history::list_issue_events(&self.place, &asked)?)
            }
            Request::IssueRollup(asked) => {
                Response::IssueRollup(issue_history::issue_rollup(&self.place, asked)?)
            }
            Request::Improvements(_) => {
                Response::Improvements(issue_history::list_improvements(&self.place, &[])?)
            }
            Request::Fleet(asked) => Response::Fleet(fleet::fleet_report(&look, asked)?),
            Request::Settings(_) => Response::Settings(settings::settings_report(&self.place)?),
            Request::Outputs(asked) => {
                Response::Outputs(output::list_outputs(&look, conversions::model_task(asked.task))?)
            }
            Request::Output(asked) => Response::Output(output::output_page(&look, &asked)?),
            Request::OutputBytes(asked) => Response::OutputBytes(output::output_bytes(&look, &asked)?),
            Request::Log(asked) => Response::Log(look.journal_page(&asked)?),
            Request::Diff(asked) => {
                Response::Diff(look.task_diff(conversions::model_task(asked.task), asked.from.as_deref())?)
            }
            Request::Certificate(asked) => {
                Response::Certificate(look.task_certificate(conversions::model_task(asked.task))?)
            }
            Request::Report(asked) => Response::Report(reports::report_on(&look, asked)?),
            Request::Runs(_) => Response::Runs(reports::list_runs(&look)?),
            Request::FlowList(_) => Response::FlowList(flows::list_flows(&self.place)?),
            Request::FlowShow(asked) => Response::FlowShow(flows::show_flow(&self.place, &asked)?),
            Request::FlowCheck(asked) => Response::FlowCheck(flows::check_flow(&asked)),
            Request::Export(asked) => Response::Export(look.export_tasks(&asked)?),
            Request::Agents(asked) => Response::Agents(agents::find_agents(&self.place, &asked, false)?),
            Request::Probe(asked) => Response::Probe(agents::find_agents(&self.place, &asked, true)?),
            Request::Discoveries(asked) => {
                Response::Discoveries(discoveries::list_discoveries(&self.place, &asked)?)
            }
            Request::Target(asked) => {
                Response::Target(targets::task_target(&look, conversions::model_task(asked.task))?)
            }
            Request::Papers(asked) => {
                Response::Papers(targets::list_papers(&look, conversions::model_task(asked.task))?)
            }
            Request::Paper(asked) => Response::Paper(targets::task_paper(&look, &asked)?),
            Request::Doctor(_) => Response::Doctor(doctor::examine_project(&look)?),
            Request::Reclaimable(_) => Response::Reclaimable(reclaimable::preview_reclaim(&look)?),
            Request::SprintPreview(asked) => Response::SprintPreview(sprints::preview_sprint(&look, asked)?),
            Request::Sprint(asked) => {
                Response::Sprint(sprints::sprint_report(&look, asked.sprint.map(conversions::model_sprint))?)
            }
            Request::Sprints(_) => Response::Sprints(sprints::list_sprints(&look)?),
            Request::Pilot(_) => Response::Pilot(autopilot::pilot_state(&look)?),
            Request::Queue(_) => Response::Queue(queue::queue_report(&look)?),
            Request::Reviews(_) => Response::Reviews(reviews::list_reviews(&look)?),
            Request::Checkpoints(_) => Response::Checkpoints(checkpoints::list_checkpoints(&look)?),
            Request::Checkpoint(asked) => {
                Response::Checkpoint(checkpoints::checkpoint_detail(&look, &asked.name)?)
            }
            Request::Loops(asked) => Response::Loops(loops::list_loops(&look, &asked)?),
            Request::IssuesPreview(asked) => {
                Response::IssuesPreview(follow_issues::preview_follow(&self.place, &asked)?)
            }
            Request::IssueBatches(_) => Response::IssueBatches(follow_issues::list_batches(&self.place)?),
            Request::IssueSummaries(asked) => {
                let issues = follow_issues::summarize_issues(&self.place, &asked.tasks)?;
                Response::IssueSummaries(api::IssueSummaries { issues })
            }
            Request::IssueList(asked) => Response::IssueList(issues::list_issues(&self.place, &asked)?),
            Request::IssueShow(asked) => {
                Response::IssueShow(Box::new(issues::show_issue(&self.place, asked.issue.0)?))
            }
            Request::IssuePull(asked) => {
                Response::IssuePull(Box::new(issues::show_pull_request(&self.place, asked.issue.0)?))
            }
            Request::Reconcile(asked) => {
                Response::Reconcile(Box::new(reconcile::reconcile_issue(&self.place, &asked)?))
            }
            other => unreachable!("`{}` is not a read", other.name()),
        })
    }

    fn change_issue(
        &self,
        issue: api::IssueNumber,
        change: &IssueChange,
    ) -> Result<api::IssueChanged, Problem> {
        issues::change_issue(&self.place, issue.0, change)
    }

    /// What needs the lock, and not the engine's loop.
    fn handle_maintenance(&self, request: &Request) -> Result<Response, Problem> {
        let keep = |place: &ProjectLocation| match request {
            Request::Rebuild(_) => Ok(Response::Rebuild(doctor::rebuild_tables(place)?)),
            Request::Reclaim(_) => Ok(Response::Reclaim(reclaim::reclaim_disk(place)?)),
            other => unreachable!("`{}` keeps no house", other.name()),
        };
        match &self.hand {
            EngineAccess::Running(_) => Err(run_active_problem()),
            EngineAccess::Kept(keeper) => {
                keeper.with_idle_project(keep).unwrap_or_else(|| Err(run_active_problem()))
            }
            // Whoever keeps the project holds its lock.
            EngineAccess::Door => match EngineClient::connect(&self.place.folder.socket_path()) {
                Ok(client) => client.call(request.clone()),
                Err(_) => keep(&self.place),
            },
        }
    }

    fn write(&self, request: Request) -> Result<Response, Problem> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = match (self.hand.current_run(), &self.hand) {
                (Some(running), _) => {
                    let ask = |ask: EngineRequest| {
                        running.handle.send_request(ask).map_err(|error| problems::from_ask_error(&error))
                    };
                    changes::write(&self.place, &self.locate_engine(), &ask, request.clone())
                }
                (None, EngineAccess::Kept(keeper)) => keeper.handle_without_run(&request),
                (None, EngineAccess::Running(_) | EngineAccess::Door) => {
                    return send_or_open_engine(&self.place, request);
                }
            };
            match (&self.hand, answer) {
                // A run of ours that is just ending is waited for: then the project is at rest, and the answer another one.
                (EngineAccess::Kept(_), Err(problem))
                    if problems::is_ending(&problem) && Instant::now() < deadline =>
                {
                    if let EngineAccess::Kept(keeper) = &self.hand {
                        keeper.wait_until_idle(PAUSE);
                    }
                }
                (_, answer) => return answer,
            }
        }
    }

    /// Begins a loop, and a run for it where none is under way.
    fn start_loop(&self, request: Request) -> Result<Response, Problem> {
        let answer = self.write(request)?;
        let (EngineAccess::Kept(keeper), Response::LoopStart(line)) = (&self.hand, &answer) else {
            return Ok(answer);
        };
        if let Err(problem) = keeper.drive_loops() {
            // Whoever is told that it cannot run must not find it running later.
            let _ = self.write(Request::LoopStop(LoopOf { session: line.session.clone() }));
            return Err(problem);
        }
        Ok(answer)
    }

    /// Cancels tasks, and gives their workspaces back where the project is at rest.
    fn cancel_and_reclaim(&self, asked: landfall_api::Cancel) -> Result<Response, Problem> {
        // Whoever keeps the project does both.
        if let (EngineAccess::Door, Ok(client)) =
            (&self.hand, EngineClient::connect(&self.place.folder.socket_path()))
        {
            return client.call(Request::Cancel(asked));
        }
        let tasks: Vec<_> = asked.tasks.iter().copied().map(conversions::model_task).collect();
        let Response::Cancel(mut changed) = self.write(Request::Cancel(asked))? else {
            return Err(Problem::new(ProblemCode::Internal, "a cancel was answered by something else"));
        };
        let clean = |place: &ProjectLocation| reclaim::reclaim_workspaces(place, &tasks);
        let cleaned = match &self.hand {
            EngineAccess::Running(_) => None,
            EngineAccess::Kept(keeper) => keeper.with_idle_project(clean),
            EngineAccess::Door => Some(clean(&self.place)),
        };
        let cleaned = cleaned.transpose()?;
        for line in &mut changed.tasks {
            let of = cleaned.as_ref().map(|cleaned| cleaned.get(&conversions::model_task(line.id)));
            line.text.push_str(&match of {
                None => " Its workspace is there until `landfall project reclaim`, once the run is over.".to_owned(),
                Some(None) => " It had no workspace that could be given back.".to_owned(),
                Some(Some(0)) => " Its workspace is given back; it had no commit that is not on the base.".to_owned(),
                Some(Some(many)) => {
                    let commits = pluralize(*many, "commit");
                    format!(" Its workspace is given back; {commits} that did not land: kept under refs/landfall/kept.")
                }
            });
        }
        Ok(Response::Cancel(changed))
    }

    /// What is about the run as a whole.
    fn handle_run_request(&self, request: &Request) -> Result<Response, Problem> {
        match (request, &self.hand) {
            (Request::RunStart(asked), EngineAccess::Kept(keeper)) => {
                Ok(Response::RunStart(keeper.start(asked)?))
            }
            (Request::RunStart(_), EngineAccess::Running(_)) => {
                Err(Problem::new(ProblemCode::EngineBusy, "a run is under way already").with_hint(
                    "`landfall status` shows it; more runs of one project at once there cannot be",
                ))
            }
            (Request::RunNow(asked), EngineAccess::Kept(keeper)) => {
                Ok(Response::RunNow(keeper.current_run_view(*asked)?))
            }
            (Request::RunNow(asked), EngineAccess::Running(running)) => {
                Ok(Response::RunNow(Box::new(running.current_view(*asked))))
            }
            (Request::Propose(asked), EngineAccess::Kept(keeper)) => {
                let desk = Arc::new(Self::through_socket(self.place.clone()));
                Ok(Response::Propose(keeper.proposals().start(&self.place, desk, asked.clone())?))
            }
            (Request::Proposals(_), EngineAccess::Kept(keeper)) => {
                Ok(Response::Proposals(keeper.proposals().list_newest_first()))
            }
            (Request::Propose(_) | Request::Proposals(_), EngineAccess::Running(_)) => {
                Err(no_server_problem("only a server keeps proposals")
                    .with_hint("`landfall propose` asks for one without"))
            }
            (_, EngineAccess::Door) => match EngineClient::connect(&self.place.folder.socket_path()) {
                Ok(client) => client.call(request.clone()),
                Err(ConnectError::Refused(problem)) => Err(problem),
                Err(_) => Err(no_server_problem("no server is running for this project")),
            },
            (other, _) => unreachable!("`{}` is not about a run", other.name()),
        }
    }
}

fn no_server_problem(what: &str) -> Problem {
    Problem::new(ProblemCode::NotNow, what)
        .with_hint("`landfall serve` starts one; `landfall run` drives without")
}

impl Service for ProjectService {
    /// An agent, or a check, may not ask the engine for anything: it says what it has to say by its own socket.
    fn admit_peer(&self, peer: &PeerProcess) -> Result<(), Problem> {
        match self.hand {
            // Agents work while nothing runs, too: for proposals and probes, and those that outlived an engine.
            EngineAccess::Running(_) | EngineAccess::Kept(_) => check_no_agent(peer),
            EngineAccess::Door => Ok(()),
        }
    }

    fn handle_webhook(&self, hook: &TrackerWebhook) -> Result<(), Problem> {
        issues::handle_webhook(&self.place, &self.heard, hook)
    }

    fn known_secrets(&self) -> Vec<String> {
        secret_masking::collect_secrets(&self.place)
    }

    fn state_version(&self) -> Option<StateVersion> {
        match &self.hand {
            EngineAccess::Kept(keeper) => Some(keeper.state_version()),
            // Others write as well, and do not tell.
            EngineAccess::Running(_) | EngineAccess::Door => None,
        }
    }

    /// What the engine that runs says of itself may be some moments ahead of it: what agents are at, who waits for whose turn,
    /// and how far the landing queue is.
    fn run_in_one_state(&self, work: &mut dyn FnMut()) -> Option<u64> {
        let mut worked = false;
        let head =
            reader_pool::read_at_one_head(&self.place.caches, &self.place.folder.journal_path(), || {
                worked = true;
                work();
            });
        if !worked {
            work(); // there is no journal, or it cannot be read: whoever asks is told
        }
        head.ok().map(|head| head.seq.0)
    }

    fn wait_for_change(&self, mark: StateVersion, at_most: Duration) {
        match &self.hand {
            EngineAccess::Kept(keeper) => keeper.wait_for_change(mark, at_most),
            EngineAccess::Running(_) | EngineAccess::Door => {
                FolderWatch::for_writes(self.place.folder.root()).wait(at_most);
            }
        }
    }

    fn call(&self, request: Request) -> Result<Response, Problem> {
        // Whoever is answered after a change must not be shown what was made before it; a change that failed half-way is one.
        let _noted = match &self.hand {
            EngineAccess::Kept(keeper) if request.route().access != Access::Read => {
                Some(WriteCountGuard(keeper))
            }
            EngineAccess::Kept(_) | EngineAccess::Running(_) | EngineAccess::Door => None,
        };
        match &request {
            Request::Status(_)
            | Request::List(_)
            | Request::Show(_)
            | Request::Why(_)
            | Request::Board(_)
            | Request::Inbox(_)
            | Request::Fleet(_) => match self.hand {
                // The engine that runs knows best how it is; if it is too busy to say, the tables do.
                EngineAccess::Door => match EngineClient::connect(&self.place.folder.socket_path()) {
                    Ok(client) => client.call(request.clone()).or_else(|_| self.read(request)),
                    Err(_) => self.read(request),
                },
                EngineAccess::Running(_) | EngineAccess::Kept(_) => self.read(request),
            },
            Request::Log(_)
            | Request::Graph(_)
            | Request::Stats(_)
            | Request::IssueEvents(_)
            | Request::IssueRollup(_)
            | Request::Improvements(_)
            | Request::Settings(_)
            | Request::Outputs(_)
            | Request::Output(_)
            | Request::OutputBytes(_)
            | Request::Diff(_)
            | Request::Target(_)
            | Request::Papers(_)
            | Request::Paper(_)
            | Request::Certificate(_)
            | Request::Report(_)
            | Request::Runs(_)
            | Request::FlowList(_)
            | Request::FlowShow(_)
            | Request::FlowCheck(_)
            | Request::Export(_)
            | Request::Discoveries(_)
            | Request::Agents(_)
            | Request::Probe(_)
            | Request::SprintPreview(_)
            | Request::Sprint(_)
            | Request::Sprints(_)
            | Request::Pilot(_)
            | Request::Queue(_)
            | Request::Reviews(_)
            | Request::Checkpoints(_)
            | Request::Checkpoint(_)
            | Request::Loops(_)
            | Request::Doctor(_)
            | Request::IssuesPreview(_)
            | Request::IssueBatches(_)
            | Request::IssueSummaries(_)
            | Request::IssueList(_)
            | Request::IssueShow(_)
            | Request::IssuePull(_)
            | Request::Reconcile(_)
            | Request::Reclaimable(_) => self.read(request),
            // The tracker orders those who write there; the engine is not asked.
            Request::IssueNew(asked) => Ok(Response::IssueNew(issues::create_issue(&self.place, asked)?)),
            Request::IssueEdit(asked) => {
                let done = self.change_issue(asked.issue, &IssueChange::Edit(asked.clone()))?;
                Ok(Response::IssueEdit(done))
            }
            Request::IssueSay(asked) => {
                let done = self.change_issue(asked.issue, &IssueChange::Comment(asked.text.clone()))?;
                Ok(Response::IssueSay(done))
            }
            Request::IssueTick(asked) => {
                let tick = IssueChange::Tick { named: asked.named.clone(), open: asked.open };
                Ok(Response::IssueTick(self.change_issue(asked.issue, &tick)?))
            }
            Request::IssueClose(asked) => {
                let close = if asked.not_planned { IssueChange::Drop } else { IssueChange::Close };
                Ok(Response::IssueClose(self.change_issue(asked.issue, &close)?))
            }
            Request::IssueReopen(asked) => {
                Ok(Response::IssueReopen(self.change_issue(asked.issue, &IssueChange::Reopen)?))
            }
            Request::IssueVerify(asked) => {
                let is_ending = || match &self.hand {
                    EngineAccess::Kept(keeper) => keeper.is_ending(),
                    EngineAccess::Running(_) | EngineAccess::Door => false,
                };
                let seen = verify::verify_issue(&self.place, asked, &is_ending, &mut |_| ())?;
                Ok(Response::IssueVerify(Box::new(seen)))
            }
            Request::Rebuild(_) | Request::Reclaim(_) => self.handle_maintenance(&request),
            Request::Cancel(asked) if asked.cleanup => self.cancel_and_reclaim(asked.clone()),
            Request::Cancel(_) => self.write(request),
            Request::Import(asked) => {
                Ok(Response::Import(import::import_tasks(&self.place, asked, &|new: NewTasks| {
                    self.add(new)
                })?))
            }
            // The tracker is changed by this, and nothing here.
            Request::ImprovementsFile(asked) => {
                Ok(Response::ImprovementsFile(issue_history::file_improvements(&self.place, asked)?))
            }
            Request::RunStart(_) | Request::RunNow(_) | Request::Propose(_) | Request::Proposals(_) => {
                self.handle_run_request(&request)
            }
            // The server itself answers these; where they arrive here, no server listens for browsers.
            Request::Sessions(_) | Request::SessionRevoke(_) | Request::Pair(_) | Request::AgentToken(_) => {
                match self.hand {
                    EngineAccess::Door => self.handle_run_request(&request),
                    EngineAccess::Running(_) | EngineAccess::Kept(_) => {
                        Err(no_server_problem("no server listens for browsers"))
                    }
                }
            }
            Request::Auto(_)
            | Request::Add(_)
            | Request::Edit(_)
            | Request::ProposalAccept(_)
            | Request::Stop(_)
            | Request::Retry(_)
            | Request::Message(_)
            | Request::Hold(_)
            | Request::Release(_)
            | Request::Accept(_)
            | Request::Block(_)
            | Request::Limits(_)
            | Request::Answer(_)
            | Request::TaskDo(_)
            | Request::TargetSay(_)
            | Request::TargetConfirm(_)
            | Request::Refine(_)
            | Request::RefineWithdraw(_)
            | Request::Annotate(_)
            | Request::Pause(_)
            | Request::Resume(_)
            | Request::Next(_)
            | Request::SprintPause(_)
            | Request::SprintResume(_)
            | Request::SprintCancel(_)
            | Request::QueuePause(_)
            | Request::QueueResume(_)
            | Request::QueueEject(_)
            | Request::Review(_)
            | Request::CheckpointCreate(_)
            | Request::CheckpointRestore(_)
            | Request::CheckpointDrop(_)
            | Request::DiscoveryDrop(_)
            | Request::Consulted(_)
            | Request::LoopStop(_)
            | Request::IssuesFollow(_)
            | Request::Rollback(_) => self.write(request),
            Request::LoopStart(_) => self.start_loop(request),
        }
    }
}

/// Counts a request that may have changed something, when it is done: however that went.
struct WriteCountGuard<'a>(&'a ServedProject);

impl Drop for WriteCountGuard<'_> {
    fn drop(&mut self) {
        self.0.note_write();
    }
}

fn run_active_problem() -> Problem {
    Problem::new(ProblemCode::NotNow, "a run is under way, and this needs the project at rest")
        .with_hint("wait until the run is over, or stop it with `landfall stop`")
}

/// Asks the engine that runs, else opens one for the moment. Whoever is just coming or going is waited for.
fn send_or_open_engine(place: &ProjectLocation, request: Request) -> Result<Response, Problem> {
    retry_while_held(|| match EngineClient::connect(&place.folder.socket_path()) {
        Ok(client) => client.call(request.clone()).map_err(|problem| match problems::is_ending(&problem) {
            true => HolderRefusal::Held(problem),
            false => HolderRefusal::Failed(problem),
        }),
        Err(ConnectError::Version { theirs, engine, pid }) => {
            let message = format!(
                "the engine that runs (version {engine}, process {pid}) speaks version {theirs} of the wire, not {}",
                landfall_api::VERSION
            );
            let problem = Problem::new(ProblemCode::EngineBusy, message)
                .with_hint("use the `landfall` that started it, or wait until its run is over");
            Err(HolderRefusal::Failed(problem))
        }
        Err(ConnectError::Refused(problem)) => Err(HolderRefusal::Failed(problem)),
        Err(ConnectError::Nobody(_) | ConnectError::Broken { .. }) => handle_in_process(place, &request),
    })
}

fn handle_in_process(place: &ProjectLocation, request: &Request) -> Result<Response, HolderRefusal<Problem>> {
    if place.lock.is_some() {
        // This process keeps the project already: a second engine would meet no lock.
        return Err(HolderRefusal::Held(Problem::new(
            ProblemCode::EngineBusy,
            "the server is too busy to answer itself",
        )));
    }
    if let Some(problem) = changes::refuse_without_engine(place, request).map_err(HolderRefusal::Failed)? {
        return Err(HolderRefusal::Failed(problem));
    }
    let engine = open(place, &format!("landfall {}", request.name())).map_err(|error| match &error {
        OpenError::Lock(StateLockError::Held { .. } | StateLockError::HeldByUnknown { .. }) => {
            HolderRefusal::Held(problems::open(&error))
        }
        _ => HolderRefusal::Failed(problems::open(&error)),
    })?;
    write_without_run(place, engine, &EngineLocation::Nowhere, request).1.map_err(HolderRefusal::Failed)
}

/// Carries a write out by an engine that does not drive, and gives the engine back. One that could not write what it had
/// decided knows facts that are in no journal: it is given up.
pub(crate) fn write_without_run(
    place: &ProjectLocation,
    engine: Engine,
    at: &EngineLocation,
    request: &Request,
) -> (Option<Engine>, Result<Response, Problem>) {
    let engine = std::cell::RefCell::new(engine);
    let broken = std::cell::Cell::new(false);
    let ask = |ask: EngineRequest| -> Result<EngineReply, Problem> {
        match engine.borrow_mut().handle_single_request(ask) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => Err(problems::from_ask_error(&error)),
            Err(error) => {
                broken.set(true);
                Err(problems::from_store_error(&error))
            }
        }
    };
    let answer = changes::write(place, at, &ask, request.clone());
    ((!broken.get()).then(|| engine.into_inner()), answer)
}
