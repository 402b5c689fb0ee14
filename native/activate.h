// Computes the activities of a row from its best scores.
#pragma once

#include "kernels.h"
#include "lanes.h"
#include "select.h"

namespace tnesi {

// `logits` is scratch for c_prime floats.
inline void write_activities(const Activities& out, std::size_t n, const Scored* best, std::size_t n_best,
                             float* logits) {
    std::int32_t* ids = out.ids + n * out.c_prime;
    float* s = out.s + n * out.c_prime;
    for (std::size_t i = 0; i < n_best; ++i) {
        ids[i] = best[i].id;
        logits[i] = best[i].score;
    }
    for (std::size_t i = n_best; i < out.c_prime; ++i) {
        ids[i] = -1;
        s[i] = 0.0f;
    }
    out.log_sum[n] = n_best == 0 ? -3.0e38f : lanes().softmax(logits, n_best, s);
}

inline const float* base_of(const Fields& fields, std::size_t n) {
    return fields.base + (fields.base_row ? static_cast<std::size_t>(fields.base_row[n]) * fields.c : 0);
}

}  // namespace tnesi
