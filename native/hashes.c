/* Finding hashes among sorted ones. */
#include "kernels.h"

/* Where each of n hashes is among `count` ascending ones, count >= 1: first and end, equal if it is not there. */
void trivet_find_hashes(int64_t n, const uint64_t *asked, int64_t count, const uint64_t *hashes, int64_t *places) {
    for (int64_t each = 0; each < n; each++, places += 2) {
        places[0] = places[1] = trivet_lower_bound(hashes, count, asked[each], 0);
        if (places[0] < count && hashes[places[0]] == asked[each])
            places[1] = asked[each] == UINT64_MAX ? count : trivet_lower_bound(hashes, count, asked[each] + 1, 0);
    }
}
