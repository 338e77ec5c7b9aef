//! What a list shows of a branch: its newest text, and the number of answers that nobody has read (R79).

use crate::encoding::{UnknownFields, encode_fields, encode_with_unknown_fields};
use crate::message::{Message, PartBody, Role, SourceKind};

/// The most characters of a preview. A head is written with each append.
pub const MAX_PREVIEW_CHARS: usize = 140;

/// The most messages without a text that are skipped to find the newest one with a text.
const MAX_SKIPPED_MESSAGES: usize = 64;

/// What a list shows of a branch. A head that an older build wrote, or that was rebuilt, lacks the preview until its
/// next append, and counts nothing as unread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// The newest text.
    pub preview: Option<Preview>,
    /// Number of answers with a text from `unread_from` on.
    pub unread: u64,
    /// The `seq` of the first message that counts as unread. It means nothing while `unread` is 0.
    pub unread_from: u64,
    /// The counters `next_seq` and `erased` of the branch that it describes. A build that does not know it and appends or
    /// erases leaves them behind.
    pub next_seq: u64,
    #[allow(missing_docs)]
    pub erased: u64,
    /// Fields that a newer build wrote.
    pub unknown: UnknownFields,
}
encode_with_unknown_fields!(struct Overview {
    0 => preview,
    1 => unread,
    2 => unread_from,
    3 => next_seq,
    4 => erased,
});

/// The beginning of the newest text of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The id of its message.
    pub message: String,
    /// The text, shortened to [`MAX_PREVIEW_CHARS`].
    pub text: String,
    /// True for a text of the assistant, false for one of the user.
    pub is_answer: bool,
}
encode_fields!(struct Preview {
    0 => message,
    1 => text,
    2 => is_answer,
});

impl Preview {
    /// Returns the preview of a message; none if the message is not the user's or the assistant's, or has no text.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        let is_shown =
            matches!(message.role, Role::User | Role::Assistant) && message.source.kind != SourceKind::Context;
        let mut line = Line::new(MAX_PREVIEW_CHARS);
        for part in message.parts.iter().filter(|_| is_shown) {
            if let PartBody::Text(text) = &part.body
                && !line.push_words(&text.decode())
            {
                break;
            }
        }
        let (text, is_answer) = (line.text, message.role == Role::Assistant);
        (!text.is_empty()).then(|| Self { message: message.id.clone(), text, is_answer })
    }

    /// Returns the preview of the newest of these messages that has one. Only the newest [`MAX_SKIPPED_MESSAGES`] are
    /// looked at.
    #[must_use]
    pub fn newest(messages: &[Message]) -> Option<Self> {
        messages.iter().rev().take(MAX_SKIPPED_MESSAGES).find_map(Self::of)
    }

    /// Returns the name of the role in the public types.
    #[must_use]
    pub fn role(&self) -> &'static str {
        if self.is_answer { Role::Assistant.as_str() } else { Role::User.as_str() }
    }
}

impl Overview {
    /// Says which branch it describes, by the branch's counters.
    pub fn set_counters(&mut self, next_seq: u64, erased: u64) {
        (self.next_seq, self.erased) = (next_seq, erased);
    }

    /// Returns true if it describes a branch with these counters.
    #[must_use]
    pub fn describes(&self, next_seq: u64, erased: u64) -> bool {
        (self.next_seq, self.erased) == (next_seq, erased)
    }

    /// Adds a message that is appended.
    pub fn add(&mut self, message: &Message) {
        let Some(preview) = Preview::of(message) else { return };
        if preview.is_answer {
            if self.unread == 0 {
                self.unread_from = message.seq;
            }
            self.unread += 1;
        }
        self.preview = Some(preview);
    }

    /// Counts the messages before `until` as read. `messages` are those of the branch.
    pub fn mark_read(&mut self, until: u64, messages: &[Message]) {
        if self.unread > 0 && until > self.unread_from {
            self.unread_from = until;
            self.unread = self.count_unread(messages);
        }
    }

