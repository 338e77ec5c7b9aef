//! How a request names what its owner's service keeps of the conversation.

use super::request::{RenderInput, RenderRequest};
use crate::json::{Json, JsonStr};
use crate::message::KeptHead;
use crate::owner::{Delta, StateOwner};
use crate::provider::{ServiceState, spec};

/// The members of a body by which the owner's service keeps the conversation.
#[derive(Debug)]
pub struct ServiceReference {
    /// The one that names what the service has, or says that the request begins a chain.
    pub member: Option<(&'static str, Json)>,
    /// True if the service has what precedes the messages of the body.
    pub continues: bool,
    /// The members that the body does not have, since the service keeps them.
    pub left_out: Vec<&'static str>,
    /// The members that the service keeps of the request that begins the chain: instructions, tools and others.
    pub kept_members: &'static [&'static str],
    /// What it keeps, if that is known.
    pub kept_head: Option<KeptHead>,
}

impl ServiceReference {
    /// Returns true if the service keeps other instructions, tools or parameters with the chain than those.
    pub fn keeps_other_than(&self, head: Option<KeptHead>) -> bool {
        self.kept_head.is_some() && self.kept_head != head
    }

    /// Returns true if the body does not have this member.
    pub fn leaves_out(&self, member: &str) -> bool {
        self.left_out.contains(&member)
    }

    /// Returns the reference of a request; `None` if it has none.
    pub fn of(input: &RenderInput<'_>, delta: Option<&Delta<'_>>, request: &RenderRequest<'_>) -> Option<Self> {
        let service = spec(request.provider.dialect).service_state.as_ref()?;
        if input.begins_chain {
            return begin(service);
        }
        let owner = input.owner;
        let start = match owner {
            StateOwner::Session | StateOwner::Caller => return None,
            StateOwner::Conversation { id } => {
                let reference = (service.conversation?, JsonStr::new(id).to_json());
                return Some(continued(service, reference));
            }
            StateOwner::BegunConversation { .. } => None,
            StateOwner::Response { previous, .. } => previous.as_deref(),
        };
        let is_replaced = delta.and_then(Delta::compaction).is_some_and(|compaction| owner.replaces_chain(compaction));
        match delta.and_then(Delta::response_id).or(start.filter(|_| !is_replaced)) {
            Some(id) => Some(Self {
                kept_members: service.chain.kept_members,
                kept_head: delta.and_then(Delta::kept_head),
                ..continued(service, (service.chain.member, (service.chain.continued)(id)))
            }),
            None => begin(service),
        }
    }
}

/// Returns the reference of a request that continues what the service has, of which nobody knows how it began.
fn continued(service: &ServiceState, member: (&'static str, Json)) -> ServiceReference {
    let labels = service.begun_conversation.iter().flat_map(|begun| begun.labels);
    ServiceReference {
        member: Some(member),
        continues: true,
        left_out: service.chain.kept_members.iter().chain(labels).copied().collect(),
        kept_members: &[],
        kept_head: None,
    }
}

fn begin(service: &ServiceState) -> Option<ServiceReference> {
    let member = service.chain.begun.map(|value| (service.chain.member, Json::trusted(value.to_owned())));
    let kept_members = service.chain.kept_members;
    let is_reference = member.is_some() || service.begun_conversation.is_some();
    is_reference.then_some(ServiceReference {
        member,
        continues: false,
        left_out: Vec::new(),
        kept_members,
        kept_head: None,
    })
}
