//! Validation and repair, one mechanism for both. A dialect's rules read a body into calls, results and other items,
//! report each violation of what its provider accepts, and plan the edit that fixes it. The passes that pair calls with
//! results and place the results are common. `validate` returns the violations; `repair` makes the edits. A body
//! without errors has no edits, so it comes back byte for byte.

mod call_result_pairs;
mod fields;
mod found_pairs;
mod id_rule;
mod item_survey;
mod last_turn;
mod list_order;
mod mentions;
mod options;
mod pair_report;
mod plan;
mod pointers;
mod recognition;
mod repair;
mod splice;
mod turn_order;
mod turns;
mod violation;

pub(crate) use call_result_pairs::{Pairing, Pairs, WireCall, WireResult};
pub(crate) use fields::{Fields, as_quoted, id_of, name_fit, name_valid, names_model, object_text, role_code};
pub(crate) use found_pairs::{FoundCall, FoundResult};
pub(crate) use id_rule::IdRule;
pub(crate) use last_turn::end_with_user;
pub(crate) use list_order::{ListMessage, ListMessageKind, ListPlacement, place_messages};
pub use options::{Dangling, RepairOptions};
pub(crate) use pair_report::{ErrorTemplates, report_pairs};
pub(crate) use plan::Plan;
pub(crate) use repair::{repair, repair_head, repair_rendered, validate};
pub(crate) use splice::{BodyPiece, Edits, ListItem, quoted};
pub(crate) use turn_order::{PlacementRules, place_blocks, rename_system_turns, write_turns};
pub(crate) use turns::{Block, BlockKind, Speaker, Turn, TurnGrammar, TurnReader};
pub(crate) use violation::{BodyLocation, Violation};
