//! The questions, as SQL. Each is served by an index; the test below asks SQLite for its plan.

use landfall_model::TaskStatus;

use super::TaskFilter;

/// What a task's row is read from, in the order it is read.
macro_rules! task_columns {
    () => {
        "task.id, task.title, task.status, task.wait, task.phase, task.step, task.priority, task.size, task.tags, \
         task.parent, task.created, task.changed, task.started, task.due, task.iterations, task.iterations_max, \
         task.attempt, task.tokens, task.micro_usd, task.flow, task.agent, task.draft, task.unblocks, task.unmet, \
         task.landed, task.ended, task.detail, task.asks, task.seq, task.events, task.checksum"
    };
}

pub(super) const TASK_COLUMNS: &str = task_columns!();

/// Both ends at one moment.
pub(super) const HEAD: &str = "SELECT (SELECT value FROM meta WHERE key = 'head'), last.seq, last.hash \
     FROM (SELECT 1) LEFT JOIN (SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1) AS last";
pub(super) const HELD: &str =
    "SELECT count(*) FROM task INDEXED BY task_held WHERE status = 'ready' AND unmet > 0";
pub(super) const COUNTS: &str = "SELECT status, count(*) FROM task GROUP BY status";
pub(super) const EVENTS_OF: &str = "SELECT events FROM task WHERE id = ?1";
/// What each of a list needs, in order.
pub(super) const NEEDS: &str = "SELECT need.task, need.need FROM json_each(?1) AS listed \
     CROSS JOIN need ON need.task = listed.value";
pub(super) const DEPENDENTS: &str = "SELECT task FROM need WHERE need = ?1 ORDER BY task";
pub(super) const UNMET: &str = "SELECT need.need FROM need LEFT JOIN task ON task.id = need.need \
     WHERE need.task = ?1 AND coalesce(task.unblocks, 0) = 0 ORDER BY need.need";
pub(super) const RUNS: &str = "SELECT id, started, ended, why, slots FROM run ORDER BY id DESC LIMIT ?1";
pub(super) const ALL_RUNS: &str = "SELECT id, started, ended, why, slots FROM run ORDER BY id LIMIT ?1";
pub(super) const PASS: &str = "SELECT tree, config, environment, seq, task FROM pass \
     WHERE tree = ?1 AND config = ?2 AND environment = ?3";

pub(super) const OF_KIND: &str =
    "SELECT seq FROM event WHERE kind = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq";

pub(super) const SEQS_OF_TASK: &str = "SELECT seq FROM event WHERE task = ?1 ORDER BY seq";

pub(super) const LATEST_OF_KIND: &str = "SELECT seq FROM event WHERE kind = ?1 ORDER BY seq DESC LIMIT 1";

pub(super) const ALL_EVENTS: &str =
    "SELECT seq, at_ms, task, kind, body, hash FROM event WHERE seq >= ?1 ORDER BY seq";

/// Events, each with the hash before it.
macro_rules! events {
    ($rest:literal) => {
        concat!(
            "SELECT event.seq, event.at_ms, event.task, event.kind, event.body, event.hash, before.hash \
             FROM event LEFT JOIN event AS before ON before.seq = event.seq - 1 ",
            $rest
        )
    };
}

pub(super) const EVENTS_AFTER: &str = events!("WHERE event.seq > ?1 ORDER BY event.seq LIMIT ?2");
pub(super) const EVENTS_AFTER_OF: &str =
    events!("WHERE event.task = ?3 AND event.seq > ?1 ORDER BY event.seq LIMIT ?2");
pub(super) const TASK_EVENTS: &str = events!("WHERE event.task = ?1 ORDER BY event.seq");
/// Those of a list, in its order.
pub(super) const LISTED_EVENTS: &str = "SELECT event.seq, event.at_ms, event.task, event.kind, event.body, event.hash, before.hash \
     FROM json_each(?1) AS listed CROSS JOIN event ON event.seq = listed.value \
     LEFT JOIN event AS before ON before.seq = event.seq - 1";
pub(super) const TAIL: &str = events!("ORDER BY event.seq DESC LIMIT ?1");

pub(super) fn task_row_sql() -> String {
    format!("SELECT {TASK_COLUMNS} FROM task WHERE id = ?1")
}

pub(super) fn all_tasks_sql() -> String {
    format!("SELECT {TASK_COLUMNS} FROM task ORDER BY id")
}

pub(super) fn next() -> String {
    format!(
        "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_next WHERE status = 'ready' AND unmet = 0 ORDER BY priority, id LIMIT ?1"
    )
}

pub(super) fn waiting_tasks_sql() -> String {
    format!("SELECT {TASK_COLUMNS} FROM task WHERE status = 'waiting' ORDER BY id LIMIT ?1")
}

pub(super) fn status_sql() -> String {
    format!("SELECT {TASK_COLUMNS} FROM task WHERE status = ?1 ORDER BY id")
}

