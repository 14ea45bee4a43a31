/* Finding hashes among sorted ones. */
#include "kernels.h"

/* The first place whose hash is not below `asked`. Hashes are evenly spread, so a search by doubling steps from where it
   should be touches a few cache lines, where a binary one touches a line for each halving. */
static int64_t lower_bound(const uint64_t *hashes, int64_t count, uint64_t asked) {
    int64_t low = 0, high = count, guess = lesser((int64_t)((double)asked * 0x1p-64 * (double)count), count - 1);
    if (hashes[guess] < asked) {
        for (int64_t step = 8; low = guess + 1, guess + step < high; guess += step, step *= 2)
            if (hashes[guess + step] >= asked) {
                high = guess + step;
                break;
            }
    } else {
        for (int64_t step = 8; high = guess, guess - step >= 0; guess -= step, step *= 2)
            if (hashes[guess - step] < asked) {
                low = guess - step + 1;
                break;
            }
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (hashes[middle] < asked)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where each of n hashes is among `count` ascending ones, count >= 1: first and end, equal if it is not there. */
void trivet_find_hashes(int64_t n, const uint64_t *asked, int64_t count, const uint64_t *hashes, int64_t *places) {
    for (int64_t each = 0; each < n; each++, places += 2) {
        places[0] = places[1] = lower_bound(hashes, count, asked[each]);
        if (places[0] < count && hashes[places[0]] == asked[each])
            places[1] = asked[each] == UINT64_MAX ? count : lower_bound(hashes, count, asked[each] + 1);
    }
}
