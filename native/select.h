// The best few of many scores, in a defined order: larger score first, then smaller id.
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

// Keeps the best `room` of what it is offered, sorted once there are so many. Candidates come roughly best first
// (lists are ordered by likeness), so few get in later, and an insertion is cheaper than a heap.
class Best {
  public:
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

    // What is below this does not get in.
    float bar() const { return n_ < room_ ? -3.0e38f : kept_[n_ - 1].score; }

    // Returns how many there are, best first.
    std::size_t finish() {
        if (n_ < room_) std::sort(kept_, kept_ + n_, Better());
        return n_;
    }

  private:
    Scored* kept_;
    std::size_t room_, n_ = 0;
};

}  // namespace tnesi
