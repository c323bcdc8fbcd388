// The call tree as rows: from the first functions of threads down to what they
// called, or from each function up to its callers (bottom-up).  Nodes are made
// when their parent is opened.

// A path's value.  No time is shown that is longer than that of a caller: what is left of a
// path when the cost of recording is subtracted may be less than what is left of its callees.
function shownOf(view, measured, values, path) {
    let value = values[path];

    for (let at = path; at >= 0 && state.metric === 'time'; at = view.parent[at])
        value = Math.min(value, measured.total[at]);
    return value;
}

// Top-down: a node is a path.
class PathsDown {
    constructor(view, measured) {
        this.view = view;
        this.measured = measured;
        this.all = measured.total[0];
    }

    node(path) {
        const { view, measured } = this;

        return {
            key: path, path, function: view.function[path],
            self: shownOf(view, measured, measured.self, path),
            total: shownOf(view, measured, measured.total, path),
            calls: view.calls[path], timed: view.isTimed(path),
            selfBelow: measured.selfBelow ? measured.selfBelow[path] : 0,
            totalBelow: measured.totalBelow ? measured.totalBelow[path] : 0,
            certainty: view.certainty ? view.certainty[path] : 0,
            hasMore: path + 1 < view.next[path],
        };
    }

    children({ path }) {
        const { view } = this;
        const found = [];

        for (let c = path + 1; c < view.next[path]; c = view.next[c])
            found.push(this.node(c));
        return found.sort((a, b) => b.total - a.total);
    }

    roots() {
        return this.children({ path: 0 });
    }
}

// Bottom-up: a node is a function with some of the callers above it.  Its value
// is what the function itself has on these paths; @at: [path of the function, the
// path of the last of the callers]...
class PathsUp {
    constructor(view, measured) {
        this.view = view;
        this.measured = measured;
        this.all = measured.total[0];
    }

    // Nodes of the paths @at, by the function of the last caller.
    group(at, above) {
        const { view, measured } = this;
        const groups = new Map();

        for (const [path, last] of at) {
            const number = view.function[last];

            if (last === 0)
                continue;
            if (!groups.has(number))
                groups.set(number, []);
            groups.get(number).push([path, last]);
        }
        return [...groups].map(([number, own]) => {
            const sum = values => own.reduce((all, [path]) =>
                all + values[path], 0);
            const self = Math.max(sum(measured.exactSelf), 0);
            const bounds = new BoundOfSum();

            for (const [path] of own)
                bounds.add(measured.exactSelf[path], measured.selfBelow, path);
            return {
                key: `${above} ${number}`, path: own[0][1], at: own,
                function: number, self, total: self, calls: sum(view.calls),
                timed: own.some(([path]) => view.isTimed(path)),
                selfBelow: bounds.bound(), totalBelow: 0,
                certainty: view.certainty ? own.reduce((all, [path]) =>
                    lessCertain(all, view.certainty[path]), 3) : 0,
                hasMore: own.some(([, last]) => view.parent[last] > 0),
            };
        }).filter(node => node.self > 0 || node.selfBelow > 0 ||
            node.calls > 0).sort((a, b) => b.self - a.self ||
            b.calls - a.calls);
    }

    children({ at, key }) {
        return this.group(at.map(([path, last]) =>
            [path, this.view.parent[last]]), key);
    }

    roots() {
        return this.group(Array.from({ length: this.view.count - 1 },
            (_, i) => [i + 1, i + 1]), '');
    }
}

const CHILDREN = 100;           // rows below a row, before the rest is asked for

// A table whose rows open.  @model: PathsDown or PathsUp; choose(node).
class TreeTable {
    constructor(place, caption, columns, choose) {
        this.columns = columns;
        this.choose = choose;
        this.opened = new Set();
        this.whole = new Set();         // rows of which all children are shown
        this.table = element('table', '', { class: 'numbers', role: 'treegrid' });
        this.table.append(element('caption', caption));
        const head = element('tr');

        for (const column of columns)
            head.append(element('th', column.title, { scope: 'col',
                title: column.hint || column.title,
                class: column.name ? 'name' : 'number' }));
        this.table.appendChild(element('thead')).append(head);
        this.body = this.table.appendChild(element('tbody'));
        this.table.addEventListener('keydown', event => {
            if (this.key(event))
                event.preventDefault();
        });
        place.replaceChildren(this.table);
    }

    show(model) {
        this.model = model;
        this.made = new Map();
        this.fill();
    }

    childrenOf(node) {
        if (!this.made.has(node.key))
            this.made.set(node.key, this.model.children(node));
        return this.made.get(node.key);
    }

    // Opens the largest rows, down to where no child has half of its parent.
    openLargest() {
        let rows = this.model.roots();

        while (rows.length && rows[0].hasMore) {
            const [largest] = rows;

            this.opened.add(largest.key);
            rows = this.childrenOf(largest);
            if (!rows.length || rows[0].total < largest.total / 2)
                break;
        }
        this.fill();
    }

