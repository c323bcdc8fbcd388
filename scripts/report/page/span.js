// A chosen span of time: the call paths in it, made of the pieces of the
// timeline, as a source like those of the report.  A call counts if it overlaps
// the span; its time is the part of it in there.  Runs of short calls do not know
// their functions, so they are a function of their own.

const SHORT_CALLS = { name: '(short calls, not told apart)', brief: null,
    object: null, file: null, line: 0,
    memory: null, memoryBelow: null };

// The tree of the calls, while it grows.
class SpanTree extends Growing {
    constructor(width) {
        super(-1);
        this.width = width;
        this.calls = [0];
        this.cut = [0];         // runs of short calls that reach out of the span
        this.shortest = new Map();
        this.longest = new Map();
        this.buckets = new Map();
        this.hasRuns = false;
    }

    add(parent, number, time, calls, isCut) {
        const place = this.below(parent, number, this.width);

        this.calls[place] = (this.calls[place] || 0) + calls;
        this.cut[place] = this.cut[place] || isCut;
        this.totals[place] += time;
        return place;
    }

    // A single call that began and ended in the span.
    note(number, took, bucket_ns) {
        const bucket = took > bucket_ns ?
            Math.floor(Math.log2(took / bucket_ns)) : 0;

        this.shortest.set(number, Math.min(took,
            this.shortest.has(number) ? this.shortest.get(number) : took));
        this.longest.set(number, Math.max(took,
            this.longest.get(number) || 0));
        if (!this.buckets.has(number))
            this.buckets.set(number, new Map());
        const own = this.buckets.get(number);

        own.set(bucket, (own.get(bucket) || 0) + 1);
    }

    // A call in a run might be shorter than all that are known, and is longer
    // than none of them.  0 is less than the clock can tell.
    durations(number) {
        const isKnown = this.buckets.has(number);

        return {
            min: isKnown && !this.hasRuns && this.shortest.get(number) || -1,
            max: isKnown && this.longest.get(number) || -1,
            histogram: isKnown && !this.hasRuns ? [...this.buckets.get(number)]
                .sort(([a], [b]) => a - b) : [],
        };
    }
}

// Adds the pieces of @rows in the span.  @numbers: by function of the timeline
// its number, or -1: it is hidden, and its time is its caller's.
function addRows(tree, rows, [from, to], numbers, bucket_ns) {
    let above = null;           // the row above: its first piece, and places

    rows.forEach((row, depth) => {
        const first = row.after(from);
        const places = [];
        let parent = above ? above.first : 0;

        for (let i = first; i < row.count && row.begin[i] < to; i++) {
            const begin = row.begin[i], end = row.end[i];
            const part = Math.min(end, to) - Math.max(begin, from);
            const share = end > begin ? part / (end - begin) : 1;
            const number = row.what[i] ? numbers[row.number(i)] : tree.width - 1;
            let place = 0;

            while (above && parent + 1 < above.row.count &&
                above.row.end[parent] <= begin &&
                above.row.begin[parent + 1] <= begin)
                parent++;
            if (above && above.row.begin[parent] <= begin + 1)
                place = above.places[parent - above.first] || 0;
            if (!row.what[i]) {
                tree.hasRuns = true;
                place = tree.add(place, number, row.busy[i] * share,
                    Math.round(row.calls[i] * share), share < 1);
            } else if (number >= 0) {
                place = tree.add(place, number, part, 1, false);
                if (share === 1 && !row.isOpen(i))
                    tree.note(number, end - begin, bucket_ns);
            }
            places.push(place);
        }
        above = { row, first, places };
    });
}

// The sums of functions in @view, as those that the report has written.
function sumsOfSpan(view, tree) {
    const measured = { exactSelf: view.exactSelf, total: view.total };
    const sums = gather(view, measured, path => view.function[path],
        tree.width);

    return sums.map(row => ({
        ...row, function: row.row, open: 0, older: 0, untimed: 0, selfError: 0,
        totalError: 0, callsError: 0, timed: true, hasMean: true, mean: row.total / row.calls,
        meanBelow: 0, ...tree.durations(row.row),
    }));
}

function viewOfSpan(tree, thread) {
    const { view, total, places } = tree.view();
    const zeros = new Float64Array(view.count);
    const self = total.slice();

    total[0] = self[0] = 0;
    for (let i = view.count - 1; i > 0; i--)
        self[view.parent[i]] -= total[i];
    self[0] = 0;
    Object.assign(view, {
        thread, total, exactSelf: self, open: zeros, older: zeros, untimed: zeros,
        self: self.map((own, i) => shownSelf(own, total[i])),
        selfBelow: zeros, totalBelow: zeros,
        calls: Float64Array.from(places, place => tree.calls[place] || 0),
        certainty: Uint8Array.from(places, place => Number(tree.cut[place])),
        addUp: View.prototype.addUp,
        isTimed: () => true,
    });
    view.sums = sumsOfSpan(view, tree);
    return view;
}

// @base: the source whose functions these are.
function sourceOfSpan(base, times, numbers, span, thread) {
    const width = base.functions.length + 1;
    const tree = new SpanTree(width);

    for (const lane of lanesOf(times, thread))
        addRows(tree, lane.rows, span, numbers, base.bucket_ns);
    const view = viewOfSpan(tree, thread);
    const functions = [...base.functions, { ...SHORT_CALLS,
        number: width - 1 }].map(about => ({ ...about, memory: null,
        memoryBelow: null }));

    return {
        kind: 'calls', by_thread: Boolean(thread), against: false,
        times: true, errors: false, estimates: true, ranges: true,
        memory: false, waits: false, waited: false, searched: false, left_out: 0,
        program: base.program, bucket_ns: base.bucket_ns, functions,
        views: [view], view: () => view, isSpan: true,
    };
}

function lanesOf(times, thread) {
    return times.lanes.filter(lane => !thread || (lane.tid === thread.tid &&
        lane.process === thread.process));
}
