// A pool over tcp, and load agents, on separate hosts: network namespaces of this machine, joined by a bridge. Two
// links are slow and lossy (tc netem, or wire.py where the kernel has none). Workers' links are cut during answers, for
// longer and for shorter than the tolerated silence, and every answer is compared with that of a single server. Then
// `redline bench load --agents` asks from two hosts while another link is cut. Uses only addresses of its own
// namespaces. Requires root; takes a minute.
import assert from "node:assert/strict";
import {execFileSync, spawn} from "node:child_process";
import {accessSync, constants, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {fileURLToPath} from "node:url";

if (process.getuid() !== 0) throw new Error("expected to run as root, which may make network namespaces; run: sudo make netns-test");
const self = fileURLToPath(import.meta.url);
const root = resolve(dirname(self), "../..");
const program = resolve(process.env.REDLINE_BIN ?? join(root, "build/redline"));
const bench = join(dirname(program), "redline-bench");
for (const file of [program, bench]) accessSync(file, constants.X_OK);
const models = resolve(process.env.REDLINE_MODELS ?? join(root, "bench/demo_models"));
const run = (command, ...args) => execFileSync(command, args, {encoding: "utf8", stdio: ["ignore", "pipe", "pipe"]});
const prefix = process.env.REDLINE_NETNS ?? `redline${process.pid}`;
const named = (host) => `${prefix}-${host}`;
const hosts = ["worker1", "worker2", "worker3", "agent1", "agent2"];

// The whole test runs on the host `hub`, with broker, gateway and coordinator; this process only creates and removes it.
if (!process.env.REDLINE_NETNS) {
    let code = 1;
    try {
        for (const host of ["hub", ...hosts]) run("ip", "netns", "add", named(host));
        const inside = spawn("ip", ["netns", "exec", named("hub"), process.execPath, self],
            {stdio: "inherit", env: {...process.env, REDLINE_NETNS: prefix}});
        code = await new Promise((resolve) => inside.on("exit", resolve));
    } finally {
        const attempt = (what) => { try { what(); } catch { /* it is gone, or was never made */ } };
        for (const host of ["hub", ...hosts]) {
            attempt(() => run("ip", "netns", "pids", named(host)).split("\n").filter(Boolean)
                .forEach((pid) => attempt(() => process.kill(Number(pid), "SIGKILL"))));
            attempt(() => run("ip", "netns", "del", named(host)));
        }
    }
    process.exit(code ?? 1);
}

const folder = mkdtempSync(join(tmpdir(), "redline-netns-"));
const at = (...parts) => join(folder, ...parts);
const children = [];
const began = Date.now();
const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);
const hub = "10.99.0.1";

async function until(what, condition, seconds = 60) {
    for (let i = 0; i < seconds * 10; ++i) {
        const found = await condition();
        if (found) return found;
        await sleep(100);
    }
    throw new Error(`expected within ${seconds} s: ${what}`);
}

/** Runs a program on a host; `said` collects its output. */
function start(host, command, ...args) {
    const words = host === "hub" ? [command, ...args] : ["ip", "netns", "exec", named(host), command, ...args];
    const child = spawn(words[0], words.slice(1), {stdio: ["ignore", "pipe", "pipe"]});
    child.said = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => { child.said += text; });
    child.ended = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
    children.push(child);
    return child;
}
const says = (child, pattern) => until(`${pattern}, found: ${child.said}`, () => child.said.match(pattern));

function hasNetem() {
    try {
        run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms");
        run("tc", "qdisc", "del", "dev", "lo", "root");
        return true;
    } catch { return false; }
}

/** Adds a link from the hub's bridge to a host, with milliseconds of delay and percent of loss each way. */
async function connect(host, number, delay, loss, netem) {
    const ns = named(host);
    if (delay + loss > 0 && !netem) {
        const wire = start("hub", "/usr/bin/python3", join(dirname(self), "wire.py"), host, ns, "eth0", String(delay), String(loss), String(number));
        await says(wire, /ready/);
    } else {
        run("ip", "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", ns);
        const shape = ["root", "netem", "delay", `${delay}ms`, "loss", `${loss}%`];
        if (delay + loss > 0) {
            run("tc", "qdisc", "add", "dev", host, ...shape);
            run("tc", "-n", ns, "qdisc", "add", "dev", "eth0", ...shape);
        }
    }
    run("ip", "link", "set", host, "master", "bridge", "up");
    run("ip", "-n", ns, "link", "set", "lo", "up");
    run("ip", "-n", ns, "addr", "add", `10.99.0.${10 + number}/24`, "dev", "eth0");
    run("ip", "-n", ns, "link", "set", "eth0", "up");
}
const cut = (host) => run("ip", "link", "set", host, "down");
const mend = (host) => run("ip", "link", "set", host, "up");

