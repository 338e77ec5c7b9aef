//! A chain of responses that the service does not continue any more.

use super::RunData;
use crate::owner::StateOwner;
use crate::provider::{Assembled, spec};

impl RunData {
    /// Returns the owner to build the next request for: the session while a chain is restarted, so that the request
    /// contains the history.
    pub fn owner_of_request(&self) -> &StateOwner {
        if self.chain_is_restarted { &StateOwner::Session } else { &self.setup.owner }
    }

    /// Returns true if the next request restarts a chain that the service does not continue any more.
    pub fn restarts_chain(&self) -> bool {
        self.chain_is_restarted
    }

    /// Returns true, once, if the chain can be restarted from the history: it began here, so the session has all of it,
    /// and the application allows it.
    pub fn try_restart_chain(&mut self) -> bool {
        let restarts = self.setup.owner.restarts_if_lost() && !self.chain_is_restarted;
        self.chain_is_restarted |= restarts;
        restarts
    }

    /// Sets the conversation that the newest request continues at an address of its own.
    pub fn set_addressed(&mut self, conversation: Option<String>) {
        self.addressed = conversation;
    }

    /// Returns the conversation that the newest request continues at an address of its own.
    pub fn addressed(&self) -> Option<&str> {
        self.addressed.as_deref()
    }

    /// Returns an answer with the conversation that it names, where the service begins one with each request that names
    /// none: kept or not, so only an owner makes it a conversation of the session.
    pub fn with_conversation(&self, assembled: Assembled) -> Assembled {
        let begins = spec(self.setup.provider.dialect).begins_conversations();
        if !(begins && self.setup.owner.is_conversation()) {
            return assembled;
        }
        Assembled { conversation_id: assembled.response_id.clone(), ..assembled }
    }

    /// Uncounts a model call that was refused, and is made with another request.
    pub fn uncount_model_call(&mut self) {
        self.totals.model_calls = self.totals.model_calls.saturating_sub(1);
    }
}
