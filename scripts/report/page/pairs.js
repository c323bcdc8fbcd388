// Locks with the paths that wait for them; exceptions with the paths that throw
// them.

function capital(word) {
    return word[0].toUpperCase() + word.slice(1);
}

function lockOrType(row) {
    return visible(row.type !== undefined ? row.type || 'unknown type' :
        row.name || row.address);
}

// The functions of a path, the innermost first; null: unknown.
function pathText(path) {
    return path === null ? 'unknown' : path.length ?
        path.map(visible).reverse().join(' \u2190 ') : 'in no function';
}

function waitColumns() {
    return [
        nsColumn('waited_ns', 'Waited', 'by all threads together'),
        countColumn('waits', 'Waits', 'that had to wait'),
        nsColumn('max_ns', 'Longest', 'the longest wait'),
    ];
}

function textColumn(id, title, text, beside) {
    return { id, title, name: true, value: text, text, beside };
}

function lockColumns() {
    return [
        ...waitColumns(),
        countColumn('failures', 'Failed', 'given up: time was over, ...'),
        textColumn('name', 'Lock', lockOrType, row => row.kind +
            (row.object ? `, ${visible(baseName(row.object))}` : '')),
    ];
}

function waiterColumns() {
    return [
        ...waitColumns(),
        textColumn('name', 'Who waits', row => pathText(row.path)),
        textColumn('holder', 'Who held it', row => pathText(row.holder)),
    ];
}

function exceptionColumns() {
    return [
        countColumn('throws', 'Thrown', 'how often'),
        countColumn('catches', 'Caught', 'how often'),
        textColumn('name', 'Type', lockOrType),
    ];
}

function throwerColumns() {
    return [
        countColumn('throws', 'Thrown', 'how often'),
        countColumn('catches', 'Caught', 'how often'),
        textColumn('name', 'Who throws', row => pathText(row.path),
            row => row.catchers.map(each =>
                `caught ${humanCount(each.catches)} x in ` +
                pathText(each.path)).join('; ')),
    ];
}
