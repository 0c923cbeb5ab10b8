// Writes a copy of a model file with other metadata, such as a chat template with tools or a longer context.
import {readFileSync, writeFileSync} from "node:fs";

const sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8};
const uint32 = 4, string = 8, array = 9;

class Reader {
    constructor(bytes) { this.bytes = bytes; this.at = 0; }
    u32() { this.at += 4; return this.bytes.readUInt32LE(this.at - 4); }
    u64() { this.at += 8; return Number(this.bytes.readBigUInt64LE(this.at - 8)); }
    text() { const length = this.u64(); this.at += length; return this.bytes.toString("utf8", this.at - length, this.at); }
    skip(type) {
        if (type === string) { this.text(); return; }
        if (type !== array) { this.at += sizes[type]; return; }
        const inner = this.u32();
        for (let count = this.u64(); count > 0; --count) this.skip(inner);
    }
}

const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32LE(n); return b; };
const u64 = (n) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(n)); return b; };
const text = (s) => Buffer.concat([u64(Buffer.byteLength(s)), Buffer.from(s)]);
const entry = (key, value) => Buffer.concat(
    typeof value === "string" ? [text(key), u32(string), text(value)] : [text(key), u32(uint32), u32(value)]);

/** changes: strings and 32-bit numbers, by key. */
export function copyWith(from, to, changes) {
    const r = new Reader(readFileSync(from));
    const head = r.bytes.subarray(0, 8);
    r.at = 8;
    const tensors = r.u64();
    const left = new Map(Object.entries(changes));
    const entries = [];
    for (let count = r.u64(); count > 0; --count) {
        const begin = r.at;
        const key = r.text();
        r.skip(r.u32());
        entries.push(left.has(key) ? entry(key, left.get(key)) : r.bytes.subarray(begin, r.at));
        left.delete(key);
    }
    for (const [key, value] of left) entries.push(entry(key, value));
    const infos = r.at;
    for (let i = 0; i < tensors; ++i) {
        r.text();
        const dimensions = r.u32();
        r.at += 8 * dimensions + 4 + 8;
    }
    const alignment = 32;
    const aligned = (n) => Math.ceil(n / alignment) * alignment;
    const data = r.bytes.subarray(aligned(r.at));
    const meta = Buffer.concat([head, u64(tensors), u64(entries.length), ...entries, r.bytes.subarray(infos, r.at)]);
    writeFileSync(to, Buffer.concat([meta, Buffer.alloc(aligned(meta.length) - meta.length), data]));
}
