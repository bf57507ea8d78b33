//! Whether an answer is the right one. An answer that names another page or another number is wrong, however fast it came.

use super::pages::Page;

/// How pictures begin in base64.
pub(super) const JPEG: &str = "/9j/";
const PNG: &str = "iVBORw0KGgo";

/// One question with its only right answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question {
    Navigate(Page),
    /// The page's title and the sum of two numbers, so that no answer fits two questions.
    Evaluate {
        page: Page,
        number: u64,
    },
    Screenshot,
}

impl Question {
    /// The script of an evaluation; its text does not hold its value, which some peers repeat.
    pub(super) fn expression(number: u64) -> String {
        format!("document.title + ' sum ' + ({number} + 1)")
    }

    pub(super) fn is_answered_by(self, answer: &str) -> bool {
        match self {
            Self::Navigate(page) => answer.contains(&page.path()),
            Self::Evaluate { page, number } => {
                let value = format!("{page} sum {}", number + 1);
                // The number must end there: 1 is no answer where 10 is meant.
                answer.match_indices(&value).any(|(at, _)| !answer[at + value.len()..].starts_with(|c: char| c.is_ascii_digit()))
            }
            Self::Screenshot => answer.contains(JPEG) || answer.contains(PNG),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page { agent: 1, visit: 2 };

    /// Recorded from each contender, shortened.
    const EVALUATED: [&str; 4] = [
        r#"{"content":[{"type":"text","text":"\"agent-1 visit-2 sum 8\""}]}"#,
        r#"{"content":[{"type":"text","text":"Result\n\"agent-1 visit-2 sum 8\"\nRan Playwright code\n```js\nawait page.evaluate('() => document.title + \\' sum \\' + (7 + 1)');\n```"}]}"#,
        r#"{"content":[{"type":"text","text":"Script ran on page and returned:\n```json\n\"agent-1 visit-2 sum 8\"\n```"}]}"#,
        "\"agent-1 visit-2 sum 8\"\n",
    ];

    #[test]
    fn a_value_is_right_only_for_its_page_and_its_number() {
        for answer in EVALUATED {
            assert!(Question::Evaluate { page: PAGE, number: 7 }.is_answered_by(answer), "{answer}");
            assert!(!Question::Evaluate { page: PAGE, number: 8 }.is_answered_by(answer), "{answer}");
            assert!(!Question::Evaluate { page: Page { visit: 1, ..PAGE }, number: 7 }.is_answered_by(answer), "{answer}");
        }
        assert!(!Question::Evaluate { page: PAGE, number: 0 }.is_answered_by("\"agent-1 visit-2 sum 10\""));
        let echoed = Question::expression(7);
        assert!(!Question::Evaluate { page: PAGE, number: 7 }.is_answered_by(&echoed), "the script is not its value");
    }

    #[test]
    fn a_navigation_names_its_page_and_a_screenshot_is_a_picture() {
        let navigated = r#"{"content":[{"text":"Navigated to http://127.0.0.1:1/agent-1/visit-2.html"}]}"#;
        assert!(Question::Navigate(PAGE).is_answered_by(navigated));
        assert!(!Question::Navigate(Page { visit: 22, ..PAGE }).is_answered_by(navigated));
        assert!(Question::Screenshot.is_answered_by(r#"{"type":"image","data":"/9j/4AAQ"}"#));
        assert!(Question::Screenshot.is_answered_by(r#"{"data":"iVBORw0KGgoAAAA"}"#));
        assert!(!Question::Screenshot.is_answered_by(navigated));
    }
}
