/* Decodes one NodeExecStats; its output signature and its allocations go into the sink. */
#ifndef TFPROF_NODE_H
#define TFPROF_NODE_H

#include "sink.h"

typedef struct {
    int64_t nanos, micros;
} moment;

typedef struct {
    byte_range name;
    int64_t total, peak, live, in_use;
} allocator_use;

typedef struct {
    bool described, allocated, shaped;
    uint32_t slot, dtype;
    byte_range shape;
    int64_t requested_bytes, allocated_bytes;
    uint64_t address;
} output;

typedef struct {
    byte_range name, label;
    moment all_start, op_start, op_end;
    uint32_t thread, allocator; /* id of the first allocator */
    int64_t total, peak, live, in_use; /* sums over allocators; in_use: maximum over allocators called *GPU* */
    int64_t output_bytes, temp, persistent;
} node;

static inline int64_t saturating_sum(int64_t a, int64_t b) {
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return b < 0 ? INT64_MIN : INT64_MAX;
}

static bool is_gpu_allocator(byte_range name) {
    for (; range_size(name) >= 3; name.at++)
        if (!memcmp(name.at, "GPU", 3)) return true;
    return false;
}

/* Decode an AllocationRecord. run_metadata.proto declares it as bytes, so skip_field counts nesting from 1 here. */
static enum status walk_record(byte_range s, uint32_t allocator, row_sink *sink) {
    allocation record = {.allocator = allocator};
    uint32_t tag;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        switch (tag) {
        case TAG(1, VARINT): CHECK(read_int64(&s, &record.t_us)); break;
        case TAG(2, VARINT): CHECK(read_int64(&s, &record.bytes)); break;
        default: CHECK(skip_field(&s, tag, 1));
        }
    }
    if (!sink->columns) return OK;
    void *at = sink->allocations;
    CHECK(grow(&at, &sink->allocations_room, sink->allocation_count, 1, sizeof record));
    sink->allocations = at;
    sink->allocations[sink->allocation_count++] = record;
    return OK;
}

/* Decode the allocation records of an AllocatorMemoryUsed in a second pass, after its name is known. */
static enum status walk_records(byte_range s, uint32_t allocator, row_sink *sink) {
    uint32_t tag;
    byte_range record;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        if (tag == TAG(6, CHUNK)) {
            CHECK(read_chunk(&s, &record));
            CHECK(walk_record(record, allocator, sink));
        } else {
            CHECK(skip_field(&s, tag, 5));
        }
    }
    return OK;
}

static enum status walk_memory(byte_range s, node *n, row_sink *sink) {
    allocator_use use = {.name = {s.at, s.at}};
    uint32_t tag, allocator = NO_ID;
    byte_range message = s;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        switch (tag) {
        case TAG(1, CHUNK): CHECK(read_chunk(&s, &use.name)); break;
        case TAG(2, VARINT): CHECK(read_int64(&s, &use.total)); break;
        case TAG(3, VARINT): CHECK(read_int64(&s, &use.peak)); break;
        case TAG(4, VARINT): CHECK(read_int64(&s, &use.live)); break;
        case TAG(5, VARINT): CHECK(read_int64(&s, &use.in_use)); break;
        default: CHECK(skip_field(&s, tag, 5));
        }
    }
    if (sink->columns) CHECK(names_add(sink->names, ALLOCATOR, use.name, &allocator));
    if (n->allocator == NO_ID) n->allocator = allocator;
    n->total = saturating_sum(n->total, use.total);
    n->peak = saturating_sum(n->peak, use.peak);
    n->live = saturating_sum(n->live, use.live);
    if (!is_gpu_allocator(use.name)) return walk_records(message, allocator, sink);
    if (use.in_use > n->in_use) n->in_use = use.in_use;
    return walk_records(message, NO_ID, sink);
}

static enum status walk_allocation(byte_range s, output *o) {
    uint32_t tag;
    o->allocated = true;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        switch (tag) {
        case TAG(1, VARINT): CHECK(read_int64(&s, &o->requested_bytes)); break;
        case TAG(2, VARINT): CHECK(read_int64(&s, &o->allocated_bytes)); break;
        case TAG(6, VARINT): CHECK(read_varint(&s, &o->address)); break;
        default: CHECK(skip_field(&s, tag, 7));
        }
    }
    return OK;
}

