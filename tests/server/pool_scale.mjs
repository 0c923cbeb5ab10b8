// What workers of a pool give together: tokens per second of processor time of the workers alone, for 1, 2 and 4 workers of one thread with
// as many clients each, so that clients, gateway and broker may share processors with them. Usage: pool_scale.mjs [SECONDS] [CLIENTS PER WORKER]
import {readFileSync} from "node:fs";
import {setTimeout as sleep} from "node:timers/promises";
import {Pool} from "./pool.mjs";

const seconds = Number(process.argv[2] ?? 10);
const clientsPerWorker = Number(process.argv[3] ?? 8);
const ticksPerSecond = 100;  // of /proc, on all of Linux

function cpuSeconds(one) {
    const stat = readFileSync(`/proc/${one.child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}
const sum = (all) => all.reduce((a, b) => a + b, 0);

/** Until it is told to end: one answer after the other; counts what comes. */
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
console.log("workers  tokens/s  of a worker's processor second  by that of one worker  processors: workers  gateway  broker");
for (const count of [1, 2, 4]) {
    const pool = new Pool(1);
    try {
        const broker = await pool.startBroker(0);
        const gateway = await pool.startGateway();
        const workers = Array.from({length: count}, () => pool.startWorker("target"));
        for (const _ of workers) await gateway.until(() => (gateway.lines.join("").match(/process \d+ is here/g) ?? []).length >= count);
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
            `${(each / one).toFixed(3).padStart(21)}  ${used("workers").padStart(19)}  ${used("gateway")}  ${used("broker").padStart(6)}`);
    } finally {
        await pool.close();
    }
}