pub(super) fn held_tasks_sql() -> String {
    format!(
        "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_held WHERE status = 'ready' AND unmet > 0 ORDER BY id LIMIT ?1"
    )
}

pub(super) fn inbox_sql() -> String {
    format!("SELECT {TASK_COLUMNS} FROM task WHERE asks IS NOT NULL ORDER BY id")
}

pub(super) const TALLIES: &str = "SELECT slot, what, key, many FROM tally WHERE slot >= ?1 ORDER BY slot";
pub(super) const LANDED_SINCE: &str = "SELECT work.task, work.done, task.created, task.started, task.iterations, \
     work.rounds FROM work INDEXED BY work_done CROSS JOIN task ON task.id = work.task \
     WHERE work.done >= ?1 AND task.landed IS NOT NULL ORDER BY work.done";
pub(super) const COUNT_DONE: &str = "SELECT count(*) FROM work INDEXED BY work_done WHERE done >= ?1";
pub(super) const WORK: &str = "SELECT task, profile, done, rounds, said FROM work WHERE task = ?1";
pub(super) const WAITS: &str = "SELECT coalesce(wait, ''), count(*) FROM task INDEXED BY task_waits WHERE status = 'waiting' GROUP BY wait";
/// Whoever needs is open: only such needs hold anybody up.
pub(super) const OPEN_NEEDS: &str = "SELECT need.task, need.need, coalesce(there.unblocks, 0) \
     FROM need CROSS JOIN task AS who ON who.id = need.task LEFT JOIN task AS there ON there.id = need.need \
     WHERE who.status NOT IN ('done', 'failed', 'timeout', 'cancelled') ORDER BY need.task, need.need LIMIT ?1";
pub(super) const PARTS: &str = "SELECT id FROM task WHERE parent = ?1 ORDER BY id";
/// Sizes alone: a graph weighs every open task, and shows few.
pub(super) const SIZES: &str =
    "SELECT task.id, task.size FROM json_each(?1) AS listed CROSS JOIN task ON task.id = listed.value";
pub(super) const LAST_OF: &str =
    "SELECT seq, at_ms FROM event WHERE task = ?1 AND kind = ?2 ORDER BY seq DESC LIMIT 1";

pub(super) fn done_since_sql() -> String {
    format!(
        "SELECT {TASK_COLUMNS}, work.done FROM work INDEXED BY work_done CROSS JOIN task ON task.id = work.task \
         WHERE work.done >= ?1 ORDER BY work.done DESC LIMIT ?2"
    )
}

pub(super) fn some_of_status_sql() -> String {
    format!("SELECT {TASK_COLUMNS} FROM task WHERE status = ?1 ORDER BY id LIMIT ?2")
}

pub(super) fn waiting_for_sql() -> String {
    format!(
        "SELECT {TASK_COLUMNS} FROM task INDEXED BY task_waits WHERE status = 'waiting' AND wait = ?1 ORDER BY id LIMIT ?2"
    )
}

pub(super) fn listed_tasks_sql() -> String {
    format!("SELECT {TASK_COLUMNS} FROM json_each(?1) AS listed CROSS JOIN task ON task.id = listed.value")
}

/// How a status, as lists show it, is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusCondition {
    /// Any.
    Any,
    /// By its word.
    Word,
    /// Ready, and every need is met.
    Free,
    /// Ready, with unmet needs.
    Held,
}

pub(super) fn status_conditions(status: Option<TaskStatus>) -> &'static [StatusCondition] {
    match status {
        None => &[StatusCondition::Any],
        Some(TaskStatus::Ready) => &[StatusCondition::Free],
        Some(TaskStatus::Waiting) => &[StatusCondition::Word, StatusCondition::Held],
        Some(
            TaskStatus::Draft
            | TaskStatus::Active
            | TaskStatus::Blocked
            | TaskStatus::Review
            | TaskStatus::Landing
            | TaskStatus::Done
            | TaskStatus::Failed
            | TaskStatus::Timeout
            | TaskStatus::Cancelled,
        ) => &[StatusCondition::Word],
    }
}

/// A page of tasks. A tag leads if there is one: it is the narrowest.
pub(super) fn task_page_sql(filter: &TaskFilter, stored: StatusCondition) -> String {
    let (from, id) = match (&filter.tag, stored) {
        (Some(_), _) => ("tag CROSS JOIN task ON task.id = tag.task", "tag.task"),
        (None, StatusCondition::Held) if filter.parent.is_none() => ("task INDEXED BY task_held", "task.id"),
        (
            None,
            StatusCondition::Any | StatusCondition::Word | StatusCondition::Free | StatusCondition::Held,
        ) => ("task", "task.id"),
    };
    let mut sql = format!("SELECT {TASK_COLUMNS} FROM {from} WHERE {id} > :after");
    if filter.tag.is_some() {
        sql.push_str(" AND tag.tag = :tag");
    }
    sql.push_str(match stored {
        StatusCondition::Any => "",
        StatusCondition::Word => " AND task.status = :status",
        StatusCondition::Free => " AND task.status = 'ready' AND task.unmet = 0",
        StatusCondition::Held => " AND task.status = 'ready' AND task.unmet > 0",
    });
    if filter.parent.is_some() {
        sql.push_str(" AND task.parent = :parent");
    }
    if filter.text.is_some() {
        sql.push_str(" AND task.title LIKE :text ESCAPE '\\'");
    }
    sql.push_str(&format!(" ORDER BY {id} LIMIT :limit"));
    sql
}

