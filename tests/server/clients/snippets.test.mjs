// Runs the programs in docs/clients unchanged except for the address and the model's name.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {readFileSync, readdirSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {after, before, test} from "node:test";
import {Server, draftModel, exampleConfig} from "./redline.mjs";

const folder = join(dirname(exampleConfig), "../docs/clients");
const snippets = readdirSync(folder).flatMap((name) =>
    [...readFileSync(join(folder, name), "utf8").matchAll(/^```js\n([^]*?)^```/gm)].map(([, text], i) => ({name, i, text})));

let server;
before(async () => { server = await Server.start("--draft", draftModel, "--alias", "my-model:temperature=0"); });
after(() => server?.kill());

test("there are some", () => assert.ok(snippets.length >= 7));

for (const {name, i, text} of snippets) {
    test(`${name} ${i}`, async () => {
        const asked = await server.metric("redline_requests_total");
        const file = `snippet-${name}-${i}.mjs`;
        writeFileSync(file, text.replaceAll("http://127.0.0.1:8080", server.url));
        const child = spawn(process.execPath, [file], {stdio: ["ignore", "pipe", "pipe"]});
        let said = "";
        for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (more) => { said += more; });
        assert.equal(await new Promise((done) => child.on("exit", done)), 0, `${text}\n${said}`);
        assert.equal(await server.metric("redline_requests_total"), asked + 1, "it asked the server once");
    });
}
