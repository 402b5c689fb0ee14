// Python bindings of the kernels, which check shapes and release the GIL. nanobind checks types without conversion,
// since output to a converted copy would be lost.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "kernels.h"
#include "lanes.h"

namespace nb = nanobind;
using nb::arg;

namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// indptr, indices, values.
using Sparse = std::tuple<Vector<const std::int64_t>, Vector<const std::int32_t>, Vector<const float>>;
template <typename T>
using Matrices = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Arrays = nb::ndarray<T, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
using Ids = Matrix<std::int32_t>;
using OptionalWeight = std::optional<Vector<const float>>;
using OptionalIndex = std::optional<Vector<const std::int32_t>>;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("kernel arguments do not fit: ") + what);
}

// Returns whether all values are in [0, bound), without branches, so that it vectorizes.
template <typename T>
bool all_below(const Vector<const T>& values, std::size_t bound) {
    const T limit = static_cast<T>(std::min<std::size_t>(bound, std::numeric_limits<T>::max()));
    const T* value = values.data();
    T outside = 0;
    for (std::size_t i = 0; i < values.shape(0); ++i) outside |= static_cast<T>((value[i] < 0) | (value[i] >= limit));
    return outside == 0;
}

tnesi::Fields fields_of(const Matrix<const float>* log_w, std::size_t d_padded, const Matrix<const float>& base,
                        const OptionalIndex& base_row, std::size_t n) {
    require(base.shape(0) >= 1, "base has at least one row");
    if (log_w) require(log_w->shape(0) == base.shape(1), "log_w and base have the same number of fields");
    if (base_row) {
        require(base_row->shape(0) == n, "one base_row for each point");
        require(all_below(*base_row, base.shape(0)), "base_row names a row of base");
    }
    return {log_w ? log_w->data() : nullptr, base.data(), base_row ? base_row->data() : nullptr, base.shape(1),
            d_padded};
}

tnesi::Activities activities_of(const Ids& ids, const Matrix<float>& s, const Vector<float>& log_sum, std::size_t n) {
    require(ids.shape(0) == n && s.shape(0) == n && log_sum.shape(0) == n, "activities for each point");
    require(ids.shape(1) == s.shape(1) && ids.shape(1) >= 1, "ids and s of the same width");
    return {ids.data(), s.data(), log_sum.data(), n, ids.shape(1)};
}

void require_padded(std::size_t d, std::size_t d_padded) {
    require(d_padded >= d && d_padded % tnesi::kBlock == 0, "log_w padded to a multiple of 16 columns");
}

const float* weight_of(const OptionalWeight& weight, std::size_t n) {
    if (!weight) return nullptr;
    require(weight->shape(0) == n, "one weight for each point");
    return weight->data();
}

// Sparse rows: row i has values[j] in column indices[j] < n_columns for indptr[i] <= j < indptr[i + 1].
void require_rows(const Vector<const std::int64_t>& indptr, const Vector<const std::int32_t>& indices,
                  const Vector<const float>& values, std::size_t n_rows, std::size_t n_columns) {
    require(indptr.shape(0) == n_rows + 1, "indptr for each row");
    require(indices.shape(0) == values.shape(0), "an index for each value");
    const std::int64_t* start = indptr.data();
    require(start[0] == 0 && start[n_rows] == static_cast<std::int64_t>(values.shape(0)), "indptr spans the values");
    require(std::is_sorted(start, start + n_rows + 1), "indptr ascends");
    require(all_below(indices, n_columns), "indices name columns");
}

// Rows of `x`, dense or sparse; n_columns is only used for sparse rows.
template <typename T>
tnesi::Rows<T> rows_of(const Matrix<const T>& x, std::size_t, const float* scale = nullptr) {
    return {x.data(), scale, x.shape(0), x.shape(1)};
}
tnesi::SparseRows rows_of(const Sparse& x, std::size_t n_columns, const float* scale = nullptr) {
    const auto& [indptr, indices, values] = x;
    require(indptr.shape(0) >= 1, "indptr of at least one number");
    require_rows(indptr, indices, values, indptr.shape(0) - 1, n_columns);
    return {indptr.data(), indices.data(), values.data(), scale, indptr.shape(0) - 1, n_columns};
}
template <typename X>
auto rows_of(const X& x, std::size_t n_columns, const Vector<const float>& scale) {
    const auto rows = rows_of(x, n_columns, scale.data());
    require(scale.shape(0) == rows.n, "one scale for each row of x");
    return rows;
}

