/* Shared by all kernels. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TRIVET_LANES = 32 };

/* For functions that read rows which another thread may be writing. Results from such a row are discarded: either the
   query may not see the row, or the caller sees that rows have been dropped and searches again. */
#define TRIVET_READS_CHANGING __attribute__((no_sanitize("thread")))

static inline int64_t lesser(int64_t one, int64_t other) { return one < other ? one : other; }

/* Defines a function for the index of the first of ascending numbers that is not below `least`; without data-dependent
   branches. */
#define TRIVET_DEFINE_FIRST_FROM(first_from, type)                                                                     \
    static inline int64_t first_from(const type *numbers, int64_t count, int64_t least) {                              \
        const type *first = numbers;                                                                                   \
        while (count > 1) {                                                                                            \
            int64_t half = count / 2;                                                                                  \
            first = first[half - 1] < least ? first + half : first;                                                    \
            count -= half;                                                                                             \
        }                                                                                                              \
        return first - numbers + (count > 0 && *first < least);                                                        \
    }

TRIVET_DEFINE_FIRST_FROM(trivet_first_from, int32_t)

/* Defines a function that sorts an array in place by Shellsort: most arrays here are short, so that calls of a
   comparison function would dominate. */
#define TRIVET_DEFINE_SORT(sort, type, is_before)                                                                      \
    static void sort(type *items, int64_t count) {                                                                     \
        int64_t gap = 1;                                                                                               \
        while (gap < count / 3) gap = 3 * gap + 1;                                                                     \
        for (; gap > 0; gap /= 3)                                                                                      \
            for (int64_t at = gap; at < count; at++) {                                                                 \
                type item = items[at];                                                                                 \
                int64_t to = at;                                                                                       \
                for (; to >= gap && is_before(&item, items + to - gap); to -= gap) items[to] = items[to - gap];        \
                items[to] = item;                                                                                      \
            }                                                                                                          \
    }

/* The number of an item, with its score. */
struct scored {
    int64_t number;
    double score;
};

/* Best first, ties by number. */
static inline int trivet_is_better(const struct scored *one, const struct scored *other) {
    return one->score != other->score ? one->score > other->score : one->number < other->number;
}

/* A heap with the least of the best at its top. */
static inline void trivet_sink(struct scored *heap, int64_t size, int64_t at) {
    struct scored sinking = heap[at];
    for (int64_t below; (below = 2 * at + 1) < size; at = below) {
        below += below + 1 < size && trivet_is_better(heap + below, heap + below + 1);
        if (trivet_is_better(heap + below, &sinking)) break;
        heap[at] = heap[below];
    }
    heap[at] = sinking;
}

/* Add to a heap of the best `most`; returns its new size. */
static inline int64_t trivet_keep(struct scored *heap, int64_t size, int64_t most, struct scored next) {
    if (size < most) {
        heap[size++] = next;
        if (size == most)
            for (int64_t parent = size / 2; parent-- > 0;) trivet_sink(heap, size, parent);
    } else if (trivet_is_better(&next, heap)) {
        heap[0] = next;
        trivet_sink(heap, size, 0);
    }
    return size;
}

/* The dot product of two vectors. Sums are kept in lanes, for vector registers, in an order of additions that does not
   depend on the processor or the alignment. */
static inline float trivet_dot(const float *one, const float *other, int64_t dimensions) {
    float sums[TRIVET_LANES] = {0};
    int64_t at = 0;
    for (; at + TRIVET_LANES <= dimensions; at += TRIVET_LANES)
        for (int lane = 0; lane < TRIVET_LANES; lane++) sums[lane] += one[at + lane] * other[at + lane];
    for (int lane = 0; at < dimensions; at++, lane++) sums[lane] += one[at] * other[at];
    for (int width = TRIVET_LANES / 2; width; width /= 2)
        for (int lane = 0; lane < width; lane++) sums[lane] += sums[lane + width];
    return sums[0];
}
