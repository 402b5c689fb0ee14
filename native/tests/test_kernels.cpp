// The kernels against naive loops in double precision: on every instruction set, with 1, 2 and 5 threads (which must
// give the same result), over random and edge shapes. A check compares whole arrays. Buffers are vectors of exactly
// the size that a kernel may touch, so that AddressSanitizer sees any overrun; outputs start as what no kernel writes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <set>
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
struct Shape {
    std::size_t d, n, c, c_prime;
} where;  // is being tested, for the message of a failure
const char* what_kernel = "";
int n_passed = 0, n_failed = 0;

void expect(bool holds, const char* what) {
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

std::size_t padded(std::size_t n) { return (n + kBlock - 1) / kBlock * kBlock; }
double naive_dot(const float* a, const float* b, std::size_t n) {
    return std::inner_product(a, a + n, b, 0.0, std::plus<double>(), std::multiplies<double>());
}

struct Problem : Shape {
    Random random;
    const bool exact = random.chance(0.5);  // small whole numbers: scores without rounding and with many ties
    const bool bytes = random.chance(0.5), weighted = random.chance(0.6);
    const double empty = random.chance(0.5) ? 0.0 : 0.4;
    const std::size_t d_padded = padded(d), n_base = 1 + random.below(3);
    std::vector<std::uint8_t> x_u8;  // like x, if it holds bytes
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
        for (std::size_t i = 0; i < s.size(); ++i) s[i] = ids[i] < 0 || s[i] < 0.1f ? 0.0f : s[i];
        for (std::size_t i = 0; i < w.size(); ++i)
            log_w[i / d * d_padded + i % d] = exact ? static_cast<float>(random.below(3)) : std::log(w[i]);
        for (float& b : base) b = exact ? std::round(b / 8.0f) : b;
    }

    template <typename Use>
    void with_rows(Use use) const {
        bytes ? use(Rows<std::uint8_t>{x_u8.data(), scale.data(), n, d})
              : use(Rows<float>{x.data(), scale.data(), n, d});
    }
    Fields fields() const { return {log_w.data(), base.data(), n_base > 1 ? base_row.data() : nullptr, c, d_padded}; }
    const float* weights() const { return weighted ? weight.data() : nullptr; }
    double score(std::size_t i, std::size_t k, double raw) const { return base[base_row[i] * c + k] + scale[i] * raw; }
    double dot(std::size_t i, std::size_t k) const { return naive_dot(&x[i * d], &log_w[k * d_padded], d); }
};

using Ranked = std::vector<std::pair<double, Index>>;  // -score and field: sorted, the best comes first

double naive_softmax(const Ranked& best, Doubles& s) {  // appended to s; returns log(sum(exp(score)))
    double total = 0.0;
    for (const auto& kept : best) total += std::exp(best[0].first - kept.first);
    for (const auto& kept : best) s.push_back(std::exp(best[0].first - kept.first) / total);
    return best.empty() ? -3.0e38 : std::log(total) - best[0].first;
}

template <typename Kernel>
void check_activities(const Problem& p, std::vector<Ranked> candidates, Ids ids, Kernel kernel) {
    Floats s(p.n * p.c_prime, NAN), log_sum(p.n, NAN);
    with_threads([&](int t) { kernel({ids.data(), s.data(), log_sum.data(), p.n, p.c_prime}, t); }, ids, s, log_sum);
    Ids want_ids;
    Doubles want_s, want_log_sum;
    for (Ranked& best : candidates) {
        std::sort(best.begin(), best.end());
        best.resize(std::min(best.size(), p.c_prime));
        for (const auto& kept : best) want_ids.push_back(kept.second);
        want_log_sum.push_back(naive_softmax(best, want_s));
        want_ids.resize(want_log_sum.size() * p.c_prime, -1);
        want_s.resize(want_ids.size(), 0.0);
    }
    if (p.exact) expect(ids == want_ids, "ids");  // else fields may swap places where scores nearly tie
    expect_near("s", s, want_s, 5e-5);
    expect_near("log_sum", log_sum, want_log_sum, 5e-6);
}

