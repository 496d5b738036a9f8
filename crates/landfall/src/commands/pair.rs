//! `landfall project pair`: a link that lets one browser in.

use landfall_api::{PairAsked, Pairing, TypedService};

use crate::context::CliContext;
use crate::exit::{CliExit, CommandFailure};

/// Create a one-time sign-in link, with a QR code for a phone
///
/// The server must be running, and the phone must be able to reach it: `landfall serve --bind ADDRESS`.
#[derive(clap::Args)]
pub struct Args {
    /// Label for the browser that uses the link
    label: Option<String>,
}

pub fn run(args: Args, context: &CliContext) -> Result<CliExit, CommandFailure> {
    let pairing = context.open_service()?.pair(PairAsked { label: args.label.unwrap_or_default() })?;
    context.print_answer(&pairing, render_pairing)?;
    Ok(CliExit::Ok)
}

fn render_pairing(pairing: &Pairing) -> String {
    let mut text = String::new();
    for link in &pairing.links {
        text += &format!("{link}\n");
    }
    text += &format!("works once, until {}\n\n", landfall_text::format_local(pairing.until_ms));
    text + &draw_qr_code(&pairing.squares)
}

/// Two rows of squares in a line of half blocks, light on dark, with the margin that readers want.
fn draw_qr_code(squares: &[String]) -> String {
    const MARGIN: usize = 2;
    let dark = |x: usize, y: usize| -> bool {
        let (Some(x), Some(y)) = (x.checked_sub(MARGIN), y.checked_sub(MARGIN)) else { return false };
        squares.get(y).and_then(|row| row.as_bytes().get(x)).is_some_and(|it| *it == b'#')
    };
    let width = squares.len() + 2 * MARGIN;
    let mut text = String::new();
    for y in (0..width).step_by(2) {
        for x in 0..width {
            text.push(match (dark(x, y), y + 1 < width && dark(x, y + 1)) {
                (true, true) => ' ',
                (true, false) => '▄',
                (false, true) => '▀',
                (false, false) => '█',
            });
        }
        text.push('\n');
    }
    text
}
