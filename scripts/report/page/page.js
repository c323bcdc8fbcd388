// What one sees and does: state is one object; whatever changes it calls
// show(), which draws what depends on it.

const PAPER = 1000;             // pixels of a picture on paper, from above

const byId = id => document.getElementById(id);
const profile = readProfile();
const state = {
    kind: '', metric: '', thread: 0,            // 0: all threads
    order: 'size', colors: '', up: false, pattern: '',
    function: -1,
};

let source, view, measured;
let comparison, before;                         // or null: nothing to compare
let flame, above, below, table;
let times, timeline;                            // or undefined: there is none

// --- what is shown ---

function sourceOf(kind, byThread) {
    return profile.sources.find(each => each.kind === kind &&
        each.by_thread === byThread && !each.against);
}

// What @source is compared with, if it is.
function comparisonOf() {
    const other = profile.sources.find(each => each.against);

    if (!other || source.by_thread || other.kind !== source.kind)
        return null;
    if (!source.comparison)
        source.comparison = new Comparison(source, other);
    return metricsOf(other).includes(state.metric) ? source.comparison : null;
}

function functionKey(about) {
    return JSON.stringify([about.name, about.object, about.line]);
}

// The views of all threads and of one have functions of their own numbers.
function sameFunction(last, number) {
    if (!last || last === source || number < 0)
        return number;
    const key = functionKey(last.functions[number]);

    return source.functions.findIndex(each => functionKey(each) === key);
}

function chooseView() {
    const last = source;

    source = sourceOf(state.kind, state.thread > 0) ||
        sourceOf(state.kind, false);
    view = source.view(Math.min(Math.max(state.thread - 1, 0),
        source.views.length - 1));
    measured = measure(view, state.metric);
    comparison = comparisonOf();
    before = comparison && comparison.paths(view, state.metric);
    state.function = sameFunction(last, state.function);
}

function css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name)
        .trim();
}

function labelOf(path) {
    return path === 0 ? (view.thread ? threadName(view.thread) : 'all') :
        visible(source.functions[view.function[path]].name);
}

function makePalette() {
    return new Palette(source, view.sums, state.colors === 'change' ?
        'object' : state.colors);
}

function pictureOf(tree, total, label, colorOf = null) {
    const palette = makePalette();
    const { function: numbers } = tree;

    return {
        view: tree, label,
        ...lay(tree, total, state.order, source.functions),
        color: path => (colorOf ? colorOf(path, palette.dark) :
            palette.color(numbers[path])),
        font: `12px ${css('--font')}`,
        text: css('--frame-text'),
        outline: css('--text'),
        found: css('--found'),
        merged: css('--merged'),
    };
}

function picture() {
    const { total } = measured;
    const then = before;
    const changeOf = (path, dark) => changeColor(change(total[path],
        then.total[path], then.noise ? then.noise[path] : 0), dark);

    return pictureOf(view, total, labelOf,
        state.colors === 'change' && then ? changeOf : null);
}

function show() {
    chooseView();
    showLegend();
    flame.show(picture());
    showTable();
    showFunction();
    search();
    showFrame(flame.focused);
    showLeftOut();
}

function showLeftOut() {
    const text = source.left_out ? `${humanCount(source.left_out)} paths ` +
        (source.times ? `that took ${humanNs(source.least)} or less` :
            `with ${humanCount(source.least)} calls or less`) + ', and what ' +
        'is below them, are not in the picture; the table of functions has ' +
        'all.' : '';

    byId('left-out').textContent = text;
    byId('left-out').hidden = !text;
}

function showLegend() {
    const palette = makePalette();
    const items = state.colors === 'change' ? [['less than before', -1],
        ['as before, or by the clock\u2019s error', 0], ['more, or new', 1]].map(([name, part]) =>
        [name, changeColor(part, palette.dark), '']) :
        palette.groups.slice(0, 8).map(group => [group ?
            visible(baseName(group)) : 'unknown', palette.groupColor(group),
        visible(group || '')]);

    byId('legend').hidden = state.colors === 'function';
    byId('legend').replaceChildren(...items.map(([name, color, title]) => {
        const item = element('li', name, { title });
        const swatch = element('span', '', { class: 'swatch' });

        swatch.style.background = color;
        item.prepend(swatch);
        return item;
    }));
}

