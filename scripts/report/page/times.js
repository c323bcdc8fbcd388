// The timeline in the page: its numbers for functions are its own.

function laneTitle(lane, several) {
    const name = (several ? `${visible(lane.process)} / ` : '') +
        threadName(lane);

    return `${name}${lane.track ? `, coroutine ${lane.track}` : ''}: ` +
        `${humanCount(lane.calls)} calls`;
}

const MARKS = {
    mark: mark => mark.text,
    begin: mark => `[ ${mark.text}`,
    end: mark => `${mark.text} ]`,
    counter: mark => `${mark.text} = ${mark.value}`,
    pause: () => 'not recorded from here',
    resume: () => 'to here',
    lost: mark => `${humanCount(mark.value)} calls lost`,
};

function readTimes() {
    if (!profile.timeline)
        return;
    times = readCalls(profile);
    const several = new Set(times.lanes.map(lane => lane.process)).size > 1;
    const marks = times.marks.map(([thread, kind, ns, value, text]) => {
        const mark = { thread, ns, value, text: visible(text || '') };

        return { ...mark, title: MARKS[kind](mark),
            bad: ['pause', 'resume', 'lost'].includes(kind) };
    });

    for (const lane of times.lanes) {
        lane.title = laneTitle(lane, several);
        lane.marks = lane.track ? [] : marks.filter(mark =>
            mark.thread === lane.thread);
    }
    timeline = new Timeline(byId('lanes'), byId('timeline'), {
        point: showCallTip,
        focus: focusCall,
        zoom: showRange,
    });
    byId('times').hidden = false;
    byId('merged').textContent = (times.merged ? `${humanCount(times.merged)} ` +
        `of ${humanCount(times.calls)} calls, all shorter than ` +
        `${humanNs(times.least_ns)}, are shown together with those beside and ` +
        'below them, in grey; all others one by one.' :
        `All ${humanCount(times.calls)} calls are there one by one.`) +
        (times.marks_left_out ? ` ${humanCount(times.marks_left_out)} marks ` +
        'are left out.' : '');
}

// The functions of the timeline have numbers of their own.
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
        accent: css('--accent'),
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
