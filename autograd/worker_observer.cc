#include "autograd/worker_observer.h"

#include <atomic>

namespace lockstep {

namespace {

constinit std::atomic<CallObserver*> g_observer{nullptr};

}  // namespace

WorkerObserverGuard::WorkerObserverGuard(CallObserver& observer) noexcept
    : outer_(g_observer.exchange(&observer)) {}

WorkerObserverGuard::~WorkerObserverGuard() { g_observer = outer_; }

CallObserver* worker_observer() noexcept { return g_observer.load(std::memory_order_acquire); }

}  // namespace lockstep
