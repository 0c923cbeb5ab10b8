// The total output of a pool's workers: tokens per second of the workers' processor time, for 1, 2 and 4 workers of one thread with as many clients
// each, so that clients, gateway and broker may share processors with them. Then what broker and gateway add to one client's time to the first
// token, in turns with `serve`. Usage: pool_scale.mjs [SECONDS] [CLIENTS PER WORKER] [FIRST TOKENS]
import {readFileSync} from "node:fs";
import {setTimeout as sleep} from "node:timers/promises";
import {Pool} from "./pool.mjs";
import {Server} from "./redline.mjs";

const seconds = Number(process.argv[2] ?? 10);
const clientsPerWorker = Number(process.argv[3] ?? 8);
const firstTokens = Number(process.argv[4] ?? 400);
const ticksPerSecond = 100;  // in /proc, on every Linux

function cpuSeconds(one) {
    const stat = readFileSync(`/proc/${one.child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
const sum = (all) => all.reduce((a, b) => a + b, 0);

/** Sends one request after the other until it is stopped, and counts the tokens. */
async function ask(url, seed, state) {
    for (let i = 0; !state.isOver; ++i) {
        const response = await fetch(`${url}/v1/completions`, {method: "POST", body: JSON.stringify({prompt: `def f${seed}_${i}(x):`,
            max_tokens: 200, ignore_eos: true, temperature: 1, seed: seed * 1000 + i, redline: {speculation: {method: "regular"}}})});
        const answer = await response.json();
        if (response.status !== 200) throw new Error(JSON.stringify(answer));
        state.tokens += answer.usage.completion_tokens;
    }
}

let one;
console.log(`${clientsPerWorker} clients for each worker of one thread, ${seconds} s, 200 tokens an answer`);
console.log("workers  tokens/s  of a worker's processor second  by that of one (wanted: 0.95)  processors: workers  gateway  broker");
for (const count of [1, 2, 4]) {
    const pool = new Pool(1);
    try {
        const broker = await pool.startBroker(0);
        const gateway = await pool.startGateway();
        const workers = Array.from({length: count}, () => pool.startWorker("target"));
        for (const _ of workers) await gateway.until(() => (gateway.lines.join("").match(/process \d+ is connected/g) ?? []).length >= count);
        await gateway.until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200);
        const state = {isOver: false, tokens: 0};
        const clients = Array.from({length: count * clientsPerWorker}, (_, i) => ask(gateway.url, i, state));
        await sleep(2000);
        const at = () => ({tokens: state.tokens, time: performance.now(), workers: sum(workers.map(cpuSeconds)), gateway: cpuSeconds(gateway),
            broker: cpuSeconds(broker)});
        const before = at();
        await sleep(seconds * 1000);
        const after = at();
        state.isOver = true;
        await Promise.all(clients);
        const wall = (after.time - before.time) / 1000;
        const tokens = after.tokens - before.tokens;
        const each = tokens / (after.workers - before.workers);
        one ??= each;
        const used = (who) => ((after[who] - before[who]) / wall).toFixed(2).padStart(7);
        console.log(`${String(count).padStart(7)}  ${(tokens / wall).toFixed(0).padStart(8)}  ${each.toFixed(0).padStart(31)}  ` +
            `${(each / one).toFixed(3).padStart(29)}  ${used("workers").padStart(19)}  ${used("gateway")}  ${used("broker").padStart(6)}`);
    } finally {
        await pool.close();
    }
}

/** Returns the milliseconds until the first event of a new stream. */
async function firstToken(url, i) {
    const began = performance.now();
    const response = await fetch(`${url}/v1/completions`, {method: "POST", body: JSON.stringify({prompt: `def g_${i}(x):`, max_tokens: 2,
        ignore_eos: true, temperature: 0, stream: true, redline: {speculation: {method: "regular"}}})});
    if (response.status !== 200) throw new Error(await response.text());
    const reader = response.body.getReader();
    await reader.read();
    const took = performance.now() - began;
    while (!(await reader.read()).done);
    return took;
}
const quantile = (list, q) => list.sort((a, b) => a - b)[Math.floor(q * (list.length - 1))];

const pool = new Pool(1);
const alone = await Server.start();
try {
    await pool.startBroker(0);
    const gateway = await pool.startGateway();
    pool.startWorker("target");
    await gateway.until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200);
    const times = {serve: [], pool: []};
    for (let i = -20; i < firstTokens; ++i) {  // the first ones warm up
        for (const [name, one] of i % 2 ? [["serve", alone], ["pool", gateway]] : [["pool", gateway], ["serve", alone]]) {
            const took = await firstToken(one.url, `${name}${i + 20}`);
            if (i >= 0) times[name].push(took);
        }
    }
    const [a, b] = [times.serve, times.pool].map((list) => [0.5, 0.9].map((q) => quantile(list, q)));
    console.log(`\nfirst token of one client, p50 and p90 of ${firstTokens}, ms: serve ${a.map((t) => t.toFixed(2)).join(", ")}; pool ` +
        `${b.map((t) => t.toFixed(2)).join(", ")}; added at p50: ${(b[0] - a[0]).toFixed(2)} (wanted: less than 1)`);
} finally {
    await alone.kill();
    await pool.close();
}
