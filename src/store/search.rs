//! The search for sessions by title and text.
//!
//! The head of a session has a [filter](crate::term_filter) of the terms of its texts, which each append keeps up to
//! date. A search selects among all sessions by what their heads say, and then reads the texts of those that their
//! filter does not exclude, the newest first: so it finds the same whatever the store is, whatever it keeps encrypted,
//! and whoever wrote it. What heads say is kept in a [`SearchIndex`] where the store numbers their changes.

mod excerpt;
mod filter;
mod index;
mod query;
mod words;

use super::{Page, RecencyQuery, SessionLog, SessionPosition};
use crate::error::{Error, Result};
use crate::message::{Message, Role};
use crate::session_head::SessionHead;
pub use excerpt::Excerpt;
pub(in crate::store) use filter::filter_of;
use filter::searched_texts;
pub use index::{SearchIndex, SearchedSession};
use query::SearchTerms;
use std::cmp::Reverse;

/// Maximum number of sessions whose texts are read for a page.
const MAX_READ: usize = 200;

/// Maximum number of messages that are shown of a session.
const SHOWN_MESSAGES: usize = 3;

/// A session that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// Its head.
    pub head: SessionHead,
    /// The title, if a term is in it.
    pub title: Option<Excerpt>,
    /// The messages with the most terms, of as many the newest first.
    pub messages: Vec<MessageExcerpt>,
}

/// A message of a session that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageExcerpt {
    /// The message's id.
    pub id: String,
    /// Its role.
    pub role: Role,
    /// A part of its text.
    pub excerpt: Excerpt,
}

/// A page of a search: it selects the sessions whose texts are to be read, in the order of the result.
pub struct SessionSearch {
    terms: SearchTerms,
    limit: usize,
    archived: Option<bool>,
    channel: Option<String>,
    after: Option<HitPosition>,
    candidates: Vec<HitPosition>,
    has_more_candidates: bool,
}

/// The place of a session in the result: first those whose title has all terms, then by recency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HitPosition {
    is_in_title: Reverse<bool>,
    session: SessionPosition,
}

impl HitPosition {
    fn cursor(&self) -> String {
        format!("{}{}", if self.is_in_title.0 { 't' } else { 'm' }, self.session.cursor())
    }

    fn from_cursor(cursor: &str) -> Result<Self> {
        let parts = cursor.strip_prefix('t').map(|rest| (true, rest));
        let parts = parts.or_else(|| cursor.strip_prefix('m').map(|rest| (false, rest)));
        let session = parts.and_then(|(_, rest)| SessionPosition::from_cursor(rest).ok());
        let position = parts.zip(session).map(|((is_in_title, _), session)| (Reverse(is_in_title), session));
        let position = position.map(|(is_in_title, session)| Self { is_in_title, session });
        position.ok_or_else(|| Error::invalid("this is no cursor that a page of a search gave; begin without one"))
    }
}

impl SessionSearch {
    /// Begins a page of the query.
    ///
    /// # Errors
    /// `invalid_input` for a cursor that no page gave, and for a text of too many words.
    pub fn new(text: &str, query: &RecencyQuery) -> Result<Self> {
        Ok(Self {
            terms: SearchTerms::parse(text)?,
            limit: query.page_size(),
            archived: query.archived,
            channel: query.channel.clone(),
            after: query.cursor.as_deref().map(HitPosition::from_cursor).transpose()?,
            candidates: Vec::new(),
            has_more_candidates: false,
        })
    }