    // Rows in the order of the table: [node, level], or [number, level, key] of
    // rows that are left out.
    rows() {
        const found = [];
        const stack = [[this.model.roots(), 1, '']];

        while (stack.length) {
            const [nodes, level, key, from = 0] = stack.pop();
            const most = this.whole.has(key) ? nodes.length : CHILDREN;

            for (let i = from; i < nodes.length; i++) {
                if (i >= most) {
                    found.push([nodes.length - most, level, key]);
                    break;
                }
                found.push([nodes[i], level]);
                if (this.opened.has(nodes[i].key) && nodes[i].hasMore) {
                    stack.push([nodes, level, key, i + 1]);
                    stack.push([this.childrenOf(nodes[i]), level + 1,
                        nodes[i].key]);
                    break;
                }
            }
        }
        return found;
    }

    fill() {
        const active = document.activeElement;
        const had = this.body.contains(active) && active.closest('tr');
        const key = had ? had.dataset.key : this.current;

        this.lines = this.rows().map(([node, level, rest]) =>
            (rest === undefined ? this.line(node, level) :
                this.restLine(node, level, rest)));
        this.body.replaceChildren(...this.lines);
        const line = this.lines.find(each => each.dataset.key === key) ||
            this.lines[0];

        if (line)
            this.goTo(line, Boolean(had));
    }

    line(node, level) {
        const isOpen = this.opened.has(node.key);
        const line = element('tr', '', { 'aria-level': level, tabindex: -1 });

        line.dataset.key = node.key;
        line.node = node;
        line.level = level;
        if (node.hasMore)
            line.setAttribute('aria-expanded', isOpen);
        for (const column of this.columns)
            line.append(column.name ? this.nameCell(column, node, level) :
                Table.prototype.numberCell.call(this, column, node));
        line.addEventListener('click', event => {
            this.goTo(line, true);
            if (event.target.matches('.opener'))
                this.toggle(node);
            else
                this.choose(node);
        });
        return line;
    }

    nameCell(column, node, level) {
        const cell = element('td', '', { class: 'name' });
        const line = cell.appendChild(element('div'));
        const text = column.text(node);

        line.style.setProperty('--level', Math.min(level - 1, 40));
        line.append(element('span', node.hasMore ? (
            this.opened.has(node.key) ? '\u25be' : '\u25b8') : '',
        { class: 'opener', 'aria-hidden': true }));
        line.append(element('span', shorten(text.length > 60 ?
            shortName(text) : text, 300), { class: 'called',
            title: shorten(text, 2000) }));
        line.append(element('span', column.beside(node), { class: 'place' }));
        cell.dataset.column = column.id;
        return cell;
    }

    restLine(count, level, key) {
        const line = element('tr', '', { 'aria-level': level, tabindex: -1 });
        const cell = element('td', `Show ${humanCount(count)} more`, {
            colspan: this.columns.length, class: 'rest' });
        const show = () => {
            this.whole.add(key);
            this.fill();
        };

        line.dataset.key = `rest ${key}`;
        line.append(cell);
        line.show = show;
        line.addEventListener('click', show);
        return line;
    }

    toggle(node) {
        if (this.opened.has(node.key))
            this.opened.delete(node.key);
        else
            this.opened.add(node.key);
        this.fill();
        keepLink();
    }

    // One row can be reached with the Tab key; arrow keys lead to the others.
    goTo(line, focus) {
        for (const each of this.lines)
            each.tabIndex = each === line ? 0 : -1;
        this.current = line.dataset.key;
        if (focus)
            line.focus();
    }

    key(event) {
        const line = event.target.closest('tbody tr');

        if (!line || event.ctrlKey || event.metaKey || event.altKey)
            return false;
        const at = this.lines.indexOf(line);
        const { node } = line;
        const isOpen = node && node.hasMore && this.opened.has(node.key);
        const step = by => {
            const next = this.lines[Math.min(Math.max(at + by, 0),
                this.lines.length - 1)];

            this.goTo(next, true);
        };
        const parent = () => {
            const above = this.lines.slice(0, at).findLast(each =>
                each.level < line.level);

            if (above)
                this.goTo(above, true);
        };
        const actions = {
            ArrowDown: () => step(1),
            ArrowUp: () => step(-1),
            Home: () => step(-Infinity),
            End: () => step(Infinity),
            ArrowRight: () => (!node || !node.hasMore ? 0 :
                isOpen ? step(1) : this.toggle(node)),
            ArrowLeft: () => (isOpen ? this.toggle(node) : parent()),
            Enter: () => (node ? this.choose(node) : line.show()),
            ' ': () => (node ? this.choose(node) : line.show()),
        };

        if (!actions[event.key])
            return false;
        actions[event.key]();
        return true;
    }
}
