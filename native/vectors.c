/* Vectors in 12 bits a component, and the nearest of many.

   A row has a scale, its greatest component / 2047. Of each component, in units of the scale and rounded, `high` holds
   the upper 8 of 12 bits and `low` the other four, those of components i and i + HALF in one byte; `signs` holds a bit,
   set where the component is above zero. */
#include "crew.h"
#include "kernels.h"

enum { DIMENSIONS = 384, HALF = DIMENSIONS / 2, WORDS = DIMENSIONS / 64, GREATEST = 2047, AHEAD = 8 };
enum { PART = 1 << 15, COUNTS = DIMENSIONS + 1, NOT_ELIGIBLE = COUNTS, BYTES_AHEAD = 8192 };

typedef struct {
    float score;
    int64_t row;
} Scored;

static int32_t coarse_product(const int8_t *high, const int16_t *query)
{
    int32_t sum = 0; /* at most 384 * 128 * 32767 */
    for (int i = 0; i < DIMENSIONS; i++)
        sum += high[i] * query[i];
    return sum;
}

/* Vectors by row, as retrieval/mirror/quantised.py lays them out. */
struct kept {
    int8_t *high;
    uint8_t *low;
    uint64_t *signs; /* none where nothing is searched for among them */
    float *scales;
    int64_t rows;
};

/* Keeps n vectors in the given rows. */
void trivet_pack(const struct kept *kept, const float *vectors, const int64_t *rows, int64_t n)
{
    for (int64_t at = 0; at < n; at++, vectors += DIMENSIONS) {
        int8_t *h = kept->high + rows[at] * DIMENSIONS;
        uint8_t *l = kept->low + rows[at] * HALF;
        uint64_t of_row[WORDS] = {0};
        float greatest = 0;
        for (int i = 0; i < DIMENSIONS; i++)
            greatest = fmaxf(greatest, fabsf(vectors[i]));
        float scale = greatest > 0 ? greatest / GREATEST : 1;
        memset(l, 0, HALF);
        for (int i = 0; i < DIMENSIONS; i++) {
            int value = (int)rintf(vectors[i] / scale);
            h[i] = (int8_t)(value >> 4);
            l[i % HALF] |= (uint8_t)((value & 15) << (i < HALF ? 0 : 4));
            of_row[i / 64] |= (uint64_t)(vectors[i] > 0) << (i % 64);
        }
        if (kept->signs)
            memcpy(kept->signs + rows[at] * WORDS, of_row, sizeof of_row);
        kept->scales[rows[at]] = scale;
    }
}

static void unpack(const struct kept *kept, int64_t row, float *out)
{
    const int8_t *high = kept->high + row * DIMENSIONS;
    const uint8_t *low = kept->low + row * HALF;
    float scale = kept->scales[row];
    for (int i = 0; i < HALF; i++) {
        out[i] = scale * (float)(16 * high[i] + (low[i] & 15));
        out[i + HALF] = scale * (float)(16 * high[i + HALF] + (low[i] >> 4));
    }
}

static void prefetch(const struct kept *kept, int64_t row)
{
    for (int i = 0; i < DIMENSIONS; i += 64)
        __builtin_prefetch(kept->high + row * DIMENSIONS + i);
    for (int i = 0; i < HALF; i += 64)
        __builtin_prefetch(kept->low + row * HALF + i);
}

/* The stored and the own vectors of those of n memories that are known, one after another. An own row below zero says
   that the two are the same. Which memories are known `is_known` tells. */
void trivet_read_vectors(const struct kept *stored, const struct kept *own, const uint8_t *known,
                         const int32_t *own_rows, int64_t ordinals, const int64_t *docs, int64_t n,
                         float *stored_out, float *own_out, uint8_t *is_known)
{
    for (int64_t at = 0; at < n; at++) {
        is_known[at] = docs[at] >= 0 && docs[at] < ordinals && docs[at] < stored->rows && known[docs[at]];
        if (!is_known[at])
            continue;
        prefetch(stored, docs[at]);
        if (own_rows[docs[at]] >= 0)
            prefetch(own, own_rows[docs[at]]);
    }
    for (int64_t at = 0; at < n; at++) {
        if (!is_known[at])
            continue;
        unpack(stored, docs[at], stored_out);
        if (own_rows[docs[at]] >= 0)
            unpack(own, own_rows[docs[at]], own_out);
        else
            memcpy(own_out, stored_out, DIMENSIONS * sizeof *own_out);
        stored_out += DIMENSIONS;
        own_out += DIMENSIONS;
    }
}

