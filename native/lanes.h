// The innermost loops, compiled once per instruction set and chosen at run time.
//
// lanes.cpp is built several times with different flags; each build defines one table. Nothing else in native/ is
// compiled with wide instructions, so no inline function of the standard library can leak them into code that runs on
// older processors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tnesi {

// Rows of log W are padded with zeros to a multiple of this many floats; a "block" is this many columns.
constexpr std::size_t kBlock = 16;

// Number of scores per step of the exact search.
constexpr std::size_t kStep = 64;

// Number of fields whose weights are packed together, column by column, for sparse rows; the last tile is padded to a
// multiple of kTilePart.
constexpr std::size_t kTile = 64, kTilePart = 8;

// Class weights of unused fields decay; a field whose weights sum to less than this counts as unreached.
constexpr float kUnreached = 1e-30f;

struct Lanes {
    const char* name;
    // Number of points for which `dots` uses registers best.
    int n_points;

    // out[p * n_rows + r] = sum of points[p * stride + d] * rows[r][d] over the columns d of the given blocks.
    void (*dots)(const float* points, std::size_t stride, int n_points, const float* const* rows, int n_rows,
                 const std::int32_t* blocks, int n_blocks, float* out);
    // out[i] = sum over j, in this order, of values[j] * tile[places[j] * width + i] for i < width, a multiple of
    // kTilePart.
    void (*tile_dots)(const float* values, const std::int32_t* places, std::size_t n, const float* tile,
                      std::size_t width, float* out);
    // out[i] = log(in[i]) for positive normal numbers; returns the sum.
    double (*log)(const float* in, std::size_t n, float* out);
    // sum over i of lgamma(scale * x[i] + 2) = log y! for y = scale * x + 1.
    double (*log_factorials)(const float* x, std::size_t n, float scale);
    // s = softmax(logits), logits in descending order; returns log sum exp.
    float (*softmax)(const float* logits, std::size_t n, float* s);
    // out[j] = the largest base[i] + scale * raw[i] of the j-th kStep values.
    void (*block_largest)(const float* raw, const float* base, float scale, std::size_t n, float* out);
    // sum[d] += sum over j of factor[j] * x[j][d].
    void (*add_rows_u8)(const std::uint8_t* const* x, const float* factor, std::size_t n_rows, std::size_t d,
                        double* sum);
    void (*add_rows_f32)(const float* const* x, const float* factor, std::size_t n_rows, std::size_t d, double* sum);
    // row[d] += share * (1 - row[d]) + sum over j of factor[j] * x[j][d]; log_row[d] = log row[d].
    // Returns the sum of log_row; *total is the sum of row.
    double (*pull_u8)(const std::uint8_t* const* x, const float* factor, std::size_t n_rows, std::size_t d, float share,
                      float* row, float* log_row, double* total);
    double (*pull_f32)(const float* const* x, const float* factor, std::size_t n_rows, std::size_t d, float share,
                       float* row, float* log_row, double* total);
    void (*widen_u8)(const std::uint8_t* x, std::size_t n, float* out);
    // t[k] = sum over i of s[i] * r[i][k] * scale[k] / (sum over k of r[i][k] * scale[k]); K padded to kBlock.
    // Unreached fields (sum at most kUnreached) contribute nothing.
    void (*class_vote)(const float* const* r, const float* s, std::size_t n, const float* scale, std::size_t k_padded,
                       float* t);
    // argmax t if best - second best > threshold (strictly), else -1; t is not negative.
    std::int32_t (*clear_winner)(const float* t, std::size_t k_padded, float threshold);
};

// Tables that this processor supports, the widest last; the baseline is always available.
const Lanes* const* available_lanes(int* n);
// The table in use: the widest, unless use_lanes selected another.
const Lanes& lanes();
bool use_lanes(const char* name);

}  // namespace tnesi
