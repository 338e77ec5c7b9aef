//! Recorded conversations with real providers, as sessions: cut, concatenated, trimmed.

use crate::stored_histories::{Change, Piece, always, changed, check, fold, log_of, policy};
use proptest::prelude::*;
use proptest::sample::Index;
use rethread::message::Dialect;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Files larger than that are left to the other suites: every index of every one would take minutes.
const MOST: usize = 12_000;

fn corpora() -> PathBuf {
    std::env::var_os("RETHREAD_DATA")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpora").into(), PathBuf::from)
}

fn files(folder: &Path) -> Vec<Value> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json") && !path.ends_with("index.json"));
    files.sort();
    files.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}

/// The longest accepted request of each exchange, and the beginning of each trajectory.
fn conversations() -> &'static [(Dialect, Vec<Value>)] {
    static ALL: OnceLock<Vec<(Dialect, Vec<Value>)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        // Nothing of Mistral's conversations is recorded here, nor of Gemini's interactions.
        let is_recorded =
            |dialect: &Dialect| !matches!(dialect, Dialect::MistralConversations | Dialect::GeminiInteractions);
        for dialect in Dialect::ALL.into_iter().filter(is_recorded) {
            let name = match dialect {
                Dialect::Gemini => "contents",
                Dialect::OpenAiResponses => "input",
                _ => "messages",
            };
            for exchange in files(&corpora().join("exchanges").join(dialect.as_str())) {
                let accepted = exchange["steps"].as_array().unwrap().iter().filter(|step| step["status"] == 200);
                let lists = accepted.filter_map(|step| step["request"][name].as_array());
                all.extend(lists.max_by_key(|list| list.len()).map(|list| (dialect, list.clone())));
            }
        }
        for conversation in files(&corpora().join("trajectories")) {
            let list = conversation["messages"].as_array().unwrap();
            all.push((Dialect::OpenAiChat, list.iter().skip(1).take(24).cloned().collect()));
        }
        all.retain(|(_, list)| !list.is_empty() && Value::from(list.clone()).to_string().len() < MOST);
        assert!(all.len() > 150, "the recorded conversations are missing");
        all
    })
}

fn piece() -> impl Strategy<Value = Piece> {
    (any::<Index>(), any::<Index>(), any::<Index>(), 0_u64..900_000, any::<bool>()).prop_map(
        |(which, from, to, at, run)| {
            let (dialect, list) = which.get(conversations());
            let (from, to) = (from.index(list.len()), to.index(list.len()));
            Piece { dialect: *dialect, list: list[from.min(to)..=from.max(to)].to_vec(), at, run }
        },
    )
}

#[test]
fn r04_recorded_conversations_trimmed_at_every_index() {
    let mut count = 0;
    for (dialect, list) in conversations() {
        let log = log_of(&[Piece { dialect: *dialect, list: list.clone(), at: 1_000, run: false }], 0);
        // Every index of short ones, some of long ones.
        let step = log.len() / 12 + 1;
        for at in (0..=log.len()).step_by(step) {
            for part in [&log[at..], &log[..at]] {
                check(&fold(part), None, &always(), 2_000).unwrap();
                count += 1;
            }
        }
    }
    println!("{count} trimmed histories of {} conversations, in every dialect", conversations().len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r04_r41_recorded_fragments_of_several_dialects_truncated_and_shuffled(
        pieces in prop::collection::vec(piece(), 1..4), changes in super::changes(), policy in policy(), now in 0_u64..1_500_000,
    ) {
        let changes: Vec<Change> = changes;
        check(&fold(&changed(log_of(&pieces, 0), &changes)), None, &policy, now)?;
    }
}