static enum status walk_tensor(byte_range s, output *o) {
    uint32_t tag;
    byte_range chunk;
    o->described = true;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        switch (tag) {
        case TAG(1, VARINT): CHECK(read_uint32(&s, &o->dtype)); break;
        case TAG(2, CHUNK):
            CHECK(read_chunk(&s, &o->shape));
            o->shaped = true;
            break;
        case TAG(4, CHUNK):
            CHECK(read_chunk(&s, &chunk));
            CHECK(walk_allocation(chunk, o));
            break;
        default: CHECK(skip_field(&s, tag, 6));
        }
    }
    return OK;
}

static inline uint8_t *put_varint(uint8_t *at, uint32_t value) {
    for (; value > 0x7f; value >>= 7) *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* Append an output to the output signature of its node. */
static enum status append_signature(row_sink *sink, const output *o) {
    size_t size = o->shaped ? range_size(o->shape) : 0;
    void *start = sink->signature;
    CHECK(grow(&start, &sink->signature_room, sink->signature_size, size + 16, 1));
    sink->signature = start;
    uint8_t *at = sink->signature + sink->signature_size;
    at = put_varint(at, o->slot);
    at = put_varint(at, o->dtype);
    *at++ = (uint8_t)(o->described | o->shaped << 1 | o->allocated << 2);
    if (o->shaped) {
        at = put_varint(at, (uint32_t)size);
        memcpy(at, o->shape.at, size);
        at += size;
    }
    sink->signature_size = (size_t)(at - sink->signature);
    return OK;
}

static enum status walk_output(byte_range s, node *n, row_sink *sink) {
    output o = {.described = false};
    uint32_t tag;
    byte_range chunk;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        switch (tag) {
        case TAG(1, VARINT): CHECK(read_uint32(&s, &o.slot)); break;
        case TAG(3, CHUNK):
            CHECK(read_chunk(&s, &chunk));
            CHECK(walk_tensor(chunk, &o));
            break;
        default: CHECK(skip_field(&s, tag, 5));
        }
    }
    if (o.allocated) {
        int64_t size = o.allocated_bytes > o.requested_bytes ? o.allocated_bytes : o.requested_bytes;
        n->output_bytes = saturating_sum(n->output_bytes, size);
        if (sink->output_block_count < ADDRESSES_MAX)
            sink->output_blocks[sink->output_block_count++] = (output_block){size, o.address};
    }
    return sink->columns ? append_signature(sink, &o) : OK;
}

static enum status walk_memory_stats(byte_range s, node *n) {
    uint32_t tag;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        switch (tag) {
        case TAG(1, VARINT): CHECK(read_int64(&s, &n->temp)); break;
        case TAG(3, VARINT): CHECK(read_int64(&s, &n->persistent)); break;
        default: CHECK(skip_field(&s, tag, 5));
        }
    }
    return OK;
}

static enum status walk_node(byte_range s, node *n, row_sink *sink) {
    uint32_t tag;
    byte_range chunk;
    while (s.at < s.end) {
        CHECK(read_tag(&s, &tag));
        switch (tag) {
        case TAG(1, CHUNK): CHECK(read_chunk(&s, &n->name)); break;
        case TAG(2, VARINT): CHECK(read_int64(&s, &n->all_start.micros)); break;
        case TAG(3, VARINT): CHECK(read_int64(&s, &n->op_start.micros)); break;
        case TAG(4, VARINT): CHECK(read_int64(&s, &n->op_end.micros)); break;
        case TAG(6, CHUNK):
            CHECK(read_chunk(&s, &chunk));
            CHECK(walk_memory(chunk, n, sink));
            break;
        case TAG(7, CHUNK):
            CHECK(read_chunk(&s, &chunk));
            CHECK(walk_output(chunk, n, sink));
            break;
        case TAG(8, CHUNK): CHECK(read_chunk(&s, &n->label)); break;
        case TAG(10, VARINT): CHECK(read_uint32(&s, &n->thread)); break;
        case TAG(12, CHUNK):
            CHECK(read_chunk(&s, &chunk));
            CHECK(walk_memory_stats(chunk, n));
            break;
        case TAG(13, VARINT): CHECK(read_int64(&s, &n->all_start.nanos)); break;
        case TAG(14, VARINT): CHECK(read_int64(&s, &n->op_start.nanos)); break;
        case TAG(15, VARINT): CHECK(read_int64(&s, &n->op_end.nanos)); break;
        default: CHECK(skip_field(&s, tag, 4));
        }
    }
    return OK;
}

#endif
