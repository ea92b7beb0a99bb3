/* The hand-written loop of one SIMD level: see hand_loop.h. HAND_LOOP(name) is name_<level>. */
#include "hand_loop.h"

#include "numerics/numerics.h"

void HAND_LOOP(hand_loop_f32)(float *restrict beta, float *restrict decay, const float *restrict b, const float *restrict a,
                              const float *restrict A_log, const float *restrict dt_bias, size_t tokens, size_t heads) {
    _Alignas(64) float rate[HAND_LOOP_MAX_HEADS];
    _Pragma("omp simd") for (size_t h = 0; h < heads; h++) {
        rate[h] = num_exp_f32(A_log[h]);
    }
    for (size_t t = 0; t < tokens; t++, beta += heads, decay += heads, b += heads, a += heads) {
        _Pragma("omp simd") for (size_t h = 0; h < heads; h++) {
            beta[h] = num_sigmoid_f32(b[h]);
            float interval = num_softplus_f32(num_add_f32(a[h], dt_bias[h]));
            decay[h] = num_exp_f32(num_negative_f32(num_multiply_f32(rate[h], interval)));
        }
    }
}

void HAND_LOOP(hand_loop_bf16)(uint16_t *restrict beta, float *restrict decay, const uint16_t *restrict b, const uint16_t *restrict a,
                               const float *restrict A_log, const uint16_t *restrict dt_bias, size_t tokens, size_t heads) {
    _Alignas(64) float rate[HAND_LOOP_MAX_HEADS];
    _Pragma("omp simd") for (size_t h = 0; h < heads; h++) {
        rate[h] = num_exp_f32(A_log[h]);
    }
    for (size_t t = 0; t < tokens; t++, beta += heads, decay += heads, b += heads, a += heads) {
        _Pragma("omp simd") for (size_t h = 0; h < heads; h++) {
            beta[h] = num_sigmoid_bf16(b[h]);
            float interval = num_widen_bf16(num_softplus_bf16(num_add_bf16(a[h], dt_bias[h])));
            decay[h] = num_exp_f32(num_negative_f32(num_multiply_f32(rate[h], interval)));
        }
    }
}
