// Kills, stops and restarts the processes of a split server at random while clients ask, and compares every answer with
// that of one undisturbed process. Usage: chaos.mjs [KILLS [STREAMS [SEED]]]. Exits with 1 if an answer was wrong or
// missing.
import {mkdirSync, mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {Program, Server, draftModel, edit, targetModel} from "./redline.mjs";

const [kills, streams, seed] = [100, 6, 1].map((otherwise, i) => Number(process.argv[2 + i] ?? otherwise));
let state = BigInt(seed);
function below(n) {  // splitmix64
    state = (state + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
    return Number((z ^ (z >> 31n)) % BigInt(n));
}

const asked = (more) => ({model: "demo-target", messages: edit, max_tokens: 300, temperature: 0, ...more});
const method = (name) => ({redline: {speculation: {method: name}}});
const cases = [
    asked(method("regular")), asked(method("lookup")), asked(method("blazedit")), asked(method("auto")),
    asked({temperature: 0.9, seed: 4, ...method("assisted")}),
    asked({temperature: 0.7, seed: 9, n: 3}),
    asked({logprobs: true, top_logprobs: 3, max_tokens: 60}),
    asked({frequency_penalty: 0.5, max_tokens: 120}),
    asked({response_format: {type: "json_schema", json_schema: {name: "x", schema: {
        type: "object", properties: {name: {type: "string", maxLength: 20}, count: {type: "integer"}}, required: ["name", "count"]}}}}),
    asked({redline: {eviction: {policy: "reevaluate", n_ctx: 160}}, max_tokens: 200}),
];
const said = (answer) => JSON.stringify(answer.choices.map((c) => [c.message.content, c.finish_reason, c.logprobs]));

const alone = await Server.start("--draft", draftModel);
const expected = [];
for (const one of cases) expected.push(said(await alone.client().chat.completions.create(one)));
await alone.kill();

const folder = mkdtempSync(join(tmpdir(), "redline-chaos-"));
mkdirSync(join(folder, "run"), {mode: 0o700});
const bridge = `ipc://${folder}/run/bridge`;
const server = await Server.start("--remote", "target,draft", "--bridge", bridge);
const workers = {};
const startWorker = (role) => {
    workers[role] = new Program("worker", "--role", role, "--model", role === "target" ? targetModel : draftModel,
        "--join", bridge, "--threads", "1");
};
startWorker("target");
startWorker("draft");
await server.until(async () => (await fetch(`${server.url}/readyz`)).status === 200, 60);

const counts = {right: 0, wrong: 0, refused: 0, silent: 0};
let ends = false;
let longest = 0;
async function client(number) {
    for (let i = number; !ends; ++i) {
        const which = i % cases.length;
        const began = Date.now();
        try {
            const answer = await server.client({timeout: 180_000}).chat.completions.create(cases[which]);
            if (said(answer) === expected[which]) {
                counts.right += 1;
            } else {
                counts.wrong += 1;
                console.log(`case ${which}: expected ${expected[which]}, found ${said(answer)}`);
            }
        } catch (error) {
            if (error.status === 503 || error.status === 429) {
                counts.refused += 1;
                await sleep(200);
            } else {
                counts.silent += 1;
                console.log(`case ${which}: ${error}`);
            }
        }
        longest = Math.max(longest, Date.now() - began);
    }
}
const clients = Array.from({length: streams}, (_, i) => client(i));
for (let i = 0; i < kills; ++i) {
    await sleep(200 + below(2500));
    const role = below(2) === 0 ? "target" : "draft";
    if (below(5) === 0) {  // a process hangs for a while
        workers[role].child.kill("SIGSTOP");
        await sleep(below(4000));
        workers[role].child.kill("SIGCONT");
    } else {
        await workers[role].kill();
        await sleep(below(1000));
        startWorker(role);
    }
}
ends = true;
await Promise.all(clients);
console.log(`${kills} accidents, seed ${seed}: ${counts.right} answers right, ${counts.wrong} wrong, ${counts.refused} refused ` +
    `with 503 or 429, ${counts.silent} failed otherwise; the slowest took ${(longest / 1000).toFixed(1)} s`);
for (const one of [server, ...Object.values(workers)]) await one.kill();
rmSync(folder, {recursive: true, force: true});
process.exit(counts.wrong + counts.silent === 0 ? 0 : 1);
