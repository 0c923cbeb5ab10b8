// Cost of one forward pass of a model in Redline and in llama.cpp (as node-llama-cpp ships it), in turns in one run,
// so that what else the machine does hits both. Logits of the last row only, which is what both can be asked for.
//
//   node forward.mjs --redline PATH --model M.gguf [--rows 1,8,64] [--context 0,1024] [--threads 2] [--rounds 3] [--json]
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

/** Best milliseconds by "rows@context". */
function keepBest(best, rows, context, ms) {
    const key = `${rows}@${context}`;
    best.set(key, Math.min(ms, best.get(key) ?? Infinity));
}

function runRedline(best, context) {
    const result = spawnSync(options.redline, ["bench", "forward", "--model", options.model, "--rows", options.rows,
        "--context", String(context), "--threads", String(threads), "--seconds", options.seconds, "--samples", "3",
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

const ours = new Map();
const theirs = new Map();
let machine;
const peers = [await openPeer(false), await openPeer(true)];
for (let round = 0; round < Number(options.rounds); ++round) {
    for (const length of contexts) {
        machine = runRedline(ours, length);
        for (const peer of peers) await runPeer(theirs, peer, length);
    }
}
const cells = contexts.flatMap((context) => rowCounts.map((rows) => {
    const key = `${rows}@${context}`;
    return {rows, context, ms: ours.get(key), llama_cpp_ms: theirs.get(key), ratio: theirs.get(key) / ours.get(key)};
}));
if (options.json) {
    console.log(JSON.stringify({model: options.model, target: machine.target, threads,
        read_gb_per_second: machine.read_gb_per_second, gflops: machine.gflops, cells}));
} else {
    console.log(`${options.model}, ${threads} threads, ${machine.target}; ${machine.read_gb_per_second.toFixed(1)} GB/s read, ` +
        `${machine.gflops.toFixed(0)} GFLOP/s; best of ${options.rounds} rounds, llama.cpp the better of flash attention on and off`);
    console.log("  rows  context   redline ms  llama.cpp ms   ratio");
    for (const c of cells) {
        console.log(`${String(c.rows).padStart(6)} ${String(c.context).padStart(8)} ${c.ms.toFixed(2).padStart(12)} ` +
            `${c.llama_cpp_ms.toFixed(2).padStart(13)} ${c.ratio.toFixed(2).padStart(7)}`);
    }
}
for (const peer of peers) await peer.llama.dispose();
