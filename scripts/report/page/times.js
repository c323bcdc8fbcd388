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
    addWaits(times.lanes, times.waits);
    addMessages(times);
    for (const lane of times.lanes)
        lane.title = laneTitle(lane, several);
    timeline = new Timeline(byId('lanes'), byId('timeline'), {
        point: showCallTip,
        wait: showWaitTip,
        curve: showCurveTip,
        focus: focusCall,
        zoom: showRange,
        span: chooseTimes,
        lanes: () => showLaneButton(),
        drawn: showTimesDrawn,
    });
    byId('times').hidden = false;
    overview = new Overview(byId('overview-box'), byId('overview'), timeline);
    showSaid();
    showNotes();
}

// What follows each picture of the timeline.
function showTimesDrawn() {
    if (overview)
        overview.drawNow();
    showLegendSoon();
    keepLink();
}

function showNotes() {
    const constant = times.lanes.flatMap(lane => lane.allCounters.filter(
        each => each.isConstant));
    const isSum = times.lanes.some(lane => lane.counters.some(
        each => each.isSum));

    byId('merged').textContent = (times.merged ? `${humanCount(times.merged)} ` +
        `of ${humanCount(times.calls)} calls, all shorter than ` +
        `${humanNs(times.least_ns)}, are shown together with those beside and ` +
        'below them, in grey; all others one by one.' :
        `All ${humanCount(times.calls)} calls are there one by one.`) +
        (times.values_left_out ? ` The arguments and results of ${
            humanCount(times.values_left_out)} calls are left out.` : '') +
        (times.marks_left_out ? ` ${humanCount(times.marks_left_out)} marks ` +
        'are left out.' : '') + gapsText() + waitsNote() +
        messagesNote() + (constant.length ?
        ` Not shown, as they do not change: ${constant.map(each =>
            `${each.name} = ${each.text(each.points[0].value)}`)
            .join(', ')}.` : '');
    byId('rates-label').hidden = !isSum;
}

// What grows is shown as its rate, or as it is.
function showRates(rates) {
    for (const lane of times.lanes)
        for (const counter of lane.counters)
            counter.show(rates);
    timeline.drawSoon();
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

// By function of the timeline, its number in @from; -1: it is hidden.
function numbersIn(from) {
    const numbers = new Map(from.functions.map((about, number) =>
        [functionKey(about), number]));

    return times.functions.map(about => {
        const number = numbers.get(functionKey(about));

        return number === undefined ? -1 : number;
    });
}

function numbersOfTimes() {
    if (times.source !== source) {
        times.source = source;
        times.numbers = numbersIn(source);
    }
    return times.numbers;
}

function showTimes() {
    if (!timeline)
        return;
    const numbers = numbersOfTimes();
    const palette = makePalette();
    const names = times.functions.map(about => visible(about.name));

    times.shown = lanesOf(times, view.thread);
    const picture = {
        functions: times.functions.length,
        lanes: times.shown, duration: times.duration_ns,
        color: number => palette.color(numbers[number]),
        label: number => names[number],
        font: `12px ${css('--font')}`,
        text: css('--frame-text'), strong: css('--text'),
        muted: css('--muted'), line: css('--line'), ground: css('--panel'),
        found: css('--found'), merged: css('--merged'), bad: css('--bad'),
        accent: css('--accent'), part: css('--part-color'),
        curve: css('--curve'), shape: css('--shape'), wait: css('--wait'),
        message: css('--message'),
        marks: flame.marks && numbers.map(number => flame.marks[number]),
    };

    timeline.span = state.span;
    timeline.show(picture);
    overview.show(picture);
    showRange();
    showSpan();
    showLaneButton();
}

// The button opens or closes all lanes.
function showLaneButton() {
    const { lanes } = timeline.picture;
    const closes = lanes.some(lane => !lane.closed);

    byId('lanes-all').textContent = closes ? 'Close lanes' : 'Open lanes';
    byId('lanes-all').hidden = lanes.length < 2;
    fitLanes();
}

// As high as needed, if there is room.
function fitLanes() {
    const most = Math.max(Math.floor(innerHeight * 0.6), 240);

    byId('lanes').style.height = `${Math.min(timeline.height, most)}px`;
}

// The calls of the chosen span are all that the page shows.
function chooseTimes() {
    state.span = timeline.span;
    show();
}

function showSpan() {
    const [from, to] = state.span || timeline.range;

    byId('span').hidden = !state.span;
    byId('span').dataset.range = `${from} ${to}`;
    byId('span-text').textContent = state.span ? 'Tables and call paths are ' +
        `of ${timeText(from, (to - from) / 100)} \u2013 ` +
        `${timeText(to, (to - from) / 100)}, ${humanNs(to - from)}: as ` +
        'recorded, the cost of recording is not subtracted' : '';
}

function showCurveTip({ counter, ns, value }, event) {
    timeline.pointed = null;
    timeline.drawSoon();
    placeTip(event, [element('strong', `${counter.title}: ` +
        counter.text(value)),
    element('span', `at ${timeText(ns, 1)}`, { class: 'place' })]);
}

function showRange() {
    const [from, to] = timeline.range;

    byId('times-range').textContent = [from, to].map(time =>
        timeText(time, (to - from) / 100)).join(' \u2013 ');
    byId('times-range').dataset.range = `${from} ${to}`;
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
    addWaitFacts(list, waitsOf(times.shown[at.lane], at));
    return list;
}

function showWaitTip(wait, event) {
    timeline.pointed = null;
    timeline.drawSoon();
    const at = holderOf(timeline.picture, wait);
    const list = element('dl', '', { class: 'facts' });

    fact(list, 'Its holder was in', at && shorten(callName(at), 200));
    placeTip(event, [element('strong', `Waited ${waitText(wait)}`),
        element('span', `from ${timeText(wait.from, 1)}`, { class: 'place' }),
        list]);
}

function showCallTip(at, event) {
    placeTip(event, at && [
        element('strong', shorten(callName(at), 400)),
        element('span', callPlace(at), { class: 'place' }),
        callFacts(at)]);
}

function forgetCall() {
    timeline.focused = null;
    timeline.drawSoon();
    byId('to-holder').hidden = true;
    for (const id of ['call-name', 'call-place', 'call-facts'])
        byId(id).replaceChildren();
}

function focusCall(at) {
    const number = rowOf(at).number(at.piece);

    byId('call-name').textContent = shorten(callName(at), 400);
    byId('call-place').textContent = callPlace(at);
    byId('call-facts').replaceChildren(callFacts(at));
    keepLink();
    byId('to-holder').hidden = !waitToFollow();
    // A step to another call of the same function changes nothing below.
    if (number >= 0 && numbersOfTimes()[number] !== state.function)
        chooseFunction(numbersOfTimes()[number]);
}
