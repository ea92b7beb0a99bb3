/* astype from one integer dtype to every dtype, included once for each (num_convert.h sets the macros).
 *
 * CONVERT(to) is num_astype_<from>_<to>; CONVERT_T the type; CONVERT_BITS the width; CONVERT_SIGNED 0 or 1. Integer to
 * integer keeps the low bits. To a float: one rounding. 32 bits fit a double; of 64 bits the ones that do not are first
 * gathered into the last bit that does (rounding to odd). */

NUM_FN uint8_t CONVERT(b8)(CONVERT_T x) { return x != 0; }
NUM_FN uint8_t CONVERT(u8)(CONVERT_T x) { return (uint8_t)x; }
NUM_FN uint16_t CONVERT(u16)(CONVERT_T x) { return (uint16_t)x; }
NUM_FN uint32_t CONVERT(u32)(CONVERT_T x) { return (uint32_t)x; }
NUM_FN uint64_t CONVERT(u64)(CONVERT_T x) { return (uint64_t)x; }
NUM_FN int8_t CONVERT(i8)(CONVERT_T x) { return (int8_t)x; }
NUM_FN int16_t CONVERT(i16)(CONVERT_T x) { return (int16_t)x; }
NUM_FN int32_t CONVERT(i32)(CONVERT_T x) { return (int32_t)x; }
NUM_FN int64_t CONVERT(i64)(CONVERT_T x) { return (int64_t)x; }
NUM_FN float CONVERT(f32)(CONVERT_T x) { return (float)x; }

#if CONVERT_BITS == 64

NUM_FN double CONVERT(odd64)(CONVERT_T x) {
#if CONVERT_SIGNED
    uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    double sign = x < 0 ? -1.0 : 1.0;
#else
    uint64_t magnitude = x;
    double sign = 1.0;
#endif
    int large = (magnitude >> 53) != 0;
    uint64_t gathered = (magnitude >> 11) | ((magnitude & 0x7ffu) != 0);
    double value = (double)(int64_t)(large ? gathered : magnitude);
    return sign * (large ? value * 2048.0 : value);
}

NUM_FN uint16_t CONVERT(f16)(CONVERT_T x) { return num_to_f16(CONVERT(odd64)(x)); }
NUM_FN uint16_t CONVERT(bf16)(CONVERT_T x) { return num_to_bf16(CONVERT(odd64)(x)); }

#elif CONVERT_BITS == 32

NUM_FN uint16_t CONVERT(f16)(CONVERT_T x) { return num_to_f16((double)x); }
NUM_FN uint16_t CONVERT(bf16)(CONVERT_T x) { return num_to_bf16((double)x); }

#else

NUM_FN uint16_t CONVERT(f16)(CONVERT_T x) { return num_narrow_f16((float)x); }
NUM_FN uint16_t CONVERT(bf16)(CONVERT_T x) { return num_narrow_bf16((float)x); }

#endif