void check_select_top(const Shape& shape, std::size_t seed) {
    const Problem p(shape, seed);
    Floats raw(p.n * p.c, NAN);
    Doubles want(p.n * p.c);
    p.with_rows([&](auto rows) {
        with_threads([&](int t) { products(rows.x, p.n, p.d, p.log_w.data(), p.c, p.d_padded, raw.data(), t); }, raw);
    });
    for (std::size_t at = 0; at < want.size(); ++at) want[at] = p.dot(at / p.c, at % p.c);
    expect_near("products", raw, want, 1e-6);
    std::vector<Ranked> candidates(p.n);
    for (std::size_t n = 0, at = 0; n < p.n; ++n) {
        double shift = 0.0;  // in half of the problems to the best score: base and raw cancel
        for (std::size_t c = 0; c < p.c && p.bytes; ++c) shift = std::max(shift, p.score(n, c, want[at + c]));
        for (std::size_t c = 0; c < p.c; ++c, ++at) {
            raw[at] = static_cast<float>(want[at] - shift / p.scale[n]);
            candidates[n].emplace_back(-p.score(n, c, raw[at]), c);
        }
    }
    check_activities(p, candidates, Ids(p.n * p.c_prime, -7), [&](Activities out, int n_threads) {
        select_top(raw.data(), p.scale.data(), {nullptr, p.base.data(), p.fields().base_row, p.c, 0}, out, n_threads);
    });
}

void check_search_groups(const Shape& shape, std::size_t seed) {
    Problem p(shape, seed);
    const std::size_t n_groups = 1 + p.random.below(30), g = p.random.chance(0.3) ? p.c + 3 : 1 + p.random.below(9);
    Ids group(p.n), lists(n_groups * g);
    for (Index& j : group) j = p.random.below(n_groups);
    for (Index& id : lists) id = p.random.chance(p.empty) ? -1 : p.random.below(p.c);
    std::vector<Ranked> candidates(p.n);
    for (std::size_t n = 0; n < p.n; ++n) {
        std::set<Index> near(&lists[group[n] * g], &lists[group[n] * g] + g);
        near.insert(&p.ids[n * p.c_prime], &p.ids[n * p.c_prime] + p.c_prime);
        near.erase(-1);
        for (Index id : near) candidates[n].emplace_back(-p.score(n, id, p.dot(n, id)), id);
    }
    check_activities(p, candidates, p.ids, [&](Activities out, int t) {
        p.with_rows(
            [&](auto rows) { search_groups(rows, p.fields(), group.data(), lists.data(), n_groups, g, out, t); });
    });
}

void check_build_lists(const Shape& shape, std::size_t seed) {
    Problem p(shape, seed);
    const std::size_t g = std::vector<std::size_t>{1, 5, p.c + 2}[p.random.below(3)];
    Ids want(p.c * g, -1), lists(p.c * g, -7);
    for (Index field = 0; field < Index(p.c); ++field) {
        Ranked votes(p.c);
        for (std::size_t c = 0; c < p.c; ++c) votes[c].second = static_cast<Index>(c);
        for (auto row = p.ids.begin(); row != p.ids.end(); row += p.c_prime)
            if (std::count(row, row + p.c_prime, field) > 0)
                for (auto id = row; id != row + p.c_prime; ++id)
                    if (*id >= 0) votes[*id].first -= *row == field ? 2.0 : 1.0;
        votes[field].first = -1e9;  // itself first
        std::sort(votes.begin(), votes.end());
        for (std::size_t i = 0; i < std::min(g, p.c) && votes[i].first < 0; ++i) want[field * g + i] = votes[i].second;
    }
    with_threads([&](int t) { build_lists(p.ids.data(), p.n, p.c_prime, p.c, g, lists.data(), t); }, lists);
    expect(lists == want, "lists");
}

