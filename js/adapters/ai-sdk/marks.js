// The marks of UI messages, and the key of their answers that have not come to their end.

import { ArrivingAnswers } from '../arriving-answers.js';
import { markWith } from '../marks.js';

/** The name of the data parts. */
export const MARK = 'rethread/ai-sdk';

export const mark = (value) => markWith(MARK, value);

export const arriving = new ArrivingAnswers(MARK);
