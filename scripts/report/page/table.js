// A table, sorted by the column whose title is pressed.  It shows a limited
// number of rows; a button below it shows all others.

const ROWS = 30;

// How the user has sorted tables, by the id of their place: [column's id, down].
const sortedBy = new Map();

class Table {
    // @columns: [{ id, title, hint, value(row), text(row), name }]; one whose
    // @name is true holds a button that calls @choose(row, column).  If
    // rank(row) exists, it is the sort key instead of the value.
    constructor(place, caption, columns, choose) {
        this.columns = columns;
        this.choose = choose;
        this.place = place.id;
        this.takeSort();
        this.rows = [];
        this.table = element('table', '', { class: 'numbers' });
        this.table.append(element('caption', caption));
        this.head = this.table.appendChild(element('thead'));
        this.body = this.table.appendChild(element('tbody'));
        this.more = element('button', '', { class: 'more', type: 'button' });
        this.more.addEventListener('click', () => {
            this.all = true;
            this.fill();
        });
        place.replaceChildren(this.table, this.more);
        this.makeHead();
    }

    makeHead() {
        const row = this.head.appendChild(element('tr'));

        for (const column of this.columns) {
            const cell = element('th', '', {
                scope: 'col', class: column.name ? 'name' : 'number',
            });
            const button = element('button', column.title, {
                type: 'button', title: column.hint || column.title,
            });

            button.addEventListener('click', () => this.sortBy(column));
            cell.append(button);
            row.append(cell);
            column.cell = cell;
        }
    }

    // The user's order, if this table has its column.
    takeSort() {
        const [id, down] = sortedBy.get(this.place) || [];
        const column = this.columns.find(each => each.id === id);

        this.sort = column ? { column, down } :
            { column: this.columns[0], down: true };
    }

    sortBy(column) {
        const same = this.sort.column === column;
        const down = same ? !this.sort.down : !column.name;

        sortedBy.set(this.place, [column.id, down]);
        this.takeSort();
        this.fill();
        keepLink();
    }

    // @all: show all rows at once.
    show(rows, selected, all = false) {
        this.rows = rows;
        this.selected = selected;
        this.all = all;
        this.fill();
    }

    fill() {
        const { column, down } = this.sort;
        const rank = column.rank || column.value;
        const sorted = this.rows.map(row => [rank(row), row]);
        const compare = column.name ? new Intl.Collator('en').compare :
            (a, b) => a - b;

        sorted.sort((a, b) => (down ? compare(b[0], a[0]) :
            compare(a[0], b[0])));
        const shown = this.all ? sorted : sorted.slice(0, ROWS);

        for (const each of this.columns) {
            each.cell.removeAttribute('aria-sort');
            if (each === column)
                each.cell.setAttribute('aria-sort',
                    down ? 'descending' : 'ascending');
        }
        this.body.replaceChildren(...shown.map(([, row]) => this.line(row)));
        this.more.hidden = shown.length === sorted.length;
        this.more.textContent = `Show all ${humanCount(sorted.length)}`;
    }

    isSelected(row) {
        return Boolean(this.selected && this.selected(row));
    }

    line(row) {
        const line = element('tr');

        line.classList.toggle('selected', this.isSelected(row));
        for (const column of this.columns)
            line.append(column.name ? this.nameCell(column, row) :
                this.numberCell(column, row));
        return line;
    }

    numberCell(column, row) {
        const text = column.text(row);
        const cell = element('td', text, { class: 'number' });

        cell.dataset.column = column.id;
        cell.dataset.value = column.value(row);
        if (column.exact && text !== '' && text !== '-')
            cell.title = column.exact(row);
        if (column.part) {
            cell.classList.add('part');
            cell.style.setProperty('--part', `${100 * column.part(row)}%`);
        }
        return cell;
    }

    nameCell(column, row) {
        const cell = element('td', '', { class: 'name' });
        const text = column.text(row);
        const brief = text.length > 60 ? shortName(text) : text;
        const button = element('button', shorten(brief, 300), {
            type: 'button', class: 'function',
        });

        cell.dataset.column = column.id;
        button.title = shorten(text, 2000);
        if (this.isSelected(row))
            button.setAttribute('aria-current', 'true');
        button.addEventListener('click', () => this.choose(row, column));
        const line = cell.appendChild(element('div'));

        line.append(button);
        if (column.beside)
            line.append(element('span', column.beside(row),
                { class: 'place' }));
        return cell;
    }
}
