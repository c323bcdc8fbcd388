// The state: one object holds the user's choices, and this file derives the
// rest.  Code that changes the state calls show() in page.js.

const byId = id => document.getElementById(id);
const profile = readProfile();
const state = {
    kind: '', metric: '', thread: 0,            // 0: all threads
    order: 'size', colors: '', up: false, pattern: '',
    function: -1,
    tab: 'table',
    span: null,                                 // [from, to] on the timeline
    beside: null,       // [kind, metric] of all the time, if a span has not got it
};

let source, view, measured;
let comparison, before;                         // null: nothing to compare with
let flame, above, below, table;
let times, timeline, overview;                  // undefined: no timeline

function sourceOf(kind, byThread) {
    return profile.sources.find(each => each.kind === kind &&
        each.by_thread === byThread && !each.against);
}

// The recording to compare @source with, if there is one.
function comparisonOf() {
    const other = profile.sources.find(each => each.against);

    if (!other || source.by_thread || source.isSpan ||
        other.kind !== source.kind)
        return null;
    if (!source.comparison)
        source.comparison = new Comparison(source, other);
    return metricsOf(other).includes(state.metric) ? source.comparison : null;
}

function functionKey(about) {
    return JSON.stringify([about.name, about.object, about.line]);
}

// The view of all threads and that of one number their functions separately.
function sameFunction(last, number) {
    if (!last || last === source || number < 0)
        return number;
    const key = functionKey(last.functions[number]);

    return source.functions.findIndex(each => functionKey(each) === key);
}

// The chosen thread; null: all.
function chosenThread() {
    const apart = sourceOf(state.kind, true);

    return state.thread > 0 && apart ? apart.views[Math.min(state.thread - 1,
        apart.views.length - 1)].thread : null;
}

function chooseMetric(kind, metric) {
    state.kind = kind;
    state.metric = metric;
    byId('metric').value = `${kind} ${metric}`;
}

// Of a span of time there are calls and their times.
function chooseSpan() {
    const key = JSON.stringify([state.span, state.thread]);

    if (!['time', 'calls'].includes(state.metric) || state.kind !== 'calls') {
        state.beside = [state.kind, state.metric];
        chooseMetric('calls', 'time');
    }
    if (times.spanKey !== key) {
        const base = sourceOf('calls', false);

        times.spanKey = key;
        times.spanSource = sourceOfSpan(base, times, numbersIn(base),
            state.span, chosenThread());
    }
    return times.spanSource;
}

function chooseView() {
    const last = source;

    if (!state.span && state.beside) {
        chooseMetric(...state.beside);
        state.beside = null;
    }
    source = state.span ? chooseSpan() :
        sourceOf(state.kind, state.thread > 0) || sourceOf(state.kind, false);
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
        view: tree, label, functions: source.functions.length,
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

    return {
        ...pictureOf(view, total, path => labelOf(path) +
            (view.guessed && view.guessed[path] ? ' ?' : ''),
            state.colors === 'change' && then ? changeOf : null),
        note: then && (path => noteOfChange(total[path], then.total[path],
            then.noise ? then.noise[path] : 0)),
    };
}
