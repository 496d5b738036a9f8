//! Checks that need a browser. One that is installed is used without a window; without one the criterion stays open.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use landfall_model::acceptance::{RepoPath, WebAddress};

use super::files::shorten_to_line;
use super::html;
use super::rubric::{self, Judge, JudgeQuestion};
use super::shell::ShellWorkspace;
use super::tree::AcceptanceTree;
use super::{CheckEvidence, fail_with_evidence, pass_or_fail, pass_with_evidence, uncertain_because};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const SETTLE_MS: u64 = 3_000; // of the page's own clock, for its scripts
const LIMIT_MS: u64 = 60_000;
/// Two colours closer than this are the same to the eye, and to fonts drawn twice.
const CHANNEL_MAX: u8 = 16;
/// So many of a thousand pixels may differ.
const PIXELS_PER_MILLE_MAX: u64 = 1;
const PIXELS_MAX: u64 = 40_000_000;

/// A window of this size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Viewport {
    pub width: u32,
    pub height: u32,
}

const DESK: Viewport = Viewport { width: 1280, height: 800 };

fn find_browser(shop: &ShellWorkspace<'_>) -> Result<PathBuf, CheckEvidence> {
    shop.on_path(&BROWSERS).ok_or_else(|| {
        uncertain_because("no browser is installed (looked for chromium and google-chrome)".to_owned())
    })
}

/// Words for a browser that shows nothing, keeps nothing, and leaves its own sandbox to ours.
fn browser_arguments(program: &Path, tmp: &Path, viewport: Viewport) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec![program.into()];
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-crash-reporter",
        "--no-first-run",
        "--hide-scrollbars",
        "--force-device-scale-factor=1",
    ];
    argv.extend(flags.map(OsString::from));
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(tmp.join("browser"));
    argv.push(profile);
    argv.push(format!("--window-size={},{}", viewport.width, viewport.height).into());
    argv.push(format!("--virtual-time-budget={SETTLE_MS}").into());
    argv
}

fn run_browser(shop: &ShellWorkspace<'_>, argv: Vec<OsString>) -> Result<Vec<u8>, CheckEvidence> {
    match shop.run(argv, LIMIT_MS) {
        Err(why) => Err(uncertain_because(format!("the browser could not be run: {why}"))),
        Ok(said) if said.ran.is_well() => Ok(said.out),
        Ok(said) => Err(uncertain_because(format!("the browser {}", said.ran.describe_failure()))),
    }
}

/// Whether the page shows an element, after its scripts ran.
pub(super) fn check_rendered_element(
    shop: &ShellWorkspace<'_>,
    address: &WebAddress,
    selector: &str,
    text: Option<&str>,
) -> CheckEvidence {
    let selector = match html::Selector::parse(selector) {
        Ok(selector) => selector,
        Err(why) => return uncertain_because(why),
    };
    let page = match dump_dom(shop, address)
        .and_then(|text| html::HtmlDocument::parse(&text).map_err(uncertain_because))
    {
        Ok(page) => page,
        Err(saw) => return saw,
    };
    let found = page.select_elements(&selector);
    match (found.len(), text) {
        (0, _) => fail_with_evidence("it is not on the page".to_owned()),
        (count, None) => pass_with_evidence(format!("{count} on the page")),
        (count, Some(text)) => {
            let with = found.iter().filter(|at| page.element_text(**at).contains(text)).count();
            pass_or_fail(with > 0, format!("{count} on the page, {with} with the text"))
        }
    }
}

fn dump_dom(shop: &ShellWorkspace<'_>, address: &WebAddress) -> Result<String, CheckEvidence> {
    let program = find_browser(shop)?;
    let tmp = shop.tmp_folder().map_err(uncertain_because)?;
    let mut argv = browser_arguments(&program, &tmp, DESK);
    argv.push("--dump-dom".into());
    argv.push(address.as_str().into()); // begins with http: it is no option
    let out = run_browser(shop, argv)?;
    let text = String::from_utf8_lossy(&out).into_owned();
    // A page of the browser's own is not the one that was asked for.
    if text.trim().is_empty() || text.contains("<body class=\"neterror\"") {
        return Err(uncertain_because("the browser could not open the address".to_owned()));
    }
    Ok(text)
}

/// A picture of a page, at `to`.
fn save_screenshot(
    shop: &ShellWorkspace<'_>,
    address: &WebAddress,
    viewport: Viewport,
    to: &Path,
) -> Result<(), CheckEvidence> {
    let program = find_browser(shop)?;
    let tmp = shop.tmp_folder().map_err(uncertain_because)?;
    let mut argv = browser_arguments(&program, &tmp, viewport);
    let mut shot = OsString::from("--screenshot=");
    shot.push(to);
    argv.push(shot);
    argv.push(address.as_str().into());
    run_browser(shop, argv)?;
    if to.is_file() { Ok(()) } else { Err(uncertain_because("the browser made no picture".to_owned())) }
}

