/* The elementwise functions of the interface that have operands and a stream alone: X(name). */
#ifndef MLXC_ELEMENTWISE_H
#define MLXC_ELEMENTWISE_H

#define MLXC_UNARY(X)                                                                                                      \
    X(abs) X(arccos) X(arccosh) X(arcsin) X(arcsinh) X(arctan) X(arctanh) X(ceil) X(cos) X(cosh) X(erf) X(erfinv) X(exp)   \
    X(expm1) X(floor) X(log) X(log2) X(log10) X(log1p) X(logical_not) X(negative) X(sigmoid) X(sign) X(sin) X(sinh)        \
    X(square) X(sqrt) X(rsqrt) X(tan) X(tanh) X(bitwise_invert)                                                            \
    X(reciprocal) X(isnan) X(isinf) X(isfinite) X(degrees) X(radians) X(stop_gradient)

#define MLXC_BINARY(X)                                                                                                     \
    X(add) X(divide) X(equal) X(greater) X(greater_equal) X(less) X(less_equal) X(logical_and) X(logical_or) X(logaddexp)  \
    X(maximum) X(minimum) X(multiply) X(not_equal) X(power) X(subtract) X(bitwise_and) X(bitwise_or) X(bitwise_xor)        \
    X(left_shift) X(right_shift) X(arctan2) X(remainder) X(floor_divide)

#endif
