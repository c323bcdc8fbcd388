// One function: its figures, its callers and callees, and the durations of its
// calls.

// By the caller (or callee), the calls of function @number.  The first function
// of a thread has no caller: its calls are at index "number of functions".
function callersOf(view, measured, number, count) {
    return gather(view, measured, path => {
        if (view.function[path] !== number)
            return -1;
        const caller = view.function[view.parent[path]];

        return caller < 0 ? count : caller;
    }, count + 1);
}

function calleesOf(view, measured, number, count) {
    return gather(view, measured, path =>
        (view.function[view.parent[path]] === number ? view.function[path] :
            -1), count + 1);
}

const NOBODY = { name: '(nobody: first in its thread)', object: null,
    file: null };

function relativeColumns(source, unit) {
    const functions = [...source.functions, NOBODY];
    const format = human[unit];
    const column = (id, title, hint) => ({
        id, title, hint, value: row => row[id],
        text: row => unit === 'ns' && row[id] < 0.5 ?
            boundedNs(row[id], row[`${id}Below`]) : format(row[id]),
        exact: row => humanCount(row[id]),
    });

    return [
        column('total', 'Total', 'with all that it called'),
        column('self', 'Self', 'in the called function itself'),
        callsColumn('calls', source.kind === 'samples' ? 'Samples' : 'Calls'),
        nameColumn(functions),
    ];
}

// A line "name value" of a list of figures.
function fact(list, name, value, title = '') {
    if (value === null)
        return;
    list.appendChild(element('div')).append(element('dt', name),
        element('dd', value, { title }));
}

function functionFacts(source, view, number) {
    const row = view.sums.find(each => each.function === number);
    const list = element('dl', '', { class: 'facts' });
    const time = (name, ns, error, below) => fact(list, name,
        boundedNs(ns, below) + (error && !below ?
            ` \u00b1 ${humanNs(error)}` : ''), below ? '' : exactNs(ns));

    if (row && row.timed && source.times) {
        time('Self', row.self, row.selfError, row.selfBelow);
        time('Total', row.total, row.totalError, row.totalBelow);
    }
    if (row)
        fact(list, source.kind === 'samples' ? 'Samples' : 'Calls',
            callsExactly(row.calls, row.certainty, row.callsError));
    if (row && row.timed && source.times && source.kind !== 'samples' &&
        row.hasMean)
        time('Mean', row.mean, 0, row.meanBelow);
    if (row && row.min >= 0)
        time('Shortest', row.min, 0, row.minBelow);
    if (row && row.max >= 0)
        time('Longest', row.max, 0, row.maxBelow);
    if (row && row.open)
        fact(list, 'Open at the end', humanCount(row.open));
    if (row && row.older)
        fact(list, 'Open before the attach', humanCount(row.older));
    return list;
}

// A line for each doubling of the duration, with the number of calls.
function histogramTable(source, histogram) {
    const table = element('table', '', { class: 'numbers histogram' });
    const head = element('tr');
    const body = element('tbody');
    const most = Math.max(...histogram.map(([, calls]) => calls));
    const first = histogram[0][0];
    const last = histogram[histogram.length - 1][0];
    const calls = new Map(histogram);

    table.append(element('caption', 'How long its calls took'),
        element('thead'), body);
    head.append(element('th', 'From', { scope: 'col', class: 'number' }),
        element('th', 'Calls', { scope: 'col', class: 'number' }),
        element('th', 'Share', { scope: 'col', class: 'bar' }));
    table.tHead.append(head);
    for (let bucket = first; bucket <= last; bucket++) {
        const line = body.appendChild(element('tr'));
        const from = bucket ? Math.round(source.bucket_ns * 2 ** bucket) : 0;
        const count = calls.get(bucket) || 0;
        const bar = element('td', '', { class: 'bar' });

        line.append(element('td', humanNs(from), { class: 'number' }),
            element('td', humanCount(count), { class: 'number' }), bar);
        bar.append(element('span'));
        bar.firstChild.hidden = !count;
        bar.firstChild.style.width = `${100 * count / most}%`;
    }
    return table;
}
