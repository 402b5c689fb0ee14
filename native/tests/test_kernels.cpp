// The kernels against naive loops in double precision: on every instruction set, with 1, 2 and 5 threads (which must
// give the same bits), over random and edge shapes.
//
// Every buffer is a vector of exactly the size that the kernel may touch, so that AddressSanitizer sees any overrun;
// outputs start as NaN or another value that no kernel writes. One check compares whole arrays.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kernels.h"
#include "lanes.h"

using namespace tnesi;

namespace {

using Index = std::int32_t;
using Ids = std::vector<Index>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// ---- Counting

int n_passed = 0, n_failed = 0;
std::string where;  // what is being tested, for the message of a failure

void expect(bool holds, const char* what, const std::string& detail = "") {
    ++(holds ? n_passed : n_failed);
    if (!holds && n_failed <= 20) std::printf("FAILED %s: %s %s\n", where.c_str(), what, detail.c_str());
}

// |got - want| <= tolerance * (1 + |want|) everywhere; NaN is never near.
template <typename T>
void expect_near(const char* what, const std::vector<T>& got, const Doubles& want, double tolerance) {
    const auto near = [&](double a, double b) { return std::fabs(a - b) <= tolerance * (1.0 + std::fabs(b)); };
    if (got.size() != want.size()) return expect(false, what, "has the wrong size");
    const auto bad = std::mismatch(got.begin(), got.end(), want.begin(), near);
    if (bad.first == got.end()) return expect(true, what);
    expect(false, what, std::to_string(*bad.first) + " instead of " + std::to_string(*bad.second));
}

template <typename... V>
std::string bytes(const V&... v) {
    std::string all;
    (all.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(v[0])), ...);
    return all;
}

// run(n_threads), each time with `out` as it was: whatever the number of threads, it ends with the same bits.
template <typename Run, typename... Out>
void with_threads(Run run, Out&... out) {
    const std::tuple start(out...);
    run(1);
    const std::string one = bytes(out...);
    for (int n_threads : {2, 5}) {
        std::tie(out...) = start;
        run(n_threads);
        expect(bytes(out...) == one, "bits with 1 and more threads");
    }
}

// ---- Random problems

struct Random : std::mt19937_64 {
    using std::mt19937_64::mt19937_64;
    double uniform(double low = 0.0, double high = 1.0) { return low + (high - low) * ((*this)() >> 11) * 0x1p-53; }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * n); }
    bool chance(double p) { return uniform() < p; }
    Floats floats(std::size_t n, double low, double high) {
        Floats out(n);
        for (float& v : out) v = static_cast<float>(uniform(low, high));
        return out;
    }
    // `n` of the numbers below `c`, all different; -1 where there are no more, and here and there.
    Ids distinct(std::size_t n, std::size_t c, double empty) {
        Ids all(c), out(n, -1);
        std::iota(all.begin(), all.end(), 0);
        for (std::size_t i = 0; i < std::min(n, c); ++i) {
            std::swap(all[i], all[i + below(c - i)]);
            if (!chance(empty)) out[i] = all[i];
        }
        return out;
    }
};

