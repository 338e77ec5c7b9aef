//! Where the parts of a body's messages are, for those that another dialect does not take (R42).

use super::neutral::rejected_media;
use super::registry::spec;
use super::spec::DialectSpec;
use crate::history::{Incoming, IncomingPart};
use crate::json::{JsonKind, JsonRef};
use crate::message::{Dialect, Part, Role};

/// Returns true for a part of a kind, in a message of that role.
pub type PartKind<'k> = &'k dyn Fn(Role, &Part) -> bool;

/// The members of an item that hold its blocks.
const BLOCK_LISTS: [&str; 2] = ["content", "parts"];

/// Returns the JSON pointers of the parts that a predicate holds for, in the order of the messages: of the block, or of
/// the item if its blocks are not its parts.
pub fn part_places(body: JsonRef<'_>, dialect: Dialect, is_of_kind: PartKind<'_>) -> Vec<String> {
    let spec = spec(dialect);
    let name = spec.items.list;
    let (list, path) = match body.kind() {
        JsonKind::Array => (body, String::new()),
        _ => (body.find(name).unwrap_or_default(), format!("/{name}")),
    };
    let mut places = Vec::new();
    if let Some(system) = &spec.system {
        let decoded: Vec<Incoming> = (system.decode)(body).into_iter().collect();
        let value = body.find(system.name).unwrap_or_default();
        push_places(&mut places, spec, (value, &format!("/{}", system.name)), (&decoded, is_of_kind));
    }
    for (at, item) in list.items().enumerate() {
        let mut decoded = Vec::new();
        spec.messages.decode(&[item], &mut decoded);
        push_places(&mut places, spec, (item, &format!("{path}/{at}")), (&decoded, is_of_kind));
    }
    places
}

/// Adds the places of parts that were decoded from an item, or from the member that holds system messages.
fn push_places(
    places: &mut Vec<String>,
    spec: &DialectSpec,
    (item, path): (JsonRef<'_>, &str),
    (decoded, is_of_kind): (&[Incoming], PartKind<'_>),
) {
    let roles: Vec<Role> = decoded.iter().flat_map(|item| roles_of(item, is_of_kind)).collect();
    let Some(role) = roles.first().copied() else { return };
    let (list, list_path) = match item.kind() {
        JsonKind::Array => (item, path.to_owned()),
        _ => BLOCK_LISTS
            .into_iter()
            .find_map(|name| Some((item.find(name)?, format!("{path}/{name}"))))
            .unwrap_or_default(),
    };
    let blocks: Vec<String> = list
        .items()
        .enumerate()
        .filter(|(_, block)| is_of_kind(role, &spec.messages.decode_block(*block)))
        .map(|(at, _)| format!("{list_path}/{at}"))
        .collect();
    if blocks.len() == roles.len() {
        places.extend(blocks);
    } else {
        places.extend(roles.iter().map(|_| path.to_owned()));
    }
}

/// Returns the role of a message once for each of its parts of the kind.
fn roles_of(item: &Incoming, is_of_kind: PartKind<'_>) -> Vec<Role> {
    let Incoming::Message(message) = item else { return Vec::new() };
    let is_found = |part: &&IncomingPart| matches!(part, IncomingPart::Part(part) if is_of_kind(message.role, part));
    message.parts.iter().filter(is_found).map(|_| message.role).collect()
}

/// Returns true for an image or a file of one dialect that another one does not take.
pub fn is_rejected_media(part: &Part, from: Dialect, to: Dialect) -> bool {
    rejected_media(part, Some(from), spec(to).content).is_some()
}
