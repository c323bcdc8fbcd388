// The three tables beside the flame view: functions, the call tree, and the call
// tree bottom-up.

const TABS = ['table', 'tree-down', 'tree-up'];

function treeColumns(isUp) {
    const { unit, label } = METRICS[state.metric];
    const { metric } = state;
    const isTime = unit === 'ns' && metric !== 'waits';
    const sized = (id, title, hint) => (isTime ? timeColumn(id, title, hint) :
        { bytes: bytesColumn, count: countColumn, ns: nsColumn }[unit](
            id, title, hint));
    const all = measured.total[0];
    const what = isTime ? 'time' : label.toLowerCase();

    return [
        {
            id: 'percent', title: isUp ? 'Self %' : 'Total %',
            hint: `${what}, of all there is`, value: node => node.total,
            text: node => (node.timed || !isTime ?
                percent(node.total, all) : '-'),
            part: node => (all > 0 ? node.total / all : 0),
        },
        ...isUp ? [] : [sized('total', 'Total', 'with all that it called')],
        ...before && !isUp ? [{
            id: 'change', title: 'Change', hint: 'of the total; in its tip ' +
                'one standard error',
            value: node => node.total - before.total[node.path],
            text: node => noteOfChange(node.total, before.total[node.path],
                before.noise ? before.noise[node.path] : 0),
            exact: node => signed(human[unit](Math.abs(node.total -
                before.total[node.path])), node.total -
                before.total[node.path]) + (before.noise ?
                ` \u00b1 ${human[unit](before.noise[node.path])}` : ''),
        }] : [],
        sized('self', 'Self', isUp ?
            'of the function at the top, called on this way' :
            'by the function itself'),
        ...metric === source.kind ? [] : [callsColumn('calls',
            source.kind === 'samples' ? 'Samples' : 'Calls')],
        { ...nameColumn(source.functions), title: isUp ?
            'Function, and its callers' : 'Function' },
    ];
}

function showTrees() {
    for (const [id, Model, caption] of [
        ['tree-down', PathsDown, 'Call tree'],
        ['tree-up', PathsUp, 'Bottom-up']]) {
        if (state.tab !== id)
            continue;
        const choose = node => {
            flame.go(node.path);
            chooseFunction(node.function);
        };
        const table = new TreeTable(byId(id), caption, treeColumns(
            id === 'tree-up'), choose);
        const last = trees[id];

        table.show(new Model(view, measured));
        if (last && last.model.view === view) {
            table.opened = last.opened;
            table.whole = last.whole;
            table.fill();
        } else {
            table.openLargest();
        }
        trees[id] = table;
    }
}

const trees = {};

function chooseTab(tab) {
    state.tab = tab;
    keepLink();
    for (const id of TABS) {
        const button = byId(`tab-${id}`);

        byId(id).hidden = id !== tab;
        button.setAttribute('aria-selected', id === tab);
        button.tabIndex = id === tab ? 0 : -1;
    }
    showTrees();
}

function listenToTabs() {
    for (const [i, id] of TABS.entries()) {
        const button = byId(`tab-${id}`);

        button.addEventListener('click', () => chooseTab(id));
        button.addEventListener('keydown', event => {
            const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];

            if (!step)
                return;
            const next = TABS[(i + step + TABS.length) % TABS.length];

            chooseTab(next);
            byId(`tab-${next}`).focus();
            event.preventDefault();
        });
    }
}
