/* Vectors in 12 bits per component, and approximate nearest neighbours.

   A row's scale is its greatest component / 2047. Of each component, rounded in units of the scale, `high` holds the
   upper 8 of 12 bits and `low` the lower four, with components i and i + dimensions / 2 in one byte. `signs` holds one
   bit per component, set if it is positive. */
#include "worker_pool.h"
#include "kernels.h"

enum { GREATEST = 2047, AHEAD = 8, PART = 1 << 15, BYTES_AHEAD = 8192, TABLES = 4 };
enum { BUNDLED_WORDS = 6 }; /* of signs: see count_words */

/* `ask` ensures that no sum overflows. */
TRIVET_READS_CHANGING static int32_t coarse_product(const int8_t *high, const int16_t *query, int64_t dimensions) {
    int32_t sum = 0;
    for (int64_t i = 0; i < dimensions; i++)
        sum += high[i] * query[i];
    return sum;
}

/* Vectors by row, in the layout of retrieval/index/quantized_vectors.py. */
struct quantized {
    int8_t *high;
    uint8_t *low;
    uint64_t *signs; /* NULL if the vectors are not searched */
    float *scales;
    int64_t rows, dimensions; /* dimensions is even */
};

static int64_t words_of(int64_t dimensions) { return (dimensions + 63) / 64; }

/* One bit per component; the last word may have unused bits. */
static void put_signs(uint64_t *signs, const float *vector, int64_t dimensions) {
    memset(signs, 0, (size_t)words_of(dimensions) * sizeof *signs);
    for (int64_t i = 0; i < dimensions; i++)
        signs[i / 64] |= (uint64_t)(vector[i] > 0) << (i % 64);
}

/* Store n vectors in the given rows. */
void trivet_pack(const struct quantized *quantized, const float *vectors, const int64_t *rows, int64_t n) {
    int64_t dimensions = quantized->dimensions, half = dimensions / 2, words = words_of(dimensions);
    for (int64_t at = 0; at < n; at++, vectors += dimensions) {
        int8_t *h = quantized->high + rows[at] * dimensions;
        uint8_t *l = quantized->low + rows[at] * half;
        float greatest = 0;
        for (int64_t i = 0; i < dimensions; i++)
            greatest = fmaxf(greatest, fabsf(vectors[i]));
        float scale = greatest > 0 ? greatest / GREATEST : 1;
        for (int64_t i = 0; i < half; i++) {
            int one = (int)rintf(vectors[i] / scale), other = (int)rintf(vectors[i + half] / scale);
            h[i] = (int8_t)(one >> 4);
            h[i + half] = (int8_t)(other >> 4);
            l[i] = (uint8_t)((one & 15) | (other & 15) << 4);
        }
        if (quantized->signs)
            put_signs(quantized->signs + rows[at] * words, vectors, dimensions);
        quantized->scales[rows[at]] = scale;
    }
}

TRIVET_READS_CHANGING static void unpack(const struct quantized *quantized, int64_t row, float *out) {
    int64_t half = quantized->dimensions / 2;
    const int8_t *high = quantized->high + row * quantized->dimensions;
    const uint8_t *low = quantized->low + row * half;
    float scale = quantized->scales[row];
    for (int64_t i = 0; i < half; i++) {
        out[i] = scale * (float)(16 * high[i] + (low[i] & 15));
        out[i + half] = scale * (float)(16 * high[i + half] + (low[i] >> 4));
    }
}

static void prefetch(const struct quantized *quantized, int64_t row) {
    int64_t dimensions = quantized->dimensions, half = dimensions / 2;
    for (int64_t i = 0; i < dimensions; i += 64)
        __builtin_prefetch(quantized->high + row * dimensions + i);
    for (int64_t i = 0; i < half; i += 64)
        __builtin_prefetch(quantized->low + row * half + i);
}

/* Read the context and text vectors of those of n memories that are known (`is_known`), one after another. A negative
   text row means that the two are equal. */
void trivet_read_vectors(const struct quantized *context, const struct quantized *text, const uint8_t *known,
                         const int32_t *text_rows, int64_t slots, const int64_t *docs, int64_t n,
                         float *context_out, float *text_out, uint8_t *is_known) {
    for (int64_t at = 0; at < n; at++) {
        is_known[at] = docs[at] >= 0 && docs[at] < slots && docs[at] < context->rows && known[docs[at]];
        if (!is_known[at])
            continue;
        prefetch(context, docs[at]);
        if (text_rows[docs[at]] >= 0)
            prefetch(text, text_rows[docs[at]]);
    }
    for (int64_t at = 0; at < n; at++) {
        if (!is_known[at])
            continue;
        unpack(context, docs[at], context_out);
        if (text_rows[docs[at]] >= 0)
            unpack(text, text_rows[docs[at]], text_out);
        else
            memcpy(text_out, context_out, (size_t)context->dimensions * sizeof *text_out);
        context_out += context->dimensions;
        text_out += context->dimensions;
    }
}

