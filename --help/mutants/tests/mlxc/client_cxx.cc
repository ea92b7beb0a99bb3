// A client of mlx-c's interface in C++11: handles owned by objects, the function a lambda's body behind a payload.
#include "mlx/c/mlx.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(int code)
{
    if (code != 0)
        throw std::runtime_error("a call failed");
}

class array {
public:
    array() : a(mlx_array_new()) {}
    explicit array(float x) : a(mlx_array_new_float32(x)) {}
    explicit array(const std::vector<float> &x)
    {
        int n = static_cast<int>(x.size());
        a = mlx_array_new_data(x.data(), &n, 1, MLX_FLOAT32);
    }
    array(const array &other) : a(mlx_array_new()) { check(mlx_array_set(&a, other.a)); }
    array &operator=(const array &other)
    {
        check(mlx_array_set(&a, other.a));
        return *this;
    }
    ~array() { mlx_array_free(a); }
    mlx_array a;
};

mlx_stream stream()
{
    static mlx_stream s = mlx_default_gpu_stream_new();
    return s;
}

array operator+(const array &x, const array &y)
{
    array r;
    check(mlx_add(&r.a, x.a, y.a, stream()));
    return r;
}

array exp(const array &x)
{
    array r;
    check(mlx_exp(&r.a, x.a, stream()));
    return r;
}

typedef std::function<array(const array &, const array &)> function;

// Exceptions end here: they do not pass through C.
int call(mlx_vector_array *res, const mlx_vector_array input, void *payload)
{
    try {
        array x, y;
        check(mlx_vector_array_get(&x.a, input, 0));
        check(mlx_vector_array_get(&y.a, input, 1));
        array r = (*static_cast<function *>(payload))(x, y);
        return mlx_vector_array_set_value(res, r.a);
    } catch (const std::exception &) {
        return 1;
    }
}

void drop(void *payload)
{
    delete static_cast<function *>(payload);
}

void keep(const char *message, void *data)
{
    static_cast<std::vector<std::string> *>(data)->push_back(message);
}

array apply(mlx_closure c, const array &x, const array &y)
{
    array r;
    mlx_array in[2] = { x.a, y.a };
    mlx_vector_array input = mlx_vector_array_new_data(in, 2), output = mlx_vector_array_new();
    int code = mlx_closure_apply(&output, c, input);
    if (code == 0)
        code = mlx_vector_array_get(&r.a, output, 0);
    mlx_vector_array_free(input);
    mlx_vector_array_free(output);
    check(code);
    return r;
}

}

int main()
{
    std::vector<std::string> errors;
    mlx_set_error_handler(keep, &errors, nullptr);
    array bias(0.25f);
    mlx_closure plain = mlx_closure_new_func_payload(call, new function([bias](const array &x, const array &y) { return exp(x + y + bias); }), drop);
    mlx_closure compiled = mlx_closure_new();
    check(mlx_compile(&compiled, plain, true));
    mlx_closure_free(plain);
    for (int n = 1; n < 100; n += 7) {
        std::vector<float> values(static_cast<std::size_t>(n), 0.5f);
        array x(values), y(1.5f), r = apply(compiled, x, y), e = exp(x + y + bias);
        check(mlx_array_eval(r.a));
        check(mlx_array_eval(e.a));
        if (mlx_array_size(r.a) != values.size() || std::memcmp(mlx_array_data_float32(r.a), mlx_array_data_float32(e.a), values.size() * sizeof(float)) != 0)
            return 1;
    }
    array two(std::vector<float>(2)), three(std::vector<float>(3));
    try {
        apply(compiled, two, three);
        return 2;
    } catch (const std::runtime_error &) {
    }
    mlx_closure_free(compiled);
    mlx_stream_free(stream());
    std::printf("C++: equal bits, %zu error%s\n", errors.size(), errors.size() == 1 ? "" : "s");
    return errors.empty() ? 3 : 0;
}
