// Neighborhood search: the points of a group are compared with the same few fields, as a small dense product that stays
// in cache.
#include <vector>

#include "activate.h"
#include "grouping.h"
#include "parallel.h"
#include "points.h"

namespace tnesi {
namespace {

constexpr std::size_t kPointsMax = 8;  // at least Lanes::n_points

struct Scratch {
    std::vector<float> points;         // kPointsMax x d_padded
    std::vector<std::int32_t> blocks;  // blocks of columns in which some point is nonzero
    Bits filled;                       // the same, for sparse points
    std::vector<const float*> rows;    // candidate rows of log W
    std::vector<std::int32_t> ids;     // their fields
    std::vector<std::size_t> mark;     // per field: the last task in which it was a candidate
    std::vector<float> scores, logits;
    std::vector<Scored> best;
    std::vector<const float*> own_rows;  // fields of K^(n) that are not in the list
    std::vector<std::int32_t> own_ids;
    std::vector<float> own_scores;

    Scratch(std::size_t c, std::size_t d_padded, std::size_t g, std::size_t c_prime)
        : points(kPointsMax * d_padded),
          blocks(d_padded / kBlock),
          filled(d_padded / kBlock),
          rows(g),
          ids(g),
          mark(c, 0),
          scores(kPointsMax * g),
          logits(c_prime),
          best(c_prime),
          own_rows(c_prime),
          own_ids(c_prime),
          own_scores(c_prime) {}
};

// Returns the number of blocks.
template <typename T>
int load_points(const Rows<T>& rows, const Member* members, std::size_t n, std::size_t d_padded, Scratch& own) {
    for (std::size_t p = 0; p < n; ++p)
        widen(rows.x + static_cast<std::size_t>(members[p].point) * rows.d, rows.d, own.points.data() + p * d_padded);
    return find_blocks(own.points.data(), n, d_padded, own.blocks.data());
}
int load_points(const SparseRows& rows, const Member* members, std::size_t n, std::size_t d_padded, Scratch& own) {
    for (std::size_t p = 0; p < n; ++p) {
        float* point = own.points.data() + p * d_padded;
        for_values(rows, static_cast<std::size_t>(members[p].point), [&](std::size_t column, float value) {
            point[column] = value;
            own.filled.set(column / kBlock);
        });
    }
    return own.filled.take(own.blocks.data());
}

// Clears the entries of sparse points, which the next points may not overwrite; rows may have a million columns.
template <typename T>
void clear_points(const Rows<T>&, const Member*, std::size_t, std::size_t, Scratch&) {}
void clear_points(const SparseRows& rows, const Member* members, std::size_t n, std::size_t d_padded, Scratch& own) {
    for (std::size_t p = 0; p < n; ++p) {
        float* point = own.points.data() + p * d_padded;
        for_values(rows, static_cast<std::size_t>(members[p].point),
                   [&](std::size_t column, float) { point[column] = 0.0f; });
    }
}

struct Task {
    std::size_t group, begin, end;  // of its members
};

// Large groups are divided, which does not change the scores of a point.
std::vector<Task> tasks_of(const Grouping& groups, std::size_t n_groups) {
    constexpr std::size_t kMost = 96;
    std::vector<Task> tasks;
    for (std::size_t j = 0; j < n_groups; ++j)
        for (std::size_t at = groups.start[j]; at < groups.start[j + 1]; at += kMost)
            tasks.push_back({j, at, std::min(at + kMost, groups.start[j + 1])});
    return tasks;
}

// Prefetches the next rows, which are scattered in memory.
template <typename R>
void prefetch_points(const R& rows, const std::vector<Member>& members, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < std::min(end, members.size()); ++at)
        prefetch_row(rows, static_cast<std::size_t>(members[at].point));
}

}  // namespace

