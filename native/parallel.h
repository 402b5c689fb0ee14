// Loops over independent items on plain threads.
//
// Threads are started per call: there is no pool that could break after a fork, and no OpenMP runtime that could
// conflict with that of another library. Items are distributed in chunks to any thread, so the body must write only
// what belongs to its items. Results of kernels are therefore bitwise equal for any number of threads. A body must not
// throw: scratch space is allocated beforehand.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace tnesi {

// Calls work(worker) on n_workers threads including this one, or on fewer if the system refuses more. Each call must
// process items until none are left.
template <typename Work>
void run_workers(int n_workers, Work&& work) {
    std::vector<std::thread> helpers;
    helpers.reserve(static_cast<std::size_t>(n_workers - 1));
    for (int worker = 1; worker < n_workers; ++worker) {
        try {
            helpers.emplace_back(work, worker);
        } catch (const std::system_error&) {
            break;
        }
    }
    work(0);
    for (auto& helper : helpers) helper.join();
}

inline int workers_for(std::size_t n_chunks, int n_threads) {
    return static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(std::max(n_threads, 1)), std::max<std::size_t>(n_chunks, 1)));
}

// Calls body(begin, end, worker) for chunks of [0, n_items); worker is in [0, n_threads).
template <typename Body>
void parallel_for(std::size_t n_items, std::size_t chunk, int n_threads, Body&& body) {
    const int n_workers = workers_for((n_items + chunk - 1) / chunk, n_threads);
    if (n_workers == 1) {
        if (n_items > 0) body(std::size_t{0}, n_items, 0);
        return;
    }
    std::atomic<std::size_t> next{0};
    const auto work = [&](int worker) {
        for (;;) {
            const std::size_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
            if (begin >= n_items) return;
            body(begin, std::min(begin + chunk, n_items), worker);
        }
    };
    run_workers(n_workers, work);
}

// Calls body(step, begin, end, worker) for chunks of [0, n_items) in each step; a step starts when the previous one is
// done. Chunks are distributed in the order of the steps, so a thread only waits for chunks that others are processing.
template <typename Body>
void parallel_steps(std::size_t n_steps, std::size_t n_items, std::size_t chunk, int n_threads, Body&& body) {
    const std::size_t n_chunks = (n_items + chunk - 1) / chunk;
    std::atomic<std::size_t> next{0}, done{0};
    const auto work = [&](int worker) {
        for (;;) {
            const std::size_t at = next.fetch_add(1, std::memory_order_relaxed);
            if (at >= n_steps * n_chunks) return;
            const std::size_t step = at / n_chunks, begin = at % n_chunks * chunk;
            while (done.load(std::memory_order_acquire) < step * n_chunks) std::this_thread::yield();
            body(step, begin, std::min(begin + chunk, n_items), worker);
            done.fetch_add(1, std::memory_order_release);
        }
    };
    run_workers(workers_for(n_chunks, n_threads), work);
}

}  // namespace tnesi
