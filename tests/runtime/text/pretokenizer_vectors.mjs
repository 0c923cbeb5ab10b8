// Writes pretokenizer_vectors.json: how V8's expressions, written as in the models' tokenizer.json, cut some texts. Node
// 20 or later: node tests/runtime/text/pretokenizer_vectors.mjs > tests/runtime/text/pretokenizer_vectors.json
const contraction = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";
const tail = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const llama3 = (digits) => `${contraction}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${tail}`;
const upper = '\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}';
const lower = '\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}';
const cased = (suffix, digits) => `[^\\r\\n\\p{L}\\p{N}]?[${upper}]*[${lower}]+${suffix}|[^\\r\\n\\p{L}\\p{N}]?[${upper}]+[${lower}]*${suffix}|` +
  `${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${tail}`;
const gpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const punctuated = (rest) => `[!"#$%&'()*+,\\-.\\/:;<=>?@\\[\\\\\\]^_\`{\\|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+${rest}`;
const kana = '[一-龥぀-ゟ゠-ヿ]+';
const notHan = (set) => `(?:(?!\\p{Script=Han})[${set}])`;
const casedLetters = 'A-Za-z\\u{B5}\\u{C0}-\\u{D6}\\u{D8}-\\u{F6}\\u{F8}-\\u{1BA}\\u{1BC}-\\u{1BF}\\u{1C4}-\\u{293}\\u{295}-\\u{2AF}\\u{370}-\\u{373}\\u{376}\\u{377}\\u{37B}-\\u{37D}\\u{37F}\\u{386}\\u{388}-\\u{38A}\\u{38C}\\u{38E}-\\u{3A1}\\u{3A3}-\\u{3F5}\\u{3F7}-\\u{481}\\u{48A}-\\u{52F}\\u{531}-\\u{556}\\u{10A0}-\\u{10C5}\\u{13A0}-\\u{13F5}\\u{13F8}-\\u{13FD}\\u{1C90}-\\u{1CBA}\\u{1CBD}-\\u{1CBF}\\u{1D00}-\\u{1D2B}\\u{1D6B}-\\u{1D77}\\u{1D79}-\\u{1D9A}\\u{1E00}-\\u{1F15}\\u{1F18}-\\u{1F1D}\\u{1F20}-\\u{1F45}\\u{1F48}-\\u{1F4D}\\u{1F50}-\\u{1F57}\\u{1F59}\\u{1F5B}\\u{1F5D}\\u{1F5F}-\\u{1F7D}\\u{1F80}-\\u{1FB4}\\u{1FB6}-\\u{1FBC}\\u{1FBE}\\u{1FC2}-\\u{1FC4}\\u{1FC6}-\\u{1FCC}\\u{1FD0}-\\u{1FD3}\\u{1FD6}-\\u{1FDB}\\u{1FE0}-\\u{1FEC}\\u{1FF2}-\\u{1FF4}\\u{1FF6}-\\u{1FFC}\\u{2102}\\u{2107}\\u{210A}-\\u{2113}\\u{2115}\\u{2119}-\\u{211D}\\u{2124}\\u{2126}\\u{2128}\\u{212A}-\\u{212D}\\u{212F}-\\u{2134}\\u{2139}\\u{213C}-\\u{213F}\\u{2145}-\\u{2149}\\u{214E}\\u{2183}\\u{2184}\\u{2C00}-\\u{2C7B}\\u{2C7E}-\\u{2CE4}\\u{2CEB}-\\u{2CEE}\\u{2CF2}\\u{2CF3}\\u{A640}-\\u{A66D}\\u{A680}-\\u{A69B}\\u{A722}-\\u{A76F}\\u{A771}-\\u{A787}\\u{A78B}-\\u{A78E}\\u{AB70}-\\u{ABBF}\\u{FB00}-\\u{FB06}\\u{FB13}-\\u{FB17}\\u{FF21}-\\u{FF3A}\\u{FF41}-\\u{FF5A}\\u{10400}-\\u{1044F}\\u{104B0}-\\u{104D3}\\u{104D8}-\\u{104FB}\\u{10C80}-\\u{10CB2}\\u{10CC0}-\\u{10CF2}\\u{118A0}-\\u{118DF}\\u{1E900}-\\u{1E943}';
const bloom = ' ?[^(\\s|.,!?…。，、।۔،)]+';

