//! Tests of the core, all without IO: stories for every arm, the sentence of `why`, flows, gates, and a
//! simulated world that walks at random over the invariants.

mod flows_used;
mod sim;
mod stage;
mod staged_oracle;
mod story;
mod test_accounts;
mod test_agents;
mod test_budget;
mod test_checkpoint;
mod test_conflict;
mod test_course;
mod test_cut;
mod test_fair;
mod test_flow;
mod test_gaming;
mod test_gate;
mod test_intervene;
mod test_judge;
mod test_liveness;
mod test_matrix;
mod test_mended;
mod test_pilot;
mod test_proposal;
mod test_queue;
mod test_queue_walk;
mod test_review;
mod test_schedule;
mod test_sprint;
mod test_staged_numbers;
mod test_staged_status;
mod test_stories;
mod test_strides;
mod test_touch;
mod test_walk;
mod test_why;