/* Of a part: the first of the chosen rows, the number just beyond the bound, and the number of its best found. */
struct part {
    int64_t first, room, size;
};

/* A search for the approximately nearest rows, in two stages run in parts of PART rows: first count the signs of each
   row that differ from the query's, then compute the dot products of the rows with the fewest. The result does not
   depend on the number of threads. */
typedef struct {
    Job job;
    struct quantized quantized;
    const uint8_t *eligible;
    int64_t n, breadth, most, counts, *rows, *found;
    float *products, unit, total;
    int is_narrow, bound, has_chosen;
    /* After the structure, in the same block: */
    struct scored *best; /* `most` per part */
    struct part *part;
    int64_t *chosen; /* rows */
    uint64_t *asked; /* the query's signs */
    float *query, *vector; /* `vector` has room for one */
    int32_t *with;         /* see counts_of */
    uint16_t *differing;   /* per row; `counts`, which is above any number of signs, if ineligible */
    int16_t *rounded;      /* the query in units */
} Search;

/* Per part, a histogram of the rows by differing signs, with a slot for ineligible rows. It is first counted in four
   interleaved tables, as neighbouring rows often have equal counts and would wait for each other's increments in one
   table. */
static int32_t *counts_of(const Search *search, int64_t part) {
    return search->with + part * TABLES * (search->counts + 1);
}

/* Specialised for the dimensions of the bundled embedder, which saves a tenth of a search. */
TRIVET_READS_CHANGING static inline __attribute__((always_inline)) void
count_words(const Search *search, int64_t part, const int64_t words) {
    int64_t first = part * PART, end = lesser(first + PART, search->n);
    int64_t counts = search->counts;
    const uint64_t *signs = search->quantized.signs + first * words, *asked = search->asked;
    const uint8_t *eligible = search->eligible;
    uint16_t *restrict differing = search->differing;
    int32_t *restrict with = counts_of(search, part);
    int is_narrow = search->is_narrow;
    memset(with, 0, (size_t)(TABLES * (counts + 1)) * sizeof *with);
    for (int64_t row = first; row < end; row++, signs += words) {
        int64_t count = eligible[row] ? 0 : counts;
        __builtin_prefetch((const char *)signs + BYTES_AHEAD); /* the hardware prefetcher stops at page ends */
        if (is_narrow && eligible[row]) /* half the time with few eligible rows, 1.15 with a random half */
            for (int64_t word = 0; word < words; word++)
                count += __builtin_popcountll(signs[word] ^ asked[word]);
        differing[row] = (uint16_t)count;
        with[count * TABLES + (row & (TABLES - 1))]++;
    }
    for (int64_t count = 0; count < counts; count++) {
        const int32_t *of_tables = with + count * TABLES;
        with[count] = of_tables[0] + of_tables[1] + of_tables[2] + of_tables[3];
    }
}

TRIVET_READS_CHANGING static __attribute__((noinline)) void count_bundled(const Search *search, int64_t part) {
    count_words(search, part, BUNDLED_WORDS);
}

TRIVET_READS_CHANGING static void count_differing(Search *search, int64_t part) {
    int64_t words = words_of(search->quantized.dimensions);
    if (words == BUNDLED_WORDS)
        count_bundled(search, part);
    else
        count_words(search, part, words);
}

/* Choose the rows with at most `bound` differing signs, and the first of those with one more. */
static void choose(Search *search) {
    int64_t chosen = 0;
    int counts = (int)search->counts;
    for (search->bound = -1; search->bound + 1 < counts; search->bound++) {
        int64_t more = 0;
        for (int64_t part = 0; part < search->job.parts; part++)
            more += counts_of(search, part)[search->bound + 1];
        if (chosen + more > search->breadth)
            break;
        chosen += more;
    }
    int64_t room = search->breadth - chosen, first = 0;
    for (int64_t part = 0; part < search->job.parts; part++) {
        const int32_t *with = counts_of(search, part);
        search->part[part].first = first;
        for (int count = 0; count <= search->bound; count++)
            first += with[count];
        int64_t beyond = search->bound + 1 < counts ? lesser(room, with[search->bound + 1]) : 0;
        search->part[part].room = beyond;
        first += beyond;
        room -= beyond;
    }
}

TRIVET_DEFINE_SORT(sort, struct scored, trivet_is_better)

