// The second layer: online Hebbian learning with hard self-labels above a margin.
#include <algorithm>
#include <future>
#include <vector>

#include "kernels.h"
#include "lanes.h"

namespace tnesi {
namespace {

constexpr double kFullStep = 1e-12;   // a step that keeps less of a class's weights keeps nothing of them
constexpr float kFoldBelow = 1e-12f;  // a class's common factor is folded into its weights before it underflows

void fold_scale(const ClassLayer& layer, std::size_t k) {
    for (std::size_t c = 0; c < layer.c; ++c) {
        float& weight = layer.r[c * layer.k_padded + k];
        weight *= layer.scale[k];
        if (weight < kUnreached) weight = 0.0f;  // also avoids denormal numbers, which are slow
    }
    layer.scale[k] = 1.0f;
}

void fold_all(const ClassLayer& layer) {
    for (std::size_t c = 0; c < layer.c; ++c) {
        float* row = layer.r + c * layer.k_padded;
        for (std::size_t k = 0; k < layer.k_padded; ++k) {
            const float weight = row[k] * layer.scale[k];
            row[k] = weight < kUnreached ? 0.0f : weight;
        }
    }
    std::fill(layer.scale, layer.scale + layer.k, 1.0f);
}

// The activities of the next points, gathered from scattered memory. A second thread gathers while the first one
// learns, which is sequential.
struct Gathered {
    std::vector<std::size_t> start;  // of a point's fields
    std::vector<const float*> rows;  // a field's row of r
    std::vector<float> values;       // its activity

    void gather(const std::int64_t* indptr, const std::int32_t* indices, const float* from, const std::int64_t* order,
                std::size_t n, const ClassLayer& layer) {
        start.resize(n + 1);
        start[0] = 0;
        for (std::size_t at = 0; at < n; ++at) {
            const std::int64_t first = indptr[order[at]], length = indptr[order[at] + 1] - first;
            start[at + 1] = start[at] + static_cast<std::size_t>(length);
            __builtin_prefetch(indices + first);
            __builtin_prefetch(from + first);
        }
        rows.resize(start[n]);
        values.resize(start[n]);
        for (std::size_t at = 0; at < n; ++at) {
            const std::int64_t first = indptr[order[at]];
            for (std::size_t i = start[at], j = static_cast<std::size_t>(first); i < start[at + 1]; ++i, ++j) {
                rows[i] = layer.r + static_cast<std::size_t>(indices[j]) * layer.k_padded;
                values[i] = from[j];
            }
        }
    }
};

}  // namespace

void learn_classes(const std::int64_t* indptr, const std::int32_t* indices, const float* values,
                   const std::int32_t* label, const float* weight, const std::int64_t* order, std::size_t n_order,
                   std::size_t batch, double rate, float threshold, bool self_label, const float* sizes,
                   ClassLayer layer, std::int32_t* taught, int n_threads) {
    constexpr std::size_t kGather = 2048;
    const std::size_t chunk = batch * std::max<std::size_t>(1, kGather / batch);
    Gathered ahead, near;
    const auto gather = [&](std::size_t begin) {
        ahead.gather(indptr, indices, values, order + begin, std::min(chunk, n_order - begin), layer);
    };
    const auto when = n_threads > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred;
    std::future<void> next = std::async(when, gather, std::size_t{0});
    std::vector<float> t(layer.k_padded);
    std::vector<double> mass(layer.k);
    std::vector<float> step(layer.k);
    std::vector<float> voice(layer.scale, layer.scale + layer.k_padded);  // scale times class size, for votes
    const auto set_voice = [&](std::size_t k) { voice[k] = layer.scale[k] * (sizes ? sizes[k] : 1.0f); };
    for (std::size_t k = 0; k < layer.k; ++k) set_voice(k);
    const Lanes& simd = lanes();

    for (std::size_t begin = 0; begin < n_order; begin += batch) {
        const std::size_t end = std::min(begin + batch, n_order), offset = begin - begin % chunk;
        if (begin == offset) {
            next.get();
            std::swap(ahead, near);
            if (begin + chunk < n_order) next = std::async(when, gather, begin + chunk);
        }
        std::fill(mass.begin(), mass.end(), 0.0);
        for (std::size_t at = begin; at < end; ++at) {  // votes use the weights before the batch
            const auto n = static_cast<std::size_t>(order[at]);
            std::int32_t k = label[n];
            if (k < 0 && self_label) {
                const std::size_t first = near.start[at - offset], last = near.start[at - offset + 1];
                simd.class_vote(near.rows.data() + first, near.values.data() + first, last - first, voice.data(),
                                layer.k_padded, t.data());
                k = simd.clear_winner(t.data(), layer.k_padded, threshold);
            }
            taught[n] = k;
            if (k >= 0) mass[static_cast<std::size_t>(k)] += weight ? static_cast<double>(weight[n]) : 1.0;
        }
        for (std::size_t k = 0; k < layer.k; ++k) {
            if (mass[k] == 0.0) continue;
            // with few labels and a high rate, stop at the mean of the batch instead of overshooting; a rounding
            // error of what is kept of the old weights would count as a vote in fields that only this class reached
            double eps = rate, kept = 1.0 - rate * mass[k];
            if (kept < kFullStep) eps = 1.0 / mass[k], kept = 0.0;
            layer.scale[k] *= static_cast<float>(kept);
            if (layer.scale[k] < kFoldBelow) fold_scale(layer, k);
            step[k] = static_cast<float>(eps) / layer.scale[k];
            set_voice(k);
        }
        for (std::size_t at = begin; at < end; ++at) {
            const auto n = static_cast<std::size_t>(order[at]);
            if (taught[n] < 0) continue;
            const auto k = static_cast<std::size_t>(taught[n]);
            const float gain = step[k] * (weight ? weight[n] : 1.0f);
            for (std::size_t i = near.start[at - offset]; i < near.start[at - offset + 1]; ++i)
                layer.r[static_cast<std::size_t>(near.rows[i] - layer.r) + k] += gain * near.values[i];
        }
    }
    fold_all(layer);
}

}  // namespace tnesi
