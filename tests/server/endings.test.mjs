// Signals and files at the worst moments.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {spawnSync} from "node:child_process";
import {Program, Server, edit, program, targetModel} from "./redline.mjs";

let folder;
before(() => { folder = mkdtempSync(join(tmpdir(), "redline-")); });
after(() => rmSync(folder, {recursive: true, force: true}));

const flags = ["--model", targetModel, "--listen", "127.0.0.1:0", "--threads", "1"];

test("SIGTERM ends the process cleanly while models are loaded", async () => {
    for (let i = 0; i < 8; ++i) {
        const port = join(folder, `port${i}`);
        const server = new Program("serve", ...flags, "--port-file", port);
        while (!existsSync(port)) await sleep(1);
        await sleep(i * 3);
        assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
    }
});

test("signals close after one another end the process cleanly", async () => {
    for (let i = 0; i < 4; ++i) {
        const server = await Server.start();
        server.child.kill("SIGTERM");
        await sleep(i);
        assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
    }
});

test("a second SIGTERM in the middle of an answer ends the process at once and cleanly", async () => {
    const server = await Server.start();
    const stream = await server.client().chat.completions.create({model: "demo-target", messages: edit, stream: true,
        max_tokens: 3000, temperature: 1.5, seed: 1, redline: {speculation: {method: "regular"}}});
    const told = [];
    const read = (async () => {
        for await (const chunk of stream) told.push(chunk);
    })().catch((error) => error);
    await server.until(() => told.length > 2);
    server.child.kill("SIGTERM");
    await server.says(/draining/);
    const began = performance.now();
    assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
    assert.ok(performance.now() - began < 15_000, "--shutdown-timeout is 30 s");
    await read;
});

test("SIGHUP reads keys anew and cuts nothing", async () => {
    const keys = join(folder, "keys");
    writeFileSync(keys, "ann:sk-key-of-ann\n", {mode: 0o600});
    const server = new Server("serve", ...flags, "--api-key-file", keys);
    try {
        server.url = (await server.says(/serving \S+ on (http:\S+)\s/))[1];
        await server.until(async () => (await fetch(`${server.url}/readyz`)).status === 200);
        const statusOf = async (key) => (await fetch(`${server.url}/v1/models`, {headers: {authorization: `Bearer ${key}`}})).status;
        const stream = await server.client({apiKey: "sk-key-of-ann"}).chat.completions.create({model: "demo-target", messages: edit,
            stream: true, max_tokens: 2000, temperature: 1.5, seed: 1, redline: {speculation: {method: "regular"}}});
        let finish;
        for await (const chunk of stream) {
            if (finish === undefined) {
                finish = null;
                writeFileSync(keys, "ben:sk-key-of-ben\n");
                server.child.kill("SIGHUP");
                await server.says(/SIGHUP: reloaded \S+ keys=1 tenants=1/);
                assert.equal(await statusOf("sk-key-of-ann"), 401);
                assert.equal(await statusOf("sk-key-of-ben"), 200);
            }
            finish = chunk.choices[0]?.finish_reason ?? finish;
        }
        assert.match(finish, /^(stop|length)$/, "the answer came to its end");
        writeFileSync(keys, "# ben:sk-key-of-ben\n");
        server.child.kill("SIGHUP");
        await server.says(/SIGHUP: cannot reload the keys, which stay as they were: API keys: '\S+' contains no key/);
        assert.equal(await statusOf("sk-key-of-ben"), 200);
        await server.says(/tenant=ann .*path=\/v1\/chat\/completions/);
        assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
    } finally {
        await server.kill();
    }
});

test("a file without keys, or an empty variable, is no server for everybody", async () => {
    const keys = join(folder, "no-keys");
    for (const text of ["", "\n\n", "# nobody yet\n"]) {
        writeFileSync(keys, text, {mode: 0o600});
        for (const command of [["serve", ...flags], ["gateway", "--join", `ipc://${folder}/nobody`, "--listen", "127.0.0.1:0"]]) {
            const server = new Program(...command, "--api-key-file", keys);
            assert.deepEqual(await server.exited, {code: 78, signal: null}, text);
            assert.match(server.lines.join(""), /'\S+no-keys' contains no key/);
        }
    }
    const server = new Program("serve", ...flags, {REDLINE_API_KEY: ""});
    assert.deepEqual(await server.exited, {code: 78, signal: null});
    assert.match(server.lines.join(""), /REDLINE_API_KEY is set but empty/);
});

