// Compares the OpenAPI document with the server that serves it.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {Validator} from "@seriousme/openapi-schema-validator";
import {Server, draftModel} from "./redline.mjs";

let server;
let document;

before(async () => {
    server = await Server.start("--draft", draftModel);
    document = await (await fetch(`${server.url}/openapi.json`)).json();
});
after(() => server?.kill("SIGKILL"));

const methodsOf = (item) => Object.keys(item).filter((name) => name !== "parameters");

test("is valid", async () => {
    const outcome = await new Validator().validate(structuredClone(document));
    assert.ok(outcome.valid, JSON.stringify(outcome.errors));
});

test("names paths and methods that there are, and no others", async () => {
    for (const [path, item] of Object.entries(document.paths)) {
        const answer = await fetch(server.url + path.replaceAll(/\{\w+\}/g, "x"), {method: "OPTIONS"});
        assert.equal(answer.status, 204, path);
        const allowed = answer.headers.get("allow").toLowerCase().split(", ").filter((name) => name !== "head" && name !== "options");
        assert.deepEqual(allowed.sort(), methodsOf(item).sort(), path);
    }
    const page = await (await fetch(`${server.url}/paths`)).text();
    const shown = [...page.matchAll(/<td><code>(\/[^<]*)<\/code>/g)].map((match) => match[1]);
    assert.ok(shown.length > 20);
    const shapeOf = (path) => path.replace(/^\/v1(?=\/)/, "").replaceAll(/\{[^}]*\}/g, "{}");
    const known = new Set(Object.keys(document.paths).map(shapeOf));
    for (const path of shown) {
        if (path === "/favicon.ico") continue;
        assert.ok(known.has(shapeOf(path)), `${path} is not in the document`);
    }
});

test("has examples that the server takes, with every field that they have", async () => {
    let session = "";
    for (const [path, item] of Object.entries(document.paths)) {
        for (const method of methodsOf(item)) {
            const content = item[method].requestBody?.content["application/json"];
            const isRefusedAlways = !Object.keys(item[method].responses).some((status) => status.startsWith("2"));
            if (content === undefined || isRefusedAlways) continue;
            assert.ok(content.example !== undefined, `${method} ${path} needs an example`);
            const url = server.url + path.replace("{session}", session).replace("{path}", "a.py");
            const answer = await fetch(url, {method: method.toUpperCase(), headers: {"content-type": "application/json"}, body: JSON.stringify(content.example)});
            const body = await answer.json();
            if (["/v1/code/apply", "/v1/apply/completions"].includes(path) && body.error?.code === "unusable_answer") continue;  // the demo model's fault, not the shape's
            assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${JSON.stringify(body)}`);
            if (path === "/v1/redline/sessions") session = body.id;
            const properties = content.schema.properties ?? document.components.schemas[content.schema.$ref.split("/").at(-1)].properties;
            for (const name of Object.keys(content.example)) assert.ok(name in properties, `${path}: ${name} is not in the schema`);
            assert.deepEqual(body.usage?.redline?.ignored ?? [], [], `${path}: a documented field is ignored`);
        }
    }
});
