//! What the doctor found, for people and for programs. Colour and columns only on a terminal; elsewhere one line per
//! canary, cells between tabs.

use std::io::IsTerminal;

use serde_json::{Value, json};
use tabmux_core::{Code, Fault};

use super::canary::{Canary, Judgement, NotJudged, Seen};
use super::unit::Unit;
use crate::output;

pub(super) struct Report {
    pub(super) units: Vec<Judged>,
}

/// One unit's canaries, or why it could not be tried.
pub(super) struct Judged {
    pub(super) unit: Unit,
    pub(super) rows: Result<Vec<Row>, Fault>,
}

impl Judged {
    fn is_unjudged(&self) -> bool {
        self.rows.as_ref().is_err_and(|fault| fault.code != Code::Unsupported)
    }
}

pub(super) struct Row {
    pub(super) canary: &'static Canary,
    pub(super) promised: bool,
    pub(super) judgement: Judgement,
}

impl Row {
    fn leaks(&self) -> bool {
        self.promised && matches!(self.judgement, Ok(Seen::Shared(_)))
    }

    /// Whether a promise is kept is not known.
    fn is_unjudged(&self) -> bool {
        self.promised && self.judgement.is_err()
    }

    fn promise(&self) -> &'static str {
        if self.promised { "apart" } else { "shared" }
    }

    /// In one line, whatever a page or a tool said.
    fn finding(&self) -> String {
        let found = match &self.judgement {
            Ok(Seen::Apart) => "kept apart".into(),
            Ok(Seen::Shared(how)) if self.promised => format!("LEAKS: {how}"),
            Ok(Seen::Shared(how)) => format!("shared: {how}"),
            Err(NotJudged(why)) => format!("not judged: {why}"),
        };
        found.replace(['\n', '\t'], " ")
    }

    fn colour(&self) -> &'static str {
        match &self.judgement {
            Ok(Seen::Apart) => "\x1b[32m",
            Ok(Seen::Shared(_)) if self.promised => "\x1b[31m",
            Ok(Seen::Shared(_)) => "",
            Err(_) => "\x1b[33m",
        }
    }

    fn document(&self) -> Value {
        let (found, detail) = match &self.judgement {
            Ok(Seen::Apart) => ("apart", None),
            Ok(Seen::Shared(how)) => ("shared", Some(how)),
            Err(NotJudged(why)) => ("not_judged", Some(why)),
        };
        json!({"canary": self.canary.name, "promise": self.promise(), "found": found, "leaks": self.leaks(), "detail": detail})
    }
}

impl Report {
    /// Where not one unit could be tried: why.
    pub(super) fn nothing_judged(&self) -> Option<Fault> {
        let mut faults = self.units.iter().map(|judged| judged.rows.as_ref().err());
        let first = faults.next()??;
        faults.all(|fault| fault.is_some()).then(|| first.clone())
    }

    /// `context: cookies`
    pub(super) fn leaks(&self) -> Vec<String> {
        let leaking = self.rows().filter(|(_, row)| row.leaks());
        leaking.map(|(unit, row)| format!("{}: {}", unit.name(), row.canary.name)).collect()
    }

    fn rows(&self) -> impl Iterator<Item = (Unit, &Row)> {
        self.units.iter().flat_map(|judged| judged.rows.iter().flatten().map(|row| (judged.unit, row)))
    }

    /// What is promised to be kept apart and was not judged: `context: cookies`, or a whole unit. A unit that this browser does not
    /// have is none of it: no session can be in it.
    pub(super) fn unjudged(&self) -> Vec<String> {
        let rows = self.rows().filter(|(_, row)| row.is_unjudged()).map(|(unit, row)| format!("{}: {}", unit.name(), row.canary.name));
        let units = self.units.iter().filter(|judged| judged.is_unjudged()).map(|judged| judged.unit.name().to_owned());
        rows.chain(units).collect()
    }

    /// Everything that is promised was judged, and is kept.
    pub(super) fn is_well(&self) -> bool {
        self.leaks().is_empty() && self.unjudged().is_empty()
    }

    fn verdict(&self) -> String {
        let (leaks, unjudged) = (self.leaks(), self.unjudged());
        let leaking = match leaks.len() {
            0 if unjudged.is_empty() => "Nothing leaks that is promised to be kept apart.".to_owned(),
            0 => "Nothing was seen to leak.".to_owned(),
            1 => format!("1 leak: {}.", leaks.join(", ")),
            number => format!("{number} leaks: {}.", leaks.join(", ")),
        };
        if unjudged.is_empty() {
            return leaking;
        }
        format!("{leaking} Whether these are kept apart, as is promised, could not be judged: {}.", unjudged.join(", "))
    }

    /// What nothing depends on: ` Not judged: 3 canaries, window.`
    fn not_judged(&self) -> String {
        let rows = match self.rows().filter(|(_, row)| row.judgement.is_err() && !row.promised).count() {
            0 => None,
            1 => Some("1 canary".to_owned()),
            number => Some(format!("{number} canaries")),
        };
        let aside = |judged: &&Judged| judged.rows.is_err() && !judged.is_unjudged();
        let units = self.units.iter().filter(aside).map(|judged| judged.unit.name().to_owned());
        let all: Vec<String> = rows.into_iter().chain(units).collect();
        if all.is_empty() { String::new() } else { format!(" Not judged: {}.", all.join(", ")) }
    }

