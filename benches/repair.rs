//! The speed of native validation and repair, in MB/s: `cargo bench --bench repair`. W4 of `npm run bench` measures the
//! same in wasm.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a bench reads the clock, and its bodies are of the dialect

use rethread::message::Dialect;
use rethread::provider::{RepairOptions, repair, validate};
use rethread::render::convert;
use std::fmt::Write as _;
use std::time::Instant;

/// Returns a chat of `turns` turns with two calls each; without every third result if `broken`.
fn chat(turns: usize, broken: bool) -> String {
    let words = "the order of last week was shipped to the wrong street, and the invoice is open ".repeat(5);
    let mut body = String::from("{\"model\":\"m\",\"messages\":[");
    let mut results = 0;
    for turn in 0..turns {
        let _ = write!(
            body,
            "{{\"role\":\"user\",\"content\":\"{words}\"}},{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
        );
        for call in 0..2 {
            let comma = if call == 0 { "" } else { "," };
            let _ = write!(
                body,
                "{comma}{{\"id\":\"call_{turn}_{call}\",\"type\":\"function\",\"function\":{{\"name\":\"search\",\"arguments\":\"{{\\\"query\\\":\\\"orders of last week\\\",\\\"page\\\":{turn}}}\"}}}}"
            );
        }
        body.push_str("]},");
        for call in 0..2 {
            results += 1;
            if !(broken && results % 3 == 0) {
                let _ = write!(
                    body,
                    "{{\"role\":\"tool\",\"tool_call_id\":\"call_{turn}_{call}\",\"content\":\"{{\\\"rows\\\":[\\\"{words}\\\"]}}\"}},"
                );
            }
        }
        let _ = write!(body, "{{\"role\":\"assistant\",\"content\":\"{words}\"}},");
    }
    body.push_str("{\"role\":\"user\",\"content\":\"And now?\"}]}");
    body
}

fn speed(name: &str, bytes: usize, mut work: impl FnMut() -> usize) {
    let mut best = f64::MAX;
    let mut all = Vec::new();
    for round in 0..12 {
        let start = Instant::now();
        assert!(work() < usize::MAX);
        let took = start.elapsed().as_secs_f64();
        if round > 1 {
            best = best.min(took);
            all.push(took);
        }
    }
    all.sort_by(f64::total_cmp);
    let median = all.get(all.len() / 2).copied().unwrap_or(best);
    #[allow(clippy::cast_precision_loss)]
    let megabytes = bytes as f64 / 1e6;
    println!("{name:32} {:8.0} / {:.0} MB/s (median / best)", megabytes / median, megabytes / best);
}

/// Works on one body for a second, for a profiler: `cargo bench --bench repair -- FILE DIALECT
/// validate|repair|convert`.
fn profile(file: &str, dialect: &str, work: &str) {
    let body = std::fs::read(file).unwrap();
    let dialect = Dialect::ALL.into_iter().find(|known| known.as_str() == dialect).unwrap();
    let target = if dialect == Dialect::Anthropic { Dialect::OpenAiChat } else { Dialect::Anthropic };
    let (options, start, mut rounds) = (RepairOptions::default(), Instant::now(), 0);
    while start.elapsed().as_secs_f64() < 1.0 {
        rounds += 1;
        let findings = match work {
            "validate" => validate(&body, dialect).len(),
            "repair" => repair(&body, dialect, &options).map_or(0, |(_, report)| report.len()),
            _ => convert(&body, dialect, target, &options).map_or(0, |(_, report)| report.len()),
        };
        assert!(findings < usize::MAX);
    }
    println!("{:.2} ms a round", start.elapsed().as_secs_f64() * 1e3 / f64::from(rounds));
}

fn main() {
    let options = RepairOptions::default();
    let given: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [file, dialect, work] = given.as_slice() {
        return profile(file, dialect, work);
    }
    for turns in [200, 2_000] {
        let (good, bad) = (chat(turns, false), chat(turns, true));
        println!("{turns} turns, {:.2} MB", good.len() as f64 / 1e6);
        let chat = Dialect::OpenAiChat;
        speed("  validate", good.len(), || validate(good.as_bytes(), chat).len());
        speed("  repair, valid", good.len(), || repair(good.as_bytes(), chat, &options).unwrap().0.len());
        speed("  repair, broken", bad.len(), || repair(bad.as_bytes(), chat, &options).unwrap().0.len());
        speed("  convert to anthropic", good.len(), || {
            convert(good.as_bytes(), chat, Dialect::Anthropic, &options).map_or(0, |(body, _)| body.len())
        });
    }
}
