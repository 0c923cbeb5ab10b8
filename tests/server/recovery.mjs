// How long a stream stalls when its worker dies, by the tokens of its log, compared with the time to compute the log.
// Usage: recovery.mjs [TIMES]. Prints a table of milliseconds.
import {Pool, busiest} from "./pool.mjs";
import {readStream} from "./streams.mjs";

const times = Number(process.argv[2] ?? 5);
const accidents = {"kill -9": (one) => one.kill(), "SIGTERM": (one) => { one.child.kill("SIGTERM"); }, "SIGSTOP": (one) => { one.child.kill("SIGSTOP"); }};
const pool = new Pool(1);
await pool.startBroker(0);
const gateway = await pool.startGateway();
let targets = [pool.startWorker("target"), pool.startWorker("target")];
await gateway.until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200);

const asked = (tokens, more) => ({model: "demo-target", prompt: `# ${Math.random()}\n` + "x = 1\n".repeat(tokens / 5), ignore_eos: true,
    temperature: 1, seed: 1, stream: true, redline: {speculation: {method: "regular"}}, stream_options: {include_usage: true}, ...more});
const quantile = (list, q) => list.sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];

/** Returns the longest time between two events after the accident. */
async function standstill(tokens, accident) {
    const arrivals = [];
    const serving = busiest(targets);
    let struckAt = Infinity;
    const reading = readStream(gateway.url, "/v1/completions", asked(tokens, {max_tokens: 600}), undefined, (events) => {
        arrivals.push(performance.now());
        return false;
    });
    const one = await serving;
    await gateway.until(() => arrivals.length > 5);
    struckAt = performance.now();
    accident(one);
    const events = await reading;
    const usage = JSON.parse(events.at(-2).data).usage;
    const later = arrivals.filter((t) => t > struckAt);
    let longest = 0;
    for (let i = 0, last = struckAt; i < later.length; last = later[i++]) longest = Math.max(longest, later[i] - last);
    one.child.kill("SIGCONT");
    await one.kill();
    targets = targets.filter((other) => other !== one);
    const next = pool.startWorker("target");
    await next.says(/process \d+ is connected/);
    targets.push(next);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return {longest, tokens: usage.prompt_tokens};
}
/** Returns the time until the first token of a prompt that no worker has cached. */
async function firstToken(tokens) {
    const began = performance.now();
    let first = 0;
    await readStream(gateway.url, "/v1/completions", asked(tokens, {max_tokens: 1}), undefined, () => {
        first ||= performance.now() - began;
        return false;
    });
    return first;
}
console.log("prompt tokens | the log computed: p50 | " + Object.keys(accidents).map((name) => `${name}: p50, p99`).join(" | "));
for (const tokens of [100, 1000, 3000]) {
    const cells = [];
    let found = 0;
    const bound = [];
    for (let i = 0; i < times; ++i) bound.push(await firstToken(tokens));
    for (const accident of Object.values(accidents)) {
        const all = [];
        for (let i = 0; i < times; ++i) {
            const {longest, tokens: n} = await standstill(tokens, accident);
            all.push(longest);
            found = n;
        }
        cells.push(`${quantile(all, 0.5).toFixed(0)}, ${quantile(all, 0.99).toFixed(0)}`);
    }
    console.log(`${found} | ${quantile(bound, 0.5).toFixed(0)} | ${cells.join(" | ")}`);
}
await pool.close();
