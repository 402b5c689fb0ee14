// Products of sparse rows with all fields. The weights of a few fields are packed column by column, so that a value of
// a row is multiplied with all of them at once and the sums of a row stay in registers. Weights are packed once for
// many rows, and only the columns that these rows use.
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "activate.h"
#include "parallel.h"
#include "points.h"

namespace tnesi {
namespace {

static_assert(kTile <= kStep, "the best score of a tile is one number");
constexpr std::size_t kScratch = std::size_t{1} << 23;  // floats packed at a time: 32 MB, or one tile
constexpr std::size_t kColumns = 1024;                  // columns packed by a thread at a time
constexpr std::size_t kKept = std::size_t{1} << 22;     // total number of best fields of rows searched together

// The columns that rows use, and the index among them of the column of each value.
struct Columns {
    std::vector<std::int32_t> used, places;  // both empty if most columns are used: then indices are columns
    std::size_t n;

    explicit Columns(const SparseRows& rows) : n(rows.d) {
        const std::int64_t begin = rows.indptr[0], end = rows.indptr[rows.n];
        if (static_cast<std::size_t>(end - begin) >= 4 * rows.d) return;
        std::vector<std::int32_t> place(rows.d, -1);
        for (std::int64_t j = begin; j < end; ++j) place[static_cast<std::size_t>(rows.indices[j])] = 0;
        for (std::size_t column = 0; column < rows.d; ++column) {
            if (place[column] < 0) continue;
            place[column] = static_cast<std::int32_t>(used.size());
            used.push_back(static_cast<std::int32_t>(column));
        }
        if (2 * used.size() >= rows.d) {
            used.clear();
            return;
        }
        n = used.size();
        places.resize(static_cast<std::size_t>(end - begin));
        for (std::int64_t j = begin; j < end; ++j)
            places[static_cast<std::size_t>(j - begin)] = place[static_cast<std::size_t>(rows.indices[j])];
    }
    bool all() const { return used.empty() && n > 0; }
};

// Uninitialized memory, aligned to cache lines (loading a vector across a border takes twice as long), and in large
// pages if it is large, since columns are read in random order and allocating small pages is slow.
class Packed {
  public:
    explicit Packed(std::size_t n) {
        const std::size_t size = n * sizeof(float), page = size < kLargePage ? kLine : kLargePage;
        const std::size_t rounded = std::max(size + page - 1, page) / page * page;
        room_.reset(static_cast<float*>(std::aligned_alloc(page, rounded)));
        if (!room_) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        if (page == kLargePage) madvise(room_.get(), rounded, MADV_HUGEPAGE);
#endif
    }
    float* data() const { return room_.get(); }

