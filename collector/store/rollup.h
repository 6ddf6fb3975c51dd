/* Aggregates sorted op executions: one row for each node and device, and one row for each node. */
#ifndef TFPROF_ROLLUP_H
#define TFPROF_ROLLUP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NONE_ID UINT32_MAX

/* Columns of int64: `base`, then those of aggregation.INPUTS in its order. */
enum { BASE, START, OP_START, OP_END, START_FIX, END_FIX, TOTAL, PEAK, LIVE, OUTPUT, TEMP, PERSISTENT, INPUTS };

/* The sums of one row, in the order of aggregation.RESULTS; they wrap around, like pyarrow's. */
typedef struct {
    uint64_t traces, runs, sum_us, requested_bytes, peak_bytes, residual_bytes, output_bytes;
} sums;

enum { RESULTS = sizeof(sums) / 8 };

/* Op executions, sorted by node, device and trace. */
typedef struct {
    size_t length;
    const uint32_t *node, *device, *trace;
    const int64_t *in[INPUTS];
} ops;

/* Facts about nodes and devices: the canonical device of each node, and whether a device can be
 * canonical. */
typedef struct {
    const uint32_t *canonical;
    size_t nodes;
    const uint8_t *flags;
    size_t devices;
} known;

/* A row of ROLLUP. */
typedef struct {
    uint32_t node, device, canonical;
    sums sums;
} row;

typedef struct {
    row *rows;
    size_t size, room;
    uint32_t *seen, *more; /* traces of a node, and the buffer into which more traces are merged */
    size_t seen_size, seen_room;
} table;

/* Make room for `more` elements of `each` bytes after the first `size`; false if memory is exhausted. */
static bool grow(void *pointer, size_t *room, size_t size, size_t more, size_t each) {
    void *at;
    memcpy(&at, pointer, sizeof at);
    if (*room - size >= more) return true;
    size_t wanted = 2 * (size + more);
    at = realloc(at, wanted * each);
    if (!at) return false;
    memcpy(pointer, &at, sizeof at);
    *room = wanted;
    return true;
}

/* Convert ns to µs, rounded down. */
static int64_t floor_us(int64_t ns) { return ns / 1000 - (ns % 1000 < 0); }

static int64_t wrapped(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* Add one execution to the sums of its run, unless it has no start time. */
static void add(sums *to, const ops *from, size_t at) {
#define IN(name) (from->in[name][at])
    int64_t start = wrapped(IN(BASE), IN(START)), start_us = floor_us(start);
    if (wrapped(start_us, IN(START_FIX)) <= 0) return;
    int64_t end = wrapped(start, wrapped(IN(OP_START), IN(OP_END)));
    uint64_t us = (uint64_t)floor_us(end) - (uint64_t)start_us + (uint64_t)IN(END_FIX);
    uint64_t kept = (uint64_t)IN(PERSISTENT) + (uint64_t)IN(TEMP);
    to->runs++;
    to->sum_us += us ? us : 1;
    to->requested_bytes += (uint64_t)IN(TOTAL) + kept;
    to->peak_bytes += (uint64_t)IN(PEAK) + kept;
    to->residual_bytes += (uint64_t)IN(LIVE) + (uint64_t)IN(PERSISTENT);
    to->output_bytes += (uint64_t)IN(OUTPUT);
#undef IN
}

/* Append the row of the executions from `at` to `end`, which are of one node on one device. */
static bool add_run(table *to, const ops *from, size_t at, size_t end) {
    if (!grow(&to->rows, &to->room, to->size, 1, sizeof *to->rows)) return false;
    row *made = &to->rows[to->size++];
    memset(made, 0, sizeof *made);
    made->node = from->node[at];
    made->device = from->device[at];
    made->canonical = NONE_ID;
    for (size_t i = at; i < end; i++) {
        made->sums.traces += i == at || from->trace[i] != from->trace[i - 1];
        add(&made->sums, from, i);
    }
    return true;
}

/* Merge the traces of a run into the seen traces of its node, without duplicates; both ascend. */
static bool see_traces(table *to, const ops *from, size_t at, size_t end) {
    size_t room = to->seen_room, old = 0, size = 0;
    if (!grow(&to->seen, &room, to->seen_size, end - at, sizeof *to->seen)) return false;
    if (!grow(&to->more, &to->seen_room, to->seen_size, end - at, sizeof *to->more)) return false;
    while (at < end || old < to->seen_size) {
        bool mine = old == to->seen_size || (at < end && from->trace[at] < to->seen[old]);
        uint32_t trace = mine ? from->trace[at++] : to->seen[old++];
        if (!size || to->more[size - 1] != trace) to->more[size++] = trace;
    }
    uint32_t *seen = to->seen;
    to->seen = to->more;
    to->more = seen;
    to->seen_size = size;
    return true;
}

static bool can_be_canonical(const known *of, uint32_t device) { return device < of->devices && of->flags[device]; }

/* Append the rows of the node whose executions begin at `at`: one per device, and the node's row.
 * Return the end of its executions, 0 if memory is exhausted. */
static size_t add_node(table *to, const ops *from, const known *of, size_t at) {
    uint32_t node = from->node[at], canonical = of->canonical[node];
    bool has_entry = false;
    to->seen_size = 0;
    while (at < from->length && from->node[at] == node) {
        size_t end = at + 1;
        uint32_t device = from->device[at];
        while (end < from->length && from->node[end] == node && from->device[end] == device) end++;
        if (!add_run(to, from, at, end)) return 0;
        if (device == canonical || !can_be_canonical(of, device)) {
            if (!see_traces(to, from, at, end)) return 0;
            has_entry = true;
        }
        at = end;
    }
    if (has_entry) {
        if (!grow(&to->rows, &to->room, to->size, 1, sizeof *to->rows)) return 0;
        row *made = &to->rows[to->size++];
        memset(made, 0, sizeof *made);
        *made = (row){.node = node, .device = NONE_ID, .canonical = canonical};
        made->sums.traces = to->seen_size;
    }
    return at;
}

#endif
