//! Terms, queries and excerpts.

use super::index::{MAX_KEPT_BYTES, SearchIndex, SearchedSession};
use super::query::{hash_terms, title_hashes};
use super::words::each_term;
use super::{Excerpt, SearchTerms};
use crate::session_head::SessionHead;
use crate::store::{RecordKind, StoredHead, seal_record};
use crate::term_filter::TermFilter;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    each_term(text, &mut |term, _, range| {
        assert!(text.get(range).is_some_and(|place| !place.is_empty()));
        terms.push(term.to_owned());
    });
    terms
}

fn mask(query: &str, text: &str) -> (bool, u64) {
    let query = SearchTerms::parse(query).unwrap();
    let found = query.find(text).mask;
    (found == query.full_mask(), found)
}

fn finds(query: &str, text: &str) -> bool {
    mask(query, text).0
}

#[test]
fn r79_words_are_compared_without_case_accents_and_forms() {
    assert_eq!(terms("Don't PANIC: the 2nd e-mail_box."), ["don", "t", "panic", "the", "2nd", "e", "mail", "box"]);
    assert_eq!(terms("Café Ａｎｇｓｔ ﬁnal ÅNGSTRÖM"), ["cafe", "angst", "final", "angstrom"]);
    // The same text composed and decomposed.
    assert_eq!(terms("Cafe\u{301} na\u{ef}ve"), terms("Caf\u{e9} nai\u{308}ve"));
    assert_eq!(terms("привет, Мир"), ["привет", "мир"]);
    assert_eq!(terms("नमस्ते दुनिया").len(), 2);
    assert_eq!(terms("ΟΔΟΣ Straße"), terms("οδός STRASSE"));
    assert_eq!(terms("in\u{ad}voice 1\u{fe0f}\u{20e3}"), ["invoice", "1"]);
    assert_eq!(terms("كِتَاب שָׁלוֹם"), ["كتاب", "שלום"], "vowels are left out");
    assert_eq!(terms("葛\u{e0100}・ア"), terms("葛 ｱ"));
    assert!(terms(" …—!? 😀 ").is_empty());
}

#[test]
fn r79_scripts_without_spaces_have_characters_and_pairs() {
    assert_eq!(terms("日本語"), ["日", "本", "日本", "語", "本語"]);
    assert_eq!(terms("iPhone用の"), ["iphone", "用", "の", "用の"]);
    // Composed and decomposed, full and half width.
    assert_eq!(terms("ガ"), terms("カ\u{3099}"));
    assert_eq!(terms("ガ"), terms("ｶﾞ"));
    assert_eq!(terms("한국"), terms("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"));
    assert!(finds("日本", "これは日本語です"));
    assert!(finds("語", "日本語"));
    assert!(!finds("日語", "日本語"));
    assert!(finds("한국", "한국어를 배워요"));
    let sentence: String = (0..60).filter_map(|at| char::from_u32(0x4e00 + at)).collect();
    assert!(finds(&sentence, &format!("前{sentence}後")));
    assert!(finds("ภาษา", "เรียนภาษาไทย"));
}

#[test]
fn r79_all_words_are_found_and_the_last_by_its_beginning() {
    assert!(finds("paris weather", "The WEATHER in Paris"));
    assert!(!finds("paris rain", "The weather in Paris"));
    assert!(finds("invoi", "Your invoices"));
    assert!(!finds("invoi ", "Your invoices"), "a word that ends is a word");
    assert!(!finds("invoi paris", "Invoices of Paris"));
    assert!(!finds("inv", "Your invoices"), "the beginning of a word has four letters");
    assert!(finds("inv", "inv 7"));
    assert!(SearchTerms::parse(" …! ").unwrap().is_empty());
    let many = (0..65).map(|word| format!("word{word} ")).collect::<String>();
    assert!(SearchTerms::parse(&many).is_err());
    assert!(SearchTerms::parse(&many.replace("word64 ", "")).is_ok());
}

