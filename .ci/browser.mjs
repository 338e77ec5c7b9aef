// Launches the browser of the tests.

import { chromiumPath } from './tools.mjs';
import { read } from './shell.mjs';

/** Launches Chromium with the flags of webdriver.json. `profile`: a folder that keeps the browser's data. */
export async function launchBrowser({ profile, ...options } = {}) {
  const { chromium } = await import('playwright-core');
  const args = JSON.parse(read('webdriver.json'))['goog:chromeOptions'].args.filter((arg) => arg !== '--headless');
  const settings = { executablePath: chromiumPath(), headless: true, args, chromiumSandbox: false, ...options };
  return profile ? chromium.launchPersistentContext(profile, settings) : chromium.launch(settings);
}