void select_top(Matrix<const float> raw, Vector<const float> scale, Matrix<const float> base, OptionalIndex base_row,
                Ids ids, Matrix<float> s, Vector<float> log_sum, int n_threads) {
    const std::size_t n = raw.shape(0);
    require(scale.shape(0) == n && base.shape(1) == raw.shape(1), "raw is points x fields");
    const tnesi::Fields fields = fields_of(nullptr, 0, base, base_row, n);
    const tnesi::Activities out = activities_of(ids, s, log_sum, n);
    nb::gil_scoped_release release;
    tnesi::select_top(raw.data(), scale.data(), fields, out, n_threads);
}

template <typename X>
void search_groups(X x, Vector<const float> scale, Matrix<const float> log_w, Matrix<const float> base,
                   OptionalIndex base_row, Vector<const std::int32_t> group, Matrix<const std::int32_t> lists, Ids ids,
                   Matrix<float> s, Vector<float> log_sum, int n_threads) {
    const auto rows = rows_of(x, log_w.shape(1), scale);
    require_padded(rows.d, log_w.shape(1));
    require(group.shape(0) == rows.n, "one group for each point");
    const tnesi::Fields fields = fields_of(&log_w, log_w.shape(1), base, base_row, rows.n);
    const tnesi::Activities out = activities_of(ids, s, log_sum, rows.n);
    require(all_below(group, lists.shape(0)), "group names a row of lists");
    nb::gil_scoped_release release;
    tnesi::search_groups(rows, fields, group.data(), lists.data(), lists.shape(0), lists.shape(1), out, n_threads);
}

void search_all(Sparse x, Vector<const float> scale, Matrix<const float> log_w, Matrix<const float> base,
                OptionalIndex base_row, Ids ids, Matrix<float> s, Vector<float> log_sum, int n_threads) {
    const auto rows = rows_of(x, log_w.shape(1), scale);
    require_padded(rows.d, log_w.shape(1));
    const tnesi::Fields fields = fields_of(&log_w, log_w.shape(1), base, base_row, rows.n);
    const tnesi::Activities out = activities_of(ids, s, log_sum, rows.n);
    nb::gil_scoped_release release;
    tnesi::search_all(rows, fields, out, n_threads);
}

template <typename X>
void products(X x, Matrix<const float> log_w, Matrix<float> out, int n_threads) {
    const auto rows = rows_of(x, log_w.shape(1));
    require_padded(rows.d, log_w.shape(1));
    require(out.shape(0) == rows.n && out.shape(1) == log_w.shape(0), "out is points x fields");
    nb::gil_scoped_release release;
    tnesi::products(rows, log_w.data(), log_w.shape(0), log_w.shape(1), out.data(), n_threads);
}

void build_lists(Matrix<const std::int32_t> ids, Ids lists, int n_threads) {
    require(lists.shape(1) >= 1, "lists of at least one field");
    nb::gil_scoped_release release;
    tnesi::build_lists(ids.data(), ids.shape(0), ids.shape(1), lists.shape(0), lists.shape(1), lists.data(), n_threads);
}

void require_fields(std::size_t d, const Matrix<float>& w, const Matrix<float>& log_w, const Vector<float>& log_w_sum) {
    require(w.shape(1) == d, "w is fields x features");
    require_padded(d, log_w.shape(1));
    require(log_w.shape(0) == w.shape(0) && log_w_sum.shape(0) == w.shape(0), "log_w and log_w_sum for each field");
}

tnesi::Prior prior_of(const std::optional<Vector<const float>>& prior, double prior_rows, std::size_t d) {
    require(!prior || (prior->shape(0) == d && prior_rows >= 0), "a prior for each feature");
    return {prior ? prior->data() : nullptr, prior_rows};
}

