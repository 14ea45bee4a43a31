/* Fuses several rankings of the same candidates. */
#include "kernels.h"

enum { MOST_LEGS = 3, FOUND = MOST_LEGS, PARTS };

TRIVET_DEFINE_SORT(sort, struct scored, trivet_is_better)

struct pair {
    double sum, rest;
};

/* A rounded sum and its error (Knuth, "The Art of Computer Programming", volume 2, 4.2.2). */
static struct pair two_sum(double one, double other) {
    double sum = one + other, part = sum - one;
    return (struct pair){sum, (one - (sum - part)) + (other - part)};
}

/* The sum of three numbers, correctly rounded: the error of the first additions is rounded to odd, so that the last
   addition rounds as if it were exact (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008,
   doi:10.1109/TC.2007.70819). */
static double sum_of_three(double one, double second, double third) {
    struct pair low = two_sum(second, third), high = two_sum(one, low.sum), rest = two_sum(high.rest, low.rest);
    if (rest.rest != 0) {
        int64_t bits;
        memcpy(&bits, &rest.sum, sizeof bits);
        if (!(bits & 1)) {
            bits += (rest.rest > 0) == (rest.sum > 0) ? 1 : -1;
            memcpy(&rest.sum, &bits, sizeof bits);
        }
    }
    return high.sum + rest.sum;
}

/* One ranking: its start among the concatenated candidates, how many of them count, and its weight. */
struct ranked {
    int64_t start, length;
    double weight;
};

/* Order n candidates by the sum over the legs of weight / (smoothing + rank), rank from 1.

   at: `size` candidates, the concatenated rankings, each without duplicates. A leg of weight 0 adds nothing.
   order, scores: out, of the candidates with a score, best first, ties by number; room for n.
   Returns their number, -1 if out of memory, -2 if the rankings are not of n candidates. */
int64_t trivet_fuse(int64_t n, int64_t size, const int32_t *at, int64_t legs, const struct ranked *rankings,
                    double smoothing, int64_t *order, double *scores) {
    if (legs < 0 || legs > MOST_LEGS || n < 0) return -2;
    for (int64_t leg = 0; leg < legs; leg++) {
        struct ranked each = rankings[leg];
        if (each.start < 0 || each.length < 0 || each.start > size || each.length > size - each.start) return -2;
        for (int64_t rank = 0; rank < each.length; rank++)
            if (at[each.start + rank] < 0 || at[each.start + rank] >= n) return -2;
    }
    double(*parts)[PARTS] = calloc((size_t)n + 1, sizeof *parts);
    struct scored *found = malloc(((size_t)n + 1) * sizeof *found);
    if (!parts || !found) {
        free(parts);
        free(found);
        return -1;
    }
    for (int64_t leg = 0; leg < legs; leg++) {
        struct ranked each = rankings[leg];
        if (each.weight == 0) continue;
        for (int64_t rank = 0; rank < each.length; rank++) {
            double *given = parts[at[each.start + rank]];
            given[leg] = each.weight / (smoothing + (double)(rank + 1));
            given[FOUND] = 1;
        }
    }
    int64_t count = 0;
    for (int64_t candidate = 0; candidate < n; candidate++) {
        const double *given = parts[candidate];
        if (given[FOUND]) found[count++] = (struct scored){candidate, sum_of_three(given[0], given[1], given[2])};
    }
    sort(found, count);
    for (int64_t place = 0; place < count; place++) {
        order[place] = found[place].number;
        scores[place] = found[place].score;
    }
    free(parts);
    free(found);
    return count;
}
