/* The primitives as an enum, driven by primitives.def. */
#ifndef OL_PRIMITIVES_H
#define OL_PRIMITIVES_H

#include "onelaunch.h"

typedef enum primitive {
#define PRIMITIVE(name, arity, rule, cost) PRIMITIVE_##name,
#include "primitives.def"
#undef PRIMITIVE
    PRIMITIVE_COUNT
} primitive;

typedef enum type_rule {
    RULE_NUMERIC, RULE_FLOAT, RULE_PREDICATE, RULE_COMPARE, RULE_LOGICAL, RULE_BITS, RULE_SHIFT, RULE_WHERE
} type_rule;

typedef struct primitive_info {
    const char *name;
    uint8_t arity;
    uint8_t rule;
    uint8_t cost;
} primitive_info;

extern const primitive_info primitive_table[PRIMITIVE_COUNT];

/* The dtype a primitive's kernel takes its operands in, given their common dtype, and the dtype of its result. False where
 * the primitive refuses that dtype. (where: of its second and third operand.) */
int primitive_types(primitive p, ol_dtype common, ol_dtype *operand, ol_dtype *result);

#endif