template <typename X>
void m_step(X x, Vector<const float> scale, OptionalWeight weight, Matrix<const std::int32_t> ids,
            Matrix<const float> s, double unit, double mass_unit, Matrix<const float> old_w, OptionalWeight prior,
            double prior_rows, Matrix<float> w, Matrix<float> log_w, Vector<float> log_w_sum, Vector<double> mass,
            int n_threads) {
    const auto rows = rows_of(x, w.shape(1), scale);
    require_fields(rows.d, w, log_w, log_w_sum);
    const tnesi::Prior before = prior_of(prior, prior_rows, rows.d);
    require(ids.shape(0) == rows.n && s.shape(0) == rows.n && ids.shape(1) == s.shape(1), "activities for each point");
    require(old_w.shape(0) == w.shape(0) && old_w.shape(1) == rows.d, "old_w like w");
    require(mass.shape(0) == w.shape(0), "mass for each field");
    const float* weights = weight_of(weight, rows.n);
    nb::gil_scoped_release release;
    tnesi::m_step(rows, ids.data(), s.data(), weights, ids.shape(1), {unit, mass_unit}, old_w.data(), before, w.data(),
                  log_w.data(), log_w_sum.data(), mass.data(), w.shape(0), log_w.shape(1), n_threads);
}

template <typename X>
void add_statistics(X x, Vector<const float> scale, OptionalWeight weight, Matrix<const std::int32_t> ids,
                    Matrix<const float> s, double unit, double mass_unit, Matrix<double> sums, Vector<double> mass,
                    int n_threads) {
    const auto rows = rows_of(x, sums.shape(1), scale);
    require(ids.shape(0) == rows.n && s.shape(0) == rows.n && ids.shape(1) == s.shape(1), "activities for each point");
    require(sums.shape(1) == rows.d && sums.shape(0) == mass.shape(0), "sums are fields x features");
    const float* weights = weight_of(weight, rows.n);
    nb::gil_scoped_release release;
    tnesi::add_statistics(rows, ids.data(), s.data(), weights, ids.shape(1), {unit, mass_unit}, sums.data(),
                          mass.data(), mass.shape(0), n_threads);
}

void finish_m_step(Matrix<const double> sums, Vector<const double> mass, Matrix<const float> old_w,
                   OptionalWeight prior, double prior_rows, Matrix<float> w, Matrix<float> log_w,
                   Vector<float> log_w_sum, int n_threads) {
    const std::size_t c = sums.shape(0), d = sums.shape(1);
    require_fields(d, w, log_w, log_w_sum);
    require(w.shape(0) == c && mass.shape(0) == c, "sums and mass for each field");
    require(old_w.shape(0) == c && old_w.shape(1) == d, "old_w like w");
    const tnesi::Prior before = prior_of(prior, prior_rows, d);
    nb::gil_scoped_release release;
    tnesi::finish_m_step(sums.data(), mass.data(), old_w.data(), before, w.data(), log_w.data(), log_w_sum.data(), c, d,
                         log_w.shape(1), n_threads);
}

template <typename X>
void hebbian_step(X x, Vector<const float> scale, OptionalWeight weight, Matrix<const std::int32_t> ids,
                  Matrix<const float> s, float rate, Matrix<float> w, Matrix<float> log_w, Vector<float> log_w_sum,
                  Vector<float> w_sum, int n_threads) {
    const auto rows = rows_of(x, w.shape(1), scale);
    require_fields(rows.d, w, log_w, log_w_sum);
    require(ids.shape(0) == rows.n && s.shape(0) == rows.n && ids.shape(1) == s.shape(1), "activities for each point");
    require(w_sum.shape(0) == w.shape(0), "w_sum for each field");
    const float* weights = weight_of(weight, rows.n);
    nb::gil_scoped_release release;
    tnesi::hebbian_step(rows, ids.data(), s.data(), weights, ids.shape(1), rate, w.data(), log_w.data(),
                        log_w_sum.data(), w_sum.data(), w.shape(0), log_w.shape(1), n_threads);
}

