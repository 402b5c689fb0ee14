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

// Keeps the best `room` of what it is offered, in a heap whose root is the worst kept.
class Best {
  public:
    Best(Scored* heap, std::size_t room) : heap_(heap), room_(room) {}

    // Nothing at or below this score can get in once the heap is full, but for ties with a smaller id.
    float bar() const { return n_ < room_ ? -3.0e38f : heap_[0].score; }

    void offer(const Scored& candidate) {
        if (n_ < room_) {
            heap_[n_++] = candidate;
            std::push_heap(heap_, heap_ + n_, Better());
        } else if (Better()(candidate, heap_[0])) {
            std::pop_heap(heap_, heap_ + n_, Better());
            heap_[n_ - 1] = candidate;
            std::push_heap(heap_, heap_ + n_, Better());
        }
    }

    // Sorts, best first; returns how many there are.
    std::size_t finish() {
        std::sort_heap(heap_, heap_ + n_, Better());
        return n_;
    }

  private:
    Scored* heap_;
    std::size_t room_, n_ = 0;
};

}  // namespace tnesi
