//! The body that an application's filter returned (R24): items of the composed body, some of them dropped, moved or
//! changed.

use super::item_matcher::{ItemMatcher, ItemOrigin, belongs_to_call, invalid_item, match_equal};
use crate::error::{Error, ErrorCode, Result};
use crate::finding::Severity;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, ObjectWriter};
use crate::message::Dialect;
use crate::provider::{Parameter, ServiceState, spec, validate, withhold};
use std::collections::BTreeSet;

/// An item in the list of a composed body, for a service that keeps the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ComposedItem {
    /// The item.
    pub json: Json,
    /// The id of its message; `None` if the item is no stored or live message.
    pub message: Option<String>,
    /// True for the result of a call that the service has.
    pub is_result_of_acknowledged_call: bool,
}

/// A composed body, before an application's filter.
#[derive(Clone, Debug)]
pub struct FilterableBody {
    dialect: Dialect,
    body: Json,
    /// The body without credentials, as the filter gets it.
    redacted: Json,
    /// The items of the list, if a service keeps the conversation.
    composed_items: Option<Vec<ComposedItem>>,
}

/// What the filter of the application got and returned.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyFilterReply {
    /// The body that the filter got, as JavaScript writes it: `output` is compared with it, since JavaScript may change
    /// digits and escapes.
    pub input: Json,
    /// What the filter returned.
    pub output: Json,
}

/// A filtered body.
#[derive(Clone, Debug, PartialEq)]
pub struct FilteredBody {
    /// UTF-8 JSON, in which what the filter did not change has the bytes of the composed body; `None` if it changed
    /// nothing.
    pub body: Option<Vec<u8>>,
    /// The ids of the messages that the filter held back from a service that keeps the conversation.
    pub held_back: Vec<String>,
}

impl FilterableBody {
    /// Prepares a composed body. `composed_items` are the items of its list, if a service keeps the conversation.
    ///
    /// # Errors
    /// `internal` if it is not JSON, which a composed body always is.
    pub fn new(dialect: Dialect, body: &[u8], composed_items: Option<Vec<ComposedItem>>) -> Result<Self> {
        let text = std::str::from_utf8(body).ok().and_then(|text| Json::parse(text).ok());
        let body = text.ok_or_else(|| Error::new(ErrorCode::Internal, "the composed body is not JSON"))?;
        Ok(Self { dialect, redacted: without_credentials(dialect, &body), body, composed_items })
    }

    /// Returns the body that the filter gets: without credentials.
    #[must_use]
    pub fn redacted(&self) -> &Json {
        &self.redacted
    }

    /// Returns the body that is sent instead.
    ///
    /// # Errors `callback_failed` if the filter returned no object, `state_owner_conflict` if it changed the reference
    /// to what the service keeps, `invalid_input` with the `path` of the item if it added items, duplicated one, or
    /// returned what the provider rejects.
    pub fn apply(&self, reply: &BodyFilterReply) -> Result<FilteredBody> {
        let (input, output) = (reply.input.view(), reply.output.view());
        if !output.is_object() {
            let message = "`inputFilter` must return the body that is sent, an object";
            return Err(Error::new(ErrorCode::CallbackFailed, message));
        }
        if input.has_same_fingerprint(output) {
            return Ok(FilteredBody { body: None, held_back: Vec::new() });
        }
        self.check_members(input, output)?;
        let list = spec(self.dialect).items.list;
        let items = output.get(list).filter(|list| list.kind() == JsonKind::Array);
        let items: Vec<JsonRef<'_>> = items.map(|items| items.items().collect()).unwrap_or_default();
        let has_items = self.items().next().is_some();
        if items.is_empty() && has_items {
            return Err(invalid_item(&format!("/{list}"), "`inputFilter` must return at least one item of the list"));
        }
        let input_items: Vec<JsonRef<'_>> = input.get(list).map(|list| list.items().collect()).unwrap_or_default();
        let matcher = ItemMatcher { dialect: self.dialect, requires_exact_match: self.composed_items.is_some() };
        let origins = matcher.origins(&input_items, &items)?;
        let held_back = self.held_back(&origins)?;
        let body = self.compose(input, output, &|array| {
            let body_items: Vec<JsonRef<'_>> = self.items().collect();
            for (item, origin) in items.iter().zip(&origins) {
                let unchanged = origin.is_unchanged.then(|| body_items.get(origin.index)).flatten();
                array.item().push_str(unchanged.unwrap_or(item).as_raw());
            }
        });
        self.check_rules(&body)?;
        Ok(FilteredBody { body: Some(body.as_str().as_bytes().to_vec()), held_back })
    }

