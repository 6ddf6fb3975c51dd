/* Reads the protobuf wire format with bounds checks, and refuses exactly the messages that upb refuses. */
#ifndef TFPROF_WIRE_H
#define TFPROF_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum status { OK, MALFORMED, NAMES_FULL, TOO_LONG, NO_MEMORY, NO_ROOM };

/* upb's limit for the nesting of messages and groups together. */
#define DEPTH_MAX 100

enum wire_type { VARINT, FIXED64, CHUNK, GROUP, GROUP_END, FIXED32 };
#define TAG(field, type) ((uint32_t)((field) << 3 | (type)))

/* The unread bytes of a message. */
typedef struct {
    const uint8_t *at, *end;
} byte_range;

static inline size_t range_size(byte_range s) { return (size_t)(s.end - s.at); }

static inline uint64_t load64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Concatenate the seven low bits of each of eight bytes; the lowest byte gives the lowest bits. */
static inline uint64_t concat_low_bits(uint64_t bytes) {
    bytes = (bytes & 0x007f007f007f007fu) | (bytes & 0x7f007f007f007f00u) >> 1;
    bytes = (bytes & 0x00003fff00003fffu) | (bytes & 0x3fff00003fff0000u) >> 2;
    return (bytes & 0x000000000fffffffu) | (bytes & 0x0fffffff00000000u) >> 4;
}

/* Read a varint of at most `size_max` bytes; bits above 64 in the tenth byte are dropped, as in upb. */
static inline enum status read_number(byte_range *s, unsigned size_max, uint64_t *value) {
    if (s->at < s->end && *s->at < 0x80) {
        *value = *s->at++;
        return OK;
    }
    uint64_t sum = 0;
    unsigned i = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (range_size(*s) >= 8) { /* times have eight or nine bytes: read them at once */
        uint64_t word = load64(s->at), ends = ~word & 0x8080808080808080u;
        unsigned size = ends ? (unsigned)__builtin_ctzll(ends) / 8 + 1 : 8;
        if (size > size_max) return MALFORMED;
        sum = concat_low_bits(ends ? word & (ends ^ (ends - 1)) : word);
        s->at += size;
        if (ends) {
            *value = sum;
            return OK;
        }
        i = 8;
    }
#endif
    for (; i < size_max && s->at < s->end; i++) {
        uint64_t byte = *s->at++;
        sum |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = sum;
            return OK;
        }
    }
    return MALFORMED;
}

static inline enum status read_varint(byte_range *s, uint64_t *value) { return read_number(s, 10, value); }

static inline enum status read_int64(byte_range *s, int64_t *value) {
    uint64_t bits;
    enum status status = read_number(s, 10, &bits);
    if (status == OK) memcpy(value, &bits, sizeof bits);
    return status;
}

static inline enum status read_uint32(byte_range *s, uint32_t *value) {
    uint64_t bits;
    enum status status = read_number(s, 10, &bits);
    if (status == OK) *value = (uint32_t)bits;
    return status;
}

/* Read a tag within a skipped group: at most five bytes, 32 bits. */
static inline enum status read_any_tag(byte_range *s, uint32_t *tag) {
    uint64_t value;
    if (read_number(s, 5, &value) != OK || value > UINT32_MAX) return MALFORMED;
    *tag = (uint32_t)value;
    return OK;
}

/* Read a tag of a message; field 0 is malformed. */
static inline enum status read_tag(byte_range *s, uint32_t *tag) {
    return read_any_tag(s, tag) == OK && *tag >> 3 ? OK : MALFORMED;
}

/* Read a length and set `chunk` to that many bytes. */
static inline enum status read_chunk(byte_range *s, byte_range *chunk) {
    uint64_t size;
    if (read_number(s, 5, &size) != OK || size > INT32_MAX || size > range_size(*s)) return MALFORMED;
    chunk->at = s->at;
    chunk->end = s->at += size;
    return OK;
}

static inline enum status skip_bytes(byte_range *s, size_t size) {
    if (range_size(*s) < size) return MALFORMED;
    s->at += size;
    return OK;
}

/* Skip the value of a field that is not a group. */
static inline enum status skip_plain(byte_range *s, uint32_t tag) {
    uint64_t number;
    byte_range chunk;
    switch (tag & 7) {
    case VARINT: return read_varint(s, &number);
    case FIXED64: return skip_bytes(s, 8);
    case CHUNK: return read_chunk(s, &chunk);
    case FIXED32: return skip_bytes(s, 4);
    default: return MALFORMED;
    }
}

/* Skip the value of a field in a message at nesting `depth` (1: the outermost). */
static enum status skip_field(byte_range *s, uint32_t tag, unsigned depth) {
    if ((tag & 7) != GROUP) return skip_plain(s, tag);
    uint32_t open_groups[DEPTH_MAX];
    unsigned top = 0;
    open_groups[top++] = tag >> 3;
    while (top) {
        if (depth + top > DEPTH_MAX + 1 || read_any_tag(s, &tag) != OK) return MALFORMED;
        if ((tag & 7) == GROUP_END) {
            if (open_groups[--top] != tag >> 3) return MALFORMED;
        } else if ((tag & 7) == GROUP) {
            if (top == DEPTH_MAX) return MALFORMED;
            open_groups[top++] = tag >> 3;
        } else if (skip_plain(s, tag) != OK) {
            return MALFORMED;
        }
    }
    return OK;
}

#endif
