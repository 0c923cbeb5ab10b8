// Line differences by Myers' O(ND) algorithm (1986).

/** Lines [a_from, a_to) of the old text became lines [b_from, b_to) of the new one. */
export interface Change {
  a_from: number;
  a_to: number;
  b_from: number;
  b_to: number;
}

/**
 * The changes from `a` to `b`. With `open_end`, `b` is only the beginning of the new text, so the rest of `a` does not
 * count as changed. Null if there are more than `most` differences.
 */
export function differences(a: readonly string[], b: readonly string[], open_end: boolean, most = 1000): Change[] | null {
  const frontiers: Map<number, number>[] = [];
  let frontier = new Map<number, number>([[1, 0]]);
  for (let d = 0; d <= Math.min(most, a.length + b.length); ++d) {
    const next = new Map<number, number>();
    for (let k = -d; k <= d; k += 2) {
      const left = frontier.get(k - 1) ?? -1;
      const right = frontier.get(k + 1) ?? -1;
      let x = k === -d || (k !== d && left < right) ? right : left + 1;
      let y = x - k;
      if (x > a.length || y > b.length || y < 0) continue;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        ++x;
        ++y;
      }
      next.set(k, x);
      if (y === b.length && (open_end || x === a.length)) {
        frontiers.push(next);
        return path_back(frontiers, x, y);
      }
    }
    frontiers.push(next);
    frontier = next;
  }
  return null;
}

function path_back(frontiers: Map<number, number>[], x: number, y: number): Change[] {
  const steps: Change[] = [];
  for (let d = frontiers.length - 1; d > 0; --d) {
    const before = frontiers[d - 1]!;
    const k = x - y;
    const left = before.get(k - 1) ?? -1;
    const right = before.get(k + 1) ?? -1;
    const down = k === -d || (k !== d && left < right);
    const from_x = down ? right : left;
    const from_y = from_x - (down ? k + 1 : k - 1);
    steps.push(down ? { a_from: from_x, a_to: from_x, b_from: from_y, b_to: from_y + 1 } : { a_from: from_x, a_to: from_x + 1, b_from: from_y, b_to: from_y });
    x = from_x;
    y = from_y;
  }
  steps.reverse();
  const changes: Change[] = [];
  for (const step of steps) {
    const last = changes[changes.length - 1];
    if (last !== undefined && last.a_to === step.a_from && last.b_to === step.b_from) {
      last.a_to = step.a_to;
      last.b_to = step.b_to;
    } else {
      changes.push({ ...step });
    }
  }
  return changes;
}
