//! Plots: bars and curves as SVG, each with its numbers in a table behind it.
//!
//! A plot is worked out here and drawn by its template, which escapes every word. Nothing is told by colour alone: the second
//! series of bars is hatched, a curve that is only expected is dashed, and the table says it all again.

use askama::Template;
use jiff::Timestamp;
use jiff::tz::TimeZone;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 28.0;
const LABELS_MAX: usize = 8; // as many as fit beside each other on a phone
const ROWS_MAX: usize = 400; // a year of days

/// What the numbers of a plot are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlotUnit {
    /// How many.
    Count,
    /// Dollars.
    Usd,
    /// Milliseconds.
    Time,
    /// A share of one.
    Share,
}

impl PlotUnit {
    /// The number as people read it.
    pub(super) fn format_value(self, value: f64) -> String {
        match self {
            Self::Count if value >= 1e9 => format!("{}G", format_short(value / 1e9)),
            Self::Count if value >= 1e6 => format!("{}M", format_short(value / 1e6)),
            Self::Count if value >= 10_000.0 => format!("{}k", format_short(value / 1e3)),
            Self::Count => format_short(value),
            Self::Usd if value >= 1000.0 => format!("${value:.0}"),
            Self::Usd => landfall_text::format_usd(value),
            Self::Share => format!("{value:.2}"),
            Self::Time if value >= 2.0 * DAY => format!("{}d", format_short(value / DAY)),
            Self::Time if value >= HOUR => format!("{}h", format_short(value / HOUR)),
            Self::Time if value >= MINUTE => format!("{}m", format_short(value / MINUTE)),
            Self::Time => format!("{}s", format_short(value / SECOND)),
        }
    }

    /// Round numbers of this kind: the smallest that is not below.
    fn round_up(self, value: f64) -> f64 {
        const TIMES: [f64; 17] = [
            SECOND,
            2.0 * SECOND,
            5.0 * SECOND,
            10.0 * SECOND,
            30.0 * SECOND,
            MINUTE,
            2.0 * MINUTE,
            5.0 * MINUTE,
            10.0 * MINUTE,
            30.0 * MINUTE,
            HOUR,
            2.0 * HOUR,
            6.0 * HOUR,
            12.0 * HOUR,
            DAY,
            2.0 * DAY,
            5.0 * DAY,
        ];
        let step = match self {
            Self::Time => TIMES.into_iter().find(|it| *it >= value),
            Self::Count if value <= 1.0 => Some(1.0),
            Self::Share => Some(0.25),
            Self::Count | Self::Usd => None,
        };
        step.unwrap_or_else(|| {
            let power = 10_f64.powf(value.log10().floor());
            [1.0, 2.0, 5.0].into_iter().map(|it| it * power).find(|it| *it >= value).unwrap_or(10.0 * power)
        })
    }
}

const SECOND: f64 = 1000.0;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;

fn format_short(value: f64) -> String {
    if (value - value.round()).abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Numbers that belong together, one for each label.
pub(super) struct Series<'a> {
    /// What they count.
    pub(super) name: &'a str,
    /// One for each label; what is missing is nothing.
    pub(super) values: Vec<f64>,
}

/// How a curve is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CurveKind {
    /// It was so, and stayed so until the next point.
    Steps,
    /// It is expected.
    Expected,
    /// It is wanted.
    LogPageQuery,
}

/// A curve over time.
pub(super) struct Curve<'a> {
    /// What it counts.
    pub(super) name: &'a str,
    /// How to take it.
    pub(super) kind: CurveKind,
    /// When, and how many; in the order of time.
    pub(super) points: Vec<(i64, f64)>,
}

