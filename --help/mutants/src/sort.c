/* Heap sort of indices (Williams 1964, Floyd 1964). */
#include "sort.h"

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t t = *a;
    *a = *b;
    *b = t;
}

static void sift_down(uint32_t *order, size_t root, size_t n, sort_compare compare, const void *context)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        child += child + 1 < n && compare(context, order[child + 1], order[child]) > 0;
        if (compare(context, order[root], order[child]) >= 0)
            return;
        swap(&order[root], &order[child]);
    }
}

void sort_indices(uint32_t *order, uint32_t n, sort_compare compare, const void *context)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n / 2; i-- > 0;)
        sift_down(order, i, n, compare, context);
    for (size_t i = n; i-- > 1;) {
        swap(&order[0], &order[i]);
        sift_down(order, 0, i, compare, context);
    }
}
