// The page: its initial content, and everything that depends on the state.

function show() {
    chooseView();
    flame.show(picture());
    showBefore();
    showTimes();
    drawMemory();
    showTable();
    showTrees();
    showRanks();
    showFunction();
    search();
    showFrame(flame.focused);
    showLeftOut();
    keepLink();
}

function showHead() {
    const name = profile.program ? visible(baseName(profile.program)) :
        'unknown program';
    const [command, ...facts] = profile.facts.trimEnd().split('\n');

    document.title = `${name} \u2013 ${visible(profile.recording)}`;
    byId('program').textContent = name;
    byId('command').textContent = shorten(command, 1000);
    byId('facts').replaceChildren(...facts.map(line => element('li',
        line.trim(), / LOST /.test(line) ? { class: 'bad' } : {})));
    byId('warnings').replaceChildren(...profile.warnings.map(text =>
        element('li', visible(text))));
    byId('warnings').hidden = !profile.warnings.length;
    const other = profile.sources.find(each => each.against);

    if (other) {
        byId('beside-before').textContent =
            `Before: ${visible(other.recording)}`;
        byId('beside-now').textContent = `Now: ${visible(profile.recording)}`;
        byId('facts').append(element('li', 'compared with ' +
            `${visible(other.recording)}: one run each, so the noise is ` +
            'not known (profrun diff tells, from several runs)'));
    }
    byId('version').textContent = `shim ${profile.shim}, ` +
        visible(profile.recording);
}

// High enough for all paths that are wide enough to be visible, if there is
// room.
function fitGraph() {
    let deepest = 0;

    for (const { picture, width } of [flame, ...before ? [flameBefore] : []]) {
        const { view: shown, from, to } = picture;

        for (let i = 0; i < shown.count; i++)
            if ((to[i] - from[i]) * width >= 2)
                deepest = Math.max(deepest, shown.depth[i]);
    }
    const most = Math.max(Math.floor(innerHeight * 0.6 / ROW), 12);

    for (const id of ['graph', 'graph-before'])
        byId(id).style.height =
            `${Math.min(Math.max(deepest + 1, 4), most) * ROW}px`;
}

const pairs = {};

// The number of the chosen lock or type.
function chosenRow(id) {
    return pairs[id] ? pairs[id].chosen() : 0;
}

function choosePair(id, number) {
    if (pairs[id])
        pairs[id].choose(number);
}

// Two tables: the locks or types, and the paths of the chosen one.
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
            keepLink();
        });

        pairs[id] = {
            chosen: () => rows.indexOf(chosen),
            choose: number => {
                table.takeSort();
                table.choose(rows[number] || rows[0]);
            },
        };
        const showParts = () => new Table(byId(id).querySelector('.second'),
            `${capital(parts)}: ${shorten(lockOrType(chosen), 100)}`,
            partColumns(), choose).show(chosen[parts]);

        byId(id).hidden = false;
        table.show(rows, row => row === chosen);
        showParts();
    }
}

// The path with the largest value of its own, and its function.
function largestPath() {
    const { self } = measured;
    let best = 0;

    for (let i = 1; i < view.count; i++)
        if (self[i] > 0 && (!best || self[i] > self[best]))
            best = i;
    return best;
}

// The function with the largest value.
function largestFunction() {
    const { rows } = functionTable(source, view, measured, state.metric);

    return rows.reduce((a, b) => ((b.self || b.calls) > (a.self || a.calls) ?
        b : a), { function: -1, self: 0, calls: -1 }).function;
}

function makeFlames() {
    flame = new Flame(byId('graph'), byId('flame'), {
        point: showTip,
        focus: focusFrame,
        zoom: path => {
            byId('zoom-out').disabled = flame.zoomed === 0;
            zoomBefore(path);
            keepLink();
        },
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
}

function begin() {
    showHead();
    // Hidden until here: the browser may paint a page that it has read in part, and the
    // head's lines would move it down.
    document.querySelector('main').hidden = false;
    fillMetrics();
    fillThreads();
    makeFlames();
    chooseView();
    state.function = largestFunction();
    state.colors = comparison ? 'change' : usefulGroups(source, view.sums);
    byId('change').hidden = byId('change').disabled = !comparison;
    byId('colors').value = state.colors;
    readTimes();
    listen();
    listenToTabs();
    show();
    showPairs();
    showMemory();
    fitGraph();
    if (!['time', 'calls', 'samples'].includes(state.metric))
        flame.go(largestPath());
    if (timeline) {
        timeline.openSome(Math.max(Math.floor(innerHeight * 0.6), 240));
        showLaneButton();
    }
    listenToLink();
    showLegend();
    document.documentElement.dataset.ready = performance.now();
}

begin();