const question = (seed) => ({model: "demo-target", prompt: `def f${seed}(x):`, max_tokens: 400, ignore_eos: true, temperature: 1, seed,
    stream: true, redline: {speculation: {method: "regular"}}});
/** Returns the text of a stream; `onText` is called as it comes. */
async function ask(url, seed, onText = () => {}) {
    const response = await fetch(`${url}/v1/completions`, {method: "POST", body: JSON.stringify(question(seed)), signal: AbortSignal.timeout(60_000),
        headers: {"content-type": "application/json", authorization: "Bearer secret-a"}});
    assert.equal(response.status, 200, response.status === 200 ? "" : await response.text());
    let text = "", rest = "";
    for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
        rest += part;
        for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
            const data = rest.slice(0, end).split("\n").find((line) => line.startsWith("data: "))?.slice(6);
            if (data === "[DONE]") return text;
            const event = JSON.parse(data);
            assert.equal(event.error, undefined, data);
            text += event.choices[0]?.text ?? "";
        }
        onText(text);
    }
    throw new Error("the stream broke off");
}

/** Asks with all seeds at once; when all have begun, the accident happens. Compares the bytes. */
async function askThrough(url, seeds, expected, accident) {
    const begun = new Set();
    const answers = seeds.map((seed) => ask(url, seed, (text) => { if (text.length > 40) begun.add(seed); }));
    const all = Promise.all(answers);
    await Promise.race([until("all have begun", () => begun.size === seeds.length), all]);
    await accident();
    const texts = await all;
    seeds.forEach((seed, i) => assert.equal(texts[i], expected.get(seed), `seed ${seed}`));
    return texts.length;
}

