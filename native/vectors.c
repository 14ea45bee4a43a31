/* Vectors in 12 bits a component, and the nearest of many.

   A row has a scale, its greatest component / 2047. Of each component, in units of the scale and rounded, `high` holds
   the upper 8 of 12 bits and `low` the other four, those of components i and i + HALF in one byte; `signs` holds a bit,
   set where the component is above zero. */
#include "kernels.h"

enum { DIMENSIONS = 384, HALF = DIMENSIONS / 2, WORDS = DIMENSIONS / 64, GREATEST = 2047, AHEAD = 8 };

typedef struct {
    float score;
    int64_t row;
} Scored;

static void unpack(const int8_t *high, const uint8_t *low, float scale, float *out)
{
    for (int i = 0; i < HALF; i++) {
        out[i] = scale * (float)(16 * high[i] + (low[i] & 15));
        out[i + HALF] = scale * (float)(16 * high[i + HALF] + (low[i] >> 4));
    }
}

static int32_t coarse_product(const int8_t *high, const int16_t *query)
{
    int32_t sum = 0; /* at most 384 * 128 * 32767 */
    for (int i = 0; i < DIMENSIONS; i++)
        sum += high[i] * query[i];
    return sum;
}

/* Keeps n vectors in the given rows. */
void trivet_pack(const float *vectors, const int64_t *rows, int64_t n, int8_t *high, uint8_t *low, uint64_t *signs,
                 float *scales)
{
    for (int64_t at = 0; at < n; at++, vectors += DIMENSIONS) {
        int8_t *h = high + rows[at] * DIMENSIONS;
        uint8_t *l = low + rows[at] * HALF;
        uint64_t *s = signs + rows[at] * WORDS;
        float greatest = 0;
        for (int i = 0; i < DIMENSIONS; i++)
            greatest = fmaxf(greatest, fabsf(vectors[i]));
        float scale = greatest > 0 ? greatest / GREATEST : 1;
        memset(l, 0, HALF);
        memset(s, 0, WORDS * sizeof *s);
        for (int i = 0; i < DIMENSIONS; i++) {
            int value = (int)rintf(vectors[i] / scale);
            h[i] = (int8_t)(value >> 4);
            l[i % HALF] |= (uint8_t)((value & 15) << (i < HALF ? 0 : 4));
            s[i / 64] |= (uint64_t)(vectors[i] > 0) << (i % 64);
        }
        scales[rows[at]] = scale;
    }
}

/* The vectors of n rows. A row below zero stands for the vector that is there already. */
void trivet_unpack(const int8_t *high, const uint8_t *low, const float *scales, const int64_t *rows, int64_t n,
                   float *vectors)
{
    for (int64_t at = 0; at < n; at++) {
        if (at + AHEAD < n && rows[at + AHEAD] >= 0) {
            for (int i = 0; i < DIMENSIONS; i += 64)
                __builtin_prefetch(high + rows[at + AHEAD] * DIMENSIONS + i);
            for (int i = 0; i < HALF; i += 64)
                __builtin_prefetch(low + rows[at + AHEAD] * HALF + i);
        }
        if (rows[at] >= 0)
            unpack(high + rows[at] * DIMENSIONS, low + rows[at] * HALF, scales[rows[at]], vectors + at * DIMENSIONS);
    }
}

/* All eligible rows, or the `most` whose signs differ least from the query's; how many. Of rows whose signs differ
   alike, the first. -1 without memory. */
