// The kernels from points to activities, and the innermost loops.
#include <set>

#include "problems.h"

using namespace tnesi;

namespace {

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
        with_threads([&](int t) { products(rows, p.log_w.data(), p.c, p.d_padded, raw.data(), t); }, raw);
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

void check_search_all(const Shape& shape, std::size_t seed) {
    const Problem p(shape, seed);
    std::vector<Ranked> candidates(p.n);
    for (std::size_t n = 0; n < p.n; ++n)
        for (std::size_t c = 0; c < p.c; ++c) candidates[n].emplace_back(-p.score(n, c, p.dot(n, c)), c);
    check_activities(p, candidates, Ids(p.n * p.c_prime, -7),
                     [&](Activities out, int t) { search_all(p.sparse_rows(0, p.n), p.fields(), out, t); });
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

void check_rows(const Shape& shape, std::size_t seed) {
    const Problem p(shape, seed);
    Floats x = p.x;
    for (float& v : x) v = v == 0.0f ? -0.0f : 4.0f * v;  // the same proportions
    std::vector<std::uint64_t> hash(p.n, 0), hash_f32(p.n, 0);
    Doubles want(p.n, 0.0), got(p.n, NAN);
    p.with_rows([&](auto rows) {
        with_threads([&](int t) { row_hashes(rows, seed, hash.data(), t); }, hash);
        with_threads([&](int t) { log_factorials(rows, got.data(), t); }, got);
    });
    row_hashes(Rows<float>{x.data(), nullptr, p.n, p.d}, seed, hash_f32.data(), 2);
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
    const std::size_t width = (std::min(p.c, kTile) + kTilePart - 1) / kTilePart * kTilePart;
    const Floats tile = p.random.floats(p.d * width, -1.0, 1.0);
    Floats sums(width, NAN);
    Doubles want_sums(width, 0.0);
    lanes().tile_dots(p.values.data(), p.indices.data(), p.n > 0 ? p.indptr[1] : 0, tile.data(), width, sums.data());
    for (std::size_t i = 0; i < width; ++i)
        for (std::int64_t j = 0; p.n > 0 && j < p.indptr[1]; ++j)
            want_sums[i] += double(p.values[j]) * tile[p.indices[j] * width + i];
    expect_near("tile_dots", sums, want_sums, 1e-4);
}

}  // namespace

int main() {
    return run_all({{"lanes", check_lanes},
                    {"select_top", check_select_top},
                    {"search_groups", check_search_groups},
                    {"search_all", check_search_all},
                    {"build_lists", check_build_lists},
                    {"rows", check_rows}});
}
