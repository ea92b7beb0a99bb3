/* What the text of a CUDA kernel stands on besides the numerics: fixed-size integers, places, loads and stores. Preprocessed
 * together with src/numerics into one text (CMakeLists.txt), of which a kernel gets what it names (device_text.c), so that it
 * includes nothing. Not compiled into the library. */

typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
#define UINT32_MAX 0xffffffffu
#define UINT64_MAX 0xffffffffffffffffull
#define INT32_MAX 0x7fffffff
#define INT32_MIN (-0x7fffffff - 1)
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-0x7fffffffffffffffll - 1)

#define KERNEL_FN static __device__ __forceinline__
#define KERNEL_MEMBER __device__ __forceinline__
#define KERNEL_CALLED static __device__ __noinline__             /* what is seldom used or often written: compilers take less time */
#define KERNEL_UNROLL _Pragma("unroll")

#include "kernel_hardware.h"
#include "../numerics/numerics.h"
#include "words.h"
#include "mixer_words.h"

KERNEL_FN uint32_t kernel_lower(uint64_t word) { return (uint32_t)word; }
KERNEL_FN uint32_t kernel_upper(uint64_t word) { return (uint32_t)(word >> 32); }

KERNEL_FN uint32_t kernel_map(const uint64_t *group, uint32_t clusters, uint32_t tensor) {
    return (uint16_t)(group[GROUP_CLUSTERS + clusters + tensor / 4] >> tensor % 4 * 16);
}

/* The view of a tensor, by its number. Of a group that is not mapped it is at a fixed place, which makes its words operands of
 * instructions. A tensor that the group does not have gets another's view, which nothing then uses. */
template <bool MAPPED> KERNEL_FN const uint64_t *kernel_view(const uint64_t *words, const uint64_t *group, uint32_t clusters, uint32_t tensor) {
    if (!MAPPED) return words + WORDS_HEAD + GROUP_CLUSTERS + tensor * VIEW_WORDS;
    return words + kernel_upper(group[GROUP_BLOCKS]) + (kernel_map(group, clusters, tensor) & MAP_NUMBER) * VIEW_WORDS;
}

/* Whether the group has the output of this tensor number: a value that it needs may be another group's output. */
template <bool MAPPED> KERNEL_FN bool kernel_has(const uint64_t *group, uint32_t clusters, uint32_t tensor) {
    return !MAPPED || (kernel_map(group, clusters, tensor) & MAP_PRESENT);
}

/* A thread's place in its group: the column it starts at, in threads, and the row. */
struct kernel_start {
    uint32_t column, row;
};

KERNEL_FN kernel_start kernel_start_of(const uint64_t *group, uint32_t thread) {
    kernel_start s;
    s.row = (uint32_t)((uint64_t)thread * kernel_lower(group[GROUP_DIVISION]) >> kernel_upper(group[GROUP_DIVISION]));
    s.column = thread - s.row * kernel_lower(group[GROUP_THREADS]);
    return s;
}

/* Counts of rows and columns. A GPU multiplies 32 bits at once, 64 in several instructions. */
template <bool FAR> struct kernel_count { typedef uint32_t type; };
template <> struct kernel_count<true> { typedef uint64_t type; };

/* Where a row is: its place in up to two outer dimensions or, FAR, in all of them. */
template <bool FAR> struct kernel_row {
    uint32_t inner, outer;
};
template <> struct kernel_row<true> {
    uint64_t at[WORDS_OUTER];
};

KERNEL_FN void kernel_locate(kernel_row<false> &r, const uint64_t *, uint32_t, const uint64_t *group, uint32_t number) {
    r.inner = number;
    r.outer = 0;
    if (kernel_upper(group[GROUP_FLAGS]) > 1) {
        const uint32_t extent = kernel_lower(group[GROUP_EXTENT]);
        r.outer = number / extent;
        r.inner = number - r.outer * extent;
    }
}

/* `generic` is words as functions can be passed it, `at` the group's place in it. */
KERNEL_CALLED void kernel_locate_far(kernel_row<true> &r, const uint64_t *generic, uint32_t at, uint64_t number) {
    const uint64_t *group = generic + at, *extents = generic + kernel_upper(group[GROUP_EXTENT]);
    const uint32_t outer = kernel_upper(group[GROUP_FLAGS]);
    _Pragma("unroll 1") for (uint32_t d = 0; d < outer; d++) {
        uint64_t next = 0;
        if (d + 1 < outer) next = number / extents[d];
        r.at[d] = number - next * extents[d];
        number = next;
    }
}

KERNEL_FN void kernel_locate(kernel_row<true> &r, const uint64_t *generic, uint32_t at, const uint64_t *, uint64_t number) {
    kernel_locate_far(r, generic, at, number);
}

/* The offset in row 0 of a column's element: 31 bits and a sign. A far group's is found with the row's. */
template <bool FAR> struct kernel_column {
    uint32_t offset;
};
template <> struct kernel_column<true> {};