std::size_t padded(std::size_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

template <typename... V>
void trim(V&... v) {  // to exactly their size: an overrun must not end in spare capacity
    (v.shrink_to_fit(), ...);
}

struct Shape {
    std::size_t d, n, c, c_prime;
};

std::vector<Shape> all_shapes() {
    // the first two: several chunks of work for every kernel, and steps that the exact search can leave out
    std::vector<Shape> all{{17, 600, 600, 3}, {3, 300, 1100, 15}};
    for (std::size_t d : {1, 2, 15, 16, 17, 33, 100})
        for (std::size_t n : {0, 1, 2, 7, 100})
            for (std::size_t c : {1, 3, 16, 17, 65, 200})
                for (std::size_t c_prime : std::set<std::size_t>{1, 2, 15, c}) all.push_back({d, n, c, c_prime});
    return all;
}

template <typename T>
struct Problem : Shape {
    Random random;
    bool exact;  // small whole numbers: scores are exact and often tie, so that even the order of ties is known
    std::size_t d_padded, n_base;
    std::vector<T> x;
    Floats scale, w, log_w, base, s, weight;
    Ids ids, base_row;

    Problem(const Shape& shape, std::size_t seed) : Shape(shape), random(seed) {
        exact = random.chance(0.4);
        d_padded = padded(d);
        n_base = 1 + random.below(3);
        const double empty = random.chance(0.5) ? 0.0 : 0.4;
        const bool weighted = random.chance(0.6);
        for (std::size_t i = 0; i < n; ++i) {
            const bool blank_row = random.chance(0.1);
            bool blank = false;
            double total = 0.0;
            for (std::size_t j = 0; j < d; ++j) {
                if (j % kBlock == 0) blank = blank_row || random.chance(0.4);  // whole blocks of columns, too
                const double value = exact ? random.below(4) : random.uniform(0.0, 256.0);
                x.push_back(static_cast<T>(blank || random.chance(0.2) ? 0.0 : value));
                total += x.back();
            }
            scale.push_back(exact ? 0.5f : 20.0f / static_cast<float>(std::max(total, 1.0)));
            if (n_base > 1) base_row.push_back(static_cast<Index>(random.below(n_base)));
            if (weighted) weight.push_back(0.5f * random.below(4));
            for (Index id : random.distinct(c_prime, c, empty)) {
                ids.push_back(id);
                s.push_back(id < 0 || random.chance(0.1) ? 0.0f : static_cast<float>(random.uniform()));
            }
        }
        trim(x, scale, base_row, weight, ids, s);
        w = random.floats(c * d, 1.0, 5.0);
        log_w.assign(c * d_padded, 0.0f);
        for (std::size_t i = 0; i < w.size(); ++i)
            log_w[i / d * d_padded + i % d] = exact ? static_cast<float>(random.below(3)) : std::log(w[i]);
        base = random.floats(n_base * c, -5.0, 40.0);
        for (float& b : base) b = exact ? std::round(b / 8.0f) : b;
    }

    Rows<T> rows() const { return {x.data(), scale.data(), n, d}; }
    Fields fields() const { return {log_w.data(), base.data(), n_base > 1 ? base_row.data() : nullptr, c, d_padded}; }
    const float* weights() const { return weight.empty() ? nullptr : weight.data(); }
    double dot(std::size_t point, std::size_t field) const {
        double sum = 0.0;
        for (std::size_t j = 0; j < d; ++j) sum += double(x[point * d + j]) * log_w[field * d_padded + j];
        return sum;
    }
    double score(std::size_t point, std::size_t field, double raw) const {
        return base[(n_base > 1 ? base_row[point] : 0) * c + field] + scale[point] * raw;
    }
    // sum over n of s_nc scale_n x_nd (C x D), and of s_nc (C)
    std::pair<Doubles, Doubles> sums() const {
        std::pair<Doubles, Doubles> out(Doubles(c * d, 0.0), Doubles(c, 0.0));
        for (std::size_t at = 0; at < ids.size(); ++at) {
            if (ids[at] < 0) continue;
            const double share = double(s[at]) * (weight.empty() ? 1.0f : weight[at / c_prime]);
            out.second[ids[at]] += share;
            for (std::size_t j = 0; j < d; ++j)
                out.first[ids[at] * d + j] += share * scale[at / c_prime] * x[at / c_prime * d + j];
        }
        return out;
    }
};

// ---- K^(n) and s

using Candidates = std::vector<std::pair<double, Index>>;  // score and field, each field once

template <typename T, typename Kernel>
void check_activities(const Problem<T>& p, const std::vector<Candidates>& candidates, Ids ids, Kernel kernel) {
    Floats s(p.n * p.c_prime, kNan), log_sum(p.n, kNan);
    with_threads([&](int t) { kernel({ids.data(), s.data(), log_sum.data(), p.n, p.c_prime}, t); }, ids, s, log_sum);
    Doubles scores, want_scores, want_s, want_log_sum;
    Ids want_ids;
    for (std::size_t n = 0; n < p.n; ++n) {
        Candidates best = candidates[n];
        Doubles score_of(p.c, kNan);
        for (const auto& [score, id] : best) score_of[id] = score;
        std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) {
            return a.first > b.first || (a.first == b.first && a.second < b.second);
        });
        best.resize(std::min(best.size(), p.c_prime));
        double total = 0.0;
        for (const auto& kept : best) total += std::exp(kept.first - best[0].first);
        want_log_sum.push_back(best.empty() ? -3.0e38 : best[0].first + std::log(total));
        for (std::size_t i = 0; i < p.c_prime; ++i) {
            const Index id = ids[n * p.c_prime + i];
            const bool real = i < best.size(), named = id >= 0 && id < Index(p.c);
            want_ids.push_back(real ? best[i].second : -1);
            want_scores.push_back(real ? best[i].first : 0.0);
            want_s.push_back(real ? std::exp(best[i].first - want_log_sum.back()) : 0.0);
            scores.push_back(named ? score_of[id] : id == -1 && !real ? 0.0 : kNan);
            if (named) score_of[id] = kNan;  // no field twice
        }
    }
    expect_near("score of an id", scores, want_scores, 2e-6);
    expect_near("s", s, want_s, 5e-5);
    expect_near("log_sum", log_sum, want_log_sum, 2e-6);
    if (p.exact) expect(ids == want_ids, "ids, with ties by the smaller id");
}

template <typename T>
void check_select_top(const Shape& shape, std::size_t seed) {
    const Problem<T> p(shape, seed);
    Floats raw(p.n * p.c);
    std::vector<Candidates> candidates(p.n);
    for (std::size_t at = 0; at < raw.size(); ++at) {
        raw[at] = static_cast<float>(p.dot(at / p.c, at % p.c));
        candidates[at / p.c].emplace_back(p.score(at / p.c, at % p.c, raw[at]), at % p.c);
    }
    check_activities(p, candidates, Ids(p.n * p.c_prime, -7), [&](Activities out, int n_threads) {
        select_top(raw.data(), p.scale.data(), {nullptr, p.base.data(), p.fields().base_row, p.c, 0}, out, n_threads);
    });
}