// --- the frame one points at, and the one that has the focus ---

function changeText(now, then) {
    return then > 0 ? signed(`${Math.abs(100 * (now - then) / then).toFixed(1)
    } %`, now - then) : now > 0 ? 'new' : 'as now';
}

function frameFacts(path) {
    const { unit, label } = METRICS[state.metric];
    const format = human[unit];
    const list = element('dl', '', { class: 'facts' });
    const all = measured.total[0];
    const known = state.metric !== 'time' || path === 0 || view.isTimed(path);
    const error = (errors, at) => unit === 'ns' && errors && errors[at] ?
        ` \u00b1 ${humanNs(errors[at])}` : '';

    if (known || measured.total[path] > 0)
        fact(list, unit === 'ns' ? 'Total' : label,
            `${format(measured.total[path])}` +
            `${error(view.totalError, path)} ` +
            `(${percent(measured.total[path], all)})`,
            humanCount(measured.total[path]));
    if (before)
        fact(list, 'Before', `${format(before.total[path])} (` +
            `${changeText(measured.total[path], before.total[path])})`);
    if (path === 0)
        return list;
    if (known)
        fact(list, 'Self', format(measured.self[path]) +
            error(view.selfError, path), humanCount(measured.self[path]));
    if (state.metric !== source.kind)
        fact(list, source.kind === 'samples' ? 'Samples' : 'Calls',
            humanCount(view.calls[path]));
    if (unit === 'ns' && source.kind === 'calls' && known &&
        view.calls[path] > view.untimed[path])
        fact(list, 'Mean', humanNs(view.total[path] /
            (view.calls[path] - view.untimed[path])));
    if (unit === 'ns' && view.min && view.min[path] && view.max[path])
        fact(list, 'From \u2013 to', `${humanNs(view.min[path] - 1)} \u2013 ` +
            humanNs(view.max[path] - 1));
    if (view.open[path])
        fact(list, 'Open', humanCount(view.open[path]));
    return list;
}

function showFrame(path) {
    const name = byId('frame-name');

    name.textContent = shorten(labelOf(path), 400);
    byId('frame-place').textContent = path ?
        placeOf(source.functions[view.function[path]]) : '';
    byId('frame-facts').replaceChildren(frameFacts(path));
    byId('zoom-out').disabled = flame.zoomed === 0;
}

function showTip(path, event) {
    const about = path > 0 ? source.functions[view.function[path]] : NOBODY;

    placeTip(event, path < 0 ? null : [
        element('strong', shorten(labelOf(path), 400)),
        element('span', placeOf(about), { class: 'place' }),
        frameFacts(path)]);
}

// Beside the mouse; no @contents: none.
function placeTip(event, contents) {
    const tip = byId('tip');

    tip.hidden = !contents;
    if (!contents)
        return;
    tip.replaceChildren(...contents);
    const right = event.clientX + 16 + tip.offsetWidth < innerWidth;
    const below = event.clientY + 20 + tip.offsetHeight < innerHeight;

    tip.style.left = `${right ? event.clientX + 12 :
        Math.max(event.clientX - tip.offsetWidth - 12, 4)}px`;
    tip.style.top = `${below ? event.clientY + 16 :
        Math.max(event.clientY - tip.offsetHeight - 12, 4)}px`;
}

function focusFrame(path) {
    showFrame(path);
    if (path > 0)
        chooseFunction(view.function[path]);
}

