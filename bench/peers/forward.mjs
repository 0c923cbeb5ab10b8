// The cost of one forward pass of a model in Redline and in llama.cpp (as node-llama-cpp ships it), measured in turns
// so that other load on the machine affects both. Only the last row's logits are computed, as both engines can.
//
//   node forward.mjs --redline PATH --model M.gguf [--rows 1,8,64] [--context 0,1024] [--threads 2] [--rounds 3]
//     [--numerics float,int8] [--kv f16] [--json]
import {spawnSync} from "node:child_process";
import {parseArgs} from "node:util";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const {values: options} = parseArgs({
    options: {
        redline: {type: "string", default: "build/redline"},
        model: {type: "string"},
        rows: {type: "string", default: "1,2,4,8,16,32,64,128,512"},
        context: {type: "string", default: "0"},
        threads: {type: "string", default: "2"},
        numerics: {type: "string", default: "auto"},
        kv: {type: "string", default: "f16"},
        rounds: {type: "string", default: "3"},
        seconds: {type: "string", default: "0.5"},
        json: {type: "boolean", default: false}
    }
});
if (options.model == null) {
    console.error("expected --model FILE.gguf");
    process.exit(2);
}
const numbers = (text) => text.split(",").map(Number);
const rowCounts = numbers(options.rows);
const contexts = numbers(options.context);
const threads = Number(options.threads);
const numerics = options.numerics.split(",");

/** Keeps the best milliseconds by "rows@context". */
function keepBest(best, rows, context, ms) {
    const key = `${rows}@${context}`;
    best.set(key, Math.min(ms, best.get(key) ?? Infinity));
}

function runRedline(best, context, how) {
    const result = spawnSync(options.redline, ["bench", "forward", "--model", options.model, "--rows", options.rows,
        "--context", String(context), "--threads", String(threads), "--numerics", how, "--kv", options.kv, "--seconds", options.seconds, "--samples", "3",
        "--last-only", "--json", "-"], {encoding: "utf8", maxBuffer: 1 << 24});
    if (result.status !== 0) throw new Error(`redline: ${result.stderr}`);
    const report = JSON.parse(result.stdout);
    for (const cell of report.cells) keepBest(best, cell.rows, cell.context, cell.ms);
    return report;
}

async function openPeer(flashAttention) {
    const llama = await getLlama({gpu: false, maxThreads: threads, logLevel: LlamaLogLevel.error, build: "never"});
    const model = await llama.loadModel({modelPath: options.model, gpuLayers: 0});
    const longest = Math.max(...contexts) + Math.max(...rowCounts) + 8;
    const context = await model.createContext({
        contextSize: longest, batchSize: Math.max(512, ...rowCounts), threads: {ideal: threads, min: threads},
        flashAttention
    });
    return {llama, model, context, sequence: context.getSequence()};
}

async function runPeer(best, peer, length) {
    const vocabulary = 151000;
    const tokenAt = (i) => (i * 7919 + 13) % Math.min(vocabulary, peer.model.fileInfo.metadata.tokenizer.ggml.tokens.length);
    const {sequence} = peer;
    await sequence.clearHistory();
    const prefix = Array.from({length}, (_, i) => tokenAt(i));
    if (length > 0) await sequence.evaluateWithoutGeneratingNewTokens(prefix);
    for (const rows of rowCounts) {
        const tokens = Array.from({length: rows}, (_, i) => tokenAt(length + i));
        const input = tokens.map((token, i) => i + 1 === rows
            ? [token, {generateNext: {token: true, options: {temperature: 0}}}] : token);
        const begin = performance.now();
        for (let sample = 0; sample < 4 || performance.now() - begin < Number(options.seconds) * 1000; ++sample) {
            const start = performance.now();
            await sequence.controlledEvaluate(input);
            const ms = performance.now() - start;
            if (sample > 0) keepBest(best, rows, length, ms);
            await sequence.eraseContextTokenRanges([{start: length, end: length + rows}]);
        }
    }
}

const ours = new Map(numerics.map((how) => [how, new Map()]));
const theirs = new Map();
const machines = {};
const peers = [await openPeer(false), await openPeer(true)];
for (let round = 0; round < Number(options.rounds); ++round) {
    for (const length of contexts) {
        for (const [how, best] of ours) machines[how] = runRedline(best, length, how);
        for (const peer of peers) await runPeer(theirs, peer, length);
    }
}
const cells = contexts.flatMap((context) => rowCounts.map((rows) => {
    const key = `${rows}@${context}`;
    const ms = Object.fromEntries(numerics.map((how) => [how, ours.get(how).get(key)]));
    const peer = theirs.get(key);
    return {rows, context, ms, llama_cpp_ms: peer,
        ratio: Object.fromEntries(numerics.map((how) => [how, peer / ms[how]]))};
}));
const machine = machines[numerics.at(-1)];
const bounds = Object.fromEntries(numerics.map((how) =>
    [how, {read_gb_per_second: machines[how].read_gb_per_second, gops: machines[how].gflops}]));
if (options.json) {
    console.log(JSON.stringify({model: options.model, target: machine.target, threads, kv: options.kv, bounds, cells}));
} else {
    const reached = numerics.map((how) => `${how} ${bounds[how].gops.toFixed(0)} Gop/s`).join(", ");
    console.log(`${options.model}, ${threads} threads, ${machine.target}, ${options.kv} keys and values; ` +
        `${machine.read_gb_per_second.toFixed(1)} GB/s read, ${reached}; best of ${options.rounds} rounds, llama.cpp the ` +
        "better of flash attention on and off");
    const head = numerics.map((how) => `${how} ms`.padStart(10) + "ratio".padStart(7)).join("");
    console.log(`  rows  context  llama.cpp ms${head}`);
    for (const c of cells) {
        const own = numerics.map((how) => c.ms[how].toFixed(2).padStart(10) + c.ratio[how].toFixed(2).padStart(7)).join("");
        console.log(`${String(c.rows).padStart(6)} ${String(c.context).padStart(8)} ${c.llama_cpp_ms.toFixed(2).padStart(13)}${own}`);
    }
}
for (const peer of peers) await peer.llama.dispose();
