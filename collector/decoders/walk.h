/* Decodes a RunMetadata into columns of `ops` and `allocations`, in one pass over the wire format. */
#ifndef TFPROF_WALK_H
#define TFPROF_WALK_H

#include "node.h"

static inline int64_t difference(int64_t a, int64_t b) {
    int64_t rest;
    if (!__builtin_sub_overflow(a, b, &rest)) return rest;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t nanoseconds(moment m) {
    int64_t product;
    if (m.nanos) return m.nanos;
    if (!__builtin_mul_overflow(m.micros, (int64_t)1000, &product)) return product;
    return m.micros < 0 ? INT64_MIN : INT64_MAX;
}

/* Convert ns to µs, rounded down. */
static inline int64_t floor_us(int64_t ns) { return ns / 1000 - (ns % 1000 < 0); }

/* Intern the texts of a node, and set their ids in its row. */
static enum status put_names(row_sink *sink, const node *n) {
    columns *to = sink->to;
    size_t row = sink->row, size = span_size(n->name);
    const uint8_t *colon = size ? memchr(n->name.at, ':', size) : NULL;
    span name = {n->name.at, colon ? colon : n->name.end};
    span rest = {colon ? colon + 1 : n->name.end, n->name.end};
    span label = span_size(n->label) ? n->label : rest;
    span signature = {sink->signature, sink->signature + sink->signature_size};
    to->label[row] = to->allocator[row] = to->outputs[row] = NO_ID;
    CHECK(names_add(sink->names, NODE, name, &to->node[row]));
    if (span_size(label)) CHECK(names_add(sink->names, LABEL, label, &to->label[row]));
    if (n->allocators) CHECK(names_add(sink->names, ALLOCATOR, n->first_allocator, &to->allocator[row]));
    if (sink->signature_size) CHECK(names_add(sink->names, OUTPUTS, signature, &to->outputs[row]));
    return OK;
}

/* Set node and device of the allocations from `first` on. Drop them if the node has no start time, as
 * the TF profiler does. */
static enum status put_allocations(row_sink *sink, const node *n, uint32_t device, size_t first) {
    if (n->all_start.micros <= 0) {
        sink->allocated = first;
        return OK;
    }
    for (size_t i = first; i < sink->allocated; i++) {
        allocation *made = &sink->allocations[i];
        made->trace = sink->trace;
        made->node = sink->to->node[sink->row];
        made->device = device;
    }
    return sink->allocated - sink->allocated_before > ROWS_MAX ? TOO_LONG : OK;
}

static enum status put_row(row_sink *sink, const node *n, uint32_t device, size_t first_allocation) {
    columns *to = sink->to;
    size_t row = sink->row;
    int64_t start = nanoseconds(n->all_start), op_start = nanoseconds(n->op_start), op_end = nanoseconds(n->op_end);
    int64_t end = sum_of(start, op_end);
    CHECK(put_names(sink, n));
    CHECK(put_allocations(sink, n, device, first_allocation));
    to->trace[row] = sink->trace;
    to->device[row] = device;
    to->thread[row] = n->thread;
    to->start_ns[row] = start;
    to->op_start_ns[row] = op_start;
    to->op_end_ns[row] = difference(op_end, op_start);
    to->start_us_fix[row] = difference(n->all_start.micros, floor_us(start));
    to->end_us_fix[row] = difference(n->op_end.micros, floor_us(end) - floor_us(start));
    to->total_bytes[row] = n->total;
    to->peak_bytes[row] = n->peak;
    to->live_bytes[row] = n->live;
    to->in_use_bytes[row] = n->in_use;
    to->output_bytes[row] = n->output_bytes;
    to->temp_bytes[row] = n->temp;
    to->persistent_bytes[row] = n->persistent;
    if (start > 0 && (!sink->base || start < sink->base)) sink->base = start;
    sink->row++;
    return OK;
}

/* Set `name` to the name of the device, which may follow its nodes. */
static enum status find_device(span s, span *name) {
    uint32_t tag;
    name->at = name->end = s.at;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        if (tag == TAG(1, CHUNK)) {
            CHECK(read_chunk(&s, name));
        } else {
            CHECK(skip_field(&s, tag, 3));
        }
    }
    return OK;
}

