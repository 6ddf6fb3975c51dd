/* Interned names: dense ids for each kind, in the order of first appearance; the last names can be removed. */
#ifndef TFPROF_NAMES_H
#define TFPROF_NAMES_H

#include <stdbool.h>
#include <stdlib.h>

#include "wire.h"

enum { NODE, DEVICE, LABEL, ALLOCATOR, OUTPUTS, KINDS };
#define NO_ID UINT32_MAX

/* The names of one kind: concatenated texts, and a hash table (open addressing, at most half full). */
typedef struct {
    uint8_t *text;
    size_t text_room;
    size_t *ends; /* name i ends at ends[i] and begins at ends[i - 1] */
    uint32_t *hashes;
    uint32_t count, room;
    uint32_t *slots; /* ids, NO_ID in free slots */
    uint32_t mask;
} names_of_kind;

typedef struct {
    names_of_kind kinds[KINDS];
    uint64_t seed;
    uint32_t count_max; /* of each kind */
    size_t text_max, text_size; /* of all kinds */
} name_table;

static inline uint64_t mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Return the hash of a text; the seed prevents a job from choosing names that collide. */
static inline uint32_t hash_text(const uint8_t *at, size_t size, uint64_t seed) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t sum = seed ^ (size * odd), low = 0, high = 0;
    for (; size > 16; at += 16, size -= 16) sum = mix(load64(at) ^ odd, load64(at + 8) ^ sum);
    if (size >= 8) {
        low = load64(at);
        high = load64(at + size - 8);
    } else if (size) {
        memcpy(&low, at, size);
    }
    sum = mix(low ^ odd ^ seed, high ^ sum);
    return (uint32_t)(sum ^ sum >> 32);
}

static inline size_t name_start(const names_of_kind *kind, uint32_t id) { return id ? kind->ends[id - 1] : 0; }

static void fill_slots(names_of_kind *kind) {
    memset(kind->slots, 0xff, ((size_t)kind->mask + 1) * sizeof *kind->slots);
    for (uint32_t id = 0; id < kind->count; id++) {
        uint32_t slot = kind->hashes[id] & kind->mask;
        while (kind->slots[slot] != NO_ID) slot = (slot + 1) & kind->mask;
        kind->slots[slot] = id;
    }
}

/* Make room for one more name of `size` bytes; if the result is false, the names are unchanged. */
static bool names_grow(names_of_kind *kind, size_t text_used, size_t size) {
    if (kind->count == kind->room) {
        uint32_t room = kind->room ? kind->room * 2 : 32;
        size_t *ends = realloc(kind->ends, room * sizeof *ends);
        if (ends) kind->ends = ends;
        uint32_t *hashes = realloc(kind->hashes, room * sizeof *hashes);
        if (hashes) kind->hashes = hashes;
        uint32_t *slots = malloc(2 * (size_t)room * sizeof *slots);
        if (!ends || !hashes || !slots) {
            free(slots);
            return false;
        }
        free(kind->slots);
        kind->slots = slots;
        kind->mask = 2 * room - 1;
        kind->room = room;
        fill_slots(kind);
    }
    if (kind->text_room - text_used < size) {
        size_t room = (text_used + size) * 5 / 4 + 256;
        uint8_t *text = realloc(kind->text, room);
        if (!text) return false;
        kind->text = text;
        kind->text_room = room;
    }
    return true;
}

/* Set `id` to the id of the text, and add the text if it is new. */
static enum status names_add(name_table *table, unsigned kind_number, byte_range text, uint32_t *id) {
    names_of_kind *kind = &table->kinds[kind_number];
    size_t size = range_size(text);
    uint32_t hash = hash_text(text.at, size, table->seed), slot = hash & kind->mask;
    if (kind->count) {
        for (; kind->slots[slot] != NO_ID; slot = (slot + 1) & kind->mask) {
            uint32_t candidate = kind->slots[slot];
            size_t start = name_start(kind, candidate);
            if (kind->hashes[candidate] == hash && kind->ends[candidate] - start == size &&
                (!size || !memcmp(kind->text + start, text.at, size))) {
                *id = candidate;
                return OK;
            }
        }
    }
    if (kind->count >= table->count_max || table->text_max - table->text_size < size) return NAMES_FULL;
    size_t used = name_start(kind, kind->count);
    if (!names_grow(kind, used, size)) return NO_MEMORY;
    if (size) memcpy(kind->text + used, text.at, size);
    kind->ends[kind->count] = used + size;
    kind->hashes[kind->count] = hash;
    for (slot = hash & kind->mask; kind->slots[slot] != NO_ID;) slot = (slot + 1) & kind->mask;
    kind->slots[slot] = *id = kind->count++;
    table->text_size += size;
    return OK;
}

/* Keep only the first `count` names of a kind. */
static void names_cut(name_table *table, unsigned kind_number, uint32_t count) {
    names_of_kind *kind = &table->kinds[kind_number];
    if (count >= kind->count) return;
    table->text_size -= name_start(kind, kind->count) - name_start(kind, count);
    kind->count = count;
    fill_slots(kind);
}

static void names_free(name_table *table) {
    for (unsigned kind_number = 0; kind_number < KINDS; kind_number++) {
        names_of_kind *kind = &table->kinds[kind_number];
        free(kind->text);
        free(kind->ends);
        free(kind->hashes);
        free(kind->slots);
    }
    memset(table->kinds, 0, sizeof table->kinds);
}

#endif
