//! Citations: sources that the answer of their turn does not cite are dropped (R8).
//!
//! A citation is `[source3]`, in upper or lower case, with nothing else between the brackets. Cited sources stay
//! unchanged, and so do turns without an answer and results without sources.

use super::policy::{Citations, Policy};
use super::request_draft::{DraftOrigin, DraftResult, RequestDraft};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{History, HistoryEntry, ResultEntry, change_sources, highest_source, source_number};
use crate::json::ArrayWriter;
use crate::message::{Message, MessageStatus, PartBody, Role};
use crate::synthetic_result::UNCITED;
use crate::tool::{InvocationStatus, ToolInvocation, ToolResult};
use std::collections::{BTreeMap, BTreeSet};

/// The sources that the text of a turn cites.
#[derive(Default)]
struct TurnCitations {
    /// True if its last message is a complete answer.
    answered: bool,
    /// The numbers, ascending, each once.
    numbers: BTreeSet<u64>,
    /// The text of the parts of an answer that its next message continues.
    open: String,
}

/// Results without the sources that their turns do not cite. They are computed once and kept with the cached encodings.
#[derive(Clone, Debug, Default)]
pub struct TrimmedResults {
    /// The number of the history's results with sources that are processed.
    done: usize,
    /// By the index of the invocation: the result, and the number of dropped items.
    less: BTreeMap<u64, Box<(ToolResult, usize)>>,
}

impl TrimmedResults {
    /// Processes the new results of a history, if the policy drops sources.
    pub fn update(&mut self, history: &History, policy: &Policy) {
        if policy.citations() == Citations::Off {
            return;
        }
        let all = history.messages();
        let last = all.last().map(|message| message.turn);
        let mut read: Option<(u32, TurnCitations)> = None;
        let mut over = true;
        for at in history.with_sources().get(self.done..).unwrap_or(&[]) {
            let Some(call) = history.invocations().get(*at) else { continue };
            // The last turn may grow, so it is processed again each time.
            over &= Some(call.turn) != last;
            self.done += usize::from(over);
            if read.as_ref().is_none_or(|(turn, _)| *turn != call.turn) {
                let mut cited = TurnCitations::default();
                let from = all.partition_point(|message| message.turn < call.turn);
                let turn = all.iter().skip(from).take_while(|message| message.turn == call.turn);
                turn.for_each(|message| cited.read(message));
                read = Some((call.turn, cited));
            }
            let less = read.as_ref().zip(call.result.as_ref()).and_then(|((_, cited), result)| cited.keep(result));
            match less {
                Some(less) => {
                    self.less.insert(*at as u64, Box::new(less));
                }
                None => {
                    self.less.remove(&(*at as u64));
                }
            }
        }
    }

    /// Returns the result of the invocation at this index without its uncited sources, if it has any.
    pub(super) fn result_at(&self, index: usize) -> Option<&ToolResult> {
        self.less.get(&(index as u64)).map(|less| &less.0)
    }

    /// Replaces the results of a draft by those without uncited sources.
    pub(super) fn apply<'h>(&'h self, draft: &mut RequestDraft<'h>, history: &History, report: &mut Report) {
        if self.less.is_empty() {
            return;
        }
        for item in draft.messages.iter_mut().filter(|item| matches!(item.origin, DraftOrigin::Stored(_))) {
            for call in item.calls.iter_mut().filter(|call| matches!(call.result, Some(DraftResult::Stored(_)))) {
                let at = history.invocation_index(&call.invocation.id);
                if let Some((less, dropped)) = at.and_then(|at| self.less.get(&(at as u64))).map(Box::as_ref) {
                    call.result = Some(DraftResult::Stored(less));
                    report.push(finding(call.invocation, *dropped));
                }
            }
        }
    }
}

fn finding(call: &ToolInvocation, dropped: usize) -> Finding {
    Finding::info(FindingCode::Uncited, format!("{dropped} items that the turn's answer does not cite are left out"))
        .of_message(&call.message_id)
        .of_call(&call.call_id)
        .with_action(Action::Dropped)
}

/// What an append knows of the turns that it completes.
pub struct CompletedTurns<'h> {
    /// What is stored of them, or the live turn of a run.
    pub known: &'h History,
    /// Returns true if the stored result of a call may be replaced.
    pub may_replace: &'h dyn Fn(&ToolInvocation) -> bool,
}

