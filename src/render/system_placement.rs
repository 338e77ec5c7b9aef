//! The place of system messages: in the list of messages, or in a member of the body (`system` in Anthropic).

use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::Json;
use crate::message::{Message, Role};
use crate::provider::DialectSpec;
use crate::replay::RequestDraft;

/// Where the system messages of a body are written.
pub struct SystemPlacement {
    /// The member of the body that holds system messages, and its value.
    pub member: Option<(&'static str, Json)>,
    /// The instructions, if they are a message of the list.
    pub instructions: Option<Message>,
    /// By index in the draft: true if the message is in the member.
    in_member: Vec<bool>,
}

impl SystemPlacement {
    /// Places the instructions and the system messages of a draft. Reports those that are moved before other messages.
    pub fn of(spec: &DialectSpec, draft: &RequestDraft<'_>, instructions: Option<&str>, report: &mut Report) -> Self {
        let instructions =
            instructions.filter(|text| !text.is_empty()).map(|text| Message::from_text(Role::System, text));
        let mut in_member = vec![false; draft.messages.len()];
        let mut messages = Vec::new();
        let is_listed = instructions.as_ref().is_some_and(|message| !spec.is_outside_list(message, true));
        if let Some(message) = instructions.as_ref().filter(|_| !is_listed) {
            messages.push(message);
        }
        let mut is_leading = true;
        for (item, in_member) in draft.messages.iter().zip(&mut in_member) {
            if spec.is_outside_list(item.message, is_leading) {
                if !is_leading {
                    let finding = Finding::info(
                        FindingCode::InterposedMessage,
                        "this dialect takes the system text apart from the messages; it is moved there",
                    );
                    report.push(finding.of_message(&item.message.id).with_action(Action::Moved));
                }
                messages.push(item.message);
                *in_member = true;
            }
            is_leading &= item.is_system();
        }
        let member = if messages.is_empty() { None } else { spec.system_member(&messages, report) };
        Self { member, instructions: instructions.filter(|_| is_listed), in_member }
    }

    /// Returns true if the message at an index of the draft is in the member.
    pub fn is_in_member(&self, index: usize) -> bool {
        self.in_member.get(index) == Some(&true)
    }
}
