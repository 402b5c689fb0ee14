// The hot loops of tnesi, as pure functions over arrays that the caller owns.
//
// Symbols, shapes and equations are those of Forster & Luecke (2017):
//   x      N x D    raw input, non-negative: uint8, float32, or sparse float32
//   scale  N        (A - D) / sum(x), so that y = scale * x + 1 (eq. 5) and sum(y) = A
//   W      C x D    first-layer weights, one field per row
//   log_w  C x Dp   log W, rows padded with zeros to Dp = a multiple of kBlock
//   base   B x C    sum_d log W_cd, plus the log prior of field c in a recurrent network;
//                   point n uses row base_row[n] (row 0 if base_row is null)
//   ids, s N x C'   the fields K^(n) of a point in descending order of I_c, and their activities (eqs. 18-20);
//                   an id of -1 is an empty place, with activity 0
//   r      C x Kp   second-layer weights, transposed, K padded with zeros to a multiple of kBlock
//
// I_c = sum_d y_d log W_cd = base_c + scale * sum_d x_d log W_cd, which skips zeros of x.
// Each kernel has a NumPy reference in src/tnesi/kernels/reference.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tnesi {

template <typename T>
struct Rows {
    const T* x;
    const float* scale;  // null for kernels that do not use it
    std::size_t n, d;
};

// Row n has values[j] in column indices[j] for indptr[n] <= j < indptr[n + 1], columns in ascending order, each once.
struct SparseRows {
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* values;
    const float* scale;
    std::size_t n, d;
};

struct Fields {
    const float* log_w;
    const float* base;
    const std::int32_t* base_row;  // or null
    std::size_t c, d_padded;
};

struct Activities {
    std::int32_t* ids;
    float* s;
    float* log_sum;  // N, log of the sum over K^(n) of exp I_c
    std::size_t n, c_prime;
};

// K^(n) and s from all inputs. IN raw (N x C) = x . log W.  OUT activities.
void select_top(const float* raw, const float* scale, const Fields& fields, Activities out, int n_threads);

// x . log W for all fields: of a mini-batch of dense points, or of any number of sparse ones.  OUT out (N x C).
template <typename T>
void products(const Rows<T>& rows, const float* log_w, std::size_t c, std::size_t d_padded, float* out, int n_threads);
void products(const SparseRows& rows, const float* log_w, std::size_t c, std::size_t d_padded, float* out,
              int n_threads);

// K^(n) and s of sparse points from all fields, without the N x C inputs.  OUT activities.
void search_all(const SparseRows& rows, const Fields& fields, Activities out, int n_threads);

// K^(n) and s from a few fields: those of lists[group[n]] (n_groups x g, -1 = empty) and those already in out.ids, so
// that K^(n) never gets worse.  IN/OUT activities.
// Here and below, R is Rows<std::uint8_t>, Rows<float> or SparseRows.
template <typename R>
void search_groups(const R& rows, const Fields& fields, const std::int32_t* group, const std::int32_t* lists,
                   std::size_t n_groups, std::size_t g, Activities out, int n_threads);

// For each field the g fields that share most points with it, itself first.  OUT lists (C x g), -1 = empty.
void build_lists(const std::int32_t* ids, std::size_t n, std::size_t c_prime, std::size_t c, std::size_t g,
                 std::int32_t* lists, int n_threads);

// A prior that adds `rows` rows of 1 + above (D) to every field; null means no prior.
struct Prior {
    const float* above;
    double rows;
};

// Powers of two to whose multiples the sums and masses of a part of the rows are rounded (0: no rounding). This makes
// the sum over all parts exact, so that it does not depend on their order or size.
struct Units {
    double sums, mass;
};

// M-step: W_c = sum_n s_nc y_n / sum_n s_nc; a field without mass keeps its weights.
// IN activities, weight (N or null), old_w (C x D).  OUT w, log_w, log_w_sum (C), mass (C, without the prior).
template <typename R>
void m_step(const R& rows, const std::int32_t* ids, const float* s, const float* weight, std::size_t c_prime,
            Units units, const float* old_w, Prior prior, float* w, float* log_w, float* log_w_sum, double* mass,
            std::size_t c, std::size_t d_padded, int n_threads);

// The M-step in two stages, for rows in several parts. Stage 1 adds sums of s_nc scale_n x_n (C x D) and of s_nc (C).
// IN/OUT sums, mass.
template <typename R>
void add_statistics(const R& rows, const std::int32_t* ids, const float* s, const float* weight, std::size_t c_prime,
                    Units units, double* sums, double* mass, std::size_t c, int n_threads);

// Stage 2 computes the weights.  IN sums, mass, old_w.  OUT w, log_w, log_w_sum.
void finish_m_step(const double* sums, const double* mass, const float* old_w, Prior prior, float* w, float* log_w,
                   float* log_w_sum, std::size_t c, std::size_t d, std::size_t d_padded, int n_threads);

