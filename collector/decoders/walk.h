/* Decodes a RunMetadata into columns of `ops` and `allocations`, in one pass over the wire format. */
#ifndef TFPROF_WALK_H
#define TFPROF_WALK_H

#include "node.h"

static inline int64_t saturating_difference(int64_t a, int64_t b) {
    int64_t result;
    if (!__builtin_sub_overflow(a, b, &result)) return result;
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
    columns *row_columns = sink->columns;
    size_t row = sink->row, size = range_size(n->name);
    const uint8_t *colon = size ? memchr(n->name.at, ':', size) : NULL;
    byte_range name = {n->name.at, colon ? colon : n->name.end};
    byte_range suffix = {colon ? colon + 1 : n->name.end, n->name.end};
    byte_range label = range_size(n->label) ? n->label : suffix;
    byte_range signature = {sink->signature, sink->signature + sink->signature_size};
    row_columns->label[row] = row_columns->outputs[row] = NO_ID;
    CHECK(names_add(sink->names, NODE, name, &row_columns->node[row]));
    if (range_size(label)) CHECK(names_add(sink->names, LABEL, label, &row_columns->label[row]));
    if (sink->signature_size) CHECK(names_add(sink->names, OUTPUTS, signature, &row_columns->outputs[row]));
    return OK;
}

/* Return the address of the first output of `bytes` that has no allocation yet, 0 if there is none. */
static uint64_t take_address(row_sink *sink, int64_t bytes) {
    for (size_t i = 0; i < sink->output_block_count; i++) {
        output_block *block = &sink->output_blocks[i];
        if (block->address && block->bytes == bytes) {
            uint64_t address = block->address;
            block->address = 0;
            return address;
        }
    }
    return 0;
}

/* Set trace, node, device and address of the allocations from `first_allocation` on. Drop them if the node has no start
 * time, as the TF profiler does. */
static enum status put_allocations(row_sink *sink, const node *n, uint32_t device, size_t first_allocation) {
    if (n->all_start.micros <= 0) {
        sink->allocation_count = first_allocation;
        return OK;
    }
    for (size_t i = first_allocation; i < sink->allocation_count; i++) {
        allocation *entry = &sink->allocations[i];
        entry->trace = sink->trace;
        entry->node = sink->columns->node[sink->row];
        entry->device = device;
        entry->address = entry->bytes > 0 ? take_address(sink, entry->bytes) : 0;
    }
    return sink->allocation_count - sink->allocations_before > ALLOCATIONS_MAX ? TOO_LONG : OK;
}

static enum status put_row(row_sink *sink, const node *n, uint32_t device, size_t first_allocation) {
    columns *row_columns = sink->columns;
    size_t row = sink->row;
    int64_t start = nanoseconds(n->all_start), op_start = nanoseconds(n->op_start), op_end = nanoseconds(n->op_end);
    int64_t end = saturating_sum(start, op_end);
    CHECK(put_names(sink, n));
    CHECK(put_allocations(sink, n, device, first_allocation));
    row_columns->trace[row] = sink->trace;
    row_columns->allocator[row] = n->allocator;
    row_columns->device[row] = device;
    row_columns->thread[row] = n->thread;
    row_columns->start_ns[row] = start;
    row_columns->op_start_ns[row] = op_start;
    row_columns->op_end_ns[row] = saturating_difference(op_end, op_start);
    row_columns->start_us_fix[row] = saturating_difference(n->all_start.micros, floor_us(start));
    row_columns->end_us_fix[row] = saturating_difference(n->op_end.micros, floor_us(end) - floor_us(start));
    row_columns->total_bytes[row] = n->total;
    row_columns->peak_bytes[row] = n->peak;
    row_columns->live_bytes[row] = n->live;
    row_columns->in_use_bytes[row] = n->in_use;
    row_columns->output_bytes[row] = n->output_bytes;
    row_columns->temp_bytes[row] = n->temp;
    row_columns->persistent_bytes[row] = n->persistent;
    if (start > 0 && (!sink->base || start < sink->base)) sink->base = start;
    sink->row++;
    return OK;
}

