/* Destination of decoded data: the columns of `ops` and `allocations`, and the names. */
#ifndef TFPROF_SINK_H
#define TFPROF_SINK_H

#include "names.h"

/* The columns of schema.OPS (collector/store/schema.py) in its order: (type, name). */
#define COLUMNS(X)                                                                                                     \
    X(uint32_t, trace)                                                                                                 \
    X(uint32_t, node)                                                                                                  \
    X(uint32_t, device)                                                                                                \
    X(uint32_t, label)                                                                                                 \
    X(uint32_t, thread)                                                                                                \
    X(int64_t, start_ns)                                                                                               \
    X(int64_t, op_start_ns)                                                                                            \
    X(int64_t, op_end_ns)                                                                                              \
    X(int64_t, start_us_fix)                                                                                           \
    X(int64_t, end_us_fix)                                                                                             \
    X(int64_t, total_bytes)                                                                                            \
    X(int64_t, peak_bytes)                                                                                             \
    X(int64_t, live_bytes)                                                                                             \
    X(uint32_t, allocator)                                                                                             \
    X(int64_t, in_use_bytes)                                                                                           \
    X(int64_t, output_bytes)                                                                                           \
    X(uint32_t, outputs)                                                                                               \
    X(int64_t, temp_bytes)                                                                                             \
    X(int64_t, persistent_bytes)

#define DECLARE(type, name) type *name;
typedef struct {
    COLUMNS(DECLARE)
} columns;
#undef DECLARE

/* The columns of schema.ALLOCATIONS in its order: (type, name); and the allocator, NO_ID for those called *GPU*;
 * and the address, 0 if it is not recorded. */
#define ALLOCATION_COLUMNS(X)                                                                                          \
    X(uint32_t, trace)                                                                                                 \
    X(uint32_t, node)                                                                                                  \
    X(uint32_t, device)                                                                                                \
    X(int64_t, t_us)                                                                                                   \
    X(int64_t, bytes)                                                                                                  \
    X(uint32_t, allocator)                                                                                             \
    X(uint64_t, address)

#define MEMBER(type, name) type name;
typedef struct {
    ALLOCATION_COLUMNS(MEMBER)
} allocation;
#undef MEMBER

/* Maximum number of node executions, and of allocations, in one RunMetadata: a few of its bytes can make
 * a row of more than a hundred bytes. */
#define ROWS_MAX ((size_t)1 << 18)
#define ALLOCATIONS_MAX ((size_t)1 << 19)

/* Maximum number of outputs of a node execution whose addresses are read: each allocation is compared with them. */
#define ADDRESSES_MAX 64

/* The memory of an output. */
typedef struct {
    int64_t bytes;
    uint64_t address;
} output_block;

/* Flags of a device, by its name (collector/store/devices.py). */
enum { GPU = 1, STREAMS = 2 };

/* The columns and names that a step is decoded into, and the current position. */
typedef struct {
    columns *columns; /* NULL: write nothing, only check the step */
    name_table *names;
    size_t row, first_row, row_end; /* the next row, the first row of the step, the number of rows that fit */
    uint32_t trace, accelerator;
    int64_t base;
    uint8_t *signature; /* output signature of the current node (collector/store/output_signatures.py) */
    size_t signature_size, signature_room;
    allocation *allocations;
    size_t allocation_count, allocations_before, allocations_room; /* number of allocations, number before the step */
    output_block output_blocks[ADDRESSES_MAX]; /* of the current node */
    size_t output_block_count;
} row_sink;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        enum status check_ = (call);                                                                                   \
        if (check_ != OK) return check_;                                                                               \
    } while (0)

/* Make room for `extra` elements of `element_size` bytes after the first `size`, by doubling. */
static enum status grow(void **at, size_t *room, size_t size, size_t extra, size_t element_size) {
    if (*room - size >= extra) return OK;
    size_t new_room = 2 * (size + extra) + 64;
    void *memory = realloc(*at, new_room * element_size);
    if (!memory) return NO_MEMORY;
    *at = memory;
    *room = new_room;
    return OK;
}

#endif
