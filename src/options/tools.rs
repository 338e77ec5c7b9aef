//! The tools of a request.

use super::option_types::{FlagOrCallback, OptionTypes};
use super::values::{OptionEntries, WindowOption};
use super::words::words;
use crate::error::Result;
use crate::json::Json;
use crate::provider::ToolDefinition;
use crate::replay::Callback;
use crate::run::{OnInterrupted, ToolSettings, ToolTiming};
use crate::tool::Window;
use serde::Deserialize;
use std::collections::BTreeMap;

words!(
    /// `onInterrupted` of a tool.
    OnInterruptedOption: OnInterrupted {
        "report" => OnInterrupted::Report,
        "rerun" => OnInterrupted::Rerun,
        "ask" => OnInterrupted::Ask,
    }
);

/// A tool. `jsonSchema` is used by the facade, and so is `execute`.
#[derive(Deserialize)]
#[serde(bound = "", deny_unknown_fields, rename_all = "camelCase")]
pub struct ToolOptions<T: OptionTypes> {
    description: Option<String>,
    parameters: Option<T::Object>,
    #[serde(rename = "jsonSchema")]
    _json_schema: Option<T::Object>,
    execute: Option<T::HostOnlyFunction>,
    r#async: Option<bool>,
    ends_run: Option<bool>,
    on_interrupted: Option<OnInterruptedOption>,
    freshness: Option<WindowOption>,
    persist: Option<T::HostOnlyFunction>,
    needs_approval: Option<T::FlagOrFunction>,
}

/// The tools of a request: their definitions for the model, how the run treats each, and the callbacks that decide what
/// is stored and what needs an approval.
#[derive(Default)]
pub struct RequestTools {
    pub definitions: Vec<ToolDefinition>,
    pub tool_settings: BTreeMap<String, ToolSettings>,
    pub persist: BTreeMap<String, Callback>,
    pub approval_callbacks: BTreeMap<String, Callback>,
}

impl RequestTools {
    /// Reads the option `tools`.
    ///
    /// # Errors
    /// `config_invalid`.
    pub fn read<T: OptionTypes>(options: Option<OptionEntries<ToolOptions<T>>>) -> Result<Self> {
        let mut tools = Self::default();
        for (name, tool) in options.unwrap_or_default().0 {
            let needs_approval = match tool.needs_approval.map(Into::into) {
                Some(FlagOrCallback::Callback(callback)) => {
                    tools.approval_callbacks.insert(name.clone(), callback);
                    false
                }
                Some(FlagOrCallback::Flag(flag)) => flag,
                None => false,
            };
            if let Some(persist) = tool.persist {
                tools.persist.insert(name.clone(), persist.into());
            }
            let parameters = tool.parameters.map(|schema| T::object_to_json(&schema)).transpose()?;
            let description = tool.description;
            let is_async = tool.r#async.unwrap_or(false);
            let timing = match tool.execute {
                _ if !is_async => ToolTiming::InRun,
                Some(_) => ToolTiming::MayBeLater,
                None => ToolTiming::Later,
            };
            tools.definitions.push(ToolDefinition {
                name: name.clone(),
                description,
                parameters,
                strict: false,
                is_async,
            });
            let tool_settings = ToolSettings {
                ends_run: tool.ends_run.unwrap_or(false),
                needs_approval,
                on_interrupted: tool.on_interrupted.map_or(OnInterrupted::Report, |option| option.0),
                freshness: tool.freshness.map(|option| option.0),
                timing,
            };
            tools.tool_settings.insert(name, tool_settings);
        }
        Ok(tools)
    }
}

/// Adds the tools of `params`, which the model may call and the application answers.
pub fn add_tools_of_params(params: &Json, tool_settings: &mut BTreeMap<String, ToolSettings>) {
    let Some(tools) = params.view().find("tools") else { return };
    for tool in tools.items() {
        if let Some(name) = tool.get("function").unwrap_or(tool).text("name") {
            tool_settings.entry(name.into_owned()).or_default();
        }
    }
}

/// Returns the freshness windows of tools that have one.
pub fn windows(tool_settings: &BTreeMap<String, ToolSettings>) -> BTreeMap<String, Window> {
    let mut windows = BTreeMap::new();
    for (name, tool_settings) in tool_settings.iter() {
        if let Some(window) = tool_settings.freshness {
            windows.insert(name.clone(), window);
        }
    }
    windows
}
