// What llama.cpp's own rounding of activations costs: the same weights in a file that it multiplies as floats and in a
// quantized one. The first is made from the second, so that the weights are equal. The table is that of `redline bench
// accuracy`, whose reference is Redline's float products.
//
//   node accuracy.mjs --redline PATH --model Q.gguf [--model Q2.gguf] --prompts ../demo_models/vectors.json [--threads 2]
import {spawnSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {parseArgs} from "node:util";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const {values: options} = parseArgs({
    options: {
        redline: {type: "string", default: "../../build/redline"},
        model: {type: "string", multiple: true, default: []},
        prompts: {type: "string"},
        threads: {type: "string", default: "2"}
    }
});
if (options.model.length === 0 || options.prompts == null) {
    console.error("expected --model FILE.gguf --prompts FILE.json with cases[].ids");
    process.exit(2);
}
const prompts = JSON.parse(readFileSync(options.prompts, "utf8")).cases.map((c) => c.ids);
const threads = Number(options.threads);

/** Returns the logits after each token of each prompt. */
async function read(path) {
    const llama = await getLlama({gpu: false, maxThreads: threads, logLevel: LlamaLogLevel.error, build: "never"});
    const model = await llama.loadModel({modelPath: path, gpuLayers: 0});
    const context = await model.createContext({contextSize: Math.max(...prompts.map((p) => p.length)) + 8, batchSize: 512,
        threads: {ideal: threads, min: threads}, flashAttention: false, experimentalKvCacheKeyType: "F32",
        experimentalKvCacheValueType: "F32"});
    const sequence = context.getSequence();
    const all = [];
    for (const ids of prompts) {
        await sequence.clearHistory();
        const said = await sequence.controlledEvaluate(ids.map((id) => [id, {generateNext: {logits: true}}]));
        for (const one of said) {
            const row = new Float64Array(one.next.logits.size);
            for (const [token, logit] of one.next.logits) row[token] = logit;
            all.push(row);
        }
    }
    await llama.dispose();
    return all;
}

const best = (row) => row.reduce((at, x, i) => (x > row[at] ? i : at), 0);
function logSum(row) {
    const most = row[best(row)];
    return most + Math.log(row.reduce((sum, x) => sum + Math.exp(x - most), 0));
}

const folder = mkdtempSync(join(tmpdir(), "redline-accuracy-"));
console.log("       KL  same token  perplexity  of floats  model");
for (const path of options.model) {
    const exact = join(folder, "exact.gguf");
    const made = spawnSync(options.redline, ["quantize", path, exact, "--type", "f32"], {encoding: "utf8"});
    if (made.status !== 0) throw new Error(`redline: ${made.stderr}`);
    const wanted = await read(exact);
    const found = await read(path);
    const nexts = prompts.flatMap((ids) => [...ids.slice(1), undefined]);
    let [divergence, same, surprise, surpriseOfFloats, foretold] = [0, 0, 0, 0, 0];
    wanted.forEach((row, at) => {
        const other = found[at];
        const [sum, otherSum] = [logSum(row), logSum(other)];
        row.forEach((x, i) => { divergence += Math.exp(x - sum) * (x - sum - (other[i] - otherSum)); });
        if (best(row) === best(other)) same += 1;
        if (nexts[at] === undefined) return;
        foretold += 1;
        surprise += otherSum - other[nexts[at]];
        surpriseOfFloats += sum - row[nexts[at]];
    });
    console.log(`${(divergence / wanted.length).toExponential(2).padStart(9)} ${(100 * same / wanted.length).toFixed(2).padStart(10)}% ` +
        `${Math.exp(surprise / foretold).toFixed(4).padStart(11)} ${Math.exp(surpriseOfFloats / foretold).toFixed(4).padStart(10)}  ${path}`);
}
rmSync(folder, {recursive: true, force: true});
