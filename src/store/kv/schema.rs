//! The layout's name and version, in a key of its own.

use super::driver::{KvCheck, KvDriver, KvEntry, KvWrite};
use super::key::{SCHEMA_KEY, is_ours};
use crate::error::{Error, ErrorCode, Result};
use bytes::Bytes;

/// The version of both layouts.
const VERSION: u64 = 1;

/// How the records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// A key for each record, for services with atomic commits.
    Records,
    /// A key for each append, written once, for services without.
    Appends,
}

impl Layout {
    fn of(driver: &dyn KvDriver) -> Self {
        if driver.has_commit() { Self::Records } else { Self::Appends }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Appends => "appends",
        }
    }

    fn marker(self) -> String {
        format!("rethread {} {VERSION}", self.name())
    }
}

/// Checks that the keys are ours and of the driver's layout, and marks them if there are none.
///
/// # Errors `unsupported_version` if a newer version wrote them, `config_invalid` if somebody else did or the layout is
/// another, and the driver's own. Nothing is written then.
pub(super) async fn prepare(driver: &dyn KvDriver) -> Result<()> {
    driver.limits().check()?;
    let layout = Layout::of(driver);
    if let Some(entry) = driver.get(SCHEMA_KEY.into()).await? {
        return check_marker(driver, layout, &entry);
    }
    let page = driver.list("", None, 16).await?;
    if page.keys.iter().any(|key| !is_ours(key)) {
        return Err(foreign(driver));
    }
    let value: Bytes = layout.marker().into();
    if driver.has_commit() {
        let check = KvCheck { key: SCHEMA_KEY.into(), version: None };
        let write = KvWrite { key: SCHEMA_KEY.into(), value: Some(value) };
        if !driver.commit(vec![check], vec![write], None).await? {
            // Another process was first.
            let entry = driver.get(SCHEMA_KEY.into()).await?;
            return entry.map_or(Ok(()), |entry| check_marker(driver, layout, &entry));
        }
        return Ok(());
    }
    driver.put(SCHEMA_KEY.into(), value).await
}

/// Returns whether the keys of a layout's marker are for a driver with `commit`; none for no marker of ours.
pub(super) fn marker_has_commit(value: &[u8]) -> Option<bool> {
    let mut words = std::str::from_utf8(value).ok()?.split(' ');
    let (ours, name) = (words.next()?, words.next()?);
    let layouts = [(Layout::Records, true), (Layout::Appends, false)];
    let (_, has_commit) = layouts.into_iter().find(|(layout, _)| ours == "rethread" && layout.name() == name)?;
    Some(has_commit)
}

fn check_marker(driver: &dyn KvDriver, layout: Layout, entry: &KvEntry) -> Result<()> {
    let text = std::str::from_utf8(&entry.value).unwrap_or_default();
    let mut words = text.split(' ');
    let (ours, name, version) = (words.next(), words.next(), words.next());
    let version = version.and_then(|version| version.parse::<u64>().ok());
    match (ours, version) {
        (Some("rethread"), Some(version)) if version > VERSION => Err(Error::new(
            ErrorCode::UnsupportedVersion,
            format!(
                "the {} store: its layout has version {version}, and this version of rethread knows {VERSION} at most; update rethread",
                driver.name()
            ),
        )),
        (Some("rethread"), Some(_)) if name == Some(layout.name()) => Ok(()),
        (Some("rethread"), Some(_)) => Err(Error::config(format!(
            "the {} store: its keys were written by a driver {} `commit`, and this one is {} it; use the same driver for the same keys",
            driver.name(),
            if layout == Layout::Records { "without" } else { "with" },
            if layout == Layout::Records { "with" } else { "without" },
        ))),
        _ => Err(foreign(driver)),
    }
}

fn foreign(driver: &dyn KvDriver) -> Error {
    Error::config(format!(
        "the {} store: there are keys that rethread did not write; give it a prefix or a namespace of its own",
        driver.name()
    ))
}
