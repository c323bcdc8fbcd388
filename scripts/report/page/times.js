// The timeline in the page, which numbers its functions separately.

function laneTitle(lane, several) {
    const name = (several ? `${visible(lane.process)} / ` : '') +
        threadName(lane);

    return `${name}${lane.track ? `, coroutine ${lane.track}` : ''}: ` +
        `${humanCount(lane.calls)} calls`;
}

function readTimes() {
    if (!profile.timeline)
        return;
    times = readCalls(profile);
    const several = new Set(times.lanes.map(lane => lane.process)).size > 1;

    addMarks(times.lanes, times.marks, times.gaps);
    for (const lane of times.lanes)
        lane.title = laneTitle(lane, several);
    timeline = new Timeline(byId('lanes'), byId('timeline'), {
        point: showCallTip,
        focus: focusCall,
        zoom: showRange,
    });
    byId('times').hidden = false;
    showSaid();
    byId('merged').textContent = (times.merged ? `${humanCount(times.merged)} ` +
        `of ${humanCount(times.calls)} calls, all shorter than ` +
        `${humanNs(times.least_ns)}, are shown together with those beside and ` +
        'below them, in grey; all others one by one.' :
        `All ${humanCount(times.calls)} calls are there one by one.`) +
        (times.values_left_out ? ` The arguments and results of ${
            humanCount(times.values_left_out)} calls are left out.` : '') +
        (times.marks_left_out ? ` ${humanCount(times.marks_left_out)} marks ` +
        'are left out.' : '') + gapsText();
}

function gapsText() {
    const shorter = times.gaps_left_out ? ` (and ${
        humanCount(times.gaps_left_out)} shorter ones, not shown)` : '';

    return times.gaps.length ? ` ${humanCount(times.gaps.length)} times` +
        `${shorter} a thread had no processor: a line under its name, red ` +
        'where others had them all, grey where it waited.' : '';
}

function showSaid() {
    const rows = saidIn(times.lanes);

    if (!rows.length)
        return;
    new Table(byId('said'), 'Marks, ranges and counters', SAID_COLUMNS(),
        row => {
            const width = row.took > 0 ? row.took * 1.1 :
                (timeline.range[1] - timeline.range[0]) / 10;
            const middle = row.from + Math.max(row.took, 0) / 2;

            timeline.move(timeline.clip(middle - width / 2,
                middle + width / 2));
        }).show(rows);
}

// Converts numbers of functions to the timeline's.
function numbersOfTimes() {
    if (times.source !== source) {
        const numbers = new Map(source.functions.map((about, number) =>
            [functionKey(about), number]));

        times.source = source;
        times.numbers = times.functions.map(about => {
            const number = numbers.get(functionKey(about));

            return number === undefined ? -1 : number;
        });
    }
    return times.numbers;
}

function showTimes() {
    if (!timeline)
        return;
    const numbers = numbersOfTimes();
    const palette = makePalette();
    const names = times.functions.map(about => visible(about.name));

    times.shown = times.lanes.filter(lane => !view.thread ||
        (lane.tid === view.thread.tid &&
            lane.process === view.thread.process));
    timeline.show({
        lanes: times.shown, duration: times.duration_ns,
        color: number => palette.color(numbers[number]),
        label: number => names[number],
        font: `12px ${css('--font')}`,
        text: css('--frame-text'), strong: css('--text'),
        muted: css('--muted'), line: css('--line'), ground: css('--panel'),
        found: css('--found'), merged: css('--merged'), bad: css('--bad'),
        accent: css('--accent'), part: css('--part-color'),
        marks: flame.marks && numbers.map(number => flame.marks[number]),
    });
    showRange();
}

function showRange() {
    const [from, to] = timeline.range;

    byId('times-range').textContent = [from, to].map(time =>
        timeText(time, (to - from) / 100)).join(' \u2013 ');
    byId('times-out').disabled = timeline.isWhole();
}

function rowOf(at) {
    return times.shown[at.lane].rows[at.depth];
}

function callName(at) {
    const row = rowOf(at);
    const number = row.number(at.piece);

    return number < 0 ? `${humanCount(row.calls[at.piece])} calls shorter than ` +
        humanNs(times.least_ns) : visible(times.functions[number].name);
}

function callPlace(at) {
    const number = rowOf(at).number(at.piece);

    return number < 0 ? '' : placeOf(times.functions[number]);
}

function callFacts(at) {
    const row = rowOf(at);
    const list = element('dl', '', { class: 'facts' });
    const begin = row.begin[at.piece], end = row.end[at.piece];

    fact(list, 'From', timeText(begin, 1), exactNs(begin));
    fact(list, row.isOpen(at.piece) ? 'Still open after' : 'Took',
        humanNs(end - begin), exactNs(end - begin));
    if (row.calls[at.piece])
        fact(list, 'In calls', humanNs(row.busy[at.piece]),
            exactNs(row.busy[at.piece]));
    fact(list, 'Depth', humanCount(at.depth + 1));
    const [passed, result] = row.values.get(at.piece) || [null, null];

    fact(list, 'Arguments', passed);
    fact(list, 'Result', result);
    return list;
}

function showCallTip(at, event) {
    placeTip(event, at && [
        element('strong', shorten(callName(at), 400)),
        element('span', callPlace(at), { class: 'place' }),
        callFacts(at)]);
}

function focusCall(at) {
    const number = rowOf(at).number(at.piece);

    byId('call-name').textContent = shorten(callName(at), 400);
    byId('call-place').textContent = callPlace(at);
    byId('call-facts').replaceChildren(callFacts(at));
    if (number >= 0)
        chooseFunction(numbersOfTimes()[number]);
}