/// Whether a judge sees what is described.
pub(super) fn judge_screenshot(
    shop: &ShellWorkspace<'_>,
    judge: Option<&dyn Judge>,
    address: &WebAddress,
    description: &str,
) -> CheckEvidence {
    let Some(judge) = judge else {
        return uncertain_because("there is no judge to look at the picture".to_owned());
    };
    let tmp = match shop.tmp_folder() {
        Ok(tmp) => tmp,
        Err(why) => return uncertain_because(why),
    };
    let to = tmp.join("page.png");
    if let Err(saw) = save_screenshot(shop, address, DESK, &to) {
        return saw;
    }
    let prompt = rubric::picture_prompt(description, address.as_str());
    rubric::evaluate_judge_answer(judge.judge(&JudgeQuestion { prompt: &prompt, picture: Some(&to) }))
}

/// Whether two pages, or a page and a picture in the tree, look the same.
pub(super) fn compare_pages(
    shop: &ShellWorkspace<'_>,
    tree: &AcceptanceTree,
    base: Option<&WebAddress>,
    reference: &str,
    address: &WebAddress,
    viewports: Option<&str>,
    states: Option<&str>,
) -> CheckEvidence {
    if let Some(state) = states.into_iter().flat_map(|it| it.split(',')).find(|it| it.trim() != "default") {
        return uncertain_because(format!(
            "only the state `default` can be seen, not `{}`",
            shorten_to_line(state.trim())
        ));
    }
    let sizes: Option<Vec<Viewport>> = viewports.map_or(Some(vec![DESK]), |text| {
        text.split(',').map(parse_viewport).collect::<Option<Vec<_>>>().filter(|sizes| sizes.len() <= 8)
    });
    let Some(sizes) = sizes else {
        return uncertain_because("`--viewports` takes sizes such as 390x844,1280x800".to_owned());
    };
    let tmp = match shop.tmp_folder() {
        Ok(tmp) => tmp,
        Err(why) => return uncertain_because(why),
    };
    let there = match find_comparison_source(tree, base, reference) {
        Ok(there) => there,
        Err(saw) => return saw,
    };
    let mut worst = 0;
    for size in sizes {
        let (one, two) = (tmp.join("one.png"), tmp.join("two.png"));
        let bytes = match &there {
            ComparisonSource::Page(address) => match save_screenshot(shop, address, size, &one) {
                Ok(()) => std::fs::read(&one).unwrap_or_default(),
                Err(saw) => return saw,
            },
            ComparisonSource::Picture(bytes) => bytes.clone(),
        };
        if let Err(saw) = save_screenshot(shop, address, size, &two) {
            return saw;
        }
        match compare_pictures(&bytes, &std::fs::read(&two).unwrap_or_default()) {
            Err(why) => return uncertain_because(why),
            Ok(PictureDifference::Size(a, b)) => {
                return fail_with_evidence(format!(
                    "one is {}x{}, the other {}x{}",
                    a.width, a.height, b.width, b.height
                ));
            }
            Ok(PictureDifference::PerMille(share)) => worst = worst.max(share),
        }
    }
    pass_or_fail(worst <= PIXELS_PER_MILLE_MAX, format!("{worst} of 1000 pixels differ"))
}

enum ComparisonSource {
    Page(WebAddress),
    Picture(Vec<u8>),
}

fn find_comparison_source(
    tree: &AcceptanceTree,
    base: Option<&WebAddress>,
    reference: &str,
) -> Result<ComparisonSource, CheckEvidence> {
    if reference.contains("://") || reference.starts_with("{{") {
        let template = landfall_model::acceptance::AddressTemplate::parse(reference);
        let template = template.map_err(|error| uncertain_because(error.to_string()))?;
        let address = template.resolve(base);
        return address
            .map(ComparisonSource::Page)
            .ok_or_else(|| uncertain_because("where `{{base_url}}` leads is not known here".to_owned()));
    }
    let path = RepoPath::new(reference).map_err(|error| uncertain_because(error.to_string()))?;
    match tree.read_bytes(path.as_str()) {
        Err(why) => Err(uncertain_because(why)),
        Ok(None) => Err(uncertain_because(format!("there is no `{}` to compare with", path.as_str()))),
        Ok(Some(bytes)) => Ok(ComparisonSource::Picture(bytes)),
    }
}

fn parse_viewport(text: &str) -> Option<Viewport> {
    let (width, height) = text.trim().split_once('x')?;
    let side = |text: &str| text.parse::<u32>().ok().filter(|side| (100..=4_000).contains(side));
    Some(Viewport { width: side(width)?, height: side(height)? })
}

