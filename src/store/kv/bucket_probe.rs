//! Finds out whether a bucket swaps.

use super::bucket::Bucket;
use super::key::SCHEMA_KEY;
use super::schema::marker_has_commit;
use crate::error::{Error, ErrorCode, Result};

/// How often a failing probe of a new bucket is repeated before the bucket counts as one that does not swap.
const PROBES: usize = 3;

/// Returns whether a bucket is opened as one that swaps: as it was written, and a new one as its host can. `probe`
/// reads a key through the host's atomics; it fails with `unavailable` if the host may have none.
///
/// # Errors `unavailable` if the bucket was written by swaps and the probe fails; the bucket's own, and those of a probe
/// that say more. So an outage decides nothing: what a new bucket becomes it stays.
pub fn find_swap(bucket: &dyn Bucket, probe: &dyn Fn() -> Result<()>) -> Result<bool> {
    let mut failure = None;
    for _ in 0..PROBES {
        // Read before each probe: if the bucket itself is out of order, that is the error.
        let marker = bucket.get(SCHEMA_KEY)?;
        let written = marker.as_deref().and_then(marker_has_commit);
        if written == Some(false) {
            return Ok(false);
        }
        match probe() {
            Ok(()) => return Ok(true),
            Err(error) if error.code == ErrorCode::Unavailable => failure = Some((error, written)),
            Err(error) => return Err(error),
        }
    }
    match failure {
        Some((error, Some(true))) => Err(Error::unavailable(
            format!(
                "the bucket was written by compare-and-swap, and the host's atomics fail; open it again later: {}",
                error.into_message()
            ),
            false,
        )),
        _ => Ok(false),
    }
}
