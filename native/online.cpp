// Online learning with partial E-steps: mini-batches whose points look at a few fields only.
//
// The points of a mini-batch are independent of each other, and so are its fields. Both are divided into a fixed number
// of parts, which threads process in order; a step starts when the previous one is done.
#include <cmath>
#include <vector>

#include "activate.h"
#include "members.h"
#include "parallel.h"

namespace tnesi {
namespace {

constexpr std::size_t kParts = 8;

struct Touch {
    std::int32_t field;
    Member member;
};

struct Scratch {
    std::vector<float> point;  // padded like log W
    std::vector<std::int32_t> blocks;
    Bits filled;
    std::vector<std::size_t> mark;   // per field: the last point for which it was a candidate
    std::vector<std::int32_t> ids;   // the candidates
    std::vector<const float*> rows;  // their rows of log W
    std::vector<float> scores, logits;
    std::vector<Scored> best;
    std::vector<Touch> touched;  // by the mini-batch: pairs of a field of this part and a point
    std::vector<Member> members;
    std::vector<double> sum;
    std::size_t n_seen = 0;

    Scratch(std::size_t c, std::size_t d, std::size_t d_padded, std::size_t most, std::size_t c_prime)
        : point(d_padded, 0.0f),
          blocks(d_padded / kBlock),
          filled(d_padded / kBlock),
          mark(c, 0),
          ids(most),
          rows(most),
          scores(most),
          logits(c_prime),
          best(c_prime),
          sum(d) {}
};

// Returns the number of blocks in which the point is nonzero.
template <typename T>
int load_point(const Rows<T>& rows, std::size_t n, Scratch& own) {
    widen(rows.x + n * rows.d, rows.d, own.point.data());
    return find_blocks(own.point.data(), 1, own.point.size(), own.blocks.data());
}
int load_point(const SparseRows& rows, std::size_t n, Scratch& own) {
    for_values(rows, n, [&](std::size_t column, float value) {
        own.point[column] = value;
        own.filled.set(column / kBlock);
    });
    return own.filled.take(own.blocks.data());
}
template <typename T>
void clear_point(const Rows<T>&, std::size_t, Scratch&) {}
void clear_point(const SparseRows& rows, std::size_t n, Scratch& own) {
    for_values(rows, n, [&](std::size_t column, float) { own.point[column] = 0.0f; });
}

// The partial E-step of one point; `extra` are its extra candidates.
template <typename R>
void improve(const R& rows, std::size_t n, const std::int32_t* extra, float row_sum, const Looks& looks,
             const Weights& fields, const Activities& out, float* log_joint, Scratch& own) {
    int n_rows = 0;
    ++own.n_seen;
    const auto add = [&](const std::int32_t* ids, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (static_cast<std::uint32_t>(ids[i]) >= fields.c) continue;
            const auto c = static_cast<std::size_t>(ids[i]);
            if (own.mark[c] == own.n_seen) continue;
            own.mark[c] = own.n_seen;
            own.ids[static_cast<std::size_t>(n_rows)] = ids[i];
            own.rows[static_cast<std::size_t>(n_rows++)] = fields.log_w + c * fields.d_padded;
        }
    };
    const std::int32_t* before = out.ids + n * out.c_prime;
    add(before, out.c_prime);
    if (static_cast<std::uint32_t>(before[0]) < fields.c)
        add(looks.lists + static_cast<std::size_t>(before[0]) * looks.g, looks.g);
    add(extra, looks.n_extra);
    const int n_blocks = load_point(rows, n, own);
    lanes().dots(own.point.data(), fields.d_padded, 1, own.rows.data(), n_rows, own.blocks.data(), n_blocks,
                 own.scores.data());
    clear_point(rows, n, own);
    Best best(own.best.data(), out.c_prime);
    for (int i = 0; i < n_rows; ++i) {
        const auto c = static_cast<std::size_t>(own.ids[static_cast<std::size_t>(i)]);
        best.offer({fields.log_w_sum[c] + own.scores[static_cast<std::size_t>(i)] * rows.scale[n],
                    own.ids[static_cast<std::size_t>(i)]});
    }
    const std::size_t n_best = best.finish();
    write_activities(out, n, own.best.data(), n_best, own.logits.data());
    float top = -3.0e38f;
    for (std::size_t i = 0; i < n_best; ++i) {
        own.logits[i] = own.best[i].score - (fields.w_sum[static_cast<std::size_t>(own.best[i].id)] - row_sum);
        top = std::max(top, own.logits[i]);
    }
    double total = 0.0;
    for (std::size_t i = 0; i < n_best; ++i) total += std::exp(static_cast<double>(own.logits[i] - top));
    log_joint[n] = static_cast<float>(static_cast<double>(top) + std::log(std::max(total, 1e-300)));
}

}  // namespace

