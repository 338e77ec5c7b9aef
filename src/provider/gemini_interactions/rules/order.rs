//! The order of steps: the results of a run of the model's steps follow it.

use crate::json::JsonRef;
use crate::provider::rules::{BodyPiece, ListItem, Pairing, Pairs, Plan, WireCall};

/// What a step is to the steps beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleStepKind {
    /// A call, by its index in [`Pairs::calls`].
    Call(usize),
    /// A result, by its index in [`Pairs::results`].
    Result(usize),
    /// Another step of the model.
    Model,
    /// A step of the user.
    Input,
    Removed,
}

impl RuleStepKind {
    pub fn is_of_model(self) -> bool {
        matches!(self, Self::Call(_) | Self::Model)
    }
}

/// A step of the repaired list.
pub(super) struct RuleStep {
    pub kind: RuleStepKind,
    /// The run of the model's steps that it belongs to or follows: the group of its calls.
    pub run: usize,
    pub piece: BodyPiece,
}

/// Places the results of a body.
pub(super) struct ResultPlacement<'p, 'a> {
    pub pairs: &'p Pairs<'a>,
    /// Returns a result for a call that has none.
    pub synthetic_result: &'p dyn Fn(&WireCall<'a>) -> String,
    /// The steps are not those of the list, one by one.
    pub is_rebuilt: bool,
}

impl<'a> ResultPlacement<'_, 'a> {
    /// Gives the list its new order.
    pub fn apply(&self, plan: &mut Plan<'a, '_>, list: JsonRef<'a>, mut steps: Vec<RuleStep>) {
        // By index of a result: the index of its step.
        let mut places = vec![0; self.pairs.results.len()];
        for (at, step) in steps.iter().enumerate() {
            if let RuleStepKind::Result(index) = step.kind
                && let Some(place) = places.get_mut(index)
            {
                *place = at;
            }
        }
        let mut order = Vec::with_capacity(steps.len());
        // The group of calls whose results the order lacks so far.
        let mut open = None;
        for (at, step) in steps.iter().enumerate().filter(|(_, step)| self.is_kept(step.kind)) {
            // The steps of a run are together; the results of its calls follow it.
            let is_before_results = step.kind.is_of_model() && open == Some(step.run);
            if !is_before_results && !matches!(step.kind, RuleStepKind::Result(_)) {
                self.close(open.take(), &places, &mut order);
            }
            if let RuleStepKind::Call(_) = step.kind {
                open = Some(step.run);
            }
            order.push(ListItem::Existing(at));
        }
        self.close(open, &places, &mut order);
        let mut pieces: Vec<BodyPiece> = steps.iter_mut().map(|step| step.piece.take()).collect();
        if !self.is_rebuilt {
            plan.edits.reorder(list, &mut pieces, &mut order);
        } else {
            let taken = order.into_iter().filter_map(|item| match item {
                ListItem::Existing(at) => pieces.get_mut(at).map(BodyPiece::take),
                ListItem::New(piece) => Some(piece),
            });
            plan.edits.rebuild(list, taken.collect());
        }
    }

    fn is_kept(&self, kind: RuleStepKind) -> bool {
        match kind {
            RuleStepKind::Removed => false,
            RuleStepKind::Result(index) => self.is_result_in_place(index),
            RuleStepKind::Call(index) => self.pairs.calls.get(index).is_some_and(|call| !call.omitted),
            RuleStepKind::Model | RuleStepKind::Input => true,
        }
    }

    /// Returns true if a result keeps its place.
    fn is_result_in_place(&self, index: usize) -> bool {
        self.pairs.results.get(index).is_some_and(|result| {
            let in_place = |call: &WireCall<'a>| result.reply_to == Some(call.group);
            result.pairing == Pairing::HeldByServer || self.pairs.call_of(result).is_some_and(in_place)
        })
    }

    /// Adds the results of a group that are elsewhere, and those that are missing.
    fn close(&self, group: Option<usize>, places: &[usize], order: &mut Vec<ListItem>) {
        let Some(group) = group else { return };
        for index in self.pairs.results_of(group).into_iter().filter(|index| !self.is_result_in_place(*index)) {
            order.extend(places.get(index).map(|at| ListItem::Existing(*at)));
        }
        let missing = self.pairs.open_calls(group).map(|call| BodyPiece::New((self.synthetic_result)(call)));
        order.extend(missing.map(ListItem::New));
    }
}