static bool has_lower(span name, const char *lower, size_t size) {
    for (; span_size(name) >= size; name.at++) {
        size_t same = 0;
        while (same < size &&
               (name.at[same] | (name.at[same] >= 'A' && name.at[same] <= 'Z' ? 0x20 : 0)) == lower[same])
            same++;
        if (same == size) return true;
    }
    return false;
}

static uint32_t accelerator_of(span device) {
    if (!has_lower(device, "gpu", 3)) return 0;
    return has_lower(device, "stream:all", 10) ? GPU | STREAMS : GPU;
}

static enum status walk_device(span s, row_sink *sink) {
    uint32_t tag, device = NO_ID;
    span name, chunk;
    CHECK(find_device(s, &name));
    sink->accelerator |= accelerator_of(name);
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        if (tag != TAG(2, CHUNK)) {
            CHECK(skip_field(&s, tag, 3));
            continue;
        }
        CHECK(read_chunk(&s, &chunk));
        node n = {.name = {chunk.at, chunk.at}, .label = {chunk.at, chunk.at}};
        size_t first_allocation = sink->allocated;
        sink->signature_size = 0;
        CHECK(walk_node(chunk, &n, sink));
        if (!sink->to) continue;
        if (device == NO_ID) CHECK(names_add(sink->names, DEVICE, name, &device));
        if (sink->row - sink->first == ROWS_MAX) return TOO_LONG;
        if (sink->row == sink->end) return NO_ROOM;
        CHECK(put_row(sink, &n, device, first_allocation));
    }
    return OK;
}

static enum status walk_steps(span s, row_sink *sink) {
    uint32_t tag;
    span stats, device;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        if (tag != TAG(1, CHUNK)) {
            CHECK(skip_field(&s, tag, 1));
            continue;
        }
        CHECK(read_chunk(&s, &stats));
        while (stats.at < stats.end) {
            CHECK(read_tag(&stats, &tag));
            if (tag == TAG(1, CHUNK)) {
                CHECK(read_chunk(&stats, &device));
                CHECK(walk_device(device, sink));
            } else {
                CHECK(skip_field(&stats, tag, 2));
            }
        }
    }
    return OK;
}

/* Decode one RunMetadata into rows from sink->row to sink->end. Unless the status is OK, no row, name
 * or allocation of it is left. */
static enum status walk_run_metadata(span s, row_sink *sink) {
    uint32_t counts[KINDS];
    for (unsigned kind = 0; kind < KINDS; kind++) counts[kind] = sink->names->of[kind].count;
    sink->first = sink->row;
    sink->allocated_before = sink->allocated;
    sink->base = 0;
    sink->accelerator = 0;
    enum status status = walk_steps(s, sink);
    if (status == OK) {
        for (size_t row = sink->first; row < sink->row; row++)
            sink->to->start_ns[row] = difference(sink->to->start_ns[row], sink->base);
        return OK;
    }
    sink->row = sink->first;
    sink->allocated = sink->allocated_before;
    sink->base = 0;
    sink->accelerator = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) names_cut(sink->names, kind, counts[kind]);
    row_sink reader = {.to = NULL}; /* MALFORMED takes precedence, wherever the damage is */
    return status != NO_MEMORY && walk_steps(s, &reader) == MALFORMED ? MALFORMED : status;
}

/* Return the number of fields at the path `path[0]` → `path[1]` → …, up to the first malformed one. */
static size_t count_fields(span s, const uint32_t *path, unsigned left, unsigned depth) {
    size_t count = 0;
    uint32_t tag;
    span chunk;
    while (s.at < s.end && read_tag(&s, &tag) == OK) {
        if (tag != TAG(*path, CHUNK)) {
            if (skip_field(&s, tag, depth) != OK) break;
        } else if (read_chunk(&s, &chunk) != OK) {
            break;
        } else {
            count += left == 1 ? 1 : count_fields(chunk, path + 1, left - 1, depth + 1);
        }
    }
    return count;
}

/* Return an upper bound of the rows of a RunMetadata. */
static size_t count_nodes(span s) {
    static const uint32_t path[] = {1, 1, 2};
    size_t count = count_fields(s, path, 3, 1);
    return count < ROWS_MAX ? count : ROWS_MAX;
}

#endif