template <typename X>
void learn_online(X x, Vector<const float> scale, OptionalWeight weight, Vector<const std::int64_t> order,
                  std::size_t batch, float rate, float row_sum, Matrix<const std::int32_t> lists,
                  Matrix<const std::int32_t> extra, Matrix<float> w, Matrix<float> log_w, Vector<float> log_w_sum,
                  Vector<float> w_sum, Ids ids, Matrix<float> s, Vector<float> log_sum, Vector<float> log_joint,
                  int n_threads) {
    const auto rows = rows_of(x, w.shape(1), scale);
    require_fields(rows.d, w, log_w, log_w_sum);
    require(w_sum.shape(0) == w.shape(0), "w_sum for each field");
    require(lists.shape(0) == w.shape(0), "a list for each field");
    require(extra.shape(0) == order.shape(0), "extra candidates for each point in the order");
    require(batch >= 1, "batch of at least one");
    require(all_below(order, rows.n), "order names points");
    std::vector<bool> seen(rows.n, false);  // two threads must not learn the same point
    for (std::size_t at = 0; at < order.shape(0); ++at) {
        require(!seen[static_cast<std::size_t>(order.data()[at])], "order names points once");
        seen[static_cast<std::size_t>(order.data()[at])] = true;
    }
    const tnesi::Activities out = activities_of(ids, s, log_sum, rows.n);
    require(log_joint.shape(0) == rows.n, "log_joint for each point");
    const float* weights = weight_of(weight, rows.n);
    nb::gil_scoped_release release;
    tnesi::learn_online(rows, weights, order.data(), order.shape(0), batch, rate, row_sum,
                        {lists.data(), lists.shape(1), extra.data(), extra.shape(1)},
                        {w.data(), log_w.data(), log_w_sum.data(), w_sum.data(), w.shape(0), log_w.shape(1)}, out,
                        log_joint.data(), n_threads);
}

void learn_classes(Vector<const std::int64_t> indptr, Vector<const std::int32_t> indices, Vector<const float> values,
                   Vector<const std::int32_t> label, OptionalWeight weight, Vector<const std::int64_t> order,
                   std::size_t batch, double rate, float threshold, bool self_label, OptionalWeight sizes,
                   Matrix<float> r, std::size_t n_classes, Vector<std::int32_t> taught, int n_threads) {
    const std::size_t n = label.shape(0);
    require_rows(indptr, indices, values, n, r.shape(0));
    require(taught.shape(0) == n, "taught for each point");
    require(batch >= 1 && n_classes >= 1, "batch and n_classes of at least one");
    require(r.shape(1) >= n_classes && r.shape(1) % tnesi::kBlock == 0, "r padded to a multiple of 16 classes");
    for (std::size_t i = 0; i < n; ++i)
        require(label.data()[i] < static_cast<std::int32_t>(n_classes), "labels below n_classes");
    require(all_below(order, n), "order names points");
    const float* weights = weight_of(weight, n);
    require(!sizes || sizes->shape(0) == n_classes, "one size for each class");
    for (std::size_t k = 0; sizes && k < n_classes; ++k) require(sizes->data()[k] >= 0.0f, "sizes are not negative");
    std::vector<float> scale(r.shape(1), 0.0f);
    for (std::size_t k = 0; k < n_classes; ++k) scale[k] = 1.0f;
    nb::gil_scoped_release release;
    tnesi::learn_classes(indptr.data(), indices.data(), values.data(), label.data(), weights, order.data(),
                         order.shape(0), batch, rate, threshold, self_label, sizes ? sizes->data() : nullptr,
                         {r.data(), scale.data(), r.shape(0), n_classes, r.shape(1)}, taught.data(), n_threads);
}

void spread(Vector<const std::int64_t> indptr, Vector<const std::int32_t> indices, Vector<const float> values,
            Matrix<const float> source, Matrix<const float> coefficients, Matrices<float> out, int n_threads) {
    const std::size_t c = source.shape(0), k_padded = source.shape(1);
    require_rows(indptr, indices, values, c, c);
    require(coefficients.shape(1) >= 1, "at least one term");
    require(out.shape(0) == coefficients.shape(0) && out.shape(1) == c && out.shape(2) == k_padded,
            "out like source, for each row of coefficients");
    require(k_padded % tnesi::kBlock == 0, "source padded to a multiple of 16 classes");
    nb::gil_scoped_release release;
    tnesi::spread({indptr.data(), indices.data(), values.data(), c}, source.data(),
                  {coefficients.data(), coefficients.shape(0), coefficients.shape(1)}, out.data(), k_padded, n_threads);
}

constexpr std::size_t kAnyColumn = std::numeric_limits<std::int32_t>::max();

