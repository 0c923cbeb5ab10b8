// Kills, hangs, ends and restarts the workers, brokers and gateways of a pool at random while clients stream answers of
// every kind, and compares each with that of one undisturbed server. A client whose gateway dies continues at another one
// with Last-Event-ID. Usage: pool_chaos.mjs [KILLS [STREAMS [SEED [mixed | hybrid]]]]. With `mixed` the model is in Q8_0 with int8 numerics, and the
// workers have all kernel targets that multiply integers on this CPU, one emulated and one without vectors. With `hybrid` it is one of random weights
// whose layers keep states, with an MTP layer. Exits with 1 if an answer was wrong or missing.
import {setTimeout as sleep} from "node:timers/promises";
import {Server, call, draftModel, int8Targets, targetModel} from "./redline.mjs";
import {Pool} from "./pool.mjs";
import {ask, chat, lastId, readStream, requests, sum, words} from "./streams.mjs";

const [kills, streams, seed] = [100, 16, 1].map((otherwise, i) => Number(process.argv[2 + i] ?? otherwise));
const [isMixed, isHybrid] = ["mixed", "hybrid"].map((kind) => process.argv[5] === kind);
const silenceSecondsMax = 60;  // longest silence of a stream, after which it counts as hung
let state = BigInt(seed);
function below(n) {  // splitmix64
    state = (state + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
    return Number((z ^ (z >> 31n)) % BigInt(n));
}

// ---- requests ------------------------------------------------------------------------------------------------------

const by = (method) => ({redline: {speculation: {method}}});
const plain = (more) => ["/v1/completions", {model: "demo-target", prompt: "import json\n\n\ndef load(path):\n", temperature: 1, seed: 11,
    ignore_eos: true, stream: true, ...more}];
const cases = {
    ...requests,
    "a long answer": plain({max_tokens: 1200, ...by("regular")}),
    "a long answer with drafts of the model": plain({max_tokens: 600, temperature: 0.5, ...by("assisted")}),
    "a long answer with blazedit": plain({max_tokens: 800, temperature: 0.7, ...by("blazedit")}),
    "a long prompt": plain({prompt: "x = [1, 2, 3]\n".repeat(250), max_tokens: 200, temperature: 0, ...by("regular")}),
    "penalties": [chat, ask({frequency_penalty: 0.5, presence_penalty: 0.2, max_tokens: 150})],
    "a long moving window": plain({max_tokens: 700, ...by("lookup"), redline: {eviction: {policy: "reevaluate", n_ctx: 160}}}),
};
const liveText = "def f(x):\n    return x\n".repeat(40);

class Hung extends Error {}
class Refused extends Error {}
const counts = {right: 0, wrong: 0, refused: 0, hung: 0, resumed: 0};
const intact = (events) => events.at(-1)?.data === "[DONE]";
const hasFailed = (events) => events.length > 0 && events.at(-1).data.startsWith('{"error"');

const silences = [];  // the longest of each stream, in milliseconds

/** Reads all events of a stream, from as many gateways as needed. `pick()` chooses the gateway, `path()` the path. */
async function readToTheEnd(pick, path, body) {
    let silence = 0;
    let heard = performance.now();
    const listen = () => {
        silence = Math.max(silence, performance.now() - heard);
        heard = performance.now();
        return false;
    };
    const hung = new AbortController();
    const watch = setInterval(() => {
        if (performance.now() - heard > silenceSecondsMax * 1000) hung.abort();
    }, 1000);
    let had = [];
    try {
        for (let tries = 0; ; ++tries) {
            if (hung.signal.aborted) throw new Hung(`after ${had.length} events`);
            const gateway = pick();
            try {
                const rest = await readStream(gateway.url, await path(gateway), body, lastId(had), listen, hung.signal);
                if (hasFailed(rest)) throw new Refused(rest.at(-1).data);
                if (tries > 0 && rest.length > 0) counts.resumed += 1;
                had = [...had, ...rest];
                if (intact(had)) return had;
            } catch (e) {
                if (!/"code":"(draining|no_worker|loading|overloaded|session_lost)"|429/.test(e.message)) throw e;
                if (e instanceof Refused || !gateway.ends) throw new Refused(e.message);
            }
            await sleep(50);
        }
    } finally {
        clearInterval(watch);
        silences.push(silence);
    }
}
const post = async (gateway, verb, path, body) => {
    const response = await fetch(`${gateway.url}/v1/redline/sessions${path}`, {method: verb, body: JSON.stringify(body)});
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text === "" ? {} : JSON.parse(text);
};
/** Edits and completes in an edit session; if it dies with its gateway, it is opened with its text at another one. */
async function live(pick) {
    const said = [];
    let text = liveText;
    let where;
    const open = async (gateway, version) => {
        if (where?.gateway === gateway && !gateway.hasEnded()) return where.id;
        const {id} = await post(gateway, "POST", "", {model: "demo-target", files: [{path: "a.py", text, version}]});
        where = {gateway, id};
        return id;
    };
    for (let version = 2; version < 6; ++version) {
        const line = `y${version} = ${version}\n`;
        const at = {line: 4 * version, character: 0};
        let gateway = where?.gateway ?? pick();
        const changed = text.split("\n").toSpliced(4 * version, 0, line.trimEnd()).join("\n");
        try {
            const id = await open(gateway, version - 1);
            await post(gateway, "PATCH", `/${id}/files/a.py`, {version, edits: [{range: {start: at, end: at}, text: line}]});
        } catch (e) {
            if (!gateway.ends) throw e;
            where = undefined;
        }
        text = changed;
        const events = await readToTheEnd(() => (where && !where.gateway.ends ? where.gateway : pick()),
            async (g) => `/v1/redline/sessions/${await open(g, version)}/complete`,
            {path: "a.py", position: {line: 4 * version + 1, character: 0}, mode: "text", max_tokens: 60, temperature: 0.8, seed: version, stream: true});
        said.push(words(sum(events)).choices);
    }
    if (where) await post(where.gateway, "DELETE", `/${where.id}`).catch(() => {});
    return said;
}

const pool = new Pool(2);
const ownModel = `${pool.folder}/demo-target.gguf`;
if (isMixed) call("quantize", targetModel, ownModel, "--type", "q8_0");
if (isHybrid) {
    call("synth", ownModel, "--shape", "tiny-qwen35", "--mtp", "--type", "f32", "--vocabulary", "8192", "--context-length", "8192",
        "--tokenizer", targetModel);
    cases["a long answer with drafts of its MTP layer"] = plain({max_tokens: 600, ...by("mtp")});
}
const kinds = isMixed ? [...int8Targets(), "scalar"] : [];
const names = Object.keys(cases);
let started = 0;
/** In a mixed pool each worker is of another kind than the previous one. */
const how = () => [...(isMixed || isHybrid ? ["--model", ownModel] : []),
    ...(isMixed ? ["--numerics", "int8", {REDLINE_TARGET: kinds[started++ % kinds.length]}] : [])];
const startTarget = () => pool.startWorker("target", ...how());
const alone = await Server.start("--draft", draftModel, ...how());
const expected = {};
for (const [name, [path, body]] of Object.entries(cases)) {
    expected[name] = JSON.stringify(words(sum(await readToTheEnd(() => alone, () => path, body))));
}
expected.live = JSON.stringify(await live(() => alone));
await alone.kill();

// ---- the pool ------------------------------------------------------------------------------------------------------

const brokers = [await pool.startBroker(0), await pool.startBroker(1)];
let gateways = await Promise.all([pool.startGateway(), pool.startGateway()]);
const targets = Array.from({length: 3}, startTarget);
const drafters = [pool.startWorker("draft")];
silences.length = 0;
const isReady = (gateway) => gateway.until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200, 60);
await Promise.all(gateways.map(isReady));
const pick = () => gateways[Math.floor(Math.random() * gateways.length)];

