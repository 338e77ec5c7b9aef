//! What the answers of a turn add up to.

use crate::json::JsonStr;
use crate::message::Usage;

/// What a turn's answers add up to.
#[derive(Clone, Debug)]
pub(super) struct TurnTotals {
    /// The number of model calls.
    pub model_calls: u32,
    /// The sum of the token usage.
    pub usage: Option<Usage>,
    /// The text of the newest answer.
    pub text: JsonStr,
    /// The provider's id of the newest response.
    pub response_id: Option<String>,
    /// The provider's id of the conversation.
    pub conversation_id: Option<String>,
}

impl Default for TurnTotals {
    fn default() -> Self {
        Self { model_calls: 0, usage: None, text: JsonStr::new(""), response_id: None, conversation_id: None }
    }
}