#[cfg(test)]
mod tests {
    use landfall_model::TaskId;
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn no_question_reads_a_whole_table_or_sorts_it() {
        let mut conn = Connection::open_in_memory().expect("there is memory");
        crate::schema::migrate_schema(&mut conn, "memory".as_ref()).expect("it is new");
        let filter = |status, tag: bool, parent: bool| TaskFilter {
            status,
            tag: tag.then(|| "next".to_owned()),
            text: None,
            parent: parent.then_some(TaskId(1)),
        };
        let (word, free, waits) =
            (Some(TaskStatus::Done), Some(TaskStatus::Ready), Some(TaskStatus::Waiting));
        let served = [
            (HELD.to_owned(), "task_held"),
            (COUNTS.to_owned(), "task_status"),
            (NEEDS.to_owned(), "SEARCH need USING PRIMARY KEY (task=?)"),
            (DEPENDENTS.to_owned(), "need_need"),
            (UNMET.to_owned(), "PRIMARY KEY (task=?)"),
            (RUNS.to_owned(), "SCAN run"),
            (PASS.to_owned(), "PRIMARY KEY (tree=? AND config=? AND environment=?)"),
            (ALL_EVENTS.to_owned(), "INTEGER PRIMARY KEY (rowid>?)"),
            (EVENTS_AFTER.to_owned(), "INTEGER PRIMARY KEY (rowid>?)"),
            (EVENTS_AFTER_OF.to_owned(), "event_task (task=? AND rowid>?)"),
            (TASK_EVENTS.to_owned(), "event_task (task=?)"),
            (TAIL.to_owned(), "SCAN event"),
            (LISTED_EVENTS.to_owned(), "SEARCH event USING INTEGER PRIMARY KEY (rowid=?)"),
            (OF_KIND.to_owned(), "COVERING INDEX event_kind (kind=? AND rowid>? AND rowid<?)"),
            (SEQS_OF_TASK.to_owned(), "event_task (task=?)"),
            (status_sql(), "task_status (status=?)"),
            (task_row_sql(), "INTEGER PRIMARY KEY (rowid=?)"),
            (next(), "task_next"),
            (inbox_sql(), "task_asks"),
            (waiting_tasks_sql(), "task_status (status=?)"),
            (held_tasks_sql(), "task_held"),
            (TALLIES.to_owned(), "PRIMARY KEY (slot>?)"),
            (LANDED_SINCE.to_owned(), "work_done (done>?)"),
            (COUNT_DONE.to_owned(), "work_done (done>?)"),
            (WORK.to_owned(), "INTEGER PRIMARY KEY (rowid=?)"),
            (WAITS.to_owned(), "task_waits"),
            (OPEN_NEEDS.to_owned(), "SCAN need"),
            (PARTS.to_owned(), "task_parent (parent=?)"),
            (LAST_OF.to_owned(), "event_task (task=?)"),
            (done_since_sql(), "work_done (done>?)"),
            (some_of_status_sql(), "task_status (status=?)"),
            (SIZES.to_owned(), "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)"),
            (waiting_for_sql(), "task_waits (wait=?)"),
            (listed_tasks_sql(), "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)"),
            (
                task_page_sql(&filter(None, false, false), StatusCondition::Any),
                "INTEGER PRIMARY KEY (rowid>?)",
            ),
            (
                task_page_sql(&filter(word, false, false), StatusCondition::Word),
                "task_status (status=? AND rowid>?)",
            ),
            (task_page_sql(&filter(free, false, false), StatusCondition::Free), "(status=? AND rowid>?)"),
            (task_page_sql(&filter(waits, false, false), StatusCondition::Held), "task_held"),
            (
                task_page_sql(&filter(None, true, false), StatusCondition::Any),
                "PRIMARY KEY (tag=? AND task>?)",
            ),
            (
                task_page_sql(&filter(word, true, false), StatusCondition::Word),
                "PRIMARY KEY (tag=? AND task>?)",
            ),
            (
                task_page_sql(&filter(None, false, true), StatusCondition::Any),
                "task_parent (parent=? AND rowid>?)",
            ),
        ];
        for (sql, by) in served {
            let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("it is SQL");
            let plan = statement.raw_query().mapped(|row| row.get::<_, String>(3));
            let plan = plan.collect::<Result<Vec<_>, _>>().expect("it explains").join("; ");
            assert!(plan.contains(by), "{sql}\n→ {plan}\nnot by {by}");
            assert!(!plan.contains("TEMP B-TREE"), "{sql}\n→ {plan}");
        }
    }
}
