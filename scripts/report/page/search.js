// The search for functions.

// Small letters also match capitals; a capital matches only itself.
function search() {
    const field = byId('search'), result = byId('found');
    let pattern;

    flame.mark(null);
    if (flameBefore)
        flameBefore.mark(null);
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
    keepLink();
}

function showFound(marks) {
    const { unit } = METRICS[state.metric];
    const count = marks.reduce((sum, mark) => sum + mark, 0);
    const [sums] = gather(view, measured, path =>
        (marks[view.function[path]] ? 0 : -1), 1);
    const total = sums ? sums.total : 0;

    flame.mark(marks);
    if (flameBefore)
        flameBefore.mark(marks);
    byId('found').textContent = `${humanCount(count)} function` +
        `${count === 1 ? '' : 's'}: ${human[unit](total)}, ` +
        percent(total, measured.total[0]);
    byId('found').dataset.value = total;
}
