/* The table of primitives and their type rules, from primitives.def. */
#include "primitives.h"

#include "dtype.h"

#include <string.h>

#define NUMERIC RULE_NUMERIC
#define FLOAT RULE_FLOAT
#define PREDICATE RULE_PREDICATE
#define COMPARE RULE_COMPARE
#define LOGICAL RULE_LOGICAL
#define BITS RULE_BITS
#define SHIFT RULE_SHIFT
#define WHERE RULE_WHERE

const primitive_info primitive_table[PRIMITIVE_COUNT] = {
#define PRIMITIVE(name, arity, rule, cost) { #name, arity, rule, cost },
#include "primitives.def"
#undef PRIMITIVE
};

int primitive_types(primitive p, ol_dtype common, ol_dtype *operand, ol_dtype *result)
{
    ol_dtype in = common, out = common;
    switch ((type_rule)primitive_table[p].rule) {
    case RULE_NUMERIC:
    case RULE_WHERE:
        break;
    case RULE_FLOAT:
        if (!dtype_is_float(common))
            in = out = OL_FLOAT32;
        break;
    case RULE_PREDICATE:
    case RULE_COMPARE:
        out = OL_BOOL;
        break;
    case RULE_LOGICAL:
        in = out = OL_BOOL;
        break;
    case RULE_BITS:
        if (dtype_is_float(common))
            return 0;
        break;
    case RULE_SHIFT:
        if (dtype_is_float(common) || common == OL_BOOL)
            return 0;
        break;
    }
    *operand = in;
    *result = out;
    return 1;
}

int32_t ol_primitive_count(void)
{
    return PRIMITIVE_COUNT;
}

const char *ol_primitive_name(int32_t p)
{
    return p >= 0 && p < PRIMITIVE_COUNT ? primitive_table[p].name : NULL;
}

int32_t ol_primitive_arity(int32_t p)
{
    return p >= 0 && p < PRIMITIVE_COUNT ? primitive_table[p].arity : 0;
}

int32_t ol_primitive_find(const char *name)
{
    for (int32_t p = 0; name && p < PRIMITIVE_COUNT; p++)
        if (strcmp(name, primitive_table[p].name) == 0)
            return p;
    return -1;
}

int ol_primitive_result(int32_t p, ol_dtype operand, ol_dtype *result)
{
    ol_dtype in;
    return p >= 0 && p < PRIMITIVE_COUNT && dtype_valid(operand) && result && primitive_types((primitive)p, operand, &in, result);
}