let isOver = false;
let slowest = 0;
const done = Object.fromEntries([...names, "live"].map((name) => [name, 0]));
async function client(number) {
    for (let i = number; !isOver; ++i) {
        const which = i % (names.length + 2);
        const name = names[which] ?? "live";
        const began = performance.now();
        try {
            const [path, body] = cases[name] ?? [];
            const found = JSON.stringify(name === "live" ? await live(pick) : words(sum(await readToTheEnd(pick, () => path, body))));
            if (found === expected[name]) {
                counts.right += 1;
                done[name] += 1;
            } else {
                counts.wrong += 1;
                let at = 0;
                while (found[at] === expected[name][at]) ++at;
                const part = (text) => text.slice(Math.max(0, at - 100), at + 200);
                console.log(`${name}: at ${at} expected ${part(expected[name])}, found ${part(found)}`);
            }
        } catch (e) {
            // A different answer is wrong, even if the client received an error instead of the other bytes.
            if (e instanceof Refused && !e.message.includes("answer_diverged")) counts.refused += 1;
            else if (e instanceof Hung) counts.hung += 1;
            else counts.wrong += 1;
            console.log(`${name}: ${String(e.message).slice(0, 500)}`);
            await sleep(200);
        }
        slowest = Math.max(slowest, performance.now() - began);
    }
}