    pub(super) fn document(&self) -> Value {
        let unit = |judged: &Judged| {
            let (canaries, why): (Vec<Value>, _) = match &judged.rows {
                Ok(rows) => (rows.iter().map(Row::document).collect(), None),
                Err(fault) => (Vec::new(), Some(fault.to_string())),
            };
            json!({"unit": judged.unit.name(), "promise": judged.unit.promise(), "canaries": canaries, "not_judged": why})
        };
        let units: Vec<Value> = self.units.iter().map(unit).collect();
        json!({"ok": self.is_well(), "leaks": self.leaks(), "unjudged": self.unjudged(), "units": units})
    }

    pub(super) fn text(&self) -> String {
        let tables: String =
            self.units.iter().map(|judged| if std::io::stdout().is_terminal() { for_eyes(judged) } else { for_scripts(judged) }).collect();
        format!("{tables}{}{}\n", self.verdict(), self.not_judged())
    }
}

fn for_eyes(judged: &Judged) -> String {
    let title = format!("\x1b[1m{}\x1b[0m: {}\n", judged.unit.name(), judged.unit.promise());
    match &judged.rows {
        Err(fault) => format!("{title}not judged: {fault}\n\n"),
        Ok(rows) => {
            let cells =
                |row: &Row| [row.canary.name.to_owned(), row.promise().to_owned(), format!("{}{}\x1b[0m", row.colour(), row.finding())];
            let rows: Vec<_> = rows.iter().map(cells).collect();
            format!("{title}{}\n", output::table(["CANARY", "PROMISED", "FOUND"], &rows))
        }
    }
}

fn for_scripts(judged: &Judged) -> String {
    let unit = judged.unit.name();
    match &judged.rows {
        Err(fault) => format!("{unit}\t-\t-\tnot judged: {fault}\n"),
        Ok(rows) => rows.iter().map(|row| [unit, row.canary.name, row.promise(), &row.finding()].join("\t") + "\n").collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::isolation::unit::Kept;

    static COOKIES: Canary = Canary { name: "cookies", kept: Kept::ByProfile, probe: |_| Ok(Seen::Apart) };

    fn judged(unit: Unit, judgement: Judgement) -> Judged {
        Judged { unit, rows: Ok(vec![Row { canary: &COOKIES, promised: unit.promises(COOKIES.kept), judgement }]) }
    }

    fn seen() -> Judgement {
        Ok(Seen::Shared("it was\nthere".into()))
    }

    #[test]
    fn what_is_shared_leaks_only_where_it_is_promised_to_be_kept_apart() {
        let report = Report { units: vec![judged(Unit::Context, seen()), judged(Unit::Tab, seen())] };
        assert_eq!(report.leaks(), ["context: cookies"]);
        assert_eq!(
            report.text(),
            "context\tcookies\tapart\tLEAKS: it was there\ntab\tcookies\tshared\tshared: it was there\n1 leak: context: cookies.\n"
        );
        assert_eq!(report.document()["units"][0]["canaries"][0]["leaks"], true);
    }

    #[test]
    fn what_is_promised_and_was_not_judged_is_no_good_report() {
        let not_judged = || Err(NotJudged("no way to plant it".into()));
        let report = Report { units: vec![judged(Unit::Browser, not_judged()), judged(Unit::Tab, not_judged())] };
        let document = report.document();
        assert_eq!((&document["ok"], &document["unjudged"]), (&json!(false), &json!(["browser: cookies"])));
        assert_eq!(document["units"][0]["canaries"][0]["found"], "not_judged");
        let rows = ["browser\tcookies\tapart", "tab\tcookies\tshared"].map(|row| format!("{row}\tnot judged: no way to plant it\n"));
        let verdict = "Nothing was seen to leak. Whether these are kept apart, as is promised, could not be judged: browser: cookies.";
        assert_eq!(report.text(), format!("{}{verdict} Not judged: 1 canary.\n", rows.concat()));
        let leaking = Report { units: vec![judged(Unit::Browser, not_judged()), judged(Unit::Context, seen())] };
        assert!(leaking.text().contains("\n1 leak: context: cookies. Whether these"), "{}", leaking.text());
    }

    #[test]
    fn what_is_not_promised_may_go_unjudged() {
        let report = Report { units: vec![judged(Unit::Tab, Err(NotJudged("nobody may grant anything".into())))] };
        assert!(report.is_well());
        assert!(report.text().ends_with("\nNothing leaks that is promised to be kept apart. Not judged: 1 canary.\n"));
    }

    #[test]
    fn a_unit_that_failed_is_not_one_that_the_browser_lacks() {
        let failed = |code| Judged { unit: Unit::Window, rows: Err(Fault::new(code, "It did not start.", "")) };
        for (code, well) in [(Code::Unsupported, true), (Code::Timeout, false)] {
            let report = Report { units: vec![judged(Unit::Context, Ok(Seen::Apart)), failed(code)] };
            assert_eq!((report.is_well(), report.unjudged().is_empty()), (well, well));
        }
    }

    #[test]
    fn a_unit_that_cannot_be_tried_is_said_and_a_report_about_nothing_is_a_failure() {
        let refused = || Judged { unit: Unit::Window, rows: Err(Fault::new(Code::Unsupported, "No windows here.", "Use tabs.")) };
        let report = Report { units: vec![judged(Unit::Context, Ok(Seen::Apart)), refused()] };
        assert_eq!(report.nothing_judged(), None);
        assert!(report.text().contains("window\t-\t-\tnot judged: [unsupported] No windows here. Use tabs.\nNothing"));
        assert!(report.text().ends_with(" Not judged: window.\n"));
        assert_eq!(Report { units: vec![refused()] }.nothing_judged().map(|fault| fault.code), Some(Code::Unsupported));
    }
}
