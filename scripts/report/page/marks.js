// The program's marks, ranges and counters for each thread of the timeline; and
// where calls are missing.

const FLAGS = {
    mark: mark => mark.text,
    pause: () => 'not recorded from here',
    resume: () => 'to here',
    lost: mark => `${humanCount(mark.value)} calls lost`,
};

function flagsOf(marks) {
    return marks.filter(mark => FLAGS[mark.kind]).map(mark => ({
        ns: mark.ns, title: FLAGS[mark.kind](mark), bad: mark.kind !== 'mark',
    }));
}

// An end belongs to the latest open range of its name; a range without an end
// lasts until @end.  The result has rows whose ranges do not overlap.
function rangesOf(marks, end) {
    const open = [], ranges = [], rows = [];

    for (const mark of marks) {
        if (mark.kind === 'begin') {
            open.push({ from: mark.ns, to: end, text: mark.text });
            ranges.push(open[open.length - 1]);
        } else if (mark.kind === 'end') {
            const at = open.findLastIndex(range => range.text === mark.text);

            if (at >= 0)
                open.splice(at, 1)[0].to = mark.ns;
        }
    }
    for (const range of ranges) {
        const row = rows.find(each => each[each.length - 1].to <= range.from);

        if (row)
            row.push(range);
        else
            rows.push([range]);
    }
    return rows;
}

// The times without a processor, by thread and time.
function gapsByThread(gaps) {
    const threads = new Map();

    for (const [thread, waits, ns, took] of gaps) {
        if (!threads.has(thread))
            threads.set(thread, []);
        threads.get(thread).push({ from: ns, to: ns + took, waits });
    }
    for (const own of threads.values())
        own.sort((a, b) => a.from - b.from);
    return threads;
}

// @marks and @gaps of all threads, as written by html.c.
function addMarks(lanes, marks, gaps) {
    const byThread = gapsByThread(gaps);
    const all = marks.map(([thread, kind, ns, value, text]) =>
        ({ thread, kind, ns, value, text: visible(text || '') }));

    for (const lane of lanes) {
        const own = lane.track ? [] :
            all.filter(mark => mark.thread === lane.thread);

        lane.gaps = !lane.track && byThread.get(lane.thread) || [];
        lane.flags = flagsOf(own);
        lane.ranges = rangesOf(own, lane.end_ns);
        lane.allCounters = countersOf(own);
        lane.counters = lane.allCounters.filter(each => !each.isConstant);
    }
}

// All marks, ranges and counters with their times, as rows of a table.
function saidIn(lanes) {
    return lanes.flatMap(lane => [
        ...lane.flags.map(flag => ({ from: flag.ns, took: -1,
            text: flag.title, lane })),
        ...lane.ranges.flat().map(range => ({ from: range.from,
            took: range.to - range.from, text: range.text, lane })),
        ...lane.allCounters.flatMap(counter => counter.points.map(point => ({
            from: point.ns, took: -1, lane,
            text: `${counter.name} = ${point.value}` }))),
    ]);
}

const SAID_COLUMNS = () => [
    {
        id: 'from', title: 'From', hint: 'since the start',
        value: row => row.from, rank: row => -row.from,
        text: row => timeText(row.from, 1), exact: row => exactNs(row.from),
    }, {
        id: 'took', title: 'Took', hint: 'ranges only',
        value: row => row.took,
        text: row => (row.took < 0 ? '' : humanNs(row.took)),
        exact: row => exactNs(row.took),
    },
    textColumn('name', 'What the program said', row => row.text,
        row => threadName(row.lane)),
];