    fn items(&self) -> impl Iterator<Item = JsonRef<'_>> {
        self.body.view().get(spec(self.dialect).items.list).into_iter().flat_map(JsonRef::items)
    }

    /// Checks the members beside the list that a filter may not change.
    fn check_members(&self, input: JsonRef<'_>, output: JsonRef<'_>) -> Result<()> {
        let spec = spec(self.dialect);
        let is_changed = |name: &str| match (input.get(name), output.get(name)) {
            (None, None) => false,
            (Some(input), Some(output)) => !input.has_same_fingerprint(output),
            _ => true,
        };
        if let Some(name) = spec.service_state.iter().flat_map(ServiceState::members).find(|name| is_changed(name)) {
            let message = format!(
                "`inputFilter` changed `{name}`, which names what the service keeps of the conversation; the option `owner` of the session sets it"
            );
            return Err(Error::new(ErrorCode::StateOwnerConflict, message).with(|details| {
                details.text("path", &format!("/{name}"));
            }));
        }
        let kept = spec.service_state.iter().flat_map(|service| service.members_of_chain(self.body.view()));
        if let Some(name) = kept.copied().find(|name| output.get(name).is_some()) {
            let message = "`inputFilter` must not add this member to a request that continues a chain of responses: the service keeps the one of the \
                           request that began it, and refuses another one";
            return Err(invalid_item(&format!("/{name}"), message));
        }
        if let Some(name) = spec.parameters.place(Parameter::Stream).filter(|name| is_changed(name)) {
            let message = "`inputFilter` must leave this member as it is; the option `provider.stream` sets it";
            return Err(invalid_item(&format!("/{name}"), message));
        }
        let store = spec.parameters.place(Parameter::Store).filter(|name| is_changed(name));
        if let Some(name) = store.filter(|_| self.composed_items.is_some()) {
            let message =
                "`inputFilter` must leave this member as it is: it decides whether the service keeps the response";
            return Err(invalid_item(&format!("/{name}"), message));
        }
        for (key, value) in self.body.view().entries() {
            let name = key.as_text().unwrap_or_default();
            let is_withheld = self.redacted.view().get(&name).is_none_or(|seen| seen.as_raw() != value.as_raw());
            if is_withheld && is_changed(&name) && output.get(&name).is_some() {
                let message = "`inputFilter` must leave this member as it is: it contains credentials, which the filter does not get";
                return Err(invalid_item(&format!("/{name}"), message));
            }
        }
        Ok(())
    }

    /// Writes the filtered body. The members have the order of the composed one; new ones follow.
    fn compose(&self, input: JsonRef<'_>, output: JsonRef<'_>, write_items: &dyn Fn(&mut ArrayWriter<'_>)) -> Json {
        let list = spec(self.dialect).items.list;
        let composed = self.body.view();
        ObjectWriter::build(|out| {
            for (key, value) in composed.entries() {
                let name = key.as_text().unwrap_or_default();
                if name == list {
                    out.array(list, |array| write_items(array));
                } else if let Some(new) = output.get(&name) {
                    let is_unchanged = input.get(&name).is_some_and(|input| input.has_same_fingerprint(new));
                    out.copy(key, if is_unchanged { value } else { new });
                } else if input.get(&name).is_none() {
                    // Withheld from the filter as a whole.
                    out.copy(key, value);
                }
            }
            for (key, value) in output.entries() {
                if composed.get(&key.as_text().unwrap_or_default()).is_none() {
                    out.copy(key, value);
                }
            }
        })
    }

    /// Rejects a body that breaks a rule of its dialect.
    fn check_rules(&self, body: &Json) -> Result<()> {
        let findings = validate(body.as_str().as_bytes(), self.dialect);
        let Some(finding) = findings.iter().find(|finding| finding.severity == Severity::Error) else { return Ok(()) };
        let (path, rule) = (finding.path.as_deref().unwrap_or_default(), finding.code.as_str());
        let message = format!("`inputFilter` returned a body that the provider rejects ({rule}): {}", finding.message);
        Err(invalid_item(path, &message))
    }

    /// Returns the ids of the messages without any returned item.
    ///
    /// # Errors `invalid_input` if a call or a result is held back without its message: the service would wait for the
    /// result, or not know the call; and if a summary is held back, which is no message that could be sent later.
    fn held_back(&self, origins: &[ItemOrigin]) -> Result<Vec<String>> {
        let Some(composed_items) = &self.composed_items else { return Ok(Vec::new()) };
        let body_items: Vec<JsonRef<'_>> = self.items().collect();
        let message_items: Vec<JsonRef<'_>> = composed_items.iter().map(|item| item.json.view()).collect();
        let matches = match_equal(&message_items, &body_items);
        let kept: BTreeSet<usize> = origins.iter().map(|origin| origin.index).collect();
        let item_at = |at: usize| matches.get(at).copied().flatten().and_then(|item| composed_items.get(item));
        let kept_messages: BTreeSet<&str> =
            kept.iter().filter_map(|at| item_at(*at)).filter_map(|item| item.message.as_deref()).collect();
        let mut held_back = BTreeSet::new();
        for (at, item) in body_items.iter().enumerate().filter(|(at, _)| !kept.contains(at)) {
            let origin = item_at(at);
            let message = origin.and_then(|origin| origin.message.as_deref());
            let is_partial = message.is_none_or(|message| kept_messages.contains(message));
            let needs_all = origin
                .is_some_and(|origin| origin.is_result_of_acknowledged_call || origin.message.is_none())
                || is_partial && belongs_to_call(self.dialect, *item);
            if needs_all {
                let path = format!("/{}/{at}", spec(self.dialect).items.list);
                let message = "`inputFilter` holds back what the service needs: a result that it waits for, a summary, or a call without the \
                    rest of its message; hold back whole messages with their calls and results";
                return Err(invalid_item(&path, message));
            }
            if let Some(message) = message.filter(|_| !is_partial) {
                held_back.insert(message);
            }
        }
        Ok(held_back.into_iter().map(ToOwned::to_owned).collect())
    }
}

/// Returns a body without the credentials that its members beside the list contain.
fn without_credentials(dialect: Dialect, body: &Json) -> Json {
    let list = spec(dialect).items.list;
    let members = ObjectWriter::build(|out| out.copy_all(body.view(), list));
    let withheld = withhold(dialect, &members);
    if withheld.members.is_empty() {
        return body.clone();
    }
    ObjectWriter::build(|out| {
        withheld.params.view().entries().for_each(|(key, value)| out.copy(key, value));
        if let Some(items) = body.view().get(list) {
            out.json(list, items);
        }
    })
}
