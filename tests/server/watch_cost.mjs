// What it costs a server to be watched: processor time of the same edits without anybody, with a reader of its status, and
// with traces in their streams as the studio asks for; and what `redline top` takes. Usage: watch_cost.mjs [EDITS [ROUNDS]].
// The machine should do nothing else.
import {spawn} from "node:child_process";
import {readFileSync, readdirSync} from "node:fs";
import {setTimeout as sleep} from "node:timers/promises";
import {Server, draftModel, program} from "./redline.mjs";

const edits = Number(process.argv[2] ?? 60);
const rounds = Number(process.argv[3] ?? 5);

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

await costOf(edits, false);  // warm
const ways = {
    "nobody": () => costOf(edits, false),
    "a reader of its status": () => watched(() => costOf(edits, false)),
    "that, and traces in all streams": () => watched(() => costOf(edits, true))
};
const costs = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let r = 0; r < rounds; ++r) for (const [name, run] of Object.entries(ways)) costs[name].push(await run());
const least = (all) => Math.min(...all);
for (const [name, all] of Object.entries(costs)) {
    console.log(`${name.padEnd(34)} ${least(all).toFixed(0)} ms of processor for ${edits} edits, ${(100 * (least(all) / least(costs.nobody) - 1)).toFixed(1)} % more`);
}

const top = spawn(program, ["top", "--server", server.url], {stdio: ["ignore", "pipe", "inherit"]});
top.stdout.resume();
await sleep(1000);
const [began, before] = [performance.now(), processorTime(top.pid)];
while (performance.now() - began < 8000) await edit(Math.floor(performance.now()), false);
console.log(`redline top: ${(100 * (processorTime(top.pid) - before) / (performance.now() - began)).toFixed(2)} % of a core`);
top.kill();
await server.kill("SIGTERM");
