// A pool whose workers, brokers and models come and go while it answers; the answers keep the same bytes.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {createInterface} from "node:readline";
import {after, before, test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import {Server, call, draftModel, int8Targets, targetModel} from "./redline.mjs";
import {Pool, busiest} from "./pool.mjs";
import {chat, lastId, readStream, requests, sum, words} from "./streams.mjs";

const patience = 3;  // seconds for which answers wait for a worker
const long = ["/v1/completions", {model: "demo-target", prompt: "def one():", max_tokens: 1000, ignore_eos: true, temperature: 1,
    seed: 5, logprobs: 1, stream: true, redline: {speculation: {method: "regular"}}}];
const source = "def f(x):\n    return x\n".repeat(30);
let pool;
let brokers;
let gateways;
let targets;
let drafter;
let expected;

const fingerprint = ({heads}) => JSON.parse([...heads].at(-1))[3];
const listed = async (gateway) => (await gateway.client().models.list()).data.map((m) => m.id).sort();
const isReady = async (gateway) => (await fetch(`${gateway.url}/readyz`)).status === 200;
const answer = async (gateway, [path, body] = long, stop = undefined) => words(sum(await readStream(gateway.url, path, body, undefined, stop)));
/** Starts a worker and waits until all gateways know it. */
async function startTarget(...more) {
    const worker = pool.startWorker("target", ...more);
    for (const _ of gateways) await worker.says(/handshake|process \d+ is connected/);
    return worker;
}
/** Starts the stream and, after its first words, applies the accident to the worker that serves it. */
async function answerWith(accident, gateway = gateways[0]) {
    const serving = busiest(targets);
    let begun;
    const hasBegun = new Promise((resolve) => { begun = resolve; });
    let isDone = false;
    const reading = answer(gateway, long, (events) => {
        if (events.length > 2) begun();
        return false;
    }).finally(() => { isDone = true; });
    await Promise.race([hasBegun, reading]);
    const worker = await serving;
    assert.equal(isDone, false, "the answer was too short for an accident");
    await accident(worker);
    return await reading;
}
async function replace(worker) {
    await worker.kill();
    targets = targets.filter((one) => one !== worker);
    targets.push(await startTarget());
}

/** Returns the text of each call of an edit session. `between(call)` runs before each call. */
async function liveSession(gateway, between = async () => {}) {
    const call = async (verb, path, body) => {
        const response = await fetch(`${gateway.url}/v1/redline/sessions${path}`, {method: verb, body: body && JSON.stringify(body)});
        const text = await response.text();
        assert.ok(response.ok, text);
        return text === "" ? {} : JSON.parse(text);
    };
    const opened = await call("POST", "", {model: "demo-target", files: [{path: "a.py", text: source, version: 1}]});
    const said = [];
    for (let v = 2; v < 6; ++v) {
        const place = {line: 3 * v, character: 0};
        await call("PATCH", `/${opened.id}/files/a.py`, {version: v, edits: [{range: {start: place, end: place}, text: `y${v} = ${v}\n`}]});
        await between(v);
        const end = {line: 3 * v + 1, character: 0};
        const done = await call("POST", `/${opened.id}/complete`, {path: "a.py", position: end, mode: "text", max_tokens: 30,
            temperature: 0.7, seed: v});
        said.push(done.choices[0].text);
    }
    await call("DELETE", `/${opened.id}`);
    return said;
}

before(async () => {
    const alone = await Server.start("--draft", draftModel);
    expected = {long: await answer(alone), session: await liveSession(alone)};
    for (const [name, one] of Object.entries(requests)) expected[name] = await answer(alone, one);
    await alone.kill();
    pool = new Pool(2);
    brokers = [await pool.startBroker(0)];
    gateways = [await pool.startGateway("--pool-patience", String(patience)), await pool.startGateway("--pool-patience", String(patience))];
    targets = [pool.startWorker("target"), pool.startWorker("target"), pool.startWorker("target")];
    drafter = pool.startWorker("draft");
    for (const gateway of gateways) await gateway.until(() => isReady(gateway));
});
after(() => pool?.close());

test("gateways have no model file and list what the workers have", async () => {
    for (const gateway of gateways) {
        await gateway.until(async () => (await listed(gateway)).length > 0);
        assert.deepEqual(await listed(gateway), ["demo-target"]);
    }
});

test("all gateways say what one server says, of every feature", async () => {
    for (const [name, one] of Object.entries(requests)) {
        const [first, second] = await Promise.all(gateways.map((gateway) => answer(gateway, one)));
        assert.deepEqual(first, expected[name], name);
        assert.deepEqual(second, expected[name], name);
    }
    const [path, body] = requests["the most probable tokens"];
    const drafted = [path, {...body, redline: {speculation: {method: "assisted"}}}];
    assert.deepEqual((await answer(gateways[0], drafted)).choices, expected["the most probable tokens"].choices);
});

test("a worker that is killed in the middle of an answer costs no byte", async () => {
    let killed;
    assert.deepEqual(await answerWith(async (worker) => {
        killed = worker;
        await worker.kill();
    }), expected.long);
    await replace(killed);
});

test("a worker that hangs in the middle of an answer and comes back later costs no byte", async () => {
    let stopped;
    assert.deepEqual(await answerWith((worker) => {
        stopped = worker;
        worker.child.kill("SIGSTOP");
    }), expected.long);
    stopped.child.kill("SIGCONT");
    assert.deepEqual(await answer(gateways[1]), expected.long);
});

test("a worker that is told to end hands its answers over and ends within seconds", async () => {
    let ended;
    let seconds;
    assert.deepEqual(await answerWith(async (worker) => {
        const began = performance.now();
        ended = worker;
        assert.deepEqual(await worker.kill("SIGTERM"), {code: 0, signal: null});
        seconds = (performance.now() - began) / 1000;
    }), expected.long);
    assert.ok(seconds < 4, `it took ${seconds} s`);
    await replace(ended);
});

test("an edit session goes on after its worker has died", async () => {
    const said = await liveSession(gateways[0], async (v) => {
        if (v !== 4) return;
        // It is not visible which worker has the session, so each dies once.
        for (const worker of [...targets]) await replace(worker);
        // New requests are refused while there is no worker, and these workers may take a while to load.
        await gateways[0].until(() => isReady(gateways[0]));
    });
    assert.deepEqual(said, expected.session);
});

test("the only broker may be killed and started again in the middle of an answer", async () => {
    assert.deepEqual(await answerWith(async () => {
        await brokers[0].kill();
        brokers[0] = await pool.startBroker(0);
    }), expected.long);
});

test("of two brokers one may be killed in the middle of an answer", async () => {
    brokers[1] = await pool.startBroker(1);
    for (const one of [...gateways, ...targets]) await one.says(new RegExp(`joined the broker at ${pool.endpoints[1]}`));
    assert.deepEqual(await answerWith(() => brokers[0].kill()), expected.long);
    assert.deepEqual(await answer(gateways[1]), expected.long);
    brokers[0] = await pool.startBroker(0);
});

test("a worker with another model is another model of the list", async () => {
    const other = pool.startWorker("target", "--model", draftModel);
    for (const gateway of gateways) await gateway.until(async () => (await listed(gateway)).length === 2);
    assert.deepEqual(await listed(gateways[0]), ["demo-draft", "demo-target"]);
    const [path, body] = requests["the most probable tokens"];
    const events = await readStream(gateways[0].url, path, {...body, model: "demo-draft"});
    assert.equal(JSON.parse(events[0].data).model, "demo-draft");
    assert.deepEqual(await answer(gateways[0], [path, body]), expected["the most probable tokens"]);
    await other.kill();
});

test("a worker of other numerics never goes on with an answer; one of the same does, when it comes", async () => {
    const others = await startTarget("--kv", "f32");
    const mine = targets;
    // The answer must not begin at the other worker, and is requested again if it does.
    for (let tries = 0; ; ++tries) {
        assert.ok(tries < 20);
        targets = [...mine, others];
        let isOther = false;
        const said = await answerWith(async (worker) => {
            isOther = worker === others;
            if (isOther) return;
            await Promise.all(mine.map((one) => one.kill()));
            await sleep(1000);
            targets = [await startTarget()];
        });
        if (isOther) continue;
        assert.deepEqual(said, expected.long);
        break;
    }
    await others.kill();
    targets.push(await startTarget());
});

test("a stream goes on with the numerics that it began with, at any gateway", async () => {
    await Promise.all(targets.map((one) => one.kill()));
    const others = await startTarget("--kv", "f32");
    targets = [others];
    for (const gateway of gateways) await gateway.until(() => isReady(gateway));
    const [path, body] = requests["sampling with a seed"];
    const whole = await readStream(gateways[0].url, path, body);
    const kinds = async (gateway) => (await gateway.client().models.list()).data.find((m) => m.id === "demo-target").meta.numerics;
    const had = whole.slice(0, Math.floor(whole.length / 3));
    targets = [others, await startTarget(), await startTarget(), await startTarget()];
    // Both kinds are listed, and the answer names its own.
    for (const gateway of gateways) {
        await gateway.until(async () => (await kinds(gateway)).length === 2);
        const [f32] = (await kinds(gateway)).filter((one) => one.name.includes("f32 keys"));
        assert.equal(f32.system_fingerprint, fingerprint(sum(whole)));
    }
    for (let i = 0; i < 6; ++i) {
        const rest = await readStream(gateways[i % 2].url, path, body, lastId(had));
        assert.deepEqual(words(sum([...had, ...rest])), words(sum(whole)));
    }
    // Without such a worker the answer waits and is then refused rather than continued differently.
    await others.kill();
    targets = targets.slice(1);
    const left = await fetch(gateways[0].url + path, {method: "POST", body: JSON.stringify(body), headers: {"last-event-id": lastId(had)}});
    assert.equal(left.status, 503);
    assert.ok(Number(left.headers.get("retry-after")) > 0);
    assert.match((await left.json()).error.message, /^No worker/);
});

test("under int8 workers of all kinds of CPUs are one kind, and go on with each other's answers", async () => {
    const model = join(pool.folder, "demo-int8.gguf");
    call("quantize", targetModel, model, "--type", "q8_0");
    const kinds = [...int8Targets(), "scalar"];
    const how = (target) => ["--model", model, "--numerics", "int8", {REDLINE_TARGET: target}];
    const asked = [long[0], {...long[1], model: "demo-int8", max_tokens: 700}];
    const alone = await Server.start(...how(kinds[0]));
    const read = async (one) => sum(await readStream(one.url, ...asked));
    const wanted = await read(alone);
    await alone.kill();
    const mixed = await Promise.all(kinds.map((target) => startTarget(...how(target))));
    for (const gateway of gateways) await gateway.until(async () => (await listed(gateway)).includes("demo-int8"));
    const [card] = (await gateways[0].client().models.list()).data.filter((m) => m.id === "demo-int8");
    assert.equal(card.meta.numerics.length, 1);
    assert.match(card.meta.numerics[0].name, /^int8 products and f16 keys and values, version /);
    assert.equal(card.meta.numerics[0].system_fingerprint, fingerprint(wanted));
    // The computing worker dies, until one is left.
    let left = mixed;
    const reading = read(gateways[0]);
    while (left.length > 1) {
        const worker = await busiest(left).catch(() => undefined);
        if (worker === undefined) break;  // the answer is done
        await worker.kill();
        left = left.filter((one) => one !== worker);
    }
    const said = await reading;
    assert.deepEqual(words(said), words(wanted));
    assert.equal(fingerprint(said), fingerprint(wanted));
    assert.ok(left.length < mixed.length, "nobody was killed");
    await Promise.all(left.map((one) => one.kill()));
});

test("a process whose number another one has draws another, and stays the same process", async () => {
    const folder = mkdtempSync(join(tmpdir(), "redline-twin-"));
    const broker = spawn("/usr/bin/python3", [new URL("twin_broker.py", import.meta.url).pathname, `ipc://${folder}/bus`]);
    const identities = [];
    createInterface({input: broker.stdout}).on("line", (line) => identities.push(line));
    const until = async (what) => { for (let i = 0; i < 400 && !what(); ++i) await sleep(50); assert.ok(what(), identities.join()); };
    let gateway;
    try {
        await until(() => identities.length > 0);
        gateway = new Server("gateway", "--join", `ipc://${folder}/bus`, "--listen", "127.0.0.1:0");
        await gateway.says(/another process has the number/);
        await until(() => identities.length === 3);
        await gateway.says(/joined the broker/);
        assert.notEqual(identities[1].slice(0, 8), identities[2].slice(0, 8), "another number");
        assert.ok(!gateway.hasEnded());
        assert.equal((await gateway.kill("SIGTERM")).code, 0);
    } finally {
        broker.kill();
        if (gateway && !gateway.hasEnded()) await gateway.kill();
        rmSync(folder, {recursive: true, force: true});
    }
});

test("without a worker answers fail with 503 when the patience ends, and none hangs", async () => {
    let events = [];
    const reading = readStream(gateways[0].url, ...long, undefined, (came) => {
        events = came;
        return false;
    });
    await gateways[0].until(() => events.length > 2);
    await Promise.all(targets.map((one) => one.kill()));
    const began = performance.now();
    const [path, body] = long;
    const refused = await Promise.all(gateways.map((gateway) => fetch(gateway.url + path, {method: "POST", body: JSON.stringify(body)})));
    for (const one of refused) {
        assert.equal(one.status, 503);
        assert.ok(Number(one.headers.get("retry-after")) > 0);
    }
    events = await reading;
    assert.match(JSON.parse(events.at(-1).data).error.message, /^No worker/);
    assert.ok(performance.now() - began < (patience + 5) * 1000);
    targets = [await startTarget()];
    for (const gateway of gateways) await gateway.until(() => isReady(gateway));
    assert.deepEqual(await answer(gateways[0]), expected.long);
});

test("a file is exchanged for another under one name: who has the name keeps it, and no request finds a gap", async () => {
    const files = ["q8_0", "q4_0"].map((type) => {
        const path = join(pool.folder, `rolled-${type}.gguf`);
        call("quantize", draftModel, path, "--type", type);
        return path;
    });
    const [gateway] = gateways;
    const start = async (file) => {
        const worker = pool.startWorker("target", "--model", file, "--alias", "rolled");
        await worker.says(/redline: target worker of/);
        for (const _ of gateways) await worker.says(/handshake|process \d+ is connected/);
        return worker;
    };
    const ask = async () => {
        const response = await fetch(`${gateway.url}/v1/completions`, {method: "POST",
            body: JSON.stringify({model: "rolled", prompt: "def one():", max_tokens: 6, temperature: 0})});
        const body = await response.json();
        assert.equal(response.status, 200, JSON.stringify(body));
        return body.system_fingerprint;
    };
    const conflicts = () => gateway.metric("redline_model_name_conflicts");
    let serving = [await start(files[0]), await start(files[0])];
    await gateway.until(async () => (await listed(gateway)).includes("rolled"));
    // Switches in both directions, because the digest of one of the two is lower.
    for (const file of [files[1], files[0]]) {
        const old = await ask();
        const told = [];  // by each of four clients, in order
        let isOver = false;
        const clients = Array.from({length: 4}, async (_, i) => {
            told[i] = [];
            while (!isOver) told[i].push(await ask());
        });
        const next = [await start(file), await start(file)];
        await gateway.until(async () => await conflicts() === 1);
        assert.match(gateway.lines.join(""), /model 'rolled' with digest \S+ is not served: the model with digest \S+ has this name/);
        const asked = () => told.flat().length;
        const more = async () => {
            const enough = asked() + 20;
            while (asked() < enough) await Promise.race([sleep(10), ...clients]);
        };
        await more();
        await serving[0].kill("SIGTERM");
        await more();
        const before = new Set(told.flat());
        assert.deepEqual([...before], [old], "the file that has the name keeps it while it has a worker");
        await serving[1].kill("SIGTERM");
        await more();
        isOver = true;
        await Promise.all(clients);
        const now = await ask();
        assert.notEqual(now, old);
        for (const one of told) assert.deepEqual([...new Set(one)], [old, now], "and never comes back");
        await gateway.until(async () => await conflicts() === 0);
        serving = next;
    }
    await Promise.all(serving.map((one) => one.kill()));
});

test("a gateway says what its pool lacks, and people's names for workers", async () => {
    const other = new Pool(1);
    try {
        const gateway = await other.startGateway();
        const says = async (pattern) => gateway.until(async () => {
            const response = await fetch(`${gateway.url}/readyz`);
            return response.status === 503 && pattern.test((await response.json()).error.message);
        });
        await says(/^The target model cannot be used: no broker has answered yet\.$/);
        await says(/the broker at ipc:\S+ does not answer: expected a broker that is running there/);
        await other.startBroker(0);
        await says(/^The target model cannot be used: no worker has joined the pool\.$/);
        const worker = other.startWorker("target", "--name", "box-7");
        await gateway.until(() => isReady(gateway));
        await gateway.until(async () => / box-7 +0 +0 /.test(` ${call("top", "--server", gateway.url, "--once").replaceAll("\n", " ")}`));
        await worker.kill();
        await gateway.says(/lost worker box-7 \(\d+\): /);
        await says(/the last worker is gone: /);
    } finally {
        await other.close();
    }
});
