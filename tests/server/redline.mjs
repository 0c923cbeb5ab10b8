// Starts and stops the programs under test.
import {spawn, spawnSync} from "node:child_process";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import OpenAI from "openai";

export const program = process.env.REDLINE_BIN ?? "build/redline";
const models = process.env.REDLINE_MODELS ?? "bench/demo_models";
export const targetModel = join(models, "demo-target.gguf");
export const exampleConfig = join(models, "../../deploy/redline.toml");
export const draftModel = join(models, "demo-draft.gguf");

/** A child process; `lines` contains its standard error. */
export class Program {
    /** An object as the last argument is added to the environment. */
    constructor(...args) {
        const more = typeof args.at(-1) === "object" ? args.pop() : {};
        this.lines = [];
        this.child = spawn(program, args, {stdio: ["ignore", "ignore", "pipe"], env: {...process.env, ...more}});
        this.child.stderr.setEncoding("utf8").on("data", (text) => this.lines.push(text));
        this.exited = new Promise((resolve) => this.child.on("exit", (code, signal) => resolve({code, signal})));
    }
    /** Waits until standard error matches, and returns the match. */
    async says(pattern, seconds = 60) {
        for (let i = 0; i < seconds * 20; ++i) {
            const match = this.lines.join("").match(pattern);
            if (match) return match;
            if (this.hasEnded()) break;
            await sleep(50);
        }
        throw new Error(`expected ${pattern} on standard error, found: ${this.lines.join("")}`);
    }
    hasEnded() { return this.child.exitCode !== null || this.child.signalCode !== null; }
    kill(signal = "SIGKILL") {
        this.child.kill(signal);
        return this.exited;
    }
}

/** Runs a command to its end and returns its standard output. */
export function call(...args) {
    const done = spawnSync(program, args, {encoding: "utf8"});
    if (done.status !== 0) throw new Error(`redline ${args.join(" ")}: ${done.stderr}`);
    return done.stdout;
}

/** Returns this CPU's kernel targets that multiply integers, all of which give the same results. */
export function int8Targets() {
    const ours = call("--version").split("kernels:")[1].trim().split(/\s+/);
    return ["amx", "amx_emulated", "avx512vnni", "avx512", "avx2"].filter((name) => ours.includes(name));
}

export class Server extends Program {
    static async start(...more) {
        const model = more.includes("--model") ? [] : ["--model", targetModel];
        const server = new Server("serve", ...model, "--listen", "127.0.0.1:0", "--threads", "1", ...more);
        try {
            server.url = (await server.says(/serving \S+ on (http:\S+)\s/))[1];
            for (let i = 0; i < 1200 && !more.includes("--remote"); ++i) {
                if ((await fetch(`${server.url}/readyz`)).status === 200) break;
                await sleep(50);
            }
        } catch (error) {
            await server.kill();  // otherwise the test waits for the child
            throw new Error(`${server.url}: ${error.cause ?? error}: ${server.lines.join("")}`);
        }
        return server;
    }
    client(options = {}) {
        return new OpenAI({baseURL: `${this.url}/v1`, apiKey: "none", maxRetries: 0, ...options});
    }
    /** The sum of a metric over its labels. */
    async metric(name) {
        const text = await (await fetch(`${this.url}/metrics`)).text();
        const found = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))];
        if (found.length === 0) throw new Error(`no metric ${name} in:\n${text}`);
        return found.reduce((sum, match) => sum + Number(match[1]), 0);
    }
    async until(what, seconds = 20) {
        for (let i = 0; i < seconds * 20; ++i) {
            if (await what()) return;
            await sleep(50);
        }
        throw new Error(`never came true: ${what}`);
    }
}

export const file = `import json

LIMIT = 10


def load(path):
    with open(path) as source:
        return json.load(source)[:LIMIT]
`;
export const edit = [{role: "user", content: `Change the number 10 to 64.\n\`\`\`python\n${file}\`\`\``}];