/// A plot, ready to be put on a page.
#[derive(Template)]
#[template(path = "plot.html")]
pub(super) struct PlotFigure {
    id: &'static str,
    title: String,
    /// What the plot shows, in one sentence.
    about: String,
    up: Vec<AxisTick>,
    along: Vec<AxisTick>,
    boxes: Vec<PlotBar>,
    paths: Vec<PlotPath>,
    dots: Vec<Dot>,
    legend: Vec<LegendKey>,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl askama::filters::HtmlSafe for PlotFigure {} // its template escapes every word

struct AxisTick {
    at: String,
    text: String,
}

struct PlotBar {
    x: String,
    y: String,
    width: String,
    height: String,
    /// Counted from 1; the second is hatched.
    series: usize,
    hint: String,
}

struct PlotPath {
    class: &'static str,
    line: String,
}

struct Dot {
    x: String,
    y: String,
    hint: String,
}

struct LegendKey {
    class: String,
    name: String,
}

/// Bars, one for each label; several series stand on top of each other.
pub(super) fn draw_bars(
    id: &'static str,
    title: &str,
    unit: PlotUnit,
    labels: &[String],
    series: &[Series<'_>],
) -> PlotFigure {
    let value =
        |series: &Series<'_>, place: usize| clamp_value(series.values.get(place).copied().unwrap_or(0.0));
    let sums: Vec<f64> =
        (0..labels.len()).map(|place| series.iter().map(|it| value(it, place)).sum()).collect();
    let most = sums.iter().copied().fold(0.0, f64::max);
    let scale = Scale::new(unit, most);
    let wide = (WIDTH - LEFT - RIGHT) / count_to_f64(labels.len().max(1));
    let gap = (wide * 0.2).min(6.0);
    let mut boxes = Vec::new();
    for (place, label) in labels.iter().enumerate() {
        let mut below = 0.0;
        for (number, each) in series.iter().enumerate() {
            let many = value(each, place);
            if many > 0.0 {
                let (top, foot) = (scale.y_position(below + many), scale.y_position(below));
                boxes.push(PlotBar {
                    x: format_px(LEFT + wide * count_to_f64(place) + gap / 2.0),
                    y: format_px(top),
                    width: format_px((wide - gap).max(0.5)),
                    height: format_px((foot - top).max(0.5)),
                    series: number + 1,
                    hint: format!("{label}: {} {}", unit.format_value(many), each.name),
                });
            }
            below += many;
        }
    }
    let every = labels.len().div_ceil(LABELS_MAX).max(1);
    let along = labels.iter().enumerate().step_by(every).map(|(place, label)| AxisTick {
        at: format_px(LEFT + wide * (count_to_f64(place) + 0.5)),
        text: truncate_label(label, 12),
    });
    let about = match most > 0.0 {
        true => {
            let names: Vec<&str> = series.iter().map(|it| it.name).collect();
            format!("Bars of {}; at most {} at once.", names.join(" and "), unit.format_value(most))
        }
        false => "Nothing to show yet.".to_owned(),
    };
    let rows = labels.iter().enumerate().take(ROWS_MAX).map(|(place, label)| {
        let numbers = series.iter().map(|it| unit.format_value(value(it, place)));
        std::iter::once(label.clone()).chain(numbers).collect()
    });
    PlotFigure {
        id,
        title: title.to_owned(),
        about,
        up: if most > 0.0 { scale.ticks() } else { Vec::new() },
        along: along.collect(),
        boxes,
        paths: Vec::new(),
        dots: Vec::new(),
        legend: build_legend(
            series.iter().enumerate().map(|(place, it)| (format!("s{}", place + 1), it.name)),
        ),
        heads: std::iter::once(String::new()).chain(series.iter().map(|it| it.name.to_owned())).collect(),
        rows: rows.collect(),
    }
}

/// Curves over time.
pub(super) fn draw_curves(id: &'static str, title: &str, unit: PlotUnit, curves: &[Curve<'_>]) -> PlotFigure {
    let points = || curves.iter().flat_map(|curve| curve.points.iter());
    let most = points().map(|(_, many)| clamp_value(*many)).fold(0.0, f64::max);
    let from = points().map(|(at, _)| clamp_time(*at)).min().unwrap_or_default();
    let to = points().map(|(at, _)| clamp_time(*at)).max().unwrap_or_default().max(from.saturating_add(1));
    let scale = Scale::new(unit, most);
    let x = |at: i64| LEFT + (WIDTH - LEFT - RIGHT) * time_fraction(at, from, to);
    let (mut paths, mut dots, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for curve in curves.iter().filter(|it| !it.points.is_empty()) {
        let mut line = String::new();
        for (at, many) in &curve.points {
            let at = clamp_time(*at);
            let (x, y) = (format_px(x(at)), format_px(scale.y_position(clamp_value(*many))));
            match (line.is_empty(), curve.kind) {
                (true, _) => line = format!("M{x} {y}"),
                (false, CurveKind::Steps) => line += &format!("H{x}V{y}"),
                (false, CurveKind::Expected | CurveKind::LogPageQuery) => line += &format!("L{x} {y}"),
            }
            let hint = format!(
                "{}: {} {}",
                format_moment(at, to - from),
                unit.format_value(clamp_value(*many)),
                curve.name
            );
            if curve.kind == CurveKind::Steps {
                dots.push(Dot { x, y, hint });
            }
            if rows.len() < ROWS_MAX {
                rows.push(vec![
                    format_moment(at, i64::MAX),
                    curve.name.to_owned(),
                    unit.format_value(clamp_value(*many)),
                ]);
            }
        }
        paths.push(PlotPath { class: curve_class(curve.kind), line });
    }
    let along = match paths.is_empty() {
        true => Vec::new(),
        false => (0..5)
            .map(|place| {
                let at = from + (to - from) / 4 * place;
                AxisTick { at: format_px(x(at)), text: format_moment(at, to - from) }
            })
            .collect(),
    };
    let about = match paths.is_empty() {
        true => "Nothing to show yet.".to_owned(),
        false => format!(
            "Curves from {} to {}; at most {}.",
            format_moment(from, i64::MAX),
            format_moment(to, i64::MAX),
            unit.format_value(most)
        ),
    };
    PlotFigure {
        id,
        title: title.to_owned(),
        about,
        up: if paths.is_empty() { Vec::new() } else { scale.ticks() },
        along,
        boxes: Vec::new(),
        paths,
        dots,
        legend: build_legend(curves.iter().map(|it| (curve_class(it.kind).to_owned(), it.name))),
        heads: vec!["When".to_owned(), "What".to_owned(), "How many".to_owned()],
        rows,
    }
}

fn curve_class(kind: CurveKind) -> &'static str {
    match kind {
        CurveKind::Steps => "steps",
        CurveKind::Expected => "expected",
        CurveKind::LogPageQuery => "wanted",
    }
}

/// One series needs no legend: the title says what it is.
fn build_legend<'a>(keys: impl Iterator<Item = (String, &'a str)>) -> Vec<LegendKey> {
    let keys: Vec<LegendKey> = keys.map(|(class, name)| LegendKey { class, name: name.to_owned() }).collect();
    if keys.len() > 1 { keys } else { Vec::new() }
}

