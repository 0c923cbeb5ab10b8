// What it costs a server to be watched: processor time of the same edits without a reader, with a reader of its status,
// and with traces in their streams as the studio requests; and what `redline top` costs. Blocks of edits take turns in
// a changing order, and each is compared with the unwatched one of its round, because the speed of a machine drifts by
// more than the difference. "no watcher, again" shows the error of this measurement. Usage: watch_cost.mjs
// [EDITS_OF_A_BLOCK [ROUNDS]]. The machine should do nothing else.
import {spawn} from "node:child_process";
import {readFileSync, readdirSync} from "node:fs";
import {setTimeout as sleep} from "node:timers/promises";
import {Server, draftModel, program} from "./redline.mjs";

const edits = Number(process.argv[2] ?? 15);
const rounds = Number(process.argv[3] ?? 41);

/** Processor time of a process so far, in milliseconds. */
function processorTime(pid) {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.reduce((sum, t) => sum + Number(readFileSync(`/proc/${pid}/task/${t}/schedstat`, "utf8").split(" ")[0]), 0) / 1e6;
}

const server = await Server.start("--draft", draftModel, "--log-level", "warning");
const text = (n) => Array.from({length: 12}, (_, i) => `def area_${n}_${i}(width, height):\n    return width * height\n`).join("\n");

async function edit(n, trace) {
    const file = text(n % 7);
    const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST", headers: {"content-type": "application/json"},
        body: JSON.stringify({
            messages: [{role: "user", content: `Rename width to breadth.\n\`\`\`python\n${file}\`\`\``}], temperature: 0, max_tokens: 400,
            stream: true, prediction: {type: "content", content: file}, redline: trace ? {trace: true} : {}
        })
    });
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    for await (const _ of response.body);
}

async function costOf(count, trace) {
    const before = processorTime(server.child.pid);
    for (let i = 0; i < count; ++i) await edit(i, trace);
    return processorTime(server.child.pid) - before;
}

async function watched(run) {
    const gone = new AbortController();
    const response = await fetch(`${server.url}/v1/redline/status`, {signal: gone.signal});
    if (response.status !== 200) throw new Error(`status: ${response.status}`);
    const reading = (async () => { for await (const _ of response.body); })().catch(() => {});
    const cost = await run();
    gone.abort();
    await reading;
    return cost;
}

for (let i = 0; i < 4; ++i) await costOf(edits, false);  // warms up
const ways = {
    "no watcher": () => costOf(edits, false),
    "no watcher, again": () => costOf(edits, false),
    "a reader of its status": () => watched(() => costOf(edits, false)),
    "that, and traces in all streams": () => watched(() => costOf(edits, true))
};
const names = Object.keys(ways);
const costs = Object.fromEntries(names.map((name) => [name, []]));
for (let r = 0; r < rounds; ++r) {
    for (let i = 0; i < names.length; ++i) {
        const name = names[(i * (r % 2 ? 3 : 1) + r) % names.length];
        costs[name].push(await ways[name]());
    }
}
const ordered = (all) => all.toSorted((a, b) => a - b);
const median = (all) => ordered(all)[all.length >> 1];
for (const [name, all] of Object.entries(costs)) {
    const more = ordered(all.map((cost, r) => 100 * (cost / costs["no watcher"][r] - 1)));
    // The interval that contains the true median in 95 of 100 measurements, from order statistics of the rounds.
    const reach = Math.ceil(0.98 * Math.sqrt(more.length));
    const [low, high] = [more[Math.max(0, (more.length >> 1) - reach)], more[Math.min(more.length - 1, (more.length >> 1) + reach)]];
    console.log(`${name.padEnd(34)} ${median(all).toFixed(0)} ms of processor for ${edits} edits, ${median(more).toFixed(1)} % more (${low.toFixed(1)} to ${high.toFixed(1)})`);
}

const top = spawn(program, ["top", "--server", server.url], {stdio: ["ignore", "pipe", "inherit"]});
top.stdout.resume();
await sleep(1000);
const [began, before] = [performance.now(), processorTime(top.pid)];
while (performance.now() - began < 8000) await edit(Math.floor(performance.now()), false);
console.log(`redline top: ${(100 * (processorTime(top.pid) - before) / (performance.now() - began)).toFixed(2)} % of a core`);
top.kill();
await server.kill("SIGTERM");