test("SIGHUP ends no process of a pool, nor one that starts", async () => {
    mkdirSync(join(folder, "run"), {mode: 0o700});
    const endpoint = `ipc://${folder}/run/pool`;
    const pool = [new Program("broker", "--listen", endpoint),
        new Program("worker", "--role", "target", "--model", targetModel, "--join", endpoint, "--threads", "1"),
        new Program("gateway", "--join", endpoint, "--listen", "127.0.0.1:0")];
    for (const [i, says] of [/redline: broker at/, /target worker of/, /serving .* on http/].entries()) {
        await pool[i].says(says);
        for (let n = 0; n < 3; ++n) pool[i].child.kill("SIGHUP");
        await pool[i].says(/SIGHUP: /);
    }
    for (const one of pool) assert.deepEqual(await one.kill("SIGTERM"), {code: 0, signal: null});
    const port = join(folder, "port-of-one-that-starts");
    const server = new Program("serve", ...flags, "--port-file", port);
    while (!existsSync(port)) await sleep(1);
    server.child.kill("SIGHUP");
    await server.says(/serving \S+ on/);
    assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
});

test("README's request works with little memory for KV, and the context is what fits", async () => {
    const readme = readFileSync(join(targetModel, "../../../README.md"), "utf8");
    const [, curl] = readme.match(/^(curl -s .*?http:\/\/127\.0\.0\.1:8080\/v1\/chat\/completions .*?\}')$/ms);
    const [roomy, narrow] = [await Server.start(), await Server.start("--kv-mib", "4")];
    const answers = [];
    for (const server of [roomy, narrow]) {
        const {stdout} = spawnSync("sh", ["-c", curl.replace("http://127.0.0.1:8080", server.url)], {encoding: "utf8"});
        answers.push(JSON.parse(stdout).choices[0].message.content);
    }
    assert.match(answers[0], /64/);
    assert.equal(answers[1], answers[0]);
    const context = async (server) => (await (await fetch(`${server.url}/v1/models`)).json()).data[0].max_model_len;
    assert.ok(await context(narrow) < await context(roomy), "less memory, less context");
    const long = {messages: [{role: "user", content: "x = 1\n".repeat(await context(narrow))}]};
    const refused = await fetch(`${narrow.url}/v1/chat/completions`, {method: "POST", body: JSON.stringify(long)});
    assert.equal(refused.status, 400);
    const {error} = await refused.json();
    assert.equal(error.code, "context_length_exceeded");
    assert.match(error.message, new RegExp(`maximum context length is ${await context(narrow)} tokens`));
    await Promise.all([roomy.kill(), narrow.kill()]);
});

test("a port file that cannot be written is an error", async () => {
    const server = new Program("serve", ...flags, "--port-file", join(folder, "absent", "port"));
    assert.deepEqual(await server.exited, {code: 1, signal: null});
    assert.match(server.lines.join(""), /--port-file \S+absent\/port: cannot be written: No such file or directory/);
});

// The address sanitizer reserves terabytes of addresses, so no limit can be set with it.
const canLimit = spawnSync("sh", ["-c", 'ulimit -v 8388608; exec "$0" --version', program]).status === 0;

test("too little memory is an error and an end", {skip: !canLimit}, async () => {
    for (const mebibytes of [80, 150, 200]) {
        const child = spawnSync("sh", ["-c", `ulimit -v ${mebibytes * 1024}; exec "$0" "$@"`, program, "serve", ...flags],
            {encoding: "utf8", timeout: 30000});
        assert.equal(child.error, undefined, `${mebibytes} MiB: it hangs`);
        assert.notEqual(child.status, 0);
        assert.notEqual(child.stderr, "");
    }
});
