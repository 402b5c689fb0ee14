// Selects the table of innermost loops for this processor; see lanes.h.
#include <atomic>
#include <cstring>

#include "lanes.h"
#include "processor.h"

namespace tnesi {

extern const Lanes lanes_baseline;
#ifdef TNESI_X86
extern const Lanes lanes_avx2;
extern const Lanes lanes_avx512;
#endif

const Lanes* const* available_lanes(int* n) {
    static const Lanes* found[3];
    static const int n_found = [] {
        int count = 0;
        found[count++] = &lanes_baseline;
#ifdef TNESI_X86
        const Processor here = processor();
        if (here.avx2) found[count++] = &lanes_avx2;
        if (here.avx512) found[count++] = &lanes_avx512;
#endif
        return count;
    }();
    *n = n_found;
    return found;
}

namespace {
std::atomic<const Lanes*> chosen{nullptr};
}

const Lanes& lanes() {
    const Lanes* now = chosen.load(std::memory_order_acquire);
    if (now == nullptr) {
        int n = 0;
        now = available_lanes(&n)[n - 1];
        chosen.store(now, std::memory_order_release);
    }
    return *now;
}

bool use_lanes(const char* name) {
    int n = 0;
    const Lanes* const* found = available_lanes(&n);
    for (int i = 0; i < n; ++i) {
        if (std::strcmp(found[i]->name, name) == 0) {
            chosen.store(found[i], std::memory_order_release);
            return true;
        }
    }
    return false;
}

}  // namespace tnesi
