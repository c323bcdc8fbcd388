// Reads what html.c wrote: text once, as JSON, and numbers in columns.

// Reads numbers of seven bits a byte, see columns.h.
class Columns {
    constructor(bytes) {
        this.bytes = bytes;
        this.at = 0;
    }

    number() {
        let byte = this.bytes[this.at++];
        let value = byte & 127;

        for (let factor = 128; byte >= 128; factor *= 128) {
            byte = this.bytes[this.at++];
            value += (byte & 127) * factor;
        }
        return value;
    }

    signed() {
        const number = this.number();

        return number % 2 ? -(number + 1) / 2 : number / 2;
    }

    // Reads a column of @count numbers into @array; path 0, which is no path,
    // gets a 0.
    take(array) {
        for (let i = 1; i < array.length; i++)
            array[i] = this.number();
        return array;
    }

    takeSigned(array) {
        for (let i = 1; i < array.length; i++)
            array[i] = this.signed();
        return array;
    }
}

function decode(text) {
    const binary = atob(text);
    const bytes = new Uint8Array(binary.length);

    for (let i = 0; i < bytes.length; i++)
        bytes[i] = binary.charCodeAt(i);
    return bytes;
}

// The kinds of memory that are counted, in the order of their columns.
const MEMORY = ['allocated', 'allocations', 'peak', 'left', 'lost'];

// A time may become negative by chance when the cost of recording is
// subtracted: sums of many are right, but a single one is shown as 0.
function shownSelf(self, total) {
    return Math.max(Math.min(self, total), 0);
}

// One tree of call paths.  Paths are numbered from 1 in the order in which one
// walks down them, so that all paths below path i are those from i + 1 to
// next[i] - 1.  Path 0 is above them all and belongs to no function.
class View {
    constructor(about, source, columns) {
        this.thread = about.thread;
        this.count = about.paths + 1;
        this.readTree(columns);
        this.calls = columns.take(new Float64Array(this.count));
        this.open = columns.take(new Uint32Array(this.count));
        this.older = columns.take(new Uint32Array(this.count));
        this.untimed = columns.take(new Float64Array(this.count));
        if (source.estimates)
            this.certainty = columns.take(new Uint8Array(this.count));
        if (source.kind === 'samples')
            this.own = columns.take(new Float64Array(this.count));
        if (source.guessed)             // samples whose caller is a guess
            this.guessed = columns.take(new Float64Array(this.count));
        if (source.times)
            this.readTimes(source, columns);
        if (source.memory)
            this.memory = Object.fromEntries(MEMORY.map(kind =>
                [kind, columns.take(new Float64Array(this.count))]));
        if (source.waits)
            this.waits = columns.take(new Float64Array(this.count));
        this.readSums(source, columns);
    }

    readTree(columns) {
        const count = this.count;
        const parent = this.parent = new Int32Array(count);
        const next = this.next = new Uint32Array(count).fill(count);
        const depth = this.depth = new Uint32Array(count);

        parent[0] = -1;
        this.deepest = 0;
        for (let i = 1; i < count; i++) {
            let above = i - 1;

            for (let up = columns.number(); up > 0; up--) {
                next[above] = i;
                above = parent[above];
            }
            parent[i] = above;
            depth[i] = depth[above] + 1;
            this.deepest = Math.max(this.deepest, depth[i]);
        }
        this.function = columns.take(new Int32Array(count));
        this.function[0] = -1;
    }

    readTimes(source, columns) {
        const column = () => columns.take(new Float64Array(this.count));

        this.exactSelf = columns.takeSigned(new Float64Array(this.count));
        this.total = column();
        this.selfBelow = column();      // 0: the exact time is known
        this.totalBelow = column();
        if (source.errors) {
            this.selfError = column();
            this.totalError = column();
        }
        if (source.ranges) {
            this.min = column();        // plus 1; 0: unknown
            this.max = column();
            this.minBelow = column();   // 0: the time itself is known
            this.maxBelow = column();
        }
        this.self = this.exactSelf.map((self, i) =>
            shownSelf(self, this.total[i]));
    }

