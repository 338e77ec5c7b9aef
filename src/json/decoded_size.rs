//! An estimate of the memory that working on a JSON text takes, before any of it is taken.

/// Bytes of memory for a byte of the text: the copies that decoding and encoding make. Measured: 11 for `convert` of one long text.
const PER_BYTE: u64 = 12;

/// Bytes of memory for a value, which a comma stands before: its message, its findings. Measured: 570 for an item that is none.
const PER_ITEM: u64 = 600;

/// The most that work may take: wasm has 4 GB, and a session is in it already.
const MOST: u64 = 3 * 1024 * 1024 * 1024;

/// Whether there is memory to decode this text and to report on all of its items. An estimate: a comma in a string counts as well.
#[must_use]
pub fn fits_memory(text: &[u8]) -> bool {
    // A text has no more items than bytes, so a short one needs no count.
    let size = text.len() as u64;
    if size.saturating_mul(PER_BYTE + PER_ITEM) <= MOST {
        return true;
    }
    let items = text.iter().filter(|byte| **byte == b',').count() as u64;
    size.saturating_mul(PER_BYTE).saturating_add(items.saturating_mul(PER_ITEM)) <= MOST
}

#[cfg(test)]
mod tests {
    use super::fits_memory;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn r62_a_text_of_many_items_takes_more_memory_than_a_long_one() {
        assert!(fits_memory(&vec![b'x'; 64 << 20]));
        assert!(!fits_memory(&vec![b','; 64 << 20]));
        assert!(fits_memory(&vec![b','; 4 << 20]));
    }
}
