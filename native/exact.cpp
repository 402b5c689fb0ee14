// Exact search: selects the best C' of all inputs, which are computed by BLAS.
#include <functional>
#include <vector>

#include "activate.h"
#include "parallel.h"

namespace tnesi {

void select_top(const float* raw, const float* scale, const Fields& fields, Activities out, int n_threads) {
    const std::size_t c = fields.c, n_steps = (c + kStep - 1) / kStep;
    struct Scratch {
        std::vector<Scored> best;
        std::vector<float> logits, tops, sorted;
    };
    std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(n_threads, 1)));
    for (auto& own : scratch) {
        own.best.resize(out.c_prime);
        own.logits.resize(out.c_prime);
        own.tops.resize(n_steps);
        own.sorted.resize(n_steps);
    }
    const Lanes& simd = lanes();
    parallel_for(out.n, 32, n_threads, [&](std::size_t begin, std::size_t end, int worker) {
        Scratch& own = scratch[static_cast<std::size_t>(worker)];
        for (std::size_t n = begin; n < end; ++n) {
            const float* input = raw + n * c;
            const float* base = base_of(fields, n);
            simd.block_largest(input, base, scale[n], c, own.tops.data());
            // no score below the C'-th largest maximum of the steps can be among the best C'
            float bar = -3.0e38f;
            if (n_steps > out.c_prime) {
                own.sorted = own.tops;
                const auto nth = own.sorted.begin() + static_cast<std::ptrdiff_t>(out.c_prime) - 1;
                std::nth_element(own.sorted.begin(), nth, own.sorted.end(), std::greater<float>());
                bar = *nth;
            }
            Best best(own.best.data(), out.c_prime);
            for (std::size_t step = 0; step < n_steps; ++step) {
                if (own.tops[step] < bar) continue;
                for (std::size_t i = step * kStep; i < std::min(c, (step + 1) * kStep); ++i) {
                    best.offer({base[i] + input[i] * scale[n], static_cast<std::int32_t>(i)});
                }
            }
            const std::size_t n_best = best.finish();
            write_activities(out, n, own.best.data(), n_best, own.logits.data());
        }
    });
}

}  // namespace tnesi
