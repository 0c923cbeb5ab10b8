// Uses every feature of one server for a while, with clients that leave or read slowly, and watches its resources.
// Usage: soak.mjs [MINUTES]. Exits with 1 if memory, descriptors or pages grow in the second half.
import {readFileSync, readdirSync} from "node:fs";
import {setTimeout as sleep} from "node:timers/promises";
import {Server, draftModel, edit} from "./redline.mjs";

const minutes = Number(process.argv[2] ?? 60);
const server = await Server.start("--draft", draftModel, "--kv-mib", "24");
const pid = server.child.pid;
const asked = (more) => ({model: "demo-target", messages: edit, max_tokens: 150, temperature: 0, ...more});
const method = (name) => ({redline: {speculation: {method: name}}});
const until = Date.now() + minutes * 60_000;
const counts = {answers: 0, left: 0, sessions: 0, refused: 0};
const client = server.client();

const doings = [
    ...["regular", "lookup", "assisted", "blazedit", "auto"].map((m) => () => client.chat.completions.create(asked(method(m)))),
    () => client.chat.completions.create(asked({temperature: 0.8, n: 3})),
    () => client.chat.completions.create(asked({logprobs: true, top_logprobs: 5})),
    () => client.chat.completions.create(asked({response_format: {type: "json_schema", json_schema: {name: "x", schema: {enum: ["a".repeat(300), "b"]}}}})),
    () => client.chat.completions.create(asked({redline: {eviction: {policy: "lazy", n_ctx: 120}}, max_tokens: 300})),
    async () => {  // a client that leaves in the middle
        const leaving = new AbortController();
        const stream = await client.chat.completions.create(asked({stream: true, max_tokens: 400}), {signal: leaving.signal});
        for await (const chunk of stream) if (chunk.choices[0]?.delta?.content) break;
        leaving.abort();
        counts.left += 1;
    },
    async () => {  // a slow reader
        for await (const _ of await client.chat.completions.create(asked({stream: true}))) await sleep(20);
    },
    async () => {  // an edit session
        const call = (verb, path, body) => fetch(`${server.url}/v1/redline/sessions${path}`, {method: verb, body: body && JSON.stringify(body)});
        const opened = await (await call("POST", "", {files: [{path: "a.py", text: "def f(x):\n    return x\n".repeat(40)}], cache: {policy: "pie"}})).json();
        for (let v = 2; v < 6; ++v) {
            const place = {line: v, character: 0};
            await (await call("PATCH", `/${opened.id}/files/a.py`, {version: v, edits: [{range: {start: place, end: place}, text: `# ${v}\n`}]})).text();
            await (await call("POST", `/${opened.id}/complete`, {path: "a.py", max_tokens: 10})).text();
        }
        await call("DELETE", `/${opened.id}`);
        counts.sessions += 1;
    },
    () => fetch(`${server.url}/tokenize`, {method: "POST", body: JSON.stringify({content: "word ".repeat(20_000)})}).then((r) => r.text()),
];

async function use(number) {
    for (let i = number; Date.now() < until; ++i) {
        try {
            await doings[i % doings.length]();
            counts.answers += 1;
        } catch (error) {
            if (error.name !== "AbortError" && error.constructor.name !== "APIUserAbortError") counts.refused += 1;
        }
    }
}
function held() {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return {rss_mib: Math.round(Number(status.match(/VmRSS:\s+(\d+)/)[1]) / 1024), descriptors: readdirSync(`/proc/${pid}/fd`).length,
        maps: readFileSync(`/proc/${pid}/maps`, "utf8").split("\n").length, threads: Number(status.match(/Threads:\s+(\d+)/)[1])};
}
const users = Array.from({length: 8}, (_, i) => use(i));
const samples = [];
while (Date.now() < until) {
    await sleep(Math.min(30_000, minutes * 60_000 / 20));
    samples.push(held());
    console.log(JSON.stringify({...samples.at(-1), ...counts}));
}
await Promise.all(users);
// State of a client that left without notice is released after at most two minutes.
let left = 1;
for (let seconds = 0; seconds < 150 && left > 0; ++seconds) {
    await sleep(1000);
    left = await server.metric("redline_requests_running");
}
const half = samples[Math.floor(samples.length / 2)];
const last = held();
const failures = [];
if (last.rss_mib > half.rss_mib * 1.1 + 16) failures.push("resident memory grew");
if (last.descriptors > half.descriptors + 32) failures.push("descriptors grew");
if (last.threads !== half.threads) failures.push("threads grew");
if (left > 0) failures.push("sequences are left");
console.log(`${minutes} min: ${JSON.stringify(counts)}; after half of it ${JSON.stringify(half)}, at the end ${JSON.stringify(last)}` +
    (failures.length ? `: ${failures.join(", ")}` : ""));
await server.kill();
process.exit(failures.length ? 1 : 0);
