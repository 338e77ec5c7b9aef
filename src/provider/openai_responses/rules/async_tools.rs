//! Tools whose calls the model does not wait for (`"async":true`, OpenAI's guide "Async tool calling", 2026-11-10).
//! Such a call may be open, and its output may stand anywhere after it.

use crate::id::{IdMap, Seed};
use crate::json::JsonRef;
use crate::provider::rules::{Fields, Pairs};

/// The names of a body's asynchronous tools, each with its namespace.
pub(super) struct AsyncTools(IdMap<()>);

impl AsyncTools {
    /// Reads the tools of a body.
    pub fn of(list: Option<JsonRef<'_>>) -> Self {
        let mut tools = Self(IdMap::with_seed(Seed::default()));
        tools.add(list);
        tools
    }

    /// Adds the tools of an item.
    pub fn add(&mut self, list: Option<JsonRef<'_>>) {
        self.read(list, "");
    }

    fn read(&mut self, list: Option<JsonRef<'_>>, namespace: &str) {
        let Some(list) = list else { return };
        for tool in list.items() {
            let name = tool.text("name").unwrap_or_default();
            if is_marked(tool) {
                self.0.insert(Self::key(namespace, &name), ());
            }
            if namespace.is_empty() && tool.has_text("type", "namespace") {
                self.read(tool.get("tools"), &name);
            }
        }
    }

    fn key(namespace: &str, name: &str) -> String {
        format!("{namespace} {name}")
    }

    /// Returns true if a call need not be answered: it says so itself, or else its tool does.
    pub fn allow_open(&self, call: &Fields<'_>) -> bool {
        if call.find("async").is_some() {
            return is_marked(call.object);
        }
        if self.0.count() == 0 {
            return false;
        }
        let namespace = call.text("namespace").unwrap_or_default();
        self.0.contains_key(&Self::key(&namespace, &call.text("name").unwrap_or_default()))
    }
}

fn is_marked(value: JsonRef<'_>) -> bool {
    value.find("async").and_then(JsonRef::as_bool) == Some(true)
}

/// An output that names its tool and not its call: `"call_id":null` (openai 7.57.0, `FunctionCallOutput`).
pub(super) struct NamedOutput {
    pub name: String,
    /// The number of calls before it.
    pub calls_before: usize,
}

/// Counts open calls as answered by the outputs that name their tools. The newest open call of a tool is answered
/// first.
pub(super) fn pair_named_outputs(pairs: &mut Pairs<'_>, outputs: &[NamedOutput]) {
    if outputs.is_empty() {
        return;
    }
    let mut open: IdMap<Vec<usize>> = IdMap::with_seed(Seed::default());
    let mut answered = Vec::new();
    let mut next = 0;
    for output in outputs {
        for (index, call) in pairs.calls.iter().enumerate().take(output.calls_before).skip(next) {
            if call.lacks_result() {
                open.get_or_insert(&call.value.text("name").unwrap_or_default(), Vec::new()).push(index);
            }
        }
        next = next.max(output.calls_before);
        answered.extend(open.get_mut(&output.name).and_then(Vec::pop));
    }
    for index in answered {
        if let Some(call) = pairs.calls.get_mut(index) {
            call.may_stay_open = true;
        }
    }
}
