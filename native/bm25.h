/* A query of BM25 and a namespace as retrieval/legs/okapi.py, mirror/terms.py and mirror/columns.py lay them out. */
#include "kernels.h"

/* What a term or a period adds to the scores of the memories that it has. */
struct part {
    const int32_t *docs;    /* ordinals, ascending */
    const uint16_t *tfs;    /* how often the term stands in each; null for a period, which adds the same to all */
    const int32_t *lengths; /* terms in each */
    int64_t size;
    int64_t most, shortest; /* of tfs and of lengths */
    double weight;          /* the term's idf; what a period adds */
};

/* The saturation of a memory is k1 * (base + slope * length); the terms come before the period. */
struct query {
    int64_t parts;
    double k1, base, slope;
    struct part part[];
};

static inline double saturation(const struct query *query, int64_t length)
{
    return query->k1 * (query->base + query->slope * (double)length);
}

/* What a part adds to the memory at a place of it. */
static inline double added(const struct query *query, const struct part *part, int64_t at)
{
    if (!part->tfs)
        return part->weight;
    double tf = part->tfs[at];
    return part->weight * (query->k1 + 1) * tf / (tf + saturation(query, part->lengths[at]));
}

/* What is known of memories, by ordinal; -1 is no neighbour, no session and no speaker. */
struct memories {
    int64_t ordinals;
    const int32_t *previous, *next, *lengths, *sessions, *speakers;
    const uint8_t *asks;
};

struct scored {
    int64_t doc;
    double score;
};

/* The best allowed memories with scores above 0: those wanted and the equals of the last one, by ordinal. Gives how many
   they are, which the caller frees, or -1 where memory ran out. */
int64_t trivet_best(const struct query *query, const uint8_t *allowed, int64_t ordinals, int64_t wanted,
                    struct scored **best);

/* The place of the first memory from `at` on that is no less than `doc`: most often it is near. */
static inline int64_t reached(const struct part *part, int64_t at, int64_t doc)
{
    int64_t step = 1, end = part->size;
    while (at + step < end && part->docs[at + step] < doc) {
        at += step;
        step *= 2;
    }
    if (at + step < end)
        end = at + step;
    while (at < end) {
        int64_t middle = at + (end - at) / 2;
        if (part->docs[middle] < doc)
            at = middle + 1;
        else
            end = middle;
    }
    return at;
}

/* The same of the memories from one place to another, without branches that depend on the data. */
static inline int64_t reached_among(const struct part *part, int64_t from, int64_t to, int64_t doc)
{
    const int32_t *docs = part->docs + from;
    int64_t left = to - from;
    while (left > 1) {
        int64_t half = left / 2;
        docs = docs[half - 1] < doc ? docs + half : docs;
        left -= half;
    }
    return docs - part->docs + (left > 0 && *docs < doc);
}

/* Where a memory stands among those of a part from one place to another, -1 where it does not. */
static inline int64_t place(const struct part *part, int64_t from, int64_t to, int64_t doc)
{
    int64_t at = reached_among(part, from, to, doc);
    return at < to && part->docs[at] == doc ? at : -1;
}
