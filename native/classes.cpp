// The top layer: online Hebbian learning with hard, margin-gated self-labels.
#include <algorithm>
#include <vector>

#include "kernels.h"
#include "lanes.h"

namespace tnesi {
namespace {

constexpr float kFoldBelow = 1e-12f;  // a class's common factor is folded into its weights before it underflows

void fold_scale(const ClassLayer& layer, std::size_t k) {
    for (std::size_t c = 0; c < layer.c; ++c) layer.r[c * layer.k_padded + k] *= layer.scale[k];
    layer.scale[k] = 1.0f;
}

// argmax t if best - second best > threshold, else -1
std::int32_t confident_class(const float* t, std::size_t n_classes, float threshold) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < n_classes; ++k)
        if (t[k] > t[best]) best = k;
    float second = 0.0f;
    for (std::size_t k = 0; k < n_classes; ++k)
        if (k != best) second = std::max(second, t[k]);
    return t[best] - second > threshold ? static_cast<std::int32_t>(best) : -1;
}

}  // namespace

void learn_classes(const std::int64_t* indptr, const std::int32_t* indices, const float* values,
                   const std::int32_t* label, const float* weight, const std::int64_t* order, std::size_t n_order,
                   std::size_t batch, float rate, float threshold, bool self_label, ClassLayer layer,
                   std::int32_t* taught) {
    std::vector<const float*> rows;
    std::vector<float> t(layer.k_padded);
    std::vector<double> mass(layer.k);
    std::vector<float> step(layer.k);
    const Lanes& simd = lanes();

    for (std::size_t begin = 0; begin < n_order; begin += batch) {
        const std::size_t end = std::min(begin + batch, n_order);
        std::fill(mass.begin(), mass.end(), 0.0);
        for (std::size_t at = begin; at < end; ++at) {  // activities from the weights before the batch
            const auto n = static_cast<std::size_t>(order[at]);
            std::int32_t k = label[n];
            if (k < 0 && self_label) {
                const auto first = static_cast<std::size_t>(indptr[n]), last = static_cast<std::size_t>(indptr[n + 1]);
                if (at + 1 < end) {
                    const auto next = static_cast<std::size_t>(indptr[order[at + 1]]);
                    __builtin_prefetch(indices + next);
                    __builtin_prefetch(values + next);
                }
                rows.clear();
                for (std::size_t i = first; i < last; ++i)
                    rows.push_back(layer.r + static_cast<std::size_t>(indices[i]) * layer.k_padded);
                simd.class_vote(rows.data(), values + first, last - first, layer.scale, layer.k_padded, t.data());
                k = confident_class(t.data(), layer.k, threshold);
            }
            taught[n] = k;
            if (k >= 0) mass[static_cast<std::size_t>(k)] += weight ? static_cast<double>(weight[n]) : 1.0;
        }
        for (std::size_t k = 0; k < layer.k; ++k) {
            if (mass[k] == 0.0) continue;
            // a step past the batch's mean would overshoot: with few labels and a high rate, go to the mean
            const double eps = std::min(static_cast<double>(rate), 1.0 / mass[k]);
            layer.scale[k] *= static_cast<float>(1.0 - eps * mass[k]);
            if (layer.scale[k] < kFoldBelow) fold_scale(layer, k);
            step[k] = static_cast<float>(eps) / layer.scale[k];
        }
        for (std::size_t at = begin; at < end; ++at) {
            const auto n = static_cast<std::size_t>(order[at]);
            if (taught[n] < 0) continue;
            const auto k = static_cast<std::size_t>(taught[n]);
            const float gain = step[k] * (weight ? weight[n] : 1.0f);
            for (std::int64_t i = indptr[n]; i < indptr[n + 1]; ++i)
                layer.r[static_cast<std::size_t>(indices[i]) * layer.k_padded + k] += gain * values[i];
        }
    }
    for (std::size_t k = 0; k < layer.k; ++k) fold_scale(layer, k);
}

}  // namespace tnesi