/// From numbers to heights.
struct Scale {
    unit: PlotUnit,
    step: f64,
    steps: u32,
}

impl Scale {
    fn new(unit: PlotUnit, most: f64) -> Self {
        let step = unit.round_up((most / 4.0).max(f64::MIN_POSITIVE * 1e10));
        let mut steps = 1;
        while step * f64::from(steps) < most && steps < 10 {
            steps += 1;
        }
        Self { unit, step, steps }
    }

    fn y_position(&self, value: f64) -> f64 {
        let high = HEIGHT - TOP - BOTTOM;
        TOP + high * (1.0 - (value / (self.step * f64::from(self.steps))).clamp(0.0, 1.0))
    }

    fn ticks(&self) -> Vec<AxisTick> {
        (0..=self.steps)
            .map(|place| {
                let value = self.step * f64::from(place);
                AxisTick { at: format_px(self.y_position(value)), text: self.unit.format_value(value) }
            })
            .collect()
    }
}

/// A number that can be drawn.
fn clamp_value(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1e15) } else { 0.0 }
}

/// A moment that can be drawn: since computers count, and before the year 10000.
fn clamp_time(at_ms: i64) -> i64 {
    at_ms.clamp(0, 253_402_300_799_000)
}

/// How far a moment is between two others, from 0 to 1.
fn time_fraction(at: i64, from: i64, to: i64) -> f64 {
    let (part, whole) = (at.saturating_sub(from), to.saturating_sub(from).max(1));
    (ms_to_f64(part) / ms_to_f64(whole)).clamp(0.0, 1.0)
}

#[expect(clippy::cast_precision_loss, reason = "a picture is coarser than a float")]
fn ms_to_f64(ms: i64) -> f64 {
    ms as f64
}

fn count_to_f64(many: usize) -> f64 {
    u32::try_from(many).map_or(f64::from(u32::MAX), f64::from)
}

fn format_px(value: f64) -> String {
    format!("{value:.1}")
}

