// The text of `rethread --help`.

import { DIALECTS } from '../dialects.js';

export const HELP = `Usage: rethread check FILE... [--dialect D] [--json]
       rethread repair FILE [--dialect D] [-o OUT] [--json]
       rethread convert FILE [--from D] --to D [-o OUT] [--json]
       rethread explain CODE | SENTENCE [--dialect D]

check    prints what the provider would reject, one line each, with JSON pointers; for a provider's
         error or a log line, the rule and what cures it
repair   writes the nearest body that the provider accepts
convert  writes the body for another provider, repaired
         (repair and convert print their findings to standard error)
explain  prints the rule behind a finding, or behind what a provider said: a sentence, a code, a log
         line or the JSON of an error; "-" reads it from standard input

FILE is the body of a request, an array of messages, or JSON Lines with one message per line; "-"
is standard input. check also takes JSON Lines with a body per line, files of batches (OpenAI,
Anthropic), logs and traces that contain a body (LangSmith, for one), and several files. Lines of a
log without a body or an error that is known are skipped. Text that needs no repair is written
unchanged.

  -d, --dialect D        ${DIALECTS.slice(0, 3).join(', ')},
      --from D, --to D   ${DIALECTS.slice(3).join(' or ')}; only --to is required if the dialect of
                         FILE can be recognized
  -o, --out OUT          the file to write (default: standard output). OUT may be FILE
      --dangling-calls   for a call without a result: "synthesize" an error result (default),
                         or "omit" the call
      --dangling-text T  the text of a synthesized result
      --json             the report as JSON
  -h, --help             prints this text
  -v, --version          prints the version

Exit code: 0 accepted, repaired or converted (warnings do not count), 1 rejected, 2 invalid usage or
an unreadable file.
Colors are used in terminals; NO_COLOR disables them.
`;
