// Compares with an earlier recording: the changes by call path and by function.
// Functions are the same if their names and objects are equal; the program's
// file may have had another name.

function objectKey(object, program) {
    if (!object)
        return '?';
    const name = baseName(object);

    if (program && baseName(program) === name)
        return '';
    return name.replace(/(\.so)\..*/, '$1');
}

function keyOf(source, about) {
    return `${about.name}\n${objectKey(about.object, source.program)}`;
}

// The numbers in @source of the functions of @before; functions that @source
// lacks are added.
function adopt(source, before) {
    const numbers = new Map(source.functions.map((about, number) =>
        [keyOf(source, about), number]));

    return before.functions.map(about => {
        const key = keyOf(before, about);

        if (!numbers.has(key)) {
            numbers.set(key, source.functions.length);
            source.functions.push({ ...about,
                number: source.functions.length });
        }
        return numbers.get(key);
    });
}

class Comparison {
    constructor(source, before) {
        this.before = before;
        this.view = before.view(0);
        this.numbers = adopt(source, before);
        // The same tree, with the functions of @source.
        this.shown = Object.assign(Object.create(this.view), {
            function: this.view.function.map(number =>
                (number < 0 ? number : this.numbers[number])),
        });
    }

    // The earlier value of each path of @view (0 if it did not exist), and the
    // standard error of the difference of totals.  @same: by earlier path the
    // path of @view; @places: the other way; -1: there is none.
    paths(view, metric) {
        const measured = measure(this.view, metric);
        const width = Math.max(...this.numbers, ...view.function) + 1;
        const places = new Map();
        const noise = metric === 'time' && new Float64Array(view.count);
        const same = new Int32Array(this.view.count).fill(-1);
        const back = new Int32Array(view.count).fill(-1);
        const self = new Float64Array(view.count);
        const total = new Float64Array(view.count);

        for (let i = 1; i < view.count; i++)
            places.set(view.parent[i] * width + view.function[i], i);
        same[0] = back[0] = 0;
        total[0] = measured.total[0];
        for (let i = 1; i < this.view.count; i++) {
            const parent = same[this.view.parent[i]];
            const place = parent < 0 ? undefined : places.get(parent * width +
                this.numbers[this.view.function[i]]);

            if (place === undefined)
                continue;
            same[i] = place;
            back[place] = back[place] < 0 ? i : back[place];
            self[place] += measured.self[i];
            total[place] += measured.total[i];
            if (noise && this.view.totalError)
                noise[place] += this.view.totalError[i] ** 2;
        }
        for (let i = 1; noise && i < view.count; i++)
            noise[i] = Math.sqrt(noise[i] +
                (view.totalError ? view.totalError[i] ** 2 : 0));
        for (let i = 1; noise && i < view.count; i = view.next[i])
            noise[0] = Math.hypot(noise[0], noise[i]);
        return { self, total, noise, same, places: back, view: this.shown,
            measured };
    }

    // The earlier rows of the table of functions, by current number.
    rows(metric) {
        const measured = measure(this.view, metric);
        const { rows } = functionTable(this.before, this.view, measured,
            metric);

        return new Map(rows.map(row => [this.numbers[row.function], row]));
    }
}

// The change relative to the larger value: -1 to 1.  A change within the
// possible clock error counts as 0.
function change(now, before, noise) {
    const most = Math.max(now, before);

    return Math.abs(now - before) > 2 * noise ? (now - before) / most : 0;
}

// Red is more, blue is less; a change by half has the full colour.
function changeColor(part, dark) {
    const strength = Math.min(Math.abs(part) * 2, 1);
    const hue = part > 0 ? 8 : 212;

    return dark ? `hsl(${hue} ${8 + 52 * strength}% ${28 + 8 * strength}%)` :
        `hsl(${hue} ${10 + 70 * strength}% ${88 - 16 * strength}%)`;
}

function signed(text, number) {
    return number > 0 ? `+${text}` : number < 0 ? `\u2212${text}` : text;
}

// The rows of both recordings, and their columns.
function comparedTable(source, rows, before, unit) {
    const none = { self: 0, total: 0, calls: 0 };
    const numbers = new Set([...rows.map(row => row.function),
        ...before.keys()]);
    const now = new Map(rows.map(row => [row.function, row]));
    const both = [...numbers].map(number => {
        const row = now.get(number) || none;
        const old = before.get(number) || none;

        return {
            function: number, change: row.self - old.self,
            self: row.self, selfBefore: old.self,
            total: row.total, totalBefore: old.total,
            selfBelow: row.selfBelow, selfBeforeBelow: old.selfBelow,
            totalBelow: row.totalBelow, totalBeforeBelow: old.totalBelow,
            calls: row.calls, callsBefore: old.calls,
            certainty: row.certainty, certaintyBefore: old.certainty,
            callsError: row.callsError, callsErrorBefore: old.callsError,
            noise: Math.hypot(row.selfError || 0, old.selfError || 0),
        };
    });
    const format = human[unit];
    const column = (id, title, hint) => ({ id, title, hint,
        value: row => row[id],
        text: row => unit === 'ns' ? boundedNs(row[id], row[`${id}Below`]) :
            format(row[id]),
        exact: row => humanCount(row[id]) });
    const hasTotals = both.some(row => row.total > 0);
    const hasCalls = both.some(row => row.calls > 0);

    return {
        rows: both,
        columns: [
            {
                id: 'change', title: 'Change', hint: 'of the self time',
                value: row => row.change, rank: row => Math.abs(row.change),
                text: row => signed(format(Math.abs(row.change)), row.change),
                exact: row => signed(humanCount(Math.abs(row.change)),
                    row.change),
            },
            ...both.some(row => row.noise > 0) ? [{
                id: 'noise', title: '\u00b1',
                hint: 'one standard error of the change, by the clocks',
                value: row => row.noise,
                text: row => (row.noise > 0 ? format(row.noise) : ''),
                exact: row => humanCount(Math.round(row.noise)),
            }] : [],
            {
                id: 'part', title: 'Change %', hint: 'of the self time before',
                value: row => (row.selfBefore > 0 ? row.change /
                    row.selfBefore : row.self > 0 ? Infinity : 0),
                rank: row => (row.selfBefore > 0 ? Math.abs(row.change) /
                    row.selfBefore : row.self > 0 ? Infinity : 0),
                text: row => noteOfChange(row.self, row.selfBefore, row.noise,
                    row.calls > 0, row.callsBefore > 0),
            },
            column('self', 'Self', 'now'),
            column('selfBefore', 'before', 'self, before'),
            ...hasTotals ? [column('total', 'Total', 'now'),
                column('totalBefore', 'before', 'total, before')] : [],
            ...hasCalls && unit === 'ns' ? [
                callsColumn('calls', 'Calls', 'now'),
                callsColumn('callsBefore', 'before', 'calls, before')] : [],
            nameColumn(source.functions),
        ],
    };
}