/* Set `name` to the name of the device. In the message, the name may follow the nodes. */
static enum status find_device(byte_range s, byte_range *name) {
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

static bool contains_ignoring_case(byte_range name, const char *lower, size_t size) {
    for (; range_size(name) >= size; name.at++) {
        size_t matched = 0;
        while (matched < size &&
               (name.at[matched] | (name.at[matched] >= 'A' && name.at[matched] <= 'Z' ? 0x20 : 0)) == lower[matched])
            matched++;
        if (matched == size) return true;
    }
    return false;
}

static uint32_t accelerator_of(byte_range device) {
    if (!contains_ignoring_case(device, "gpu", 3)) return 0;
    return contains_ignoring_case(device, "stream:all", 10) ? GPU | STREAMS : GPU;
}

static enum status walk_device(byte_range s, row_sink *sink) {
    uint32_t tag, device = NO_ID;
    byte_range name, chunk;
    CHECK(find_device(s, &name));
    sink->accelerator |= accelerator_of(name);
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        if (tag != TAG(2, CHUNK)) {
            CHECK(skip_field(&s, tag, 3));
            continue;
        }
        CHECK(read_chunk(&s, &chunk));
        node n = {.name = {chunk.at, chunk.at}, .label = {chunk.at, chunk.at}, .allocator = NO_ID};
        size_t first_allocation = sink->allocation_count;
        sink->output_block_count = 0;
        sink->signature_size = 0;
        CHECK(walk_node(chunk, &n, sink));
        if (!sink->columns) continue;
        if (device == NO_ID) CHECK(names_add(sink->names, DEVICE, name, &device));
        if (sink->row - sink->first_row == ROWS_MAX) return TOO_LONG;
        if (sink->row == sink->row_end) return NO_ROOM;
        CHECK(put_row(sink, &n, device, first_allocation));
    }
    return OK;
}

static enum status walk_steps(byte_range s, row_sink *sink) {
    uint32_t tag;
    byte_range stats, device;
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

/* Decode one RunMetadata into rows from sink->row to sink->row_end. Unless the status is OK, no row, name
 * or allocation of it is left. */
static enum status walk_run_metadata(byte_range s, row_sink *sink) {
    uint32_t counts[KINDS];
    for (unsigned kind = 0; kind < KINDS; kind++) counts[kind] = sink->names->kinds[kind].count;
    sink->first_row = sink->row;
    sink->allocations_before = sink->allocation_count;
    sink->base = 0;
    sink->accelerator = 0;
    enum status status = walk_steps(s, sink);
    if (status == OK) {
        for (size_t row = sink->first_row; row < sink->row; row++)
            sink->columns->start_ns[row] = saturating_difference(sink->columns->start_ns[row], sink->base);
        return OK;
    }
    sink->row = sink->first_row;
    sink->allocation_count = sink->allocations_before;
    sink->base = 0;
    sink->accelerator = 0;
    for (unsigned kind = 0; kind < KINDS; kind++) names_cut(sink->names, kind, counts[kind]);
    row_sink checker = {.columns = NULL}; /* MALFORMED takes precedence, wherever the damage is */
    return status != NO_MEMORY && walk_steps(s, &checker) == MALFORMED ? MALFORMED : status;
}

/* Return the number of fields at the path `path[0]` → `path[1]` → …, up to the first malformed one. */
static size_t count_fields(byte_range s, const uint32_t *path, unsigned path_length, unsigned depth) {
    size_t count = 0;
    uint32_t tag;
    byte_range chunk;
    while (s.at < s.end && read_tag(&s, &tag) == OK) {
        if (tag != TAG(*path, CHUNK)) {
            if (skip_field(&s, tag, depth) != OK) break;
        } else if (read_chunk(&s, &chunk) != OK) {
            break;
        } else {
            count += path_length == 1 ? 1 : count_fields(chunk, path + 1, path_length - 1, depth + 1);
        }
    }
    return count;
}

/* Return an upper bound of the rows of a RunMetadata. */
static size_t count_nodes(byte_range s) {
    static const uint32_t path[] = {1, 1, 2};
    size_t count = count_fields(s, path, 3, 1);
    return count < ROWS_MAX ? count : ROWS_MAX;
}

#endif
