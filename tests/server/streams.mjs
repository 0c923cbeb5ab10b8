// Reads streams event by event, so that a test can break one, continue it, and compare the events.
import assert from "node:assert/strict";
import {edit, file} from "./redline.mjs";

export const chat = "/v1/chat/completions";
export const ask = (more = {}) => ({model: "demo-target", messages: edit, max_tokens: 220, temperature: 0.9, seed: 7, stream: true,
    stream_options: {include_usage: true}, ...more});
const schema = {type: "object", properties: {names: {type: "array", items: {type: "string"}, minItems: 6, maxItems: 9},
    count: {type: "integer"}}, required: ["names", "count"], additionalProperties: false};

/** One stream of each feature. */
export const requests = {
    "sampling with a seed": [chat, ask()],
    "the most probable tokens": [chat, ask({temperature: 0})],
    "log probabilities": [chat, ask({logprobs: true, top_logprobs: 2})],
    "several choices": [chat, ask({n: 3})],
    "a stop string": [chat, ask({temperature: 0, stop: ["LIMIT]"]})],
    "a schema": [chat, ask({response_format: {type: "json_schema", json_schema: {name: "s", schema}}, logprobs: true})],
    "an edit program": [chat, ask({temperature: 0, redline: {copy: "auto", files: [file]}})],
    "a verified edit program": [chat, ask({temperature: 0, redline: {copy: "verified", files: [file]}})],
    "a prediction": [chat, ask({temperature: 0, prediction: {type: "content", content: file}})],
    "a moving window": [chat, ask({max_tokens: 300, ignore_eos: true, redline: {eviction: {policy: "reevaluate", n_ctx: 220}}})],
    "several prompts": ["/v1/completions", {model: "demo-target", prompt: ["def one():", "import "], n: 2, max_tokens: 60,
        temperature: 1, seed: 3, logprobs: 1, stream: true, stream_options: {include_usage: true}}],
};

const never = () => false;

/**
 * Reads whole events to the end, or until `stop(events)`. With `stop` or a deadline the stream may break, as that of a
 * server that is killed; otherwise that is an error.
 */
export async function readStream(url, path, body, lastId = undefined, stop = never, deadline = undefined) {
    const leave = new AbortController();
    const events = [];
    try {
        const response = await fetch(url + path, {method: "POST", body: JSON.stringify(body),
            signal: deadline ? AbortSignal.any([leave.signal, deadline]) : leave.signal,
            headers: {"content-type": "application/json", ...(lastId && {"last-event-id": lastId})}});
        assert.equal(response.status, 200, response.status === 200 ? "" : await response.text());
        let text = "";
        for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
            text += part;
            for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
                const event = {};
                for (const line of text.slice(0, end).split("\n")) {
                    if (line.startsWith("id: ")) event.id = line.slice(4);
                    if (line.startsWith("data: ")) event.data = line.slice(6);
                }
                if (event.data !== undefined) events.push(event);
            }
            if (stop(events)) leave.abort();
        }
    } catch (e) {
        if (e instanceof assert.AssertionError || (stop === never && deadline === undefined)) throw e;
    }
    return events;
}

/**
 * Returns the first `count` events of a stream, and those that came before its server, which is then killed, was gone.
 * A fast server has sent the whole answer by then: it is cut after `count`, as by a failing connection; isCut is false.
 */
export async function readUntilKilled(server, path, body, count) {
    let struck = false;
    const events = await readStream(server.url, path, body, undefined, (had) => {
        if (had.length >= count && !struck) struck = server.child.kill("SIGKILL");
        return false;
    });
    const isCut = !sum(events).isDone;
    return {events: isCut ? events : events.slice(0, count), isCut};
}

export const lastId = (events) => events.filter((e) => e.id !== undefined).at(-1)?.id;

/** Returns what a stream says, independent of how it is cut into events. */
export function sum(events) {
    const all = {heads: new Set(), choices: [], usage: null, isDone: false};
    for (const {data} of events) {
        assert.equal(all.isDone, false);
        if (data === "[DONE]") {
            all.isDone = true;
            continue;
        }
        const chunk = JSON.parse(data);
        assert.equal(chunk.error, undefined, data);
        all.heads.add(JSON.stringify([chunk.id, chunk.created, chunk.model, chunk.system_fingerprint]));
        if (chunk.usage) {
            assert.equal(all.usage, null);
            all.usage = [chunk.usage.prompt_tokens, chunk.usage.completion_tokens, chunk.usage.total_tokens];
        }
        for (const choice of chunk.choices) {
            const c = (all.choices[choice.index] ??= {begun: 0, text: "", logprobs: [], finish: [], redline: null});
            if (choice.delta?.role) c.begun += 1;
            c.text += choice.delta?.content ?? choice.text ?? "";
            const l = choice.logprobs;
            if (l?.content) c.logprobs.push(...l.content);
            for (let i = 0; i < (l?.tokens ?? []).length; ++i) {
                c.logprobs.push([l.tokens[i], l.token_logprobs[i], l.top_logprobs[i], l.text_offset[i]]);
            }
            if (choice.finish_reason) c.finish.push(choice.finish_reason);
            if (choice.redline) c.redline = choice.redline;
        }
    }
    assert.equal(all.heads.size, 1);
    return all;
}
export const words = ({choices, usage, isDone}) => ({choices, usage, isDone});