static int64_t likeliest(const uint64_t *signs, const uint8_t *eligible, int64_t n, const float *query, int64_t most,
                         int64_t *rows)
{
    int64_t all = 0, found = 0;
    for (int64_t row = 0; row < n; row++)
        all += eligible[row] != 0;
    if (all <= most) {
        for (int64_t row = 0; row < n; row++)
            if (eligible[row])
                rows[found++] = row;
        return found;
    }
    uint64_t asked[WORDS] = {0};
    for (int i = 0; i < DIMENSIONS; i++)
        asked[i / 64] |= (uint64_t)(query[i] > 0) << (i % 64);
    uint16_t *differing = malloc((size_t)n * sizeof *differing);
    if (!differing)
        return -1;
    int64_t with[DIMENSIONS + 2] = {0}, apart[4][DIMENSIONS + 2] = {{0}};
    for (int64_t row = 0; row < n; row++, signs += WORDS) {
        int count = 0;
        for (int word = 0; word < WORDS; word++)
            count += __builtin_popcountll(signs[word] ^ asked[word]);
        count = eligible[row] ? count : DIMENSIONS + 1;
        differing[row] = (uint16_t)count;
        apart[row % 4][count]++; /* neighbours count alike, and would wait for one another */
    }
    for (int count = 0; count < DIMENSIONS + 2; count++)
        with[count] = apart[0][count] + apart[1][count] + apart[2][count] + apart[3][count];
    int bound = 0;
    for (int64_t nearer = with[0]; bound < DIMENSIONS && nearer + with[bound + 1] <= most; bound++)
        nearer += with[bound + 1];
    int64_t room = most; /* for rows at the bound's far side, once the nearer ones have theirs */
    for (int count = 0; count <= bound; count++)
        room -= with[count];
    for (int64_t row = 0; row < n; row++) {
        if (differing[row] <= bound)
            rows[found++] = row;
        else if (differing[row] == bound + 1 && bound < DIMENSIONS && room > 0) {
            rows[found++] = row;
            room--;
        }
    }
    free(differing);
    return found;
}

/* The heap's least is at its top. */
static void sink(Scored *heap, int64_t size, int64_t at)
{
    Scored sinking = heap[at];
    for (int64_t below; (below = 2 * at + 1) < size; at = below) {
        if (below + 1 < size && heap[below + 1].score < heap[below].score)
            below++;
        if (heap[below].score >= sinking.score)
            break;
        heap[at] = heap[below];
    }
    heap[at] = sinking;
}

static int best_first(const void *a, const void *b)
{
    const Scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The rows about the nearest to a query among those eligible, best first, with their products; how many there are, at
   most `most`. -1 without memory.

   Signs choose `breadth` rows of n, the upper bits of these `most`, and all bits put them in order. */
int64_t trivet_nearest(const int8_t *high, const uint8_t *low, const uint64_t *signs, const float *scales,
                       const uint8_t *eligible, int64_t n, const float *query, int64_t breadth, int64_t most,
                       int64_t *rows, float *products)
{
    int64_t *chosen = malloc((size_t)breadth * sizeof *chosen), size = 0;
    Scored *best = malloc((size_t)most * sizeof *best);
    int64_t among = chosen && best ? likeliest(signs, eligible, n, query, breadth, chosen) : -1;
    if (among >= 0) {
        int16_t rounded[DIMENSIONS];
        float greatest = 0, total = 0;
        for (int i = 0; i < DIMENSIONS; i++) {
            greatest = fmaxf(greatest, fabsf(query[i]));
            total += query[i];
        }
        float unit = greatest > 0 ? greatest / INT16_MAX : 1;
        for (int i = 0; i < DIMENSIONS; i++)
            rounded[i] = (int16_t)rintf(query[i] / unit);
        for (int64_t at = 0; at < among; at++) {
            int64_t row = chosen[at];
            if (at + AHEAD < among)
                for (int i = 0; i < DIMENSIONS; i += 64)
                    __builtin_prefetch(high + chosen[at + AHEAD] * DIMENSIONS + i);
            float coarse = 16 * unit * (float)coarse_product(high + row * DIMENSIONS, rounded);
            Scored next = {scales[row] * (coarse + 7.5f * total), row}; /* 7.5: what the lower bits are on average */
            if (size < most) {
                best[size++] = next;
                if (size == most)
                    for (int64_t parent = size / 2; parent-- > 0;)
                        sink(best, size, parent);
            } else if (next.score > best[0].score) {
                best[0] = next;
                sink(best, size, 0);
            }
        }
        for (int64_t at = 0; at < size; at++) {
            float vector[DIMENSIONS];
            int64_t row = best[at].row;
            unpack(high + row * DIMENSIONS, low + row * HALF, scales[row], vector);
            best[at].score = trivet_dot(vector, query, DIMENSIONS);
        }
        qsort(best, (size_t)size, sizeof *best, best_first);
        for (int64_t at = 0; at < size; at++) {
            rows[at] = best[at].row;
            products[at] = best[at].score;
        }
    }
    free(chosen);
    free(best);
    return among < 0 ? -1 : size;
}