const schemes = {
  default: ['[\\p{P}\\$\\+<=>\\^~\\|]+', gpt2, '\\p{N}+', '[0-9][0-9][0-9]'],
  'gpt-2': [gpt2],
  'llama-bpe': [llama3('\\p{N}{1,3}')],
  qwen2: [llama3('\\p{N}')],
  qwen35: [`${contraction}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${tail}`],
  'gpt-4o': [cased(`${contraction}?`, '\\p{N}{1,3}')],
  tekken: [cased('', '\\p{N}')],
  'seed-coder': [`${contraction}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|${tail}`],
  bailingmoe: [`${contraction}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+`],
  ufakzeka: [`[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${tail}`],
  laguna: ['[^\\n]+|[\\n]+', llama3('\\p{N}')],
  minicpm5: ['\\p{N}{1,3}', llama3('\\p{N}+')],
  youtu: ['[가-힣ㄱ-ㆎ]+|[!…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+', cased(`${contraction}?`, '\\p{N}')],
  'kimi-k2': [`\\p{Script=Han}+|[^\\r\\n\\p{L}\\p{N}]?${notHan(upper)}*${notHan(lower)}+${contraction}?|` +
    `[^\\r\\n\\p{L}\\p{N}]?${notHan(upper)}+${notHan(lower)}*${contraction}?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${tail}`],
  starcoder: ['\\p{N}', gpt2],
  falcon: ['[\\p{P}\\$\\+<=>\\^~\\|`]+', gpt2, '[0-9][0-9][0-9]'],
  'deepseek-coder': ['[\\r\\n]', '\\s?\\p{L}+', '\\s?\\p{P}+', '[一-龥ࠀ-一가-퟿]+', '\\p{N}'],
  'deepseek-llm': ['[\\r\\n]', `\\s?[${casedLetters}]+`, '\\s?[!-/:-~！-／：-～‘-‟　-。]+', '\\s+$', '[一-龥ࠀ-一가-퟿]+', '\\p{N}'],
  'deepseek-v3': ['\\p{N}{1,3}', kana, punctuated(`[\\r\\n]*|${tail}`)],
  spark2_5: ['\\p{N}{1,3}', kana, punctuated('|[\\r\\n]|\\s+(?!\\S)|\\s+'), '\\p{N}'],
  bloom: [bloom],
  viking: [bloom, '\\p{N}'],
};

const texts = [
  '', 'Hello world', "I'LL we'Ve it's o'clock 'S 'tis x'ſ", 'x12 = [345]; y=6789012\n\n\n  return a_b + getHTTPLength(URLs)\n',
  '\tif (x) {\r\n\t\ty++;  \r\n\t}\r\n\r\n', 'std::vector<std::string_view>& out;// path/to/file\\n ../x//\n/y', '   leading\n   \n trailing   ',
  'été Été ÉTÉ naïve ǅemal ʰx ªº', 'नमस्ते दुनिया हिन्दी', '中文文本，测试。もじテスト 한국어 ㄱㄴ ㄅㄆ',
  '漢字kanji漢字 ABC中DEF', 'a\u0301b\u0300 \u0301x e\u0301\u0302', '１２３ ٠١٢ Ⅷ ½ 4⁵', '😀 😀x 👩‍👩‍👧 ™', 'a\u00a0b\u2003c\u3000d\u180ee\ufefff\u0085g\u2028h',
  '$100 <=> ^~| `x` "q" (a,b) {c} [d]', '!foo #bar @baz ~qux -x /y', "'", "''s''re", '…、。，！？“x”—‘y’', 'مرحبا ١٢٣ ، ۔', '\n', '   ', '\r', '\r\r\n', '1', '12345678901234567890',
];
// A built-in generator chooses, so that every machine writes the same file.
const units = ['a', 'Z', 'b', 'Q', '7', '0', ' ', ' ', '\n', '\r', '\t', "'", 's', 'LL', '+', '_', '/', '.', ',', '"', 'é', 'É', '中', 'の', '한', 'ʰ', 'ǅ', '\u0301', '\u00a0', '😀', '٣', '…', '`'];
let state = 12345n;
const random = (n) => { state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn; return Number((state >> 33n) % BigInt(n)); };
for (let i = 0; i < 60; ++i) { let t = ''; for (let n = 4 + random(20); n > 0; --n) t += units[random(units.length)]; texts.push(t); }

function cut(expression, pieces) {
  const out = [];
  // Unicode's whitespace, not ECMAScript's: with U+0085, without U+FEFF.
  let source = '';
  let inSet = false;
  for (let i = 0; i < expression.length; ++i) {
    const c = expression[i];
    if (c === '\\') {
      const next = expression[++i];
      source += next === 's' ? '\\p{White_Space}' : next === 'S' ? '\\P{White_Space}' : /["'#%&,:;<=>@`~!_]/.test(next) ? next : c + next;
      continue;
    }
    if (c === '[') inSet = true;
    if (c === ']') inSet = false;
    source += inSet && c === '-' && expression[i - 1] === '\\' ? '\\-' : c;
  }
  const re = new RegExp(source, 'gu');
  for (const piece of pieces) {
    let at = 0;
    for (const m of piece.matchAll(re)) {
      if (m.index > at) out.push(piece.slice(at, m.index));
      out.push(m[0]);
      at = m.index + m[0].length;
    }
    if (at < piece.length) out.push(piece.slice(at));
  }
  return out;
}

const lines = ['{', `"texts": [\n${texts.map((t) => JSON.stringify(t)).join(',\n')}\n],`, '"cuts": {'];
const rows = Object.entries(schemes).map(([name, expressions]) => {
  const sizes = texts.map((t) => `[${expressions.reduce((pieces, e) => cut(e, pieces), [t]).filter((p) => p).map((p) => Buffer.byteLength(p))}]`);
  return `"${name}": [${sizes.join(',')}]`;
});
console.log(lines.join('\n'));
console.log(rows.join(',\n'));
console.log('}\n}');
