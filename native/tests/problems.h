// Random problems for the kernels, and what compares whole arrays with naive loops in double precision: on every
// instruction set, with 1, 2 and 5 threads (which must give the same result), over random and edge shapes. Buffers are
// vectors of exactly the size that a kernel may touch, so that AddressSanitizer sees any overrun; outputs start as what
// no kernel writes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "kernels.h"
#include "lanes.h"

namespace tnesi {

using Index = std::int32_t;
using Ids = std::vector<Index>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
struct Shape {
    std::size_t d, n, c, c_prime;
};
inline Shape where;  // is being tested, for the message of a failure
inline const char* what_kernel = "";
inline int n_passed = 0, n_failed = 0;

inline void expect(bool holds, const char* what) {
    ++(holds ? n_passed : n_failed);
    if (!holds && n_failed <= 20)
        std::printf("FAILED %s %s with D=%zu N=%zu C=%zu C'=%zu: %s\n", lanes().name, what_kernel, where.d, where.n,
                    where.c, where.c_prime, what);
}

// |got - want| <= tolerance * (1 + |want|) everywhere; NaN is never near.
template <typename T>
void expect_near(const char* what, const std::vector<T>& got, const Doubles& want, double tolerance) {
    const auto near = [&](double a, double b) { return std::fabs(a - b) <= tolerance * (1.0 + std::fabs(b)); };
    expect(std::equal(got.begin(), got.end(), want.begin(), want.end(), near), what);
}

// run(n_threads), each time with `out` as it was: the number of threads changes nothing.
template <typename Run, typename... Out>
void with_threads(Run run, Out&... out) {
    const std::tuple start(out...);
    run(1);
    const std::tuple one(out...);
    for (int n_threads : {2, 5}) {
        std::tie(out...) = start;
        run(n_threads);
        expect(std::tie(out...) == one, "the same for 1, 2 and 5 threads");
    }
}

struct Random : std::mt19937_64 {
    using std::mt19937_64::mt19937_64;
    double uniform(double low = 0.0, double high = 1.0) { return low + (high - low) * ((*this)() >> 11) * 0x1p-53; }
    int below(std::size_t n) { return static_cast<int>(uniform() * n); }
    bool chance(double p) { return uniform() < p; }
    Floats floats(std::size_t n, double low, double high) {
        Floats out(n);
        for (float& v : out) v = static_cast<float>(uniform(low, high));
        return out;
    }
    Ids distinct(std::size_t n, std::size_t c, double empty = 0.0) {  // n different fields, -1 where there is none
        Ids out(c);
        std::iota(out.begin(), out.end(), 0);
        std::shuffle(out.begin(), out.end(), *this);
        out.resize(n, -1);
        for (Index& id : out) id = chance(empty) ? -1 : id;
        return out;
    }
};

inline std::size_t padded(std::size_t n) { return (n + kBlock - 1) / kBlock * kBlock; }
inline double naive_dot(const float* a, const float* b, std::size_t n) {
    return std::inner_product(a, a + n, b, 0.0, std::plus<double>(), std::multiplies<double>());
}

struct Problem : Shape {
    Random random;
    const bool exact = random.chance(0.5);  // small whole numbers: scores without rounding and with many ties
    const bool bytes = random.chance(0.5), weighted = random.chance(0.6);
    const double empty = random.chance(0.5) ? 0.0 : 0.4;
    const std::size_t d_padded = padded(d), n_base = 1 + random.below(3);
    const bool sparse = random.chance(0.4);
    std::vector<std::uint8_t> x_u8;       // like x, if it holds bytes
    std::vector<std::int64_t> indptr{0};  // the same as sparse rows
    Ids indices;
    Floats values;
    Floats x = Floats(n * d), scale = Floats(n, 0.5f), weight = Floats(n, 1.0f), log_w = Floats(c * d_padded, 0.0f);
    Floats w = random.floats(c * d, 1.0, 5.0), base = random.floats(n_base * c, -5.0, 40.0);
    Floats s = random.floats(n * c_prime, 0.0, 1.0);
    Ids ids = Ids(n * c_prime), base_row = Ids(n, 0);

