// A loop over independent items on plain threads.
//
// Threads are started per call: there is no pool to survive a fork and no OpenMP runtime to clash with
// another library's. Items are handed out in chunks; which thread gets a chunk is not defined, so the body
// must write only what belongs to its items. That is what makes every kernel independent of the number of
// threads, bit for bit.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace tnesi {

// Calls body(begin, end, worker) for chunks of [0, n_items); worker is in [0, n_threads).
// The body must not throw: scratch space is allocated before, one per worker.
template <typename Body>
void parallel_for(std::size_t n_items, std::size_t chunk, int n_threads, Body&& body) {
    const std::size_t n_chunks = (n_items + chunk - 1) / chunk;
    const int n_workers = static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(std::max(n_threads, 1)), std::max<std::size_t>(n_chunks, 1)));
    if (n_workers == 1) {
        if (n_items > 0) body(std::size_t{0}, n_items, 0);
        return;
    }
    std::atomic<std::size_t> next{0};
    auto work = [&](int worker) {
        for (;;) {
            const std::size_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
            if (begin >= n_items) return;
            body(begin, std::min(begin + chunk, n_items), worker);
        }
    };
    std::vector<std::thread> helpers;
    helpers.reserve(static_cast<std::size_t>(n_workers - 1));
    for (int worker = 1; worker < n_workers; ++worker) {
        try {
            helpers.emplace_back(work, worker);
        } catch (const std::system_error&) {
            break;  // no more threads to be had: the ones we have do all of it
        }
    }
    work(0);
    for (auto& helper : helpers) helper.join();
}

}  // namespace tnesi
