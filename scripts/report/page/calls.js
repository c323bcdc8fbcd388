// The calls of a trace, as written by timeline.c: lanes with rows of pieces.  A
// piece is one call, or a run of short calls.

// The calls of one depth, in the order of time; no two of them overlap.
class Row {
    constructor(count) {
        this.count = 0;
        this.begin = new Float64Array(count);
        this.end = new Float64Array(count);
        // 0: a run of short calls; see number()
        this.what = new Uint32Array(count);
        this.calls = new Float64Array(count);   // number of calls; 0: one
        this.busy = new Float64Array(count);
        this.values = new Map();                // [arguments, result], or null
    }

    // The function of the piece; -1: several.
    number(piece) {
        return this.what[piece] ? (this.what[piece] - 1) >> 1 : -1;
    }

    isOpen(piece) {
        return this.what[piece] > 0 && (this.what[piece] - 1) % 2 === 1;
    }

    // The first piece from @from on that ends after @time.
    after(time, from = 0) {
        let least = from, most = this.count;

        while (least < most) {
            const middle = (least + most) >> 1;

            if (this.end[middle] > time)
                most = middle;
            else
                least = middle + 1;
        }
        return least;
    }

    levels() {
        this.made = this.made || new Levels(this);
        return this.made;
    }

    // The piece at @time, or -1.
    at(time) {
        const piece = this.after(time);

        return piece < this.count && this.begin[piece] <= time ? piece : -1;
    }
}

// Pieces come in the order of their ends.  @values: by piece.
function readLane(about, columns, values) {
    const count = about.pieces;
    const depths = new Uint32Array(count);
    const begins = new Float64Array(count);
    const ends = new Float64Array(count);
    const whats = new Uint32Array(count);
    const runs = [];
    const sizes = [];
    let depth = 0, end = 0;

    for (let i = 0; i < count; i++) {
        depth += columns.signed();
        end += columns.signed();
        depths[i] = depth;
        ends[i] = end;
        begins[i] = end - columns.number();
        whats[i] = columns.number();
        if (!whats[i])
            runs.push(columns.number(), columns.number());
        while (sizes.length <= depth)
            sizes.push(0);
        sizes[depth]++;
    }
    const rows = sizes.map(size => new Row(size));

    for (let i = 0, run = 0; i < count; i++) {
        const row = rows[depths[i]];
        const place = row.count++;

        row.begin[place] = begins[i];
        row.end[place] = ends[i];
        row.what[place] = whats[i];
        if (values.has(i))
            row.values.set(place, values.get(i));
        if (!whats[i]) {
            row.calls[place] = runs[run++];
            row.busy[place] = runs[run++];
        }
    }
    return rows;
}

function readCalls(profile) {
    const { timeline, strings } = profile;
    const bytes = number => new Columns(decode(
        document.getElementById(`calls${number}`).textContent));
    const columns = bytes(0);
    const text = () => {
        const number = columns.number();

        return number ? strings[number - 1] : null;
    };

    timeline.functions = Array.from({ length: columns.number() }, () => ({
        name: text(), brief: text(), object: text(), file: text(),
        line: columns.number(),
    }));
    for (const { name, brief } of timeline.functions)
        noteShortName(name, brief);
    const values = timeline.lanes.map(() => new Map());

    for (const [lane, piece, ...both] of timeline.values)
        values[lane].set(piece, both.map(text => text && visible(text)));
    timeline.lanes.forEach((lane, i) => {
        lane.rows = readLane(lane, bytes(i + 1), values[i]);
    });
    return timeline;
}

const LONGEST = 5000;           // limit of listed calls of a function

// Calls take(lane, depth, piece, row) for each single call of the functions
// @wanted in the visible lanes.
function visitCalls(times, wanted, take) {
    times.shown.forEach(({ rows }, lane) => rows.forEach((row, depth) => {
        for (let piece = 0; piece < row.count; piece++)
            if (row.what[piece] && wanted[row.number(piece)])
                take(lane, depth, piece, row);
    }));
}

// The longest calls of the functions @wanted, and the number of all their
// calls.
function callsOf(times, wanted) {
    const durations = [];
    const found = [];

    visitCalls(times, wanted, (lane, depth, piece, row) =>
        durations.push(row.end[piece] - row.begin[piece]));
    const sorted = Float64Array.from(durations).sort();
    const least = sorted[Math.max(sorted.length - LONGEST, 0)];

    visitCalls(times, wanted, (lane, depth, piece, row) => {
        if (found.length < LONGEST &&
            row.end[piece] - row.begin[piece] >= least)
            found.push({ lane, depth, piece });
    });
    return { found, all: durations.length };
}

const LISTED_MOST = 16;         // functions whose longest calls are kept

// The same for function @number.  Steps through calls meet the same functions again.
function longestCalls(times, numbers, number) {
    const { longest } = times;

    if (!longest || longest.shown !== times.shown ||
        longest.numbers !== numbers)
        times.longest = { shown: times.shown, numbers, found: new Map() };
    const { found } = times.longest;

    if (!found.has(number)) {
        if (found.size >= LISTED_MOST)
            found.delete(found.keys().next().value);
        found.set(number, callsOf(times,
            numbers.map(each => each === number)));
    }
    return found.get(number);
}

function callColumns(times) {
    const row = at => times.shown[at.lane].rows[at.depth];
    const took = at => row(at).end[at.piece] - row(at).begin[at.piece];
    const from = at => row(at).begin[at.piece];

    return [
        {
            id: 'took', title: 'Took', value: took,
            text: at => humanNs(took(at)), exact: at => exactNs(took(at)),
        }, {
            id: 'from', title: 'From', hint: 'since the start', value: from,
            text: at => timeText(from(at), 1),
        }, {
            id: 'depth', title: 'Depth', value: at => at.depth + 1,
            text: at => humanCount(at.depth + 1),
        }, {
            id: 'name', title: 'Thread', name: true,
            value: at => threadName(times.shown[at.lane]),
            text: at => threadName(times.shown[at.lane]),
        },
    ];
}
