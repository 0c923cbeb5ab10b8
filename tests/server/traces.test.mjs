// OpenTelemetry traces: what a pool's processes send to a collector, and that answers do not need one.
import assert from "node:assert/strict";
import {createServer} from "node:http";
import {after, before, test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import {Server, draftModel, edit, file} from "./redline.mjs";
import {Pool} from "./pool.mjs";

/** Stores the spans that it receives; `answers`: whether it responds. */
class Collector {
    static async start(answers = true) {
        const one = new Collector();
        one.spans = [];
        one.posts = 0;
        one.server = createServer((request, response) => {
            let body = "";
            request.setEncoding("utf8").on("data", (text) => { body += text; }).on("end", () => {
                ++one.posts;
                if (!answers) return;
                assert.equal(`${request.method} ${request.url}`, "POST /v1/traces");
                assert.equal(request.headers["content-type"], "application/json");
                for (const {resource, scopeSpans} of JSON.parse(body).resourceSpans) {
                    for (const {spans} of scopeSpans) one.spans.push(...spans.map((span) => ({...span, resource: values(resource)})));
                }
                response.setHeader("content-type", "application/json").end("{}");
            });
        });
        await new Promise((resolve) => { one.server.listen(0, "127.0.0.1", resolve); });
        one.url = `http://127.0.0.1:${one.server.address().port}`;
        return one;
    }
    /** Returns the spans of a trace by name, once `names` are among them. */
    async trace(id, names) {
        for (let i = 0; i < 400; ++i) {
            const all = this.spans.filter((span) => span.traceId === id);
            if (names.every((name) => all.some((span) => span.name === name))) return all;
            await sleep(50);
        }
        throw new Error(`expected ${names}, found ${this.spans.map((span) => `${span.traceId} ${span.name}`)}`);
    }
    close() {
        this.server.closeAllConnections();
        return new Promise((resolve) => { this.server.close(resolve); });
    }
}

const plain = ({stringValue, intValue, doubleValue, boolValue, arrayValue}) =>
    stringValue ?? doubleValue ?? boolValue ?? arrayValue?.values.map(plain) ?? Number(intValue);
const values = ({attributes}) => Object.fromEntries(attributes.map(({key, value}) => [key, plain(value)]));
const traceId = (n) => `0af7651916cd43dd8448eb211c80${n.toString(16).padStart(4, "0")}`;
const parentId = "b7ad6b7169203331";
const header = (n, flags = "01") => ({traceparent: `00-${traceId(n)}-${parentId}-${flags}`});
const chat = {model: "demo-target", messages: edit, temperature: 0, max_tokens: 100, redline: {speculation: {method: "assisted"}}};
async function ask(server, headers, body = chat, path = "/v1/chat/completions") {
    const response = await fetch(server.url + path, {method: "POST", headers: {"content-type": "application/json", ...headers},
        body: JSON.stringify(body)});
    const text = await response.text();
    assert.equal(response.ok, true, text);
    return JSON.parse(text);
}

let collector, silent, pool, gateway, plainServer;
before(async () => {
    [collector, silent] = [await Collector.start(), await Collector.start(false)];
    pool = new Pool(1);
    await pool.startBroker(0);
    // One gets the endpoint from its flag, the other from the environment.
    pool.startWorker("node", "--draft", draftModel, {OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_SERVICE_NAME: "some-worker"});
    gateway = await pool.startGateway("--otlp-endpoint", collector.url);
    await gateway.until(async () => (await fetch(`${gateway.url}/readyz`)).status === 200);
    plainServer = await Server.start("--draft", draftModel);
});
after(async () => {
    await Promise.all([pool?.close(), plainServer?.kill(), collector?.close(), silent?.close()]);
});

test("a request through gateway, broker and worker is one tree of spans", async () => {
    const answer = await ask(gateway, header(1));
    const spans = await collector.trace(traceId(1), ["POST /chat/completions", "chat demo-target", "redline.sequence", "redline.prompt", "redline.draft"]);
    const named = (name) => {
        const found = spans.filter((span) => span.name === name);
        assert.equal(found.length, 1, name);
        return {...found[0], ...values(found[0])};
    };
    const request = named("POST /chat/completions");
    const inference = named("chat demo-target");
    const sequence = named("redline.sequence");
    const prompt = named("redline.prompt");
    const draft = named("redline.draft");
    assert.equal(request.parentSpanId, parentId);
    assert.equal(inference.parentSpanId, request.spanId);
    assert.equal(sequence.parentSpanId, inference.spanId);
    assert.equal(draft.parentSpanId, inference.spanId);
    assert.equal(prompt.parentSpanId, sequence.spanId);
    assert.deepEqual([request, inference, sequence, draft, prompt].map((span) => span.kind), [2, 3, 2, 2, 1]);

    assert.equal(request.resource["service.name"], "redline-gateway");
    for (const span of [sequence, prompt, draft]) assert.equal(span.resource["service.name"], "some-worker");
    assert.notEqual(request.resource["service.instance.id"], sequence.resource["service.instance.id"]);

    const {usage} = answer;
    assert.equal(request["http.response.status_code"], 200);
    assert.equal(inference["gen_ai.operation.name"], "chat");
    assert.equal(inference["gen_ai.request.model"], "demo-target");
    assert.equal(inference["gen_ai.response.id"], answer.id);
    assert.deepEqual(inference["gen_ai.response.finish_reasons"], [answer.choices[0].finish_reason]);
    assert.equal(inference["gen_ai.usage.input_tokens"], usage.prompt_tokens);
    assert.equal(inference["gen_ai.usage.output_tokens"], usage.completion_tokens);
    assert.equal(inference["redline.method"], "assisted");
    assert.equal(inference["redline.rounds"], usage.redline.rounds);
    assert.equal(inference["redline.passes"], usage.redline.target_passes);
    assert.equal(inference["redline.rows"], usage.redline.rows);
    assert.equal(inference["redline.first_token_us"], Math.round(usage.redline.first_token_seconds * 1e6));
    assert.ok(usage.redline.accepted > 0);
    assert.equal(inference["redline.accepted"], usage.redline.accepted);
    assert.equal(prompt["redline.prompt_tokens"], usage.prompt_tokens);
    assert.equal(sequence["redline.passes"], usage.redline.target_passes);
    assert.equal(sequence.events.length + (sequence.droppedEventsCount ?? 0), sequence["redline.rounds"] - 1);
    assert.ok(draft["redline.proposed"] >= usage.redline.accepted);
    for (const span of spans) {
        assert.equal(span.status, undefined, JSON.stringify(span.status));
        assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano));
    }
    assert.ok(BigInt(request.startTimeUnixNano) <= BigInt(inference.startTimeUnixNano));
    await gateway.until(async () => await gateway.metric("redline_trace_spans_total") > 0);
    assert.match(gateway.lines.join(""), new RegExp(`request served.* trace=${traceId(1)} .*finish=${answer.choices[0].finish_reason} first_text_ms=\\d+`));
});

