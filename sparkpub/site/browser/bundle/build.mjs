// Bundles the part of Vega that the site's charts use into one module: `node build.mjs OUT LICENCES`.
// Maps, colour schemes and the layouts of graphs, trees and words are left out; nothing here draws them.
import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {build} from 'esbuild';

const absent = /^(d3-geo|d3-geo-projection|topojson-client|vega-projection|vega-geo)$/;
const stubs = {
  name: 'stubs',
  setup({onResolve, onLoad}) {
    onResolve({filter: absent}, ({path}) => ({path, namespace: 'absent'}));
    onLoad({filter: /.*/, namespace: 'absent'}, () => ({contents: 'module.exports = {}'}));
    // From its sources, so that the module with the colour schemes can be left out: charts name their colours.
    onResolve({filter: /^vega-scale$/}, () => ({path: resolve('node_modules/vega-scale/index.js'), sideEffects: false}));
    onLoad({filter: /vega-scale\/src\/palettes\.js$/}, () => ({contents: 'export const discrete = {}, continuous = {};'}));
  },
};

const {metafile} = await build({
  entryPoints: ['entry.mjs'],
  outfile: process.argv[2],
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  conditions: ['browser'],
  legalComments: 'none',
  banner: {js: '/* Vega and its parts (BSD-3-Clause), D3 (ISC): see licenses.txt beside this file. */'},
  plugins: [stubs],
  logLevel: 'warning',
  metafile: true,
});

const used = new Set(
  Object.values(metafile.outputs).flatMap(({inputs}) => Object.entries(inputs))
    .filter(([, {bytesInOutput}]) => bytesInOutput > 0)
    .map(([path]) => path.match(/^node_modules\/([^/]+)/)?.[1])
    .filter(Boolean),
);
const notices = [...used].sort().map((name) => {
  const folder = `node_modules/${name}`;
  const {version, license} = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version} (${license})\n\n${file ? readFileSync(`${folder}/${file}`, 'utf8').trim() : ''}\n`;
});
writeFileSync(process.argv[3], notices.join('\n--------\n\n'));
