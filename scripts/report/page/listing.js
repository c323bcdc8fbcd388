// The source of the chosen function, with the samples of each line, if the page has
// source lines (--source).

// The listing of function @about: other sources have the function by another number.
function listingOf(about) {
    const { listings } = profile;
    const { functions } = profile.sources[listings.source];

    return listings.functions.find(each =>
        ['name', 'object', 'file', 'line'].every(key =>
            functions[each.function][key] === about[key]));
}

function sampleCell(samples, column, part = 0) {
    const { period_ns: period } = profile.listings;
    const cell = element('td', !samples ? '' : period > 0 ?
        humanNs(samples * period) : humanCount(samples), { class: 'number' });

    cell.dataset.column = column;
    cell.dataset.value = samples;
    if (samples)
        cell.title = `${humanCount(samples)} samples`;
    if (part) {
        cell.classList.add('part');
        cell.style.setProperty('--part', `${100 * part}%`);
    }
    return cell;
}

function listingLine(listing, [number, self, total, text]) {
    const line = element('tr');
    const share = listing.self ? self / listing.self : 0;
    const code = element('td', '', { class: 'code' });

    code.append(element('code', text === null ? '' : visible(text)));
    line.append(
        element('td', self ? percent(self, listing.self) : '',
            { class: 'number' }),
        sampleCell(self, 'self', share), sampleCell(total, 'total'),
        element('td', number || '?', { class: 'number' }), code);
    line.dataset.line = number;
    return line;
}

function listingTable(listing, { file, path, newer, lines }) {
    const table = element('table', '', { class: 'numbers' });
    const head = element('tr');
    const body = element('tbody');
    let next = lines.length ? lines[0][0] : 0;

    table.append(element('caption', visible(path || file) + (path ? newer ?
        ' (changed after the program was built: lines may have moved)' : '' :
        ': not found when the page was made; --source-dir tells where ' +
            'sources are')), element('thead'), body);
    for (const [title, hint] of [['Share', 'of the function\u2019s own time'],
        ['Self', 'in the line itself'], ['Total', 'with its callees'],
        ['Line', '']])
        head.append(element('th', title,
            { scope: 'col', class: 'number', title: hint }));
    head.append(element('th', 'Source', { scope: 'col', class: 'code' }));
    table.tHead.append(head);
    for (const line of lines) {
        if (line[0] > next)
            body.appendChild(element('tr', '', { class: 'gap' })).append(
                element('td', '\u2026', { colspan: 5 }));
        body.append(listingLine(listing, line));
        next = line[0] + 1;
    }
    return table;
}

// What to say where a function has no listing.
function noListing() {
    const { functions, left_out: left } = profile.listings;

    return left ? `Its source is not in the page: it has no samples, or is ` +
        `one of ${humanCount(left)} functions with less time than the ` +
        `${humanCount(functions.length)} that have their source here.` :
        'No sample is in it, so its source is not in the page.';
}

function showListing(about) {
    const place = byId('listing');

    place.hidden = !profile.listings;
    if (!profile.listings)
        return;
    const listing = listingOf(about);

    if (!listing || !listing.files.length) {
        place.replaceChildren(element('p', listing ?
            'No line of it is known: compile with -g, and do not strip.' :
            noListing(), { class: 'note' }));
        return;
    }
    place.replaceChildren(element('h3', 'Samples by line'),
        ...listing.files.map(file => {
            const box = element('div', '', { class: 'listing', tabindex: 0,
                role: 'region', 'aria-label': 'Source of ' +
                    visible(baseName(file.file)) });

            box.append(listingTable(listing, file));
            return box;
        }));
    // The hottest line is in view.
    for (const box of place.querySelectorAll('.listing')) {
        const rows = [...box.querySelectorAll('tr[data-line]')];
        const self = row => Number(row.cells[1].dataset.value);
        const hottest = rows.reduce((a, b) => (self(b) > self(a) ? b : a));

        box.scrollTop = hottest.offsetTop - box.offsetTop -
            box.clientHeight / 2;
    }
}