    /// Returns true if nothing is searched for, so that nothing is found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Adds a session, unless what is known of it shows that it is not wanted or has not all terms.
    pub fn add(&mut self, session: &SearchedSession) {
        let is_wanted = self.archived.is_none_or(|archived| archived == session.is_archived)
            && self.channel.as_ref().is_none_or(|channel| session.channel.as_ref() == Some(channel));
        if !is_wanted {
            return;
        }
        let in_title = self.terms.mask_of_title(&session.title_hashes);
        if session.terms.as_ref().is_some_and(|terms| !terms.may_have_all(&self.terms.hashes_without(in_title))) {
            return;
        }
        let is_in_title = Reverse(in_title == self.terms.full_mask());
        let position = HitPosition { is_in_title, session: SessionPosition::new(session.updated_at, &session.id) };
        if self.after.as_ref().is_none_or(|after| position > *after) {
            self.candidates.push(position);
        }
        if self.candidates.len() > 2 * MAX_READ {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        self.candidates.sort();
        self.has_more_candidates |= self.candidates.len() > MAX_READ;
        self.candidates.truncate(MAX_READ);
    }

    /// Returns what reads the candidates.
    #[must_use]
    pub fn read(mut self) -> HitReader {
        self.shorten();
        let left = self.candidates.into_iter();
        HitReader {
            terms: self.terms,
            limit: self.limit,
            hits: Vec::new(),
            last: None,
            left,
            has_more_candidates: self.has_more_candidates,
        }
    }
}

/// Looks for the terms in the texts of the candidates, in their order.
pub struct HitReader {
    terms: SearchTerms,
    limit: usize,
    hits: Vec<SearchHit>,
    last: Option<HitPosition>,
    left: std::vec::IntoIter<HitPosition>,
    /// True if there are more candidates than these.
    has_more_candidates: bool,
}

impl HitReader {
    /// Returns the ids of the next sessions whose texts are to be read, of `count` at most; none if the page is full or
    /// has no more candidates. Each one that is returned has a place in the page.
    pub fn next_sessions(&mut self, count: usize) -> Vec<String> {
        let places = self.limit.saturating_sub(self.hits.len());
        let positions: Vec<HitPosition> = self.left.by_ref().take(count.min(places)).collect();
        let ids = positions.iter().map(|position| position.session.id.clone()).collect();
        if let Some(last) = positions.into_iter().next_back() {
            self.last = Some(last);
        }
        ids
    }

    /// Adds the session if its title and history have all terms.
    pub fn add_if_found(&mut self, log: &SessionLog) {
        let (head, history) = (&log.head, &log.history);
        let title = head.title.as_deref().map(|title| (self.terms.find(title), title));
        let mut mask = title.as_ref().map_or(0, |(found, _)| found.mask);
        let mut best: Vec<(u32, &Message)> = Vec::new();
        for message in history.messages().iter().rev() {
            let found = self.find_in_message(message);
            mask |= found;
            if found != 0 {
                best.push((found.count_ones(), message));
                // The sort keeps the order of those that have as many terms.
                best.sort_by_key(|(count, _)| Reverse(*count));
                best.truncate(SHOWN_MESSAGES);
            }
        }
        if mask == self.terms.full_mask() {
            let messages = best.into_iter().filter_map(|(_, message)| self.excerpt(message)).collect();
            let title = title.filter(|(found, _)| found.mask != 0);
            let title = title.map(|(found, title)| Excerpt::around(title, &found.ranges));
            self.hits.push(SearchHit { head: head.clone(), title, messages });
        }
    }

    fn find_in_message(&self, message: &Message) -> u64 {
        searched_texts(message).fold(0, |mask, text| mask | self.terms.find(&text.decode()).mask)
    }

    /// Returns an excerpt of the text of a message that has the most terms.
    fn excerpt(&self, message: &Message) -> Option<MessageExcerpt> {
        let texts = searched_texts(message).map(|text| (self.terms.find(&text.decode()), text));
        let (found, text) = texts.rev().max_by_key(|(found, _)| found.mask.count_ones())?;
        let excerpt = Excerpt::around(&text.decode(), &found.ranges);
        Some(MessageExcerpt { id: message.id.clone(), role: message.role, excerpt })
    }

    /// Returns the page.
    #[must_use]
    pub fn page(self) -> Page<SearchHit> {
        let is_last = self.left.len() == 0 && !self.has_more_candidates;
        let cursor = self.last.filter(|_| !is_last).map(|last| last.cursor());
        Page { items: self.hits, cursor }
    }
}

#[cfg(test)]
mod tests;
