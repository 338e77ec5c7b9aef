//! Which owners of a conversation's state a dialect can have.

use super::dropping::with_listed;
use super::parameters::Parameter;
use super::provider_request::ProviderRequest;
use crate::error::{Error, ErrorCode, Result};
use crate::json::{JsonRef, ObjectWriter};
use crate::owner::StateOwner;
use crate::provider::spec::{DialectSpec, ServiceState};

/// The parameter that has a service work on an answer when nobody reads it.
const BACKGROUND: &str = "background";

/// Rejects an owner that the request's dialect or parameters cannot have.
///
/// # Errors
/// `config_invalid`.
pub(crate) fn check_owner(spec: &DialectSpec, provider: &ProviderRequest, owner: &StateOwner) -> Result<()> {
    if !owner.is_stateful() {
        return Ok(());
    }
    let Some(service) = &spec.service_state else {
        return Err(Error::config(format!(
            "`owner.kind` is \"{}\", and services of the dialect \"{}\" keep no conversations; use `owner: {{ kind: \"session\" }}`",
            owner.kind(),
            provider.dialect.as_str()
        )));
    };
    if owner.is_conversation() && service.conversation.is_none() {
        return Err(Error::config(format!(
            "services of the dialect \"{}\" have no conversations with ids; use `owner: {{ kind: \"response\", auto: true }}`",
            provider.dialect.as_str()
        )));
    }
    let store = spec.parameters.place(Parameter::Store).and_then(|name| provider.params.view().find(name));
    if !owner.is_conversation() && store.and_then(JsonRef::as_bool) == Some(false) {
        return Err(Error::config(
            "`params.store` is false, so no later request can continue the response; leave it out, or use `owner: { kind: \"session\" }`",
        ));
    }
    let background = provider.params.view().find(BACKGROUND).and_then(JsonRef::as_bool);
    if spec.resumable_answers.is_none() && background == Some(true) {
        return Err(Error::config(format!(
            "`params.background` is true, and an answer on which a service of the dialect \"{}\" works in the background is not \
             picked up, so the conversation could not go on; leave it out",
            provider.dialect.as_str()
        )));
    }
    Ok(())
}

/// Rejects an input that refers to what a service keeps: the request would not contain the reference, and the model
/// would lack its content.
///
/// # Errors
/// `state_owner_conflict`.
pub(crate) fn check_input_body(spec: &DialectSpec, input: JsonRef<'_>) -> Result<()> {
    let members = spec.service_state.iter().flat_map(ServiceState::members);
    match members.into_iter().find(|member| input.find(member).is_some_and(|value| !value.is_null())) {
        Some(member) => Err(second_owner_in(&format!("input.{member}"))),
        None => Ok(()),
    }
}

/// Returns the request with the header that its service needs to keep the conversation; `None` if it needs none.
pub(crate) fn with_service_header(
    spec: &DialectSpec,
    request: &ProviderRequest,
    owner: &StateOwner,
) -> Option<ProviderRequest> {
    let (name, value) = spec.service_state.as_ref().filter(|_| owner.is_stateful())?.header?;
    Some(ProviderRequest { headers: with_listed(&request.headers, name, value), ..request.clone() })
}

/// Returns the request with the parameter that has its service keep it; `None` if it needs none.
pub(crate) fn kept_by_service(spec: &DialectSpec, request: &ProviderRequest) -> Option<ProviderRequest> {
    let (name, value) = spec.service_state.as_ref()?.parameter?;
    let params = ObjectWriter::build(|object| {
        object.copy_all(request.params.view(), name);
        object.raw(name, value);
    });
    Some(ProviderRequest { params, ..request.clone() })
}

/// Creates the error of a member that refers to what a service keeps.
pub(super) fn second_owner_in(member: &str) -> Error {
    let message =
        format!("`{member}` would give the conversation a second owner; open the session with the option `owner`");
    Error::new(ErrorCode::StateOwnerConflict, message)
}