    Problem(const Shape& shape, std::size_t seed) : Shape(shape), random(seed) {
        for (std::size_t i = 0; i < n; ++i) {
            double total = 1.0;
            for (std::size_t j = 0, blank = 0; j < d; ++j) {
                if (j % kBlock == 0) blank = random.chance(0.4);  // whole blocks of columns, or rows
                const double value = exact ? random.below(4) : bytes ? random.below(256) : random.uniform(0.0, 9.0);
                total += x[i * d + j] = blank || random.chance(0.2) ? 0.0f : static_cast<float>(value);
            }
            if (!exact) scale[i] = static_cast<float>(20.0 / total);
            if (weighted) weight[i] = 0.5f * random.below(4);
            base_row[i] = random.below(n_base);
            const Ids own = random.distinct(c_prime, c, empty);
            std::copy(own.begin(), own.end(), ids.begin() + i * c_prime);
        }
        if (bytes) x_u8.assign(x.begin(), x.end());
        for (std::size_t at = 0; at < x.size(); ++at) {
            if (x[at] != 0.0f) indices.push_back(at % d), values.push_back(x[at]);
            if (at % d + 1 == d) indptr.push_back(values.size());
        }
        for (std::size_t i = 0; i < s.size(); ++i) s[i] = ids[i] < 0 || s[i] < 0.1f ? 0.0f : s[i];
        for (std::size_t i = 0; i < w.size(); ++i)
            log_w[i / d * d_padded + i % d] = exact ? static_cast<float>(random.below(3)) : std::log(w[i]);
        for (float& b : base) b = exact ? std::round(b / 8.0f) : b;
    }

    template <typename Use>
    void with_rows(Use use, std::size_t begin, std::size_t end) const {
        const float* own = scale.data() + begin;
        sparse  ? use(sparse_rows(begin, end))
        : bytes ? use(Rows<std::uint8_t>{x_u8.data() + begin * d, own, end - begin, d})
                : use(Rows<float>{x.data() + begin * d, own, end - begin, d});
    }
    template <typename Use>
    void with_rows(Use use) const {
        with_rows(use, 0, n);
    }
    SparseRows sparse_rows(std::size_t begin, std::size_t end) const {
        return {&indptr[begin], indices.data(), values.data(), scale.data() + begin, end - begin, d};
    }
    Fields fields() const { return {log_w.data(), base.data(), n_base > 1 ? base_row.data() : nullptr, c, d_padded}; }
    const float* weights() const { return weighted ? weight.data() : nullptr; }
    double score(std::size_t i, std::size_t k, double raw) const { return base[base_row[i] * c + k] + scale[i] * raw; }
    double dot(std::size_t i, std::size_t k) const { return naive_dot(&x[i * d], &log_w[k * d_padded], d); }
};

struct Check {
    const char* name;
    void (*holds)(const Shape&, std::size_t seed);
};

inline void run(const Check& check) {
    std::vector<Shape> shapes{{17, 600, 600, 3}, {3, 300, 1100, 15}, {1, 5000, 20, 3}};  // several chunks of work
    for (std::size_t d : {1, 2, 15, 16, 17, 33, 100})
        for (std::size_t n : {0, 1, 2, 7, 100})
            for (std::size_t c : {1, 3, 16, 17, 65, 200})
                shapes.push_back({d, n, c, std::vector<std::size_t>{1, 2, 15, c}[(n + shapes.size()) % 4]});
#ifdef __SANITIZE_THREAD__  // values were compared by another build, and races do not depend on edges: fewer shapes
    std::vector<Shape> some(shapes.begin(), shapes.begin() + 3);
    for (std::size_t i = 3; i < shapes.size(); i += 4) some.push_back(shapes[i]);
    shapes = some;
#endif
    const int passed = n_passed, failed = n_failed;
    what_kernel = check.name;
    for (const Shape& shape : shapes) check.holds(where = shape, &shape - shapes.data());
    std::printf("%-9s %-14s %6d passed, %d failed\n", lanes().name, check.name, n_passed - passed, n_failed - failed);
}

// What main returns: 0 if all checks hold on all instruction sets.
inline int run_all(std::initializer_list<Check> checks) {
    int n_sets = 0;
    const Lanes* const* sets = available_lanes(&n_sets);
    for (int i = 0; i < n_sets; ++i) {
        expect(use_lanes(sets[i]->name) && !use_lanes("none") && &lanes() == sets[i], "use_lanes");
        for (const Check& check : checks) run(check);
    }
    std::printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 ? 1 : 0;
}

}  // namespace tnesi