#[test]
fn r79_an_excerpt_shows_the_first_place_and_counts_utf16_units() {
    let text = format!("{}😀 the Invoice of June, invoice again", "x ".repeat(60));
    let found = SearchTerms::parse("invoice").unwrap().find(&text);
    let excerpt = Excerpt::around(&text, &found.ranges);
    let units: Vec<u16> = excerpt.text.encode_utf16().collect();
    let marked = |&(from, to): &(usize, usize)| String::from_utf16(units.get(from..to).unwrap()).unwrap();
    assert_eq!(excerpt.ranges.iter().map(marked).collect::<Vec<_>>(), ["Invoice", "invoice"]);
    assert!(excerpt.text.starts_with("…x ") && excerpt.text.ends_with("again"));
    let found = SearchTerms::parse("日本語").unwrap().find("日本語で");
    assert_eq!(Excerpt::around("日本語で", &found.ranges).ranges, [(0, 3)]);
    let long = "word ".repeat(100);
    let found = SearchTerms::parse("word").unwrap().find(&long);
    let excerpt = Excerpt::around(&long, &found.ranges);
    assert!(excerpt.text.chars().count() <= 161 && excerpt.text.ends_with('…'));
    assert!(excerpt.ranges.iter().all(|(_, to)| *to <= 160));
}

proptest! {
    /// No filter excludes a text that has what is searched for.
    #[test]
    fn r79_what_is_found_in_a_text_is_in_its_filter(
        text in "[a-cA-Cé日本語가-각 e\u{301}]{0,40}|\\PC{0,40}",
        from in 0_usize..40,
        length in 1_usize..12,
    ) {
        let query: String = text.chars().skip(from).take(length).collect();
        let query = SearchTerms::parse(&query).unwrap();
        let found = query.find(&text);
        let mut hashes = BTreeSet::new();
        hash_terms(&text, &mut hashes);
        prop_assert_eq!(query.mask_of_title(&title_hashes(&text)), found.mask, "by hashes alone");
        let wanted = query.hashes_without(!found.mask);
        prop_assert!(wanted.iter().all(|hash| hashes.contains(hash)));
        let excerpt = Excerpt::around(&text, &found.ranges);
        let units = excerpt.text.encode_utf16().count();
        prop_assert!(excerpt.ranges.iter().all(|(start, end)| start < end && *end <= units));
        let rising = excerpt.ranges.iter().zip(excerpt.ranges.iter().skip(1)).all(|(one, next)| one.1 < next.0);
        prop_assert!(rising);
    }
}

/// A filter with as many terms as fit.
fn full_filter() -> TermFilter {
    let mut filter = TermFilter::default();
    filter.add(&(0..2_000_u32).map(|term| term.wrapping_mul(2_654_435_761)).collect::<Vec<_>>());
    filter
}

fn with_terms(filter: &TermFilter, at: usize) -> SearchedSession {
    SearchedSession {
        id: format!("session-{at:08}"),
        updated_at: 1,
        title_hashes: title_hashes("A title of a usual length"),
        channel: None,
        is_archived: false,
        born: 0,
        erasures: 0,
        terms: Some(filter.clone()),
    }
}

#[test]
fn r79_the_index_that_is_kept_has_a_bound() {
    let (filter, mut index, mut at) = (full_filter(), SearchIndex::starting_at(7), 0);
    let keep = |index: &mut SearchIndex, at| {
        let session = with_terms(&filter, at);
        index.keep(session.id.clone(), Some(session));
    };
    while at < 5_000 {
        keep(&mut index, at);
        at += 1;
    }
    assert!(index.bytes() < 4_500_000, "{} bytes for 5,000 sessions", index.bytes());
    // The same session again takes no more.
    let before = index.bytes();
    keep(&mut index, 0);
    assert_eq!((index.bytes(), index.sessions().count(), index.mark()), (before, 5_000, Some(7)));
    index.set(with_terms(&filter, 0).id, None);
    assert_eq!(index.sessions().count(), 4_999);
    while index.mark().is_some() {
        assert!(index.bytes() <= MAX_KEPT_BYTES);
        keep(&mut index, at);
        at += 1;
    }
    assert!(at > 37_000, "{at} sessions with full filters fit");
    index.move_to(9);
    assert_eq!((index.mark(), index.sessions().count()), (None, 0), "all heads are read again");
}

#[test]
fn r79_the_beginning_of_a_word_is_found_in_a_title_by_its_hash() {
    let hashes = title_hashes("Invoked by Größen of 東京");
    let has = |query: &str| {
        let query = SearchTerms::parse(query).unwrap();
        query.mask_of_title(&hashes) == query.full_mask()
    };
    assert!(has("invo") && has("invok") && has("grösse") && has("東京") && has("by"));
    // The filter of the texts has the first four letters only.
    assert!(!has("invoi") && !has("inv") && !has("groesse") && !has("京東"));
}

