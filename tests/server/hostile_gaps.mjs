// How much longer one tenant waits between two tokens while another one attacks, one kind of attack after the other.
// Usage: hostile_gaps.mjs [SECONDS [CONNECTIONS [FLAGS OF serve...]]], with seconds and connections per kind. The
// environment variable KINDS is a pattern that selects kinds. Prints a table; the machine should do nothing else.
import {connect} from "node:net";
import {performance} from "node:perf_hooks";
import {setTimeout as sleep} from "node:timers/promises";
import {Worker, isMainThread, parentPort, workerData} from "node:worker_threads";

const letters = (n) => Array.from({length: n}, (_, i) => String.fromCharCode(97 + (i * 7919 + (i >> 3)) % 26)).join("");

async function post(url, key, path, body, method = "POST") {
    const response = await fetch(url + path, {method, body: typeof body === "string" ? body : JSON.stringify(body),
        headers: {"content-type": "application/json", authorization: `Bearer ${key}`}, signal: AbortSignal.timeout(120_000)});
    return {status: response.status, text: await response.text()};
}

// ---- the measured tenant: streams answers, one after the other ------------------------------------------------------

async function victim({url, key, question}) {
    let measures = null;
    let over = false;
    parentPort.on("message", (m) => {
        if (m === "begin") {
            measures = {gaps: [], first: [], failed: 0};
        } else if (m === "end") {
            parentPort.postMessage(measures);
            measures = null;
        } else {
            over = true;
        }
    });
    while (!over) {
        const sent = performance.now();
        let last = null;
        try {
            const response = await fetch(`${url}/v1/chat/completions`, {method: "POST", body: JSON.stringify(question),
                headers: {"content-type": "application/json", authorization: `Bearer ${key}`}});
            if (response.status !== 200) throw new Error(`${response.status}`);
            for await (const _ of response.body) {
                const now = performance.now();
                if (measures !== null) (last === null ? measures.first : measures.gaps).push(now - (last ?? sent));
                last = now;
            }
        } catch {
            if (measures !== null) measures.failed += 1;
            await sleep(20);
        }
    }
    process.exit(0);
}

// ---- the attacking tenant -------------------------------------------------------------------------------------------

const chat = (more) => ({model: "demo-target", messages: [{role: "user", content: "Write."}], max_tokens: 64, ...more});
const schema = (it) => JSON.stringify(chat({max_tokens: 3500, response_format: {type: "json_schema", json_schema: {name: "x", schema: it}}}));
const repeated = (path, body) => async ({url, key}) => (await post(url, key, path, body)).status;

const attacks = {
    "nothing": null,
    "a schema with a literal of 30,000 letters": repeated("/v1/chat/completions", schema({const: letters(30_000)})),
    "a schema with 600 names that begin alike": repeated("/v1/chat/completions", schema({type: "object", additionalProperties: false,
        properties: Object.fromEntries(Array.from({length: 600}, (_, i) => [`name_${letters(20)}_${i}`, {type: "null"}]))})),
    "3 MB to /tokenize": repeated("/tokenize", JSON.stringify({content: "x".repeat(3_000_000)})),
    "a million tokens to /detokenize": repeated("/detokenize", JSON.stringify({tokens: Array(1_000_000).fill(300)})),
    "2,000 messages through the template": repeated("/apply-template",
        JSON.stringify({messages: Array.from({length: 2000}, (_, i) => ({role: i % 2 ? "assistant" : "user", content: `<|im_end|>${letters(2000)}`}))})),
    "a chat of 7.8 MB": repeated("/v1/chat/completions", JSON.stringify(chat({messages: [{role: "user", content: letters(7_800_000)}]}))),
    "8 MB of brackets": repeated("/v1/chat/completions", "[".repeat(8_000_000)),
    "PATCHes of 200 edits to a file without lines": async ({url, key, state}) => {
        if (state.at === undefined) {
            const opened = await post(url, key, "/v1/redline/sessions", {files: [{path: "a.txt", text: "o".repeat(500_000)}]});
            if (opened.status !== 201) return opened.status;
            state.at = `/v1/redline/sessions/${JSON.parse(opened.text).id}/files/a.txt`;
            state.version = 1;
        }
        state.version += 1;
        const edits = Array.from({length: 200}, (_, i) =>
            ({range: {start: {line: 0, character: i * 2000}, end: {line: 0, character: i * 2000 + 1}}, text: "x"}));
        return (await post(url, key, state.at, {version: state.version, edits}, "PATCH")).status;
    },
    "PUTs of a megabyte": async ({url, key, state}) => {
        if (state.at === undefined) {
            const opened = await post(url, key, "/v1/redline/sessions", {});
            if (opened.status !== 201) return opened.status;
            state.at = `/v1/redline/sessions/${JSON.parse(opened.text).id}/files/a.txt`;
            state.version = 0;
        }
        state.version += 1;
        return (await post(url, key, state.at, {version: state.version, text: letters(1_000_000)}, "PUT")).status;
    },
    "connections that say nothing": async ({url, connections}) => {
        const {hostname, port} = new URL(url);
        const idle = Array.from({length: Math.ceil(1000 / connections)}, () => connect(Number(port), hostname).on("error", () => {}));
        await sleep(1000);
        for (const socket of idle) socket.destroy();
        return 0;
    },
    "connections that send a byte a second": async ({url, connections}) => {
        const {hostname, port} = new URL(url);
        const slow = Array.from({length: Math.ceil(500 / connections)}, () => connect(Number(port), hostname).on("error", () => {}));
        for (const c of "POST ") {
            for (const socket of slow) socket.write(c);
            await sleep(1000);
        }
        for (const socket of slow) socket.destroy();
        return 0;
    },
    "200 short chats at once": async ({url, key, connections}) => {
        const all = await Promise.all(Array.from({length: Math.ceil(200 / connections)}, () => post(url, key, "/v1/chat/completions", chat({}))));
        return all.at(-1).status;
    },
    "chats of thousands of tokens": async ({url, key, state}) => {
        state.i = (state.i ?? 0) + 1;  // no two begin alike
        return (await post(url, key, "/v1/chat/completions", chat({max_tokens: 1, messages: [{role: "user", content:
            Array.from({length: 1500}, (_, i) => `${state.i * 7919 + i * 31}`).join(" ").slice(0, 3500)}]}))).status;
    },
};

