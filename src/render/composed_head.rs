//! The members of a body before its messages.

use super::called_tools::called_tools;
use super::checked_head::{check_head, sent_member};
use super::encoded_text::member_hash;
use super::encoding_cache::{EncodingCache, HeadTexts};
use super::prefix_ledger::HeadHashes;
use super::request::RenderRequest;
use super::service_reference::ServiceReference;
use super::system_placement::SystemPlacement;
use crate::error::Result;
use crate::finding::Report;
use crate::id::hash_words;
use crate::json::{Json, JsonRef, ObjectWriter};
use crate::message::KeptHead;
use crate::provider::{DialectSpec, ProviderRequest, TOOLS, ToolDefinition, spec};
use crate::replay::RequestDraft;
use std::borrow::Cow;
use std::rc::Rc;

/// The members of a body before its messages.
pub struct ComposedHead {
    spec: &'static DialectSpec,
    /// An object that is not closed.
    text: String,
    tools: Option<Json>,
    pub system: SystemPlacement,
    /// All members, if the rules repaired them.
    repaired: Option<Rc<Json>>,
}

/// The members of a body that precede its messages in the comparison.
pub struct HeadMembers<'b> {
    /// The value of the member with the instructions.
    pub instructions: Option<JsonRef<'b>>,
    /// The instructions, where they are a message of the list.
    pub listed: Option<&'b str>,
    pub tools: Option<JsonRef<'b>>,
    pub agent: Option<&'b str>,
    /// All of them, if the rules repaired them.
    pub repaired: Option<JsonRef<'b>>,
}

impl ComposedHead {
    /// Composes the head of a draft's body.
    ///
    /// # Errors
    /// `config_invalid` if the request's parameters or tools are invalid.
    pub fn new(
        draft: &RequestDraft<'_>,
        request: &RenderRequest<'_>,
        cache: &mut EncodingCache,
        report: &mut Report,
    ) -> Result<Self> {
        let spec = spec(request.provider.dialect);
        let mut text = String::new();
        let mut object = ObjectWriter::new(&mut text);
        let tools = request.provider.write_head(&mut object, &sent_tools(spec, draft, request), report)?;
        let system = SystemPlacement::of(spec, draft, request.instructions, report);
        if let Some((name, value)) = &system.member {
            object.json(name, value.view());
        }
        let repaired = check_head(&mut text, request.provider, cache, report);
        Ok(Self { spec, text, tools, system, repaired })
    }

    /// Returns the members that are compared. `agent` is the one that the request is of.
    pub fn members<'b>(&'b self, request: &RenderRequest<'b>, agent: Option<&'b str>) -> HeadMembers<'b> {
        let repaired = self.repaired.as_deref().map(Json::view);
        let system = self.system.member.as_ref();
        HeadMembers {
            instructions: system.and_then(|(name, value)| sent_member(name, value, repaired)),
            listed: request.instructions,
            tools: repaired.map_or(self.tools.as_ref().map(Json::view), |body| self.spec.tools.list_in(body)),
            agent,
            repaired,
        }
    }

    /// Returns hashes of the instructions, tools and parameters that a service keeps with the chain which the
    /// request begins or continues; none if it keeps none. `agent` is the one that the request is of.
    pub fn kept(
        &self,
        reference: Option<&ServiceReference>,
        (request, agent): (&RenderRequest<'_>, Option<&str>),
        cache: &mut EncodingCache,
    ) -> Option<KeptHead> {
        let kept_members = reference.map(|reference| reference.kept_members).filter(|members| !members.is_empty())?;
        let HeadHashes { instructions, tools } =
            self.members(request, agent).hashes(self.spec, request.provider, cache);
        Some(KeptHead { instructions, tools, parameters: self.parameters_hash(kept_members) })
    }

    /// Returns a hash of these members, without instructions and tools; 0 if there are no others.
    fn parameters_hash(&self, members: &[&str]) -> u64 {
        let system = self.spec.system.as_ref().map(|system| system.name);
        let is_other = |name: &&&str| **name != TOOLS && Some(**name) != system;
        let others: Vec<&str> = members.iter().filter(is_other).copied().collect();
        if others.is_empty() {
            return 0;
        }
        let closed = Json::trusted(format!("{}}}", self.text));
        let values: Vec<&str> = others.iter().map(|name| closed.view().get(name).map_or("", JsonRef::as_raw)).collect();
        hash_words(3, values.join(",").as_bytes())
    }

    /// Returns the text up to the first message.
    pub fn text(&self, reference: Option<&ServiceReference>) -> String {
        let mut text = match reference.filter(|reference| !reference.left_out.is_empty()) {
            Some(reference) => self.without(&reference.left_out),
            None => self.text.clone(),
        };
        let mut object = ObjectWriter::resume(&mut text);
        for (member, value) in reference.iter().filter_map(|reference| reference.member.as_ref()) {
            object.json(member, value.view());
        }
        object.key(self.spec.items.list).push('[');
        text
    }

    /// Returns the text without some members.
    fn without(&self, left_out: &[&str]) -> String {
        let closed = Json::trusted(format!("{}}}", self.text));
        let mut text = String::new();
        let mut object = ObjectWriter::new(&mut text);
        for (key, value) in closed.view().entries() {
            if !left_out.iter().any(|name| key.is_text(name)) {
                object.copy(key, value);
            }
        }
        text
    }
}

impl HeadMembers<'_> {
    /// Returns hashes of the texts.
    pub fn texts(&self, provider: &ProviderRequest) -> HeadTexts {
        let hash = |text: &str| hash_words(3, text.as_bytes());
        HeadTexts {
            instructions: hash(self.instructions.map(JsonRef::as_raw).or(self.listed).unwrap_or_default()),
            tools: hash(self.tools.map(JsonRef::as_raw).unwrap_or_default()),
            model: hash(provider.maker().model.as_deref().unwrap_or_default()),
            agent: hash(self.agent.unwrap_or_default()),
        }
    }

    /// Returns the hashes of what providers compare.
    pub fn hashes(&self, spec: &DialectSpec, provider: &ProviderRequest, cache: &mut EncodingCache) -> HeadHashes {
        let texts = self.texts(provider);
        HeadHashes {
            instructions: cache.member_hash(0, texts.instructions, &mut || member_hash(spec, self.instructions)),
            tools: cache.member_hash(1, texts.tools, &mut || member_hash(spec, self.tools)),
        }
    }
}

/// Returns the tools that the head lists: those of the request, or where calls require tools those that were called.
fn sent_tools<'t>(
    spec: &DialectSpec,
    draft: &RequestDraft<'_>,
    request: &'t RenderRequest<'_>,
) -> Cow<'t, [ToolDefinition]> {
    let required = spec.body.required_with_calls.map(|_| called_tools(draft, request));
    required.filter(|tools| !tools.is_empty()).map_or(Cow::Borrowed(request.tools), Cow::Owned)
}
