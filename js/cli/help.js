// What `rethread --help` says.

import { DIALECTS } from './dialect.js';

export const HELP = `Usage: rethread check FILE [--dialect D] [--json]
       rethread repair FILE [--dialect D] [-o OUT] [--json]
       rethread convert FILE [--from D] --to D [-o OUT] [--json]
       rethread explain CODE [--dialect D]

check    says what the provider would refuse, a line each, with JSON pointers
repair   writes the nearest body that it accepts
convert  writes the body for another provider, repaired
         (of these two, what was done goes to standard error)
explain  prints the rule behind a finding: the provider's sentence, a broken body, the repaired one

FILE is a request's body, an array of messages, or JSON Lines with a message each; "-" is
standard input. Text that needs no repair comes out as it went in.

  -d, --dialect D        ${Object.keys(DIALECTS).slice(0, 3).join(', ')},
      --from D, --to D   ${Object.keys(DIALECTS).slice(3).join(' or ')}; where the shape says what FILE is, all but
                         --to may be left out
  -o, --out OUT          where to write; standard output if left out. OUT may be FILE
      --dangling-calls   what becomes of a call without a result: "synthesize" one that says
                         so (the default), or "omit" the call
      --dangling-text T  the text of such a result
      --json             the report as JSON
  -h, --help             this
  -v, --version          the version

Exit code: 0 accepted, repaired or converted (warnings do not count), 1 refused, 2 used wrongly.
Colours are for terminals; NO_COLOR switches them off.
`;
