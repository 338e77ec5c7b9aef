//! The addresses of conversations that a service continues at an address of their own.

use super::service_state::ServiceState;
use crate::error::{Error, Result};
use crate::json::{Json, JsonRef, ObjectWriter};

impl ServiceState {
    /// Returns the id of the conversation that a body names, and that its address will; `None` for a body that is sent
    /// to the address of the parameters.
    pub fn addressed(&self, body: JsonRef<'_>) -> Option<String> {
        let member = self.conversation.filter(|_| self.begun_conversation.is_some())?;
        body.text(member).map(std::borrow::Cow::into_owned)
    }

    /// Returns the address and the body of a request that continues a conversation at its address: the body does not
    /// name it. `None` if it is sent as it is.
    ///
    /// # Errors
    /// `config_invalid` for an id that could name another address.
    pub fn at_own_address(&self, url: &str, body: JsonRef<'_>) -> Result<Option<(String, Json)>> {
        let (Some(id), Some(member)) = (self.addressed(body), self.conversation) else { return Ok(None) };
        let address = self.address_of(url, &id)?;
        Ok(Some((address, ObjectWriter::build(|out| out.copy_all(body, member)))))
    }

    /// Returns the address of a conversation.
    ///
    /// # Errors
    /// `config_invalid` for an id that could name another address.
    pub fn address_of(&self, url: &str, id: &str) -> Result<String> {
        let address = self.begun_conversation.as_ref().and_then(|begun| (begun.address)(url, id));
        address.ok_or_else(|| {
            Error::config(format!(
                "the id \"{id}\" cannot be a part of the request's address; `owner.conversationId` is the one that the service gave"
            ))
        })
    }
}
