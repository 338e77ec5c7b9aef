// Installs the tools of the build and the tests, if they are missing.
//
//   node .ci/tools.mjs            everything
//   node .ci/tools.mjs rust npm   only these

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptInstall, cache, hash, output, present, read, root, run, which } from './shell.mjs';

const WASM_PACK = '0.15.1';
const WASMTIME = '50.0.1';
const CARGO_FUZZ = '0.13.2';

/** The version of wasm-bindgen in the lock file: the CLI must have the same version as the crate. */
const bindgenVersion = () => /name = "wasm-bindgen"\nversion = "([^"]+)"/.exec(read('Cargo.lock'))?.[1];

/** Runs an installation once per process. */
const once = (install) => {
  let done;
  return () => (done ??= install());
};

/** The toolchain of rust-toolchain.toml, with its targets. */
export const rust = once(async () => {
  if (!which('cargo')) throw new Error('Rust is missing: install it with rustup, https://rustup.rs');
  // rustup installs channel, components and targets by itself when a proxied command runs in this folder.
  const version = output('cargo', ['--version']);
  if (!version) await run('rustup', ['toolchain', 'install'], { minutes: 15 });
  const sysroot = output('rustc', ['--print', 'sysroot'])?.trim() ?? '';
  const targets = /targets = \[([^\]]+)\]/.exec(read('rust-toolchain.toml'))[1].match(/[\w-]+/g);
  const missing = targets.filter((target) => !existsSync(path.join(sysroot, 'lib/rustlib', target)));
  if (missing.length) await run('rustup', ['target', 'add', ...missing], { minutes: 15 });
  console.log(`rust: ${output('rustc', ['--version'])?.trim()}, ${targets.join(' ')}`);
});

/** Returns the folder of a cargo program of exactly this version: from PATH, else from the cache, else built into the
 *  cache. */
async function cargoTool(crate, program, version) {
  const isVersion = (file) => output(file, ['--version'])?.trim().split(' ').includes(version);
  const onPath = which(program);
  if (onPath && isVersion(onPath)) return path.dirname(onPath);
  const place = path.join(cache, `${crate}-${version}`);
  const bin = path.join(place, 'bin');
  if (!isVersion(path.join(bin, program))) {
    console.log(`${crate} ${version}: building it into ${place}; some minutes, once`);
    mkdirSync(place, { recursive: true });
    await run('cargo', ['install', '--locked', crate, '--version', version, '--root', place], { minutes: 40 });
  }
  return bin;
}

const toFront = (dir) => {
  const rest = (process.env.PATH ?? '').split(path.delimiter).filter((entry) => entry !== dir);
  process.env.PATH = [dir, ...rest].join(path.delimiter);
};

/** Compiles `.ci/bindgen`, which generates the JavaScript glue, once per machine. Returns its path. */
export const bindgen = once(async () => {
  await rust();
  const manifest = '.ci/bindgen/Cargo.toml';
  if (!read(manifest).includes(`wasm-bindgen-cli-support = "=${bindgenVersion()}"`)) {
    throw new Error(
      `${manifest}: wasm-bindgen-cli-support must have the version of wasm-bindgen in Cargo.lock, ${bindgenVersion()}`,
    );
  }
  const place = path.join(cache, `bindgen-${hash([manifest, '.ci/bindgen/Cargo.lock', '.ci/bindgen/src/main.rs'])}`);
  const program = path.join(place, 'debug', 'bindgen');
  if (!existsSync(program)) {
    console.log(`bindgen: building it into ${place}; half a minute, once`);
    await run('cargo', ['build', '--locked', '--manifest-path', manifest, '--target-dir', place], { minutes: 20 });
  }
  return program;
});

/** The test runner of wasm-bindgen, which comes with its whole command line. */
export const testRunner = once(async () => {
  await rust();
  const dir = await cargoTool('wasm-bindgen-cli', 'wasm-bindgen', bindgenVersion());
  // First on PATH: wasm-pack and cargo's runner look there, and another version would not fit the crate.
  toFront(dir);
  console.log(`wasm-bindgen: ${bindgenVersion()} in ${dir}`);
});

export const wasmPack = once(async () => {
  await rust();
  const dir = await cargoTool('wasm-pack', 'wasm-pack', WASM_PACK);
  if (!(process.env.PATH ?? '').split(path.delimiter).includes(dir)) process.env.PATH += path.delimiter + dir;
  console.log(`wasm-pack: ${WASM_PACK} in ${dir}`);
});

/** For `npm run fuzz`. */
export const cargoFuzz = once(async () => {
  await rust();
  toFront(await cargoTool('cargo-fuzz', 'cargo-fuzz', CARGO_FUZZ));
});

/** Installs wasmtime for Python, a host of components in one package. Returns the value for PYTHONPATH. */
export const wasmtime = once(async () => {
  const python = which('python3');
  if (!python)
    throw new Error('Python 3 with pip is missing: it installs wasmtime, which hosts the component in a test');
  const place = path.join(cache, `wasmtime-${WASMTIME}`);
  const works = () =>
    output(python, ['-c', 'import wasmtime.component'], { env: { ...process.env, PYTHONPATH: place } }) !== null;
  if (!works())
    await run(
      python,
      [
        '-m',
        'pip',
        'install',
        '-q',
        '--disable-pip-version-check',
        '--root-user-action',
        'ignore',
        '--target',
        place,
        '--upgrade',
        `wasmtime==${WASMTIME}`,
      ],
      { minutes: 10 },
    );
  console.log(`wasmtime: ${WASMTIME} in ${place}`);
  return place;
});

/** Installs node_modules according to the lock file. */
export const npm = once(async () => {
  const wanted = hash(['package-lock.json', '.npmrc'], process.version);
  const stamp = 'node_modules/.rethread-lock';
  if (!present(stamp) || read(stamp) !== wanted) {
    // No package here needs its install script.
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { minutes: 15 });
    writeFileSync(path.join(root, stamp), wanted);
  }
  console.log('npm: node_modules matches package-lock.json');
});

const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
export const chromiumPath = () => process.env.CHROMIUM || CHROMIUM.map(which).find(Boolean) || null;
export const chromedriverPath = () => process.env.CHROMEDRIVER || which('chromedriver');

/** Chromium with its driver, from the system's packages. */
export const chromium = once(async () => {
  if (!chromiumPath() || !chromedriverPath()) {
    await aptInstall(
      ['chromium', 'chromium-driver'],
      'Chromium and chromedriver of one version are needed: as root on Debian `apt-get install chromium chromium-driver`, ' +
        'elsewhere install both and name them in CHROMIUM and CHROMEDRIVER',
    );
  }
  if (!chromiumPath() || !chromedriverPath())
    throw new Error('Chromium was installed but is not on PATH: set CHROMIUM and CHROMEDRIVER');
  console.log(`chromium: ${chromiumPath()}, ${chromedriverPath()}`);
});

export const tools = { rust, bindgen, testRunner, wasmPack, npm, chromium, wasmtime };

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  for (const name of names.length ? names : Object.keys(tools)) {
    if (!Object.hasOwn(tools, name)) throw new Error(`no tool ${name}: one of ${Object.keys(tools).join(', ')}`);
    await tools[name]();
  }
}
