// Bundles a program with Metro and the settings of React Native: node bundle.cjs PACKAGES ENTRY OUT
//
// What React Native runs first, its native modules, is left out: the bundle is run in Node.

const path = require('node:path');
const { createRequire } = require('node:module');

const [packages, entry, out] = process.argv.slice(2);
const from = createRequire(path.join(packages, 'package.json'));
const Metro = from('metro');
const { getDefaultConfig, mergeConfig } = from('@react-native/metro-config');

const config = mergeConfig(getDefaultConfig(__dirname), {
  watchFolders: [__dirname, packages],
  resolver: { nodeModulesPaths: [path.join(packages, 'node_modules')] },
  serializer: { getModulesRunBeforeMainModule: () => [] },
  reporter: { update() {} },
  cacheStores: [],
});

Metro.runBuild(config, { entry, out, platform: 'ios', dev: false, minify: false }).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
