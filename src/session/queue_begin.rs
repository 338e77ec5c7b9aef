//! How a run that was sent to the queue begins.

use crate::store::QueueTurn;

/// How a run that was sent to the queue begins.
pub(super) enum QueueBegin {
    /// If its turn has come. Nothing is stored of it yet.
    InTurn(QueueTurn),
    /// In the place of its question that waited.
    Queued,
}