template <bool kHebbian>
void check_step(const Shape& shape, std::size_t seed) {
    const Problem p(shape, seed);
    const float rate = !kHebbian ? INFINITY : seed % 3 == 0 ? 3.0f : 0.6f / static_cast<float>(p.n + 1);
    Floats w = kHebbian ? p.w : Floats(p.w.size(), NAN), log_w(p.c * p.d_padded, 0.0f), log_w_sum(p.c), w_sum(p.c);
    const double prior_rows = kHebbian || seed % 2 == 0 ? 0.0 : 1.5;
    Doubles mass(p.c, -7.0), sum(p.c * p.d, 0.75 * prior_rows), want_mass(p.c, prior_rows);
    p.with_rows([&](auto rows) {
        const auto step = [&](int n_threads) {
            kHebbian ? hebbian_step(rows, p.ids.data(), p.s.data(), p.weights(), p.c_prime, rate, w.data(),
                                    log_w.data(), log_w_sum.data(), w_sum.data(), p.c, p.d_padded, n_threads)
                     : m_step(rows, p.ids.data(), p.s.data(), p.weights(), p.c_prime, p.w.data(),
                              prior_rows > 0 ? Floats(p.d, 0.75f).data() : nullptr, prior_rows, w.data(), log_w.data(),
                              log_w_sum.data(), mass.data(), p.c, p.d_padded, n_threads);
        };
        with_threads(step, w, log_w, log_w_sum, w_sum, mass);
    });
    for (std::size_t at = 0; at < p.ids.size(); ++at) {
        const std::size_t n = at / p.c_prime, c = std::max(p.ids[at], 0);  // s is 0 in an empty place
        want_mass[c] += double(p.s[at]) * p.weight[n];
        const double factor = double(p.s[at]) * p.weight[n] * p.scale[n];
        for (std::size_t j = 0; j < p.d; ++j) sum[c * p.d + j] += factor * p.x[n * p.d + j];
    }
    Doubles want(p.w.begin(), p.w.end()), want_log(p.c * p.d_padded, 0.0), want_log_sum(p.c, 0.0), want_sum(p.c, 0.0);
    for (std::size_t i = 0; i < want.size(); ++i) {
        const std::size_t c = i / p.d;
        if (kHebbian && want_mass[c] == 0.0) continue;  // left alone, with all that belongs to it
        if (want_mass[c] > 0.0)  // the M-step is a Hebbian step of any size: neither goes past the mean
            want[i] += std::min<double>(rate, 1.0 / want_mass[c]) * (sum[i] + want_mass[c] * (1.0 - want[i]));
        want_log_sum[c] += want_log[c * p.d_padded + i % p.d] = std::log(want[i]);
        want_sum[c] += want[i];
    }
    for (double& m : mass) m += prior_rows;
    expect_near("w", w, want, 1e-6), expect_near("log_w", log_w, want_log, 1e-6);
    expect_near("log_w_sum", log_w_sum, want_log_sum, 1e-6);
    kHebbian ? expect_near("w_sum", w_sum, want_sum, 1e-6) : expect_near("mass", mass, want_mass, 1e-7);
}

void check_rows(const Shape& shape, std::size_t seed) {
    const Problem p(shape, seed);
    Floats x = p.x;
    for (float& v : x) v = v == 0.0f ? -0.0f : 4.0f * v;  // the same proportions
    std::vector<std::uint64_t> hash(p.n, 0), hash_f32(p.n, 0);
    Doubles want(p.n, 0.0), got(p.n, NAN);
    p.with_rows([&](auto rows) {
        with_threads([&](int t) { row_hashes(rows.x, p.n, p.d, seed, hash.data(), t); }, hash);
        with_threads([&](int t) { log_factorials(rows, got.data(), t); }, got);
    });
    row_hashes(x.data(), p.n, p.d, seed, hash_f32.data(), 2);
    expect(hash == hash_f32, "the hash of the same proportions in another type");
    bool same = true;
    for (std::size_t n = 0; n < p.n; ++n) {
        const auto row = x.begin() + n * p.d;
        const double total = std::max(std::accumulate(row, row + p.d, 0.0), 1e-30);
        for (std::size_t j = 0; j < p.d; ++j) want[n] += std::lgamma(double(p.scale[n]) * p.x[n * p.d + j] + 2.0);
        for (std::size_t j = 0; j < p.d; ++j) row[j] = static_cast<float>(row[j] / total);
        for (std::size_t m = 0; m < n; ++m) same &= std::equal(row, row + p.d, &x[m * p.d]) == (hash[m] == hash[n]);
    }
    expect(same, "proportional rows, and no others, have equal hashes");
    expect_near("log_factorials", got, want, 3e-6);
}