/* Rows that are about the nearest to a query, in two stages, each in parts of PART rows: how many signs of each differ
   from the query's, then the products of those that differ least. What is found does not depend on how many threads
   there are. */
typedef struct {
    Work work;
    struct kept kept;
    const uint8_t *eligible;
    int64_t n, breadth, most;
    float query[DIMENSIONS], unit, total;
    int16_t rounded[DIMENSIONS];
    uint64_t asked[WORDS];
    int is_narrow, bound, has_chosen;
    uint16_t *differing;       /* of each row, or NOT_ELIGIBLE */
    int32_t (*with)[COUNTS];   /* of each part: how many rows differ so much */
    int64_t *chosen, *first, *room; /* rows; of each part: its first among them, and how many just beyond the bound */
    Scored *best;              /* of each part `most` places */
    int64_t *size;             /* of each part: how many of them are in use */
    int64_t *rows, *found;
    float *products;
} Search;

static void count_differing(Search *search, int64_t part)
{
    int64_t first = part * PART, end = lesser(first + PART, search->n);
    const uint64_t *signs = search->kept.signs + first * WORDS, *asked = search->asked;
    int32_t apart[4][COUNTS + 1] = {{0}}; /* neighbours count alike, and would wait for one another */
    for (int64_t row = first; row < end; row++, signs += WORDS) {
        int count = 0;
        __builtin_prefetch((const char *)signs + BYTES_AHEAD); /* the processor itself stops at the end of a page */
        if (search->is_narrow)
            for (int word = 0; word < WORDS; word++)
                count += __builtin_popcountll(signs[word] ^ asked[word]);
        count = search->eligible[row] ? count : NOT_ELIGIBLE;
        search->differing[row] = (uint16_t)count;
        apart[row % 4][count]++;
    }
    for (int count = 0; count < COUNTS; count++)
        search->with[part][count] = apart[0][count] + apart[1][count] + apart[2][count] + apart[3][count];
}

/* The rows that differ at most by the bound are chosen, and of those just beyond it the first. */
static void choose(Search *search)
{
    int64_t chosen = 0;
    for (search->bound = -1; search->bound + 1 < COUNTS; search->bound++) {
        int64_t more = 0;
        for (int64_t part = 0; part < search->work.parts; part++)
            more += search->with[part][search->bound + 1];
        if (chosen + more > search->breadth)
            break;
        chosen += more;
    }
    int64_t room = search->breadth - chosen, first = 0;
    for (int64_t part = 0; part < search->work.parts; part++) {
        const int32_t *with = search->with[part];
        search->first[part] = first;
        for (int count = 0; count <= search->bound; count++)
            first += with[count];
        search->room[part] = search->bound + 1 < COUNTS ? lesser(room, with[search->bound + 1]) : 0;
        first += search->room[part];
        room -= search->room[part];
    }
}

static int is_better(Scored one, Scored other)
{
    return one.score != other.score ? one.score > other.score : one.row < other.row;
}

/* The heap's least is at its top. */
static void sink(Scored *heap, int64_t size, int64_t at)
{
    Scored sinking = heap[at];
    for (int64_t below; (below = 2 * at + 1) < size; at = below) {
        if (below + 1 < size && is_better(heap[below], heap[below + 1]))
            below++;
        if (is_better(heap[below], sinking))
            break;
        heap[at] = heap[below];
    }
    heap[at] = sinking;
}

/* Puts one into a heap of at most `most`; its new size. */
static int64_t keep(Scored *heap, int64_t size, int64_t most, Scored next)
{
    if (size < most) {
        heap[size++] = next;
        if (size == most)
            for (int64_t parent = size / 2; parent-- > 0;)
                sink(heap, size, parent);
    } else if (is_better(next, heap[0])) {
        heap[0] = next;
        sink(heap, size, 0);
    }
    return size;
}

static void compare(Search *search, int64_t part)
{
    int64_t first = part * PART, end = lesser(first + PART, search->n), room = search->room[part], among = 0, size = 0;
    int64_t *chosen = search->chosen + search->first[part];
    for (int64_t row = first; row < end; row++) {
        int beyond = search->differing[row] - search->bound;
        if (beyond <= 0)
            chosen[among++] = row;
        else if (beyond == 1 && room > 0) {
            chosen[among++] = row;
            room--;
        }
    }
    Scored *best = search->best + part * search->most;
    for (int64_t at = 0; at < among; at++) {
        int64_t row = chosen[at];
        if (at + AHEAD < among)
            for (int i = 0; i < DIMENSIONS; i += 64)
                __builtin_prefetch(search->kept.high + chosen[at + AHEAD] * DIMENSIONS + i);
        float coarse = 16 * search->unit * (float)coarse_product(search->kept.high + row * DIMENSIONS, search->rounded);
        /* 7.5: what the lower bits are on average */
        Scored next = {search->kept.scales[row] * (coarse + 7.5f * search->total), row};
        size = keep(best, size, search->most, next);
    }
    search->size[part] = size;
}

