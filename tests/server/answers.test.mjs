// Compares the answers of fixed requests with tests/golden/answers.txt: one after another, eight at once and as
// streams, with too little memory, and in a pool. REDLINE_GOLDEN=write rewrites the file.
import assert from "node:assert/strict";
import {createHash} from "node:crypto";
import {mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import {essence, gathered, isExact, requests, sessions} from "./answers.mjs";
import {copyWith} from "./gguf.mjs";
import {Pool} from "./pool.mjs";
import {Server, draftModel, exampleConfig, targetModel} from "./redline.mjs";
import {hermes} from "./tool_templates.mjs";

const golden = join(exampleConfig, "../../tests/golden/answers.txt");
let folder;
let model;
let known;  // name to digest, from the file or from the first run

before(() => {
    folder = mkdtempSync(join(tmpdir(), "redline-answers-"));
    mkdirSync(join(folder, "models"));
    model = join(folder, "models", "demo-target.gguf");
    copyWith(targetModel, model, {"tokenizer.chat_template": hermes});
});
after(() => rmSync(folder, {recursive: true, force: true}));

async function post(url, path, body, verb = "POST") {
    const response = await fetch(url + path, {method: verb, headers: {"content-type": "application/json"}, body: JSON.stringify(body)});
    const text = await response.text();
    assert.ok(response.ok, `${path} ${JSON.stringify(body)}: ${text}`);
    if (!body?.stream) return text === "" ? {} : JSON.parse(text);
    const events = text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
    assert.equal(events.pop(), "[DONE]", text);
    const chunks = events.map((event) => JSON.parse(event));
    for (const chunk of chunks) assert.equal(chunk.error, undefined, JSON.stringify(chunk));
    return gathered(chunks);
}

const canStream = ({path, body}) => /^\/v1\/(chat\/)?completions$/.test(path) && !body.best_of && body.prompt_logprobs === undefined;
const digest = (what) => createHash("sha256").update(JSON.stringify(essence(what))).digest("hex").slice(0, 16);

/** An edit session's answers. Work in advance is awaited: except with `exact`, it affects the result. */
async function serveSession(url, {name, cache, file}) {
    const found = [];
    const path = "/v1/redline/sessions";
    const {id} = await post(url, path, {files: [{path: "a.py", text: file, version: 1}], cache});
    const call = async (verb, body) => found.push([`${name} ${found.length + 1} ${body.mode ?? verb}`,
        digest(await post(url, `${path}/${id}/${verb}`, {path: "a.py", temperature: 0.7, seed: 5, max_tokens: 40, ...body}))]);
    const lines = file.split("\n").length - 1;
    const change = async (version, line, text) => {
        const place = {line, character: 0};
        const cursor = {line: lines - 4, character: 0};
        await post(url, `${path}/${id}/files/a.py`, {version, cursor, edits: [{range: {start: place, end: place}, text}]}, "PATCH");
    };
    const at = (line) => ({position: {line, character: 0}});
    await call("complete", {mode: "text", ...at(lines)});
    await change(2, 3, "FIRST = 1\n");
    if (cache.healing) await healed(url, `${path}/${id}`);
    await call("complete", {mode: "text", logprobs: 1, ...at(lines)});
    await change(3, 5, "# Second.\n");
    if (cache.healing) await healed(url, `${path}/${id}`);
    await call("complete", {mode: "line", ...at(lines - 2)});
    await call("complete", {mode: "fim", ...at(12)});
    await call("edit", {instruction: "Change the number 10 to 64.", max_tokens: 250, temperature: 0});
    await post(url, `${path}/${id}`, undefined, "DELETE");
    return found;
}

async function healed(url, path) {
    for (let i = 0; i < 600; ++i) {
        const {kv} = await (await fetch(url + path)).json();
        if (kv.stale === 0 && kv.shifted === 0) return;
        await sleep(10);
    }
    throw new Error("not healed after 6 s");
}

/** The answers of a server: name to digest. */
async function serveAll(url, {atOnce, streams = false, which = () => true}) {
    const jobs = [...requests.filter(which).map((one) => async () => {
        const stream = streams && canStream(one) ? {stream: true, stream_options: {include_usage: true}} : {};
        return [[one.name, digest(await post(url, one.path, {model: "demo-target", ...one.body, ...stream}))]];
    }), ...sessions.filter(which).map((one) => () => serveSession(url, one))];
    const found = new Map();
    const work = async () => {
        while (jobs.length > 0) for (const [name, hash] of await jobs.shift()()) found.set(name, hash);
    };
    await Promise.all(Array.from({length: atOnce}, work));
    return found;
}

function compare(found) {
    assert.deepEqual([...found].filter(([name, hash]) => known.get(name) !== hash).map(([name]) => name), []);
}

test("answers are those of the file, one after another", async () => {
    const server = await Server.start("--model", model, "--draft", draftModel);
    try {
        const found = await serveAll(server.url, {atOnce: 1});
        if (process.env.REDLINE_GOLDEN === "write") {
            writeFileSync(golden, [...found].map(([name, hash]) => `${hash} ${name}\n`).sort((a, b) => a.slice(17) < b.slice(17) ? -1 : 1).join(""));
        }
        known = new Map(readFileSync(golden, "utf8").trimEnd().split("\n").map((line) => [line.slice(17), line.slice(0, 16)]));
        compare(found);
        assert.deepEqual([...known.keys()].filter((name) => !found.has(name)), []);
    } finally {
        await server.kill();
    }
});

test("answers that differ only in how they are computed are the same", () => {
    const first = new Map();
    const wrong = requests.filter(({name, group}) => {
        if (!first.has(group)) first.set(group, known.get(name));
        return first.get(group) !== known.get(name);
    });
    assert.deepEqual(wrong.map(({name}) => name), []);
});

test("answers are the same as streams, eight at once", async () => {
    const server = await Server.start("--model", model, "--draft", draftModel);
    try {
        compare(await serveAll(server.url, {atOnce: 8, streams: true}));
    } finally {
        await server.kill();
    }
});

test("answers are the same where they take each other's memory away", async () => {
    const server = await Server.start("--model", model, "--draft", draftModel, "--kv-mib", "5");
    try {
        compare(await serveAll(server.url, {atOnce: 8, which: (one, i) => isExact(one) && i % 2 === 0}));
        assert.ok(await server.metric("redline_preempted_total") > 0);
    } finally {
        await server.kill();
    }
});

test("answers are the same in a pool", async () => {
    const pool = new Pool(1);
    try {
        await pool.startBroker(0);
        const gateway = await pool.startGateway();
        pool.startWorker("node", "--model", model, "--draft", draftModel);
        await gateway.until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200);
        compare(await serveAll(gateway.url, {atOnce: 4}));
    } finally {
        await pool.close();
    }
});