// t_k = sum_i s_i R_kc / sum_k R_kc for the fields c = ids[i]; r is C x K.
Doubles naive_vote(const Doubles& r, std::size_t n_classes, const Index* ids, const float* s, std::size_t n) {
    Doubles t(n_classes, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        const double* row = &r[ids[i] * n_classes];
        const double total = std::accumulate(row, row + n_classes, 0.0);
        for (std::size_t k = 0; k < n_classes && total > kUnreached; ++k) t[k] += s[i] * row[k] / total;
    }
    return t;
}

void check_classes(const Shape& shape, std::size_t seed) {
    Problem p(shape, seed);
    const std::size_t n_classes = std::vector<int>{2, 10, 17, 40}[p.random.below(4)], k_padded = padded(n_classes);
    const std::size_t batch = 1 + 9 * p.random.below(3);
    const float rate = std::vector<float>{0.01f, 0.5f, 3.0f}[p.random.below(3)], threshold = 0.1f * p.random.below(2);
    const bool self_label = p.random.chance(0.8);
    const Ids points = p.random.distinct(p.n - p.n / 8, p.n), fields = p.random.distinct(p.c, p.c);
    std::vector<std::int64_t> indptr(p.n + 1), order(points.begin(), points.end());  // some points are left out
    Ids label(p.n), taught(p.n, -7), want(p.n, -7);
    for (Index& k : label) k = p.random.chance(0.6) ? -1 : p.random.below(n_classes);
    for (std::size_t n = 0; n <= p.n; ++n) indptr[n] = n * p.c_prime;
    for (Index& id : p.ids) id = std::max(id, 0);  // there is no empty place here: field 0 with s = 0
    Floats r = p.random.floats(p.c * k_padded, -0.5, 0.5), scale = p.random.floats(k_padded, 0.5, 2.0);
    Doubles now(r.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
        r[i] = i % k_padded < n_classes ? std::max(r[i], 0.0f) : 0.0f;
        now[i] = double(r[i]) * scale[i % k_padded];
    }
    Floats s = p.random.floats(p.c, 0.0, 1.0), t(k_padded, NAN);
    std::vector<const float*> rows(p.c);
    for (std::size_t i = 0; i < p.c; ++i) rows[i] = &r[fields[i] * k_padded];
    lanes().class_vote(rows.data(), s.data(), p.c, scale.data(), k_padded, t.data());
    expect_near("class_vote", t, naive_vote(now, k_padded, fields.data(), s.data(), p.c), 1e-6);
    lanes().class_vote(rows.data(), s.data(), p.c, Floats(k_padded, 1e-42f).data(), k_padded, t.data());
    expect(std::all_of(t.begin(), t.end(), [](float v) { return std::isfinite(v); }), "class_vote near underflow");
    const auto learn = [&](int n_threads) {
        learn_classes(indptr.data(), p.ids.data(), p.s.data(), label.data(), p.weights(), order.data(), order.size(),
                      batch, rate, threshold, self_label, {r.data(), scale.data(), p.c, n_classes, k_padded},
                      taught.data(), n_threads);
    };
    with_threads(learn, r, scale, taught);
    for (std::size_t begin = 0; begin < order.size(); begin += batch) {
        const std::vector<std::size_t> members(&order[begin], &order[begin] + std::min(batch, order.size() - begin));
        Doubles mass(k_padded, 0.0), eps(k_padded, 0.0);
        for (std::size_t n : members) {
            want[n] = label[n];
            if (label[n] < 0 && self_label) {
                const Doubles vote = naive_vote(now, k_padded, &p.ids[indptr[n]], &p.s[indptr[n]], p.c_prime);
                Doubles top = vote;
                std::sort(top.rbegin(), top.rend());
                const double above = top[0] - top[1] - threshold;
                if (above > 0.0) want[n] = std::find(vote.begin(), vote.end(), top[0]) - vote.begin();
                if (top[0] > 0.0 && std::fabs(above) < 1e-5) want[n] = taught[n];  // too close to call
            }
            if (want[n] >= 0) mass[want[n]] += p.weight[n];
        }
        for (std::size_t k = 0; k < k_padded; ++k) eps[k] = std::min<double>(rate, 1.0 / mass[k]);
        for (std::size_t i = 0; i < now.size(); ++i) now[i] *= 1.0 - eps[i % k_padded] * mass[i % k_padded];
        for (std::size_t n : members)
            for (std::size_t i = n * p.c_prime; i < (n + 1) * p.c_prime && want[n] >= 0; ++i)
                now[p.ids[i] * k_padded + want[n]] += eps[want[n]] * p.weight[n] * p.s[i];
    }
    expect(taught == want, "taught");
    expect_near("r", r, now, 1e-5);
}