fn stored(head: &SessionHead) -> StoredHead {
    StoredHead { revision: 1, value: seal_record(RecordKind::Head, head) }
}

/// An index that the store has, of sessions with full filters.
fn stored_index(count: usize) -> SearchIndex {
    let (filter, mut index) = (full_filter(), SearchIndex::starting_at(7));
    for at in 0..count {
        index.keep(with_terms(&filter, at).id, Some(with_terms(&filter, at)));
    }
    index.set_stored();
    index
}

/// A head with more terms than the index has of it.
fn grown(at: usize) -> SessionHead {
    let mut filter = full_filter();
    filter.add(&[at as u32]);
    filter.set_revision(3);
    let title = Some("A title of a usual length, and more".into());
    SessionHead {
        title,
        term_filter: filter,
        history_revision: 3,
        ..SessionHead::new(&with_terms(&TermFilter::default(), at).id, 1)
    }
}

#[test]
fn r79_an_index_is_stored_when_it_pays() {
    let mut index = stored_index(600);
    assert!(!index.is_to_be_stored() && !index.is_to_be_removed());
    for at in 0..255 {
        index.set(grown(at).id, Some(&stored(&grown(at))));
        index.set(grown(0).id, Some(&stored(&grown(0))));
    }
    assert!(!index.is_to_be_stored(), "255 sessions have changed");
    index.set(grown(255).id, Some(&stored(&grown(255))));
    assert!(index.is_to_be_stored());
    index.move_to(300);
    assert_eq!(index.take_record().map(|(mark, _)| mark), Some(300));
    assert!(!index.is_to_be_stored(), "it is stored once");
    index.set_unstored();
    assert!(index.is_to_be_stored());
    assert!(SearchIndex::default().begin_again(8).mark() == Some(8) && !SearchIndex::starting_at(8).is_to_be_removed());
}

#[test]
fn r79_r59_an_index_with_what_was_erased_is_replaced_or_removed() {
    type Loss = fn(SessionHead) -> SessionHead;
    let losses: [Loss; 4] = [
        |head| SessionHead { title: Some("A title".into()), ..head },
        |head| SessionHead { born: 2, ..head },
        |head| SessionHead { erasures: 1, ..head },
        |head| SessionHead { term_filter: TermFilter::default(), ..head },
    ];
    for (number, loss) in losses.into_iter().enumerate() {
        for (count, is_stored) in [(600, true), (100, false), (20_000, false)] {
            let mut index = stored_index(count);
            index.set(grown(3).id, Some(&stored(&grown(3))));
            assert!(!index.is_to_be_stored() && !index.is_to_be_removed(), "loss {number} of {count}");
            index.set(grown(3).id, Some(&stored(&loss(grown(3)))));
            assert_eq!(
                (index.is_to_be_stored(), index.is_to_be_removed()),
                (is_stored, !is_stored),
                "loss {number} of {count}"
            );
            let again = index.begin_again(9);
            assert!(again.is_to_be_removed(), "the store still has it");
        }
    }
    let mut index = stored_index(600);
    index.set("nobody".into(), None);
    assert!(index.is_to_be_stored(), "a deletion, also of a session that was not known");
    index.set_stored();
    index.set(grown(5).id, Some(&StoredHead { revision: 1, value: Bytes::new() }));
    assert!(index.is_to_be_removed() && !index.is_to_be_stored(), "of a head that cannot be read");
}

#[test]
fn r79_r62_a_stored_index_is_read_as_it_was_or_not_at_all() {
    let mut index = stored_index(600);
    let (_, record) = index.take_record().unwrap();
    let read = SearchIndex::of_record(&record).unwrap();
    assert!(read.sessions().eq(index.sessions()) && read.mark() == Some(7) && read.bytes() == index.bytes());
    for end in [0, 3, 7, 40, record.len() - 1] {
        assert!(SearchIndex::of_record(&record.slice(..end)).is_none());
    }
    let mut damaged = record.to_vec();
    damaged[40] ^= 1;
    assert!(SearchIndex::of_record(&damaged.into()).is_none());
    assert!(SearchIndex::of_record(&stored(&grown(1)).value).is_none(), "a record of another kind");
}