KERNEL_FN void kernel_start_column(kernel_column<false> &c, const uint64_t *view, uint32_t column) {
    c.offset = column * kernel_lower(view[VIEW_STEP]);
}

KERNEL_FN void kernel_start_column(kernel_column<true> &, const uint64_t *, uint64_t) {}

/* Where a tensor's element, or N of them side by side, are: the address or, in a far group, what it is found from. */
struct kernel_near_place {
    char *p;
    bool same;                           /* one element serves the row */
};
struct kernel_far_place {
    const uint64_t *generic;
    uint32_t at, clusters, tensor;
    uint64_t column;
    const kernel_row<true> *row;
};

KERNEL_FN kernel_near_place kernel_place(const uint64_t *, uint32_t, uint32_t, uint32_t, const uint64_t *view, const kernel_column<false> &c,
                                         uint32_t, const kernel_row<false> &r) {
    const uint32_t offset = c.offset + r.inner * kernel_lower(view[VIEW_STRIDES]) + r.outer * kernel_upper(view[VIEW_STRIDES]);
    const char *p = (const char *)view[VIEW_DATA] + (int32_t)offset;
    __builtin_assume(__isGlobal(p));
    kernel_near_place place = { (char *)p, (kernel_upper(view[VIEW_STEP]) & VIEW_SAME) != 0 };
    return place;
}

/* WORDS_ONCE. */
KERNEL_FN kernel_near_place kernel_once_place(const uint64_t *words, uint32_t n_tensors, uint32_t tensor, uint32_t column, uint32_t row) {
    const uint64_t step = words[ONCE_STEPS + tensor];
    const uint32_t offset = column * kernel_lower(step) + row * kernel_upper(step);
    const char *p = (const char *)words[ONCE_STEPS + n_tensors + tensor] + (int32_t)offset;
    __builtin_assume(__isGlobal(p));
    kernel_near_place place = { (char *)p, !kernel_lower(step) };
    return place;
}

KERNEL_FN kernel_far_place kernel_place(const uint64_t *generic, uint32_t at, uint32_t clusters, uint32_t tensor, const uint64_t *,
                                        const kernel_column<true> &, uint64_t column, const kernel_row<true> &r) {
    kernel_far_place place = { generic, at, clusters, tensor, column, &r };
    return place;
}

/* Parameters of what is called for a far place: one by one, so that they are in registers. */
#define KERNEL_FAR_PARAMETERS                                                                                                 \
    const uint64_t *generic, uint32_t at, uint32_t clusters, uint32_t tensor, uint64_t column, const kernel_row<true> &row
#define KERNEL_FAR_ARGUMENTS(place) place.generic, place.at, place.clusters, place.tensor, place.column, *place.row

KERNEL_CALLED char *kernel_find(KERNEL_FAR_PARAMETERS) {
    const uint64_t *group = generic + at;
    const uint32_t outer = kernel_upper(group[GROUP_FLAGS]), number = kernel_map(group, clusters, tensor) & MAP_NUMBER;
    const uint64_t *view = generic + kernel_upper(group[GROUP_BLOCKS]) + number * VIEW_WORDS;
    const uint64_t *strides = generic + kernel_upper(group[GROUP_EXTENT]) + outer + number * (1 + outer);
    const char *p = (const char *)view[VIEW_DATA] + (int64_t)column * (int64_t)strides[0];
    _Pragma("unroll 1") for (uint32_t d = 0; d < outer; d++) p += (int64_t)row.at[d] * (int64_t)strides[1 + d];
    return (char *)p;
}

#include "kernel_halves.h"

/* An element's bits. */
template <int SIZE> struct kernel_bits { typedef uint64_t type; };
template <> struct kernel_bits<4> { typedef uint32_t type; };
template <> struct kernel_bits<2> { typedef uint16_t type; };
template <> struct kernel_bits<1> { typedef uint8_t type; };

template <class T> union kernel_element {
    T value;
    typename kernel_bits<sizeof(T)>::type bits;
};

/* One element at any address. */
template <class T> KERNEL_FN T kernel_get(const char *p) {
    kernel_element<T> x;
    __builtin_assume(__isGlobal(p));
    if ((uint64_t)p % sizeof(T) == 0) return *(const T *)p;
    x.bits = 0;
    KERNEL_UNROLL for (int i = 0; i < (int)sizeof(T); i++) x.bits |= (typename kernel_bits<sizeof(T)>::type)(uint8_t)p[i] << 8 * i;
    return x.value;
}

template <class T> KERNEL_FN void kernel_put(char *p, T value) {
    kernel_element<T> x;
    __builtin_assume(__isGlobal(p));
    x.value = value;
    if ((uint64_t)p % sizeof(T) == 0) *(T *)p = value;
    else KERNEL_UNROLL for (int i = 0; i < (int)sizeof(T); i++) p[i] = (char)(uint8_t)(x.bits >> 8 * i);
}

/* N elements, and the pieces of up to 16 bytes that they are moved in. */
template <int SIZE> struct kernel_piece { uint4 x; };
template <> struct kernel_piece<8> { uint2 x; };
template <> struct kernel_piece<4> { uint32_t x; };
template <> struct kernel_piece<2> { uint16_t x; };
template <> struct kernel_piece<1> { uint8_t x; };

