// The kernels that learn: the steps of the first layer, the classes, and what spreads over a graph.
#include "problems.h"

using namespace tnesi;

namespace {

constexpr Units kUnits{0x1p-30, 0x1p-34};

// Rows that come in two parts, whichever comes first, give the bits that these parts give in the other order, and those
// of the whole if there is only one.
void check_parts(const Shape& shape, std::size_t seed) {
    const Problem p(shape, seed);
    const std::size_t half = p.n / 2;
    const Prior prior{nullptr, 0.0};
    struct Result {
        Floats w, log_w, log_w_sum;
        bool operator==(const Result& o) const { return w == o.w && log_w == o.log_w && log_w_sum == o.log_w_sum; }
    };
    const auto result = [&](std::initializer_list<std::pair<std::size_t, std::size_t>> parts) {
        Result r{Floats(p.w.size()), Floats(p.c * p.d_padded, 0.0f), Floats(p.c)};
        Doubles sums(p.c * p.d, 0.0), mass(p.c, 0.0);
        const auto add = [&](int n_threads) {
            for (const auto& part : parts) {
                const auto add_part = [&](auto rows) {
                    const std::size_t begin = part.first;
                    add_statistics(rows, p.ids.data() + begin * p.c_prime, p.s.data() + begin * p.c_prime,
                                   p.weights() ? p.weights() + begin : nullptr, p.c_prime, kUnits, sums.data(),
                                   mass.data(), p.c, n_threads);
                };
                p.with_rows(add_part, part.first, part.second);
            }
        };
        with_threads(add, sums, mass);
        const auto finish = [&](int n_threads) {
            finish_m_step(sums.data(), mass.data(), p.w.data(), prior, r.w.data(), r.log_w.data(), r.log_w_sum.data(),
                          p.c, p.d, p.d_padded, n_threads);
        };
        with_threads(finish, r.w, r.log_w, r.log_w_sum);
        return r;
    };
    expect(result({{0, half}, {half, p.n}}) == result({{half, p.n}, {0, half}}), "the order of the parts");
    Result whole{Floats(p.w.size()), Floats(p.c * p.d_padded, 0.0f), Floats(p.c)};
    Doubles mass(p.c, -7.0);
    p.with_rows([&](auto rows) {
        m_step(rows, p.ids.data(), p.s.data(), p.weights(), p.c_prime, kUnits, p.w.data(), prior, whole.w.data(),
               whole.log_w.data(), whole.log_w_sum.data(), mass.data(), p.c, p.d_padded, 2);
    });
    expect(result({{0, p.n}}) == whole, "one part");
}

template <bool kHebbian>
void check_step(const Shape& shape, std::size_t seed) {
    const Problem p(shape, seed);
    const float rate = !kHebbian ? INFINITY : seed % 3 == 0 ? 3.0f : 0.6f / static_cast<float>(p.n + 1);
    Floats w = kHebbian ? p.w : Floats(p.w.size(), NAN), log_w(p.c * p.d_padded, 0.0f), log_w_sum(p.c), w_sum(p.c);
    const double prior_rows = kHebbian || seed % 2 == 0 ? 0.0 : 1.5;
    const Floats above(p.d, 0.75f);
    const Prior prior{prior_rows > 0 ? above.data() : nullptr, prior_rows};
    Doubles mass(p.c, -7.0), sum(p.c * p.d, 0.75 * prior_rows), want_mass(p.c, prior_rows);
    p.with_rows([&](auto rows) {
        const auto step = [&](int n_threads) {
            kHebbian ? hebbian_step(rows, p.ids.data(), p.s.data(), p.weights(), p.c_prime, rate, w.data(),
                                    log_w.data(), log_w_sum.data(), w_sum.data(), p.c, p.d_padded, n_threads)
                     : m_step(rows, p.ids.data(), p.s.data(), p.weights(), p.c_prime, kUnits, p.w.data(), prior,
                              w.data(), log_w.data(), log_w_sum.data(), mass.data(), p.c, p.d_padded, n_threads);
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

// Partial E-steps: a mini-batch is a search among the candidates of each point, then a Hebbian step.
void check_online(const Shape& shape, std::size_t seed) {
    Problem p(shape, seed);
    const std::size_t batch = 1 + p.random.below(30), g = p.random.below(9), n_extra = p.random.below(3);
    const Ids points = p.random.distinct(p.n - p.n / 8, p.n);
    const std::vector<std::int64_t> order(points.begin(), points.end());
    const auto some = [&](std::size_t n) {
        Ids out(n);
        for (Index& id : out) id = p.random.below(p.c + 1) - 1;
        return out;
    };
    const Ids lists = some(p.c * g), extra = some(order.size() * n_extra);
    const float rate = 0.6f / static_cast<float>(p.n + 1), row_sum = 2.0f * static_cast<float>(p.d);
    Floats w = p.w, log_w(p.log_w), log_w_sum(p.c, 0.0f), w_sum(p.c, 0.0f);
    for (std::size_t c = 0; c < p.c; ++c) {
        for (std::size_t j = 0; j < p.d; ++j) w_sum[c] += w[c * p.d + j];
        log_w_sum[c] = static_cast<float>(lanes().log(&w[c * p.d], p.d, &log_w[c * p.d_padded]));
    }
    Ids ids = p.ids;
    Floats s = p.s, log_sum(p.n, 0.0f), log_joint(p.n, 0.0f);
    Floats want_w = w, want_log = log_w, want_log_sum = log_w_sum, want_sum = w_sum, want_s = s, want_log_n = log_sum;
    Ids want_ids = ids;
    p.with_rows([&](auto rows) {
        const auto learn = [&](int n_threads) {
            learn_online(rows, p.weights(), order.data(), order.size(), batch, rate, row_sum,
                         {lists.data(), g, extra.data(), n_extra},
                         {w.data(), log_w.data(), log_w_sum.data(), w_sum.data(), p.c, p.d_padded},
                         {ids.data(), s.data(), log_sum.data(), p.n, p.c_prime}, log_joint.data(), n_threads);
        };
        with_threads(learn, w, log_w, log_w_sum, w_sum, ids, s, log_sum, log_joint);
        // the same with the kernels for all rows: the others have no candidates, and no activity in the step
        for (std::size_t begin = 0; begin < order.size(); begin += batch) {
            const std::size_t end = std::min(begin + batch, order.size()), width = g + n_extra + 1;
            Ids group(p.n, 0), own((end - begin + 1) * width, -1), found = want_ids;
            for (std::size_t at = begin; at < end; ++at) {
                const std::size_t row = at - begin + 1, n = order[at];
                group[n] = static_cast<Index>(row);
                const Index best = want_ids[n * p.c_prime];
                for (std::size_t i = 0; best >= 0 && i < g; ++i) own[row * width + i] = lists[best * g + i];
                for (std::size_t i = 0; i < n_extra; ++i) own[row * width + g + i] = extra[at * n_extra + i];
            }
            Floats found_s = want_s, found_log = want_log_n, step_s(want_s.size(), 0.0f);
            const Fields fields{want_log.data(), want_log_sum.data(), nullptr, p.c, p.d_padded};
            search_groups(rows, fields, group.data(), own.data(), end - begin + 1, width,
                          {found.data(), found_s.data(), found_log.data(), p.n, p.c_prime}, 1);
            for (std::size_t at = begin; at < end; ++at) {
                const std::size_t n = order[at];
                want_log_n[n] = found_log[n];
                for (std::size_t i = n * p.c_prime; i < (n + 1) * p.c_prime; ++i) {
                    want_ids[i] = found[i], want_s[i] = found_s[i];
                    if (found_s[i] >= kTooFaint) step_s[i] = found_s[i];
                }
            }
            hebbian_step(rows, want_ids.data(), step_s.data(), p.weights(), p.c_prime, rate, want_w.data(),
                         want_log.data(), want_log_sum.data(), want_sum.data(), p.c, p.d_padded, 1);
        }
    });
    expect_near("w", w, Doubles(want_w.begin(), want_w.end()), 1e-4);
    expect_near("log_w_sum", log_w_sum, Doubles(want_log_sum.begin(), want_log_sum.end()), 1e-4);
    expect_near("w_sum", w_sum, Doubles(want_sum.begin(), want_sum.end()), 1e-4);
    expect_near("log_sum", log_sum, Doubles(want_log_n.begin(), want_log_n.end()), 1e-4);
}

// t_k = sum_i s_i R_kc / sum_k R_kc for the fields c = ids[i]; r is C x K.
// Sets `close` if rounding decides whether a field has a vote: a step to the mean wipes out old weights only to a
// residue, whose size and sign depend on fused multiply-adds.
Doubles naive_vote(const Doubles& r, std::size_t n_classes, const Index* ids, const float* s, std::size_t n,
                   bool* close = nullptr) {
    Doubles t(n_classes, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        const double* row = &r[ids[i] * n_classes];
        const double total = std::accumulate(row, row + n_classes, 0.0);
        if (close && total != 0.0 && std::fabs(total) < 1e-12) *close = true;
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
    Floats sizes = p.random.floats(n_classes, -0.1, 1.0);  // a class without members has no voice
    for (float& size : sizes) size = std::max(size, 0.0f);
    const bool sized = p.random.chance(0.5);
    const auto learn = [&](int n_threads) {
        learn_classes(indptr.data(), p.ids.data(), p.s.data(), label.data(), p.weights(), order.data(), order.size(),
                      batch, rate, threshold, self_label, sized ? sizes.data() : nullptr,
                      {r.data(), scale.data(), p.c, n_classes, k_padded}, taught.data(), n_threads);
    };
    with_threads(learn, r, scale, taught);
    for (std::size_t begin = 0; begin < order.size(); begin += batch) {
        const std::vector<std::size_t> members(&order[begin], &order[begin] + std::min(batch, order.size() - begin));
        Doubles mass(k_padded, 0.0), eps(k_padded, 0.0);
        for (std::size_t n : members) {
            want[n] = label[n];
            if (label[n] < 0 && self_label) {
                Doubles voice = now;
                for (std::size_t i = 0; i < now.size() && sized; ++i)
                    voice[i] *= i % k_padded < n_classes ? sizes[i % k_padded] : 0.0;
                bool close = false;
                const Doubles vote = naive_vote(voice, k_padded, &p.ids[indptr[n]], &p.s[indptr[n]], p.c_prime, &close);
                Doubles top = vote;
                std::sort(top.rbegin(), top.rend());
                const double above = top[0] - top[1] - threshold;
                if (above > 0.0) want[n] = std::find(vote.begin(), vote.end(), top[0]) - vote.begin();
                if (close || (top[0] > 0.0 && std::fabs(above) < 1e-5)) want[n] = taught[n];  // too close to call
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

void check_spread(const Shape& shape, std::size_t seed) {
    Problem p(shape, seed);
    const std::size_t k_padded = std::vector<std::size_t>{16, 32, 112}[p.random.below(3)], n = 1 + p.random.below(3),
                      n_terms = 1 + p.random.below(5);
    std::vector<std::int64_t> indptr{0};
    Ids indices;
    for (std::size_t c = 0; c < p.c; ++c) {
        const Ids near = p.random.distinct(p.random.below(std::min<std::size_t>(p.c, 40) + 1), p.c);
        indices.insert(indices.end(), near.begin(), near.end());
        indptr.push_back(indices.size());
    }
    const Floats values = p.random.floats(indices.size(), -0.2, 0.2);
    const Floats source = p.random.floats(p.c * k_padded, -1.0, 1.0);
    Floats coefficients = p.random.floats(n * n_terms, -1.0, 1.0), out(n * source.size(), NAN);
    coefficients[p.random.below(coefficients.size())] = 0.0f;
    const Graph graph{indptr.data(), indices.data(), values.data(), p.c};
    const Series series{coefficients.data(), n, n_terms};
    with_threads([&](int t) { spread(graph, source.data(), series, out.data(), k_padded, t); }, out);
    Doubles now(source.begin(), source.end()), before, want(out.size(), 0.0);
    for (std::size_t term = 0; term < n_terms; ++term) {
        for (std::size_t i = 0; i < want.size(); ++i)
            want[i] += double(coefficients[i / source.size() * n_terms + term]) * now[i % source.size()];
        Doubles next(source.size());
        for (std::size_t i = 0; i < next.size(); ++i) {
            for (std::int64_t j = indptr[i / k_padded]; j < indptr[i / k_padded + 1]; ++j)
                next[i] += 2.0 * double(values[j]) * now[indices[j] * k_padded + i % k_padded];
            next[i] -= now[i];
            if (term > 0) next[i] = 2.0 * next[i] - before[i];
        }
        before = now, now = next;
    }
    expect_near("out", out, want, 1e-4);
}

}  // namespace

int main() {
    return run_all({{"m_step", check_step<false>},
                    {"m_step_parts", check_parts},
                    {"hebbian_step", check_step<true>},
                    {"online", check_online},
                    {"classes", check_classes},
                    {"spread", check_spread}});
}
