// The table of functions, and all views of the chosen function.

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
    const { found, all } = timeline ?
        longestCalls(times, numbersOfTimes(), number) : { found: [] };

    place.hidden = !found.length;
    if (!found.length)
        return;
    new Table(place, found.length < all ? `The ${humanCount(found.length)} ` +
        `longest of its ${humanCount(all)} calls in the timeline` :
        'Its calls in the timeline', callColumns(times),
    at => timeline.go(at)).show(found);
}

function showTable() {
    const alone = functionTable(source, view, measured, state.metric);
    const { rows, columns } = comparison ? comparedTable(source, alone.rows,
        comparison.rows(state.metric), METRICS[state.metric].unit) : alone;

    table = new Table(byId('table'), 'Functions', columns, row =>
        chooseFunction(row.function));
    table.rowsOfAll = rows;
    fillTable();
}

// Shows the functions that the search found, or all.
function fillTable() {
    const marks = flame.marks;

    table.show(table.rowsOfAll.filter(row => !marks || marks[row.function]),
        row => row.function === state.function, table.all);
}

function chooseFunction(number) {
    if (number < 0 || number >= source.functions.length)
        return;
    state.function = number;
    keepLink();
    showRanks();
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

    byId('function-name').textContent = shorten(visible(about.name), 500);
    byId('function-name').title = about.name.length > 500 ?
        shorten(visible(about.name), 5000) : '';
    byId('function-place').textContent = [about.object, about.file &&
        `${about.file}:${about.line}`].filter(Boolean).map(visible).join('  ');
    byId('function-facts').replaceChildren(functionFacts(source, view, number));
    showListing(about);
    for (const [id, caption, relatives] of [
        ['callers', 'Callers', callersOf], ['callees', 'Callees', calleesOf]]) {
        const made = new Table(byId(id), caption, columns(), choose);

        made.show(rows(relatives(view, measured, number, functions.length)));
        byId(id).hidden = made.rows.length === 0;
    }
    showAround(above, treeAbove);
    showAround(below, treeBelow);
    showCalls(number);
    const { histogram } = view.sums.find(each =>
        each.function === number) || { histogram: [] };

    byId('histogram').replaceChildren(...histogram.length ?
        [histogramTable(source, histogram)] : []);
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
