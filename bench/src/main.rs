//! Benchmarks: floor and product measured in the same run, printed as ratios (design 0002).
//!
//! A benchmark is a function that returns rows, and a line in [`ALL`].

mod backlog;
mod busy;
mod crew;
mod gap;
mod http;
mod inside;
mod lab;
mod load;
mod output;
mod queue;
mod scale;
mod table;
mod tasks;
mod times;
mod trivial;
mod viewers;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};

use lab::Lab;
use table::Row;

/// A benchmark: its number and what measures it.
type Benchmark = (&'static str, fn(&Lab) -> Result<Vec<Row>>);

const ALL: [Benchmark; 14] = [
    ("B1", gap::measure),
    ("B2", tasks::measure_small),
    ("B3", tasks::measure_large),
    ("B4", inside::plan),
    ("B5", inside::journal),
    ("B6", scale::recovery),
    ("B7", scale::memory),
    ("B8", output::measure),
    ("B9", load::measure),
    ("B10", backlog::measure),
    ("B11", inside::landing),
    ("B12", busy::measure),
    ("B13", queue::measure),
    ("B14", crew::measure),
];

/// What was asked for.
struct Asked {
    json: bool,
    quick: bool,
    only: Vec<String>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the benchmarks named, or all of them.
fn run(words: &[&str]) -> Result<()> {
    if let ["read", database, question] = words {
        return backlog::read(database, question); // the floor of B10 where there is no sqlite3
    }
    if let ["trivial", sizes @ ..] = words {
        return trivial::serve(sizes); // the floor of B9
    }
    let asked = Asked::parse(words)?;
    if cfg!(debug_assertions) {
        bail!("this build is not optimized; start the benchmarks with `cargo xtask bench`");
    }
    let lab = Lab::open(asked.quick)?;
    let (began, mut rows, mut failed) = (Instant::now(), Vec::new(), Vec::new());
    for (id, measure) in ALL {
        if !asked.only.is_empty() && !asked.only.iter().any(|it| it == id) {
            continue;
        }
        eprintln!("── {id}");
        let this = Instant::now();
        match measure(&lab) {
            Ok(measured) => {
                if asked.json {
                    measured.iter().for_each(|row| println!("{}", row.json()));
                }
                rows.extend(measured);
                eprintln!("── {id}: {:.0} s", this.elapsed().as_secs_f64());
            }
            Err(error) => {
                eprintln!("── {id}: {error:#}");
                failed.push(id);
            }
        }
    }
    if !asked.json {
        print!("{}", table::text(&rows));
    }
    eprintln!("── {:.0} s in all", began.elapsed().as_secs_f64());
    if !failed.is_empty() {
        bail!("could not be measured: {}", failed.join(", "));
    }
    Ok(())
}

impl Asked {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut asked = Self { json: false, quick: false, only: Vec::new() };
        for word in words {
            match *word {
                "--json" => asked.json = true,
                "--quick" => asked.quick = true,
                word => {
                    let known = ALL.iter().map(|(id, _)| *id);
                    match known.clone().find(|id| id.eq_ignore_ascii_case(word)) {
                        Some(id) => asked.only.push(id.to_owned()),
                        None => bail!(
                            "`{word}` is not a benchmark; known: {}, and the options --json and --quick",
                            known.collect::<Vec<_>>().join(", ")
                        ),
                    }
                }
            }
        }
        Ok(asked)
    }
}
