/* Aggregates sorted op executions into the rows of schema.ROLLUP. */
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
    uint64_t traces, runs, sum_us, sum_ns, requested_bytes, peak_bytes, residual_bytes, output_bytes;
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
} device_facts;

/* A row of ROLLUP. */
typedef struct {
    uint32_t node, device, canonical;
    sums sums;
} row;

typedef struct {
    row *rows;
    size_t size, room;
    uint32_t *seen, *merge_buffer; /* the traces of a node, and a buffer to merge more traces into */
    size_t seen_size, seen_room;
} table;

/* Make room for `extra` elements of `element_size` bytes after the first `size`; false if memory is exhausted. */
static bool grow(void *pointer, size_t *room, size_t size, size_t extra, size_t element_size) {
    void *memory;
    memcpy(&memory, pointer, sizeof memory);
    if (*room - size >= extra) return true;
    size_t new_room = 2 * (size + extra);
    memory = realloc(memory, new_room * element_size);
    if (!memory) return false;
    memcpy(pointer, &memory, sizeof memory);
    *room = new_room;
    return true;
}

/* Convert ns to µs, rounded down. */
static int64_t floor_us(int64_t ns) { return ns / 1000 - (ns % 1000 < 0); }

static int64_t wrapping_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

/* Add one execution to the sums of its run, unless it has no start time. */
static void add(sums *sum, const ops *executions, size_t index) {
#define IN(name) (executions->in[name][index])
    int64_t start = wrapping_sum(IN(BASE), IN(START)), start_us = floor_us(start);
    if (wrapping_sum(start_us, IN(START_FIX)) <= 0) return;
    int64_t ns = wrapping_sum(IN(OP_START), IN(OP_END));
    uint64_t us = (uint64_t)floor_us(wrapping_sum(start, ns)) - (uint64_t)start_us + (uint64_t)IN(END_FIX);
    uint64_t extra_bytes = (uint64_t)IN(PERSISTENT) + (uint64_t)IN(TEMP);
    sum->runs++;
    sum->sum_us += us ? us : 1;
    sum->sum_ns += (uint64_t)ns;
    sum->requested_bytes += (uint64_t)IN(TOTAL) + extra_bytes;
    sum->peak_bytes += (uint64_t)IN(PEAK) + extra_bytes;
    sum->residual_bytes += (uint64_t)IN(LIVE) + (uint64_t)IN(PERSISTENT);
    sum->output_bytes += (uint64_t)IN(OUTPUT);
#undef IN
}

/* Append the row of the executions from `start` to `end`, which are of one node on one device. */
static bool add_run(table *rollup, const ops *executions, size_t start, size_t end) {
    if (!grow(&rollup->rows, &rollup->room, rollup->size, 1, sizeof *rollup->rows)) return false;
    row *entry = &rollup->rows[rollup->size++];
    memset(entry, 0, sizeof *entry);
    entry->node = executions->node[start];
    entry->device = executions->device[start];
    entry->canonical = NONE_ID;
    for (size_t i = start; i < end; i++) {
        entry->sums.traces += i == start || executions->trace[i] != executions->trace[i - 1];
        add(&entry->sums, executions, i);
    }
    return true;
}

/* Merge the traces of a run into the seen traces of its node, without duplicates; both ascend. */
static bool merge_traces(table *rollup, const ops *executions, size_t index, size_t end) {
    size_t room = rollup->seen_room, seen_index = 0, size = 0;
    if (!grow(&rollup->seen, &room, rollup->seen_size, end - index, sizeof *rollup->seen)) return false;
    if (!grow(&rollup->merge_buffer, &rollup->seen_room, rollup->seen_size, end - index, sizeof *rollup->merge_buffer))
        return false;
    while (index < end || seen_index < rollup->seen_size) {
        bool from_run = seen_index == rollup->seen_size ||
                        (index < end && executions->trace[index] < rollup->seen[seen_index]);
        uint32_t trace = from_run ? executions->trace[index++] : rollup->seen[seen_index++];
        if (!size || rollup->merge_buffer[size - 1] != trace) rollup->merge_buffer[size++] = trace;
    }
    uint32_t *previous = rollup->seen;
    rollup->seen = rollup->merge_buffer;
    rollup->merge_buffer = previous;
    rollup->seen_size = size;
    return true;
}

static bool can_be_canonical(const device_facts *facts, uint32_t device) {
    return device < facts->devices && facts->flags[device];
}

/* Append the rows of the node whose executions begin at `index`: one per device, and the node row if
 * the TF profiler would have an entry for the node. Return the end of the node's executions, 0 if
 * memory is exhausted. */
static size_t add_node(table *rollup, const ops *executions, const device_facts *facts, size_t index) {
    uint32_t node = executions->node[index], canonical = facts->canonical[node];
    bool has_entry = false;
    rollup->seen_size = 0;
    while (index < executions->length && executions->node[index] == node) {
        size_t end = index + 1;
        uint32_t device = executions->device[index];
        while (end < executions->length && executions->node[end] == node && executions->device[end] == device) end++;
        if (!add_run(rollup, executions, index, end)) return 0;
        if (device == canonical || !can_be_canonical(facts, device)) {
            if (!merge_traces(rollup, executions, index, end)) return 0;
            has_entry = true;
        }
        index = end;
    }
    if (has_entry) {
        if (!grow(&rollup->rows, &rollup->room, rollup->size, 1, sizeof *rollup->rows)) return 0;
        row *entry = &rollup->rows[rollup->size++];
        memset(entry, 0, sizeof *entry);
        *entry = (row){.node = node, .device = NONE_ID, .canonical = canonical};
        entry->sums.traces = rollup->seen_size;
    }
    return index;
}

#endif
