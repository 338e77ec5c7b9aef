//! Assigns numbers to new entries, after those in history, when they are written.

use crate::history::{History, HistoryEntry, TurnPosition};
use crate::id::short_name;
use crate::message::PartBody;
use crate::session_head::SessionHead;

/// Assigns `seq`, turn and round to messages and the number to invocations, and advances the head's counters.
pub(super) fn assign_numbers(
    history: &History,
    head: &mut SessionHead,
    entries: Vec<HistoryEntry>,
) -> Vec<HistoryEntry> {
    let mut position = history.position();
    // The numbers of turns whose records cannot be read are not used again.
    if position.turns < head.turns {
        position = TurnPosition { turns: head.turns, answered: true, rounds: 0 };
    }
    let record = head.next_record;
    // Id, turn and round of the last message: its invocations follow it.
    let mut last: Option<(String, u32, u32)> = None;
    let mut numbered = Vec::with_capacity(entries.len());
    for mut entry in entries {
        match &mut entry {
            HistoryEntry::Message(message) => {
                message.seq = head.next_seq;
                head.next_seq += 1;
                message.turn = position.advance(message.role);
                let own_round = position.rounds;
                let mut calls = false;
                for part in &mut message.parts {
                    if let PartBody::ToolCall { round, .. } = &mut part.body {
                        *round = own_round;
                        calls = true;
                    }
                }
                position.rounds += u32::from(calls);
                head.turns = head.turns.max(position.turns);
                last = Some((message.id.clone(), message.turn, own_round));
            }
            HistoryEntry::Invocation(invocation) => {
                invocation.number = head.next_invocation;
                invocation.record = record;
                head.next_invocation += 1;
                if let Some((_, turn, round)) = last.as_ref().filter(|(id, _, _)| *id == invocation.message_id) {
                    invocation.turn = *turn;
                    invocation.round = *round;
                }
                // Another writer may have used the call id during this turn.
                if invocation.replay_id.is_none() && history.call_id_uses(&invocation.call_id) > 0 {
                    invocation.replay_id = Some(format!("call_{}", short_name(&invocation.id, 20)));
                }
            }
            HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
        }
        numbered.push(entry);
    }
    numbered
}