void check_lanes(const Shape& shape, std::size_t seed) {
    Problem p(shape, seed);
    Floats in = p.random.floats(p.d, -4.43, 4.43), log(p.d, NAN), s(p.c_prime, NAN), dots(p.n * p.c, NAN);
    Doubles want(p.d), want_s, want_dots(p.n * p.c, 0.0);
    for (std::size_t i = 0; i < p.d; ++i) want[i] = std::log(double(in[i] = std::exp(in[i] * in[i] * in[i])));
    const double total = lanes().log(in.data(), p.d, log.data()) - std::accumulate(want.begin(), want.end(), 0.0);
    expect_near("log", log, want, 2e-7);
    expect(std::fabs(total) < 1e-5 * p.d, "sum of log");
    Floats logits = p.random.floats(p.c_prime, -3.0 * p.c_prime, 5.0);
    std::sort(logits.rbegin(), logits.rend());
    Ranked ranked;
    for (float v : logits) ranked.emplace_back(-v, 0);
    s.push_back(lanes().softmax(logits.data(), p.c_prime, s.data()));
    want_s.push_back(naive_softmax(ranked, want_s));
    expect_near("softmax and log sum exp", s, want_s, 3e-7);
    const Floats points = p.random.floats(p.n * p.d_padded, -1.0, 1.0);
    const Ids blocks = p.random.distinct(p.random.below(1 + p.d_padded / kBlock), p.d_padded / kBlock);
    std::vector<const float*> rows(p.c);
    for (std::size_t c = 0; c < p.c; ++c) rows[c] = &p.log_w[c * p.d_padded];
    lanes().dots(points.data(), p.d_padded, p.n, rows.data(), p.c, blocks.data(), blocks.size(), dots.data());
    for (std::size_t i = 0; i < dots.size(); ++i)
        for (std::size_t b : blocks)
            want_dots[i] += naive_dot(&points[i / p.c * p.d_padded + b * kBlock], rows[i % p.c] + b * kBlock, kBlock);
    expect_near("dots", dots, want_dots, 1e-5);
}

void run(const char* name, void (*check)(const Shape&, std::size_t seed)) {
    std::vector<Shape> shapes{{17, 600, 600, 3}, {3, 300, 1100, 15}, {1, 5000, 20, 3}};  // several chunks of work
    for (std::size_t d : {1, 2, 15, 16, 17, 33, 100})
        for (std::size_t n : {0, 1, 2, 7, 100})
            for (std::size_t c : {1, 3, 16, 17, 65, 200})
                shapes.push_back({d, n, c, std::vector<std::size_t>{1, 2, 15, c}[(n + shapes.size()) % 4]});
    const int passed = n_passed, failed = n_failed;
    what_kernel = name;
    for (const Shape& shape : shapes) check(where = shape, &shape - shapes.data());
    std::printf("%-9s %-14s %6d passed, %d failed\n", lanes().name, name, n_passed - passed, n_failed - failed);
}

}  // namespace

int main() {
    int n_sets = 0;
    const Lanes* const* sets = available_lanes(&n_sets);
    for (int i = 0; i < n_sets; ++i) {
        expect(use_lanes(sets[i]->name) && !use_lanes("none") && &lanes() == sets[i], "use_lanes");
        run("lanes", check_lanes);
        run("select_top", check_select_top);
        run("search_groups", check_search_groups);
        run("build_lists", check_build_lists);
        run("m_step", check_step<false>);
        run("hebbian_step", check_step<true>);
        run("rows", check_rows);
        run("classes", check_classes);
    }
    std::printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 ? 1 : 0;
}
