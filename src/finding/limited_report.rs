//! Reports of a limited length (R63): a body or a history whose every item is wrong has as many findings as items.

use super::{Finding, FindingCode, Report, Severity};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The largest number of findings that a report lists. The others are counted by code, in one last finding.
pub const MAX_FINDINGS: usize = 1000;

/// A report that lists [`MAX_FINDINGS`] findings, and counts the others.
#[derive(Debug, Default)]
pub(crate) struct LimitedReport {
    findings: Report,
    omitted: BTreeMap<FindingCode, usize>,
    /// The highest severity of an omitted finding.
    severity: Option<Severity>,
}

impl LimitedReport {
    /// Returns the listed findings.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the listed findings, to change them.
    pub fn findings_mut(&mut self) -> &mut [Finding] {
        &mut self.findings
    }

    /// Returns true if no further finding is listed.
    pub fn is_full(&self) -> bool {
        self.findings.len() >= MAX_FINDINGS
    }

    /// Adds a finding. Returns false if it is only counted.
    pub fn push(&mut self, finding: Finding) -> bool {
        if self.is_full() {
            self.count(finding.severity, finding.code, 1);
            return false;
        }
        self.findings.push(finding);
        true
    }

    /// Counts findings that are not listed.
    pub fn count(&mut self, severity: Severity, code: FindingCode, times: usize) {
        *self.omitted.entry(code).or_default() += times;
        self.severity = self.severity.max(Some(severity));
    }

    /// Adds the findings of another report.
    pub fn append(&mut self, other: Self) {
        for finding in other.findings {
            self.push(finding);
        }
        for (code, times) in other.omitted {
            self.count(other.severity.unwrap_or(Severity::Info), code, times);
        }
    }

    /// Returns true if a finding is an error, listed or not.
    pub fn has_error(&self) -> bool {
        self.severity == Some(Severity::Error) || self.findings.iter().any(|found| found.severity == Severity::Error)
    }

    /// Returns the errors, without their paths: they are about a body that the caller never saw.
    pub fn into_errors(mut self) -> Self {
        self.findings.retain(|found| found.severity == Severity::Error);
        self.findings = self.findings.into_iter().map(Finding::without_path).collect();
        self
    }

    /// Lowers the severity of all findings.
    pub fn lower_severity(&mut self, to: Severity) {
        for finding in &mut self.findings {
            finding.severity = finding.severity.min(to);
        }
        self.severity = self.severity.min(Some(to));
    }

    /// Returns the report. Its last finding says how many others there are of which code.
    pub fn into_report(self) -> Report {
        let mut report = self.findings;
        if let Some(severity) = self.severity {
            let mut sentence = format!("There are {} more findings:", self.omitted.values().sum::<usize>());
            for (at, (code, times)) in self.omitted.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(sentence, "{comma} {times} {}", code.as_str());
            }
            sentence.push('.');
            report.push(Finding::new(severity, FindingCode::FindingsOmitted, sentence));
        }
        report
    }
}

/// Shortens a report to [`MAX_FINDINGS`] findings, and one that counts the others.
pub(crate) fn limit_report(report: &mut Report) {
    if report.len() <= MAX_FINDINGS + 1 {
        return;
    }
    let mut limited = LimitedReport::default();
    let mut earlier = Report::new();
    for finding in report.drain(..) {
        // What another report counted cannot be added up.
        if finding.code == FindingCode::FindingsOmitted {
            earlier.push(finding);
        } else {
            limited.push(finding);
        }
    }
    *report = limited.into_report();
    report.append(&mut earlier);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(count: usize) -> Report {
        (0..count)
            .map(|at| {
                let code = if at % 2 == 0 { FindingCode::Malformed } else { FindingCode::OrphanResult };
                Finding::warning(code, at.to_string())
            })
            .collect()
    }

    #[test]
    fn r63_a_report_lists_1000_findings_and_counts_the_others_by_code() {
        let mut long = report(1_005);
        limit_report(&mut long);
        assert_eq!(long.len(), 1_001);
        assert_eq!(long[999].message, "999");
        let last = &long[1_000];
        assert_eq!((last.code, last.severity), (FindingCode::FindingsOmitted, Severity::Warning));
        assert_eq!(last.message, "There are 5 more findings: 2 orphan_result, 3 malformed.");
    }

    #[test]
    fn r63_what_another_report_has_counted_is_added_up() {
        let mut counting = LimitedReport::default();
        counting.count(Severity::Error, FindingCode::OrphanResult, 7);
        let mut all = LimitedReport::default();
        report(1_001).into_iter().for_each(|finding| _ = all.push(finding));
        all.append(counting);
        let last = all.into_report().pop();
        let last = last.as_ref().map(|last| (last.severity, &*last.message));
        assert_eq!(last, Some((Severity::Error, "There are 8 more findings: 7 orphan_result, 1 malformed.")));
    }

    #[test]
    fn r63_a_short_report_is_unchanged() {
        let mut short = report(MAX_FINDINGS);
        limit_report(&mut short);
        assert_eq!(short, report(MAX_FINDINGS));
    }

    #[test]
    fn r63_an_omitted_error_makes_the_last_finding_an_error() {
        let mut long = report(1_001);
        long.push(Finding::error(FindingCode::Malformed, "e"));
        limit_report(&mut long);
        assert_eq!(long.last().map(|last| last.severity), Some(Severity::Error));
    }
}
