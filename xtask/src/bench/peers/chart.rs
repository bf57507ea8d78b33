//! The run at ten agents as a plain SVG: four panels of bars. No library and no script; it is read in a repository view.

use super::agent::{Browser, Product};
use super::result::{Cell, Measured, Run};
use super::verdict::{JUDGED_AGENTS, megabytes, milliseconds};

const WIDTH: f64 = 960.0;
const LABEL: f64 = 400.0;
const BAR: f64 = 420.0;
const LINE: f64 = 18.0;

/// One panel: title, number, text, and how bars are drawn.
type Panel = (&'static str, fn(&Measured) -> f64, fn(f64) -> String, Scale);

#[derive(Clone, Copy)]
enum Scale {
    Linear,
    /// Numbers that differ by a thousand.
    Logarithmic,
}

const PANELS: [Panel; 4] = [
    ("Ten agents ready (less is better)", |m| m.ready_ms, milliseconds, Scale::Linear),
    ("Memory of all processes (less is better)", |m| m.memory_kb as f64, megabytes, Scale::Linear),
    ("evaluate, p50 (less is better; logarithmic)", |m| m.evaluate.p50_ms, milliseconds, Scale::Logarithmic),
    ("Calls per second, all agents at once (more is better; logarithmic)", |m| m.calls_per_s, |n| format!("{n:.0}/s"), Scale::Logarithmic),
];

pub(super) fn chart(run: &Run) -> String {
    let cells: Vec<_> = run.cells.iter().filter(|cell| cell.agents == JUDGED_AGENTS).collect();
    let cells: Vec<_> = cells.into_iter().filter_map(|cell| Some((cell, cell.measured()?))).collect();
    let panel_height = LINE * (cells.len() as f64 + 2.5);
    let height = panel_height * PANELS.len() as f64 + LINE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (index, panel) in PANELS.iter().enumerate() {
        svg += &draw(panel, &cells, LINE + panel_height * index as f64);
    }
    svg + "</svg>\n"
}

fn draw((title, number, text, scale): &Panel, cells: &[(&Cell, &Measured)], top: f64) -> String {
    let most = cells.iter().map(|(_, measured)| number(measured)).fold(0.0, f64::max);
    let mut svg = format!("<text x=\"8\" y=\"{}\" font-weight=\"bold\">{title}</text>\n", top + 8.0);
    for (index, (cell, measured)) in cells.iter().enumerate() {
        let y = top + LINE * (index as f64 + 1.0);
        let value = number(measured);
        let length = BAR * share(value, most, *scale);
        let fill = if cell.product == Product::Tabmux { "#1a7f37" } else { "#8c959f" };
        svg += &format!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", LABEL - 8.0, y + 11.0, label(cell));
        svg += &format!("<rect x=\"{LABEL}\" y=\"{y}\" width=\"{length:.1}\" height=\"{}\" fill=\"{fill}\"/>", LINE - 5.0);
        svg += &format!("<text x=\"{:.1}\" y=\"{}\">{}</text>\n", LABEL + length + 6.0, y + 11.0, text(value));
    }
    svg
}

fn label(cell: &Cell) -> String {
    let browser = match cell.browser {
        Browser::Default => "",
        Browser::SameAsTabmux => ", tabmux's browser",
        Browser::Full => ", the peers' browser",
    };
    let setup = cell.setup.split(',').next().unwrap_or_default().replace('`', "").replace('&', "&amp;").replace('<', "&lt;");
    let setup = if cell.product == Product::Tabmux { String::new() } else { format!(" {setup}") };
    format!("{}{setup}{browser}", cell.product.name())
}

/// The length of a bar, of 1.
fn share(value: f64, most: f64, scale: Scale) -> f64 {
    if value <= 0.0 || most <= 0.0 {
        return 0.0;
    }
    match scale {
        Scale::Linear => value / most,
        // Five decades, the smallest of which is still a visible bar.
        Scale::Logarithmic => (1.0 + (value / most).log10() / 5.0).max(0.01),
    }
}