enum PictureDifference {
    Size(Viewport, Viewport),
    PerMille(u64),
}

fn compare_pictures(one: &[u8], two: &[u8]) -> Result<PictureDifference, String> {
    let ((a, one), (b, two)) = (decode_png(one)?, decode_png(two)?);
    if a != b {
        return Ok(PictureDifference::Size(a, b));
    }
    let apart = |(one, two): &(&[u8; 4], &[u8; 4])| {
        one.iter().zip(two.iter()).any(|(a, b)| a.abs_diff(*b) > CHANNEL_MAX)
    };
    let count = one.iter().zip(&two).filter(apart).count() as u64;
    // Rounded up: one pixel is not none.
    Ok(PictureDifference::PerMille((count * 1_000).div_ceil((one.len() as u64).max(1))))
}

/// The size of a picture and its pixels.
pub(super) fn decode_png(bytes: &[u8]) -> Result<(Viewport, Vec<[u8; 4]>), String> {
    let wrong = |error: png::DecodingError| format!("a picture is no PNG that can be read: {error}");
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().map_err(wrong)?;
    let (width, height) = (reader.info().width, reader.info().height);
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err("a picture is too large".to_owned());
    }
    let mut buffer = vec![0; reader.output_buffer_size().ok_or("a picture is too large")?];
    let info = reader.next_frame(&mut buffer).map_err(wrong)?;
    let pixels = buffer[..info.buffer_size()].chunks_exact(info.color_type.samples()).map(|it| match it {
        [r, g, b, a] => [*r, *g, *b, *a],
        [r, g, b] => [*r, *g, *b, 255],
        [grey, a] => [*grey, *grey, *grey, *a],
        [grey] => [*grey, *grey, *grey, 255],
        _ => [0; 4],
    });
    Ok((Viewport { width, height }, pixels.collect()))
}

/// Whether a page scores enough.
pub(super) fn check_lighthouse_score(
    shop: &ShellWorkspace<'_>,
    address: &WebAddress,
    category: &str,
    least: u8,
) -> CheckEvidence {
    const KNOWN: [&str; 5] = ["performance", "accessibility", "best-practices", "seo", "pwa"];
    const LIGHTHOUSE_MS: u64 = 120_000;
    if !KNOWN.contains(&category) {
        return uncertain_because(format!(
            "unknown category `{}`; known are {}",
            shorten_to_line(category),
            KNOWN.join(", ")
        ));
    }
    let Some(program) = shop.on_path(&["lighthouse"]) else {
        return uncertain_because("lighthouse is not installed".to_owned());
    };
    let argv = vec![
        program.into(),
        address.as_str().into(),
        "--output=json".into(),
        "--quiet".into(),
        "--chrome-flags=--headless --no-sandbox".into(),
        format!("--only-categories={category}").into(),
    ];
    let said = match shop.run(argv, LIGHTHOUSE_MS) {
        Err(why) => return uncertain_because(format!("lighthouse could not be run: {why}")),
        Ok(said) if said.ran.is_well() => said,
        Ok(said) => return uncertain_because(format!("lighthouse {}", said.ran.describe_failure())),
    };
    let report: serde_json::Value = serde_json::from_slice(&said.out).unwrap_or_default();
    match report["categories"][category]["score"].as_f64() {
        None => uncertain_because("lighthouse gave no score".to_owned()),
        Some(score) => {
            let score = (score * 100.0).round();
            pass_or_fail(score >= f64::from(least), format!("{category} scores {score}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_png(width: u32, height: u32, change: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(png::ColorType::Rgb);
        let mut data = vec![200; (width * height * 3) as usize];
        data.iter_mut().take(change * 3).for_each(|byte| *byte = 0);
        encoder.write_header().and_then(|mut writer| writer.write_image_data(&data)).expect("a picture");
        bytes
    }

    #[test]
    fn pictures_are_compared_by_their_pixels() {
        let share = |change| match compare_pictures(&make_png(100, 100, 0), &make_png(100, 100, change))
            .expect("pictures")
        {
            PictureDifference::PerMille(share) => share,
            PictureDifference::Size(..) => panic!("the same size"),
        };
        assert_eq!([share(0), share(1), share(10), share(11), share(5_000)], [0, 1, 1, 2, 500]);
        assert!(matches!(
            compare_pictures(&make_png(10, 10, 0), &make_png(10, 11, 0)),
            Ok(PictureDifference::Size(..))
        ));
        assert!(compare_pictures(b"no picture", &make_png(1, 1, 0)).is_err());
        assert_eq!(parse_viewport("390x844"), Some(Viewport { width: 390, height: 844 }));
        assert!(
            [parse_viewport("0x1"), parse_viewport("a"), parse_viewport("9999x1")]
                .iter()
                .all(Option::is_none)
        );
    }
}
