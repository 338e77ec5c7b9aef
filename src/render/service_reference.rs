//! How a request names what its owner's service keeps of the conversation.

use super::request::{RenderInput, RenderRequest};
use crate::json::{Json, JsonStr};
use crate::message::KeptHead;
use crate::owner::{Delta, StateOwner};
use crate::provider::{ServiceState, spec};

/// The member of a body that names what the owner's service keeps.
#[derive(Debug)]
pub struct ServiceReference {
    pub member: &'static str,
    pub value: Json,
    /// True if the service has what precedes the messages of the body.
    pub continues: bool,
    /// The members that the body does not have, since the service keeps them.
    pub left_out: &'static [&'static str],
    /// True if the service keeps the instructions and tools of the request that begins the chain.
    pub keeps_head: bool,
    /// What it keeps, if that is known.
    pub kept_head: Option<KeptHead>,
}

impl ServiceReference {
    /// Returns true if the service keeps other instructions or tools with the chain than those.
    pub fn keeps_other_than(&self, head: Option<KeptHead>) -> bool {
        self.kept_head.is_some() && self.kept_head != head
    }

    /// Returns the reference of a request; `None` if it has none.
    pub fn of(input: &RenderInput<'_>, delta: Option<&Delta<'_>>, request: &RenderRequest<'_>) -> Option<Self> {
        let service = spec(request.provider.dialect).service_state.as_ref()?;
        if input.begins_chain {
            return begin(service);
        }
        let owner = input.owner;
        match owner {
            StateOwner::Session | StateOwner::Caller => None,
            StateOwner::Conversation { id } => Some(Self {
                member: service.conversation?,
                value: JsonStr::new(id).to_json(),
                continues: true,
                left_out: &[],
                keeps_head: false,
                kept_head: None,
            }),
            StateOwner::Response { previous, .. } => {
                let is_replaced =
                    delta.and_then(Delta::compaction).is_some_and(|compaction| owner.replaces_chain(compaction));
                let start = previous.as_deref().filter(|_| !is_replaced);
                match delta.and_then(Delta::response_id).or(start) {
                    Some(id) => Some(Self {
                        member: service.chain.member,
                        value: (service.chain.continued)(id),
                        continues: true,
                        left_out: service.chain.kept_members,
                        keeps_head: service.keeps_head(),
                        kept_head: delta.and_then(Delta::kept_head),
                    }),
                    None => begin(service),
                }
            }
        }
    }
}

fn begin(service: &ServiceState) -> Option<ServiceReference> {
    let value = Json::trusted(service.chain.begun?.to_owned());
    Some(ServiceReference {
        member: service.chain.member,
        value,
        continues: false,
        left_out: &[],
        keeps_head: service.keeps_head(),
        kept_head: None,
    })
}
