//! `landfall serve`: keeps the project, with its web pages and its API.

use std::net::SocketAddr;
use std::time::Duration;

use landfall_api::RunAsked;
use landfall_app::ServeOptions;
use landfall_text::control_chars::escape_line;
use serde::Serialize;

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};
use crate::live::Interrupts;
use crate::say::{print_data, print_json, print_message};

/// Serve the web pages and the API until interrupted
///
/// Start and control runs from the pages, from `landfall run` or from programs. Clients need the token of the project
/// (`landfall project token`) or a one-time link (`landfall project pair`). Press Ctrl-C once to finish the current iterations and end, twice to
/// stop at once. Nothing is lost either way.
#[derive(clap::Args)]
pub struct Args {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    listen: String,

    /// Additional address to listen on
    ///
    /// Unless it is a loopback address, other machines can reach it, and the traffic is not encrypted.
    #[arg(long, value_name = "ADDRESS")]
    bind: Vec<String>,

    /// Host name and port under which browsers may connect: `build-box:7878`
    #[arg(long, value_name = "NAME:PORT")]
    host: Vec<String>,

    /// Public origin behind your own TLS proxy: `https://build.example`; the proxy must pass `Host` on
    #[arg(long, value_name = "ORIGIN")]
    origin: Vec<String>,

    /// Start a run at once
    #[arg(long)]
    run: bool,
}

/// Where it is served, for programs.
#[derive(Serialize)]
struct ServeReport {
    addresses: Vec<String>,
    links: Vec<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let interrupts = Interrupts::start_listening()?;
    let asked = ServeOptions {
        listen: args.listen,
        bind: args.bind,
        hosts: args.host,
        origins: args.origin,
        run: args.run.then(RunAsked::default),
    };
    let mut serve = landfall_app::serve_project(&context.at, asked)?;
    let pairing = serve.create_pairing()?;
    let addresses: Vec<String> = serve.addresses().iter().map(|at| format!("http://{at}")).collect();
    if context.json {
        print_json(&ServeReport { addresses, links: pairing.links })?;
    } else {
        let link = pairing.links.first().map(String::as_str).unwrap_or_default();
        print_data(&format!("Serving on {}\nOpen   {link}\n", addresses.join(", ")))?;
        print_message(
            "the link works once, for ten minutes; `landfall project pair` makes another, `landfall project token` prints the token",
        );
        let open = reachable_addresses(serve.addresses());
        if !open.is_empty() {
            print_message(&format!(
                "other machines can reach {}, and everything travels unencrypted there: only on a network you trust",
                open.join(", ")
            ));
        }
    }
    let mut told = 0;
    loop {
        interrupts.wait_for_more_than(told, LOOK);
        match (interrupts.count_seen(), serve.is_running()) {
            (0, _) => serve.maintain_loops().iter().for_each(|line| print_message(&escape_line(line))),
            (_, false) => break,
            (1, true) if told < 1 => {
                told = 1;
                print_message("finishing the iterations under way; once more stops now");
                serve.stop(false);
            }
            (1, true) => {}
            (_, true) if told < 2 => {
                told = 2;
                print_message("stopping the agents; their work is kept");
                serve.stop(true);
            }
            (_, true) => {}
        }
    }
    serve.shut_down(LAST);
    Ok(CliExit::Ok)
}

/// The addresses that other machines can reach.
fn reachable_addresses(addresses: &[SocketAddr]) -> Vec<String> {
    let open = addresses.iter().filter(|at| !at.ip().to_canonical().is_loopback());
    open.map(ToString::to_string).collect()
}

const LOOK: Duration = Duration::from_millis(100);
/// How long a run may take to end once nobody waits for it any more.
const LAST: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::reachable_addresses;

    #[test]
    fn only_addresses_beyond_this_machine_are_called_reachable() {
        let of = |list: &[&str]| {
            reachable_addresses(&list.iter().map(|at| at.parse().expect("an address")).collect::<Vec<_>>())
        };
        assert!(of(&["127.0.0.1:1", "127.0.0.2:1", "[::1]:1", "[::ffff:127.0.0.1]:1"]).is_empty());
        assert_eq!(
            of(&["127.0.0.1:1", "192.0.2.7:1", "0.0.0.0:1", "[::]:1", "[2001:db8::1]:1"]),
            ["192.0.2.7:1", "0.0.0.0:1", "[::]:1", "[2001:db8::1]:1"]
        );
    }
}