try {
    run("ip", "link", "set", "lo", "up");
    run("ip", "link", "add", "bridge", "type", "bridge");
    run("ip", "addr", "add", `${hub}/24`, "dev", "bridge");
    run("ip", "link", "set", "bridge", "up");
    const netem = hasNetem();
    const shapes = {worker1: [2, 0], worker2: [5, 0.5]};
    for (const [i, host] of hosts.entries()) await connect(host, i + 1, ...(shapes[host] ?? [0, 0]), netem);
    say(`six hosts; worker1 is 2 ms away, worker2 5 ms with 0.5 % of the packets lost (${netem ? "netem" : "wire.py: this kernel has no netem"})`);
    for (const [host, [delay]] of Object.entries(shapes)) {
        const trip = run("ping", "-c", "3", "-i", "0.2", "-q", `10.99.0.${11 + hosts.indexOf(host)}`).match(/= [\d.]+\/([\d.]+)/)?.[1];
        assert.ok(Number(trip) >= 2 * delay, `a packet to ${host} and back takes ${trip} ms`);
    }

    const seeds = Array.from({length: 6}, (_, i) => i + 1);
    const alone = start("hub", program, "serve", "--model", join(models, "demo-target.gguf"), "--alias", "demo-target", "--listen", "127.0.0.1:0",
        "--threads", "1");
    const url = (await says(alone, /serving \S+ on (http:\S+)/))[1];
    await until("it is ready", async () => (await fetch(`${url}/readyz`)).status === 200);
    const expected = new Map();
    for (const seed of seeds) expected.set(seed, await ask(url, seed));
    alone.kill();

    run(program, "keygen", at("keys"));
    writeFileSync(at("api-keys"), "a:secret-a\nb:secret-b\n", {mode: 0o600});
    const keys = ["--keys", at("keys")];
    await says(start("hub", program, "broker", "--listen", `tcp://${hub}:7777`, ...keys), /broker at/);
    const gateway = start("hub", program, "gateway", "--join", `tcp://${hub}:7777`, ...keys, "--listen", `${hub}:8080`, "--api-key-file", at("api-keys"));
    const pool = (await says(gateway, /serving .* on (http:\S+)/))[1];
    for (const host of hosts.slice(0, 3)) {
        start(host, program, "worker", "--role", "target", "--model", join(models, "demo-target.gguf"), "--alias", "demo-target", "--join",
            `tcp://${hub}:7777`, ...keys, "--threads", "1");
    }
    const here = () => (gateway.said.match(/process \d+ is connected/g) ?? []).length;
    const lost = () => (gateway.said.match(/process \d+ is lost/g) ?? []).length;
    await until("three workers", () => here() >= 3);
    await until("it is ready", async () => (await fetch(`${pool}/readyz`)).status === 200);
    const moved = () => (gateway.said.match(/continues at/g) ?? []).length;

    let count = await askThrough(pool, seeds, expected, async () => {});
    say(`${count} answers over these links, the same bytes as of one server`);
    for (const host of ["worker1", "worker2", "worker3"]) {
        const [wasLost, wasMoved] = [lost(), moved()];
        count += await askThrough(pool, seeds, expected, async () => { cut(host); });
        await until(`${host} is missed`, () => lost() > wasLost);
        mend(host);
        await until(`${host} is back`, () => here() >= 3 + lost());
        say(`${host} was cut off in the middle of 6 answers: ${moved() - wasMoved} went on elsewhere, same bytes; it is back`);
    }
    assert.ok(moved() > 0, "an answer went on at another worker");
    count += await askThrough(pool, seeds, expected, async () => {
        for (const host of ["worker1", "worker2", "worker3"]) cut(host);
        await sleep(1000);
        for (const host of ["worker1", "worker2", "worker3"]) mend(host);
    });
    say("all workers were out of reach for a second: 6 answers went on, same bytes");

    const load = (...more) => {
        const coordinator = start("hub", bench, "load", "--server", pool, "--api-key", "secret-a", "--tenant-keys", at("api-keys"), "--agents", "2",
            "--agents-listen", `tcp://${hub}:7800`, "--insecure-plaintext", "--methods", "lookup", "--max-tokens", "48", "--json", at("load.json"), ...more);
        for (const host of ["agent1", "agent2"]) start(host, bench, "load-agent", "--join", `tcp://${hub}:7800`, "--insecure-plaintext");
        return coordinator;
    };
    const summary = async (coordinator, host) => {
        await until("the agents send", async () => /requests_running\S* [1-9]/.test(await (await fetch(`${pool}/metrics`,
            {headers: {authorization: "Bearer secret-a"}})).text()));
        cut(host);
        await sleep(4000);
        mend(host);
        const code = await coordinator.ended;
        assert.equal(code, 0, coordinator.said);
        const {summary: [all], differing_items: differing} = JSON.parse(readFileSync(at("load.json"), "utf8"));
        assert.deepEqual([all.errors, all.errors_by_kind, differing], [0, {}, []], coordinator.said);
        assert.deepEqual(Object.keys(all.tenants), ["a", "b"]);
        return all;
    };
    writeFileSync(at("edits.jsonl"), ["10", "64"].map((n, i) => JSON.stringify({id: `e${i}`, instruction: `Change 7 to ${n}.`,
        before: "LIMIT = 7\n\n\ndef f(x):\n    return x * LIMIT\n", after: "x"})).join("\n"));
    const told = (all) => `${all.requests} answers, 0 errors, TTFT p50 ${all.ttft_ms.p50.toFixed(0)} ms, ` +
        `${all.tokens_per_second.toFixed(0)} tokens/s, fairness ${all.fairness.toFixed(3)}`;
    const turns = await summary(load("--edits", at("edits.jsonl"), "--concurrency", "6", "--requests", "72", "--turns", "3",
        "--think-seconds", "0.2"), "worker1");
    assert.equal(turns.requests, 72);
    say(`two agents, conversations with time to think, worker1 cut off for 4 s: ${told(turns)}`);
    const lines = Array.from({length: 60}, (_, i) => JSON.stringify({at: i * 0.15, tenant: "ab"[i % 2], session: `s${i % 20}`, think: 0.1,
        prompt_tokens: 40 + i, max_tokens: 40}));
    writeFileSync(at("trace.jsonl"), lines.join("\n"));
    const trace = await summary(load("--edits", at("edits.jsonl"), "--trace", at("trace.jsonl")), "worker2");
    assert.equal(trace.requests, 60);
    say(`two agents, a trace, worker2 cut off for 4 s: ${told(trace)}`);
    say(`passed: ${count} compared answers, 0 wrong; ${moved()} went on at another worker`);
} catch (e) {
    for (const one of children) console.error(`---- ${one.spawnargs.join(" ")}\n${one.said.slice(-1500)}`);
    console.error(e);
    process.exitCode = 1;
} finally {
    for (const one of children) one.kill("SIGKILL");
    await Promise.all(children.map((one) => one.ended));
    rmSync(folder, {recursive: true, force: true});
}
