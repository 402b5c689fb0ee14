// Counting sort of (row, field) pairs by field, so that the entries of a field are contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tnesi {

struct Member {
    std::int32_t point;
    float s;
};

struct Grouping {
    std::vector<std::size_t> start;  // members of group j: [start[j], start[j + 1])
    std::vector<Member> members;     // in the order of the points
};

// `ids` is n x width; ids outside [0, n_groups) and activities of exactly 0 are skipped. `s` may be null (all 1).
inline Grouping group_by(const std::int32_t* ids, const float* s, std::size_t n, std::size_t width,
                         std::size_t n_groups) {
    Grouping out;
    out.start.assign(n_groups + 2, 0);
    const auto counts = [&](std::size_t at) {
        return static_cast<std::uint32_t>(ids[at]) < n_groups && (s == nullptr || s[at] != 0.0f);
    };
    for (std::size_t at = 0; at < n * width; ++at)
        if (counts(at)) ++out.start[static_cast<std::size_t>(ids[at]) + 2];
    for (std::size_t j = 2; j < n_groups + 2; ++j) out.start[j] += out.start[j - 1];
    out.members.resize(out.start[n_groups + 1]);
    for (std::size_t point = 0, at = 0; point < n; ++point)
        for (std::size_t i = 0; i < width; ++i, ++at)
            if (counts(at))
                out.members[out.start[static_cast<std::size_t>(ids[at]) + 1]++] = {static_cast<std::int32_t>(point),
                                                                                   s == nullptr ? 1.0f : s[at]};
    out.start.pop_back();
    return out;
}

}  // namespace tnesi
