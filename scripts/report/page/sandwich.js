// Around one function: all paths below its calls as one tree, and all paths to
// them, reversed, as another.  If the function calls itself, only the outermost
// calls count; the inner ones are below them.

// limit of steps from a call towards its thread's first function
const STEPS_UP = 1000;

// A tree that is built step by step and then drawn by Flame.
class Growing {
    constructor(number) {
        this.functions = [number];
        this.parents = [-1];
        this.totals = [0];
        this.places = new Map();
    }

    // The place of @number below @parent.
    below(parent, number, width) {
        const key = parent * width + number;
        let place = this.places.get(key);

        if (place === undefined) {
            place = this.functions.length;
            this.places.set(key, place);
            this.functions.push(number);
            this.parents.push(parent);
            this.totals.push(0);
        }
        return place;
    }

    // The tree as a View: numbered in depth-first order.  @places: by path.
    view() {
        const count = this.functions.length;
        const children = this.parents.map(() => []);
        const view = {
            count, deepest: 0, parent: new Int32Array(count),
            next: new Uint32Array(count), depth: new Uint32Array(count),
            function: new Int32Array(count),
        };
        const total = new Float64Array(count);
        const places = new Uint32Array(count);
        const stack = [[0, -1]];
        let made = 0;

        for (let i = 1; i < count; i++)
            children[this.parents[i]].push(i);
        while (stack.length) {
            const [place, parent] = stack.pop();
            const i = made++;

            view.parent[i] = parent;
            view.depth[i] = parent < 0 ? 0 : view.depth[parent] + 1;
            view.deepest = Math.max(view.deepest, view.depth[i]);
            view.function[i] = this.functions[place];
            total[i] = this.totals[place];
            places[i] = place;
            for (const child of children[place].reverse())
                stack.push([child, i]);
        }
        for (let i = count - 1; i >= 0; i--) {
            view.next[i] = Math.max(view.next[i], i + 1);
            if (i > 0)
                view.next[view.parent[i]] = Math.max(
                    view.next[view.parent[i]], view.next[i]);
        }
        return { view, total, places };
    }
}

// Calls take(path) for the outermost calls of function @number.
function outermost(view, number, take) {
    for (let i = 1; i < view.count;)
        if (view.function[i] === number) {
            take(i);
            i = view.next[i];
        } else {
            i++;
        }
}

function treeBelow(view, measured, number, width) {
    const tree = new Growing(number);
    const places = new Map();

    outermost(view, number, first => {
        places.set(first, 0);
        tree.totals[0] += measured.total[first];
        for (let i = first + 1; i < view.next[first]; i++) {
            const place = tree.below(places.get(view.parent[i]),
                view.function[i], width);

            places.set(i, place);
            tree.totals[place] += measured.total[i];
        }
    });
    return tree.view();
}

function treeAbove(view, measured, number, width) {
    const tree = new Growing(number);

    outermost(view, number, first => {
        const total = measured.total[first];
        let place = 0, steps = 0;

        tree.totals[0] += total;
        for (let i = view.parent[first]; i > 0 && steps < STEPS_UP;
            i = view.parent[i], steps++) {
            place = tree.below(place, view.function[i], width);
            tree.totals[place] += total;
        }
    });
    return tree.view();
}