// ---- accidents -----------------------------------------------------------------------------------------------------

const accidents = {killed: 0, stopped: 0, ended: 0, drafter: 0, broker: 0, gateway: 0};
let slowestEnd = 0;
const struck = new Set();
/** Applies the accident to one member of the list that has none yet. */
async function strike(kind, list, accident) {
    const free = list.map((_, i) => i).filter((i) => !struck.has(list[i]));
    // One target worker and one gateway stay healthy, because no answer may fail.
    if (free.length <= (list === targets || list === gateways ? 1 : 0)) return;
    const i = free[below(free.length)];
    const one = list[i];
    accidents[kind] += 1;
    struck.add(one);
    await accident(one, i);
    struck.delete(one);
}
const doings = [
    ...Array(4).fill(() => strike("killed", targets, async (one, i) => {
        await one.kill();
        await sleep(below(300));
        targets[i] = startTarget();
    })),
    ...Array(2).fill(() => strike("stopped", targets, async (one) => {
        one.child.kill("SIGSTOP");
        await sleep(below(6000));
        one.child.kill("SIGCONT");
    })),
    ...Array(2).fill(() => strike("ended", targets, async (one, i) => {
        const began = performance.now();
        const {code, signal} = await one.kill("SIGTERM");
        // A process that was just started may not handle signals yet.
        if (code !== 0 && one.lines.length > 0) throw new Error(`a worker ended with ${code ?? signal}: ${one.lines.join("").slice(-2000)}`);
        slowestEnd = Math.max(slowestEnd, performance.now() - began);
        targets[i] = startTarget();
    })),
    () => strike("drafter", drafters, async (one) => {
        await one.kill();
        drafters[0] = pool.startWorker("draft");
    }),
    ...Array(2).fill(() => strike("broker", brokers, async (one, i) => {
        await one.kill();
        await sleep(below(1000));
        brokers[i] = await pool.startBroker(i);
    })),
    () => strike("gateway", gateways, async (one) => {
        one.ends = true;
        gateways = gateways.filter((other) => other !== one);
        await one.kill();
        const next = await pool.startGateway();
        await isReady(next);
        gateways.push(next);
    }),
];

const clients = Array.from({length: streams}, (_, i) => client(i));
const began = performance.now();
const total = () => Object.values(accidents).reduce((a, b) => a + b);
const underWay = new Set();
for (let told = 0; total() < kills;) {
    await sleep(below(2000));
    const one = doings[below(doings.length)]().finally(() => underWay.delete(one));
    underWay.add(one);
    if (total() < told + 50) continue;
    told = total();
    console.log(`after ${((performance.now() - began) / 60_000).toFixed(1)} min: ${JSON.stringify({...counts, ...accidents})}`);
}
await Promise.all(underWay);
isOver = true;
await Promise.all(clients);
const minutes = (performance.now() - began) / 60_000;

console.log(`${total()} accidents ${JSON.stringify(accidents)} under ${streams} streams in ${minutes.toFixed(1)} min, seed ${seed}: ${counts.right} answers ` +
    `right, ${counts.wrong} wrong, ${counts.hung} hung, ${counts.refused} refused, ${counts.resumed} resumed at another gateway; the slowest ` +
    `answer took ${(slowest / 1000).toFixed(1)} s, the slowest SIGTERM ${(slowestEnd / 1000).toFixed(1)} s`);
const quantile = (q) => (silences[Math.min(silences.length - 1, Math.floor(q * silences.length))] / 1000).toFixed(2);
silences.sort((a, b) => a - b);
console.log(`the longest silence of each stream, in seconds: p50 ${quantile(0.5)}, p90 ${quantile(0.9)}, p99 ${quantile(0.99)}, max ${quantile(1)}`);
console.log(`right, by kind: ${JSON.stringify(done)}`);
await pool.close();
process.exit(counts.wrong + counts.hung === 0 && Object.values(done).every((n) => n > 0 || kills < 50) ? 0 : 1);
