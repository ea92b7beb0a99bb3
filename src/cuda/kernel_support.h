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
#define KERNEL_UNROLL _Pragma("unroll")

#include "kernel_quotient.h"
#include "../numerics/numerics.h"
#include "words.h"

KERNEL_FN uint32_t kernel_lower(uint64_t word) { return (uint32_t)word; }
KERNEL_FN uint32_t kernel_upper(uint64_t word) { return (uint32_t)(word >> 32); }

/* The view of a tensor, by its number; `several`: the group is not all the outputs. */
KERNEL_FN const uint64_t *kernel_view(const uint64_t *words, const uint64_t *group, bool several, uint32_t clusters, uint32_t tensor) {
    const uint64_t *views = words + WORDS_HEAD + GROUP_CLUSTERS;
    uint32_t number = tensor;
    if (several) {
        views = words + kernel_upper(group[GROUP_BLOCKS]);
        number = (uint16_t)(group[GROUP_CLUSTERS + clusters + tensor / 4] >> tensor % 4 * 16);
    }
    return views + number * VIEW_WORDS;
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

/* A row by its number and, where there are two outer dimensions, by its place in them. */
struct kernel_row {
    uint64_t number;
    uint32_t inner, outer;
};

template <bool FAR> KERNEL_FN kernel_row kernel_locate(const uint64_t *group, uint64_t number) {
    kernel_row r = {number, (uint32_t)number, 0};
    if (!FAR && kernel_upper(group[GROUP_FLAGS]) > 1) {
        const uint32_t extent = kernel_lower(group[GROUP_EXTENT]);
        r.outer = (uint32_t)number / extent;
        r.inner = (uint32_t)number - r.outer * extent;
    }
    return r;
}

/* The far part of a group, and the offset of an element, in all generality. Called, since there are many places. */
static __device__ __noinline__ int64_t kernel_far_offset(const uint64_t *words, const uint64_t *group, uint32_t number, uint64_t row, uint64_t column) {
    const uint32_t outer = kernel_upper(group[GROUP_FLAGS]);
    const uint64_t *extents = words + kernel_upper(group[GROUP_EXTENT]), *strides = extents + outer + number * (1 + outer);
    int64_t offset = (int64_t)column * (int64_t)strides[0];
    for (uint32_t d = 0; d < outer; d++) {
        uint64_t next = 0, extent = extents[d];
        if (d + 1 < outer) next = row <= UINT32_MAX && extent <= UINT32_MAX ? (uint32_t)row / (uint32_t)extent : row / extent;
        offset += (int64_t)(row - next * extent) * (int64_t)strides[1 + d];
        row = next;
    }
    return offset;
}

/* The address of a tensor's element in a row, `column` elements from the row's start. */
template <bool FAR> KERNEL_FN char *kernel_place(const uint64_t *words, const uint64_t *group, bool several, const uint64_t *view, kernel_row r, uint64_t column) {
    int64_t offset;
    if (FAR) {
        const uint64_t *views = words + (several ? kernel_upper(group[GROUP_BLOCKS]) : (uint32_t)(WORDS_HEAD + GROUP_CLUSTERS));
        offset = kernel_far_offset(words, group, (uint32_t)(view - views) / VIEW_WORDS, r.number, column);
    } else {
        offset = (int32_t)column * (int32_t)kernel_lower(view[VIEW_STEP]) + (int32_t)r.inner * (int32_t)kernel_lower(view[VIEW_STRIDES]) +
                 (int32_t)r.outer * (int32_t)kernel_upper(view[VIEW_STRIDES]);
    }
    char *p = (char *)(view[VIEW_DATA] + (uint64_t)offset);
    __builtin_assume(__isGlobal(p));
    return p;
}

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
template <class T> KERNEL_FN T kernel_get(const char *p, uint32_t how) {
    kernel_element<T> x;
    if (how & VIEW_ALIGNED) return *(const T *)p;
    x.bits = 0;
    KERNEL_UNROLL for (int i = 0; i < (int)sizeof(T); i++) x.bits |= (typename kernel_bits<sizeof(T)>::type)(uint8_t)p[i] << 8 * i;
    return x.value;
}

template <class T> KERNEL_FN void kernel_put(char *p, uint32_t how, T value) {
    kernel_element<T> x;
    x.value = value;
    if (how & VIEW_ALIGNED) *(T *)p = value;
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

/* N elements of a row, of which `count` are there; the others are zeros. */
template <class T, int N> KERNEL_FN void kernel_load(T (&x)[N], const char *p, const uint64_t *view, uint32_t count) {
    const uint32_t how = kernel_upper(view[VIEW_STEP]);
    const int64_t step = (int32_t)kernel_lower(view[VIEW_STEP]);
    if (N > 1 && (how & VIEW_BLOCKS) && count == N) {
        typedef kernel_block<T, N> block;
        block b;
        KERNEL_UNROLL for (int i = 0; i < block::PIECES; i++) b.pieces[i] = ((const kernel_piece<block::SIZE> *)p)[i];
        KERNEL_UNROLL for (int i = 0; i < N; i++) x[i] = b.elements[i];
    } else if (N > 1 && (how & VIEW_SAME)) {
        T same = kernel_get<T>(p, how);
        KERNEL_UNROLL for (int i = 0; i < N; i++) x[i] = same;
    } else {
        KERNEL_UNROLL for (int i = 0; i < N; i++) x[i] = (uint32_t)i < count ? kernel_get<T>(p + i * step, how) : (T)0;
    }
}

template <class T, int N> KERNEL_FN void kernel_store(const T (&x)[N], char *p, const uint64_t *view, uint32_t count) {
    const uint32_t how = kernel_upper(view[VIEW_STEP]);
    const int64_t step = (int32_t)kernel_lower(view[VIEW_STEP]);
    if (N > 1 && (how & VIEW_BLOCKS) && count == N) {
        typedef kernel_block<T, N> block;
        block b;
        KERNEL_UNROLL for (int i = 0; i < N; i++) b.elements[i] = x[i];
        KERNEL_UNROLL for (int i = 0; i < block::PIECES; i++) ((kernel_piece<block::SIZE> *)p)[i] = b.pieces[i];
    } else {
        KERNEL_UNROLL for (int i = 0; i < N; i++) if ((uint32_t)i < count) kernel_put<T>(p + i * step, how, x[i]);
    }
}

#include "kernel_quick.h"