    // The sums of functions, equal to the report's.
    readSums(source, columns) {
        const rows = Array.from({ length: columns.number() }, () => ({}));

        for (const key of ['function', 'calls', 'open', 'older', 'untimed',
            ...source.estimates ? ['certainty', 'callsError'] : [], 'self',
            'total', 'selfError', 'totalError', 'selfBelow', 'totalBelow'])
            for (const row of rows)
                row[key] = columns.number();
        for (const key of source.waited ? ['waited', 'waitedBelow'] : [])
            for (const row of rows)
                row[key] = columns.number() - (key === 'waited' ? 1 : 0);
        this.readDurations(source, columns, rows);
        for (const row of rows) {
            row.timed = !(row.untimed > 0 && row.untimed >= row.calls);
            row.hasMean = row.calls > row.untimed && !row.older;
            row.mean = row.hasMean ?
                row.total / (row.calls - row.untimed) : 0;
            row.meanBelow = row.hasMean ?
                row.totalBelow / (row.calls - row.untimed) : 0;
        }
        this.sums = rows;
    }

    // -1: unknown.
    readDurations(source, columns, rows) {
        for (const key of ['min', 'max'])
            for (const row of rows)
                row[key] = source.ranges ? columns.number() - 1 : -1;
        for (const key of ['minBelow', 'maxBelow'])
            for (const row of rows)
                row[key] = source.ranges ? columns.number() : 0;
        for (const row of rows)
            row.histogram = source.ranges ? Array.from({ length:
                columns.number() }, () => [columns.number(),
                columns.number()]) : [];
    }

    // Totals, when each path has @own of its own.
    addUp(own) {
        const total = own.slice();

        for (let i = this.count - 1; i > 0; i--)
            total[this.parent[i]] += total[i];
        return total;
    }

    // Whether the durations of @path's calls are known.
    isTimed(path) {
        return this.certainty !== undefined ||
            this.calls[path] > this.untimed[path] ||
            (this.open[path] + this.older[path] > 0 && !this.untimed[path]);
    }
}

// A model of the report: its functions, and views that are read when needed.
class Source {
    constructor(about, strings, bytes) {
        Object.assign(this, about);
        this.bytes = bytes;
        this.strings = strings;
        this.made = [];
        this.readFunctions(about.functions);
        this.places = [];
        about.views.reduce((at, view) => {
            this.places.push(at);
            return at + view.size;
        }, about.functions_size);
    }

    readFunctions(count) {
        const columns = new Columns(this.bytes);
        const text = () => {
            const number = columns.number();

            return number ? this.strings[number - 1] : null;
        };
        const memory = () => Object.fromEntries(MEMORY.map(
            kind => [kind, columns.number()]));

        this.functions = Array.from({ length: count }, (_, number) => ({
            number,
            name: text(),
            brief: text(),
            object: text(),
            file: text(),
            line: columns.number(),
            memory: this.memory ? memory() : null,
            memoryBelow: this.memory ? memory() : null,
        }));
        for (const { name, brief } of this.functions)
            noteShortName(name, brief);
        const objects = new Set(this.functions.map(about => about.object));

        for (const about of this.functions)
            about.isInOnly = objects.size === 1;
    }

    view(number) {
        if (!this.made[number]) {
            const columns = new Columns(this.bytes);

            columns.at = this.places[number];
            this.made[number] = new View(this.views[number], this, columns);
        }
        return this.made[number];
    }
}

function readProfile() {
    const text = id => document.getElementById(id).textContent;
    const profile = JSON.parse(text('text'));

    profile.sources = profile.sources.map((about, i) =>
        new Source(about, profile.strings, decode(text(`numbers${i}`))));
    return profile;
}