test("several answers of one request are several children", async () => {
    await ask(gateway, header(2), {...chat, n: 3, temperature: 1, seed: 1, max_tokens: 5});
    let answers = [];
    for (let i = 0; i < 200 && answers.length < 3; ++i) {
        answers = (await collector.trace(traceId(2), ["POST /chat/completions"])).filter((span) => span.name === "chat demo-target");
        await sleep(50);
    }
    assert.equal(new Set(answers.map((span) => span.spanId)).size, 3);
    assert.equal(new Set(answers.map((span) => span.parentSpanId)).size, 1);
});

test("what the caller does not sample is not exported, and the answer is the same", async () => {
    const [sampled, not, none] = [await ask(gateway, header(3)), await ask(gateway, header(4, "00")), await ask(plainServer, {})];
    await collector.trace(traceId(3), ["POST /chat/completions", "redline.sequence"]);
    assert.equal(collector.spans.some((span) => span.traceId === traceId(4)), false);
    assert.equal(not.choices[0].message.content, sampled.choices[0].message.content);
    assert.equal(none.choices[0].message.content, sampled.choices[0].message.content);
});

test("a completion of an edit session is a part of its request", async () => {
    const server = await Server.start("--draft", draftModel, "--otlp-endpoint", collector.url);
    try {
        const {id} = await ask(server, {}, {files: [{path: "a.py", text: file, version: 1}]}, "/v1/redline/sessions");
        const call = {path: "a.py", position: {line: 3, character: 0}, mode: "text", max_tokens: 5, temperature: 0};
        for (const n of [5, 6]) await ask(server, header(n), call, `/v1/redline/sessions/${id}/complete`);
        for (const n of [5, 6]) {
            const spans = await collector.trace(traceId(n), ["text_completion demo-target", "redline.sequence"]);
            const inference = spans.find((span) => span.name.startsWith("text_completion"));
            assert.equal(spans.find((span) => span.name === "redline.sequence").parentSpanId, inference.spanId);
            assert.equal(inference.resource["service.name"], "redline");
        }
    } finally {
        await server.kill();
    }
});

test("a collector that is gone, or takes no end, does no harm to answers", async () => {
    const expected = (await ask(plainServer, {})).choices[0].message.content;
    const gone = await Collector.start();
    await gone.close();
    for (const url of [gone.url, silent.url]) {
        const server = await Server.start("--draft", draftModel, "--otlp-endpoint", url);
        const answers = await Promise.all(Array.from({length: 8}, () => ask(server, {})));
        for (const answer of answers) assert.equal(answer.choices[0].message.content, expected);
        assert.deepEqual(await server.kill("SIGTERM"), {code: 0, signal: null});
    }
    assert.ok(silent.posts > 0);
});

test("what is left is sent when a server ends", async () => {
    const server = await Server.start("--otlp-endpoint", collector.url);
    await ask(server, header(7), {...chat, redline: undefined, max_tokens: 3});
    await server.kill("SIGTERM");
    const names = collector.spans.filter((span) => span.traceId === traceId(7)).map((span) => span.name);
    assert.ok(names.includes("POST /chat/completions") && names.includes("redline.sequence"), names.join());
});

test("of requests without a parent the ratio says how many are traced, and a parent's word goes before it", async () => {
    const own = await Collector.start();
    const server = await Server.start("--otlp-endpoint", own.url, "--otlp-ratio", "0");
    try {
        const body = {...chat, redline: undefined, max_tokens: 3};
        for (let i = 0; i < 4; ++i) await ask(server, {}, body);
        await ask(server, header(8), body);
        await server.kill("SIGTERM");
        assert.deepEqual([...new Set(own.spans.map((span) => span.traceId))], [traceId(8)]);
        assert.ok(own.spans.some((span) => span.name === "redline.sequence"), "the rest of the trace is there");
    } finally {
        await server.kill();
        await own.close();
    }
});

test("an address that is none is refused", async () => {
    const server = new Server("serve", "--otlp-endpoint", "collector:4318", "--model", draftModel);
    assert.equal((await server.exited).code, 2);
    assert.match(server.lines.join(""), /--otlp-endpoint: expected http:\/\/HOST:PORT/);
});