TRIVET_READS_CHANGING static void compare(Search *search, int64_t part) {
    int64_t first = part * PART, end = lesser(first + PART, search->n), among = 0, size = 0;
    int64_t *chosen = search->chosen + search->part[part].first, room = search->part[part].room;
    int64_t dimensions = search->quantized.dimensions;
    for (int64_t row = first; row < end; row++) {
        int beyond = search->differing[row] - search->bound;
        if (beyond <= 0 || (beyond == 1 && room-- > 0))
            chosen[among++] = row;
    }
    struct scored *best = search->best + part * search->most;
    for (int64_t at = 0; at < among; at++) {
        int64_t row = chosen[at];
        if (at + AHEAD < among)
            for (int64_t i = 0; i < dimensions; i += 64)
                __builtin_prefetch(search->quantized.high + chosen[at + AHEAD] * dimensions + i);
        const int8_t *high = search->quantized.high + row * dimensions;
        float coarse = 16 * search->unit * (float)coarse_product(high, search->rounded, dimensions);
        /* 7.5: the mean of the lower bits */
        struct scored next = {row, search->quantized.scales[row] * (coarse + 7.5f * search->total)};
        size = trivet_keep(best, size, search->most, next);
    }
    search->part[part].size = size;
}

/* Merge the results of the parts, ordered by the exact dot products. */
static void finish(Search *search) {
    struct scored *best = search->best;
    int64_t size = search->part[0].size;
    for (int64_t part = 1; part < search->job.parts; part++)
        for (int64_t at = 0; at < search->part[part].size; at++)
            size = trivet_keep(best, size, search->most, search->best[part * search->most + at]);
    for (int64_t at = 0; at < size; at++) {
        unpack(&search->quantized, best[at].number, search->vector);
        best[at].score = trivet_dot(search->vector, search->query, search->quantized.dimensions);
    }
    sort(best, size);
    for (int64_t at = 0; at < size; at++) {
        search->rows[at] = best[at].number;
        search->products[at] = (float)best[at].score;
    }
    *search->found = size;
}

static void search_run_part(Job *job, int64_t part) {
    Search *search = (Search *)job;
    (search->has_chosen ? compare : count_differing)(search, part);
}

static int search_next_stage(Job *job) {
    Search *search = (Search *)job;
    if (search->has_chosen) {
        finish(search);
        return 0;
    }
    choose(search);
    search->has_chosen = 1;
    return 1;
}

static void ask(Search *search, const float *query) {
    int64_t dimensions = search->quantized.dimensions;
    int32_t most = (int32_t)lesser(INT16_MAX, INT32_MAX / (128 * dimensions)); /* see coarse_product */
    float greatest = 0;
    memcpy(search->query, query, (size_t)dimensions * sizeof *query);
    put_signs(search->asked, query, dimensions);
    for (int64_t i = 0; i < dimensions; i++) {
        greatest = fmaxf(greatest, fabsf(query[i]));
        search->total += query[i];
    }
    search->unit = greatest > 0 ? greatest / (float)most : 1;
    for (int64_t i = 0; i < dimensions; i++)
        search->rounded[i] = (int16_t)rintf(query[i] / search->unit);
}

/* The approximately nearest eligible rows to a query, best first, with their dot products; at most `most`, which is the
   size of `rows` and `products`. `found` receives their number. `count` of the n rows are eligible. Returns -1 if out
   of memory.

   Signs select `breadth` of n rows, the upper bits select `most` of these, and all bits order them; of rows with
   equally many differing signs the first are chosen. With a pool the result is ready when the ticket arrives, and all
   arrays except the query must live until then. */
int trivet_nearest(WorkerPool *pool, int64_t ticket, const struct quantized *quantized, const uint8_t *eligible,
                   int64_t n, int64_t count, const float *query, int64_t breadth, int64_t most, int64_t *rows,
                   float *products, int64_t *found) {
    int64_t parts = n > PART ? (n + PART - 1) / PART : 1, dimensions = quantized->dimensions, counts = dimensions + 1;
    int64_t items = parts * most, chosen = lesser(breadth, n), words = words_of(dimensions);
    int64_t tables = parts * TABLES * (counts + 1);
    Search *search = malloc(sizeof *search + (size_t)items * sizeof *search->best + (size_t)parts * sizeof *search->part
                            + (size_t)chosen * sizeof *search->chosen + (size_t)words * sizeof *search->asked
                            + (size_t)(2 * dimensions) * sizeof *search->query + (size_t)tables * sizeof *search->with
                            + (size_t)n * sizeof *search->differing + (size_t)dimensions * sizeof *search->rounded);
    if (!search)
        return -1;
    *search = (Search){.job = {search_run_part, search_next_stage, parts, 0, 0, 0, NULL},
                       .quantized = *quantized, .eligible = eligible, .n = n, .breadth = breadth, .most = most,
                       .counts = counts, .is_narrow = count > breadth,
                       .rows = rows, .found = found, .products = products};
    search->best = (struct scored *)(search + 1); /* then by falling alignment */
    search->part = (struct part *)(search->best + items);
    search->chosen = (int64_t *)(search->part + parts);
    search->asked = (uint64_t *)(search->chosen + chosen);
    search->query = (float *)(search->asked + words);
    search->vector = search->query + dimensions;
    search->with = (int32_t *)(search->vector + dimensions);
    search->differing = (uint16_t *)(search->with + tables);
    search->rounded = (int16_t *)(search->differing + n);
    ask(search, query);
    trivet_job_submit(pool, &search->job, ticket);
    return 0;
}
