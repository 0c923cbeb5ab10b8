// Times the turns of an agent's conversation: each reads one more file of this repository, so a prompt repeats all that
// came before. At the end the same prompt comes again, and then with another last message. Prompts have the markers of
// ChatML. llama.cpp (as node-llama-cpp ships it) keeps its sequence from turn to turn, with its usual checkpoints;
// Redline finds what it has cached.
//
//   `node turns.mjs --model M.gguf [--tokens 20000] [--threads 2]`
//   `node turns.mjs --url http://127.0.0.1:8080 [--tokens 20000]`
import {readFileSync, readdirSync} from "node:fs";
import {fileURLToPath} from "node:url";
import {parseArgs} from "node:util";

const {values: options} = parseArgs({
    options: {
        model: {type: "string"},
        url: {type: "string"},
        tokens: {type: "string", default: "20000"},
        threads: {type: "string", default: "2"}
    }
});
if ((options.model == null) === (options.url == null)) {
    console.error("expected --model FILE.gguf or --url ADDRESS");
    process.exit(2);
}
const answerTokens = 16;
const tokensMax = Number(options.tokens);

/** Returns {prompt, cached} in tokens. */
async function redline(prompt) {
    const reply = await fetch(new URL("/v1/completions", options.url), {
        method: "POST",
        body: JSON.stringify({prompt, max_tokens: answerTokens, temperature: 0, ignore_eos: true})
    });
    const answer = await reply.json();
    if (!reply.ok) throw new Error(JSON.stringify(answer));
    const {prompt_tokens: count, prompt_tokens_details: details} = answer.usage;
    return {prompt: count, cached: details?.cached_tokens ?? 0};
}

async function llamaCpp() {
    const {getLlama, LlamaLogLevel} = await import("node-llama-cpp");
    const threads = Number(options.threads);
    const llama = await getLlama({gpu: false, maxThreads: threads, logLevel: LlamaLogLevel.error, build: "never"});
    const model = await llama.loadModel({modelPath: options.model, gpuLayers: 0});
    const context = await model.createContext({
        contextSize: tokensMax + 8192, batchSize: 512, threads: {ideal: threads, min: threads}
    });
    const sequence = context.getSequence();
    return async (prompt) => {
        const tokens = Array.from(model.tokenize(prompt, true));
        await sequence.adaptStateToTokens(tokens.slice(0, -1), false);
        const cached = sequence.nextTokenIndex;
        let count = 0;
        for await (const token of sequence.evaluate(tokens.slice(cached), {temperature: 0})) {
            if (token == null || ++count === answerTokens) break;
        }
        return {prompt: tokens.length, cached};
    };
}

const ask = options.url == null ? await llamaCpp() : redline;
const message = (role, text) => `<|im_start|>${role}\n${text}<|im_end|>\n`;
const answer = "<|im_start|>assistant\n<think>\n";
const root = fileURLToPath(new URL("../../runtime/", import.meta.url));
const files = readdirSync(root, {recursive: true})
    .filter((name) => name.endsWith(".cpp"))
    .sort();

let total = 0;
async function turn(name, prompt) {
    const start = performance.now();
    const {prompt: count, cached} = await ask(prompt);
    const seconds = (performance.now() - start) / 1000;
    total += seconds;
    console.log(`${name}: ${count} tokens, ${cached} cached, ${seconds.toFixed(2)} s`);
    return count;
}

let history = message("system", "You are an agent.") + message("user", "Refactor the cache.");
let last = "";
for (const [number, file] of files.entries()) {
    if (await turn(`turn ${number + 1}`, history + answer) > tokensMax) break;
    history += message("assistant", `<think>\nplan ${number}\n</think>\n\n<tool_call>read ${file}</tool_call>`);
    last = message("user", `<tool_response>\n${readFileSync(root + file, "utf8").slice(0, 6000)}\n</tool_response>`);
    history += last;
}
console.log(`all turns: ${total.toFixed(1)} s`);
await turn("again", history + answer);
await turn("another last message", history.slice(0, -last.length) + message("user", "Stop. Summarize.") + answer);
process.exit(0);
