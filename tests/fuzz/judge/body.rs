//! Bodies: decoded, repaired, converted.

use super::drawn;
use rethread::finding::Severity;
use rethread::history::{History, JoinBase, Origin, join};
use rethread::id::{CountingIds, Seed};
use rethread::json::{Json, JsonRef};
use rethread::message::Dialect;
use rethread::provider::{Dangling, ProviderRequest, RepairOptions, Settings, decode_body, repair as mend, validate};
use rethread::render::{RenderRequest, Renderer, convert as turn};
use rethread::replay::{Policy, PolicyLayer};
use rethread::tool::Window;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(bytes: &[u8]) -> Option<JsonRef<'_>> {
    std::str::from_utf8(bytes).ok().and_then(|text| JsonRef::parse(text).ok())
}

fn options(number: u8) -> RepairOptions {
    match number % 3 {
        0 => RepairOptions::default(),
        1 => RepairOptions { dangling: Dangling::Omit, dangling_text: None },
        _ => RepairOptions { dangling: Dangling::Synthesize, dangling_text: Some("gone \u{1F600}\"".into()) },
    }
}

/// The provider accepts it.
fn accepted(body: &[u8], dialect: Dialect) {
    let errors: Vec<_> =
        validate(body, dialect).into_iter().filter(|found| found.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?} in {}", text(body));
}

/// Whatever is stored, every dialect's request is accepted, and the same history gives the same bytes.
pub fn decode(dialect: Dialect, data: &[u8]) {
    let Some(body) = json(data) else { return };
    let Ok(items) = decode_body(dialect, body) else { return };
    let mut history = History::new(Seed::default());
    let joined = join(JoinBase::history(&history), items, &Origin::default(), &CountingIds::default());
    joined.entries.into_iter().for_each(|entry| history.apply(entry));
    let call = PolicyLayer {
        freshness: Some(Window::Always),
        error_freshness: Some(Window::Always),
        ..PolicyLayer::default()
    };
    let policy = Policy { call, ..Policy::default() };
    for to in Dialect::ALL {
        let provider = ProviderRequest {
            dialect: to,
            url: "https://x.example".into(),
            params: Json::parse("{\"model\":\"m\"}").unwrap(),
            stream: false,
            headers: Vec::new(),
            settings: Settings::default(),
        };
        let request = RenderRequest { provider: &provider, instructions: None, tools: &[], policy: &policy };
        // Refused is a dialect that is not built, and nothing else is asked for here that could be.
        let Ok(rendered) = Renderer::default().render(&history, None, &request, 0) else { continue };
        accepted(&rendered.body, to);
        let again = Renderer::default().render(&history, None, &request, 0).expect("it was rendered before");
        assert_eq!(text(&rendered.body), text(&again.body));
    }
}

/// Repaired is accepted, and repairing again changes nothing; what is of another shape, or would lose every message, is
/// refused, with a finding that says so; what is accepted comes back byte for byte, and so does what is no JSON.
pub fn repair(data: &[u8]) {
    let [head, body @ ..] = data else { return };
    let (dialect, options) = (drawn(*head), options(head / 5));
    let found = validate(body, dialect);
    let wrong = found.iter().any(|found| found.severity == Severity::Error);
    let Ok((mended, report)) = mend(body, dialect, &options) else {
        assert!(wrong, "refused without a finding: {found:?}");
        return;
    };
    assert_eq!(
        wrong,
        report.iter().any(|found| found.severity == Severity::Error),
        "validate and repair differ: {report:?}"
    );
    if json(body).is_none() {
        assert!(wrong && mended == body, "what is no JSON was changed");
        return;
    }
    accepted(&mended, dialect);
    if wrong {
        assert_ne!(text(&mended), text(body), "an error without an edit: {report:?}");
    } else {
        assert_eq!(text(&mended), text(body), "an edit without an error");
    }
    let (twice, _) = mend(&mended, dialect, &options).expect("it was repaired before");
    assert_eq!(text(&twice), text(&mended), "repaired twice");
}

/// Converted is accepted by the target, and repairing first makes no difference.
pub fn convert(data: &[u8]) {
    let [head, body @ ..] = data else { return };
    let (from, to, options) = (drawn(*head), drawn(head / 5), options(head / 25));
    let Ok((made, _)) = turn(body, from, to, &options) else { return };
    if json(body).is_none() {
        assert!(from == to && made == body, "what is no JSON was converted");
        return;
    }
    accepted(&made, to);
    let (mended, _) = mend(body, from, &options).expect("it was converted");
    let (again, _) = turn(&mended, from, to, &options).expect("it was converted before it was repaired");
    assert_eq!(text(&again), text(&made), "repaired first");
}