template <typename R>
void learn_online(const R& rows, const float* weight, const std::int64_t* order, std::size_t n_order, std::size_t batch,
                  float rate, float row_sum, Looks looks, Weights fields, Activities out, float* log_joint,
                  int n_threads) {
    const std::size_t most = out.c_prime + looks.g + looks.n_extra, n_batches = (n_order + batch - 1) / batch;
    std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_threads, 1)),
                                 Scratch(fields.c, rows.d, fields.d_padded, most, out.c_prime));
    for (Scratch& own : scratch) {
        own.touched.reserve(std::min(batch, n_order) * out.c_prime);
        own.members.reserve(std::min(batch, n_order) * out.c_prime);
    }
    // even steps are E-steps, odd steps are Hebbian steps
    parallel_steps(2 * n_batches, kParts, 1, n_threads,
                   [&](std::size_t step, std::size_t part, std::size_t, int worker) {
                       Scratch& own = scratch[static_cast<std::size_t>(worker)];
                       const std::size_t begin = step / 2 * batch, n = std::min(batch, n_order - begin);
                       if (step % 2 == 0) {
                           for (std::size_t at = begin + part * n / kParts; at < begin + (part + 1) * n / kParts; ++at)
                               improve(rows, static_cast<std::size_t>(order[at]), looks.extra + at * looks.n_extra,
                                       row_sum, looks, fields, out, log_joint, own);
                           return;
                       }
                       own.touched.clear();
                       for (std::size_t at = begin; at < begin + n; ++at) {
                           const auto point = static_cast<std::size_t>(order[at]);
                           for (std::size_t i = point * out.c_prime; i < (point + 1) * out.c_prime; ++i)
                               if (out.s[i] >= kTooFaint && static_cast<std::size_t>(out.ids[i]) % kParts == part)
                                   own.touched.push_back({out.ids[i], {static_cast<std::int32_t>(point), out.s[i]}});
                       }
                       // the points of a field stay in their order
                       std::stable_sort(own.touched.begin(), own.touched.end(),
                                        [](const Touch& a, const Touch& b) { return a.field < b.field; });
                       own.members.clear();
                       for (const Touch& touch : own.touched) own.members.push_back(touch.member);
                       for (std::size_t first = 0, last; first < own.touched.size(); first = last) {
                           const std::int32_t field = own.touched[first].field;
                           for (last = first + 1; last < own.touched.size() && own.touched[last].field == field;)
                               ++last;
                           if (last < own.touched.size()) {  // fields are scattered in memory
                               const auto next = static_cast<std::size_t>(own.touched[last].field);
                               prefetch(fields.w + next * rows.d, rows.d * sizeof(float));
                               prefetch(fields.log_w + next * fields.d_padded, rows.d * sizeof(float));
                           }
                           pull_field(rows, own.members.data() + first, last - first, weight, rate, fields,
                                      static_cast<std::size_t>(field), own.sum.data());
                       }
                   });
}

#define TNESI_INSTANTIATE(R)                                                                                        \
    template void learn_online(const R&, const float*, const std::int64_t*, std::size_t, std::size_t, float, float, \
                               Looks, Weights, Activities, float*, int);
TNESI_INSTANTIATE(Rows<std::uint8_t>)
TNESI_INSTANTIATE(Rows<float>)
TNESI_INSTANTIATE(SparseRows)

}  // namespace tnesi