impl CompletedTurns<'_> {
    /// Drops uncited sources from the entries of turns that are stored with their answers, if the policy says so. A
    /// result that was stored before its turn's answer is replaced by another entry. Returns the highest source number
    /// that was in the entries before.
    pub fn drop_uncited_sources(
        &self,
        entries: &mut Vec<HistoryEntry>,
        policy: &Policy,
        report: &mut Report,
    ) -> Option<u64> {
        let highest = highest_source(entries);
        if policy.citations() != Citations::Store {
            return highest;
        }
        let mut replacing = Vec::new();
        let mut start = 0;
        while let Some(first) = entries.get(start) {
            let turn = self.turn_of(first);
            let goes_on = |entry: &&HistoryEntry| self.turn_of(entry).is_none_or(|own| turn == Some(own));
            let count = entries.iter().skip(start).take_while(goes_on).count();
            let Some(items) = entries.get_mut(start..start + count) else { break };
            start += count;
            if let Some(turn) = turn {
                replacing.extend(self.drop_from_turn(turn, items, report));
            }
        }
        entries.append(&mut replacing);
        highest
    }

    /// Drops uncited sources from the entries of a turn. Returns entries that replace results which are stored already.
    fn drop_from_turn(&self, turn: u32, entries: &mut [HistoryEntry], report: &mut Report) -> Vec<HistoryEntry> {
        let all = self.known.messages();
        let from = all.partition_point(|message| message.turn < turn);
        let messages = || all.iter().skip(from).take_while(|message| message.turn == turn);
        let mut cited = TurnCitations::default();
        messages().for_each(|message| cited.read(message));
        // A result that comes after the answer was seen by no model call.
        let mut is_answered_now = false;
        for entry in entries.iter() {
            if let HistoryEntry::Message(message) = entry {
                cited.read(message);
                is_answered_now |= message.role == Role::Assistant;
            }
        }
        if !is_answered_now {
            return Vec::new();
        }
        let mut ids = BTreeSet::new();
        for entry in entries {
            match entry {
                HistoryEntry::Invocation(call) => {
                    ids.insert(call.id.clone());
                    if let Some((less, dropped)) = call.result.as_ref().and_then(|result| cited.keep(result)) {
                        report.push(finding(call, dropped));
                        call.result = Some(less);
                    }
                }
                HistoryEntry::Result(entry) => {
                    ids.insert(entry.invocation.clone());
                    let kept = entry.result.as_ref().and_then(|result| cited.keep(result));
                    if let (Some((less, dropped)), Some(call)) = (kept, self.known.invocation(&entry.invocation)) {
                        report.push(finding(call, dropped));
                        entry.result = Some(less);
                    }
                }
                HistoryEntry::Message(_) | HistoryEntry::SetAside(_) => {}
            }
        }
        let stored = messages().flat_map(|message| self.known.calls_of(message)).filter(|call| !ids.contains(&call.id));
        let mut replacing = Vec::new();
        for call in stored.filter(|call| call.status != InvocationStatus::Interrupted && (self.may_replace)(call)) {
            if let Some((less, dropped)) = call.result.as_ref().and_then(|result| cited.keep(result)) {
                report.push(finding(call, dropped));
                replacing.push(HistoryEntry::Result(ResultEntry::replacing(call, less)));
            }
        }
        replacing
    }

    fn turn_of(&self, entry: &HistoryEntry) -> Option<u32> {
        match entry {
            HistoryEntry::Message(message) => Some(message.turn),
            HistoryEntry::Invocation(call) => Some(call.turn),
            HistoryEntry::Result(entry) => self.known.invocation(&entry.invocation).map(|call| call.turn),
            HistoryEntry::SetAside(_) => None,
        }
    }
}

impl TurnCitations {
    /// Adds the citations of the turn's next message.
    fn read(&mut self, message: &Message) {
        if message.role != Role::Assistant {
            return;
        }
        // An answer that was cut might have cited more.
        self.answered = message.status == MessageStatus::Complete && !message.is_unfinished();
        let mut has_text = false;
        // A provider may cut a mark between two parts.
        let mut joined = std::mem::take(&mut self.open);
        let is_joined = !joined.is_empty() || message.is_unfinished();
        for part in &message.parts {
            match &part.body {
                PartBody::Text(text) => {
                    has_text |= !text.is_empty();
                    let text = text.decode();
                    self.scan(&text);
                    if is_joined {
                        joined.push_str(&text);
                    }
                }
                PartBody::ToolCall { .. } => self.answered = false,
                _ => {}
            }
        }
        self.answered &= has_text;
        self.scan(&joined);
        if message.is_unfinished() {
            self.open = joined;
        }
    }

    fn scan(&mut self, text: &str) {
        const WORD: &[u8] = b"source";
        for (at, _) in text.match_indices('[') {
            let rest = text.as_bytes().get(at + 1..).unwrap_or(&[]);
            let Some((word, rest)) = rest.split_at_checked(WORD.len()) else { continue };
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !word.eq_ignore_ascii_case(WORD) || digits == 0 || rest.get(digits) != Some(&b']') {
                continue;
            }
            let start = at + 1 + WORD.len();
            if let Some(number) = text.get(start..start + digits).and_then(|digits| digits.parse().ok()) {
                self.numbers.insert(number);
            }
        }
    }

    /// Returns a result with its cited sources only, and the number of dropped items; `None` if the result does not
    /// change.
    fn keep(&self, result: &ToolResult) -> Option<(ToolResult, usize)> {
        if !self.answered {
            return None;
        }
        let mut dropped = 0_usize;
        let content = change_sources(result, &mut |list| {
            let before = dropped;
            let mut out = String::new();
            let mut kept = ArrayWriter::new(&mut out);
            for item in list.items() {
                if source_number(item).is_some_and(|number| self.numbers.contains(&number)) {
                    kept.item().push_str(item.as_raw());
                } else {
                    dropped += 1;
                }
            }
            kept.end();
            if dropped == before {
                return None;
            }
            Some(if self.numbers.is_empty() { UNCITED.to_owned() } else { out })
        })?;
        let (is_error, dialect, template) = (result.is_error, result.dialect, result.template.clone());
        Some((ToolResult { content, is_error, dialect, template }, dropped))
    }
}