static int best_first(const void *a, const void *b)
{
    return is_better(*(const Scored *)b, *(const Scored *)a) - is_better(*(const Scored *)a, *(const Scored *)b);
}

/* Brings what the parts found together, in the order of the exact products. */
static void finish(Search *search)
{
    Scored *best = search->best;
    int64_t size = search->size[0];
    for (int64_t part = 1; part < search->work.parts; part++)
        for (int64_t at = 0; at < search->size[part]; at++)
            size = keep(best, size, search->most, search->best[part * search->most + at]);
    for (int64_t at = 0; at < size; at++) {
        float vector[DIMENSIONS];
        unpack(&search->kept, best[at].row, vector);
        best[at].score = trivet_dot(vector, search->query, DIMENSIONS);
    }
    qsort(best, (size_t)size, sizeof *best, best_first);
    for (int64_t at = 0; at < size; at++) {
        search->rows[at] = best[at].row;
        search->products[at] = best[at].score;
    }
    *search->found = size;
}

static void search_part(Work *work, int64_t at)
{
    Search *search = (Search *)work;
    (search->has_chosen ? compare : count_differing)(search, at);
}

static int search_onward(Work *work)
{
    Search *search = (Search *)work;
    if (search->has_chosen) {
        finish(search);
        return 0;
    }
    choose(search);
    search->has_chosen = 1;
    return 1;
}

static void search_discard(Work *work)
{
    Search *search = (Search *)work;
    free(search->differing);
    free(search->with);
    free(search->chosen);
    free(search->first);
    free(search->room);
    free(search->best);
    free(search->size);
    free(search);
}

static void ask(Search *search, const float *query)
{
    float greatest = 0;
    memcpy(search->query, query, sizeof search->query);
    for (int i = 0; i < DIMENSIONS; i++) {
        greatest = fmaxf(greatest, fabsf(query[i]));
        search->total += query[i];
        search->asked[i / 64] |= (uint64_t)(query[i] > 0) << (i % 64);
    }
    search->unit = greatest > 0 ? greatest / INT16_MAX : 1;
    for (int i = 0; i < DIMENSIONS; i++)
        search->rounded[i] = (int16_t)rintf(query[i] / search->unit);
}

/* The rows about the nearest to a query among those eligible, best first, with their products: at most `most`, which is
   what `rows` and `products` have room for; `found` says how many. `count` of the n rows are eligible. -1 without
   memory.

   Signs choose `breadth` rows of n, the upper bits of these `most`, and all bits put them in order; of rows whose signs
   differ alike, the first are chosen. With a crew the answer comes with the ticket, and all arrays but the query must
   stay until then. */
int trivet_nearest(Crew *crew, int64_t ticket, const struct kept *kept, const uint8_t *eligible, int64_t n,
                   int64_t count, const float *query, int64_t breadth, int64_t most, int64_t *rows, float *products,
                   int64_t *found)
{
    int64_t parts = n > PART ? (n + PART - 1) / PART : 1;
    Search *search = calloc(1, sizeof *search);
    if (!search)
        return -1;
    *search = (Search){.work = {search_part, search_onward, search_discard, parts, 0, 0, 0, NULL},
                       .kept = *kept, .eligible = eligible, .n = n, .breadth = breadth, .most = most,
                       .is_narrow = count > breadth,
                       .rows = rows, .found = found, .products = products};
    search->differing = malloc((size_t)(n + 1) * sizeof *search->differing);
    search->with = malloc((size_t)parts * sizeof *search->with);
    search->chosen = malloc((size_t)(lesser(breadth, n) + 1) * sizeof *search->chosen);
    search->first = malloc((size_t)parts * sizeof *search->first);
    search->room = malloc((size_t)parts * sizeof *search->room);
    search->best = malloc((size_t)(parts * most + 1) * sizeof *search->best);
    search->size = malloc((size_t)parts * sizeof *search->size);
    if (!search->differing || !search->with || !search->chosen || !search->first || !search->room || !search->best
        || !search->size) {
        search_discard(&search->work);
        return -1;
    }
    ask(search, query);
    if (crew)
        trivet_work_beside(crew, &search->work, ticket);
    else
        trivet_work_here(&search->work);
    return 0;
}