async function attacker({url, key, kind, connections}) {
    const counts = {};
    const state = {};
    let over = false;
    parentPort.on("message", () => {
        parentPort.postMessage(counts);
        over = true;
    });
    for (; !over;) {
        let status;
        try {
            status = await attacks[kind]({url, key, state, connections});
        } catch (error) {
            status = error.name;
        }
        counts[status] = (counts[status] ?? 0) + 1;
        if (status !== 200 && status !== 0) await sleep(5);
    }
}

// ---- the benchmark -----------------------------------------------------------------------------------------------------

async function main() {
    const {Server, draftModel, edit} = await import("./redline.mjs");
    const [seconds, connections] = [8, 4].map((otherwise, i) => Number(process.argv[2 + i] ?? otherwise));
    const server = await Server.start("--draft", draftModel, "--api-key", "victim:key-of-victim", "--api-key", "hostile:key-of-hostile",
        "--connections-max", "2048", ...process.argv.slice(4));
    const threads = [];
    const start = (data) => {
        threads.push(new Worker(new URL(import.meta.url), {workerData: {url: server.url, ...data}}));
        return threads.at(-1);
    };
    const told = (thread) => new Promise((resolve) => thread.once("message", resolve));
    const question = {model: "demo-target", messages: edit, max_tokens: 300, temperature: 0, stream: true, ignore_eos: true,
        redline: {speculation: {method: "regular"}}};
    const measured = start({role: "victim", key: "key-of-victim", question});
    await sleep(3000);
    const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN;
    console.log("| while another tenant sends | its answers | tokens | gap p50 | p99 | longest | p99 grew by | longest grew by | first token p50 |");
    console.log("|---|---|---|---|---|---|---|---|---|");
    let quiet = null;
    const wanted = new RegExp(process.env.KINDS ?? "");
    for (const kind of Object.keys(attacks).filter((one) => attacks[one] === null || wanted.test(one))) {
        const hostile = attacks[kind] === null ? [] :
            Array.from({length: connections}, () => start({role: "attacker", key: "key-of-hostile", kind, connections}));
        await sleep(1000);
        measured.postMessage("begin");
        await sleep(seconds * 1000);
        const figures = told(measured);
        measured.postMessage("end");
        const {gaps, first, failed} = await figures;
        const sums = {};
        for (const one of hostile) {
            const counts = told(one);
            one.postMessage("end");
            for (const [status, n] of Object.entries(await counts)) sums[status] = (sums[status] ?? 0) + n;
            await one.terminate();
        }
        gaps.sort((a, b) => a - b);
        first.sort((a, b) => a - b);
        const now = {p50: at(gaps, 0.5), p99: at(gaps, 0.99), max: at(gaps, 1)};
        quiet ??= now;
        const said = Object.entries(sums).map(([status, n]) => `${n} x ${status}`).join(", ") + (failed > 0 ? `; ${failed} of the other failed` : "");
        console.log(`| ${kind} | ${said} | ${gaps.length} | ${now.p50.toFixed(1)} | ${now.p99.toFixed(1)} | ${now.max.toFixed(1)} | ` +
            `${(now.p99 - quiet.p99).toFixed(1)} | ${(now.max - quiet.max).toFixed(1)} | ${at(first, 0.5).toFixed(0)} |`);
        await sleep(1500);  // accepted requests end
    }
    for (const thread of threads) await thread.terminate();
    await server.kill();
}

if (isMainThread) await main();
else if (workerData.role === "victim") await victim(workerData);
else await attacker(workerData);
