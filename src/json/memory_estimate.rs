//! Estimates the memory that decoding a JSON text takes, before it is allocated.

/// Bytes of memory per byte of the text, for the copies that decoding and encoding make. Measured: 11 for `convert` of
/// one long string.
const MEMORY_PER_BYTE: u64 = 12;

/// Bytes of memory per value, for its message and its findings. Values are counted by commas. Measured: 570 for an
/// invalid item.
const MEMORY_PER_ITEM: u64 = 600;

/// Upper limit of the estimate, in bytes. Wasm has 4 GB, of which an open session takes a part.
const MAX_MEMORY: u64 = 3 * 1024 * 1024 * 1024;

/// Returns true if there is memory to decode this text and to report findings on all of its items. Commas in strings
/// count as items, so the estimate is too high rather than too low.
#[must_use]
pub fn fits_memory(text: &[u8]) -> bool {
    // A text has no more items than bytes, so a short one needs no count.
    let size = text.len() as u64;
    if size.saturating_mul(MEMORY_PER_BYTE + MEMORY_PER_ITEM) <= MAX_MEMORY {
        return true;
    }
    let items = text.iter().filter(|byte| **byte == b',').count() as u64;
    size.saturating_mul(MEMORY_PER_BYTE).saturating_add(items.saturating_mul(MEMORY_PER_ITEM)) <= MAX_MEMORY
}

#[cfg(test)]
mod tests {
    use super::fits_memory;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn r62_a_text_of_many_items_needs_more_memory_than_one_long_string() {
        assert!(fits_memory(&vec![b'x'; 64 << 20]));
        assert!(!fits_memory(&vec![b','; 64 << 20]));
        assert!(fits_memory(&vec![b','; 4 << 20]));
    }
}
