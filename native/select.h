// Selection of the best scores, in a defined order: larger scores first, then smaller ids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tnesi {

struct Scored {
    float score;
    std::int32_t id;
};

struct Better {
    bool operator()(const Scored& a, const Scored& b) const {
        return a.score > b.score || (a.score == b.score && a.id < b.id);
    }
};

// Keeps the best `room` candidates, sorted once it is full. Candidates arrive roughly best first (lists are ordered by
// similarity), so few are inserted later, and insertion is faster than a heap.
class Best {
  public:
    Best() = default;
    Best(Scored* kept, std::size_t room) : kept_(kept), room_(room) {}

    void offer(const Scored& candidate) {
        if (n_ < room_) {
            kept_[n_++] = candidate;
            if (n_ == room_) std::sort(kept_, kept_ + n_, Better());
        } else if (Better()(candidate, kept_[n_ - 1])) {
            std::size_t i = n_ - 1;
            for (; i > 0 && Better()(candidate, kept_[i - 1]); --i) kept_[i] = kept_[i - 1];
            kept_[i] = candidate;
        }
    }

    // Offers n candidates with ids from `first_id`.
    void offer(const float* scores, std::size_t n, std::int32_t first_id) {
        if (n_ == 0 && n > 0) return begin(scores, n, first_id);
        for (std::size_t i = 0; i < n; ++i) offer({scores[i], first_id + static_cast<std::int32_t>(i)});
    }

    // Scores below this are rejected.
    float bar() const { return n_ < room_ ? -3.0e38f : kept_[n_ - 1].score; }

    // Sorts the candidates; returns their number.
    std::size_t finish() {
        if (n_ < room_) std::sort(kept_, kept_ + n_, Better());
        return n_;
    }

  private:
    // Inserts the first candidates, each at the number of better ones. This is quadratic but branchless, and far faster
    // than sorting for a few dozen.
    void begin(const float* scores, std::size_t n, std::int32_t first_id) {
        n_ = std::min(n, room_);
        std::fill(kept_, kept_ + n_, Scored{scores[0], first_id});  // in case of NaN, nothing is uninitialized
        for (std::size_t i = 0; i < n; ++i) {
            const float own = scores[i];
            std::int32_t better = 0;
            for (std::size_t j = 0; j < i; ++j) better += scores[j] >= own;
            for (std::size_t j = i + 1; j < n; ++j) better += scores[j] > own;
            if (static_cast<std::size_t>(better) < room_)
                kept_[better] = {own, first_id + static_cast<std::int32_t>(i)};
        }
    }

    Scored* kept_ = nullptr;
    std::size_t room_ = 0, n_ = 0;
};

}  // namespace tnesi