// --- the timeline ---

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

    timeline.show({
        lanes: times.lanes, duration: times.duration_ns,
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
    return times.lanes[at.lane].rows[at.depth];
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

// A tree around the chosen function.
function showAround(drawing, make) {
    const { view: tree, total } = make(view, measured, state.function,
        source.functions.length + 1);
    const rows = Math.min(tree.deepest + 1, 10);

    byId(`paths-${drawing.box.id}`).hidden = !total[0];
    if (!total[0])
        return;
    drawing.box.style.height = `${rows * ROW}px`;
    drawing.show(pictureOf(tree, total, path => visible(
        source.functions[tree.function[path]].name)));
    drawing.total = total;
}

function showAroundTip(drawing, path, event) {
    if (path < 0) {
        placeTip(event, null);
        return;
    }
    const about = source.functions[drawing.picture.view.function[path]];
    const list = element('dl', '', { class: 'facts' });
    const { unit, label } = METRICS[state.metric];

    fact(list, unit === 'ns' ? 'Total' : label,
        `${human[unit](drawing.total[path])} (` +
        `${percent(drawing.total[path], drawing.total[0])} of all its)`);
    placeTip(event, [element('strong', shorten(visible(about.name), 400)),
        element('span', placeOf(about), { class: 'place' }), list]);
}

// The calls of function @number in the timeline, the longest first.
function showCalls(number) {
    const place = byId('calls');
    const { found, all } = timeline ? callsOf(times,
        numbersOfTimes().map(each => each === number)) : { found: [] };

    place.hidden = !found.length;
    if (!found.length)
        return;
    new Table(place, found.length < all ? `The ${humanCount(found.length)} ` +
        `longest of its ${humanCount(all)} calls in the timeline` :
        'Its calls in the timeline', callColumns(times),
    at => timeline.go(at)).show(found);
}

// --- functions ---

function showTable() {
    const alone = functionTable(source, view, measured, state.metric);
    const { rows, columns } = comparison ? comparedTable(source, alone.rows,
        comparison.rows(state.metric), METRICS[state.metric].unit) : alone;

    table = new Table(byId('table'), 'Functions', columns, row =>
        chooseFunction(row.function));
    table.rowsOfAll = rows;
    fillTable();
}

// Those that were looked for, or all.
function fillTable() {
    const marks = flame.marks;

    table.show(table.rowsOfAll.filter(row => !marks || marks[row.function]),
        row => row.function === state.function, table.all);
}

function chooseFunction(number) {
    if (number < 0 || number >= source.functions.length)
        return;
    state.function = number;
    showFunction();
    fillTable();
}

function showFunction() {
    const { functions } = source;
    const number = state.function;
    const about = functions[number];

    byId('function').hidden = !about;
    if (!about)
        return;
    const { unit } = METRICS[state.metric];
    const columns = () => relativeColumns(source, unit);
    const choose = row => chooseFunction(row.function);
    const rows = sums => sums.map(row => ({ ...row, function: row.row }));

    byId('function-name').textContent = shorten(visible(about.name), 5000);
    byId('function-place').textContent = [about.object, about.file &&
        `${about.file}:${about.line}`].filter(Boolean).map(visible).join('  ');
    byId('function-facts').replaceChildren(functionFacts(source, view, number));
    for (const [id, caption, relatives] of [
        ['callers', 'Callers', callersOf], ['callees', 'Callees', calleesOf]]) {
        const made = new Table(byId(id), caption, columns(), choose);

        made.show(rows(relatives(view, measured, number, functions.length)));
        byId(id).hidden = made.rows.length === 0;
    }
    showAround(above, treeAbove);
    showAround(below, treeBelow);
    showCalls(number);
    byId('histogram').replaceChildren(...about.histogram.length ?
        [histogramTable(source, about)] : []);
}

function copyName() {
    const about = source.functions[state.function];

    if (!about)
        return;
    const say = text => {
        byId('copied').textContent = text;
        setTimeout(() => { byId('copied').textContent = ''; }, 2000);
    };

    navigator.clipboard.writeText(about.name).then(() => say('copied'),
        () => say('the browser does not let pages copy'));
}

// --- looking for functions ---

// Small letters stand for capital ones as well, a capital for itself.
function search() {
    const field = byId('search'), result = byId('found');
    let pattern;

    flame.mark(null);
    field.setCustomValidity('');
    result.textContent = '';
    if (state.pattern) {
        try {
            pattern = new RegExp(state.pattern,
                /[A-Z]/.test(state.pattern) ? '' : 'i');
        } catch (error) {
            field.setCustomValidity(error.message);
            result.textContent = 'not a regular expression';
        }
    }
    if (pattern)
        showFound(Uint8Array.from(source.functions, each =>
            pattern.test(each.name) ? 1 : 0));
    showTimes();
    fillTable();
}

function showFound(marks) {
    const { unit } = METRICS[state.metric];
    const count = marks.reduce((sum, mark) => sum + mark, 0);
    const [sums] = gather(view, measured, path =>
        (marks[view.function[path]] ? 0 : -1), 1);
    const total = sums ? sums.total : 0;

    flame.mark(marks);
    byId('found').textContent = `${humanCount(count)} function` +
        `${count === 1 ? '' : 's'}: ${human[unit](total)}, ` +
        percent(total, measured.total[0]);
    byId('found').dataset.value = total;
}

// --- the controls ---

function threadName(thread) {
    return `${thread.tid} ${visible(thread.name)}`.trim();
}

function fillThreads() {
    const select = byId('thread');
    const apart = sourceOf(state.kind, true);
    const several = apart &&
        new Set(apart.views.map(each => each.thread.process)).size > 1;

    select.replaceChildren(new Option('All threads', 0));
    for (const [i, { thread }] of apart ? apart.views.entries() : [])
        select.add(new Option((several ?
            `${visible(thread.process)} / ` : '') + threadName(thread), i + 1));
    select.value = state.thread;
    byId('threads').hidden = !apart;
}

function fillMetrics() {
    const select = byId('metric');

    for (const each of profile.sources.filter(one => !one.by_thread &&
        !one.against))
        for (const metric of metricsOf(each)) {
            const { label } = METRICS[metric];

            select.add(new Option(metric === 'time' && each.kind === 'samples' &&
                profile.sources[0].kind === 'calls' ? 'Time, by samples' :
                label, `${each.kind} ${metric}`));
        }
    select.value = profile.starts_with ? `calls ${profile.starts_with}` :
        select.options[0].value;
    [state.kind, state.metric] = select.value.split(' ');
}

function onChange(id, change) {
    byId(id).addEventListener('change', event => {
        change(event.target.value);
        show();
    });
}

function listen() {
    onChange('metric', value => {
        const [kind, metric] = value.split(' ');

        if (kind !== state.kind)
            state.thread = 0;
        state.kind = kind;
        state.metric = metric;
        fillThreads();
    });
    onChange('thread', value => { state.thread = Number(value); });
    onChange('order', value => { state.order = value; });
    onChange('colors', value => { state.colors = value; });
    byId('search').addEventListener('input', event => {
        state.pattern = event.target.value;
        search();
    });
    byId('up').addEventListener('click', event => {
        state.up = !state.up;
        event.currentTarget.setAttribute('aria-pressed', state.up);
        flame.setUp(state.up);
    });
    byId('zoom-out').addEventListener('click', zoomOut);
    byId('times-out').addEventListener('click', () => timeline.zoomOut());
    byId('closer').addEventListener('click', () => timeline.zoom(2));
    byId('farther').addEventListener('click', () => timeline.zoom(1 / 2));
    byId('copy').addEventListener('click', copyName);
    byId('theme').addEventListener('click', () => setTheme(!isDark()));
    byId('help-button').addEventListener('click', () =>
        byId('help').showModal());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
    document.addEventListener('keydown', pressed);
    window.addEventListener('beforeprint', () => print(true));
    window.addEventListener('afterprint', () => print(false));
}

function setTheme(dark) {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    show();
}

function zoomOut() {
    flame.zoom(0);
    flame.focus(flame.focused);
}

// Paper is white, and does not scroll.
function print(begins) {
    const root = document.documentElement;

    if (begins)
        root.dataset.before = root.dataset.theme || '';
    root.dataset.theme = begins ? 'light' : root.dataset.before;
    if (!root.dataset.theme)
        delete root.dataset.theme;
    for (const drawing of [flame, above, below, timeline]) {
        if (!drawing || !drawing.picture)
            continue;
        const { style } = drawing.box;

        if (begins)
            drawing.before = style.height;
        style.height = begins ? `${Math.min(drawing.height, PAPER)}px` :
            drawing.before;
        drawing.resize();
    }
    show();
}

function pressed(event) {
    const typing = event.target.matches('input, select, dialog *');

    if (event.ctrlKey || event.metaKey || event.altKey)
        return;
    if (event.key === 'Escape') {
        escape();
    } else if (!typing && event.key === '/') {
        event.preventDefault();
        byId('search').select();
    } else if (!typing && event.key === '?') {
        byId('help').showModal();
    } else if (!typing && event.key === 'c') {
        copyName();
    } else if (!typing && event.key === 't') {
        setTheme(!isDark());
    }
}

// What was done last: looking for something, then zooming.
function escape() {
    const field = byId('search');

    if (byId('help').open)
        return;
    if (state.pattern) {
        state.pattern = field.value = '';
        search();
        byId('flame').focus();
    } else if (document.activeElement === byId('timeline')) {
        timeline.zoomOut();
    } else {
        zoomOut();
    }
}

function showHead() {
    const name = profile.program ? visible(baseName(profile.program)) :
        'unknown program';
    const [command, ...facts] = profile.facts.trimEnd().split('\n');

    document.title = `${name} \u2013 ${visible(profile.recording)}`;
    byId('program').textContent = name;
    byId('command').textContent = command;
    byId('facts').replaceChildren(...facts.map(line => element('li',
        line.trim(), / LOST /.test(line) ? { class: 'bad' } : {})));
    byId('warnings').replaceChildren(...profile.warnings.map(text =>
        element('li', visible(text))));
    byId('warnings').hidden = !profile.warnings.length;
    const other = profile.sources.find(each => each.against);

    if (other)
        byId('facts').append(element('li', 'compared with ' +
            `${visible(other.recording)}: one run each, so what is noise is ` +
            'not known (profrun diff judges that)'));
    byId('version').textContent = `shim ${profile.shim}, ` +
        visible(profile.recording);
}

// High enough for all that is not too narrow to see, if there is room.
function fitGraph() {
    const { view: shown, from, to } = flame.picture;
    let deepest = 0;

    for (let i = 0; i < shown.count; i++)
        if ((to[i] - from[i]) * flame.width >= 2)
            deepest = Math.max(deepest, shown.depth[i]);
    const most = Math.max(Math.floor(innerHeight * 0.6 / ROW), 12);

    byId('graph').style.height =
        `${Math.min(Math.max(deepest + 1, 4), most) * ROW}px`;
}

// Two tables: what there is, and of what is chosen who has to do with it.
function showPairs() {
    const choose = (row, { id }) => {
        const path = (id === 'holder' ? row.holder : row.path) || [];

        chooseFunction(source.functions.findIndex(each =>
            each.name === path[path.length - 1]));
    };

    for (const [id, rows, columns, parts, partColumns] of [
        ['locks', profile.locks, lockColumns, 'waiters', waiterColumns],
        ['exceptions', profile.exceptions, exceptionColumns, 'throwers',
            throwerColumns]]) {
        if (!rows || !rows.length)
            continue;
        const name = byId(id).getAttribute('aria-label');
        const first = byId(id).querySelector('.first');
        let chosen = rows[0];
        const table = new Table(first, name, columns(), row => {
            chosen = row;
            table.fill();
            showParts();
        });
        const showParts = () => new Table(byId(id).querySelector('.second'),
            `${capital(parts)}: ${shorten(lockOrType(chosen), 100)}`,
            partColumns(), choose).show(chosen[parts]);

        byId(id).hidden = false;
        table.show(rows, row => row === chosen);
        showParts();
    }
}

function begin() {
    showHead();
    fillMetrics();
    fillThreads();
    flame = new Flame(byId('graph'), byId('flame'), {
        point: showTip,
        focus: focusFrame,
        zoom: () => { byId('zoom-out').disabled = flame.zoomed === 0; },
    });
    [above, below] = ['above', 'below'].map(id => {
        const drawing = new Flame(byId(id), byId(`${id}-flame`), {
            point: (path, event) => showAroundTip(drawing, path, event),
            focus: () => {},
            zoom: () => {},
        });

        return drawing;
    });
    above.setUp(true);
    chooseView();
    state.colors = comparison ? 'change' : usefulGroups(source, view.sums);
    byId('change').hidden = byId('change').disabled = !comparison;
    byId('colors').value = state.colors;
    readTimes();
    listen();
    show();
    showPairs();
    fitGraph();
    if (timeline)
        byId('lanes').style.height = `${Math.min(timeline.height,
            Math.max(Math.floor(innerHeight * 0.5), 240))}px`;
    const rows = view.sums;

    if (rows.length)
        chooseFunction(rows.reduce((a, b) =>
            ((b.self || b.calls) > (a.self || a.calls) ? b : a)).function);
    document.documentElement.dataset.ready = performance.now();
}

begin();
