// The table of functions, with the columns of the report.

// The place of a function: the object, unless there is only one, and the line.
function placeOf(about) {
    const object = about.object && !about.isInOnly ?
        visible(baseName(about.object)) : '';

    return about.file ? `${object} ${visible(baseName(about.file))}:` +
        about.line : object;
}

function nameColumn(functions) {
    return {
        id: 'name', title: 'Function', name: true,
        value: row => functions[row.function].name,
        text: row => visible(functions[row.function].name),
        beside: row => placeOf(functions[row.function]),
    };
}

function exactNs(ns) {
    return `${humanCount(ns)} ns`;
}

function timeColumn(id, title, hint, error) {
    return {
        id, title, hint,
        value: row => row.timed ? row[id] : -1,
        text: row => row.timed ? boundedNs(row[id], row[`${id}Below`]) : '-',
        exact: row => exactNs(Math.round(row[id])) +
            (error && row[error] ? ` \u00b1 ${exactNs(row[error])}` : ''),
    };
}

// What @id and "calls" have in common names how certain they are.
function callsColumn(id, title, hint) {
    const [certainty, error] = ['certainty', 'callsError'].map(key =>
        id.replace('calls', key));

    return {
        ...countColumn(id, title, hint),
        text: row => callsText(row[id], row[certainty]),
        exact: row => callsExactly(row[id], row[certainty], row[error]),
    };
}

// Times are processor time; this is the rest.  -1: unknown.
function waitingColumn() {
    return rangeColumn('waited', 'Waiting',
        'time without a processor, in the function itself');
}

function rangeColumn(id, title, hint) {
    return {
        id, title, hint,
        value: row => row[id],
        text: row => (row[id] < 0 ? '-' :
            boundedNs(row[id], row[`${id}Below`])),
        exact: row => (row[`${id}Below`] ? '' : exactNs(row[id])),
    };
}

function partColumn(rows, unit) {
    const all = rows.reduce((sum, row) => sum + row.self, 0);
    const most = rows.reduce((max, row) => Math.max(max, row.self), 0);

    return {
        id: 'percent', title: 'Self %', hint: 'self, of all there is',
        value: row => row.self,
        text: row => row.timed === false ? '-' : percent(row.self, all),
        exact: row => human[unit](row.self),
        part: row => most > 0 ? row.self / most : 0,
    };
}

function countColumn(id, title, hint) {
    return { id, title, hint, value: row => row[id],
        text: row => humanCount(row[id]) };
}

function timeColumns(source, rows) {
    const { functions } = source;
    const sampled = source.kind === 'samples';

    return [
        partColumn(rows, 'ns'),
        timeColumn('self', 'Self', 'time in the function itself', 'selfError'),
        ...source.errors ? [{
            ...timeColumn('selfError', '\u00b1',
                'one standard error of the self time'),
            text: row => row.timed && row.selfError && !row.selfBelow ?
                humanNs(row.selfError) : '',
        }] : [],
        timeColumn('total', 'Total',
            'from enter to leave; recursive calls once', 'totalError'),
        ...source.waited ? [waitingColumn()] : [],
        callsColumn('calls', sampled ? 'Samples' : 'Calls',
            sampled ? 'in which it was on the stack' : 'how often called'),
        ...sampled ? [] : [{
            ...timeColumn('mean', 'Mean', 'total by calls'),
            text: row => row.timed && row.hasMean ?
                boundedNs(row.mean, row.meanBelow) : '-',
        }],
        ...source.ranges ? [
            rangeColumn('max', 'Max', 'the longest call')] : [],
        nameColumn(functions),
    ];
}

function bytesColumn(id, title, hint) {
    return { id, title, hint, value: row => row[id],
        text: row => humanBytes(row[id]),
        exact: row => `${humanCount(row[id])} bytes` };
}

function nsColumn(id, title, hint) {
    return { id, title, hint, value: row => row[id],
        text: row => humanNs(row[id]), exact: row => exactNs(row[id]) };
}

// Of what is neither time nor calls: each path has some itself.
function otherColumns(source, rows, metric) {
    const { unit, label } = METRICS[metric];
    const sized = { bytes: bytesColumn, count: countColumn,
        ns: nsColumn }[unit];
    const besides = metric === 'waits' ? [] : memoryOfSource(source);

    return [
        partColumn(rows, unit),
        sized('self', 'Self', `${label.toLowerCase()}, by the function itself`),
        sized('total', 'Total', 'with all that it called'),
        ...besides.filter(kind => kind !== metric).map(kind =>
            (METRICS[kind].unit === 'bytes' ? bytesColumn : countColumn)(
                kind, { allocated: 'Bytes', allocations: 'Blocks',
                    peak: 'At peak', left: 'Left', lost: 'Lost' }[kind],
                `${METRICS[kind].label}, by the function itself`)),
        nameColumn(source.functions),
    ];
}

function countColumns(source, rows) {
    return [
        partColumn(rows, 'count'),
        countColumn('self', 'Calls', 'how often called'),
        nameColumn(source.functions),
    ];
}

// The rows of the table, and their columns.
function functionTable(source, view, measured, metric) {
    if (metric === 'waits' || MEMORY.includes(metric)) {
        const rows = otherRows(source, view, measured);

        return { rows, columns: otherColumns(source, rows, metric) };
    }
    if (source.times)
        return { rows: view.sums, columns: timeColumns(source, view.sums) };
    const rows = view.sums.map(row => ({ ...row, self: row.calls,
        timed: undefined }));

    return { rows, columns: countColumns(source, rows) };
}

function otherRows(source, view, measured) {
    const sums = gather(view, measured, path => view.function[path],
        source.functions.length);

    return sums.filter(row => row.total > 0).map(row => ({
        function: row.row, self: row.self, total: row.total,
        ...source.memory ? memoryOf(source, view, row.row) : {},
    }));
}

// The memory that a function allocated itself, of each kind.
function memoryOf(source, view, number) {
    if (!view.thread)
        return source.functions[number].memory;
    if (!view.memorySums) {
        view.memorySums = source.functions.map(() =>
            Object.fromEntries(MEMORY.map(kind => [kind, 0])));
        for (let i = 1; i < view.count; i++)
            for (const kind of MEMORY)
                view.memorySums[view.function[i]][kind] +=
                    view.memory[kind][i];
    }
    return view.memorySums[number];
}
