//! The headers of a request, and the body's members before the messages.

use super::credentials::{check_headers, check_url};
use super::parameter_translation::{names_parameter, read_tool_choice, translate_foreign};
use super::parameters::Parameter;
use super::provider_request::ProviderRequest;
use super::state_owner::second_owner_in;
use super::tool_choice::TOOL_CHOICE;
use super::tool_list::encode_tools;
use super::tools::{TOOLS, ToolDefinition};
use crate::error::{Error, Result};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{Json, JsonKind, ObjectWriter};
use crate::provider::spec::{DefaultsContext, DialectSpec, NamedDialect, ToolMembers};

/// What a request has beside the messages.
pub(crate) struct RequestHead<'r> {
    pub request: &'r ProviderRequest,
    pub dialect: NamedDialect,
}

impl RequestHead<'_> {
    /// Rejects requests that cannot work, and credentials where they would be stored.
    ///
    /// # Errors
    /// `config_invalid`, never with the credential in its message; `state_owner_conflict`.
    pub fn check(&self) -> Result<()> {
        check_url(&self.request.url)?;
        check_headers(&self.request.headers)?;
        if self.request.params.view().kind() != JsonKind::Object {
            return Err(Error::config("`provider.params` is an object: model, temperature, and so on"));
        }
        let spec = self.dialect.spec;
        for reserved in spec.body.reserved_members {
            if self.request.params.view().find(reserved).is_some() {
                if spec
                    .service_state
                    .as_ref()
                    .is_some_and(|service| service.members().any(|member| member == *reserved))
                {
                    return Err(second_owner_in(&format!("params.{reserved}")));
                }
                return Err(Error::config(format!(
                    "`params.{reserved}` is written by the session; append to it, or use `instructions` and `input`"
                )));
            }
        }
        Ok(())
    }

    /// Returns the headers of the request.
    pub fn headers(&self) -> Vec<(String, String)> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        for (name, value) in self.dialect.spec.body.required_headers {
            if !self.request.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                headers.push(((*name).to_owned(), (*value).to_owned()));
            }
        }
        for header in &self.request.headers {
            if !header.0.eq_ignore_ascii_case("content-type") {
                headers.push(header.clone());
            }
        }
        headers
    }

    /// Writes the body's members up to the messages, into an object that stays open. Returns the tools.
    ///
    /// # Errors
    /// `config_invalid` for a tool that is named twice.
    pub fn write(
        &self,
        object: &mut ObjectWriter<'_>,
        tools: &[ToolDefinition],
        report: &mut Report,
    ) -> Result<Option<Json>> {
        let DialectSpec { body, tools: codec, parameters, .. } = self.dialect.spec;
        let all = self.dialect.all;
        let params = self.request.params.view();
        let translate = |name: &str| translate_foreign(self.dialect, name);
        let tools = encode_tools(*codec, tools, codec.list_in(params))?;
        // "Function calling config is set without function_declarations", says Gemini of a server's own tools alone.
        let callable =
            tools.as_ref().is_some_and(|tools| tools.view().items().any(|entry| codec.has_callable_tool(entry)));
        let mut named = Vec::new();
        let mut leave_out = |name: &str, why: &str| report.push(left_out(name, why));
        for (key, value) in params.entries() {
            let name = key.as_text().unwrap_or_default();
            match name.as_ref() {
                name if name == TOOLS || names_parameter(all, name, Parameter::Stream) => continue,
                // `check` took it: it is null.
                empty if body.reserved_members.contains(&empty) => continue,
                moved if parameters.is_moved(moved, &translate) => continue,
                // "'parallel_tool_calls' is only allowed when 'tools' are specified", says OpenAI.
                name if !callable
                    && (name == TOOL_CHOICE || names_parameter(all, name, Parameter::ParallelToolCalls)) =>
                {
                    leave_out(name, "rejected without tools");
                    continue;
                }
                TOOL_CHOICE if body.has_other_tool_choice(params) => {
                    leave_out(&name, "given by another member already");
                    continue;
                }
                foreign if body.rejects_member(foreign, value) => {
                    leave_out(&name, "no member of this dialect");
                    continue;
                }
                TOOL_CHOICE if !codec.is_native_tool_choice(value) => {
                    if !read_tool_choice(all, value).is_some_and(|choice| codec.write_tool_choice(object, &choice)) {
                        leave_out(&name, "in a form that this dialect does not have");
                        continue;
                    }
                }
                _ => object.copy(key, value),
            }
            named.push(name);
        }
        let mut context = DefaultsContext { request: self.request, named: &named, translate: &translate, report };
        parameters.write_defaults(object, &mut context);
        let members = ToolMembers {
            tools: tools.as_ref().map(Json::view),
            has_callable_tool: callable,
            params,
            read_choice: &|choice| read_tool_choice(all, choice),
            translate: &translate,
        };
        codec.write_members(object, &members, report);
        Ok(tools)
    }
}

/// Returns the finding of a parameter that is not sent.
pub(crate) fn left_out(name: &str, why: &str) -> Finding {
    let sentence = format!("`{name}` is {why}; it is left out");
    Finding::info(FindingCode::UnsupportedKey, sentence).with_action(Action::Dropped)
}