template <typename X>
void row_hashes(X x, std::uint64_t seed, Vector<std::uint64_t> out, int n_threads) {
    const auto rows = rows_of(x, kAnyColumn);
    require(out.shape(0) == rows.n, "a hash for each row");
    nb::gil_scoped_release release;
    tnesi::row_hashes(rows, seed, out.data(), n_threads);
}

template <typename X>
void log_factorials(X x, Vector<const float> scale, Vector<double> out, int n_threads) {
    const auto rows = rows_of(x, kAnyColumn, scale);
    require(out.shape(0) == rows.n, "a value for each row");
    nb::gil_scoped_release release;
    tnesi::log_factorials(rows, out.data(), n_threads);
}

using Boxes = std::optional<Matrix<const std::int32_t>>;

tnesi::Pictures pictures_of(const Arrays<const float>& x, const Boxes& boxes, const Arrays<float>& out) {
    require(x.shape(1) >= 1 && x.shape(2) >= 1 && x.shape(3) >= 1, "pictures of at least one pixel");
    require(out.shape(0) == x.shape(0) && out.shape(1) >= 1 && out.shape(2) >= 1, "cells for each picture");
    if (boxes) {
        require(boxes->shape(0) == x.shape(0) && boxes->shape(1) == 4, "a box for each picture");
        for (std::size_t n = 0; n < x.shape(0); ++n) {
            const std::int32_t* box = boxes->data() + 4 * n;
            for (std::size_t axis = 0; axis < 2; ++axis)
                require(box[axis] >= 0 && box[axis + 2] >= 1 &&
                            std::int64_t{box[axis]} + box[axis + 2] <= static_cast<std::int64_t>(x.shape(axis + 1)),
                        "boxes within the canvas");
        }
    }
    return {x.data(), boxes ? boxes->data() : nullptr, x.shape(0), x.shape(1), x.shape(2), x.shape(3)};
}

void oriented_gradients(Arrays<const float> x, Boxes boxes, bool is_signed, Arrays<float> out, int n_threads) {
    const tnesi::Pictures pictures = pictures_of(x, boxes, out);
    require(out.shape(3) >= 2, "at least two orientations");
    nb::gil_scoped_release release;
    tnesi::oriented_gradients(pictures, {out.shape(1), out.shape(2)}, out.shape(3), is_signed, out.data(), n_threads);
}

void color_histograms(Arrays<const float> x, Boxes boxes, Arrays<float> out, int n_threads) {
    const tnesi::Pictures pictures = pictures_of(x, boxes, out);
    require(x.shape(3) == 3 && out.shape(3) == 8, "three channels, eight colors");
    nb::gil_scoped_release release;
    tnesi::color_histograms(pictures, {out.shape(1), out.shape(2)}, out.data(), n_threads);
}