/// The first letters of a word.
fn truncate_label(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// A moment, as exactly as a plot that long wants it.
fn format_moment(at_ms: i64, span_ms: i64) -> String {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return String::new() };
    let at = at.to_zoned(TimeZone::system());
    let form = match span_ms {
        i64::MAX => "%Y-%m-%d %H:%M",
        ..172_800_000 => "%H:%M",
        _ => "%m-%d",
    };
    at.strftime(form).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(many: usize) -> Vec<String> {
        (0..many).map(|place| format!("2026-07-{place:02}")).collect()
    }

    fn drawn(figure: &PlotFigure) -> String {
        figure.render().expect("texts and numbers")
    }

    fn one(values: Vec<f64>) -> String {
        let labels = labels(values.len());
        drawn(&draw_bars("t", "Landed", PlotUnit::Count, &labels, &[Series { name: "landed", values }]))
    }

    #[test]
    fn nothing_says_so() {
        for text in [one(vec![]), one(vec![0.0, 0.0]), drawn(&draw_curves("t", "x", PlotUnit::Count, &[]))] {
            assert!(text.contains("Nothing to show yet") && !text.contains("<rect"), "{text}");
        }
    }

    #[test]
    fn bars_stay_inside_and_grow_with_their_numbers() {
        for values in [vec![1.0], vec![0.2, 0.1], (0..366).map(f64::from).collect(), vec![1e15, 3.0]] {
            let labels = labels(values.len());
            let figure = draw_bars(
                "t",
                "x",
                PlotUnit::Count,
                &labels,
                &[Series { name: "n", values: values.clone() }],
            );
            assert_eq!(figure.boxes.len(), values.iter().filter(|it| **it > 0.0).count());
            for bar in &figure.boxes {
                let number = |text: &str| text.parse::<f64>().expect("a number");
                let (x, y) = (number(&bar.x), number(&bar.y));
                assert!(x >= LEFT - 0.1 && x + number(&bar.width) <= WIDTH, "{x}");
                assert!(y >= TOP - 0.1 && y + number(&bar.height) <= HEIGHT - BOTTOM + 0.6, "{y}");
            }
            assert!(figure.along.len() <= LABELS_MAX && !figure.up.is_empty());
        }
    }

    #[test]
    fn numbers_that_are_none_are_drawn_as_nothing() {
        let text = one(vec![f64::NAN, f64::INFINITY, -3.0, 2.0]);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn words_from_outside_stay_words() {
        let hostile = "<script>alert(1)</script>\"'&".to_owned();
        let text = drawn(&draw_bars(
            "t",
            &hostile,
            PlotUnit::Count,
            std::slice::from_ref(&hostile),
            &[Series { name: &hostile, values: vec![1.0] }, Series { name: &hostile, values: vec![2.0] }],
        ));
        assert!(!text.contains("<script"), "{text}");
        let curve = Curve { name: &hostile, kind: CurveKind::Steps, points: vec![(0, 1.0)] };
        let text = drawn(&draw_curves("t", &hostile, PlotUnit::Count, &[curve]));
        assert!(!text.contains("<script"), "{text}");
    }

    #[test]
    fn nothing_is_styled_in_place() {
        let text = one(vec![1.0, 2.0]);
        assert!(!text.contains("style="), "{text}");
        assert!(text.contains("role=\"img\"") && text.contains("<table"), "{text}");
    }

    #[test]
    fn a_curve_of_one_point_or_many_is_drawn() {
        for many in [1_i32, 2, 500] {
            let points = (0..many).map(|it| (i64::from(it) * 60_000, f64::from(it))).collect();
            let figure = draw_curves(
                "t",
                "x",
                PlotUnit::Count,
                &[Curve { name: "n", kind: CurveKind::Steps, points }],
            );
            assert_eq!(figure.paths.len(), 1);
            assert!(!figure.paths[0].line.contains("NaN"));
        }
        let wild = vec![(i64::MIN, 1.0), (i64::MAX, 2.0)];
        let text = drawn(&draw_curves(
            "t",
            "x",
            PlotUnit::Count,
            &[Curve { name: "n", kind: CurveKind::Expected, points: wild }],
        ));
        assert!(!text.contains("NaN"));
    }

    #[test]
    fn ticks_are_round() {
        let text = |unit: PlotUnit, most: f64| {
            Scale::new(unit, most).ticks().into_iter().map(|it| it.text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(text(PlotUnit::Count, 3.0), "0 1 2 3");
        assert_eq!(text(PlotUnit::Count, 87.0), "0 50 100");
        assert_eq!(text(PlotUnit::Usd, 1.3), "$0.00 $0.50 $1.00 $1.50");
        assert_eq!(text(PlotUnit::Time, 7_200_000.0), "0s 30m 1h 1.5h 2h");
    }
}
