// A pool on one machine: brokers, gateways and workers that are joined over ipc in a private folder.
import {mkdtempSync, readFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {setTimeout as sleep} from "node:timers/promises";
import {Program, Server, draftModel, targetModel} from "./redline.mjs";

export class Pool {
    /** `brokers` is the maximum; none is started. */
    constructor(brokers) {
        this.folder = mkdtempSync(join(tmpdir(), "redline-pool-"));
        this.endpoints = Array.from({length: brokers}, (_, i) => `ipc://${this.folder}/${i}`);
        this.programs = [];
    }
    async startBroker(i) {
        const broker = this.#note(new Program("broker", "--listen", this.endpoints[i]));
        await broker.says(/redline: broker at/);
        return broker;
    }
    async startGateway(...more) {
        const gateway = this.#note(new Server("gateway", ...this.#joins(), "--listen", "127.0.0.1:0", ...more));
        gateway.url = (await gateway.says(/serving .* on (http:\S+)/))[1];
        return gateway;
    }
    /** Returns before the gateways know the worker. */
    startWorker(role, ...more) {
        const model = more.includes("--model") ? [] : ["--model", role === "draft" ? draftModel : targetModel];
        return this.#note(new Program("worker", "--role", role, ...model, ...this.#joins(), "--threads", "1", ...more));
    }
    async close() {
        await Promise.all(this.programs.map((one) => one.kill()));
        rmSync(this.folder, {recursive: true, force: true});
    }
    #joins() { return this.endpoints.flatMap((endpoint) => ["--join", endpoint]); }
    #note(one) {
        this.programs = this.programs.filter((other) => !other.hasEnded());
        this.programs.push(one);
        return one;
    }
}

function cpuTicks(one) {
    const stat = readFileSync(`/proc/${one.child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
}

/** Returns the worker that is computing: the first to use 30 ms of CPU. */
export async function busiest(workers, seconds = 10) {
    const before = workers.map(cpuTicks);
    for (let i = 0; i < seconds * 100; ++i) {
        await sleep(10);
        const used = workers.map((one, at) => cpuTicks(one) - before[at]);
        const most = Math.max(...used);
        if (most >= 3) return workers[used.indexOf(most)];
    }
    throw new Error("no worker computes");
}
