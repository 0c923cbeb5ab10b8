// `redline edit` and `redline generate` with a model: the servers that they start for themselves.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import {draftModel, program, Server, targetModel} from "./redline.mjs";

let folder;
before(() => { folder = mkdtempSync(join(tmpdir(), "redline-door-")); });
after(() => rmSync(folder, {recursive: true, force: true}));

const hidden = "a prompt that nobody else reads";
const endless = ["--model", targetModel, "--threads", "1", "-p", hidden, "-n", "1000000", "--ignore-eos", "--eviction", "lazy"];
const call = (args, more = {}) => spawnSync(program, args, {encoding: "utf8", ...more});

/** Starts an endless command and returns it, once text has come, with the process of its server. */
async function begin() {
    const command = spawn(program, ["generate", ...endless], {stdio: ["ignore", "pipe", "pipe"]});
    const told = {err: ""};
    command.stderr.setEncoding("utf8").on("data", (text) => { told.err += text; });
    const exited = new Promise((resolve) => command.on("exit", (code, signal) => resolve({code, signal})));
    await new Promise((resolve) => command.stdout.once("data", resolve));
    command.stdout.resume();
    const own = Number(spawnSync("pgrep", ["-P", `${command.pid}`], {encoding: "utf8"}).stdout.trim());
    assert.ok(own > 0);
    return {command, own, told, exited};
}
const isThere = (pid) => {
    try {
        return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));  // Z: ended, but its parent has not reaped it yet
    } catch {
        return false;
    }
};
async function hasGone(pid) {
    for (let i = 0; i < 200 && isThere(pid); ++i) await sleep(50);
    return !isThere(pid);
}

test("nobody reads the prompt or the key in the list of processes, and the server listens to this machine only", async () => {
    const {command, own} = await begin();
    try {
        const words = readFileSync(`/proc/${own}/cmdline`, "utf8").split("\0");
        const key = readFileSync(`/proc/${own}/environ`, "utf8").split("\0").find((one) => one.startsWith("REDLINE_API_KEY=")).slice(16);
        assert.equal(key.length, 64);
        assert.ok(!words.some((word) => word.includes(key) || word.includes(hidden)), words.join(" "));
        assert.equal(words[words.indexOf("--listen") + 1], "127.0.0.1:0");
    } finally {
        command.kill("SIGKILL");
    }
    assert.ok(await hasGone(own), "it ends with a parent that is killed");
});

test("a program of another name serves itself", () => {
    const renamed = join(folder, "redline-of-tuesday");
    copyFileSync(program, renamed);
    const said = spawnSync(renamed, ["generate", "--model", targetModel, "-p", "def add(a, b):", "-n", "8"], {encoding: "utf8"});
    assert.equal(said.status, 0, said.stderr);
    assert.ok(said.stdout.length > 0);
});

test("ctrl-C ends the server as well, and nothing is said", async () => {
    const {command, own, told, exited} = await begin();
    command.kill("SIGINT");
    assert.equal((await exited).signal, "SIGINT");
    assert.ok(await hasGone(own));
    assert.equal(told.err, "");
});

test("a server that dies is named", async () => {
    const {own, told, exited} = await begin();
    process.kill(own, "SIGKILL");
    assert.equal((await exited).code, 1);
    assert.equal(told.err, "redline: the process that computes the answer was ended by a signal: Killed\n");
});

test("a model that cannot be loaded is told in one line, with the exit code of a configuration", () => {
    const cut = join(folder, "cut.gguf");
    writeFileSync(cut, readFileSync(targetModel).subarray(0, 100000));
    const file = join(folder, "a.py");
    writeFileSync(file, "LIMIT = 10\n");
    for (const args of [["generate", "x"], ["generate", "x", "--json"], ["edit", file, "-i", "x"], ["edit", file, file, "-i", "x"]]) {
        const done = call([...args, "--model", cut]);
        assert.match(done.stderr, /^redline: \S*cut\.gguf: metadata [^\n]*\n$/, args.join(" "));
        assert.equal(done.status, 78, args.join(" "));
        assert.equal(done.stdout, "");
    }
    const missing = call(["generate", "x", "--model", join(folder, "none.gguf")]);
    assert.match(missing.stderr, /^--model: File does not exist: /);
    assert.equal(missing.status, 2);
    for (const [args, says] of [[["x", "--method", "blazedit"], "method blazedit requires a draft model (--draft)"],
                                [["--tokens", "1,x"], "expected --tokens as numbers separated by commas, found '1,x'"],
                                [["--tokens", "1,999999"], "expected token ids from 0 to 4095 in the prompt, found 999999"],
                                [[""], "expected a prompt of at least one token, found none"]]) {
        const done = call(["generate", "--model", targetModel, ...args]);
        assert.deepEqual([done.stderr, done.status], [`redline: ${says}\n`, 2]);
    }
});

