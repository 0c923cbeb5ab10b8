// Streams whose server is killed in the middle: another one continues them, byte for byte.
import assert from "node:assert/strict";
import {after, before, describe, test} from "node:test";
import {spawnSync} from "node:child_process";
import {mkdirSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {Program, Server, draftModel, file, targetModel} from "./redline.mjs";
import {ask, chat, lastId, readStream, readUntilKilled, requests, sum, words} from "./streams.mjs";

const expected = {};
const begun = {};
let server;

before(async () => {
    const first = await Server.start("--draft", draftModel);
    for (const [name, [path, body]] of Object.entries(requests)) {
        expected[name] = await readStream(first.url, path, body);
        assert.ok(sum(expected[name]).isDone, name);
    }
    // Each stream has its own server, which is killed after a third of the stream.
    await first.kill();
    let cut = 0;
    for (const [name, [path, body]] of Object.entries(requests)) {
        const victim = await Server.start();
        const enough = Math.max(2, Math.floor(expected[name].length / 3));
        const {events, isCut} = await readUntilKilled(victim, path, body, enough);
        begun[name] = events;
        await victim.kill();
        cut += isCut ? 1 : 0;
    }
    assert.ok(cut * 2 > Object.keys(requests).length, `${cut} streams were cut`);
    server = await Server.start("--draft", draftModel);
});
after(() => server?.kill());

describe("a stream whose server was killed", () => {
    for (const [name, [path, body]] of Object.entries(requests)) {
        test(`goes on at another one: ${name}`, async () => {
            const had = begun[name];
            assert.ok(had.length > 0);
            const rest = await readStream(server.url, path, body, lastId(had));
            const both = sum([...had, ...rest]);
            assert.deepEqual(words(both), words(sum(expected[name])));
            // Sending the received text gives the same result.
            const texts = sum(had).choices.map((c) => c?.text ?? "");
            const helped = await readStream(server.url, path,
                {...body, redline: {...body.redline, resume_text: texts}}, lastId(had));
            assert.deepEqual(words(sum([...had, ...helped])), words(both));
        });
    }
});

describe("a stream", () => {
    test("goes on after each of its events", async () => {
        const [path, body] = requests["several choices"];
        const whole = expected["several choices"];
        for (let i = 0; i < whole.length - 1; i += 3) {
            const had = whole.slice(0, i + 1);
            const rest = await readStream(server.url, path, body, lastId(had));
            assert.deepEqual(words(sum([...had, ...rest])), words(sum(whole)), `after event ${i}`);
        }
    });

    test("that named no seed goes on with the one that was drawn", async (t) => {
        // The model does not know what to say here, so no two answers are the same.
        const body = ask({messages: [{role: "user", content: "Write a poem about the sea."}], seed: undefined, temperature: 2,
            max_tokens: 80, ignore_eos: true});
        const whole = await readStream(server.url, chat, body);
        t.diagnostic(`the stream's id, which has the seed: ${whole[0].id}`);
        const other = await readStream(server.url, chat, body);
        assert.notEqual(sum(whole).choices[0].text, sum(other).choices[0].text);
        for (const share of [0, 0.3, 0.9]) {
            const had = whole.slice(0, 1 + Math.floor((whole.length - 2) * share));
            const rest = await readStream(server.url, chat, body, lastId(had));
            assert.deepEqual(sum([...had, ...rest]), sum(whole));
        }
    });

    test("that the client has whole ends without another word, whatever writes the request", async () => {
        const [path, body] = requests["log probabilities"];
        const had = expected["log probabilities"];
        const asked = await server.metric("redline_generation_tokens_total");
        const curl = spawnSync("curl", ["-sN", server.url + path, "-H", "content-type: application/json",
            "-H", `Last-Event-ID: ${lastId(had)}`, "-d", JSON.stringify(body, null, 4)], {encoding: "utf8"});
        if (curl.error === undefined) assert.equal(curl.stdout, "data: [DONE]\n\n");
        assert.deepEqual(await readStream(server.url, path, body, lastId(had)), [{data: "[DONE]"}]);
        assert.equal(await server.metric("redline_generation_tokens_total"), asked);
    });

    test("catches up in few passes with the text that the client has", async () => {
        // How much of a draft is verified depends on the times of passes, except with whole drafts.
        const steady = await Server.start("--draft-length", "whole");
        const body = ask({temperature: 0.9, redline: {speculation: {method: "regular"}}});
        const whole = await readStream(steady.url, chat, body);
        const had = whole.slice(0, -3);
        const texts = sum(had).choices[0].text;
        const passes = async (more) => {
            const rest = await readStream(steady.url, chat, {...body, redline: {...body.redline, ...more}}, lastId(had));
            assert.deepEqual(words(sum([...had, ...rest])), words(sum(whole)));
            return JSON.parse(rest.at(-2).data).usage.redline.target_passes;
        };
        const alone = await passes({});
        const helped = await passes({resume_text: texts});
        assert.ok(helped * 4 < alone, `${helped} of ${alone} passes`);
        // A wrong text costs some work and changes nothing.
        await passes({resume_text: texts.slice(0, 40) + "nonsense".repeat(200)});
        await steady.kill();
    });

    test("of an edit session that was opened anew goes on", async () => {
        const post = async (path, body) => (await fetch(server.url + path, {method: "POST", body: JSON.stringify(body)})).json();
        const files = [{path: "a.py", text: file, version: 1}];
        const open = async () => `/v1/redline/sessions/${(await post("/v1/redline/sessions", {files})).id}`;
        const calls = [["complete", {path: "a.py", position: {line: 5, character: 0}, max_tokens: 40, stream: true}],
            ["edit", {path: "a.py", instruction: "Change the number 10 to 64.", stream: true}]];
        for (const [verb, body] of calls) {
            const whole = await readStream(server.url, `${await open()}/${verb}`, body);
            const had = whole.slice(0, Math.ceil(whole.length / 2));
            const rest = await readStream(server.url, `${await open()}/${verb}`, body, lastId(had));
            assert.deepEqual(sum([...had, ...rest]), sum(whole), verb);
        }
    });
});

test("a stream of a pool goes on at another gateway", async () => {
    const folder = mkdtempSync(join(tmpdir(), "redline-"));
    mkdirSync(join(folder, "run"), {mode: 0o700});
    const pool = `ipc://${folder}/run/pool`;
    const programs = [];
    const start = (...args) => (programs.push(new Program(...args)), programs.at(-1));
    const startGateway = async () => {
        const gateway = start("gateway", "--join", pool, "--listen", "127.0.0.1:0");
        gateway.url = (await gateway.says(/(http:\/\/127\S+)/))[1];
        for (let i = 0; i < 1200 && (await fetch(`${gateway.url}/readyz`)).status !== 200; ++i) await sleep(50);
        return gateway;
    };
    try {
        start("broker", "--listen", pool);
        start("worker", "--role", "node", "--model", targetModel, "--draft", draftModel, "--join", pool, "--threads", "1");
        const [first, second] = [await startGateway(), await startGateway()];
        for (const name of ["log probabilities", "several choices", "an edit program"]) {
            const [path, body] = requests[name];
            const whole = await readStream(first.url, path, body);
            assert.deepEqual(words(sum(whole)), words(sum(expected[name])));
            const had = whole.slice(0, Math.ceil(whole.length / 2));
            const rest = await readStream(second.url, path, body, lastId(had));
            assert.deepEqual(sum([...had, ...rest]), sum(whole), name);
        }
        const [path, body] = requests["sampling with a seed"];
        const {events: had} = await readUntilKilled(first, path, body, 3);
        const texts = sum(had).choices.map((c) => c.text);
        const rest = await readStream(second.url, path, {...body, redline: {resume_text: texts}}, lastId(had));
        assert.deepEqual(words(sum([...had, ...rest])), words(sum(expected["sampling with a seed"])));
    } finally {
        for (const program of programs) await program.kill();
        rmSync(folder, {recursive: true, force: true});
    }
});

describe("an id", () => {
    const refused = async (id, body = requests["sampling with a seed"][1], url = server.url) => {
        const response = await fetch(url + chat, {method: "POST", headers: {"last-event-id": id}, body: JSON.stringify(body)});
        assert.equal(response.status, 400);
        return (await response.json()).error;
    };

    test("that is none is refused", async () => {
        const good = lastId(begun["sampling with a seed"]);
        for (const id of ["1", "-", "null", good.slice(1), good.slice(0, -1), `${good}A`, `${good}==`, "A".repeat(55), "A".repeat(9000)]) {
            assert.match((await refused(id)).code, /^(invalid_event_id|event_id_of_other_request)$/, id);
        }
    });

    test("of another request, or for an answer that is no stream, is refused by name", async () => {
        const good = lastId(begun["sampling with a seed"]);
        const [, body] = requests["sampling with a seed"];
        const other = await refused(good, {...body, temperature: 0.8});
        assert.equal(other.code, "event_id_of_other_request");
        assert.match(other.message, /another request/);
        assert.equal((await refused(good, {...body, stream: false, stream_options: undefined})).code, "not_a_stream");
        const lost = await fetch(server.url + chat, {method: "POST", body: JSON.stringify({...body, redline: {resume_text: "x"}})});
        assert.equal(lost.status, 400);
        assert.match(await lost.text(), /Last-Event-ID/);
    });

    test("of another model is refused by name", async () => {
        const renamed = await Server.start("--context", "1024");
        try {
            assert.equal((await refused(lastId(begun["sampling with a seed"]), undefined, renamed.url)).code, "event_id_of_other_model");
        } finally {
            await renamed.kill();
        }
    });

    test("that was forged ends the stream with an error instead of wrong text", async () => {
        const [path, body] = requests["the most probable tokens"];
        const bytes = Buffer.from(lastId(expected["the most probable tokens"].slice(0, 6)), "base64url");
        bytes[bytes.length - 5] ^= 1;  // corrupts the digest of the text, which precedes that of the numerics
        const events = await readStream(server.url, path, body, bytes.toString("base64url"));
        assert.equal(JSON.parse(events.at(-1).data).error.code, "answer_diverged");
        assert.equal(events.length, 1);
    });
});
