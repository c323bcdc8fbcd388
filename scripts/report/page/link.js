// The state as the page's address: the part after # can be kept and sent.

let linkTimer = 0, link = '';

function currentLink() {
    const params = new URLSearchParams();
    const put = (key, value, usual) => {
        if (String(value) !== String(usual))
            params.set(key, value);
    };

    put('show', `${state.kind} ${state.metric}`, usual.show);
    put('thread', state.thread, 0);
    put('order', state.order, 'size');
    put('colors', state.colors, usual.colors);
    put('up', Number(state.up), 0);
    put('search', state.pattern, '');
    put('table', state.tab, 'table');
    put('function', state.function, usual.function);
    put('path', flame.zoomed, 0);
    put('theme', document.documentElement.dataset.theme || '', '');
    if (timeline) {
        put('time', timeline.range.map(Math.round).join('-'),
            timeline.whole().map(Math.round).join('-'));
        put('span', state.span ? state.span.map(Math.round).join('-') : '', '');
        put('closed', closedLanes(), usual.closed);
        put('rates', byId('rates').value, 'rate');
        put('call', focusedCall(), '');
    }
    put('open', openedRows(), '');
    put('sort', orders(), '');
    put('lock', chosenRow('locks'), 0);
    put('type', chosenRow('exceptions'), 0);
    put('scroll', scrolled(), usual.scroll);
    return params.toString();
}

// The focused call, by its place among all lanes.
function focusedCall() {
    const at = timeline.focused;

    return at ? [times.lanes.indexOf(times.shown[at.lane]), at.depth, at.piece]
        .join('.') : '';
}

function callIn(text) {
    const [lane, depth, piece] = text.split('.').map(Number);
    const about = times.lanes[lane];
    const at = times.shown.indexOf(about);

    return text && at >= 0 && about.rows[depth] &&
        piece < about.rows[depth].count ? { lane: at, depth, piece } : null;
}

const OPEN_MOST = 200;          // rows of a tree that a link opens

function openedRows() {
    const tree = trees[state.tab];

    return tree ? [...tree.opened].slice(0, OPEN_MOST).join('_') : '';
}

// "table.total.d*callers.name.u": down or up.
function orders() {
    return [...sortedBy].map(([place, [id, down]]) =>
        `${place}.${id}.${down ? 'd' : 'u'}`).join('*');
}

function takeOrders(text) {
    sortedBy.clear();
    for (const part of text.split('*')) {
        const [place, id, to] = part.split('.');

        if (byId(place) && to)
            sortedBy.set(place, [id, to === 'd']);
    }
}

// The page, and the boxes in it that scroll.
const SCROLLED = ['graph', 'lanes', 'tree-down', 'tree-up', 'said', 'rank-table'];

function scrolled() {
    return [scrollY, ...SCROLLED.map(id => byId(id).scrollTop)]
        .map(Math.round).join('.');
}

// Boxes are as high as they will be when the drawings have been drawn.
function scrollAll(text) {
    const [top, ...tops] = text.split('.').map(part => Number(part) || 0);

    setPending('scroll', true);
    requestAnimationFrame(() => requestAnimationFrame(() => {
        SCROLLED.forEach((id, i) => { byId(id).scrollTop = tops[i] || 0; });
        scrollTo(scrollX, top);
        setPending('scroll', false);
    }));
}

function closedLanes() {
    return times.lanes.flatMap((lane, i) => (lane.closed ? [i] : [])).join('.');
}

// What the page shows when it is opened, which no link has to say.
const usual = {};

function noteUsual() {
    Object.assign(usual, {
        show: `${state.kind} ${state.metric}`, colors: state.colors,
        function: state.function, closed: timeline ? closedLanes() : '',
        scroll: scrolled(),
    });
}

// Writes the link when the state rests.
function keepLink() {
    clearTimeout(linkTimer);
    setPending('link', true);
    linkTimer = setTimeout(() => {
        setPending('link', false);
        link = currentLink();
        if (location.hash.slice(1) !== link)
            history.replaceState(null, '', link ? `#${link}` :
                location.href.split('#')[0]);
    }, 200);
}

// A range of times "1000-2000"; null: it is none.
function rangeIn(text) {
    const range = (text || '').split('-').map(Number);

    return range.length === 2 && range.every(Number.isFinite) &&
        range[0] < range[1] ? range : null;
}

function choices(id) {
    return [...byId(id).options].filter(option => !option.disabled)
        .map(option => option.value);
}

// Takes from the link what this page has; all else stays as it usually is.
function followLink() {
    const params = new URLSearchParams(location.hash.slice(1));
    const get = (key, otherwise, allowed) => {
        const value = params.has(key) ? params.get(key) : String(otherwise);

        return !allowed || allowed.includes(value) ? value : String(otherwise);
    };
    const theme = get('theme', '', ['light', 'dark', '']);

    byId('metric').value = get('show', usual.show, choices('metric'));
    [state.kind, state.metric] = byId('metric').value.split(' ');
    fillThreads();
    byId('thread').value = get('thread', 0, choices('thread'));
    state.thread = Number(byId('thread').value);
    byId('order').value = state.order = get('order', 'size', choices('order'));
    byId('colors').value = state.colors = get('colors', usual.colors,
        choices('colors'));
    byId('search').value = state.pattern = get('search', '');
    setUp(get('up', 0) === '1');
    if (theme)
        document.documentElement.dataset.theme = theme;
    else
        delete document.documentElement.dataset.theme;
    takeOrders(get('sort', ''));
    if (timeline)
        followTimes(get);
    state.function = -1;
    chooseView();
    const number = Number(get('function', usual.function));

    state.function = source.functions[number] ? number : usual.function;
    show();
    chooseTab(get('table', 'table', TABS));
    openRows(get('open', ''));
    for (const [key, id] of [['lock', 'locks'], ['type', 'exceptions']])
        choosePair(id, Number(get(key, 0)));
    const path = Number(get('path', 0));

    flame.zoom(path > 0 && path < view.count ? path : 0);
    flame.focus(flame.zoomed);
    const call = timeline && callIn(get('call', ''));

    if (call)
        timeline.focus(call);
    else if (timeline)
        forgetCall();
    chooseFunction(state.function = source.functions[number] ? number :
        usual.function);
    scrollAll(get('scroll', usual.scroll));
}

function openRows(text) {
    const tree = trees[state.tab];

    if (!tree || !text)
        return;
    tree.opened = new Set(text.split('_').map(key =>
        (state.tab === 'tree-down' ? Number(key) : key)));
    tree.fill();
}

function followTimes(get) {
    const closed = new Set(get('closed', usual.closed).split('.'));
    const range = rangeIn(get('time', '')), span = rangeIn(get('span', ''));

    times.lanes.forEach((lane, i) => { lane.closed = closed.has(String(i)); });
    byId('rates').value = get('rates', 'rate', choices('rates'));
    showRates(byId('rates').value === 'rate');
    timeline.range = range ? timeline.clip(...range) : timeline.whole();
    showSaid();
    state.span = span;
}

function listenToLink() {
    noteUsual();
    if (location.hash.length > 1)
        followLink();
    document.addEventListener('scroll', keepLink,
        { capture: true, passive: true });
    window.addEventListener('hashchange', () => {
        if (location.hash.slice(1) !== link)
            followLink();
    });
}