    /// Takes over what a rebuilt head lacks: what was unread as of an earlier head.
    pub fn adopt_unread(&mut self, earlier: &Self) {
        (self.unread, self.unread_from) = (earlier.unread, earlier.unread_from);
    }

    /// Returns the overview of a new branch that shares these messages with the one that this is of.
    #[must_use]
    pub fn of_fork(&self, shared: &[Message]) -> Self {
        let unread = if self.unread == 0 { 0 } else { self.count_unread(shared) };
        Self { preview: Preview::newest(shared), unread, unread_from: self.unread_from, ..Self::default() }
    }

    fn count_unread(&self, messages: &[Message]) -> u64 {
        let unread = messages.iter().rev().take_while(|message| message.seq >= self.unread_from);
        unread.filter(|message| Preview::of(message).is_some_and(|preview| preview.is_answer)).count() as u64
    }
}

/// Returns a text on one line, at most `limit` characters long. One that is cut ends with "…".
#[must_use]
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = Line::new(limit);
    line.push_words(text);
    line.text
}

/// A text of limited length on one line.
struct Line {
    text: String,
    chars: usize,
    limit: usize,
}

impl Line {
    fn new(limit: usize) -> Self {
        Self { text: String::new(), chars: 0, limit }
    }

    /// Adds the words of a text. Returns false if the line is full.
    fn push_words(&mut self, text: &str) -> bool {
        text.split_whitespace().all(|word| self.push_word(word))
    }

    /// Adds a word after a space. Returns false if the line is full.
    fn push_word(&mut self, word: &str) -> bool {
        let space = if self.text.is_empty() { None } else { Some(' ') };
        for letter in space.into_iter().chain(word.chars()) {
            if self.chars == self.limit {
                self.text.pop();
                self.text.truncate(self.text.trim_end().len());
                self.text.push('…');
                return false;
            }
            self.text.push(letter);
            self.chars += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, text: &str) -> Message {
        Message { id: "m".into(), ..Message::from_text(role, text) }
    }

    #[test]
    fn r79_a_preview_is_one_line_that_is_cut_between_characters() {
        let preview = |text: &str| Preview::of(&message(Role::User, text)).unwrap().text;
        assert_eq!(preview("  How \n\n is\tit?\u{3000}Well. "), "How is it? Well.");
        assert_eq!(preview(&"本".repeat(140)), "本".repeat(140));
        assert_eq!(preview(&"本".repeat(141)), format!("{}…", "本".repeat(139)));
        assert_eq!(preview(&format!("{} tail", "x".repeat(138))), format!("{}…", "x".repeat(138)));
        assert_eq!(preview(&"🦀 ".repeat(1_000)).chars().count(), 140);
        for role in [Role::System, Role::Developer] {
            assert_eq!(Preview::of(&message(role, "You are kind.")), None);
        }
        assert_eq!(Preview::of(&message(Role::User, " \n")), None);
    }

    #[test]
    fn r79_what_is_read_is_counted_by_the_position_up_to_which_it_was_read() {
        let mut overview = Overview::default();
        let roles = [Role::User, Role::Assistant, Role::User, Role::Assistant, Role::Assistant];
        let messages: Vec<Message> =
            roles.iter().zip(0..).map(|(role, seq)| Message { seq, ..message(*role, "text") }).collect();
        messages.iter().for_each(|message| overview.add(message));
        assert_eq!((overview.unread, overview.unread_from), (3, 1));
        assert_eq!(overview.of_fork(&messages[..3]).unread, 1);
        overview.mark_read(4, &messages);
        assert_eq!(overview.unread, 1);
        // One that saw less does not make it unread again.
        overview.mark_read(2, &messages);
        assert_eq!((overview.unread, overview.of_fork(&messages[..4]).unread), (1, 0));
        overview.mark_read(5, &messages);
        assert_eq!(overview.unread, 0);
    }
}