template <class T, int N> union kernel_block {
    enum { SIZE = sizeof(T) * N < 16 ? sizeof(T) * N : 16, PIECES = sizeof(T) * N / SIZE };
    kernel_piece<SIZE> pieces[PIECES];
    T elements[N];
};

/* N elements of a row, several of them a block or one for all. */
template <class T, int N> KERNEL_FN void kernel_load(T (&x)[N], const kernel_near_place &at) {
    if (N > 1 && at.same) {
        const T same = *(const T *)at.p;
        KERNEL_UNROLL for (int i = 0; i < N; i++) x[i] = same;
    } else {
        typedef kernel_block<T, N> block;
        block b;
        KERNEL_UNROLL for (int i = 0; i < block::PIECES; i++) b.pieces[i] = ((const kernel_piece<block::SIZE> *)at.p)[i];
        KERNEL_UNROLL for (int i = 0; i < N; i++) x[i] = b.elements[i];
    }
}

template <class T, int N> KERNEL_FN void kernel_store(const T (&x)[N], const kernel_near_place &at) {
    typedef kernel_block<T, N> block;
    block b;
    KERNEL_UNROLL for (int i = 0; i < N; i++) b.elements[i] = x[i];
    KERNEL_UNROLL for (int i = 0; i < block::PIECES; i++) ((kernel_piece<block::SIZE> *)at.p)[i] = b.pieces[i];
}

/* Of 16 bits. */
template <class T, int N> KERNEL_FN void kernel_load(kernel_halves<T, N> &x, const kernel_near_place &at) {
    if (at.same) {
        const uint32_t same = *(const uint16_t *)at.p * 0x10001u;
        KERNEL_UNROLL for (int i = 0; i < N / 2; i++) x.words[i] = same;
    } else {
        typedef kernel_block<uint32_t, N / 2> block;
        block b;
        KERNEL_UNROLL for (int i = 0; i < block::PIECES; i++) b.pieces[i] = ((const kernel_piece<block::SIZE> *)at.p)[i];
        KERNEL_UNROLL for (int i = 0; i < N / 2; i++) x.words[i] = b.elements[i];
    }
}
template <class T> KERNEL_FN void kernel_load(kernel_halves<T, 1> &x, const kernel_near_place &at) { x.words[0] = *(const uint16_t *)at.p; }

template <class T, int N> KERNEL_FN void kernel_store(const kernel_halves<T, N> &x, const kernel_near_place &at) {
    typedef kernel_block<uint32_t, N / 2> block;
    block b;
    KERNEL_UNROLL for (int i = 0; i < N / 2; i++) b.elements[i] = x.words[i];
    KERNEL_UNROLL for (int i = 0; i < block::PIECES; i++) ((kernel_piece<block::SIZE> *)at.p)[i] = b.pieces[i];
}
template <class T> KERNEL_FN void kernel_store(const kernel_halves<T, 1> &x, const kernel_near_place &at) {
    *(uint16_t *)at.p = (uint16_t)x.words[0];
}

template <class T, int N> KERNEL_FN void kernel_copy(T (&y)[N], const T (&x)[N]) { KERNEL_UNROLL for (int i = 0; i < N; i++) y[i] = x[i]; }
template <class T, int N> KERNEL_FN void kernel_copy(kernel_halves<T, N> &y, const kernel_halves<T, N> &x) { y = x; }

/* One element of a far group. */
template <class T> KERNEL_CALLED T kernel_far_load(KERNEL_FAR_PARAMETERS) {
    return kernel_get<T>(kernel_find(generic, at, clusters, tensor, column, row));
}
template <class T> KERNEL_CALLED void kernel_far_store(KERNEL_FAR_PARAMETERS, T value) {
    kernel_put<T>(kernel_find(generic, at, clusters, tensor, column, row), value);
}

template <class T> KERNEL_FN void kernel_load(T (&x)[1], const kernel_far_place &at) { x[0] = kernel_far_load<T>(KERNEL_FAR_ARGUMENTS(at)); }
template <class T> KERNEL_FN void kernel_store(const T (&x)[1], const kernel_far_place &at) { kernel_far_store<T>(KERNEL_FAR_ARGUMENTS(at), x[0]); }
template <class T> KERNEL_FN void kernel_load(kernel_halves<T, 1> &x, const kernel_far_place &at) {
    x.words[0] = kernel_far_load<uint16_t>(KERNEL_FAR_ARGUMENTS(at));
}
template <class T> KERNEL_FN void kernel_store(const kernel_halves<T, 1> &x, const kernel_far_place &at) {
    kernel_far_store<uint16_t>(KERNEL_FAR_ARGUMENTS(at), (uint16_t)x.words[0]);
}

#include "kernel_bf16.h"
#include "kernel_float32.h"
#include "kernel_quick.h"
#include "kernel_step.h"
#include "kernel_mixer.h"
