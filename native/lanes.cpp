// The table of innermost loops for one instruction set (see lanes.h): TNESI_LANES is its name, TNESI_WIDTH its width in
// floats. Everything else is in an unnamed namespace, so that builds do not share symbols.
#include "lanes.h"

#include <cstring>

#if TNESI_WIDTH > 4
#include <immintrin.h>
#endif

namespace tnesi {
namespace {

constexpr std::size_t kWidth = TNESI_WIDTH;
typedef float V __attribute__((vector_size(TNESI_WIDTH * 4)));
typedef std::int32_t VI __attribute__((vector_size(TNESI_WIDTH * 4)));
typedef float V8 __attribute__((vector_size(32)));
typedef float V4 __attribute__((vector_size(16)));

template <typename Vector = V>
inline Vector load(const float* p) {
    Vector v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
inline void store(float* p, V v) { std::memcpy(p, &v, sizeof v); }
inline V all(float x) { return x - V{}; }
inline V as_float(VI v) {
    V out;
    std::memcpy(&out, &v, sizeof out);
    return out;
}
inline VI as_int(V v) {
    VI out;
    std::memcpy(&out, &v, sizeof out);
    return out;
}

// Reduces a vector to four partial sums.
inline V4 quarter(V v) {
#if TNESI_WIDTH == 16
    const V8 h = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(h, h, 0, 1, 2, 3) + __builtin_shufflevector(h, h, 4, 5, 6, 7);
#elif TNESI_WIDTH == 8
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
#else
    return v;
#endif
}
inline float max_lanes(V v) {
    float top[kWidth];
    store(top, v);
    V4 best;
    std::memcpy(&best, top, sizeof best);
    for (std::size_t i = 4; i < kWidth; i += 4) {
        V4 other;
        std::memcpy(&other, top + i, sizeof other);
        best = other > best ? other : best;
    }
    const float a = best[0] > best[1] ? best[0] : best[1], b = best[2] > best[3] ? best[2] : best[3];
    return a > b ? a : b;
}

// Sums in the same order as sum_four, so that a product does not depend on the number of rows multiplied together.
inline float sum_lanes(V v) {
    const V4 q = quarter(v);
    return (q[0] + q[1]) + (q[2] + q[3]);
}
inline V4 sum_four(V a, V b, V c, V d) {
    const V4 qa = quarter(a), qb = quarter(b), qc = quarter(c), qd = quarter(d);
    const V4 ab =
        __builtin_shufflevector(qa, qb, 0, 4, 2, 6) + __builtin_shufflevector(qa, qb, 1, 5, 3, 7);  // a01 b01 a23 b23
    const V4 cd = __builtin_shufflevector(qc, qd, 0, 4, 2, 6) + __builtin_shufflevector(qc, qd, 1, 5, 3, 7);
    return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

// log x = e log 2 + log m with m in [sqrt(1/2), sqrt(2)), the logarithm of m by the polynomial of Cephes' logf.
inline V log_v(V x) {
    const VI bits = as_int(x) - 0x3f3504f3;
    const V e = __builtin_convertvector(bits >> 23, V);
    const V m = as_float((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
    V p = all(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const V square = m * m;
    return m + (p * m * square - 0.5f * square) + e * 0.693147180559945f;
}

// exp x for x <= 0 as 2^n exp r, |r| <= log(2) / 2; below the range of normal numbers it is 0.
inline V exp_v(V x) {
    const VI tiny = x < -87.0f;
    x = tiny ? all(0.0f) : x;
    const VI n = __builtin_convertvector(x * 1.44269504088896f - 0.5f, VI);
    const V nf = __builtin_convertvector(n, V);
    const V r = x - nf * 0.693359375f + nf * 2.12194440e-4f;
    V p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const V scaled = (p * r * r + r + 1.0f) * as_float((n + 127) << 23);
    return tiny ? all(0.0f) : scaled;
}

// lgamma z for z >= 2: Stirling's series at z + 4.
inline V lgamma_v(V z) {
    const V shift = z * (z + 1.0f) * (z + 2.0f) * (z + 3.0f);
    const V w = z + 4.0f;
    const V inv = 1.0f / w;
    const V series = inv * (0.0833333333f - inv * inv * (0.00277777778f - inv * inv * 0.000793650794f));
    return (w - 0.5f) * log_v(w) - w + 0.918938533f + series - log_v(shift);
}

// The last, partial vector is padded with `fill`, which must be valid input of the operation.
template <typename F>
inline void for_lanes(const float* in, std::size_t n, float fill, F&& f) {
    std::size_t i = 0;
    for (; i + kWidth <= n; i += kWidth) f(load(in + i), i, kWidth);
    if (i < n) {
        float rest[kWidth];
        for (std::size_t j = 0; j < kWidth; ++j) rest[j] = i + j < n ? in[i + j] : fill;
        f(load(rest), i, n - i);
    }
}

inline void store_part(float* out, V v, std::size_t n) { std::memcpy(out, &v, n * sizeof(float)); }

template <int P, int R>
inline void dots_tile(const float* points, std::size_t stride, const float* const* rows, const std::int32_t* blocks,
                      int n_blocks, int n_rows, float* out) {
    V sum[P][R];
    for (int p = 0; p < P; ++p)
        for (int r = 0; r < R; ++r) sum[p][r] = V{};
    for (int b = 0; b < n_blocks; ++b) {
        for (std::size_t lane = 0; lane < kBlock; lane += kWidth) {
            const std::size_t at = static_cast<std::size_t>(blocks[b]) * kBlock + lane;
            V row[R];
            for (int r = 0; r < R; ++r) row[r] = load(rows[r] + at);
            for (int p = 0; p < P; ++p) {
                const V x = load(points + static_cast<std::size_t>(p) * stride + at);
                for (int r = 0; r < R; ++r) sum[p][r] += x * row[r];
            }
        }
    }
    for (int p = 0; p < P; ++p) {
        if constexpr (R == 4) {
            const V4 four = sum_four(sum[p][0], sum[p][1], sum[p][2], sum[p][3]);
            std::memcpy(out + p * n_rows, &four, sizeof four);
        } else {
            for (int r = 0; r < R; ++r) out[p * n_rows + r] = sum_lanes(sum[p][r]);
        }
    }
}

template <int P>
void dots_points(const float* points, std::size_t stride, const float* const* rows, int n_rows,
                 const std::int32_t* blocks, int n_blocks, float* out) {
    int r = 0;
    for (; r + 4 <= n_rows; r += 4) dots_tile<P, 4>(points, stride, rows + r, blocks, n_blocks, n_rows, out + r);
    for (; r < n_rows; ++r) dots_tile<P, 1>(points, stride, rows + r, blocks, n_blocks, n_rows, out + r);
}

#if TNESI_WIDTH == 16
constexpr int kPoints = 6;  // 6 x 4 sums + 4 rows in 32 registers
#else
constexpr int kPoints = 3;  // 3 x 4 sums + 4 rows in 16 registers
#endif

void dots(const float* points, std::size_t stride, int n_points, const float* const* rows, int n_rows,
          const std::int32_t* blocks, int n_blocks, float* out) {
    for (int done = 0; done < n_points;) {
        const int now = n_points - done < kPoints ? n_points - done : kPoints;
        const float* p = points + static_cast<std::size_t>(done) * stride;
        float* o = out + static_cast<std::size_t>(done) * static_cast<std::size_t>(n_rows);
        switch (now) {
            case 1: dots_points<1>(p, stride, rows, n_rows, blocks, n_blocks, o); break;
            case 2: dots_points<2>(p, stride, rows, n_rows, blocks, n_blocks, o); break;
            case 3: dots_points<3>(p, stride, rows, n_rows, blocks, n_blocks, o); break;
#if TNESI_WIDTH == 16
            case 4: dots_points<4>(p, stride, rows, n_rows, blocks, n_blocks, o); break;
            case 5: dots_points<5>(p, stride, rows, n_rows, blocks, n_blocks, o); break;
            default: dots_points<6>(p, stride, rows, n_rows, blocks, n_blocks, o); break;
#endif
        }
        done += now;
    }
}

// Sums of N vectors of fields stay in registers for all values of a point.
template <typename Vector, std::size_t N>
inline void tile_dots_of(const float* values, const std::int32_t* places, std::size_t n, const float* tile,
                         std::size_t width, float* out) {
    Vector sum[N] = {};
    for (std::size_t j = 0; j < n; ++j) {
        const float* row = tile + static_cast<std::size_t>(places[j]) * width;
        for (std::size_t v = 0; v < N; ++v)
            sum[v] += load<Vector>(row + v * sizeof(Vector) / sizeof(float)) * values[j];
    }
    std::memcpy(out, sum, sizeof sum);
}

void tile_dots(const float* values, const std::int32_t* places, std::size_t n, const float* tile, std::size_t width,
               float* out) {
    std::size_t at = 0;
#if TNESI_WIDTH > 4  // the baseline has too few registers
    for (; at + 64 <= width; at += 64) tile_dots_of<V, 64 / kWidth>(values, places, n, tile + at, width, out + at);
#endif
    for (; at + 32 <= width; at += 32) tile_dots_of<V, 32 / kWidth>(values, places, n, tile + at, width, out + at);
    if (width - at == 24) return tile_dots_of<V8, 3>(values, places, n, tile + at, width, out + at);
    if (width - at == 16) return tile_dots_of<V, 16 / kWidth>(values, places, n, tile + at, width, out + at);
    if (width - at == 8) return tile_dots_of<V8, 1>(values, places, n, tile + at, width, out + at);
}

double log_all(const float* in, std::size_t n, float* out) {
    double total = 0.0;
    for_lanes(in, n, 1.0f, [&](V x, std::size_t i, std::size_t m) {
        const V y = log_v(x);
        store_part(out + i, y, m);
        total += static_cast<double>(sum_lanes(y));
    });
    return total;
}

double log_factorials(const float* x, std::size_t n, float scale) {
    double total = 0.0;
    for_lanes(x, n, 0.0f, [&](V v, std::size_t, std::size_t) {
        bool blank = true;  // log 1! = 0, and most pixels of an image are blank
        for (std::size_t i = 0; i < kWidth; ++i) blank &= v[i] == 0.0f;
        if (blank) return;
        const V value = lgamma_v(v * scale + 2.0f);
        total += static_cast<double>(sum_lanes(v == 0.0f ? all(0.0f) : value));
    });
    return total;
}

float softmax(const float* logits, std::size_t n, float* s) {
    const float top = logits[0];
    float total = 0.0f;
    for_lanes(logits, n, -3.0e38f, [&](V v, std::size_t i, std::size_t m) {
        const V e = exp_v(v - top);
        store_part(s + i, e, m);
        total += sum_lanes(e);
    });
    const float inverse = 1.0f / total;
    for (std::size_t i = 0; i < n; ++i) s[i] *= inverse;
    float log_total;
    log_all(&total, 1, &log_total);
    return top + log_total;
}

void block_largest(const float* raw, const float* base, float scale, std::size_t n, float* out) {
    for (std::size_t at = 0; at < n; at += kStep) {
        const std::size_t m = n - at < kStep ? n - at : kStep;
        V top = all(-3.0e38f);
        std::size_t i = at;
        for (; i + kWidth <= at + m; i += kWidth) {
            const V v = load(base + i) + load(raw + i) * scale;
            top = v > top ? v : top;
        }
        float best = max_lanes(top);
        for (; i < at + m; ++i) {
            const float v = base[i] + raw[i] * scale;
            best = v > best ? v : best;
        }
        *out++ = best;
    }
}

// Converts bytes to floats; GCC would compile __builtin_convertvector to scalar code here.
inline V load_wide(const std::uint8_t* p) {
#if TNESI_WIDTH == 16
    return (V)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif TNESI_WIDTH == 8
    return (V)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
    return V{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]), static_cast<float>(p[3])};
#endif
}
inline V load_wide(const float* p) { return load(p); }

// Sums of a few columns stay in registers for all rows. Float sums are short, since the caller passes few rows at a
// time; the long sum is in double.
template <typename T>
inline void add_rows(const T* const* x, const float* factor, std::size_t n_rows, std::size_t d, double* sum) {
    constexpr std::size_t kSpan = 8 * kWidth;
    std::size_t at = 0;
    for (; at + kSpan <= d; at += kSpan) {
        V part[8] = {};
        for (std::size_t j = 0; j < n_rows; ++j)
            for (std::size_t v = 0; v < 8; ++v) part[v] += load_wide(x[j] + at + v * kWidth) * factor[j];
        for (std::size_t v = 0; v < 8; ++v)
            for (std::size_t i = 0; i < kWidth; ++i) sum[at + v * kWidth + i] += static_cast<double>(part[v][i]);
    }
    for (; at + kWidth <= d; at += kWidth) {
        V part = {};
        for (std::size_t j = 0; j < n_rows; ++j) part += load_wide(x[j] + at) * factor[j];
        for (std::size_t i = 0; i < kWidth; ++i) sum[at + i] += static_cast<double>(part[i]);
    }
    for (; at < d; ++at) {
        float part = 0.0f;
        for (std::size_t j = 0; j < n_rows; ++j) part += static_cast<float>(x[j][at]) * factor[j];
        sum[at] += static_cast<double>(part);
    }
}

void add_rows_u8(const std::uint8_t* const* x, const float* factor, std::size_t n_rows, std::size_t d, double* sum) {
    add_rows(x, factor, n_rows, d, sum);
}
void add_rows_f32(const float* const* x, const float* factor, std::size_t n_rows, std::size_t d, double* sum) {
    add_rows(x, factor, n_rows, d, sum);
}

// Sums of a few vectors are in float, the long ones in double.
template <typename T>
inline double pull(const T* const* x, const float* factor, std::size_t n_rows, std::size_t d, float share, float* row,
                   float* log_row, double* total) {
    constexpr std::size_t kSpan = 8 * kWidth;
    double logs = 0.0, sum = 0.0;
    std::size_t at = 0;
    while (at + kWidth <= d) {
        const std::size_t end = d - at < kSpan ? d - d % kWidth : at + kSpan;
        V some_logs = {}, some = {};
        for (; at < end; at += kWidth) {
            V v = load(row + at);
            V step = (1.0f - v) * share;
            for (std::size_t j = 0; j < n_rows; ++j) step += load_wide(x[j] + at) * factor[j];
            v += step;
            const V log_of = log_v(v);
            store(row + at, v);
            store(log_row + at, log_of);
            some += v;
            some_logs += log_of;
        }
        logs += static_cast<double>(sum_lanes(some_logs));
        sum += static_cast<double>(sum_lanes(some));
    }
    if (at < d) {
        V v = all(1.0f);
        for (std::size_t i = 0; at + i < d; ++i) {
            float step = (1.0f - row[at + i]) * share;
            for (std::size_t j = 0; j < n_rows; ++j) step += static_cast<float>(x[j][at + i]) * factor[j];
            row[at + i] += step;
            v[i] = row[at + i];
            sum += static_cast<double>(row[at + i]);
        }
        const V log_of = log_v(v);
        store_part(log_row + at, log_of, d - at);
        logs += static_cast<double>(sum_lanes(log_of));
    }
    *total = sum;
    return logs;
}

double pull_u8(const std::uint8_t* const* x, const float* factor, std::size_t n_rows, std::size_t d, float share,
               float* row, float* log_row, double* total) {
    return pull(x, factor, n_rows, d, share, row, log_row, total);
}
double pull_f32(const float* const* x, const float* factor, std::size_t n_rows, std::size_t d, float share, float* row,
                float* log_row, double* total) {
    return pull(x, factor, n_rows, d, share, row, log_row, total);
}

void widen_u8(const std::uint8_t* x, std::size_t n, float* out) {
    std::size_t i = 0;
    for (; i + kWidth <= n; i += kWidth) store(out + i, load_wide(x + i));
    for (; i < n; ++i) out[i] = static_cast<float>(x[i]);
}

// K is the padded number of classes if known at compile time (usually one block), else 0.
template <std::size_t K>
void class_vote_of(const float* const* r, const float* s, std::size_t n, const float* scale, std::size_t k_given,
                   float* t) {
    const std::size_t k_padded = K > 0 ? K : k_given;
    constexpr std::size_t kAtOnce = 64;
    float reached[kAtOnce], share[kAtOnce];
    for (std::size_t k = 0; k < k_padded; ++k) t[k] = 0.0f;
    for (std::size_t at = 0; at < n; at += kAtOnce) {
        const std::size_t m = n - at < kAtOnce ? n - at : kAtOnce;
        for (std::size_t i = 0; i < m; i += kWidth) store(reached + i, V{});
        for (std::size_t i = 0; i < m; i += 4) {
            V total[4] = {};
            for (std::size_t j = 0; j < 4; ++j) {
                const float* row = r[at + (i + j < m ? i + j : m - 1)];
                for (std::size_t k = 0; k < k_padded; k += kWidth) total[j] += load(row + k) * load(scale + k);
            }
            const V4 four = sum_four(total[0], total[1], total[2], total[3]);
            std::memcpy(reached + i, &four, sizeof four);
        }
        for_lanes(s + at, m, 0.0f, [&](V active, std::size_t i, std::size_t) {
            const V sum = load(reached + i);
            const VI real = sum > kUnreached;
            store(share + i, real ? active / (real ? sum : all(1.0f)) : all(0.0f));
        });
        for (std::size_t k = 0; k < k_padded; k += kWidth) {
            V sum[4] = {};  // four independent chains hide the latency of additions
            std::size_t i = 0;
            for (; i + 4 <= m; i += 4)
                for (std::size_t j = 0; j < 4; ++j) sum[j] += load(r[at + i + j] + k) * share[i + j];
            for (; i < m; ++i) sum[0] += load(r[at + i] + k) * share[i];
            store(t + k, load(t + k) + ((sum[0] + sum[1]) + (sum[2] + sum[3])) * load(scale + k));
        }
    }
}

void class_vote(const float* const* r, const float* s, std::size_t n, const float* scale, std::size_t k_padded,
                float* t) {
    if (k_padded == kBlock)
        class_vote_of<kBlock>(r, s, n, scale, k_padded, t);
    else
        class_vote_of<0>(r, s, n, scale, k_padded, t);
}

// t is padded with zeros, which do not affect the result.
template <typename F>
inline float largest(const float* t, std::size_t k_padded, F&& seen) {
    V top = all(0.0f);
    for (std::size_t k = 0; k < k_padded; k += kWidth) {
        const V v = seen(load(t + k), k);
        top = v > top ? v : top;
    }
    return max_lanes(top);
}

std::int32_t clear_winner(const float* t, std::size_t k_padded, float threshold) {
    const float best = largest(t, k_padded, [](V v, std::size_t) { return v; });
    std::size_t which = 0;
    while (which + 1 < k_padded && t[which] != best) ++which;
    const float second = largest(t, k_padded, [&](V v, std::size_t k) {
        VI place;
        for (std::size_t i = 0; i < kWidth; ++i) place[i] = static_cast<std::int32_t>(i);
        return place == static_cast<std::int32_t>(which) - static_cast<std::int32_t>(k) ? all(0.0f) : v;
    });
    return best - second > threshold ? static_cast<std::int32_t>(which) : -1;
}

}  // namespace

extern const Lanes TNESI_LANES;
const Lanes TNESI_LANES = {TNESI_NAME,     kPoints,  dots,          tile_dots,   log_all,
                           log_factorials, softmax,  block_largest, add_rows_u8, add_rows_f32,
                           pull_u8,        pull_f32, widen_u8,      class_vote,  clear_winner};

}  // namespace tnesi
