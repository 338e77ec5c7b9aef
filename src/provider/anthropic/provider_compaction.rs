//! Anthropic's compaction on demand: a request with `"compaction":{"type":"summarize"}` is answered by a signed
//! `compaction` block alone, which stands for all messages of the request.
//!
//! Sources: the documentation ("Compaction on demand", "Compaction and preserved thinking", beta compact-2026-09-04,
//! read 2026-11) and `@anthropic-ai/sdk` 1.12.0 (`BetaSummarizeCompaction`, `BetaCompactionBlock`). No recorded
//! exchange has one.

use crate::json::{Json, JsonKind, JsonRef, ObjectWriter};
use crate::provider::spec::{ProviderCompaction, ProviderSummary};

const COMPACTION: &str = "compaction";

pub(super) const PROVIDER_COMPACTION: ProviderCompaction = ProviderCompaction {
    params,
    members: None,
    header: Some(("anthropic-beta", "compact-2026-09-04")),
    begins_list: true,
    stands_for_earlier,
    repeats_earlier,
    read,
};

/// A signed block with content is the first of the conversation. Before one without a signature, of an earlier beta,
/// the service itself leaves out what it stands for.
fn stands_for_earlier(block: JsonRef<'_>) -> bool {
    block.has_text("type", COMPACTION)
        && block.find("signature").is_some()
        && block.find("content").is_some_and(|content| content.kind() == JsonKind::String)
}

/// Without content, readable or encrypted, the block stands for nothing.
fn repeats_earlier(block: JsonRef<'_>) -> bool {
    let has_content = || ["content", "encrypted_content"].iter().any(|member| block.find(member).is_some());
    block.has_text("type", COMPACTION) && has_content()
}

/// "Cannot be combined with `context_management`."
fn params(params: JsonRef<'_>) -> Json {
    ObjectWriter::build(|out| {
        for (key, value) in params.entries() {
            if !key.is_text(COMPACTION) && !key.is_text("context_management") {
                out.copy(key, value);
            }
        }
        out.raw(COMPACTION, "{\"type\":\"summarize\"}");
    })
}

/// A block whose `content` is null says that there is no summary: the service treats it as absent.
fn read(answer: JsonRef<'_>) -> ProviderSummary {
    let mut blocks = answer.find("content").into_iter().flat_map(JsonRef::items);
    let (Some(block), None) = (blocks.next(), blocks.next()) else { return ProviderSummary::Unknown };
    if !block.has_text("type", COMPACTION) || !answer.has_text("stop_reason", COMPACTION) {
        return ProviderSummary::Unknown;
    }
    match block.find("content") {
        None => ProviderSummary::Nothing,
        Some(content) if !content.is_text("") && stands_for_earlier(block) => {
            ProviderSummary::Items(vec![block.to_owned()])
        }
        Some(_) => ProviderSummary::Unknown,
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn r78_only_one_compaction_block_is_a_summary() {
        let read = |text: &str| read(JsonRef::parse(text).unwrap());
        let answer = |content: &str| format!(r#"{{"type":"message","stop_reason":"compaction","content":{content}}}"#);
        let block = r#"{"type":"compaction","content":"They said hello.","encrypted_content":null,"signature":"sig"}"#;
        let items = ProviderSummary::Items(vec![Json::parse(block).unwrap()]);
        assert_eq!(read(&answer(&format!("[{block}]"))), items);
        assert_eq!(read(&answer(r#"[{"type":"compaction","content":null}]"#)), ProviderSummary::Nothing);
        for wrong in [
            "[]".to_owned(),
            format!("[{block},{block}]"),
            r#"[{"type":"text","text":"They said hello."}]"#.to_owned(),
            r#"[{"type":"compaction","content":"","signature":"sig"}]"#.to_owned(),
            r#"[{"type":"compaction","content":5,"signature":"sig"}]"#.to_owned(),
            r#"[{"type":"compaction","content":"Unsigned."}]"#.to_owned(),
            "\"They said hello.\"".to_owned(),
        ] {
            assert_eq!(read(&answer(&wrong)), ProviderSummary::Unknown, "{wrong}");
        }
        let cut = format!(r#"{{"type":"message","stop_reason":"max_tokens","content":[{block}]}}"#);
        for wrong in [cut.as_str(), "{}", "5", r#"{"type":"error","error":{"type":"api_error"}}"#] {
            assert_eq!(read(wrong), ProviderSummary::Unknown, "{wrong}");
        }
    }
}
