/* Feeds damaged RunMetadata messages to the C decoder, each in a buffer of exactly its size. Run this program under the
 * sanitizers.
 *
 * walk_fuzz ROUNDS SAMPLE…   prints how many damaged messages were decoded, were malformed, or had too many names.
 */
#include <stdio.h>

#include "walk.h"

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static uint8_t *copy_of(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    return copy;
}

/* Damage `data` in up to three places: overwrite a byte, flip a bit, or cut off the rest. Return the new size. */
static size_t damage(uint8_t *data, size_t size) {
    for (uint64_t times = draw(4); times && size; times--) {
        size_t at = (size_t)draw(size);
        switch (draw(4)) {
        case 0: data[at] = (uint8_t)draw(256); break;
        case 1: data[at] ^= (uint8_t)(1u << draw(8)); break;
        case 2: size = at; break;
        default: data[at] = 0xff;
        }
    }
    return size;
}

static enum status decode(const uint8_t *data, size_t size, name_table *names) {
    uint8_t *message = copy_of(data, size);
    byte_range s = {message, message + size};
    size_t rows = count_nodes(s);
    columns ops;
#define ALLOCATE(type, name) ops.name = malloc(rows * sizeof(type) + 1);
    COLUMNS(ALLOCATE)
    row_sink sink = {.columns = &ops, .names = names, .row_end = rows};
    enum status status = walk_run_metadata(s, &sink);
    if (status == OK ? sink.row != rows : sink.row != 0) abort();
#define RELEASE(type, name) free(ops.name);
    COLUMNS(RELEASE)
    free(sink.signature);
    free(sink.allocations);
    free(message);
    return status;
}

static size_t load(const char *path, uint8_t **data) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) abort();
    size_t size = (size_t)ftell(file);
    rewind(file);
    *data = malloc(size + 1);
    if (!*data || fread(*data, 1, size, file) != size) abort();
    fclose(file);
    return size;
}

int main(int count, char **arguments) {
    unsigned long status_counts[NO_ROOM + 1] = {0};
    name_table names = {.seed = 1, .count_max = 100000, .text_max = 1 << 20};
    for (int i = 2; i < count; i++) {
        uint8_t *data;
        size_t size = load(arguments[i], &data);
        if (decode(data, size, &names) != OK) return 2;
        for (long round = 0; round < atol(arguments[1]); round++) {
            uint8_t *damaged = copy_of(data, size);
            size_t damaged_size = damage(damaged, size);
            status_counts[decode(damaged, damaged_size, &names)]++;
            free(damaged);
        }
        free(data);
    }
    for (unsigned kind = 0; kind < KINDS; kind++) names_cut(&names, kind, (uint32_t)draw(names.kinds[kind].count + 1));
    names_free(&names);
    printf("%lu decoded, %lu malformed, %lu too many names\n", status_counts[OK], status_counts[MALFORMED],
           status_counts[NAMES_FULL]);
    return status_counts[NO_MEMORY] || status_counts[NO_ROOM] ? 3 : 0;
}