template <typename X>
void def_for_rows(nb::module_& m) {
    m.def("search_groups", &search_groups<X>, arg("x").noconvert(), arg("scale").noconvert(), arg("log_w").noconvert(),
          arg("base").noconvert(), arg("base_row").noconvert().none(), arg("group").noconvert(),
          arg("lists").noconvert(), arg("ids").noconvert(), arg("s").noconvert(), arg("log_sum").noconvert(),
          arg("n_threads"));
    m.def("m_step", &m_step<X>, arg("x").noconvert(), arg("scale").noconvert(), arg("weight").noconvert().none(),
          arg("ids").noconvert(), arg("s").noconvert(), arg("unit"), arg("mass_unit"), arg("old_w").noconvert(),
          arg("prior").noconvert().none(), arg("prior_rows"), arg("w").noconvert(), arg("log_w").noconvert(),
          arg("log_w_sum").noconvert(), arg("mass").noconvert(), arg("n_threads"));
    m.def("add_statistics", &add_statistics<X>, arg("x").noconvert(), arg("scale").noconvert(),
          arg("weight").noconvert().none(), arg("ids").noconvert(), arg("s").noconvert(), arg("unit"), arg("mass_unit"),
          arg("sums").noconvert(), arg("mass").noconvert(), arg("n_threads"));
    m.def("hebbian_step", &hebbian_step<X>, arg("x").noconvert(), arg("scale").noconvert(),
          arg("weight").noconvert().none(), arg("ids").noconvert(), arg("s").noconvert(), arg("rate"),
          arg("w").noconvert(), arg("log_w").noconvert(), arg("log_w_sum").noconvert(), arg("w_sum").noconvert(),
          arg("n_threads"));
    m.def("learn_online", &learn_online<X>, arg("x").noconvert(), arg("scale").noconvert(),
          arg("weight").noconvert().none(), arg("order").noconvert(), arg("batch"), arg("rate"), arg("row_sum"),
          arg("lists").noconvert(), arg("extra").noconvert(), arg("w").noconvert(), arg("log_w").noconvert(),
          arg("log_w_sum").noconvert(), arg("w_sum").noconvert(), arg("ids").noconvert(), arg("s").noconvert(),
          arg("log_sum").noconvert(), arg("log_joint").noconvert(), arg("n_threads"));
    m.def("products", &products<X>, arg("x").noconvert(), arg("log_w").noconvert(), arg("out").noconvert(),
          arg("n_threads"));
    m.def("row_hashes", &row_hashes<X>, arg("x").noconvert(), arg("seed"), arg("out").noconvert(), arg("n_threads"));
    m.def("log_factorials", &log_factorials<X>, arg("x").noconvert(), arg("scale").noconvert(), arg("out").noconvert(),
          arg("n_threads"));
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Native kernels of tnesi; native/kernels.h documents the arrays.";
    def_for_rows<Matrix<const std::uint8_t>>(m);
    def_for_rows<Matrix<const float>>(m);
    def_for_rows<Sparse>(m);
    m.def("search_all", &search_all, arg("x").noconvert(), arg("scale").noconvert(), arg("log_w").noconvert(),
          arg("base").noconvert(), arg("base_row").noconvert().none(), arg("ids").noconvert(), arg("s").noconvert(),
          arg("log_sum").noconvert(), arg("n_threads"));
    m.def("select_top", &select_top, arg("raw").noconvert(), arg("scale").noconvert(), arg("base").noconvert(),
          arg("base_row").noconvert().none(), arg("ids").noconvert(), arg("s").noconvert(), arg("log_sum").noconvert(),
          arg("n_threads"));
    m.def("build_lists", &build_lists, arg("ids").noconvert(), arg("lists").noconvert(), arg("n_threads"));
    m.def("finish_m_step", &finish_m_step, arg("sums").noconvert(), arg("mass").noconvert(), arg("old_w").noconvert(),
          arg("prior").noconvert().none(), arg("prior_rows"), arg("w").noconvert(), arg("log_w").noconvert(),
          arg("log_w_sum").noconvert(), arg("n_threads"));
    m.def("learn_classes", &learn_classes, arg("indptr").noconvert(), arg("indices").noconvert(),
          arg("values").noconvert(), arg("label").noconvert(), arg("weight").noconvert().none(),
          arg("order").noconvert(), arg("batch"), arg("rate"), arg("threshold"), arg("self_label"),
          arg("sizes").noconvert().none(), arg("r").noconvert(), arg("n_classes"), arg("taught").noconvert(),
          arg("n_threads"));
    m.def("spread", &spread, arg("indptr").noconvert(), arg("indices").noconvert(), arg("values").noconvert(),
          arg("source").noconvert(), arg("coefficients").noconvert(), arg("out").noconvert(), arg("n_threads"));
    m.def("oriented_gradients", &oriented_gradients, arg("x").noconvert(), arg("boxes").noconvert().none(),
          arg("is_signed"), arg("out").noconvert(), arg("n_threads"));
    m.def("color_histograms", &color_histograms, arg("x").noconvert(), arg("boxes").noconvert().none(),
          arg("out").noconvert(), arg("n_threads"));
    m.def(
        "instruction_sets",
        [] {
            int n = 0;
            const tnesi::Lanes* const* found = tnesi::available_lanes(&n);
            std::vector<std::string> names;
            for (int i = 0; i < n; ++i) names.emplace_back(found[i]->name);
            return names;
        },
        "Instruction sets that this processor supports, the widest last.");
    m.def("instruction_set", [] { return std::string(tnesi::lanes().name); }, "The instruction set in use.");
    m.def(
        "use_instruction_set",
        [](const std::string& name) {
            if (!tnesi::use_lanes(name.c_str())) throw std::invalid_argument("no such instruction set here: " + name);
        },
        arg("name"), "Select one of instruction_sets(), for tests and benchmarks.");
}
