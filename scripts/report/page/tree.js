// Values in a tree of paths, and the positions of its paths in a drawing.

const METRICS = {
    time: { label: 'Time', unit: 'ns' },
    calls: { label: 'Calls', unit: 'count' },
    samples: { label: 'Samples', unit: 'count' },
    allocated: { label: 'Bytes allocated', unit: 'bytes' },
    allocations: { label: 'Blocks allocated', unit: 'count' },
    peak: { label: 'Bytes at the peak', unit: 'bytes' },
    lost: { label: 'Bytes nothing leads to', unit: 'bytes' },
    waits: { label: 'Waits for locks', unit: 'ns' },
    left: { label: 'Bytes left at the end', unit: 'bytes' },
};

// Leaks are known only if they were searched for.
function memoryOfSource(source) {
    return source.memory ? MEMORY.filter(kind =>
        kind !== 'lost' || source.searched) : [];
}

function metricsOf(source) {
    return [
        ...source.times ? ['time'] : [],
        source.kind,
        ...memoryOfSource(source),
        ...source.waits ? ['waits'] : [],
    ];
}

// @metric of each path itself, and its total.
function measure(view, metric) {
    if (metric === 'time') {
        const total = view.total.slice();

        for (let i = 1; i < view.count; i = view.next[i])
            total[0] += total[i];
        return { self: view.self, exactSelf: view.exactSelf, total,
            selfBelow: view.selfBelow, totalBelow: view.totalBelow };
    }
    const self = metric === 'calls' ? view.calls :
        metric === 'samples' ? view.own :
            metric === 'waits' ? view.waits : view.memory[metric];

    return { self, exactSelf: self, total: view.addUp(self) };
}

// The order of paths with the same parent.
const ORDERS = {
    size: (total, names) => (a, b) => total[b] - total[a] || a - b,
    name: (total, names) => (a, b) => names[a] - names[b] || a - b,
    first: (total, names) => (a, b) => a - b,
};

function rankNames(view, functions) {
    const collator = new Intl.Collator('en', { numeric: true });
    const order = functions.map((_, i) => i).sort((a, b) =>
        collator.compare(functions[a].name.slice(0, 1000),
            functions[b].name.slice(0, 1000)));
    const ranks = new Uint32Array(functions.length);

    order.forEach((number, rank) => { ranks[number] = rank; });
    return view.function.map(number => number < 0 ? 0 : ranks[number]);
}

// Each path gets a part of the line from 0 to 1: [from, to).  By chance, the
// paths below a path may add up to more than the path; then they are drawn
// narrower.
function lay(view, total, order, functions) {
    const from = new Float64Array(view.count);
    const to = new Float64Array(view.count);
    const names = order === 'name' ? rankNames(view, functions) : null;
    const compare = ORDERS[order](total, names);
    const children = [];

    to[0] = 1;
    for (let i = 0; i < view.count; i++) {
        let sum = 0;

        children.length = 0;
        for (let c = i + 1; c < view.next[i]; c = view.next[c]) {
            children.push(c);
            sum += total[c];
        }
        if (children.length > 1)
            children.sort(compare);
        const scale = (to[i] - from[i]) / Math.max(total[i], sum, 1e-9);
        let at = from[i];

        for (const child of children) {
            from[child] = at;
            at = Math.min(at + total[child] * scale, to[i]);
            to[child] = at;
        }
    }
    return { from, to };
}

// The bound of a sum of times, some of which are only known to be below a bound.  A time
// that is known is a tick at least, and makes the sum a known one.
class BoundOfSum {
    constructor() {
        this.below = 0;
        this.isKnown = false;
    }

    add(time, bounds, path) {
        const below = bounds ? bounds[path] : 0;

        this.below += below;
        this.isKnown ||= time > 0 && below === 0;
    }

    // 0: the sum is known.
    bound() {
        return this.isKnown ? 0 : this.below;
    }
}

// Sums over the paths for which @row(path) is not -1, by its value; a path
// below another path of the same row is already in its total.
function gather(view, measured, row, count) {
    const rows = new Map();
    const active = new Uint32Array(count);
    const stack = [];

    for (let i = 1; i < view.count; i++) {
        while (stack.length && i >= view.next[stack[stack.length - 1].path])
            active[stack.pop().row]--;
        const number = row(i);

        if (number < 0)
            continue;
        if (!rows.has(number))
            rows.set(number, { row: number, calls: 0, self: 0, total: 0,
                ownBounds: new BoundOfSum(), bounds: new BoundOfSum() });
        const sums = rows.get(number);

        sums.calls += view.calls[i];
        if (view.certainty)
            sums.certainty = lessCertain(sums.certainty, view.certainty[i]);
        sums.self += measured.exactSelf[i];
        sums.ownBounds.add(measured.exactSelf[i], measured.selfBelow, i);
        if (active[number]++ === 0) {
            sums.total += measured.total[i];
            sums.bounds.add(measured.total[i], measured.totalBelow, i);
        }
        stack.push({ path: i, row: number });
    }
    return [...rows.values()].map(({ ownBounds, bounds, ...sums }) => ({
        ...sums, self: shownSelf(sums.self, sums.total),
        selfBelow: ownBounds.bound(), totalBelow: bounds.bound(),
    }));
}
