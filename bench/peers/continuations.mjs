// Compares the greedy answers of llama.cpp (as node-llama-cpp ships it) with those in a vectors.json: the prompts must
// have the same token ids and the answers the same tokens. Exits with 1 on a difference that is no near tie.
//
//   `node continuations.mjs --model M.gguf --vectors vectors.json --who target|draft [--threads 2]`
import {readFileSync} from "node:fs";
import {parseArgs} from "node:util";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const {values: options} = parseArgs({
    options: {
        model: {type: "string"},
        vectors: {type: "string"},
        who: {type: "string", default: "target"},
        threads: {type: "string", default: "2"}
    }
});
if (options.model == null || options.vectors == null) {
    console.error("expected --model FILE.gguf --vectors FILE.json");
    process.exit(2);
}
const {cases, stop} = JSON.parse(readFileSync(options.vectors, "utf8"));
const threads = Number(options.threads);
const nearTie = 1e-3;

const llama = await getLlama({gpu: false, maxThreads: threads, logLevel: LlamaLogLevel.error, build: "never"});
const model = await llama.loadModel({modelPath: options.model, gpuLayers: 0});
const longest = Math.max(...cases.map((c) => c.ids.length + c[options.who].continuation.length)) + 8;
const context = await model.createContext({
    contextSize: longest, batchSize: 512, threads: {ideal: threads, min: threads},
    experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"
});
const sequence = context.getSequence();

async function answer(ids, most) {
    const tokens = [];
    await sequence.clearHistory();
    for await (const token of sequence.evaluate(ids, {temperature: 0})) {
        if (stop.includes(token) || tokens.length === most) break;
        tokens.push(token);
        if (tokens.length === most) break;
    }
    return tokens;
}

let sameIds = 0;
let sameAnswers = 0;
let failed = false;
for (const c of cases) {
    const wanted = c[options.who];
    const ids = Array.from(model.tokenize(c.text, true));
    if (ids.join() === c.ids.join()) ++sameIds;
    else failed = true;
    const found = wanted.continuation.length === 0 ? [] : await answer(c.ids, wanted.continuation.length);
    if (found.join() === wanted.continuation.join()) ++sameAnswers;
    else {
        if (wanted.min_gap > nearTie) failed = true;
        console.log(`${c.name}: the answers differ (closest choice ${wanted.min_gap})\n  expected ${wanted.continuation.join()}\n  found  ${found.join()}`);
    }
}
console.log(`${options.model}: token ids equal in ${sameIds} of ${cases.length}, greedy answers in ${sameAnswers} of ${cases.length}`);
await llama.dispose();
process.exit(failed ? 1 : 0);
