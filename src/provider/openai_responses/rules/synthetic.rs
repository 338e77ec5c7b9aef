//! Outputs for calls that have none.

use crate::provider::rules::{WireCall, quoted};

/// Returns an output that closes a call. `text` is its content as a JSON string.
pub(super) fn output(call: &WireCall<'_>, text: &str) -> String {
    let (output_type, id_member) = match &*call.label {
        "tool_search_call" => ("tool_search_output".into(), "call_id"),
        "mcp_approval_request" => ("mcp_approval_response".into(), "approval_request_id"),
        call_type => (format!("{call_type}_output"), "call_id"),
    };
    let mut out = format!("{{\"type\":\"{output_type}\",\"{id_member}\":{}", quoted(&call.new_id));
    // The output of a call that a program made names the program, too.
    if let Some(caller) = call.value.find("caller").filter(|caller| caller.has_text("type", "program")) {
        out += &format!(",\"caller\":{}", caller.as_raw());
    }
    match &*call.label {
        "tool_search_call" => out += ",\"execution\":\"client\",\"tools\":[]}",
        "mcp_approval_request" => out += ",\"approve\":false}",
        "shell_call" => {
            let outcome = "\"outcome\":{\"type\":\"exit\",\"exit_code\":1}";
            out += &format!(",\"output\":[{{\"stdout\":\"\",\"stderr\":{text},{outcome}}}]}}");
        }
        "apply_patch_call" => out += &format!(",\"status\":\"failed\",\"output\":{text}}}"),
        _ => out.extend([",\"output\":", text, "}"]),
    }
    out
}
