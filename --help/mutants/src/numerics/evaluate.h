/* One primitive on one element, on the host, by the same kernels that replays run. For constant folding. */
#ifndef OL_EVALUATE_H
#define OL_EVALUATE_H

#include "onelaunch.h"
#include "primitives.h"

/* Operands and result as bits. `operand` is the dtype the kernel takes (where: of its second and third operand). */
uint64_t evaluate_primitive(primitive p, ol_dtype operand, const uint64_t *operands);
uint64_t evaluate_astype(ol_dtype from, ol_dtype to, uint64_t operand);

#endif