test("a prompt that is not UTF-8 is refused by its byte", () => {
    const done = spawnSync("sh", ["-c", `'${program}' generate --model '${targetModel}' -p "$(printf 'caf\\351')"`], {encoding: "utf8"});
    assert.equal(done.stderr, "redline: --prompt: expected text in UTF-8, found an invalid byte at 4; --tokens accepts any token ids\n");
    assert.equal(done.status, 2);
});

test("options of other servers in the environment are not this one's", () => {
    const env = {...process.env, REDLINE_API_KEY: "k", REDLINE_LISTEN: "0.0.0.0:1", REDLINE_BRIDGE: "ipc:///nowhere/bridge", REDLINE_REMOTE: "target",
                 REDLINE_EVICTION: "off", REDLINE_ALIAS: "a:temperature=2"};
    const args = ["generate", "--model", targetModel, "def add(a, b):", "-n", "8"];
    const done = call(args, {env});
    assert.equal(done.status, 0, done.stderr);
    assert.equal(done.stdout, call(args).stdout);
});

test("answers are those of a running server, and --json has what it tells of them", async () => {
    const server = await Server.start();
    try {
        const text = "def add(a, b):\n    return a";
        const more = ["-n", "40", "--method", "lookup", "--seed", "7", "--temperature", "0.8", "--top-k", "20", "--top-p", "0.9", "--min-p", "0.01",
                      "--repetition-penalty", "1.1", "--presence-penalty", "0.2", "--frequency-penalty", "0.1", "--stop", "return b"];
        const own = JSON.parse(call(["generate", "--model", targetModel, "--json", text, ...more]).stdout);
        const body = {model: "demo-target", prompt: text, max_tokens: 40, seed: 7, temperature: 0.8, top_k: 20, top_p: 0.9, min_p: 0.01,
                      repetition_penalty: 1.1, presence_penalty: 0.2, frequency_penalty: 0.1, stop: "return b", return_token_ids: true,
                      redline: {speculation: {method: "lookup"}}};
        const response = await fetch(`${server.url}/v1/completions`, {method: "POST", body: JSON.stringify(body)});
        const {choices: [choice], usage} = await response.json();
        assert.deepEqual([own.text, own.tokens, own.prompt_tokens, own.finish_reason],
                         [choice.text, choice.token_ids, choice.prompt_token_ids, choice.finish_reason]);
        assert.equal(own.stats.prompt_count, usage.prompt_tokens);
        assert.equal(own.stats.completion_count, usage.completion_tokens);
        assert.deepEqual(Object.keys(own.stats.sources), ["lookup", "draft", "prediction", "program", "format", "mtp"]);
        for (const name of ["target_passes", "rounds", "target_rows", "drafted", "accepted", "draft_passes"])
            assert.ok(Number.isInteger(own.stats[name]), name);
        assert.ok(own.stats.rounds > 0 && own.stats.target_rows >= own.stats.prompt_count && own.stats.target_passes >= own.stats.rounds);
        assert.ok(own.stats.first_token_seconds > 0 && own.stats.first_token_seconds <= own.stats.seconds);
        assert.equal(call(["generate", "--model", targetModel, text, ...more]).stdout, `${own.text}\n`);
    } finally {
        await server.kill();
    }
});

test("an edit gives the same bytes by its own server, by another one and by each method", async () => {
    const server = await Server.start("--draft", draftModel);
    try {
        const file = join(folder, "edited.py");
        writeFileSync(file, "LIMIT = 10\n\n\ndef first(items):\n    return items[:LIMIT]\n");
        const args = ["edit", file, "-i", "Change the number 10 to 64."];
        const there = call([...args, "--server", server.url]);
        assert.match(there.stdout, /^\+LIMIT = 64$/m);
        for (const more of [[], ["--draft", draftModel], ["--method", "lookup", "--lookup-tokens", "5"], ["--method", "prediction"],
                            ["--draft", draftModel, "--method", "blazedit", "--max-num-run", "40"], ["--draft-length", "whole"]]) {
            const here = call([...args, "--model", targetModel, ...more]);
            assert.equal(here.stdout, there.stdout, `${more.join(" ")}: ${here.stderr}`);
        }
    } finally {
        await server.kill();
    }
});
