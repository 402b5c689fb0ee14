// Histograms of oriented gradients and of colors, pooled over a grid of cells, for ImageEncoder.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.h"
#include "parallel.h"

namespace tnesi {
namespace {

// The triangular weights of a pixel along an axis: share `low` for `cell` and `high` for the next cell. Cells are
// numbered from 1: there is an extra cell at either end, whose content is dropped.
struct Place {
    std::size_t cell;
    float low, high;
};

std::vector<Place> places(std::size_t length, std::size_t n_cells) {
    std::vector<Place> found(length);
    for (std::size_t i = 0; i < length; ++i) {
        const double at = (static_cast<double>(i) + 0.5) * static_cast<double>(n_cells) / static_cast<double>(length);
        const double below = std::floor(at + 0.5);
        const double high = at + 0.5 - below;
        found[i] = {static_cast<std::size_t>(below), static_cast<float>(1.0 - high), static_cast<float>(high)};
    }
    return found;
}

struct Box {
    std::size_t top, left, height, width;
};

Box box_of(const Pictures& pictures, std::size_t n) {
    if (pictures.boxes == nullptr) return {0, 0, pictures.height, pictures.width};
    const std::int32_t* box = pictures.boxes + 4 * n;
    return {static_cast<std::size_t>(box[0]), static_cast<std::size_t>(box[1]), static_cast<std::size_t>(box[2]),
            static_cast<std::size_t>(box[3])};
}

// One row of cells with an extra cell at either end. The pixels of a row of the picture are added to it, and it is then
// added to the two nearest rows of cells.
class Pool {
  public:
    Pool(const Pictures& pictures, Cells cells, std::size_t n_bins)
        : rows_(places(pictures.height, cells.rows)),
          columns_(places(pictures.width, cells.columns)),
          cells_(cells),
          n_bins_(n_bins),
          sums_((cells.columns + 2) * n_bins) {}

    const Place& column(std::size_t x) const { return columns_[x]; }
    float* cell(std::size_t number) { return sums_.data() + number * n_bins_; }
    void begin_row() { std::fill(sums_.begin(), sums_.end(), 0.0f); }
    void end_row(std::size_t y, float* out) {
        const Place& row = rows_[y];
        if (row.cell >= 1) add(row.low, out + (row.cell - 1) * cells_.columns * n_bins_);
        if (row.cell < cells_.rows) add(row.high, out + row.cell * cells_.columns * n_bins_);
    }

  private:
    void add(float share, float* out) const {
        const float* sums = sums_.data() + n_bins_;
        for (std::size_t i = 0; i < cells_.columns * n_bins_; ++i) out[i] += share * sums[i];
    }

