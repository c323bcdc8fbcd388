// The ranks of a job: what each has of all, and of the chosen function, as a
// strip of heat and as a table.

const STRIP_ROW = 20;

// Rows { name, calls, all, own, ownBelow }, in the order of the recording.
function rankRows() {
    const apart = sourceOf(state.kind, true);
    const ranks = new Map();

    if (!apart || !apart.views[0] || !apart.views.some(each =>
        each.thread.part !== null))
        return [];
    const number = apart === source ? state.function :
        sameFunctionIn(apart, source, state.function);

    apart.views.forEach(({ thread }, i) => {
        const name = thread.part || thread.process;
        const each = apart.view(i);
        const { self, total, selfBelow } = measure(each, state.metric);

        if (!ranks.has(name))
            ranks.set(name, { name, calls: 0, all: 0, own: 0,
                bounds: new BoundOfSum() });
        const row = ranks.get(name);

        row.all += total[0];
        for (let path = 1; path < each.count; path++) {
            row.calls += each.calls[path];
            if (each.function[path] !== number)
                continue;
            row.own += self[path];
            row.bounds.add(self[path], selfBelow, path);
        }
    });
    return [...ranks.values()].map(({ bounds, ...row }) =>
        ({ ...row, ownBelow: bounds.bound() }));
}

function sameFunctionIn(to, from, number) {
    if (number < 0)
        return -1;
    const key = functionKey(from.functions[number]);

    return to.functions.findIndex(each => functionKey(each) === key);
}

class Strip extends Drawing {
    // @on(i, event): the number of a rank, or -1.
    constructor(box, canvas, on) {
        super(box, canvas);
        this.height = 2 * STRIP_ROW + 4;
        const count = () => this.picture.rows.length;

        this.follow(x => Math.floor(x / this.width * count()), count, on);
    }

    show(picture) {
        this.picture = picture;
        this.pointed = -1;
        this.resize();
    }

    draw() {
        const { context, picture } = this;
        const { rows } = picture;
        const count = Math.min(rows.length, Math.floor(this.width));
        const width = this.width / count;
        const gap = width > 4 ? 1 : 0;

        // A cell of several ranks has the largest value, so that one that differs
        // is seen.  Cells begin at whole pixels: others would mix.
        ['all', 'own'].forEach((key, line) => {
            const values = rows.map(row => row[key]);
            const most = Math.max(...values);

            for (let i = 0; i < count; i++) {
                const of = x => Math.floor(x * rows.length / count);
                const value = Math.max(...values.slice(of(i), of(i + 1)));
                const left = Math.round(i * width);
                const size = Math.round((i + 1) * width) - left - gap;

                context.globalAlpha = 1;
                context.fillStyle = picture.part;
                context.fillRect(left, line * (STRIP_ROW + 2), size, STRIP_ROW);
                context.globalAlpha = most > 0 ? value / most : 0;
                context.fillStyle = picture.accent;
                context.fillRect(left, line * (STRIP_ROW + 2), size, STRIP_ROW);
            }
        });
        context.globalAlpha = 1;
        if (this.pointed < 0)
            return;
        context.strokeStyle = picture.strong;
        context.lineWidth = 2;
        const left = this.pointed * this.width / rows.length;

        context.strokeRect(left + 1, 1, Math.max(width - gap - 2, 1),
            2 * STRIP_ROW);
    }
}

let strip;

function showRanks() {
    const rows = state.span ? [] : rankRows();

    byId('ranks').hidden = rows.length < 2;
    if (rows.length < 2)
        return;
    const { unit, label } = METRICS[state.metric];
    const format = human[unit];
    const mean = rows.reduce((sum, row) => sum + row.all, 0) / rows.length;
    const about = source.functions[state.function];
    const name = about ? shorten(shortName(visible(about.name)), 60) : '';
    const sized = { bytes: bytesColumn, count: countColumn, ns: nsColumn }[unit];
    const own = row => (row.ownBelow ? `< ${format(row.ownBelow)}` :
        format(row.own));
    const text = row => `${visible(row.name)}: ${format(row.all)}${about ?
        `; ${name}: ${own(row)} itself` : ''}`;

    byId('ranks-title').textContent = rows.every(row =>
        /^rank/.test(row.name)) ? 'Ranks' : 'Parts of the recording';
    const [least, most] = [Math.min, Math.max].map(best =>
        best(...rows.map(row => row.all)));

    const over = mean > 0 ? (100 * (most / mean - 1)).toFixed(1) : 0;

    byId('ranks-facts').textContent = `${label} of each: ${format(least)} to ` +
        `${format(most)}; the ${unit === 'ns' ? 'slowest' : 'largest'} has ` +
        `${over} % more than the mean. Above: all of it; below: ` +
        `${name || 'the chosen function'}.`;
    strip = strip || new Strip(byId('strip-box'), byId('strip'), (i, event) => {
        const row = strip.picture.rows[i];

        byId('cell').textContent = row ? strip.picture.text(row) : '';
        placeTip(event, event && row &&
            [element('strong', strip.picture.text(row))]);
    });
    strip.show({ rows, text, font: `12px ${css('--font')}`,
        part: css('--line'), accent: css('--accent'), strong: css('--text') });
    new Table(byId('rank-table'), 'By rank', [
        { ...sized('all', label), part: row => (most > 0 ? row.all / most : 0) },
        { id: 'over', title: 'Over the mean', value: row => row.all - mean,
            text: row => (mean > 0 ? signed(`${Math.abs(100 * (row.all / mean -
                1)).toFixed(1)} %`, row.all - mean) : '-') },
        { ...sized('own', about ? `${shorten(name, 24)} itself` : 'Function'),
            text: own },
        ...state.metric === 'calls' ? [] : [countColumn('calls', 'Calls')],
        textColumn('name', 'Rank', row => visible(row.name)),
    ], row => {
        strip.point(rows.indexOf(row), null);
    }).show(rows);
}
