// Bundles the page. `node build.mjs OUT_FOLDER` writes index.html, studio.js, studio.css and favicon.svg, then all of
// them as studio_files.cpp, plain and compressed, and packages.json, the npm packages that they contain.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const out = process.argv[2] ?? 'dist';
const source = fileURLToPath(new URL('.', import.meta.url));
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  absWorkingDir: source,
  entryPoints: ['src/studio.ts', 'src/studio.css'],
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022'],
  charset: 'utf8',
  legalComments: 'none',
  outdir: out,
  logLevel: 'warning',
  metafile: true,
});
for (const name of ['index.html', 'favicon.svg']) writeFileSync(join(out, name), readFileSync(join(source, 'src', name)));

// For the bill of materials: the packages that contribute to the page.
const bundled = new Set();
for (const { inputs } of Object.values(metafile.outputs)) {
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    const name = path.match(/^node_modules\/((@[^/]+\/)?[^/]+)\//)?.[1];
    if (name && bytesInOutput > 0) bundled.add(name);
  }
}
writeFileSync(join(out, 'packages.json'), JSON.stringify([...bundled].sort()) + '\n');

const files = [
  ['index.html', 'text/html; charset=utf-8'],
  ['studio.js', 'text/javascript; charset=utf-8'],
  ['studio.css', 'text/css; charset=utf-8'],
  ['favicon.svg', 'image/svg+xml'],
].map(([name, type]) => ({ name, type, bytes: readFileSync(join(out, name)) }));

const bytes_max = 410_000;
const bytes = files.reduce((sum, f) => sum + f.bytes.length, 0);
if (bytes > bytes_max) throw new Error(`the page has ${bytes} bytes, more than ${bytes_max}`);

// String literals compile faster than lists of numbers. Escapes are octal, because a hexadecimal one has no fixed end.
const literal = (data) => {
  const lines = [];
  for (let at = 0; at < data.length; at += 4096) {
    let line = '';
    for (const b of data.subarray(at, at + 4096)) {
      const plain = b >= 0x20 && b < 0x7f && b !== 0x22 && b !== 0x5c && b !== 0x3f;
      line += plain ? String.fromCharCode(b) : `\\${b.toString(8).padStart(3, '0')}`;
    }
    lines.push(`    "${line}"`);
  }
  return `{\n${lines.join('\n')},\n    ${data.length}}`;
};
const entries = files.map((f) => `  {"${f.name}", "${f.type}",\n   ${literal(f.bytes)},\n   ${literal(gzipSync(f.bytes, { level: 9 }))},
   "${createHash('sha256').update(f.bytes).digest('hex').slice(0, 16)}"}`);
writeFileSync(join(out, 'studio_files.cpp'), `// Made by build.mjs.
#include "actors/http/studio/studio_files.hpp"

namespace redline::actors {
namespace {
using namespace std::string_view_literals;
struct embedded {
  const char* data;
  std::size_t size;
};
struct entry {
  std::string_view name, content_type;
  embedded plain, compressed;
  std::string_view digest;
};
constexpr entry entries[] = {
${entries.join(',\n')}};
}  // namespace

std::optional<studio_file> find_studio_file(std::string_view name) {
  for (const entry& e : entries) {
    if (e.name != name) continue;
    return studio_file{e.content_type, {e.plain.data, e.plain.size}, {e.compressed.data, e.compressed.size}, e.digest};
  }
  return std::nullopt;
}
}  // namespace redline::actors
`);
