/* One primitive on one element, through the kernels that every machine has. */
#include "numerics/evaluate.h"

#include "cpu/kernels.h"
#include "numerics/fpenv.h"

uint64_t evaluate_primitive(primitive p, ol_dtype operand, const uint64_t *operands)
{
    uint64_t out = 0;                  /* little-endian: an element is the low bytes of its bits */
    fpenv host = fpenv_begin();
    kernels_baseline.primitive[p][operand](&out, &operands[0], &operands[1], &operands[2], 1);
    fpenv_end(host);
    return out;
}

uint64_t evaluate_astype(ol_dtype from, ol_dtype to, uint64_t operand)
{
    uint64_t out = 0;
    fpenv host = fpenv_begin();
    kernels_baseline.astype[from][to](&out, &operand, NULL, NULL, 1);
    fpenv_end(host);
    return out;
}