    std::vector<Place> rows_, columns_;
    Cells cells_;
    std::size_t n_bins_;
    std::vector<float> sums_;
};

// The angle of (x, y) in eighths of a turn, in [0, 8]; 0 for (0, 0). Hastings' polynomial, with an error below 1e-5.
inline float eighths(float x, float y) {
    const float a = std::fabs(x), b = std::fabs(y);
    const float larger = a > b ? a : b, smaller = a > b ? b : a;
    const float z = smaller / (larger > 0.0f ? larger : 1.0f), zz = z * z;
    const float atan =
        z * (0.99997726f +
             zz * (-0.33262347f + zz * (0.19354346f + zz * (-0.11643287f + zz * (0.05265332f - zz * 0.01172120f)))));
    float angle = atan * 1.27323954473516f;  // 4 / pi
    angle = a > b ? angle : (larger > 0.0f ? 2.0f - angle : 0.0f);
    angle = x < 0.0f ? 4.0f - angle : angle;
    return y < 0.0f ? 8.0f - angle : angle;
}

// The votes of one row of a picture: dx and dy of the strongest channel, then magnitude and place among orientations.
struct Votes {
    explicit Votes(std::size_t width) : dx(width), dy(width), size(width), place(width) {}
    std::vector<float> dx, dy, size, place;
};

// Differences in row y of a picture of tones, channel by channel; edges are replicated.
void differentiate(const float* tones, const Box& box, std::size_t channels, std::size_t y, Votes& votes) {
    float* dx = votes.dx.data();
    float* dy = votes.dy.data();
    for (std::size_t channel = 0; channel < channels; ++channel) {
        const float* plane = tones + channel * box.height * box.width;
        const float* row = plane + y * box.width;
        const float* above = plane + (y > 0 ? y - 1 : 0) * box.width;
        const float* below = plane + (y + 1 < box.height ? y + 1 : y) * box.width;
        const auto keep = [&](std::size_t x, float across) {
            const float down = 0.5f * (below[x] - above[x]);
            const bool stronger = channel == 0 || across * across + down * down > dx[x] * dx[x] + dy[x] * dy[x];
            dx[x] = stronger ? across : dx[x];
            dy[x] = stronger ? down : dy[x];
        };
        const std::size_t last = box.width - 1;
        keep(0, 0.5f * (row[std::min<std::size_t>(1, last)] - row[0]));
        for (std::size_t x = 1; x < last; ++x) keep(x, 0.5f * (row[x + 1] - row[x - 1]));
        if (last > 0) keep(last, 0.5f * (row[last] - row[last - 1]));
    }
}

void weigh(std::size_t width, float bins_per_eighth, Votes& votes) {
    for (std::size_t x = 0; x < width; ++x) {
        const float dx = votes.dx[x], dy = votes.dy[x];
        votes.size[x] = std::sqrt(dx * dx + dy * dy);
        votes.place[x] = eighths(dx, dy) * bins_per_eighth;
    }
}

}  // namespace

void oriented_gradients(const Pictures& pictures, Cells cells, std::size_t n_orientations, bool is_signed, float* out,
                        int n_threads) {
    const auto n_workers = static_cast<std::size_t>(std::max(n_threads, 1));
    const std::size_t channels = pictures.channels, area = pictures.height * pictures.width;
    std::vector<std::vector<float>> all_tones(n_workers, std::vector<float>(area * channels));
    std::vector<Pool> pools(n_workers, Pool(pictures, cells, n_orientations));
    std::vector<Votes> all_votes(n_workers, Votes(pictures.width));
    const std::size_t out_size = cells.rows * cells.columns * n_orientations;
    const float bins_per_eighth = static_cast<float>(n_orientations) / (is_signed ? 8.0f : 4.0f);
    const auto whole = static_cast<std::int32_t>(n_orientations);
    parallel_for(pictures.n, 16, n_threads, [&](std::size_t begin, std::size_t end, int worker) {
        float* tones = all_tones[static_cast<std::size_t>(worker)].data();
        Pool& pool = pools[static_cast<std::size_t>(worker)];
        Votes& votes = all_votes[static_cast<std::size_t>(worker)];
        for (std::size_t n = begin; n < end; ++n) {
            const Box box = box_of(pictures, n);
            for (std::size_t y = 0; y < box.height; ++y) {
                const float* x = pictures.x + (n * area + (box.top + y) * pictures.width + box.left) * channels;
                for (std::size_t channel = 0; channel < channels; ++channel) {
                    float* tone = tones + (channel * box.height + y) * box.width;
                    for (std::size_t i = 0; i < box.width; ++i) {
                        const float value = x[i * channels + channel] > 0.0f ? x[i * channels + channel] : 0.0f;
                        tone[i] = std::sqrt(value * std::sqrt(value));
                    }
                }
            }
            float* histograms = out + n * out_size;
            std::fill(histograms, histograms + out_size, 0.0f);
            for (std::size_t y = 0; y < box.height; ++y) {
                differentiate(tones, box, channels, y, votes);
                weigh(box.width, bins_per_eighth, votes);
                pool.begin_row();
                for (std::size_t x = 0; x < box.width; ++x) {
                    const float size = votes.size[x];
                    if (!(size > 0.0f && votes.place[x] >= 0.0f)) continue;  // infinite pixels have no direction
                    auto low = static_cast<std::int32_t>(votes.place[x]);
                    const float high_share = size * (votes.place[x] - static_cast<float>(low));
                    const float low_share = size - high_share;
                    while (low >= whole) low -= whole;
                    const std::int32_t high = low + 1 == whole ? 0 : low + 1;
                    const Place& place = pool.column(box.left + x);
                    float* cell = pool.cell(place.cell);
                    cell[low] += place.low * low_share;
                    cell[high] += place.low * high_share;
                    cell += n_orientations;
                    cell[low] += place.high * low_share;
                    cell[high] += place.high * high_share;
                }
                pool.end_row(box.top + y, histograms);
            }
        }
    });
}

void color_histograms(const Pictures& pictures, Cells cells, float* out, int n_threads) {
    constexpr std::size_t kCorners = 8;
    std::vector<Pool> pools(static_cast<std::size_t>(std::max(n_threads, 1)), Pool(pictures, cells, kCorners));
    const std::size_t out_size = cells.rows * cells.columns * kCorners;
    parallel_for(pictures.n, 16, n_threads, [&](std::size_t begin, std::size_t end, int worker) {
        Pool& pool = pools[static_cast<std::size_t>(worker)];
        for (std::size_t n = begin; n < end; ++n) {
            const Box box = box_of(pictures, n);
            float* histograms = out + n * out_size;
            std::fill(histograms, histograms + out_size, 0.0f);
            for (std::size_t y = box.top; y < box.top + box.height; ++y) {
                pool.begin_row();
                const float* pixel = pictures.x + ((n * pictures.height + y) * pictures.width + box.left) * 3;
                for (std::size_t x = box.left; x < box.left + box.width; ++x, pixel += 3) {
                    // from black to white along the edges of the color cube, largest channel first
                    float value[3];
                    for (std::size_t i = 0; i < 3; ++i) value[i] = std::min(std::max(pixel[i], 0.0f), 1.0f);
                    std::size_t first = 0, last = 2;
                    for (std::size_t i = 1; i < 3; ++i)
                        if (value[i] > value[first]) first = i;
                    for (std::size_t i = 2; i-- > 0;)
                        if (value[i] < value[last]) last = i;
                    if (first == last) last = (first + 1) % 3;  // gray: the order does not matter
                    const std::size_t middle = 3 - first - last;
                    const std::size_t one = std::size_t{1} << first, two = one | std::size_t{1} << middle;
                    const float shares[4] = {1.0f - value[first], value[first] - value[middle],
                                             value[middle] - value[last], value[last]};
                    const std::size_t corners[4] = {0, one, two, 7};
                    const Place& place = pool.column(x);
                    float* cell = pool.cell(place.cell);
                    for (std::size_t i = 0; i < 4; ++i) {
                        cell[corners[i]] += place.low * shares[i];
                        cell[kCorners + corners[i]] += place.high * shares[i];
                    }
                }
                pool.end_row(y, histograms);
            }
        }
    });
}

}  // namespace tnesi