// Hebbian step: W_c += rate * sum_n s_nc (y_n - W_c) (eq. 9) for a mini-batch, but not beyond its mean.
// IN/OUT w, log_w, log_w_sum, w_sum (C, sum_d W_cd).
template <typename R>
void hebbian_step(const R& rows, const std::int32_t* ids, const float* s, const float* weight, std::size_t c_prime,
                  float rate, float* w, float* log_w, float* log_w_sum, float* w_sum, std::size_t c,
                  std::size_t d_padded, int n_threads);

// The first layer as the online rule changes it: W (C x D), log W, sum_d log W_cd and sum_d W_cd.
struct Weights {
    float* w;
    float* log_w;
    float* log_w_sum;
    float* w_sum;
    std::size_t c, d_padded;
};

// What a partial E-step looks at besides the fields in K^(n): lists[c] (C x g) of the best field c of a point, and
// extra[i] (n_order x n_extra) of the i-th point in the order. -1 = empty.
struct Looks {
    const std::int32_t* lists;
    std::size_t g;
    const std::int32_t* extra;
    std::size_t n_extra;
};

// Activities below this do not change W: the step is less than the spacing of floats.
constexpr float kTooFaint = 1e-8f;

// Online learning with partial E-steps: mini-batches of the points in `order` (each at most once), in which K^(n) only
// improves; then a Hebbian step with the activities before it.
// IN/OUT activities (N), weights.  OUT log_joint (N): log of the sum over K^(n) of exp(I_c - sum_d W_cd + row_sum).
template <typename R>
void learn_online(const R& rows, const float* weight, const std::int64_t* order, std::size_t n_order, std::size_t batch,
                  float rate, float row_sum, Looks looks, Weights fields, Activities out, float* log_joint,
                  int n_threads);

struct ClassLayer {
    float* r;      // C x Kp; the weights are R_kc = r[c][k] * scale[k]
    float* scale;  // Kp
    std::size_t c, k, k_padded;
};

// One epoch of the second layer on stored activities (eqs. 8, 10), in mini-batches in the given order.
// A point with label >= 0 keeps its label. Another point gets the hard label argmax t if self_label is set and its
// margin > threshold, and is skipped otherwise.  Class k votes with sizes[k] R_k, or with R_k if sizes is null.
// IN/OUT layer.  OUT taught (N): the label used, or -1.
void learn_classes(const std::int64_t* indptr, const std::int32_t* indices, const float* values,
                   const std::int32_t* label, const float* weight, const std::int64_t* order, std::size_t n_order,
                   std::size_t batch, double rate, float threshold, bool self_label, const float* sizes,
                   ClassLayer layer, std::int32_t* taught, int n_threads);

// A sparse C x C matrix M: row c has values[j] in column indices[j] for indptr[c] <= j < indptr[c + 1].
struct Graph {
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* values;
    std::size_t c;
};

// n polynomials of degree n_terms - 1 in M, as coefficients (n x n_terms) of the Chebyshev polynomials of 2 M - I.
struct Series {
    const float* coefficients;
    std::size_t n, n_terms;
};

// out[i] = sum over j of coefficients[i][j] T_j(2 M - I) source, for eigenvalues of M in [0, 1]. Sums are in float32,
// in the order of the entries of a row.  IN source (C x Kp).  OUT out (n x C x Kp).
void spread(const Graph& graph, const float* source, const Series& series, float* out, std::size_t k_padded,
            int n_threads);

// A 64-bit hash of the proportions in each row: rows that are equal after normalization have equal hashes, for all
// types of rows.
template <typename R>
void row_hashes(const R& rows, std::uint64_t seed, std::uint64_t* out, int n_threads);

// out[n] = sum_d log(y_nd!)
template <typename R>
void log_factorials(const R& rows, double* out, int n_threads);

// N x H x W x channels, values from 0 (black) to about 1 (white). Picture n fills boxes[n] = (top, left, height, width)
// of its canvas, or all of it (null); the rest is ignored.
struct Pictures {
    const float* x;
    const std::int32_t* boxes;
    std::size_t n, height, width, channels;
};

// The grid that covers a canvas. A pixel contributes to the two nearest rows and columns of cells, with linear weights.
struct Cells {
    std::size_t rows, columns;
};

// Histograms of oriented gradients: central differences of x^(3/4) (edges replicated), in the channel where they are
// largest, vote with their magnitude for the two nearest orientations, with linear weights. Orientation o is the
// angle o / n_orientations of a turn (0: brighter to the right, a quarter: brighter downward). Unless is_signed,
// opposite directions are the same orientation, and angles are fractions of half a turn.  OUT out (N x cells x
// n_orientations).
void oriented_gradients(const Pictures& pictures, Cells cells, std::size_t n_orientations, bool is_signed, float* out,
                        int n_threads);

// Histograms of colors (three channels): a pixel is a mixture of at most four of the corners of the color cube.
// Corner 0 is black, bit 0 red, bit 1 green, bit 2 blue, 7 white.  OUT out (N x cells x 8).
void color_histograms(const Pictures& pictures, Cells cells, float* out, int n_threads);

}  // namespace tnesi