  private:
    struct Free {
        void operator()(float* room) const { std::free(room); }
    };
    static constexpr std::size_t kLine = 64, kLargePage = std::size_t{1} << 21;
    std::unique_ptr<float[], Free> room_;
};

inline std::size_t tile_width(std::size_t first_field, std::size_t c) {
    return (std::min(kTile, c - first_field) + kTilePart - 1) / kTilePart * kTilePart;
}

void pack(const float* log_w, std::size_t first_field, std::size_t c, std::size_t d_padded, const Columns& columns,
          std::size_t begin, std::size_t end, float* tile) {
    const std::size_t width = tile_width(first_field, c);
    for (std::size_t at = begin; at < end; at += kBlock) {  // a block of columns of all fields stays in cache
        const std::size_t m = std::min(kBlock, end - at);
        for (std::size_t f = 0; f < width; ++f) {
            const float* row = first_field + f < c ? log_w + (first_field + f) * d_padded : nullptr;
            float* out = tile + at * width + f;
            for (std::size_t i = 0; i < m; ++i, out += width)
                *out = !row ? 0.0f : row[columns.all() ? at + i : static_cast<std::size_t>(columns.used[at + i])];
        }
    }
}

// Calls use(row, first_field, n_fields, sums, worker) for all rows and fields. The fields of a row are processed in
// ascending order, by one thread at a time.
template <typename Use>
void for_tiles(const SparseRows& rows, const float* log_w, std::size_t c, std::size_t d_padded, int n_threads,
               Use&& use) {
    const Columns columns(rows);
    const std::size_t n_tiles = (c + kTile - 1) / kTile, tile_size = columns.n * tile_width(0, c);
    const std::size_t at_once =
        std::min(std::max<std::size_t>(kScratch / std::max<std::size_t>(tile_size, 1), 1), n_tiles);
    const std::size_t n_spans = (columns.n + kColumns - 1) / kColumns;
    const std::size_t n_workers = static_cast<std::size_t>(std::max(n_threads, 1));
    const std::size_t chunk = std::min<std::size_t>(rows.n / (4 * n_workers) + 1, 256);
    const Lanes& simd = lanes();
    const Packed packed(at_once * tile_size);
    for (std::size_t first = 0; first < n_tiles; first += at_once) {
        const std::size_t n_now = std::min(at_once, n_tiles - first);
        parallel_for(n_now * n_spans, 1, n_threads, [&](std::size_t begin, std::size_t end, int) {
            for (std::size_t at = begin; at < end; ++at) {
                const std::size_t tile = at / n_spans, span = at % n_spans * kColumns;
                pack(log_w, (first + tile) * kTile, c, d_padded, columns, span, std::min(span + kColumns, columns.n),
                     packed.data() + tile * tile_size);
            }
        });
        parallel_for(rows.n, chunk, n_threads, [&](std::size_t begin, std::size_t end, int worker) {
            float sums[kTile];
            for (std::size_t tile = 0; tile < n_now; ++tile) {
                const std::size_t field = (first + tile) * kTile;
                for (std::size_t n = begin; n < end; ++n) {
                    const std::int64_t start = rows.indptr[n];
                    const std::int32_t* places =
                        columns.all() ? rows.indices + start : columns.places.data() + (start - rows.indptr[0]);
                    simd.tile_dots(rows.values + start, places, static_cast<std::size_t>(rows.indptr[n + 1] - start),
                                   packed.data() + tile * tile_size, tile_width(field, c), sums);
                    use(n, field, std::min(kTile, c - field), sums, worker);
                }
            }
        });
    }
}

}  // namespace

void products(const SparseRows& rows, const float* log_w, std::size_t c, std::size_t d_padded, float* out,
              int n_threads) {
    for_tiles(rows, log_w, c, d_padded, n_threads,
              [&](std::size_t n, std::size_t field, std::size_t n_fields, const float* sums, int) {
                  std::memcpy(out + n * c + field, sums, n_fields * sizeof(float));
              });
}

void search_all(const SparseRows& rows, const Fields& fields, Activities out, int n_threads) {
    const std::size_t at_once = std::min(std::max<std::size_t>(kKept / out.c_prime, 1024), rows.n);
    const Lanes& simd = lanes();
    const std::unique_ptr<Scored[]> kept(new Scored[at_once * out.c_prime]);  // each thread sets what it uses
    const std::unique_ptr<Best[]> bests(new Best[at_once]);
    std::vector<float> logits(static_cast<std::size_t>(std::max(n_threads, 1)) * out.c_prime);
    for (std::size_t first = 0; first < rows.n; first += at_once) {
        const SparseRows part{rows.indptr + first,
                              rows.indices,
                              rows.values,
                              rows.scale + first,
                              std::min(at_once, rows.n - first),
                              rows.d};
        for_tiles(part, fields.log_w, fields.c, fields.d_padded, n_threads,
                  [&](std::size_t n, std::size_t field, std::size_t n_fields, const float* sums, int worker) {
                      const float* base = base_of(fields, first + n) + field;
                      Best& best = bests[n];
                      if (field == 0) best = Best(kept.get() + n * out.c_prime, out.c_prime);
                      float top;
                      if (field > 0) simd.block_largest(sums, base, part.scale[n], n_fields, &top);
                      if (field == 0 || top >= best.bar()) {
                          float scores[kTile];
                          for (std::size_t i = 0; i < n_fields; ++i) scores[i] = base[i] + sums[i] * part.scale[n];
                          best.offer(scores, n_fields, static_cast<std::int32_t>(field));
                      }
                      if (field + n_fields < fields.c) return;
                      write_activities(out, first + n, kept.get() + n * out.c_prime, best.finish(),
                                       logits.data() + static_cast<std::size_t>(worker) * out.c_prime);
                  });
    }
}

}  // namespace tnesi
