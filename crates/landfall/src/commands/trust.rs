//! `landfall trust`: lets the settings of a repository count that reach beyond the sandbox.

use std::io::Write as _;

use landfall_app::{TrustReport, TrustedBy};
use landfall_text::control_chars::escape_line;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::presence;
use crate::say::print_message;

/// Show settings that need your trust, and trust them
///
/// A repository and its landfall.toml may come from another person. Settings that run commands outside the sandbox, open it, or name
/// credentials or hosts apply only after you have trusted exactly these settings, and the scripts of the repository that hooks and
/// message commands run. After any change Landfall asks again. Your answer is stored in the state folder, never in the repository.
#[derive(clap::Args)]
pub struct Args {
    /// Trust the settings with this digest without asking; any other digest is refused
    #[arg(long, value_name = "DIGEST")]
    yes: Option<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    if let Some(digest) = &args.yes {
        let report = landfall_app::trust_settings(&context.at, digest, TrustedBy::Script)?;
        context.print_answer(&report, |_| "trusted\n".to_owned())?;
        return Ok(CliExit::Ok);
    }
    let report = landfall_app::trust_report(&context.at)?;
    context.print_answer(&report, render_trust_report)?;
    if report.trusted || context.json {
        return Ok(CliExit::Ok);
    }
    if let Some(why) = presence::absence_reason(false) {
        return Err(CommandFailure::new(
            CliExit::NeedsYou,
            format!("nobody is there to ask ({why}), so nothing was trusted"),
        )
        .with_hint(format!("read the settings above, then type `landfall trust --yes {}`", report.digest)));
    }
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(b"trust these settings? [y/N] ").and_then(|()| err.flush()); // an unseen question is answered with no
    drop(err);
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    if read.is_err() || !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Err(CommandFailure::new(CliExit::NeedsYou, "not confirmed, so nothing was trusted"));
    }
    // By the digest that was shown: a change in between is refused.
    landfall_app::trust_settings(&context.at, &report.digest, TrustedBy::Person)?;
    print_message("trusted; any change of these settings asks again");
    Ok(CliExit::Ok)
}

fn render_trust_report(report: &TrustReport) -> String {
    if report.settings.is_empty() {
        return "no setting of this project needs your trust\n".to_owned();
    }
    let state = match (report.trusted, report.changed) {
        (true, _) => "you have trusted these settings",
        (false, true) if !report.scripts.is_empty() => {
            "these settings, or the scripts that they run, have changed since you trusted them"
        }
        (false, true) => "these settings have changed since you trusted them",
        (false, false) => "these settings do not count until you trust them",
    };
    let mut text = format!("{}: {state}\n", escape_line(&report.root));
    for line in &report.settings {
        text += &format!("  {} = {}  ({})\n", escape_line(&line.key), escape_line(&line.value), line.why);
    }
    for script in &report.scripts {
        text += &format!("  runs the file {}; a change of it asks again\n", escape_line(script));
    }
    text + &format!("digest {}\n", report.digest)
}