template <typename R>
void search_groups(const R& rows, const Fields& fields, const std::int32_t* group, const std::int32_t* lists,
                   std::size_t n_groups, std::size_t g, Activities out, int n_threads) {
    const Grouping groups = group_by(group, nullptr, rows.n, 1, n_groups);
    std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_threads, 1)),
                                 Scratch(fields.c, fields.d_padded, g, out.c_prime));
    const Lanes& simd = lanes();
    const std::size_t step = static_cast<std::size_t>(simd.n_points);
    const std::vector<Task> tasks = tasks_of(groups, n_groups);

    parallel_for(tasks.size(), 4, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        Scratch& own = scratch[static_cast<std::size_t>(worker)];
        for (std::size_t task = first; task < last; ++task) {
            const auto [j, begin, end] = tasks[task];
            int n_rows = 0;
            for (std::size_t i = 0; i < g; ++i) {
                const std::int32_t id = lists[j * g + i];
                if (static_cast<std::uint32_t>(id) >= fields.c) continue;
                const auto c = static_cast<std::size_t>(id);
                if (own.mark[c] == task + 1) continue;
                own.mark[c] = task + 1;
                own.ids[static_cast<std::size_t>(n_rows)] = id;
                own.rows[static_cast<std::size_t>(n_rows++)] = fields.log_w + c * fields.d_padded;
            }
            for (std::size_t at = begin; at < end; at += step) {
                const std::size_t m = std::min(step, end - at);
                prefetch_points(rows, groups.members, at + m, at + m + step);
                const int n_blocks = load_points(rows, &groups.members[at], m, fields.d_padded, own);
                simd.dots(own.points.data(), fields.d_padded, static_cast<int>(m), own.rows.data(), n_rows,
                          own.blocks.data(), n_blocks, own.scores.data());
                for (std::size_t p = 0; p < m; ++p) {
                    const auto n = static_cast<std::size_t>(groups.members[at + p].point);
                    const float* base = base_of(fields, n);
                    Best best(own.best.data(), out.c_prime);
                    int n_own = 0;
                    for (std::size_t i = 0; i < out.c_prime; ++i) {
                        const std::int32_t id = out.ids[n * out.c_prime + i];
                        if (static_cast<std::uint32_t>(id) >= fields.c) continue;
                        const auto c = static_cast<std::size_t>(id);
                        if (own.mark[c] == task + 1) continue;
                        own.own_ids[static_cast<std::size_t>(n_own)] = id;
                        own.own_rows[static_cast<std::size_t>(n_own++)] = fields.log_w + c * fields.d_padded;
                    }
                    simd.dots(own.points.data() + p * fields.d_padded, fields.d_padded, 1, own.own_rows.data(), n_own,
                              own.blocks.data(), n_blocks, own.own_scores.data());
                    const auto offer = [&](const std::int32_t* ids, const float* scores, int count) {
                        for (int i = 0; i < count; ++i) {
                            best.offer({base[ids[i]] + scores[i] * rows.scale[n], ids[i]});
                        }
                    };
                    offer(own.ids.data(), own.scores.data() + p * static_cast<std::size_t>(n_rows), n_rows);
                    offer(own.own_ids.data(), own.own_scores.data(), n_own);
                    const std::size_t n_best = best.finish();
                    write_activities(out, n, own.best.data(), n_best, own.logits.data());
                }
                clear_points(rows, &groups.members[at], m, fields.d_padded, own);
            }
        }
    });
}

void build_lists(const std::int32_t* ids, std::size_t n, std::size_t c_prime, std::size_t c, std::size_t g,
                 std::int32_t* lists, int n_threads) {
    const Grouping groups = group_by(ids, nullptr, n, c_prime, c);
    struct Tally {
        std::vector<std::int32_t> count, touched;
    };
    std::vector<Tally> tallies(static_cast<std::size_t>(std::max(n_threads, 1)));
    for (auto& own : tallies) {
        own.count.assign(c, 0);
        own.touched.resize(c);
    }
    parallel_for(c, 32, n_threads, [&](std::size_t first, std::size_t last, int worker) {
        Tally& own = tallies[static_cast<std::size_t>(worker)];
        for (std::size_t field = first; field < last; ++field) {
            std::size_t n_touched = 0;
            for (std::size_t m = groups.start[field]; m < groups.start[field + 1]; ++m) {
                const std::int32_t* shared = ids + static_cast<std::size_t>(groups.members[m].point) * c_prime;
                // points whose best field this is use the list, so they count twice
                const std::int32_t votes = shared[0] == static_cast<std::int32_t>(field) ? 2 : 1;
                for (std::size_t i = 0; i < c_prime; ++i) {
                    if (static_cast<std::uint32_t>(shared[i]) >= c) continue;
                    std::int32_t& count = own.count[static_cast<std::size_t>(shared[i])];
                    if (count == 0) own.touched[n_touched++] = shared[i];
                    count += votes;
                }
            }
            const auto begin = own.touched.begin();
            const auto end = begin + static_cast<std::ptrdiff_t>(n_touched);
            const auto more = [&](std::int32_t a, std::int32_t b) {
                const std::int32_t na = own.count[static_cast<std::size_t>(a)];
                const std::int32_t nb = own.count[static_cast<std::size_t>(b)];
                return na > nb || (na == nb && a < b);
            };
            std::int32_t* list = lists + field * g;
            list[0] = static_cast<std::int32_t>(field);
            std::size_t n_listed = 1;
            if (n_touched > g) std::nth_element(begin, begin + static_cast<std::ptrdiff_t>(g), end, more);
            const std::size_t n_sorted = std::min(n_touched, g);
            std::sort(begin, begin + static_cast<std::ptrdiff_t>(n_sorted), more);
            for (std::size_t i = 0; i < n_sorted && n_listed < g; ++i)
                if (own.touched[i] != static_cast<std::int32_t>(field)) list[n_listed++] = own.touched[i];
            for (; n_listed < g; ++n_listed) list[n_listed] = -1;
            for (std::size_t i = 0; i < n_touched; ++i) own.count[static_cast<std::size_t>(own.touched[i])] = 0;
        }
    });
}

template void search_groups(const Rows<std::uint8_t>&, const Fields&, const std::int32_t*, const std::int32_t*,
                            std::size_t, std::size_t, Activities, int);
template void search_groups(const Rows<float>&, const Fields&, const std::int32_t*, const std::int32_t*, std::size_t,
                            std::size_t, Activities, int);
template void search_groups(const SparseRows&, const Fields&, const std::int32_t*, const std::int32_t*, std::size_t,
                            std::size_t, Activities, int);

}  // namespace tnesi
