// The controls of the page: buttons, menus and keys.

const PAPER = 1000;             // width of a printed drawing, in pixels

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
        state.beside = null;
        fillThreads();
    });
    onChange('thread', value => { state.thread = Number(value); });
    onChange('order', value => { state.order = value; });
    onChange('colors', value => { state.colors = value; });
    byId('search').addEventListener('input', event => {
        state.pattern = event.target.value;
        search();
    });
    byId('up').addEventListener('click', () => setUp(!state.up));
    for (const what of ['paths', 'timeline'])
        for (const type of ['svg', 'png'])
            byId(`${what}-${type}`).addEventListener('click', () =>
                savePicture(what, type));
    byId('zoom-out').addEventListener('click', zoomOut);
    for (const [id, act] of [
        ['hit-back', () => jumpInPaths(-1)], ['hit-next', () => jumpInPaths(1)],
        ['call-back', () => jumpOnTimeline(-1)],
        ['call-next', () => jumpOnTimeline(1)],
        ['lanes-all', () => timeline.closeAll(
            timeline.picture.lanes.some(lane => !lane.closed))],
        ['to-holder', () => goToHolder()],
        ['span-view', () => timeline.setSpan(timeline.range)],
        ['span-zoom', () => timeline.move(timeline.clip(...state.span))],
        ['span-none', () => timeline.setSpan(null)]])
        byId(id).addEventListener('click', act);
    byId('rates').addEventListener('change', event =>
        showRates(event.target.value === 'rate'));
    byId('search').addEventListener('keydown', event => {
        if (event.key === 'Enter')
            jumpInPaths(event.shiftKey ? -1 : 1);
    });
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

function setUp(up) {
    state.up = up;
    byId('up').setAttribute('aria-pressed', up);
    flame.setUp(up);
    if (flameBefore)
        flameBefore.setUp(up);
    keepLink();
}

function setTheme(dark) {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    show();
}

function zoomOut() {
    flame.zoom(0);
    flame.focus(flame.focused);
}

// Paper is white and does not scroll.
function print(begins) {
    const root = document.documentElement;

    if (begins)
        root.dataset.before = root.dataset.theme || '';
    root.dataset.theme = begins ? 'light' : root.dataset.before;
    if (!root.dataset.theme)
        delete root.dataset.theme;
    for (const drawing of [flame, flameBefore, above, below, timeline]) {
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
    } else if (!typing && event.key.toLowerCase() === 'n') {
        jump(event.key === 'n' ? 1 : -1);
    } else if (!typing && event.key === 'c') {
        copyName();
    } else if (!typing && event.key === 't') {
        setTheme(!isDark());
    }
}

// Undoes the last step: the search, then the zoom.
function escape() {
    const field = byId('search');

    if (byId('help').open)
        return;
    if (state.pattern) {
        state.pattern = field.value = '';
        search();
        byId('flame').focus();
    } else if (state.span) {
        timeline.setSpan(null);
    } else if (document.activeElement === byId('timeline')) {
        timeline.zoomOut();
    } else {
        zoomOut();
    }
}
