/* See cases.h. */
#include "cases.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FIELDS = 13, COMPLAINT_BYTES = 300, MAX_LINE_BYTES = 64 * 1024 };

static bool wrong(char *complaint, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(char *complaint, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(complaint, COMPLAINT_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

static bool read_dtype(const char *field, ol_dtype *dtype, char *complaint) {
    return ol_dtype_parse(field, dtype) || wrong(complaint, "\"%.40s\" is no dtype", field);
}

/* Exactly the digits of the dtype: a case that was written for another dtype must not pass by accident. */
static bool read_bits(const char *field, ol_dtype dtype, uint64_t *bits, char *complaint) {
    size_t digits = 2 * ol_dtype_size(dtype), length = strlen(field);
    if (length != strspn(field, "0123456789abcdefABCDEF") || (length != digits && !(dtype == OL_BOOL && length == 1))) {
        return wrong(complaint, "\"%.40s\" is not %zu hexadecimal digits, as %s has", field, digits, ol_dtype_name(dtype));
    }
    *bits = strtoull(field, NULL, 16);
    return dtype != OL_BOOL || *bits <= 1 || wrong(complaint, "\"%.40s\" is no bool: 0 or 1", field);
}

static bool read_op(const char *field, case_signature *signature, char *complaint) {
    if (strlen(field) >= sizeof signature->op) {
        return wrong(complaint, "\"%.40s\" is no operation", field);
    }
    strcpy(signature->op, field);
    return true;
}

/* The dtypes of an operation on operands of one dtype. One that this build does not know keeps its operands' dtype: its cases
 * are well formed, and the run says what is missing. */
static void fill_dtypes(case_signature *signature, ol_dtype dtype) {
    int32_t primitive = ol_primitive_find(signature->op);
    signature->out[0] = dtype;
    for (int32_t i = 0; i < signature->n_in; i++) {
        signature->in[i] = dtype;
    }
    if (primitive >= 0) {
        ol_primitive_result(primitive, dtype, &signature->out[0]);
    }
    if (strcmp(signature->op, "where") == 0) {
        signature->in[0] = OL_BOOL;
        signature->out[0] = dtype;
    }
}

/* IN OUT */
static bool read_hard(char **field, const char *stem, case_signature *signature, one_case *one, char *complaint) {
    signature->n_in = 1;
    signature->in[0] = signature->out[0] = OL_FLOAT32;
    return read_op(stem, signature, complaint) && read_bits(field[0], OL_FLOAT32, &one->in[0], complaint) &&
           read_bits(field[1], OL_FLOAT32, &one->out[0], complaint);
}

/* OP IN_DTYPE IN OUT_DTYPE OUT */
static bool read_unary(char **field, case_signature *signature, one_case *one, char *complaint) {
    signature->n_in = 1;
    return read_op(field[0], signature, complaint) && read_dtype(field[1], &signature->in[0], complaint) &&
           read_bits(field[2], signature->in[0], &one->in[0], complaint) && read_dtype(field[3], &signature->out[0], complaint) &&
           read_bits(field[4], signature->out[0], &one->out[0], complaint);
}

/* OP DTYPE X Y OUT, OP DTYPE X Y Z OUT */
static bool read_operands(char **field, int32_t n_in, case_signature *signature, one_case *one, char *complaint) {
    ol_dtype dtype;
    signature->n_in = n_in;
    if (!read_op(field[0], signature, complaint) || !read_dtype(field[1], &dtype, complaint)) {
        return false;
    }
    fill_dtypes(signature, dtype);
    for (int32_t i = 0; i < n_in; i++) {
        if (!read_bits(field[2 + i], signature->in[i], &one->in[i], complaint)) {
            return false;
        }
    }
    return read_bits(field[2 + n_in], signature->out[0], &one->out[0], complaint);
}

static bool read_rates(char **field, case_signature *signature, one_case *one, char *complaint) {
    signature->n_in = 4;
    signature->n_out = 2;
    for (int i = 0; i < 4; i++) {
        if (!read_dtype(field[i], &signature->in[i], complaint) ||
            !read_bits(field[4 + i], signature->in[i], &one->in[i], complaint)) {
            return false;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!read_dtype(field[8 + 2 * i], &signature->out[i], complaint) ||
            !read_bits(field[9 + 2 * i], signature->out[i], &one->out[i], complaint)) {
            return false;
        }
    }
    return read_op("rates", signature, complaint);
}

static bool read_case(char **field, int n_fields, const char *stem, case_signature *signature, one_case *one, char *complaint) {
    ol_dtype ignored;
    signature->n_out = 1;
    switch (n_fields) {
    case 2: return read_hard(field, stem, signature, one, complaint);
    case 5: return ol_dtype_parse(field[3], &ignored) ? read_unary(field, signature, one, complaint)
                                                      : read_operands(field, 2, signature, one, complaint);
    case 6: return read_operands(field, 3, signature, one, complaint);
    case 12: return read_rates(field, signature, one, complaint);
    default:
        return wrong(complaint, "%s%d column%s; a case has 2, 5, 6 or 12", n_fields == MAX_FIELDS ? "at least " : "", n_fields,
                     n_fields == 1 ? "" : "s");
    }
}

/* Grows an array to hold one more; doubling. */
static bool grow(void **array, size_t n, size_t *room, size_t size) {
    if (n < *room) {
        return true;
    }
    size_t larger = *room ? 2 * *room : 64;
    void *moved = reallocarray(*array, larger, size);
    if (!moved) {
        return false;
    }
    *array = moved;
    *room = larger;
    return true;
}

/* Files keep like cases together, so the last signature is the likely one. */
static bool add(case_list *list, const case_signature *signature, one_case *one) {
    for (one->batch = list->n_batches; one->batch > 0; one->batch--) {
        if (memcmp(&list->batches[one->batch - 1], signature, sizeof *signature) == 0) {
            break;
        }
    }
    if (one->batch == 0) {
        if (!grow((void **)&list->batches, list->n_batches, &list->room_batches, sizeof *list->batches)) {
            return false;
        }
        list->batches[list->n_batches++] = *signature;
        one->batch = list->n_batches;
    }
    one->batch--;
    if (!grow((void **)&list->cases, list->n_cases, &list->room_cases, sizeof *list->cases)) {
        return false;
    }
    list->cases[list->n_cases++] = *one;
    return true;
}

/* Cuts a line into fields, in place. More than MAX_FIELDS are not told apart. */
static int split(char *line, char *field[MAX_FIELDS]) {
    static const char space[] = " \t\r\n\v\f";
    char *rest = NULL;
    int n = 0;
    for (char *next = strtok_r(line, space, &rest); next && n < MAX_FIELDS; next = strtok_r(NULL, space, &rest)) {
        field[n++] = next;
    }
    return n;
}

static char *stem_of(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    return strndup(name, strcspn(name, "."));
}

/* Reads a line, without its end, into MAX_LINE_BYTES + 1 bytes. Of a longer one the rest is read and dropped: then *length is
 * above MAX_LINE_BYTES. Where nothing says that a line ever ends (a device, a pipe), a longer one is an error. False at the
 * end of the file and on errors. */
static bool read_line(FILE *stream, bool ends, char *line, size_t *length) {
    int byte;
    *length = 0;
    while ((byte = getc_unlocked(stream)) != EOF && byte != '\n') {
        if (*length < MAX_LINE_BYTES) {
            line[(*length)++] = (char)byte;
        } else if (ends) {
            *length = MAX_LINE_BYTES + 1;
        } else {
            errno = EFBIG;
            return false;
        }
    }
    line[*length < MAX_LINE_BYTES ? *length : MAX_LINE_BYTES] = 0;
    return !ferror(stream) && (byte == '\n' || *length > 0);
}

static bool read_lines(case_list *list, FILE *stream, bool ends, const char *path, const char *stem, int32_t file,
                       case_complaint complain, void *user) {
    char *line = malloc(MAX_LINE_BYTES + 1), *field[MAX_FIELDS], complaint[COMPLAINT_BYTES];
    size_t length;
    bool ok = line != NULL;
    errno = ok ? 0 : ENOMEM;
    for (int64_t number = 1; ok && read_line(stream, ends, line, &length); number++) {
        case_signature signature;
        one_case one = { .file = file, .line = number };
        memset(&signature, 0, sizeof signature);           /* compared bytewise */
        if (length > MAX_LINE_BYTES) {
            snprintf(complaint, sizeof complaint, "a line of more than %d bytes", MAX_LINE_BYTES);
            complain(user, path, number, complaint);
            continue;
        }
        if (strlen(line) != length) {
            complain(user, path, number, "a NUL byte");
            continue;
        }
        line[strcspn(line, "#")] = 0;
        int n_fields = split(line, field);
        if (n_fields == 0) {
            continue;
        }
        if (!read_case(field, n_fields, stem, &signature, &one, complaint)) {
            complain(user, path, number, complaint);
        } else {
            ok = add(list, &signature, &one);
        }
    }
    int reason = errno;
    free(line);
    errno = reason;
    return ok && feof(stream);
}

bool cases_read(case_list *list, const char *path, int32_t file, case_complaint complain, void *user) {
    struct stat status;
    FILE *stream = fopen(path, "re");
    char *stem = stem_of(path);
    bool ok = stream && stem && fstat(fileno(stream), &status) == 0;
    if (ok && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        ok = false;
    }
    ok = ok && read_lines(list, stream, S_ISREG(status.st_mode), path, stem, file, complain, user);
    int reason = errno;
    free(stem);
    if (stream) {
        fclose(stream);
    }
    errno = reason;
    return ok;
}

void cases_free(case_list *list) {
    free(list->batches);
    free(list->cases);
}
