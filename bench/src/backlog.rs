//! B10: commands, as the backlog grows.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use rusqlite::{Connection, OpenFlags};

use super::lab::{Lab, Project};
use super::table::{Amount, Row, Target};
use super::times::{p50, timed};
use super::trivial::Trivial;
use super::{load, scale};

const VERSION_MAX: f64 = 2.0;
const COMMAND_MAX: f64 = 3.0;
const API_PAGE: &str = "/api/v1/tasks?limit=100";
const API_PAGE_MAX_MS: f64 = 5.0;

/// What is asked of the product, and the same of the journal itself.
struct Question {
    words: &'static [&'static str],
    sql: &'static str,
}

const QUESTIONS: [Question; 4] = [
    Question {
        words: &["status"],
        sql: "SELECT status, count(*) FROM task GROUP BY status; \
              SELECT id, title, step FROM task WHERE status IN ('active', 'landing') ORDER BY id LIMIT 100",
    },
    Question {
        words: &["why", "T1"],
        sql: "SELECT id, title, status, wait, detail FROM task WHERE id = 1; \
              SELECT seq, at_ms, kind, body FROM event WHERE task = 1 ORDER BY seq",
    },
    Question {
        words: &["list"],
        sql: "SELECT id, status, wait, priority, size, title FROM task ORDER BY id LIMIT 100",
    },
    Question {
        words: &["list", "--status", "ready"],
        sql: "SELECT id, status, wait, priority, size, title FROM task WHERE status = 'ready' AND unmet = 0 \
              ORDER BY id LIMIT 100",
    },
];

/// `--version`, then every question at every size.
pub fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let rounds = lab.pick(40, 15);
    let mut rows = vec![version(lab, rounds * 2)?];
    let settings = format!("[agent.default]\nkind = \"command\"\nrun = \"{}\"\n", lab.agent_line("edit 1"));
    let project = lab.project(1, &settings)?;
    let mut have = 0;
    let sizes: &[u32] = lab.pick(&[100, 1_000, 10_000, 100_000], &[100, 10_000]);
    for size in sizes {
        project.add(size - have)?;
        have = *size;
        for question in &QUESTIONS {
            rows.push(ask(&project, question, *size, rounds)?);
        }
        rows.push(api_page(&project, *size, rounds * 5)?);
    }
    Ok(rows)
}

/// A page of the list by the API, beside a server that knows its answers.
fn api_page(project: &Project, size: u32, rounds: usize) -> Result<Row> {
    let (mut engine, server) = load::serve(project, &[])?;
    let measure = || -> Result<(Vec<f64>, Vec<f64>)> {
        let mut caller = server.call()?;
        let (_, page) = caller.get(API_PAGE)?;
        let trivial = Trivial::start(&[page.len()])?;
        let mut knowing = trivial.server.call()?;
        let (mut floor, mut product) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            floor.push(knowing.get("/0")?.0);
            product.push(caller.get(API_PAGE)?.0);
        }
        Ok((floor, product))
    };
    let measured = measure();
    scale::stop(&mut engine)?;
    let (floor, product) = measured?;
    Ok(Row {
        id: "B10",
        what: format!("`GET {API_PAGE}`, {size} tasks"),
        floor: Some(Amount { value: p50(floor), unit: "ms" }),
        product: Amount { value: p50(product), unit: "ms" },
        target: Target::Max(API_PAGE_MAX_MS),
        note: "floor: a server that answers with the same number of bytes and looks nothing up".to_owned(),
    })
}

fn version(lab: &Lab, rounds: usize) -> Result<Row> {
    let (mut floor, mut product) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        floor.push(quiet(Command::new(&lab.empty))?);
        let mut command = Command::new(&lab.landfall);
        command.arg("--version");
        product.push(quiet(command)?);
    }
    Ok(Row {
        id: "B10",
        what: "`landfall --version`".to_owned(),
        floor: Some(Amount { value: p50(floor), unit: "ms" }),
        product: Amount { value: p50(product), unit: "ms" },
        target: Target::RatioMax(VERSION_MAX),
        note: "floor: a Rust program with an empty `main`".to_owned(),
    })
}

fn ask(project: &Project, question: &Question, size: u32, rounds: usize) -> Result<Row> {
    let database = project.state.join("journal.db");
    let (mut floor, mut product) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        floor.push(quiet(sqlite(&database, question.sql)?)?);
        product.push(quiet(project.landfall(question.words))?);
    }
    Ok(Row {
        id: "B10",
        what: format!("`{}`, {size} tasks", question.words.join(" ")),
        floor: Some(Amount { value: p50(floor), unit: "ms" }),
        product: Amount { value: p50(product), unit: "ms" },
        target: Target::RatioMax(COMMAND_MAX),
        note: if has_sqlite() {
            String::new()
        } else {
            "floor: no sqlite3 here, so a small Rust reader".to_owned()
        },
    })
}

/// How long a command takes, in milliseconds.
fn quiet(mut command: Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (ms, status) = timed(|| command.status().with_context(|| format!("start {command:?}")))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(ms)
}

fn has_sqlite() -> bool {
    static FOUND: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut command = Command::new("sqlite3");
        command.arg("-version");
        quiet(command).is_ok()
    })
}

fn sqlite(database: &Path, sql: &str) -> Result<Command> {
    let mut command = if has_sqlite() {
        let mut command = Command::new("sqlite3");
        command.arg("-readonly");
        command
    } else {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("read");
        command
    };
    command.arg(database).arg(sql);
    Ok(command)
}

/// What `sqlite3 -readonly` does, for machines without it.
pub fn read(database: &str, question: &str) -> Result<()> {
    use std::io::Write as _;
    let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("open {database}"))?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for sql in question.split(';').filter(|sql| !sql.trim().is_empty()) {
        let mut statement = db.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                write!(out, "{:?}|", row.get_ref(column)?)?;
            }
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(())
}