template <typename T>
void check_search_groups(const Shape& shape, std::size_t seed) {
    Problem<T> p(shape, seed);
    const std::size_t n_groups = 1 + p.random.below(30), g = p.random.chance(0.3) ? p.c + 3 : 1 + p.random.below(9);
    const double empty = 0.5 * p.random.below(3);  // no places, half of them, all of them
    Ids group(p.n), lists(n_groups * g);
    for (Index& j : group) j = static_cast<Index>(p.random.below(n_groups));
    for (Index& id : lists) id = p.random.chance(empty) ? -1 : static_cast<Index>(p.random.below(p.c));
    std::vector<Candidates> candidates(p.n);
    for (std::size_t n = 0; n < p.n; ++n) {
        std::set<Index> near(&p.ids[n * p.c_prime], &p.ids[n * p.c_prime] + p.c_prime);
        near.insert(&lists[group[n] * g], &lists[group[n] * g] + g);
        near.erase(-1);
        for (Index id : near) candidates[n].emplace_back(p.score(n, id, p.dot(n, id)), id);
    }
    check_activities(p, candidates, p.ids, [&](Activities out, int n_threads) {
        search_groups(p.rows(), p.fields(), group.data(), lists.data(), n_groups, g, out, n_threads);
    });
}

void check_build_lists(const Shape& shape, std::size_t seed) {
    const Problem<float> p(shape, seed);
    const std::size_t g = std::vector<std::size_t>{1, 5, p.c + 2}[seed % 3];
    Ids want(p.c * g, -1), lists(p.c * g, -7);
    for (Index field = 0; field < Index(p.c); ++field) {
        std::vector<std::pair<int, Index>> votes(p.c);  // counted downwards: sorted, most votes and small ids come first
        for (std::size_t c = 0; c < p.c; ++c) votes[c].second = static_cast<Index>(c);
        for (auto row = p.ids.begin(); row != p.ids.end(); row += p.c_prime) {
            if (std::find(row, row + p.c_prime, field) == row + p.c_prime) continue;
            for (auto id = row; id != row + p.c_prime; ++id)
                if (*id >= 0 && *id != field) votes[*id].first -= *row == field ? 2 : 1;
        }
        std::sort(votes.begin(), votes.end());
        want[field * g] = field;
        for (std::size_t i = 1; i < g && i <= p.c && votes[i - 1].first < 0; ++i)
            want[field * g + i] = votes[i - 1].second;
    }
    with_threads([&](int t) { build_lists(p.ids.data(), p.n, p.c_prime, p.c, g, lists.data(), t); }, lists);
    expect(lists == want, "lists");
}

// ---- Statistics

void expect_weights(const Shape& p, const Doubles& want, const Floats& w, const Floats& log_w, const Floats& log_w_sum,
                    const Floats* w_sum) {
    Doubles want_log(p.c * padded(p.d), 0.0), want_log_sum(p.c, 0.0), want_sum(p.c, 0.0);
    for (std::size_t i = 0; i < want.size(); ++i) {
        want_log[i / p.d * padded(p.d) + i % p.d] = std::log(want[i]);
        want_log_sum[i / p.d] += std::log(want[i]);
        want_sum[i / p.d] += want[i];
    }
    expect_near("w", w, want, 1e-6);
    expect_near("log_w", log_w, want_log, 1e-6);
    expect_near("log_w_sum", log_w_sum, want_log_sum, 1e-6);
    if (w_sum) expect_near("w_sum", *w_sum, want_sum, 1e-6);
}

template <typename T>
void check_steps(const Shape& shape, std::size_t seed) {
    const Problem<T> p(shape, seed);
    const auto [sum, want_mass] = p.sums();
    const float rate = 0.6f / static_cast<float>(p.n + 1);
    Doubles want(p.w.begin(), p.w.end()), want_hebbian = want, mass(p.c, kNan);
    Floats w(p.c * p.d, kNan), log_w(p.c * p.d_padded, 0.0f), log_w_sum(p.c, kNan), w_sum(p.c, 0.0f);
    for (std::size_t i = 0; i < want.size(); ++i) {
        want_hebbian[i] += rate * (sum[i] + want_mass[i / p.d] * (1.0 - want[i]));
        if (want_mass[i / p.d] > 0.0) want[i] = sum[i] / want_mass[i / p.d] + 1.0;
    }
    const auto em = [&](int n_threads) {
        m_step(p.rows(), p.ids.data(), p.s.data(), p.weights(), p.c_prime, p.w.data(), w.data(), log_w.data(),
               log_w_sum.data(), mass.data(), p.c, p.d_padded, n_threads);
    };
    with_threads(em, w, log_w, log_w_sum, mass);
    expect_weights(p, want, w, log_w, log_w_sum, nullptr);
    expect_near("mass", mass, want_mass, 1e-7);
    for (std::size_t i = 0; i < w.size(); ++i)
        if (want_mass[i / p.d] == 0.0 && w[i] != p.w[i]) expect(false, "a dead field keeps its weights");
}
